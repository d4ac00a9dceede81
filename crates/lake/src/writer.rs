//! Rows of a table on their way into data files and change-feed files.
//!
//! Both writers stream: what [`DataWriter::finish`] and [`ChangeWriter::finish`] return is complete in the store, and visible
//! to nobody until a commit names it.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use object_store::memory::InMemory;

use tributary_specs::Column;

use crate::align;
use crate::constraints::Rules;
use crate::parquet_files::{Layout, Observer, PART_BYTES, ParquetFiles, Written};
use crate::partition::file_schema;
use crate::stats::{StatsCollector, StatsColumns};
use crate::{Arranged, ChangeFile, ChangeRows, Cube, Error, NewFile, Result, Table, TableLayout};

const MIB: u64 = 1 << 20;

/// Rows of a row group: small enough that statistics of one skip most of a file, large enough to compress.
const ROW_GROUP_ROWS: usize = 256 * 1024;

/// The part of the lake's memory that a row group may take, which is held until it ends; the rest is for those of writers beside it and
/// for what the rows come from.
const ROW_GROUP_PART: usize = 16;

/// A row group may have so many bytes whatever the memory: smaller ones cost more than they save.
const ROW_GROUP_BYTES_MIN: usize = 1 << 20;

/// The column of a change-feed file that says what happened to a row.
pub(crate) const CHANGE_TYPE: &str = "_change_type";

/// What the files of a writer look like.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// Bytes at which a file is closed and another begun; `None` takes `delta.targetFileSize` of the table, else
    /// [`file_bytes_target`] of nothing known.
    pub file_bytes_target: Option<u64>,
    /// Columns that are looked up by value (the keys): they get a Bloom filter, and statistics wherever they stand.
    pub key_columns: Vec<String>,
    /// Bytes of rows that may be encoded but not in the store yet, over all partitions; less where the lake's own limit is small.
    pub memory_limit: usize,
    /// All columns of the table after the commit that will name the files ([`crate::Commit::schema`]); `None` = those of the snapshot.
    pub columns: Option<Vec<Column>>,
    /// How the table lies after that commit ([`crate::Commit::layout`]); `None` = as the snapshot does.
    pub layout: Option<TableLayout>,
    /// What the footers of the files say beside: names and texts, for [`crate::KeySearch::says`].
    pub says: std::collections::BTreeMap<String, String>,
    /// The files are of this cube: whoever writes has sorted the rows along its curve.
    pub cube: Option<Cube>,
    /// The files are written to memory and forgotten, to learn how large they would be; no commit may name them.
    pub rehearses: bool,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            file_bytes_target: None,
            key_columns: Vec::new(),
            memory_limit: 128 << 20,
            columns: None,
            layout: None,
            says: Default::default(),
            cube: None,
            rehearses: false,
        }
    }
}

/// Bytes of a file of a table that has `table_bytes` in all: 32 MiB below 10 GiB, 64 MiB below 1 TiB, else 128 MiB.
pub const fn file_bytes_target(table_bytes: u64) -> u64 {
    if table_bytes < 10 << 30 {
        32 * MIB
    } else if table_bytes < 1 << 40 {
        64 * MIB
    } else {
        128 * MIB
    }
}

/// `delta.targetFileSize`: bytes, or with a unit as in `128mb`.
fn file_size_property(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

/// Writes rows of a table into data files. Rows keep the order they come in, within a partition.
#[derive(Debug)]
pub struct DataWriter {
    rules: Rules,
    files: ParquetFiles<StatsCollector>,
    cube: Option<Cube>,
}

impl Observer for StatsCollector {
    fn observe(&mut self, rows: &RecordBatch) -> Result<()> {
        self.update(rows)
    }
}

impl DataWriter {
    /// Takes in rows. Columns are found by name; absent ones take their default, their generated value or null.
    ///
    /// # Errors
    /// [`Error::Batch`] when the columns do not fit the table, [`Error::Constraint`] when a row breaks a rule of it; nothing of
    /// the batch is written then. Store errors.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = self.rules.apply(batch)?;
        self.files.write(&batch).await
    }

    /// Completes the files. Without rows there are none.
    ///
    /// # Errors
    /// Store errors.
    pub async fn finish(self) -> Result<Vec<NewFile>> {
        let (cube, written) = (self.cube, self.files.finish().await?);
        let new_file = |Written { path, partition_values, size, rows, full_at, observed }: Written<StatsCollector>| NewFile {
            path,
            partition_values,
            size,
            rows,
            stats: observed.json(),
            arranged: Arranged { cube: cube.clone(), full_at },
        };
        Ok(written.into_iter().map(new_file).collect())
    }

    /// Gives up what is not finished. Files that are complete already stay in the store, in no commit, until vacuum.
    ///
    /// # Errors
    /// Store errors.
    pub async fn abandon(self) -> Result<()> {
        self.files.abandon().await
    }
}

