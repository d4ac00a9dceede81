//! A lake whose store's times are those of the test's clock, and what tests do to its tables as days go by.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use futures::TryStreamExt;
use futures::stream::{BoxStream, StreamExt};
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::object_store::path::Path;
use tributary_lake::object_store::{
    self, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions,
    PutOptions, PutPayload, PutResult,
};
use tributary_lake::{
    Clock, Commit, Lake, LakeOptions, ManualClock, Operation, Progress, ReadOptions, Reads, Stores, Table, WriterOptions,
};
use tributary_maintenance::{Readers, VacuumOptions, VacuumReport, vacuum};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::Controls;
use url::Url;

use crate::world::{committed, name, open, texts};

/// A store whose objects were written when a clock said so.
#[derive(Debug)]
pub struct ClockedStore {
    inner: InMemory,
    clock: Arc<ManualClock>,
    times: Mutex<HashMap<Path, DateTime<Utc>>>,
}

impl ClockedStore {
    fn note(&self, path: &Path) {
        self.times.lock().unwrap().insert(path.clone(), self.clock.now());
    }

    fn told(&self, mut meta: ObjectMeta) -> ObjectMeta {
        if let Some(time) = self.times.lock().unwrap().get(&meta.location) {
            meta.last_modified = *time;
        }
        meta
    }
}

impl fmt::Display for ClockedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClockedStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for ClockedStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        let put = self.inner.put_opts(location, payload, options).await?;
        self.note(location);
        Ok(put)
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.note(location);
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let mut result = self.inner.get_opts(location, options).await?;
        result.meta = self.told(result.meta);
        Ok(result)
    }

    fn delete_stream(&self, locations: BoxStream<'static, object_store::Result<Path>>) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let times = self.times.lock().unwrap().clone();
        let told = move |mut meta: ObjectMeta| {
            meta.last_modified = times.get(&meta.location).copied().unwrap_or(meta.last_modified);
            meta
        };
        self.inner.list(prefix).map_ok(told).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        let mut listed = self.inner.list_with_delimiter(prefix).await?;
        listed.objects = listed.objects.into_iter().map(|meta| self.told(meta)).collect();
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.note(to);
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Clone)]
pub struct House {
    pub clock: Arc<ManualClock>,
    pub store: Arc<ClockedStore>,
}

impl House {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_769_940_000, 0).unwrap()));
        let store = ClockedStore { inner: InMemory::new(), clock: Arc::clone(&clock), times: Mutex::default() };
        Self { clock, store: Arc::new(store) }
    }

    /// With fresh process state.
    pub fn lake(&self) -> Lake {
        self.lake_over(Arc::clone(&self.store) as _, Controls::none())
    }

    pub fn lake_over(&self, store: Arc<dyn ObjectStore>, controls: Controls) -> Lake {
        let options = LakeOptions { clock: Arc::clone(&self.clock) as _, controls, ..LakeOptions::default() };
        Lake::open(Stores::wrap(store, Url::parse("memory:///lake/").unwrap()), options).unwrap()
    }

    pub fn hours_pass(&self, hours: i64) {
        self.clock.advance(TimeDelta::hours(hours));
    }

    /// An object of the table, by its relative path.
    pub async fn put(&self, path: &str) {
        self.store.put(&Self::place(path), "x".into()).await.unwrap();
    }

    pub async fn delete(&self, path: &str) {
        self.store.delete(&Self::place(path)).await.unwrap();
    }

    pub fn place(path: &str) -> Path {
        Path::parse(format!("lake/main/silver/orders/{path}")).unwrap()
    }

    /// Relative paths below the table's root, those of the log left out, sorted.
    pub async fn files(&self) -> Vec<String> {
        self.paths(|path| !path.starts_with("_delta_log/")).await
    }

    /// Names in the log, sorted.
    pub async fn log(&self) -> Vec<String> {
        self.paths(|path| path.starts_with("_delta_log/")).await.into_iter().map(|path| path["_delta_log/".len()..].to_owned()).collect()
    }

    async fn paths(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let root = "lake/main/silver/orders/";
        let listed: Vec<ObjectMeta> = self.store.list(Some(&Path::from("lake/main/silver/orders"))).try_collect().await.unwrap();
        let mut paths: Vec<String> =
            listed.iter().map(|meta| meta.location.as_ref()[root.len()..].to_owned()).filter(|path| wanted(path)).collect();
        paths.sort_unstable();
        paths
    }

    /// Takes all that no reader of the lake needs.
    pub async fn vacuum(&self, lake: &Lake, options: &VacuumOptions) -> tributary_maintenance::Result<VacuumReport> {
        vacuum(lake, &Readers::of(lake).await?, &name(), options).await
    }
}

/// Every row of a version, sorted, as a process that has just begun reads it.
pub async fn rows_at(lake: &Lake, version: u64) -> Result<Vec<String>> {
    let table = open(lake).await?.at_version(version).await?;
    let batches: Vec<RecordBatch> = table.read(ReadOptions::default()).await?.try_collect().await?;
    Ok(texts(&batches))
}

/// Every change after a version, sorted.
pub async fn changes_after(lake: &Lake, version: u64) -> Result<Vec<String>> {
    let table = open(lake).await?;
    if version == table.version() {
        return Ok(Vec::new());
    }
    let batches: Vec<RecordBatch> = table.changes(version + 1, table.version()).await?.try_collect().await?;
    Ok(texts(&batches))
}

/// The first live file written anew as it is, with a change feed that says its rows were updated.
pub async fn update(lake: &Lake) -> Result<()> {
    let table = open(lake).await?;
    let Some(file) = table.files().await?.into_iter().next() else { return Ok(()) };
    let batches: Vec<RecordBatch> = table.read_file(&file, None).await?.try_collect().await?;
    let (mut writer, mut changes) = (table.writer(WriterOptions::default())?, table.change_writer());
    for batch in &batches {
        writer.write(batch).await?;
        let all: Vec<u32> = (0..u32::try_from(batch.num_rows())?).collect();
        changes.write_rows(batch, &all, "update_preimage").await?;
        changes.write_rows(batch, &all, "update_postimage").await?;
    }
    let (adds, changes) = (writer.finish().await?, changes.finish().await?);
    let commit = Commit { operation: Operation::Update, adds, changes, removes: vec![file], reads: Reads::WholeTable, ..Commit::default() };
    committed(&table, commit).await
}

/// A table of the lake that has taken up so much of the orders.
pub async fn reader(lake: &Lake, of: &str, version: u64) -> Result<()> {
    let source = open(lake).await?;
    let spec = TableSpec::new(TableName::new("gold", of), vec![Column::new("n", DataType::Long)]);
    let table: Table = lake.create(&spec).await?;
    let positions = [("tributary:source:silver.orders", i64::try_from(version)?), ("tributary:source-id:silver.orders", source.identity())];
    let mut progress = Vec::new();
    for (app_id, version) in positions {
        progress.push(Progress { app_id: app_id.to_owned(), expected: table.progress(app_id).await?, version });
    }
    committed(&table, Commit { progress, rewinds: true, ..Commit::default() }).await
}
