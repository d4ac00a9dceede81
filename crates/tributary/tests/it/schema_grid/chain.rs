//! One cell's chain: a feed, its bronze table, and tables of every kind over it, run after each batch of messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{TimeDelta, TimeZone, Utc};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tributary_bronze::DataRoot;
use tributary_fault::{Fault, chain};
use tributary_lake::arrow::array::{Array, RecordBatch};
use tributary_lake::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::object_store::path::Path;
use tributary_lake::object_store::{ObjectStore, ObjectStoreExt};
use tributary_lake::{Lake, LakeOptions, ManualClock, ReadOptions, Stores, Table};
use tributary_specs::{SilverSpec, SourceFeed, TableName};

use super::entry::{Batch, Entry, Seen};
use super::message;

/// One cell of the grid, before the kind of the target.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    pub entry: &'a Entry,
    pub policy: &'a str,
    pub wire: &'a str,
    pub layout: &'a str,
}

/// From when and until when a version of a history is.
const ENDS: [&str; 2] = ["__START_AT", "__END_AT"];

/// What is seen of all tables of a chain after its last batch, by name.
pub type Tables = BTreeMap<String, Seen>;

impl Cell<'_> {
    /// Runs the chain.
    pub async fn run(self) -> Tables {
        let world = World::new();
        let mut remarks: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut offset = 1;
        for (at, batch) in self.entry.batches.iter().enumerate() {
            world.drop_file(at, &message::file(self.entry, batch, self.wire, offset)).await;
            offset += batch.rows.len();
            let last = at + 1 == self.entry.batches.len();
            for (table, remark) in self.run_once(&world, batch, last).await {
                let remarks = remarks.entry(table).or_default();
                if !remarks.contains(&remark) {
                    remarks.push(remark);
                }
            }
        }
        let mut tables = Tables::new();
        for name in
            world.lake.tables().await.expect("tables").iter().filter(|name| !matches!(name.schema.as_str(), "quarantine" | "_state"))
        {
            let mut seen = world.seen(name).await;
            seen.remarks.extend(world.rewritten(name).await);
            tables.insert(name.name.clone(), seen);
        }
        for (table, remarks) in remarks {
            tables.entry(table).or_default().remarks.extend(remarks);
        }
        if let Some(bronze) = tables.get_mut("bronze") {
            bronze.remarks.extend(world.quarantined().await);
        }
        tables
    }

    /// Bronze, then every silver table; gives what they have to say.
    async fn run_once(self, world: &World, batch: &Batch, last: bool) -> Vec<(String, String)> {
        world.clock.advance(TimeDelta::seconds(1));
        let mut said = Vec::new();
        let mut bronze = tributary_bronze::Options::new(DataRoot::wrap(Arc::clone(&world.drops), "drops"));
        bronze.max_files_per_trigger = 1;
        for report in tributary_bronze::run(&world.lake, &[self.feed(last)], &bronze).await {
            if let Some(error) = report.error {
                assert!(error.message.contains("bronze.bronze"), "the message names the table: {}", error.message);
                assert!(error.message.contains("line ") || error.message.contains("offset "), "and the place: {}", error.message);
                said.push(("bronze".to_owned(), format!("stops {} {}", error.code, column_of(&error.message))));
            }
        }
        for spec in self.silver(batch, last) {
            if let Err(error) = tributary_silver_merge::run(&world.lake, &spec, &tributary_silver_merge::Options::default()).await {
                let text = chain(&error);
                assert!(text.contains(&spec.table.to_string()), "the message names the table: {text}");
                let next = error.next_command().unwrap_or_else(|| panic!("a next command for {text}"));
                said.push((spec.table.name.clone(), format!("stops {} {} → {next}", error.code(), column_of(&text))));
            }
            if self.entry.option("watch") == Some("vectors") && !last && world.marks(&spec.table).await {
                said.push((spec.table.name.clone(), "had deletion vectors".to_owned()));
            }
        }
        said
    }

    fn feed(self, last: bool) -> SourceFeed {
        let policy = self.entry.option("later-policy").filter(|_| last).unwrap_or(self.policy);
        let kind = match self.wire {
            "csv" => "csv",
            "json" => "jsonl",
            _ => "kafka_jsonl",
        };
        let mut feed = json!({
            "name": "feed", "table": "bronze.bronze", "decode": self.wire, "schema_policy": policy, "keys": ["id"],
            "source": {"files": {"path": "in", "format": kind}}, "partition_by": self.partitions(),
        });
        if self.wire != "debezium" {
            let columns = self.entry.shape(self.entry.option("declared").unwrap_or("old"));
            feed["columns"] = columns.into_iter().map(|(name, data_type)| json!({"name": name, "type": data_type})).collect();
            feed.as_object_mut().expect("an object").remove("keys");
        }
        serde_json::from_value(feed).expect("a feed")
    }

    fn partitions(self) -> Vec<&'static str> {
        match (self.layout, self.entry.option("partition")) {
            ("plain", _) => Vec::new(),
            (_, Some("qty")) => vec!["qty"],
            _ => vec!["region"],
        }
    }

    /// Tables of every kind: over all columns of the source, over those it had in the beginning, and over the change feed of another.
    fn silver(self, batch: &Batch, last: bool) -> Vec<SilverSpec> {
        let growth = self.entry.option("silver-policy").unwrap_or(if self.policy == "widen" { "widen" } else { "add" });
        let columns: Vec<&str> = self.entry.shape("old").into_iter().map(|(name, _)| name).collect();
        let explicit = format!("select {} from bronze.bronze", columns.join(", "));
        let select = match (self.entry.option("select"), self.entry.option("later-select").filter(|_| batch.shape != "old" || last)) {
            (_, Some(later)) => Some(later),
            (select, None) => select,
        };
        let spec = |name: &str, source: &str, policy: Value, select: Option<&str>| {
            let mut spec = json!({
                "table": format!("silver.{name}"), "sources": [source], "policy": policy, "schema_policy": growth,
                "partition_by": self.partitions(),
            });
            if policy != "append" {
                spec["keys"] = json!(["id"]);
            }
            if policy != "append" && self.wire != "debezium" && source == "bronze.bronze" {
                spec["sequence_by"] = json!(["seq"]);
            }
            if let Some(select) = select {
                spec["select"] = select.into();
            }
            if let Some(not_null) = self.entry.option("not-null") {
                let columns = self.entry.shape("old").into_iter();
                let columns = columns.map(|(name, data_type)| json!({"name": name, "type": data_type, "nullable": name != not_null}));
                spec["schema"] = columns.collect();
            }
            serde_json::from_value::<SilverSpec>(spec).expect("a dataset")
        };
        let kinds = [
            ("append", json!("append")),
            ("current", json!("scd_type1")),
            ("history", json!({"scd_type2": {"track_history": {"except": ["seq"]}}})),
        ];
        let mut specs: Vec<SilverSpec> = kinds.iter().map(|(name, kind)| spec(name, "bronze.bronze", kind.clone(), select)).collect();
        if self.entry.is_basic {
            let named = |name: &str| format!("{name}_explicit");
            specs.extend(kinds.iter().map(|(name, kind)| spec(&named(name), "bronze.bronze", kind.clone(), Some(&explicit))));
            specs.push(spec("current_by_feed", "silver.current", json!("scd_type1"), None));
        }
        specs
    }
}

