//! A lake in memory, bronze tables written directly, silver brought up to date.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{
    Commit, CommitOutcome, DELETION_VECTORS_ON, Lake, LakeOptions, ManualClock, ReadOptions, SeededIds, Stores, Table, WriterOptions,
};
use tributary_silver_merge::Options;
use tributary_specs::{
    Column, ColumnSelection, DatasetReport, Deletes, GrowthPolicy, IgnoreNullUpdates, LateRows, MergePolicy, NullKeys, SilverSpec,
    StreamRead, TableName, TableSpec,
};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Controls, Frame, replay};
use url::Url;

/// One process with a lake.
pub struct World {
    pub clock: Arc<ManualClock>,
    pub lake: Lake,
}

/// 2026-02-01T10:00:00Z.
pub fn ten_o_clock() -> DateTime<Utc> {
    DateTime::from_timestamp(1_769_940_000, 0).unwrap()
}

impl World {
    pub fn new() -> Self {
        Self::on(Arc::new(InMemory::new()), Controls::none())
    }

    pub fn with(controls: Controls) -> Self {
        Self::on(Arc::new(InMemory::new()), controls)
    }

    /// A fresh process on a store that may hold a lake already.
    pub fn on(store: Arc<dyn ObjectStore>, controls: Controls) -> Self {
        // Ids differ from process to process, or a restarted one would find its files taken.
        let ids = Arc::new(SeededIds::new(NEXT_PROCESS.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
        let clock = Arc::new(ManualClock::new(ten_o_clock()));
        let stores = Stores::wrap(store, Url::parse("memory:///lake/").unwrap());
        let options = LakeOptions { clock: Arc::clone(&clock) as _, ids, controls, ..LakeOptions::default() };
        Self { clock, lake: Lake::open(stores, options).unwrap() }
    }

    pub async fn table(&self, name: &TableName) -> Result<Table> {
        self.lake.table(name).await?.ok_or_else(|| anyhow!("there is no table {name}"))
    }

    /// Appends rows to a table in one commit; the table is made, and columns are added to it, where needed.
    pub async fn append(&self, name: &TableName, rows: &Frame) -> Result<()> {
        let wanted = Column::all_from_arrow(&rows.schema())?;
        let table = match self.lake.table(name).await? {
            Some(table) => table,
            None => self.lake.create(&TableSpec::new(name.clone(), wanted.clone())).await?,
        };
        let mut columns = table.columns().to_vec();
        columns.extend(wanted.into_iter().filter(|column| table.columns().iter().all(|known| known.name != column.name)));
        let added = columns.len() > table.columns().len();
        let mut writer = table.writer(WriterOptions { columns: added.then(|| columns.clone()), ..WriterOptions::default() })?;
        writer.write(rows.batch()).await?;
        let commit = Commit { adds: writer.finish().await?, schema: added.then_some(columns), ..Commit::default() };
        match table.commit(commit).await? {
            CommitOutcome::Committed { .. } => Ok(()),
            other => Err(anyhow!("append to {name}: {other:?}")),
        }
    }

    pub async fn run(&self, spec: &SilverSpec) -> tributary_silver_merge::Result<DatasetReport> {
        tributary_silver_merge::run(&self.lake, spec, &Options::default()).await
    }

    /// A run whose slices of keys hold this many bytes at most.
    pub async fn run_in_slices(&self, spec: &SilverSpec, memory_limit: usize) -> tributary_silver_merge::Result<DatasetReport> {
        tributary_silver_merge::run(&self.lake, spec, &Options { memory_limit, ..Options::default() }).await
    }

    /// A run that commits after each version of its source.
    pub async fn run_version_by_version(&self, spec: &SilverSpec) -> tributary_silver_merge::Result<DatasetReport> {
        let options = Options { source_versions_max: Some(1), ..Options::default() };
        tributary_silver_merge::run(&self.lake, spec, &options).await
    }

    /// The live rows of a table, with these columns only.
    pub async fn rows(&self, name: &TableName, columns: &[&str]) -> Result<Frame> {
        let frame = self.all(name).await?;
        Ok(frame.select(columns))
    }

    /// The live rows of a table with every column.
    pub async fn all(&self, name: &TableName) -> Result<Frame> {
        let table = self.table(name).await?;
        let batches: Vec<RecordBatch> = table.read(ReadOptions::default()).await?.try_collect().await?;
        Ok(Frame::new(table.schema(), &batches))
    }

    /// How many live rows a table has; none when there is no such table.
    pub async fn count(&self, name: &TableName) -> Result<Option<usize>> {
        match self.lake.table(name).await? {
            Some(_) => Ok(Some(self.all(name).await?.len())),
            None => Ok(None),
        }
    }

    pub async fn version(&self, name: &TableName) -> Result<u64> {
        Ok(self.table(name).await?.version())
    }
}

static NEXT_PROCESS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

/// Runs a future to its end; laws are not async.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Rows of a frame as sorted values, for comparison with the oracle's.
pub fn sorted(frame: &Frame) -> Vec<Row> {
    let mut rows = frame.rows();
    rows.sort();
    rows
}

pub fn source(name: &str) -> TableName {
    TableName::new("bronze", name)
}

pub fn target(name: &str) -> TableName {
    TableName::new("silver", name)
}

/// A dataset of the same name as its source.
pub fn spec(name: &str, keys: &[&str], policy: MergePolicy) -> SilverSpec {
    SilverSpec {
        table: target(name),
        sources: vec![source(name)],
        select: None,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        sequence_by: Vec::new(),
        policy,
        deletes: Deletes::default(),
        columns: ColumnSelection::All,
        ignore_null_updates: IgnoreNullUpdates::Off,
        null_keys: NullKeys::Refuse,
        update_when: None,
        delete_when: None,
        insert_when: None,
        schema: Vec::new(),
        schema_policy: GrowthPolicy::default(),
        expectations: Vec::new(),
        checks: Vec::new(),
        partition_by: Vec::new(),
        cluster_by: Vec::new(),
        quarantine: None,
        comment: None,
        properties: BTreeMap::new(),
        flow: None,
        once: false,
        stream: StreamRead::default(),
        watermark: None,
        late: LateRows::default(),
        flows: Vec::new(),
        set_expectations: Vec::new(),
    }
}

/// The properties of a table with deletion vectors, as silver makes it, or without.
pub fn vectors(on: bool) -> BTreeMap<String, String> {
    if on { BTreeMap::new() } else { BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "false".to_owned())]) }
}

