//! Rows on their way into Parquet files, one set of files a partition.
//!
//! Files stream to the store while they are written (multipart above one part), so that memory is bounded by the row
//! groups still open: when they hold more than the budget, the biggest file is closed and its partition starts another.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Fields, SchemaRef};
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use tributary_specs::TableName;

use crate::partition::{self, Part, PartitionValues};
use crate::{Error, Ids, Result};

/// Rows that are handed to the encoder at once; what a file may exceed its target by.
const SLICE_ROWS: usize = 16 * 1024;

/// One part of a multipart upload.
pub(crate) const PART_BYTES: usize = 8 << 20;

/// Where files go and what they look like.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub table: TableName,
    pub store: Arc<dyn ObjectStore>,
    /// The table's root in the store.
    pub root: Path,
    /// Below the root, empty or ending in a slash.
    pub folder: &'static str,
    pub file_prefix: &'static str,
    /// Columns of the files, partition columns left out.
    pub schema: SchemaRef,
    pub partition_columns: Vec<String>,
    pub file_bytes_target: u64,
    pub row_group_rows: usize,
    /// Bytes of a row group, which is in memory until it ends.
    pub row_group_bytes: usize,
    /// Bytes of rows that are encoded but not in the store yet, over all open files.
    pub memory_limit: usize,
    /// Columns by which rows are looked up: they have a Bloom filter.
    pub key_columns: Vec<String>,
    pub ids: Arc<dyn Ids>,
    /// Names and texts for the footers.
    pub says: BTreeMap<String, String>,
}

/// Sees the rows of one file go by.
pub(crate) trait Observer {
    fn observe(&mut self, rows: &RecordBatch) -> Result<()>;
}

/// A file that is complete in the store.
#[derive(Debug)]
pub(crate) struct Written<O> {
    /// Relative to the table's root, as the store names it.
    pub path: String,
    pub partition_values: PartitionValues,
    pub size: u64,
    pub rows: u64,
    /// The bytes that were aimed at, where they were reached.
    pub full_at: Option<u64>,
    pub observed: O,
}

/// Files being written.
pub(crate) struct ParquetFiles<O> {
    layout: Layout,
    properties: WriterProperties,
    new_observer: Box<dyn Fn() -> O + Send + Sync>,
    open: BTreeMap<PartitionValues, OpenFile<O>>,
    written: Vec<Written<O>>,
}

struct OpenFile<O> {
    path: String,
    writer: AsyncArrowWriter<BufWriter>,
    rows: u64,
    observed: O,
}

impl<O> fmt::Debug for ParquetFiles<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFiles")
            .field("table", &self.layout.table)
            .field("open", &self.open.len())
            .field("written", &self.written.len())
            .finish_non_exhaustive()
    }
}

impl<O: Observer> ParquetFiles<O> {
    pub(crate) fn new(layout: Layout, new_observer: impl Fn() -> O + Send + Sync + 'static) -> Self {
        let properties = properties(&layout);
        Self { layout, properties, new_observer: Box::new(new_observer), open: BTreeMap::new(), written: Vec::new() }
    }

