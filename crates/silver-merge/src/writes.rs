//! The files of one commit: new rows, what stays of files that lose rows, and the change feed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use tributary_lake::arrow::compute::take_record_batch;
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{ChangeFile, ChangeWriter, DataFile, DataWriter, NewFile, Table, WriterOptions};

use crate::error::{Error, Result};
use crate::plan::MergePlan;
use crate::search::{Hits, copy_survivors};
use crate::target::Target;

/// Files on their way into a commit.
pub(crate) struct Writes<'a> {
    table: &'a Table,
    target: &'a Target,
    files: &'a [DataFile],
    rows: DataWriter,
    feed: ChangeWriter,
    gone: BTreeMap<usize, Vec<u32>>,
    /// Whether pure inserts may do without a change feed, because no slice follows.
    one_slice: bool,
    feeds_inserts: bool,
    /// What happened to rows of the table.
    pub changed: Changed,
}

/// Rows of the table by what happened to them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changed {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

/// Complete files.
pub(crate) struct Files {
    pub adds: Vec<NewFile>,
    pub removes: Vec<DataFile>,
    pub changes: Vec<ChangeFile>,
}

impl Files {
    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.adds.iter().map(|file| file.size).sum::<u64>() + self.changes.iter().map(|file| file.size).sum::<u64>()
    }
}

impl<'a> Writes<'a> {
    /// Writers over a snapshot and its files. `feeds_inserts` is what only a control turns off.
    ///
    /// # Errors
    /// When the table has a rule that cannot be enforced.
    pub fn new(
        table: &'a Table,
        target: &'a Target,
        files: &'a [DataFile],
        keys: &[String],
        one_slice: bool,
        feeds_inserts: bool,
    ) -> Result<Self> {
        let rows = table.writer(options(target, keys)).map_err(|source| Error::lake("write to", table.name(), source))?;
        let feed = table.change_writer_with(&target.columns);
        Ok(Self { table, target, files, rows, feed, gone: BTreeMap::new(), one_slice, feeds_inserts, changed: Changed::default() })
    }

    /// Takes in what is planned for a slice; `hits` are the visible rows it was planned on.
    ///
    /// # Errors
    /// When a row breaks a rule of the table; store errors.
    pub async fn apply(&mut self, plan: &MergePlan, hits: &Hits) -> Result<()> {
        let table = self.table.name();
        let kernel = |error| Error::kernel(table, error);
        let write = |source| Error::lake("write to", table, source);
        let rows = self.target.rows(&plan.rows).map_err(kernel)?;
        if rows.num_rows() > 0 {
            self.rows.write(&rows).await.map_err(write)?;
        }
        for old in plan.updated.iter().map(|(old, _)| *old).chain(plan.deleted.iter().copied()) {
            let (file, row) = hits.places[old as usize];
            self.gone.entry(file).or_default().push(row);
        }
        self.changed.inserted += plan.inserted.len() as u64;
        self.changed.updated += plan.updated.len() as u64;
        self.changed.deleted += plan.deleted.len() as u64;
        let (before, after): (Vec<u32>, Vec<u32>) = plan.updated.iter().copied().unzip();
        let mut changes =
            vec![(&hits.rows, before, "update_preimage"), (&rows, after, "update_postimage"), (&hits.rows, plan.deleted.clone(), "delete")];
        let rows_change = !plan.updated.is_empty() || !plan.deleted.is_empty();
        if self.feeds_inserts && (rows_change || !self.one_slice) {
            changes.push((&rows, plan.inserted.clone(), "insert"));
        }
        for (from, at, change) in changes.into_iter().filter(|(_, at, _)| !at.is_empty()) {
            let batch = change_rows(from, at, change).map_err(kernel)?;
            self.feed.write(&batch).await.map_err(write)?;
        }
        Ok(())
    }

    /// Writes what stays of files that lose rows, and completes everything.
    ///
    /// # Errors
    /// Store errors.
    pub async fn finish(self, keys: &[String]) -> Result<Files> {
        let table = self.table.name();
        let write = |source| Error::lake("write to", table, source);
        let mut adds = self.rows.finish().await.map_err(write)?;
        let mut removes = Vec::with_capacity(self.gone.len());
        for (file, mut gone) in self.gone {
            gone.sort_unstable();
            let file = &self.files[file];
            let mut writer = self.table.writer(options(self.target, keys)).map_err(write)?;
            copy_survivors(self.table, file, &gone, &mut writer).await?;
            adds.extend(writer.finish().await.map_err(write)?);
            removes.push(file.clone());
        }
        let written = self.feed.finish().await.map_err(write)?;
        let rows_change = self.changed.updated + self.changed.deleted > 0;
        Ok(Files { adds, removes, changes: if rows_change { written } else { Vec::new() } })
    }
}

fn options(target: &Target, keys: &[String]) -> WriterOptions {
    WriterOptions { key_columns: keys.to_vec(), columns: target.grows.then(|| target.columns.clone()), ..WriterOptions::default() }
}

fn change_rows(from: &RecordBatch, at: Vec<u32>, change: &str) -> Result<RecordBatch, ArrowError> {
    let rows = take_record_batch(from, &UInt32Array::from(at))?;
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    fields.push(Field::new("_change_type", DataType::Utf8, true));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![change; rows.num_rows()])) as ArrayRef);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