/// The properties of a table with a change feed, as silver makes it, or without.
pub fn feed(on: bool) -> BTreeMap<String, String> {
    if on { BTreeMap::new() } else { BTreeMap::from([("delta.enableChangeDataFeed".to_owned(), "false".to_owned())]) }
}

pub const SCD2: MergePolicy = MergePolicy::ScdType2 { track_history: ColumnSelection::All };

/// The dataset most problems from the field are about: `id, name, seq, op` with `op = 'D'` as delete.
pub fn dimension(policy: MergePolicy) -> SilverSpec {
    SilverSpec {
        sequence_by: vec!["seq".to_owned()],
        deletes: Deletes { apply_as_delete_when: Some("op = 'D'".to_owned()), ..Deletes::default() },
        columns: ColumnSelection::Except(vec!["op".to_owned(), "seq".to_owned()]),
        ..spec("dim", &["id"], policy)
    }
}

/// Columns whose values are whole numbers are `long`, others `string`; as the source rows of the worked cases need.
pub fn columns_of<'a>(names: &[String], rows: impl Iterator<Item = &'a serde_json::Value> + Clone) -> Vec<Column> {
    let data_type = |name: &String| {
        let whole = rows.clone().filter_map(|row| row.get(name)).any(serde_json::Value::is_i64);
        if whole { tributary_specs::DataType::Long } else { tributary_specs::DataType::String }
    };
    names.iter().map(|name| Column::new(name, data_type(name))).collect()
}

/// Names of the first object's fields, then of the others'.
pub fn names_of<'a>(rows: impl Iterator<Item = &'a serde_json::Value>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in rows.filter_map(serde_json::Value::as_object).flat_map(|row| row.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// JSON objects as source rows.
pub fn json_frame(columns: &[Column], rows: &[serde_json::Value]) -> Frame {
    Frame::from_json(columns, rows)
}

/// What a table's change feed comes to: version by version, rows that go must be there, rows that come are added.
///
/// # Errors
/// When a row that goes is not there, or a change changes nothing.
pub async fn replayed(world: &World, name: &TableName) -> Result<Vec<Row>> {
    let table = world.table(name).await?;
    let stream = table.changes(0, table.version()).await?;
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    let frame = Frame::new(table.change_schema(), &batches);
    replay(&frame, table.schema().fields().len()).map_err(|why| anyhow!(why))
}

/// The change feed of a table, where it has one, comes to the table.
///
/// # Errors
/// When it does not.
pub async fn feed_replays_to_the_table(world: &World, name: &TableName) -> Result<()> {
    let without = feed(false);
    if world.table(name).await?.properties().iter().any(|(name, value)| without.get(name) == Some(value)) {
        return Ok(());
    }
    let (replayed, table) = (replayed(world, name).await?, sorted(&world.all(name).await?));
    anyhow::ensure!(replayed == table, "the change feed of {name} comes to {replayed:?}\nthe table is {table:?}");
    Ok(())
}
