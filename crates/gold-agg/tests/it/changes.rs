//! Row-level changes of silver tables, as the silver layer commits them: marks or copies, new files, a change feed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use tributary_lake::arrow::compute::take_record_batch;
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::{Commit, CommitOutcome, KeySearch, Operation, Reads, TakenOut, Taker, WriterOptions};
use tributary_testkit::Frame;

use crate::world::World;

fn worded(rows: &RecordBatch, word: &str) -> Result<RecordBatch> {
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    fields.push(Field::new("_change_type", DataType::Utf8, true));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![word; rows.num_rows()])) as ArrayRef);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn without_amounts(rows: &RecordBatch) -> Result<RecordBatch> {
    let mut columns = rows.columns().to_vec();
    if let Ok(at) = rows.schema().index_of("amount") {
        columns[at] = Arc::new(Int64Array::from(vec![0; rows.num_rows()]));
    }
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}

/// What the change feed says of rows that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// What is true.
    Each,
    /// A control: another row in place of the first that goes.
    Another,
    /// A control: the rows, but of no amount.
    NoAmounts,
    /// A control: each of them, and files whose statistics say that no value in them is null.
    NoNulls,
}

/// Statistics of a file that count no null.
fn without_nulls(stats: &str) -> Result<String> {
    let mut stats: serde_json::Value = serde_json::from_str(stats)?;
    let counts = stats["nullCount"].as_object_mut().context("nulls are counted")?;
    counts.values_mut().for_each(|count| *count = 0.into());
    Ok(stats.to_string())
}

impl World {
    /// As [`Self::change_told`]; `misses` stands for [`Told::Another`].
    pub async fn change(&self, name: &str, gone: &BTreeSet<usize>, come: &Frame, misses: bool) -> Result<u64> {
        self.change_told(name, gone, come, if misses { Told::Another } else { Told::Each }).await
    }

    /// Takes the rows with these numbers (in file order, those beyond the last left out) and adds rows, in one commit.
    pub async fn change_told(&self, name: &str, gone: &BTreeSet<usize>, come: &Frame, told: Told) -> Result<u64> {
        let table = self.table(name).await?;
        let search = KeySearch::new(&table, table.files().await?);
        let found = search.all(0..search.files().len()).await?;
        let gone: Vec<u32> = gone.iter().filter(|row| **row < found.places.len()).map(|row| *row as u32).collect();
        let mut out = TakenOut::default();
        let options = WriterOptions::default();
        if !come.is_empty() {
            let mut writer = table.writer(options.clone())?;
            writer.write(come.batch()).await?;
            out.adds = writer.finish().await?;
        }
        if told == Told::NoNulls {
            for file in &mut out.adds {
                file.stats = without_nulls(&file.stats)?;
            }
        }
        let mut by_file: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for row in &gone {
            let (file, place) = found.places[*row as usize];
            by_file.entry(file).or_default().push(place);
        }
        let taker = Taker { search: &search, over: &table, vectors: true, options: &options };
        for (file, rows) in by_file {
            taker.take(file, rows, &mut out).await?;
        }
        let mut changes = Vec::new();
        if !gone.is_empty() {
            let mut feed = table.change_writer();
            let mut gone = gone;
            if told == Told::Another {
                gone[0] = (gone[0] + 1) % u32::try_from(found.places.len())?;
            }
            let gone = take_record_batch(&found.rows, &UInt32Array::from(gone))?;
            let gone = if told == Told::NoAmounts { without_amounts(&gone)? } else { gone };
            feed.write(&worded(&gone, "delete")?).await?;
            if !come.is_empty() {
                feed.write(&worded(come.batch(), "insert")?).await?;
            }
            changes = feed.finish().await?;
        }
        let TakenOut { adds, removes, marks } = out;
        if adds.is_empty() && removes.is_empty() && marks.is_empty() {
            return Ok(table.version());
        }
        let commit = Commit { operation: Operation::Merge, adds, removes, marks, changes, reads: Reads::WholeTable, ..Commit::default() };
        match table.commit(commit).await? {
            CommitOutcome::Committed { version } => Ok(version),
            other => anyhow::bail!("{other:?}"),
        }
    }
}
