//! Rows of one Parquet file in a table's columns, in file order.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use futures::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection, RowSelector};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use roaring::RoaringTreemap;
use url::Url;

use crate::log::Log;
use crate::partition::{self, PartitionValues};
use crate::stored_file::StoredFile;
use crate::{Error, Result, align};

/// Rows handed on at once.
const BATCH_ROWS: usize = 8192;

/// Which rows of a file, by position from zero.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    All,
    /// All but these: a deletion vector applied.
    Except(RoaringTreemap),
    /// Only these.
    Only(RoaringTreemap),
}

/// A file to read and what its rows become.
#[derive(Debug, Clone)]
pub(crate) struct FileScan {
    pub log: Log,
    /// Relative to the table's root, or a URL in the same store; decoded.
    pub path: String,
    /// Bytes, where the log says.
    pub size: Option<u64>,
    pub rows: Rows,
    /// The columns wanted, partition columns among them. What the file lacks is null.
    pub schema: SchemaRef,
    /// What the log says of partition columns holds, whatever the file says.
    pub partition_values: PartitionValues,
    /// Bytes that were fetched.
    pub read: Arc<AtomicU64>,
}

impl FileScan {
    /// Opens the file.
    ///
    /// # Errors
    /// [`Error::Log`] when the log names a file that is not there or a partition value that is none; store errors, also while
    /// the stream is read.
    pub(crate) async fn open(self) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let metadata = self.metadata(PageIndexPolicy::Skip).await?;
        let total = row_count(&metadata);
        let selection = match &self.rows {
            Rows::All => None,
            Rows::Except(rows) => Some(selection(rows, total, false)),
            Rows::Only(rows) => Some(selection(rows, total, true)),
        };
        self.stream(metadata, selection)
    }

    pub(crate) fn reader(&self) -> Result<StoredFile> {
        let (store, kept, read) = (Arc::clone(&self.log.store), Some(Arc::clone(&self.log.kept)), Arc::clone(&self.read));
        Ok(StoredFile { store, place: self.place()?, size: self.size, kept, read })
    }

    /// The file's footer. One with its page index is looked into again and again, and kept.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn metadata(&self, page_index: PageIndexPolicy) -> Result<ArrowReaderMetadata> {
        let mut reader = self.reader()?;
        if let Some(known) = self.log.kept.footer(&reader.place) {
            return Ok(known);
        }
        let options = ArrowReaderOptions::new().with_page_index_policy(page_index);
        let metadata = ArrowReaderMetadata::load_async(&mut reader, options).await.map_err(|error| self.failed(error))?;
        let metadata = in_microseconds(metadata).map_err(|error| self.failed(error))?;
        if page_index != PageIndexPolicy::Skip {
            self.log.kept.keep_footer(&reader.place, &metadata);
        }
        Ok(metadata)
    }

    /// The rows of a selection, whatever [`Self::rows`] says; all without one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn stream(
        self,
        metadata: ArrowReaderMetadata,
        selection: Option<RowSelection>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let partition_columns: Vec<String> = self.partition_values.keys().cloned().collect();
        let wanted = Arc::new(partition::file_schema(&self.schema, &partition_columns));
        let columns = metadata.schema().fields().iter().enumerate().filter(|(_, field)| is_wanted(&wanted, field)).map(|(index, _)| index);
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.collect::<Vec<_>>());
        let mut builder =
            ParquetRecordBatchStreamBuilder::new_with_metadata(self.reader()?, metadata).with_batch_size(BATCH_ROWS).with_projection(mask);
        if let Some(selection) = selection {
            builder = builder.with_row_selection(selection);
        }
        let stream = builder.build().map_err(|error| self.failed(error))?;
        let constants = self.partition_constants()?;
        let stream = stream.map(move |batch| {
            let batch = batch.map_err(|error| self.failed(error))?;
            let batch = align::read_as(&self.log.table, &batch, &wanted)?;
            with_constants(&batch, &self.schema, &constants)
        });
        Ok(stream.boxed())
    }

    /// Where the file is in the store. A table that shares files with another names them by URL.
    fn place(&self) -> Result<Path> {
        let Self { log, path, .. } = self;
        let refused = |error: object_store::path::Error| log.unreadable(format!("file {path}: {error}"));
        match Url::parse(path) {
            Ok(url) if url.scheme() == log.url.scheme() && url.authority() == log.url.authority() => {
                Path::from_url_path(url.path()).map_err(refused)
            }
            Ok(_) => Err(Error::Unsupported { table: log.table.clone(), what: "files in another store".to_owned() }),
            Err(_) => Path::parse(format!("{}/{path}", log.root)).map_err(refused),
        }
    }

    fn partition_constants(&self) -> Result<Vec<(String, ScalarValue)>> {
        let mut constants = Vec::new();
        for (name, value) in &self.partition_values {
            let Ok(field) = self.schema.field_with_name(name) else { continue };
            constants.push((name.clone(), partition::value_of(&self.log.table, name, value.as_deref(), field.data_type())?));
        }
        Ok(constants)
    }

    pub(crate) fn failed(&self, error: ParquetError) -> Error {
        let Self { log, path, .. } = self;
        let action = format!("reading {path} of {}", log.table);
        match error {
            ParquetError::External(source) => match source.downcast::<object_store::Error>() {
                Ok(missing) if matches!(*missing, object_store::Error::NotFound { .. }) => {
                    log.unreadable(format!("file {path} is named by the log but not in the store"))
                }
                Ok(source) => Error::store(action, *source),
                Err(source) => Error::Delta { table: log.table.clone(), source },
            },
            other => log.unreadable(format!("file {path}: {other}")),
        }
    }
}