    /// Takes in rows in the table's schema (partition columns included).
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for Part { values, rows } in partition::split(&self.layout.table, batch, &self.layout.partition_columns)? {
            let mut start = 0;
            while start < rows.num_rows() {
                let length = SLICE_ROWS.min(rows.num_rows() - start);
                self.write_slice(&values, &rows.slice(start, length)).await?;
                start += length;
            }
        }
        Ok(())
    }

    async fn write_slice(&mut self, values: &PartitionValues, rows: &RecordBatch) -> Result<()> {
        let mut file = match self.open.remove(values) {
            Some(file) => file,
            None => self.open_file(values)?,
        };
        file.observed.observe(rows)?;
        file.writer.write(rows).await.map_err(|error| self.failed(&file.path, error))?;
        file.rows += rows.num_rows() as u64;
        let bytes = (file.writer.bytes_written() + file.writer.in_progress_size()) as u64;
        if bytes >= self.layout.file_bytes_target {
            return self.close(values.clone(), file, Some(self.layout.file_bytes_target)).await;
        }
        self.open.insert(values.clone(), file);
        self.stay_within_memory().await
    }

    async fn stay_within_memory(&mut self) -> Result<()> {
        loop {
            let held: usize = self.open.values().map(held_bytes).sum();
            if held <= self.layout.memory_limit || self.open.is_empty() {
                return Ok(());
            }
            let biggest = self.open.iter().max_by_key(|(_, file)| held_bytes(file)).map(|(values, _)| values.clone());
            let Some(values) = biggest else { return Ok(()) };
            if let Some(file) = self.open.remove(&values) {
                self.close(values, file, None).await?;
            }
        }
    }

    fn open_file(&self, values: &PartitionValues) -> Result<OpenFile<O>> {
        let Layout { folder, file_prefix, partition_columns, store, root, schema, .. } = &self.layout;
        let path = format!("{folder}{}{file_prefix}-{}.zstd.parquet", partition::folder(partition_columns, values), self.layout.ids.next());
        let place = Path::parse(format!("{root}/{path}"))
            .map_err(|error| Error::Store { action: format!("naming {path}"), source: error.into() })?;
        let upload = BufWriter::with_capacity(Arc::clone(store), place, PART_BYTES);
        let options = ArrowWriterOptions::new().with_properties(self.properties.clone()).with_skip_arrow_metadata(true);
        let writer =
            AsyncArrowWriter::try_new_with_options(upload, Arc::clone(schema), options).map_err(|error| self.failed(&path, error))?;
        Ok(OpenFile { path, writer, rows: 0, observed: (self.new_observer)() })
    }

    async fn close(&mut self, partition_values: PartitionValues, mut file: OpenFile<O>, full_at: Option<u64>) -> Result<()> {
        file.writer.finish().await.map_err(|error| self.failed(&file.path, error))?;
        let size = file.writer.bytes_written() as u64;
        self.written.push(Written { path: file.path, partition_values, size, rows: file.rows, full_at, observed: file.observed });
        Ok(())
    }

    /// Completes every file; in the order in which they were completed.
    pub(crate) async fn finish(mut self) -> Result<Vec<Written<O>>> {
        while let Some((values, file)) = self.open.pop_first() {
            self.close(values, file, None).await?;
        }
        Ok(self.written)
    }

    /// Gives up: uploads that are not complete are cancelled; what is complete is in no commit and falls to vacuum.
    pub(crate) async fn abandon(self) -> Result<()> {
        for (_, file) in self.open {
            let action = format!("cancelling the upload of {}", file.path);
            file.writer.into_inner().abort().await.map_err(|source| Error::store(action, source))?;
        }
        Ok(())
    }

    fn failed(&self, path: &str, error: ParquetError) -> Error {
        let action = format!("writing {path} of table {}", self.layout.table);
        match error {
            ParquetError::External(source) => Error::store(action, store_error(source)),
            other => Error::store(action, object_store::Error::Generic { store: "parquet", source: Box::new(other) }),
        }
    }
}

/// The store's own error out of what the upload wraps it in.
fn store_error(error: Box<dyn std::error::Error + Send + Sync>) -> object_store::Error {
    let upload = |source| object_store::Error::Generic { store: "upload", source };
    let error = match error.downcast::<object_store::Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast::<std::io::Error>() {
        Ok(error) => error.downcast::<object_store::Error>().unwrap_or_else(|error| upload(Box::new(error))),
        Err(error) => upload(error),
    }
}

/// Encoded rows and the part of the upload that is not full yet.
fn held_bytes<O>(file: &OpenFile<O>) -> usize {
    file.writer.memory_size() + file.writer.bytes_written().min(PART_BYTES)
}

fn properties(layout: &Layout) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("tributary version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_max_row_group_row_count(Some(layout.row_group_rows))
        .set_max_row_group_bytes(Some(layout.row_group_bytes));
    // Parquet's bounds pass over NaN, which SQL sorts above every number: readers that trust them lose such rows.
    for column in float_columns(layout.schema.fields(), &[]) {
        properties = properties.set_column_statistics_enabled(column, EnabledStatistics::None);
    }
    for name in &layout.key_columns {
        let Ok(field) = layout.schema.field_with_name(name) else { continue };
        let column = ColumnPath::new(vec![name.clone()]);
        if field.data_type().is_integer() || field.data_type().is_temporal() {
            // Most keys are there once: a dictionary of them is as long as they are, and differences are read several times faster.
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if !field.data_type().is_nested() {
            // Sized for a full row group, then folded to the values that came.
            properties = properties
                .set_column_bloom_filter_max_ndv(column.clone(), layout.row_group_rows as u64)
                .set_column_bloom_filter_fpp(column, 0.01);
        }
    }
    let says = layout.says.iter().map(|(name, text)| KeyValue::new(name.clone(), text.clone()));
    properties.set_key_value_metadata(Some(says.collect::<Vec<_>>()).filter(|says| !says.is_empty())).build()
}

/// The paths of floating-point columns outside of arrays and maps, whose values nobody skips by.
fn float_columns(fields: &Fields, below: &[String]) -> Vec<ColumnPath> {
    let path = |name: &String| below.iter().chain([name]).cloned().collect::<Vec<_>>();
    let columns = fields.iter().flat_map(|field| match field.data_type() {
        DataType::Float32 | DataType::Float64 => vec![ColumnPath::new(path(field.name()))],
        DataType::Struct(inner) => float_columns(inner, &path(field.name())),
        _ => Vec::new(),
    });
    columns.collect()
}
