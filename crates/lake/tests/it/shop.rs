//! A small lake in memory for tests, and what they do to its tables.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{ArrayRef, RecordBatch};
use chrono::{DateTime, TimeDelta, Utc};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use deltalake::{DeltaTable, DeltaTableBuilder};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, ManualClock, NewFile, Stores, Table, WriterOptions};
use tributary_specs::{Column, TableName, TableSpec};
use url::Url;

pub struct Shop {
    pub lake: Lake,
    pub clock: Arc<ManualClock>,
    pub store: Arc<InMemory>,
}

/// 2026-02-01T10:00:00Z.
pub fn ten_o_clock() -> DateTime<Utc> {
    DateTime::from_timestamp(1_769_940_000, 0).unwrap()
}

impl Shop {
    pub fn open() -> Self {
        Self::under(LakeOptions::default().memory_limit)
    }

    /// With so many bytes of memory.
    pub fn under(memory_limit: usize) -> Self {
        let store = Arc::new(InMemory::new());
        let clock = Arc::new(ManualClock::new(ten_o_clock()));
        let stores = Stores::wrap(Arc::clone(&store) as Arc<dyn ObjectStore>, Url::parse("memory:///lake/").unwrap());
        let options = LakeOptions { clock: Arc::clone(&clock) as _, memory_limit, ..LakeOptions::default() };
        Self { lake: Lake::open(stores, options).unwrap(), clock, store }
    }

    /// A table of rows that may change.
    pub async fn table(&self, name: &str, columns: Vec<Column>, partition_by: &[&str]) -> Result<Table> {
        let mut spec = TableSpec::new(TableName::new("silver", name), columns);
        spec.partition_by = partition_by.iter().map(|name| (*name).to_owned()).collect();
        spec.row_changes = true;
        Ok(self.lake.create(&spec).await?)
    }

    pub fn minute_passes(&self) {
        self.clock.advance(TimeDelta::minutes(1));
    }

    fn root(table: &Table) -> String {
        format!("lake/main/{}/{}", table.name().schema, table.name().name)
    }

    /// A file of a table, as text.
    pub async fn text(&self, table: &Table, path: &str) -> Result<String> {
        let bytes = self.store.get(&Path::parse(format!("{}/{path}", Self::root(table)))?).await?.bytes().await?;
        Ok(String::from_utf8(bytes.to_vec())?)
    }

    pub async fn put(&self, table: &Table, path: &str, bytes: Vec<u8>) -> Result<()> {
        self.store.put(&Path::parse(format!("{}/{path}", Self::root(table)))?, bytes.into()).await?;
        Ok(())
    }

    pub async fn delete(&self, table: &Table, path: &str) -> Result<()> {
        self.store.delete(&Path::parse(format!("{}/{path}", Self::root(table)))?).await?;
        Ok(())
    }

    /// The actions of one kind in a commit.
    pub async fn actions(&self, table: &Table, version: u64, kind: &str) -> Result<Vec<serde_json::Value>> {
        let lines = self.text(table, &format!("_delta_log/{version:020}.json")).await?;
        lines
            .lines()
            .map(|line| Ok(serde_json::from_str::<serde_json::Value>(line)?))
            .filter_map(|line| line.map(|mut line| line.get_mut(kind).map(serde_json::Value::take)).transpose())
            .collect()
    }

    /// The same table as the Delta library sees it.
    pub async fn foreign(&self, table: &Table) -> Result<DeltaTable> {
        let url = Url::parse(&format!("memory:///{}/", Self::root(table)))?;
        Ok(DeltaTableBuilder::from_url(url.clone())?.with_storage_backend(Arc::clone(&self.store) as _, url).load().await?)
    }

    /// What the Delta library answers to SQL over the table `t`.
    pub async fn foreign_sql(&self, table: &Table, sql: &str) -> Result<Vec<RecordBatch>> {
        let context = SessionContext::new();
        context.register_table("t", self.foreign(table).await?.table_provider().await?)?;
        Ok(context.sql(sql).await?.collect().await?)
    }
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

pub async fn written(table: &Table, batches: &[RecordBatch]) -> Result<Vec<NewFile>> {
    let mut writer = table.writer(WriterOptions::default())?;
    for batch in batches {
        writer.write(batch).await?;
    }
    Ok(writer.finish().await?)
}

/// The table after a commit; anything but a commit is a failure of the test.
pub async fn committed(table: &Table, commit: Commit) -> Result<Table> {
    match table.commit(commit).await? {
        CommitOutcome::Committed { .. } => Ok(table.refresh().await?),
        other => bail!("not committed: {other:?}"),
    }
}

pub async fn append(table: &Table, batches: &[RecordBatch]) -> Result<Table> {
    let adds = written(table, batches).await?;
    committed(table, Commit { adds, ..Commit::default() }).await
}

pub async fn collect(stream: SendableRecordBatchStream) -> Result<RecordBatch> {
    let schema = stream.schema();
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    arrow::compute::concat_batches(&schema, &batches).context("batches of one stream have one schema")
}

pub async fn rows(table: &Table) -> Result<RecordBatch> {
    collect(table.read(tributary_lake::ReadOptions::default()).await?).await
}

/// Rows as text, sorted: what is in a table, whatever its order.
pub fn sorted_lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells: Vec<String> =
                batch.columns().iter().map(|column| arrow::util::display::array_value_to_string(column, row).unwrap()).collect();
            lines.push(cells.join("|"));
        }
    }
    lines.sort_unstable();
    lines
}