/// Writes change-feed files: rows of the table with a `_change_type` (`insert`, `update_preimage`, `update_postimage`, `delete`).
///
/// A commit with any change-feed file is read from those alone, so they must hold *every* change of the commit, inserts included.
#[derive(Debug)]
pub struct ChangeWriter {
    schema: SchemaRef,
    files: ParquetFiles<ChangeRows>,
    table: tributary_specs::TableName,
}

impl Observer for ChangeRows {
    fn observe(&mut self, rows: &RecordBatch) -> Result<()> {
        let types = rows.column(rows.schema().index_of(CHANGE_TYPE)?);
        for change in types.as_string::<i32>().iter().flatten() {
            match change {
                "insert" => self.insert += 1,
                "update_preimage" => self.update_preimage += 1,
                "update_postimage" => self.update_postimage += 1,
                _ => self.delete += 1,
            }
        }
        Ok(())
    }
}

impl ChangeWriter {
    /// Takes in changes. Columns are found by name, absent ones are null.
    ///
    /// # Errors
    /// [`Error::Batch`] when the columns do not fit the table or `_change_type` is absent, null or another word; store errors.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = align::columns(batch, &self.schema, align::Extra::Refuse).map_err(|misfit| misfit.of(&self.table))?;
        let arrays = self
            .schema
            .fields()
            .iter()
            .zip(columns)
            .map(|(field, column)| column.unwrap_or_else(|| arrow::array::new_null_array(field.data_type(), batch.num_rows())));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect())?;
        let types = batch.column(self.schema.index_of(CHANGE_TYPE)?).as_string::<i32>();
        if let Some(row) = unknown_change(types) {
            let reason = format!("column `{CHANGE_TYPE}` names no change at row {row} of the batch");
            return Err(Error::Batch { table: self.table.clone(), reason });
        }
        self.files.write(&batch).await
    }

    /// Takes in the rows at these places of a batch, as ones that one of the four changes happened to.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_rows(&mut self, rows: &RecordBatch, at: &[u32], change: &str) -> Result<()> {
        let rows = take_record_batch(rows, &UInt32Array::from(at.to_vec()))?;
        let mut fields = as_nullable(&rows.schema());
        fields.push(Field::new(CHANGE_TYPE, DataType::Utf8, true));
        let mut columns = rows.columns().to_vec();
        columns.push(Arc::new(StringArray::from(vec![change; rows.num_rows()])));
        self.write(&RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?).await
    }

    /// Completes the files. Without rows there are none.
    ///
    /// # Errors
    /// Store errors.
    pub async fn finish(self) -> Result<Vec<ChangeFile>> {
        let written = self.files.finish().await?;
        let change_file = |Written { path, partition_values, size, observed, .. }: Written<ChangeRows>| ChangeFile {
            path,
            partition_values,
            size,
            rows: observed,
        };
        Ok(written.into_iter().map(change_file).collect())
    }

    /// As [`DataWriter::abandon`].
    ///
    /// # Errors
    /// Store errors.
    pub async fn abandon(self) -> Result<()> {
        self.files.abandon().await
    }
}

fn as_nullable(schema: &Schema) -> Vec<Field> {
    schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect()
}

fn unknown_change(types: &StringArray) -> Option<usize> {
    let known = |change: &str| matches!(change, "insert" | "update_preimage" | "update_postimage" | "delete");
    (0..types.len()).find(|row| types.is_null(*row) || !known(types.value(*row)))
}

