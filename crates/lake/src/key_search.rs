//! Rows looked for by their keys, with the least reading.
//!
//! ```text
//! files ─ statistics of the log ─▶ footers ─ bounds of row groups and pages, Bloom filters ─▶ key columns ─▶ positions ─▶ whole rows
//! ```
//!
//! Footers are read once, files side by side.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use crate::conflict::may_hold;
use crate::open_file::OpenFile;
use crate::{DataFile, Error, KeySet, Result, Table, read_files};

/// Footers kept, with their page indexes; of a wide table one comes to some tens of kilobytes.
const FOOTERS_MAX: usize = 1024;

/// Says which rows are looked for.
pub trait KeyProbe: Debug + Send + Sync {
    /// The key columns, by name.
    fn columns(&self) -> &[String];
    /// Which rows of a batch of the key columns are wanted, ascending.
    ///
    /// # Errors
    /// When the columns cannot be compared with the keys.
    fn hits(&self, keys: &RecordBatch) -> Result<Vec<u32>, ArrowError>;
    /// The keys, where they are known one by one: what can hold none of them is not read.
    fn keys(&self) -> Option<&KeySet>;
}

/// The files of a snapshot, for looking into them again and again.
#[derive(Debug)]
pub struct KeySearch {
    table: Table,
    files: Vec<DataFile>,
    open: Mutex<BTreeMap<usize, OpenFile>>,
    at_once: usize,
    read: Arc<AtomicU64>,
}

/// Rows that were found.
#[derive(Debug, Clone)]
pub struct Found {
    /// With the columns that were asked for, else every one of the table.
    pub rows: RecordBatch,
    /// Where each is: number of its file, position in the file from zero, rows marked as deleted counted in.
    pub places: Vec<(usize, u64)>,
}

/// What a file had.
type OfFile = (usize, Vec<u64>, Vec<RecordBatch>);

impl KeySearch {
    /// Over files of a snapshot.
    pub fn new(table: &Table, files: Vec<DataFile>) -> Self {
        Self::counting(table, files, Arc::default())
    }

    /// The same, whose bytes fetched are added to `read`.
    pub(crate) fn counting(table: &Table, files: Vec<DataFile>, read: Arc<AtomicU64>) -> Self {
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        Self { table: table.clone(), files, open: Mutex::default(), at_once, read }
    }

    /// The files, by number.
    pub fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// The snapshot they are of.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The live rows that are wanted, of the files with these numbers, in their order.
    ///
    /// # Errors
    /// Store errors.
    pub async fn find(&self, files: impl IntoIterator<Item = usize>, probe: &Arc<dyn KeyProbe>) -> Result<Found> {
        self.find_columns(files, probe, &self.table.schema()).await
    }

    /// As [`Self::find`], with the columns of `schema` alone, which are of the table.
    ///
    /// # Errors
    /// Store errors.
    pub async fn find_columns(
        &self,
        files: impl IntoIterator<Item = usize>,
        probe: &Arc<dyn KeyProbe>,
        schema: &SchemaRef,
    ) -> Result<Found> {
        let may = |file: &usize| probe.keys().is_none_or(|keys| !keys.is_empty() && may_hold(keys.ranges(), &self.files[*file].stats));
        let search = |file: usize| {
            let (probe, schema) = (Arc::clone(probe), Arc::clone(schema));
            self.side_by_side(file, move |open| async move {
                let positions = open.find(probe.as_ref()).await?;
                let rows = if positions.is_empty() { Vec::new() } else { open.rows_at(&positions, &schema)?.try_collect().await? };
                Ok((file, positions, rows))
            })
        };
        let found = stream::iter(files.into_iter().filter(may)).map(search).buffered(self.at_once).try_collect().await?;
        self.joined(found, schema)
    }

