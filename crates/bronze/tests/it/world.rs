//! A lake, a place for file drops, and the rows a reader sees.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use futures::TryStreamExt;
use serde_json::{Value, json};
use tributary_bronze::{DataRoot, Options, run};
use tributary_fault::ExitCode;
use tributary_lake::arrow::json::ArrayWriter;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::object_store::path::Path;
use tributary_lake::object_store::{ObjectStore, ObjectStoreExt};
use tributary_lake::{Lake, LakeOptions, ManualClock, ReadOptions, Stores};
use tributary_specs::{DatasetReport, SourceFeed, Status, TableName};
use tributary_testkit::{Controls, FaultyStore};

/// Two stores in memory, each counted: the lake's and the drops'.
#[derive(Debug, Clone)]
pub struct World {
    pub lake_store: FaultyStore,
    pub data_store: FaultyStore,
    pub controls: Controls,
    pub clock: Arc<ManualClock>,
}

impl World {
    pub fn new() -> Self {
        Self::over(Arc::new(InMemory::new()), Arc::new(InMemory::new()))
    }

    pub fn over(lake: Arc<dyn ObjectStore>, data: Arc<dyn ObjectStore>) -> Self {
        let clock = Arc::new(ManualClock::new("2026-02-03T10:00:00Z".parse().unwrap()));
        Self { lake_store: FaultyStore::new(lake), data_store: FaultyStore::new(data), controls: Controls::none(), clock }
    }

    /// A process of its own: nothing but the stores is shared.
    pub fn lake(&self) -> Lake {
        let stores = Stores::wrap(Arc::new(self.lake_store.clone()), "memory:///lake/".parse().unwrap());
        let options = LakeOptions { clock: self.clock.clone(), controls: self.controls, ..LakeOptions::default() };
        Lake::open(stores, options).unwrap()
    }

    pub fn options(&self) -> Options {
        Options::new(DataRoot::wrap(Arc::new(self.data_store.clone()), "drops"))
    }

    pub async fn drop_file(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.data_store.inner().put(&Path::from(format!("drops/{path}")), content.into().into()).await.unwrap();
    }

    pub async fn run(&self, feeds: &[SourceFeed]) -> Vec<DatasetReport> {
        self.run_with(feeds, &self.options()).await
    }

    pub async fn run_with(&self, feeds: &[SourceFeed], options: &Options) -> Vec<DatasetReport> {
        self.clock.advance(chrono::TimeDelta::seconds(1));
        let reports = run(&self.lake(), feeds, options).await;
        reports.iter().for_each(assert_adds_up);
        reports
    }

    /// A run of one feed that must end well.
    pub async fn run_one(&self, feed: &SourceFeed) -> DatasetReport {
        let report = self.run(std::slice::from_ref(feed)).await.remove(0);
        assert_eq!(report.error, None);
        report
    }

    /// Rows of a table as JSON, in the order of their text; none when there is no table.
    pub async fn rows(&self, table: &str) -> Vec<Value> {
        let lake = Lake::open(Stores::wrap(self.lake_store.inner(), "memory:///lake/".parse().unwrap()), LakeOptions::default()).unwrap();
        let (schema, name) = table.split_once('.').unwrap();
        let Some(table) = lake.table(&TableName::new(schema, name)).await.unwrap() else { return Vec::new() };
        let batches: Vec<_> = table.read(ReadOptions::default()).await.unwrap().try_collect().await.unwrap();
        let mut writer = ArrayWriter::new(Vec::new());
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        let text = writer.into_inner();
        let mut rows: Vec<Value> = if text.is_empty() { Vec::new() } else { serde_json::from_slice(&text).unwrap() };
        rows.sort_by_key(Value::to_string);
        rows
    }

    /// Only these columns of the rows; an absent one is null.
    pub async fn columns(&self, table: &str, columns: &[&str]) -> Vec<Value> {
        let pick = |row: &Value| Value::from(columns.iter().map(|column| row.get(column).cloned().unwrap_or_default()).collect::<Vec<_>>());
        let mut rows: Vec<_> = self.rows(table).await.iter().map(pick).collect();
        rows.sort_by_key(Value::to_string);
        rows
    }

    /// Versions there are of each table, by name.
    pub async fn versions(&self) -> BTreeMap<String, u64> {
        let lake = self.lake();
        let mut versions = BTreeMap::new();
        for name in lake.tables().await.unwrap() {
            versions.insert(name.to_string(), lake.table(&name).await.unwrap().unwrap().version());
        }
        versions
    }
}

/// B3, of every run of every test.
fn assert_adds_up(report: &DatasetReport) {
    let ignored: u64 = report.rows_ignored.values().sum();
    assert_eq!(report.rows_in, report.rows_out + report.rows_quarantined + ignored, "{report:?}");
    assert!(report.error.is_some() || report.status != Status::Failed, "{report:?}");
}

/// The exit code of a report's error.
pub fn exit_of(report: &DatasetReport) -> Option<u8> {
    report.error.as_ref().map(|error| error.exit_code)
}

pub fn code_of(report: &DatasetReport) -> &str {
    report.error.as_ref().map_or("", |error| error.code.as_str())
}

pub const PARTIAL: Option<u8> = Some(ExitCode::Partial.code());
pub const BAD_INPUT: Option<u8> = Some(ExitCode::BadInput.code());

/// A feed from its YAML shape.
pub fn feed(spec: Value) -> SourceFeed {
    serde_json::from_value(spec).unwrap()
}

/// A feed of JSON lines under `path` into `bronze.<name>`.
pub fn json_lines(name: &str, path: &str) -> SourceFeed {
    feed(json!({
        "name": name, "table": format!("bronze.{name}"), "decode": "json", "source": {"files": {"path": path, "format": "jsonl"}},
        "columns": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }))
}

/// A feed of recorded records with JSON values.
pub fn recorded(name: &str, path: &str, topics: &[&str]) -> SourceFeed {
    feed(json!({
        "name": name, "table": format!("bronze.{name}"), "decode": "json",
        "source": {"files": {"path": path, "format": "kafka_jsonl", "topics": topics}},
        "columns": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }))
}

pub fn record(topic: &str, offset: i64, value: &Value) -> String {
    let line = json!({"topic": topic, "partition": 0, "offset": offset, "key": null, "value": value.to_string(), "headers": [], "timestamp": 1_770_112_800_000_i64});
    format!("{line}\n")
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
