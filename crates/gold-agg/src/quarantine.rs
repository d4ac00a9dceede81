//! Rows of a view that fail a `quarantine` rule: table `quarantine.<table>`.
//!
//! A view is made anew by each refresh, so its quarantine is too: it holds the rows that the rules keep out of the view as it
//! is. It commits before the view, with the same positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{
    ArrayRef, Int64Builder, MapBuilder, MapFieldNames, RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{Commit, CommitOutcome, DataWriter, Lake, NewFile, Operation, Progress, Reads, Table, WriterOptions};
use tributary_specs::{Column, DataType, GoldSpec, TableName, TableSpec};

use crate::rules::Sifted;
use crate::{Error, Result};

/// The quarantine of one refresh: its table is made when the first row comes.
pub(crate) struct Quarantine<'a> {
    lake: &'a Lake,
    spec: &'a GoldSpec,
    name: TableName,
    /// Columns of the view's rows.
    row: Vec<Column>,
    /// What is the same in every row.
    stamp: Stamp,
    table: Option<Table>,
    writer: Option<DataWriter>,
    pub rows: u64,
}

/// What leads from a quarantined row to where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub run_id: String,
    /// Microseconds since the epoch.
    pub now_us: i64,
    /// Versions of the inputs.
    pub source_versions: BTreeMap<String, i64>,
}

impl<'a> Quarantine<'a> {
    /// The quarantine of a view whose rows have these columns.
    pub async fn open(lake: &'a Lake, spec: &'a GoldSpec, row: Vec<Column>, stamp: Stamp) -> Result<Self> {
        let name = spec.quarantine_table();
        let table = if spec.may_quarantine() { lake.table(&name).await.map_err(Error::lake("opening", &name))? } else { None };
        Ok(Self { lake, spec, name, row, stamp, table, writer: None, rows: 0 })
    }

    /// Takes in rows.
    pub async fn write(&mut self, sifted: &Sifted) -> Result<()> {
        if sifted.quarantined.num_rows() == 0 {
            return Ok(());
        }
        let batch = self.batch(sifted).map_err(|error| Error::failed(&self.spec.table, error.into()))?;
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.begin().await?,
        };
        let written = writer.write(&batch).await.map_err(Error::lake("writing", &self.name));
        self.writer = Some(writer);
        self.rows += batch.num_rows() as u64;
        written
    }

    async fn begin(&mut self) -> Result<DataWriter> {
        let declaration = TableSpec {
            comment: Some(format!("rows that the rules keep out of {}", self.spec.table)),
            ..TableSpec::new(self.name.clone(), self.columns())
        };
        let table = self.lake.create(&declaration).await.map_err(Error::lake("creating", &self.name))?;
        let writer = table.writer(WriterOptions::default()).map_err(Error::lake("writing", &self.name))?;
        self.table = Some(table);
        Ok(writer)
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::new("row", DataType::Struct(self.row.clone())),
            Column::new("rule", DataType::String),
            Column::new("run", DataType::String),
            Column::new("source_versions", DataType::Map(Box::new(DataType::String), Box::new(DataType::Long))),
            Column::new("quarantined_at", DataType::Timestamp),
        ]
    }

    fn batch(&self, sifted: &Sifted) -> Result<RecordBatch, ArrowError> {
        let rows = sifted.quarantined.num_rows();
        let fields = self.row.iter().map(Column::to_arrow).collect();
        let row = StructArray::try_new(fields, sifted.quarantined.columns().to_vec(), None)?;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(row),
            Arc::new(sifted.rules.clone()),
            Arc::new(StringArray::from(vec![self.stamp.run_id.as_str(); rows])),
            self.source_versions(rows)?,
            Arc::new(TimestampMicrosecondArray::from(vec![self.stamp.now_us; rows]).with_timezone("UTC")),
        ];
        RecordBatch::try_new(Arc::new(Column::all_to_arrow(&self.columns())), arrays)
    }

    fn source_versions(&self, rows: usize) -> Result<ArrayRef, ArrowError> {
        let names = MapFieldNames { entry: "key_value".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
        let mut map = MapBuilder::new(Some(names), StringBuilder::new(), Int64Builder::new());
        for _ in 0..rows {
            for (source, version) in &self.stamp.source_versions {
                map.keys().append_value(source);
                map.values().append_value(*version);
            }
            map.append(true)?;
        }
        Ok(Arc::new(map.finish()))
    }

    /// Completes the files.
    pub async fn finish(&mut self) -> Result<Vec<NewFile>> {
        match self.writer.take() {
            Some(writer) => writer.finish().await.map_err(Error::lake("writing", &self.name)),
            None => Ok(Vec::new()),
        }
    }

    /// Gives up what is not finished.
    pub async fn abandon(&mut self) {
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.abandon().await
        {
            tracing::debug!(table = %self.name, %error, "an unfinished file of the quarantine stays until vacuum");
        }
    }

    /// Replaces the rows of the quarantine; none where it has none and gets none.
    pub async fn commit(self, adds: Vec<NewFile>, positions: &[(String, i64)]) -> Result<Option<CommitOutcome>> {
        let Self { table: Some(table), name, .. } = self else { return Ok(None) };
        let acted = |action| Error::lake(action, &name);
        let removes = table.files().await.map_err(acted("reading"))?;
        if adds.is_empty() && removes.is_empty() {
            return Ok(None);
        }
        let mut progress = Vec::new();
        for (app_id, version) in positions {
            let expected = table.progress(app_id).await.map_err(acted("reading"))?;
            progress.push(Progress { app_id: app_id.clone(), expected, version: *version });
        }
        // An input that was made again counts from zero once more.
        let rewinds = progress.iter().any(|progress| progress.expected.is_some_and(|expected| progress.version < expected));
        let commit =
            Commit { operation: Operation::Overwrite, adds, removes, progress, rewinds, reads: Reads::WholeTable, ..Commit::default() };
        table.commit(commit).await.map(Some).map_err(acted("committing to"))
    }
}