    /// The rows at `places`, ascending, with the columns of `schema` alone, which are of the table.
    ///
    /// # Errors
    /// Store errors.
    pub async fn rows_at(&self, places: &[(usize, u64)], schema: &SchemaRef) -> Result<RecordBatch> {
        let of_files = places.chunk_by(|(file, _), (other, _)| file == other);
        let read = |places: &[(usize, u64)]| {
            let (file, schema) = (places[0].0, Arc::clone(schema));
            let positions: Vec<u64> = places.iter().map(|(_, row)| *row).collect();
            self.side_by_side(file, move |open| async move {
                let rows = open.rows_at(&positions, &schema)?.try_collect().await?;
                Ok((file, positions, rows))
            })
        };
        let found = stream::iter(of_files).map(read).buffered(self.at_once).try_collect().await?;
        Ok(self.joined(found, schema)?.rows)
    }

    /// Bytes that a column has in the files looked into so far, compressed.
    pub fn column_bytes(&self, name: &str) -> u64 {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().map(|file| file.column_bytes(name)).sum()
    }

    /// Whether the footer of a file that was looked into says a text under a name ([`crate::WriterOptions::says`]).
    pub fn says(&self, file: usize, name: &str, text: &str) -> bool {
        self.known(file).is_some_and(|open| open.says(name, text))
    }

    /// Every live row of the files with these numbers, in their order.
    ///
    /// # Errors
    /// Store errors.
    pub async fn all(&self, files: impl IntoIterator<Item = usize>) -> Result<Found> {
        let mut found = Vec::new();
        for file in files {
            let open = self.open(file).await?;
            let rows = open.rows_but(&[])?.try_collect().await?;
            found.push((file, open.live_but(&[]).into_iter().collect(), rows));
        }
        self.joined(found, &self.table.schema())
    }

    /// The live rows of a file, with the columns of `schema` alone, which are of the table.
    ///
    /// # Errors
    /// Store errors, also while the stream is read.
    pub(crate) async fn whole(&self, file: usize, schema: &SchemaRef) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let open = self.open(file).await?;
        open.rows_at(&open.live_but(&[]).into_iter().collect::<Vec<_>>(), schema)
    }

    /// The live rows of a file but those at these positions, in file order.
    ///
    /// # Errors
    /// Store errors, also while the stream is read.
    pub async fn rows_but(&self, file: usize, gone: &[u64]) -> Result<SendableRecordBatchStream> {
        let open = self.open(file).await?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(open.schema(), open.rows_but(gone)?.map_err(read_files::external))))
    }

    /// Looks into a file on a core of its own.
    async fn side_by_side<F: Future<Output = Result<OfFile>> + Send>(
        &self,
        file: usize,
        look: impl FnOnce(OpenFile) -> F + Send + 'static,
    ) -> Result<OfFile> {
        let (known, table, data_file, read) = (self.known(file), self.table.clone(), self.files[file].clone(), Arc::clone(&self.read));
        let task = SpawnedTask::spawn(async move {
            let open = match known {
                Some(open) => open,
                None => OpenFile::new(&table, &data_file, read).await?,
            };
            Ok::<_, Error>((open.clone(), look(open).await?))
        });
        let (open, of_file) = task.await.map_err(|error| self.table.log().unreadable(error.to_string()))??;
        self.keep(file, open);
        Ok(of_file)
    }

    fn joined(&self, found: Vec<OfFile>, schema: &SchemaRef) -> Result<Found> {
        let rows = concat_batches(schema, found.iter().flat_map(|(_, _, rows)| rows))?;
        let places: Vec<(usize, u64)> =
            found.iter().flat_map(|(file, positions, _)| positions.iter().map(move |row| (*file, *row))).collect();
        match rows.num_rows() == places.len() {
            true => Ok(Found { rows, places }),
            false => Err(self.table.log().unreadable(format!("{} rows were read where {} are", rows.num_rows(), places.len()))),
        }
    }

    async fn open(&self, file: usize) -> Result<OpenFile> {
        if let Some(open) = self.known(file) {
            return Ok(open);
        }
        let open = OpenFile::new(&self.table, &self.files[file], Arc::clone(&self.read)).await?;
        self.keep(file, open.clone());
        Ok(open)
    }

    fn known(&self, file: usize) -> Option<OpenFile> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&file).cloned()
    }

    fn keep(&self, file: usize, open: OpenFile) {
        let mut known = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < FOOTERS_MAX {
            known.insert(file, open);
        }
    }
}
