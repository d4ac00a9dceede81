//! A lake in memory, and what tests do to its tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use futures::TryStreamExt;
use tributary_lake::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use tributary_lake::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{
    Commit, CommitOutcome, DELETION_VECTORS_ON, Lake, LakeOptions, ManualClock, Operation, Progress, ReadOptions, Reads, RowMarks, Stores,
    Table, WriterOptions,
};
use tributary_maintenance::{Options, Report, Task, maintain};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::Controls;
use url::Url;

pub const APP: &str = "tributary:source:bronze.orders";
pub const DOMAIN: &str = "tributary.ledger";

pub fn store() -> Arc<InMemory> {
    Arc::new(InMemory::new())
}

/// A lake with fresh process state over a store, on a clock of its own: `minute` minutes after ten.
pub fn lake_at(store: Arc<dyn ObjectStore>, minute: i64, controls: Controls) -> Lake {
    let ten = chrono::DateTime::from_timestamp(1_769_940_000, 0).unwrap();
    let clock = ManualClock::new(ten + chrono::TimeDelta::minutes(minute));
    let options = LakeOptions { clock: Arc::new(clock), controls, ..LakeOptions::default() };
    Lake::open(Stores::wrap(store, Url::parse("memory:///lake/").unwrap()), options).unwrap()
}

pub fn lake(store: Arc<dyn ObjectStore>) -> Lake {
    lake_at(store, 0, Controls::none())
}

pub fn name() -> TableName {
    TableName::new("silver", "orders")
}

/// Numbers, a text, and where asked partition or clustering columns.
pub fn spec(partition_by: &[&str], cluster_by: &[&str]) -> TableSpec {
    let columns = vec![Column::new("id", DataType::Long), Column::new("x", DataType::Long), Column::new("note", DataType::String)];
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    TableSpec {
        row_changes: true,
        partition_by: names(partition_by),
        cluster_by: names(cluster_by),
        properties: BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "true".to_owned())]),
        ..TableSpec::new(name(), columns)
    }
}

/// A row a number: `x` is null for odd ones, else scattered.
pub fn rows(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let x: Int64Array = ids.iter().map(|id| (id % 2 == 0).then_some(id * 7919 % 1009)).collect();
    let notes: StringArray = ids.iter().map(|id| Some(format!("note {}", id % 3))).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(ids)) as ArrayRef, true),
        ("x", Arc::new(x) as ArrayRef, true),
        ("note", Arc::new(notes) as ArrayRef, true),
    ])
    .unwrap()
}

pub async fn open(lake: &Lake) -> Result<Table> {
    Ok(lake.table(&name()).await?.expect("the table is there"))
}

/// One file of these rows, looked up by `id`, with a position and a domain in the commit.
pub async fn append(lake: &Lake, ids: impl IntoIterator<Item = i64>) -> Result<()> {
    let table = open(lake).await?;
    let mut writer = table.writer(WriterOptions { key_columns: vec!["id".to_owned()], ..WriterOptions::default() })?;
    writer.write(&rows(ids)).await?;
    let expected = table.progress(APP).await?;
    let progress = vec![Progress { app_id: APP.to_owned(), expected, version: expected.unwrap_or_default() + 1 }];
    let domains = BTreeMap::from([(DOMAIN.to_owned(), Some(format!("{{\"at\":{}}}", table.version())))]);
    committed(&table, Commit { adds: writer.finish().await?, progress, domains, ..Commit::default() }).await
}

/// Marks as deleted the rows with these places in the file with this number, counted by their least numbers.
pub async fn mark(lake: &Lake, file: usize, places: &[u64]) -> Result<()> {
    let table = open(lake).await?;
    let mut files = table.files().await?;
    files.sort_by(|one, other| one.stats.columns["id"].min.partial_cmp(&other.stats.columns["id"].min).unwrap());
    let marks = vec![RowMarks { file: files[file].clone(), rows: places.to_vec() }];
    committed(&table, Commit { operation: Operation::Delete, marks, reads: Reads::Files, ..Commit::default() }).await
}

pub async fn committed(table: &Table, commit: Commit) -> Result<()> {
    match table.commit(commit).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        lost => bail!("{lost:?}"),
    }
}

/// Every row as a text, sorted; positions; domains: what maintenance must not change.
#[derive(Debug, PartialEq, Eq)]
pub struct Content {
    pub rows: Vec<String>,
    pub position: Option<i64>,
    pub domain: Option<String>,
}

pub async fn content(lake: &Lake) -> Result<Content> {
    let table = open(lake).await?;
    let batches: Vec<RecordBatch> = table.read(ReadOptions::default()).await?.try_collect().await?;
    Ok(Content { rows: texts(&batches), position: table.progress(APP).await?, domain: table.domain(DOMAIN).await? })
}

pub fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let mut texts = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        texts.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" | ")),
        );
    }
    texts.sort_unstable();
    texts
}

/// Without a minute's wait for others.
pub fn at_once() -> Options {
    Options { yield_to: std::time::Duration::ZERO, ..Options::default() }
}

pub async fn done(lake: &Lake, task: &Task, options: &Options) -> Result<Report> {
    let mut report = maintain(lake, &[name()], task, options, &|_| {}).await;
    match report.tables[0].error.take() {
        Some(error) => Err(error.into()),
        None => Ok(report),
    }
}

/// The numbers of one file, in its order.
pub async fn ids_of(table: &Table, file: &tributary_lake::DataFile) -> Result<Vec<i64>> {
    let batches: Vec<RecordBatch> = table.read_file(file, Some(&["id".to_owned()])).await?.try_collect().await?;
    Ok(batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<tributary_lake::arrow::datatypes::Int64Type>().values().to_vec())
        .collect())
}
