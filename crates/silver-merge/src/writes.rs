//! The files of one commit: new rows, rows that go, and the change feed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use tributary_lake::arrow::compute::take_record_batch;
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::common::runtime::SpawnedTask;
use tributary_lake::{
    ChangeFile, ChangeWriter, DataFile, DataWriter, Found, KeySearch, NewFile, Result as LakeResult, RowMarks, Table, TakenOut, Taker,
    WriterOptions,
};

use crate::before_images::MADE_OF;
use crate::error::{Error, Result};
use crate::plan::MergePlan;
use crate::target::Target;

/// Rows of the change feed that are put together at once.
const FEED_ROWS: usize = 1 << 16;

/// Files on their way into a commit.
pub(crate) struct Writes<'a> {
    table: &'a Table,
    target: &'a Target,
    search: &'a KeySearch,
    options: WriterOptions,
    rows: DataWriter,
    /// None where the table has no change feed.
    feed: Option<ChangeWriter>,
    gone: BTreeMap<usize, Vec<u64>>,
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
    pub marks: Vec<RowMarks>,
    pub changes: Vec<ChangeFile>,
}

impl Files {
    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.adds.iter().map(|file| file.size).sum::<u64>() + self.changes.iter().map(|file| file.size).sum::<u64>()
    }
}

impl<'a> Writes<'a> {
    /// Writers over the snapshot that `search` looks into. `made_of` is what new rows are made of;
    /// `feeds_inserts` is what only a control turns off.
    ///
    /// # Errors
    /// When the table has a rule that cannot be enforced.
    pub fn new(
        search: &'a KeySearch,
        target: &'a Target,
        keys: &[String],
        made_of: Option<String>,
        one_slice: bool,
        feeds_inserts: bool,
    ) -> Result<Self> {
        let table = search.table();
        let columns = target.grows.then(|| target.columns.clone());
        let options = WriterOptions { key_columns: keys.to_vec(), columns, layout: target.lies.clone(), ..WriterOptions::default() };
        // New rows alone are known to be made so, and not in a batch before whose columns some of them may be.
        let says = made_of.filter(|_| !target.grows).map(|made_of| (MADE_OF.to_owned(), made_of));
        let of_new = WriterOptions { says: says.into_iter().collect(), ..options.clone() };
        let rows = table.writer(of_new).map_err(|source| Error::lake("write to", table.name(), source))?;
        // What is laid out anew is built anew, and readers of the feed find that in its files.
        let feed = (table.has_change_feed() && target.lies.is_none()).then(|| table.change_writer_with(&target.columns));
        let (gone, changed) = (BTreeMap::new(), Changed::default());
        Ok(Self { table, target, search, options, rows, feed, gone, one_slice, feeds_inserts, changed })
    }

    /// Whether what happens to rows goes into a change feed.
    pub fn has_feed(&self) -> bool {
        self.feed.is_some()
    }

    /// Takes in what is planned for a slice; `found` are the visible rows it was planned on.
    ///
    /// # Errors
    /// When a row breaks a rule of the table; store errors.
    pub async fn apply(&mut self, plan: &MergePlan, found: &Found) -> Result<()> {
        let table = self.table.name();
        let kernel = |error| Error::kernel(table, error);
        let write = |source| Error::lake("write to", table, source);
        let rows = self.target.rows(&plan.rows).map_err(kernel)?;
        let feed = self.feed_of(plan, found, &rows);
        if rows.num_rows() > 0 {
            self.rows.write(&rows).await.map_err(write)?;
        }
        for old in plan.updated.iter().map(|(old, _)| *old).chain(plan.deleted.iter().copied()) {
            let (file, row) = found.places[old as usize];
            self.gone.entry(file).or_default().push(row);
        }
        self.changed.inserted += plan.inserted.len() as u64;
        self.changed.updated += plan.updated.len() as u64;
        self.changed.deleted += plan.deleted.len() as u64;
        if let Some(feed) = feed {
            let written = feed.join().await.map_err(|error| kernel(ArrowError::ExternalError(Box::new(error))))?;
            self.feed = Some(written.map_err(write)?);
        }
        Ok(())
    }

    /// Writes the change feed of a slice beside its rows; the task gives the writer back.
    fn feed_of(&mut self, plan: &MergePlan, found: &Found, rows: &RecordBatch) -> Option<SpawnedTask<LakeResult<ChangeWriter>>> {
        let mut feed = self.feed.take()?;
        let (before, after): (Vec<u32>, Vec<u32>) = plan.updated.iter().copied().unzip();
        let rows_change = !plan.updated.is_empty() || !plan.deleted.is_empty();
        let told = self.feeds_inserts && (rows_change || !self.one_slice);
        let inserted = if told { plan.inserted.clone() } else { Vec::new() };
        let (old, new) = (found.rows.clone(), rows.clone());
        let changes = [
            (old.clone(), before, "update_preimage"),
            (new.clone(), after, "update_postimage"),
            (old, plan.deleted.clone(), "delete"),
            (new, inserted, "insert"),
        ];
        Some(SpawnedTask::spawn(async move {
            for (from, at, change) in changes {
                for at in at.chunks(FEED_ROWS) {
                    feed.write(&change_rows(&from, at, change)?).await?;
                }
            }
            Ok(feed)
        }))
    }

    /// Whether rows of the file with this number go.
    pub fn changes_file(&self, file: usize) -> bool {
        self.gone.contains_key(&file)
    }

    /// Takes out the rows that go, and completes everything.
    ///
    /// # Errors
    /// Store errors.
    pub async fn finish(self) -> Result<Files> {
        let table = self.table.name();
        let write = |source| Error::lake("write to", table, source);
        let adds = self.rows.finish().await.map_err(write)?;
        let mut out = TakenOut { adds, ..TakenOut::default() };
        let taker = Taker { search: self.search, over: self.table, vectors: self.target.vectors, options: &self.options };
        for (file, gone) in self.gone {
            taker.take(file, gone, &mut out).await.map_err(write)?;
        }
        let written = match self.feed {
            Some(feed) => feed.finish().await.map_err(write)?,
            None => Vec::new(),
        };
        let rows_change = self.changed.updated + self.changed.deleted > 0;
        let TakenOut { marks, removes, adds } = out;
        Ok(Files { adds, removes, marks, changes: if rows_change { written } else { Vec::new() } })
    }
}

fn change_rows(from: &RecordBatch, at: &[u32], change: &str) -> Result<RecordBatch, ArrowError> {
    let rows = take_record_batch(from, &UInt32Array::from(at.to_vec()))?;
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    fields.push(Field::new("_change_type", DataType::Utf8, true));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![change; rows.num_rows()])) as ArrayRef);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