/// What a message calls the column: between marks, or behind the word.
fn column_of(message: &str) -> String {
    let Some((_, rest)) = message.split_once("column ") else { return String::new() };
    let end = |letter: char| matches!(letter, ' ' | ':' | ',' | '`' | '"' | '\'');
    rest.trim_start_matches(['`', '"']).split(end).next().unwrap_or_default().to_owned()
}

struct World {
    lake: Lake,
    drops: Arc<dyn ObjectStore>,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap()));
        let stores = Stores::wrap(Arc::new(InMemory::new()), "memory:///lake/".parse().expect("a URL"));
        let options = LakeOptions { clock: Arc::clone(&clock) as _, ..LakeOptions::default() };
        Self { lake: Lake::open(stores, options).expect("a lake"), drops: Arc::new(InMemory::new()), clock }
    }

    async fn drop_file(&self, number: usize, text: &str) {
        let path = Path::from(format!("drops/in/{number}"));
        self.drops.put(&path, text.to_owned().into_bytes().into()).await.expect("a drop");
    }

    async fn table(&self, name: &TableName) -> Table {
        self.lake.table(name).await.expect("the store").expect("a table")
    }

    async fn rows(table: &Table) -> Vec<RecordBatch> {
        table.read(ReadOptions::default()).await.expect("a scan").try_collect().await.expect("rows")
    }

    async fn seen(&self, name: &TableName) -> Seen {
        let table = self.table(name).await;
        let named = |names: &[&str]| table.columns().iter().any(|column| names.contains(&column.name.as_str()));
        let business = || table.columns().iter().filter(|column| !column.name.starts_with('_'));
        let ends: &[&str] = if named(&ENDS) { &ENDS } else { &[] };
        let columns: Vec<&str> = business().map(|column| column.name.as_str()).chain(ends.iter().copied()).collect();
        let mut rows = Vec::new();
        for batch in Self::rows(&table).await {
            let rescued =
                batch.column_by_name("_rescued_data").filter(|values| values.null_count() < values.len()).map(|_| "_rescued_data");
            let cells: Vec<Vec<String>> = columns.iter().copied().chain(rescued).map(|name| texts(&batch, name)).collect();
            rows.extend((0..batch.num_rows()).map(|row| cells.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join("|")));
        }
        let width = rows.iter().map(|row: &String| row.split('|').count()).max().unwrap_or(0);
        // Rows of files in which nothing was rescued say so, where others have something.
        rows.iter_mut().filter(|row| row.split('|').count() < width).for_each(|row| row.push_str("|∅"));
        rows.sort();
        Seen { columns: business().map(|column| format!("{} {}", column.name, column.data_type)).collect(), rows, remarks: Vec::new() }
    }

    /// Whether files of the table have rows marked as deleted.
    async fn marks(&self, name: &TableName) -> bool {
        self.table(name).await.files().await.expect("files").iter().any(|file| file.deletion_vector.is_some())
    }

    /// Whether a commit wrote the table anew.
    async fn rewritten(&self, name: &TableName) -> Option<String> {
        let history = self.table(name).await.history(None).await.expect("a history");
        history.iter().any(|entry| entry.operation.as_deref() == Some("OPTIMIZE")).then(|| "rewritten".to_owned())
    }

    /// Reasons in quarantine, with the column.
    async fn quarantined(&self) -> Vec<String> {
        let Some(table) = self.lake.table(&TableName::new("quarantine", "feed")).await.expect("the store") else { return Vec::new() };
        let mut found = Vec::new();
        for batch in Self::rows(&table).await {
            let (reasons, messages) = (texts(&batch, "reason"), texts(&batch, "message"));
            found.extend(reasons.iter().zip(&messages).map(|(reason, message)| format!("quarantined {reason} {}", column_of(message))));
        }
        found.sort();
        found
    }
}

/// A column as text. Positions are told by their last part, which is the sequence.
fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("column {name}"));
    let options = FormatOptions::default().with_null("∅");
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).expect("a formatter");
    let text = |row: usize| {
        let text = formatter.value(row).to_string();
        let position = text.rsplit_once('/').filter(|_| name.starts_with("__")).map(|(_, last)| last.trim_start_matches('0').to_owned());
        position.unwrap_or(text)
    };
    (0..column.len()).map(text).collect()
}
