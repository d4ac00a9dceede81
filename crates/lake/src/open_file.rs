//! A data file that is looked into several times: its footer and its deletion vector are read once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::{BoxStream, TryStreamExt};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection};
use parquet::file::metadata::PageIndexPolicy;
use roaring::RoaringTreemap;

use crate::file_scan::{FileScan, Rows, row_count, selection};
use crate::{DataFile, KeyProbe, Result, Table, deletion_vector, prune};

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Of all columns of the table.
    scan: FileScan,
    metadata: ArrowReaderMetadata,
    deleted: RoaringTreemap,
}

impl OpenFile {
    /// `read` counts the bytes fetched.
    ///
    /// # Errors
    /// [`crate::Error::Log`] when the log names a file that is not there; store errors.
    pub(crate) async fn new(table: &Table, file: &DataFile, read: Arc<AtomicU64>) -> Result<Self> {
        let scan = FileScan {
            log: table.log().clone(),
            path: file.path.clone(),
            size: Some(file.size),
            rows: Rows::All,
            schema: table.schema(),
            partition_values: file.partition_values.clone(),
            read,
        };
        let metadata = scan.metadata(PageIndexPolicy::Optional).await?;
        let deleted = match &file.deletion_vector {
            Some(vector) => deletion_vector::rows(table.log(), vector).await?,
            None => RoaringTreemap::new(),
        };
        Ok(Self { inner: Arc::new(Inner { scan, metadata, deleted }) })
    }

    /// Positions of the live rows that are wanted, ascending.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn find(&self, probe: &dyn KeyProbe) -> Result<Vec<u64>> {
        let Inner { scan, metadata, deleted } = self.inner.as_ref();
        let all = 0..self.rows();
        let parts = match probe.keys() {
            Some(keys) => prune::parts(scan, metadata, keys).await?,
            None => vec![all.clone()],
        };
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let places = probe.columns().iter().map(|name| scan.schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let of_keys = FileScan { schema: Arc::new(scan.schema.project(&places)?), ..scan.clone() };
        let whole = parts == [all];
        let chosen = (!whole).then(|| RowSelection::from_consecutive_ranges(parts.iter().map(as_usize), row_count(metadata)));
        let mut stream = of_keys.stream(metadata.clone(), chosen)?;
        let mut positions = Positions { parts: &parts, part: 0, taken: 0 };
        let mut found = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            positions.take(batch.num_rows() as u64, &probe.hits(&batch)?, &mut found);
        }
        found.retain(|row| !deleted.contains(*row));
        Ok(found)
    }

    /// The rows at these positions, ascending, with the columns of `schema`, which are of the table.
    ///
    /// # Errors
    /// Store errors, also while the stream is read.
    pub(crate) fn rows_at(&self, positions: &[u64], schema: &SchemaRef) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut rows = RoaringTreemap::new();
        rows.extend(positions.iter().copied());
        self.stream(&rows, schema)
    }

    /// Live rows but those at these positions, with every column of the table.
    ///
    /// # Errors
    /// As [`Self::rows_at`].
    pub(crate) fn rows_but(&self, gone: &[u64]) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        self.stream(&self.live_but(gone), &self.inner.scan.schema)
    }

    /// Positions of live rows but these.
    pub(crate) fn live_but(&self, gone: &[u64]) -> RoaringTreemap {
        let mut rows = RoaringTreemap::new();
        rows.insert_range(0..self.rows());
        rows -= &self.inner.deleted;
        gone.iter().for_each(|row| _ = rows.remove(*row));
        rows
    }

    fn rows(&self) -> u64 {
        row_count(&self.inner.metadata) as u64
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.inner.scan.schema)
    }

    /// Bytes of a column in the file, compressed; none where the file does not have it.
    pub(crate) fn column_bytes(&self, name: &str) -> u64 {
        let metadata = self.inner.metadata.metadata();
        let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
        let of_name = columns.filter(|column| column.column_path().parts().first().is_some_and(|first| first.eq_ignore_ascii_case(name)));
        of_name.map(|column| u64::try_from(column.compressed_size()).unwrap_or_default()).sum()
    }

    /// Whether the footer says a text under a name.
    pub(crate) fn says(&self, name: &str, text: &str) -> bool {
        let said = self.inner.metadata.metadata().file_metadata().key_value_metadata();
        said.is_some_and(|said| said.iter().any(|said| said.key == name && said.value.as_deref() == Some(text)))
    }

    fn stream(&self, rows: &RoaringTreemap, schema: &SchemaRef) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Inner { scan, metadata, .. } = self.inner.as_ref();
        let chosen = selection(rows, row_count(metadata), true);
        FileScan { schema: Arc::clone(schema), ..scan.clone() }.stream(metadata.clone(), Some(chosen))
    }
}

fn as_usize(rows: &Range<u64>) -> Range<usize> {
    let at = |row| usize::try_from(row).unwrap_or(usize::MAX);
    at(rows.start)..at(rows.end)
}

/// Counts off the positions of rows that come batch by batch.
struct Positions<'a> {
    /// Ascending.
    parts: &'a [Range<u64>],
    part: usize,
    /// Of the current part.
    taken: u64,
}

impl Positions<'_> {
    /// The next `rows` rows; the positions of those at `hits`, ascending, are added to `found`.
    fn take(&mut self, rows: u64, hits: &[u32], found: &mut Vec<u64>) {
        let (mut first, mut hits) = (0, hits);
        while first < rows {
            let Some(part) = self.parts.get(self.part) else { return };
            let here = (part.end - part.start - self.taken).min(rows - first);
            let count = hits.partition_point(|hit| u64::from(*hit) < first + here);
            found.extend(hits[..count].iter().map(|hit| part.start + self.taken + u64::from(*hit) - first));
            hits = &hits[count..];
            first += here;
            self.taken += here;
            if part.start + self.taken == part.end {
                (self.part, self.taken) = (self.part + 1, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_batches_have_the_positions_of_their_parts() {
        let parts = [3..5, 10..14, 20..21];
        let mut positions = Positions { parts: &parts, part: 0, taken: 0 };
        let mut found = Vec::new();
        positions.take(3, &[0, 2], &mut found);
        positions.take(3, &[0, 1, 2], &mut found);
        positions.take(1, &[0], &mut found);
        assert_eq!(found, [3, 10, 11, 12, 13, 20]);
    }
}