/// Rows of a file, those marked as deleted counted in.
pub(crate) fn row_count(metadata: &ArrowReaderMetadata) -> usize {
    usize::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or_default()
}

fn is_wanted(wanted: &Schema, field: &Field) -> bool {
    wanted.fields().iter().any(|wanted| wanted.name().eq_ignore_ascii_case(field.name()))
}

/// Columns and constants in the order of `schema`.
fn with_constants(batch: &RecordBatch, schema: &SchemaRef, constants: &[(String, ScalarValue)]) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        columns.push(match constants.iter().find(|(name, _)| name == field.name()) {
            Some((_, value)) => value.to_array_of_size(rows)?,
            None => Arc::clone(batch.column(batch.schema().index_of(field.name())?)),
        });
    }
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &RecordBatchOptions::new().with_row_count(Some(rows)))?)
}

/// Positions as runs of rows to read and to skip.
pub(crate) fn selection(rows: &RoaringTreemap, total: usize, chosen: bool) -> RowSelection {
    let mut selectors = Vec::new();
    let mut at = 0;
    let mut run = |length: usize, is_row: bool| {
        if length > 0 {
            selectors.push(if is_row == chosen { RowSelector::select(length) } else { RowSelector::skip(length) });
        }
    };
    let mut positions = rows.iter().map_while(|row| usize::try_from(row).ok()).take_while(|row| *row < total).peekable();
    while let Some(first) = positions.next() {
        let mut end = first + 1;
        while positions.next_if_eq(&end).is_some() {
            end += 1;
        }
        run(first - at, false);
        run(end - first, true);
        at = end;
    }
    run(total - at, false);
    RowSelection::from(selectors)
}

/// Spark's legacy 96-bit times read as nanoseconds, in which most years do not fit: read them as microseconds, UTC.
fn in_microseconds(metadata: ArrowReaderMetadata) -> Result<ArrowReaderMetadata, ParquetError> {
    let is_legacy = |field: &Field| matches!(field.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
    if !metadata.schema().fields().iter().any(|field| is_legacy(field) || field.data_type().is_nested()) {
        return Ok(metadata);
    }
    let fields: Vec<Field> = metadata.schema().fields().iter().map(|field| field_in_microseconds(field)).collect();
    let schema = Arc::new(Schema::new(fields));
    if schema.fields() == metadata.schema().fields() {
        return Ok(metadata);
    }
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), ArrowReaderOptions::new().with_schema(schema))
}

fn field_in_microseconds(field: &Field) -> Field {
    let inner = |field: &Arc<Field>| Arc::new(field_in_microseconds(field));
    let data_type = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::List(element) => DataType::List(inner(element)),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_become_runs() {
        let rows: RoaringTreemap = [0, 1, 5, 9].into_iter().collect();
        let runs = |chosen| selection(&rows, 10, chosen).iter().map(|run| (run.skip, run.row_count)).collect::<Vec<_>>();
        assert_eq!(runs(true), [(false, 2), (true, 3), (false, 1), (true, 3), (false, 1)]);
        assert_eq!(runs(false), [(true, 2), (false, 3), (true, 1), (false, 3), (true, 1)]);
        assert_eq!(selection(&RoaringTreemap::new(), 3, true).row_count(), 0);
        assert_eq!(selection(&RoaringTreemap::new(), 3, false).row_count(), 3);
        let beyond: RoaringTreemap = [7].into_iter().collect();
        assert_eq!(selection(&beyond, 3, false).row_count(), 3);
    }
}
