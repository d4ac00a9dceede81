//! A toy that appends numbered batches of two rows to one table, its position in the commit: what bronze does, and nothing else.

use std::sync::Arc;

use anyhow::{Result, bail};
use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use chrono::{DateTime, TimeDelta};
use futures::TryStreamExt;
use object_store::ObjectStore;
use tributary_lake::{
    Commit, CommitOutcome, Lake, LakeOptions, ManualClock, NewFile, Progress, ReadOptions, SeededIds, Stores, Table, WriterOptions,
};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::Controls;
use url::Url;

pub const APP: &str = "tributary:kafka:toy:numbers:0";

/// A lake with fresh process state over a store.
pub fn lake_over(store: Arc<dyn ObjectStore>, controls: Controls) -> Lake {
    lake_with(store, LakeOptions { controls, ..LakeOptions::default() })
}

/// The same with options of the caller's; clock and ids are a test's own.
pub fn lake_with(store: Arc<dyn ObjectStore>, options: LakeOptions) -> Lake {
    let clock = ManualClock::new(DateTime::from_timestamp(1_769_940_000, 0).unwrap() + TimeDelta::milliseconds(7));
    let options = LakeOptions { clock: Arc::new(clock), ..options };
    Lake::open(Stores::wrap(store, Url::parse("memory:///lake/").unwrap()), options).unwrap()
}

/// A lake whose ids repeat in every run with the same seed.
pub fn lake_with_ids(store: Arc<dyn ObjectStore>, seed: u64) -> Lake {
    lake_with(store, LakeOptions { ids: Arc::new(SeededIds::new(seed)), ..LakeOptions::default() })
}

pub fn spec() -> TableSpec {
    TableSpec::new(TableName::new("bronze", "numbers"), vec![Column::new("n", DataType::Long), Column::new("batch", DataType::Long)])
}

pub fn numbers(rows: &[i64], batch: i64) -> RecordBatch {
    let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as _;
    RecordBatch::try_from_iter_with_nullable([("n", column(rows.to_vec()), true), ("batch", column(vec![batch; rows.len()]), true)])
        .unwrap()
}

pub async fn file_of(table: &Table, rows: &[i64], batch: i64) -> Result<Vec<NewFile>> {
    let mut writer = table.writer(WriterOptions::default())?;
    writer.write(&numbers(rows, batch)).await?;
    Ok(writer.finish().await?)
}

/// The numbers in the table, sorted.
pub async fn numbers_in(table: &Table) -> Result<Vec<i64>> {
    let batches: Vec<RecordBatch> =
        table.read(ReadOptions { columns: Some(vec!["n".to_owned()]), filter: None }).await?.try_collect().await?;
    let mut numbers: Vec<i64> = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

pub async fn open(lake: &Lake) -> Result<Table> {
    Ok(lake.table(&spec().name).await?.expect("the table is there"))
}

/// Appends batches until position `end`: the rows of batch `b` are `10 b` and `10 b + 1`.
pub async fn append_until(lake: &Lake, end: i64) -> Result<()> {
    let mut table = lake.create(&spec()).await?;
    loop {
        let position = table.progress(APP).await?;
        let next = position.unwrap_or(0);
        if next >= end {
            return Ok(());
        }
        let adds = file_of(&table, &[10 * next, 10 * next + 1], next).await?;
        let progress = vec![Progress { app_id: APP.to_owned(), expected: position, version: next + 1 }];
        match table.commit(Commit { adds, progress, ..Commit::default() }).await? {
            CommitOutcome::Committed { .. } | CommitOutcome::Fenced { .. } => table = table.refresh().await?,
            CommitOutcome::Conflicted(conflict) => bail!("a blind append conflicts: {conflict}"),
        }
    }
}

/// What `append_until` leaves.
pub fn expected(end: i64) -> Vec<i64> {
    (0..end).flat_map(|batch| [10 * batch, 10 * batch + 1]).collect()
}