impl Table {
    /// Bytes of a file: `delta.targetFileSize` where the table has it, else [`file_bytes_target`] of the bytes of all its files.
    pub fn file_bytes_target(&self, table_bytes: u64) -> u64 {
        let said = self.properties().get("delta.targetFileSize").and_then(|text| file_size_property(text));
        said.unwrap_or_else(|| file_bytes_target(table_bytes))
    }

    /// A writer of data files that enforces this snapshot's schema, constraints, defaults and generated columns.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an identity column or a constraint that cannot be evaluated, by name.
    pub fn writer(&self, options: WriterOptions) -> Result<DataWriter> {
        let (schema, columns) = match &options.columns {
            Some(columns) => (Arc::new(Column::all_to_arrow(columns)), columns.as_slice()),
            None => (self.schema(), self.columns()),
        };
        let rules = Rules::new(self.name(), &schema, columns, self.checks(), self.lake().clock().now())?;
        let lies = options.layout.clone().unwrap_or_else(|| self.lies());
        let files = Arc::new(file_schema(&schema, &lies.partition_by));
        let mut always = options.key_columns.clone();
        always.extend(lies.cluster_by);
        let columns = StatsColumns::of(self.properties());
        let cube = options.cube.clone();
        let layout = self.layout(Arc::clone(&files), "", "part", options);
        Ok(DataWriter { rules, files: ParquetFiles::new(layout, move || StatsCollector::new(&files, &columns, &always)), cube })
    }

    /// A writer of change-feed files.
    pub fn change_writer(&self) -> ChangeWriter {
        self.change_writer_of(&self.schema())
    }

    /// A writer of change-feed files for a commit that adds columns: `columns` are all of the table after it, as in [`WriterOptions::columns`].
    pub fn change_writer_with(&self, columns: &[Column]) -> ChangeWriter {
        self.change_writer_of(&Column::all_to_arrow(columns))
    }

    fn change_writer_of(&self, schema: &Schema) -> ChangeWriter {
        let mut fields = as_nullable(schema);
        fields.push(Field::new(CHANGE_TYPE, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields));
        let files = Arc::new(file_schema(&schema, self.partition_columns()));
        let layout = self.layout(files, "_change_data/", "cdc", WriterOptions::default());
        ChangeWriter { schema, files: ParquetFiles::new(layout, ChangeRows::default), table: self.name().clone() }
    }

    fn layout(&self, schema: SchemaRef, folder: &'static str, file_prefix: &'static str, options: WriterOptions) -> Layout {
        let row_group_bytes = (self.lake().options().memory_limit / ROW_GROUP_PART).max(ROW_GROUP_BYTES_MIN);
        Layout {
            table: self.name().clone(),
            store: if options.rehearses { Arc::new(InMemory::new()) } else { Arc::clone(&self.log().store) },
            root: self.log().root.clone(),
            ids: Arc::clone(&self.lake().options().ids),
            folder,
            file_prefix,
            schema,
            partition_columns: options.layout.map_or_else(|| self.partition_columns().to_vec(), |lies| lies.partition_by),
            file_bytes_target: options.file_bytes_target.unwrap_or_else(|| self.file_bytes_target(0)),
            row_group_rows: ROW_GROUP_ROWS,
            row_group_bytes,
            memory_limit: options.memory_limit.min(PART_BYTES + 4 * row_group_bytes),
            key_columns: options.key_columns,
            says: options.says,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_file_grows_with_its_table() {
        assert_eq!([0, 11 << 30, 2 << 40].map(|bytes| file_bytes_target(bytes) / MIB), [32, 64, 128]);
        assert_eq!(file_size_property("128mb"), Some(128 * MIB));
        assert_eq!(file_size_property(" 1048576 "), Some(MIB));
        assert_eq!(file_size_property("0"), None);
        assert_eq!(file_size_property("big"), None);
    }

    #[test]
    fn a_change_type_is_one_of_four_words() {
        assert_eq!(unknown_change(&StringArray::from(vec!["insert", "delete", "update_preimage", "update_postimage"])), None);
        assert_eq!(unknown_change(&StringArray::from(vec![Some("insert"), None])), Some(1));
        assert_eq!(unknown_change(&StringArray::from(vec!["Insert"])), Some(0));
    }
}
