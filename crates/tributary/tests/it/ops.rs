//! Problems from the field with how runs are scheduled, by their ids.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tributary::object_store::ObjectStore;
use tributary::object_store::memory::InMemory;
use tributary::{ExitCode, Lake, Layer, Pipeline, RunOptions, RunReport};
use tributary_testkit::{FaultyStore, Rule};

use crate::shop::{self, Drops};

async fn layer(store: Arc<dyn ObjectStore>, layer: Layer, base: &Path) -> RunReport {
    let options = RunOptions { layers: vec![layer], base_data_path: base.to_owned(), ..RunOptions::default() };
    shop::open(store).run(&shop::retail(), options).await.expect("the run ends with a report")
}

/// What people read.
async fn silver_and_gold(store: Arc<dyn ObjectStore>) -> BTreeMap<String, Vec<String>> {
    let mut content = shop::content(&shop::open(store)).await;
    content.retain(|table, _| table.starts_with("silver") || table.starts_with("gold"));
    content
}

/// OPS-01: a scheduler starts a second run though only one at a time is allowed.
#[tokio::test]
async fn ops_01_of_two_silver_runs_at_once_the_second_changes_nothing() {
    let drops = Drops::new();
    let all = drops.all();
    let alone: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    shop::run(&shop::open(Arc::clone(&alone)), &all).await;
    let expected = silver_and_gold(alone).await;
    let commit = Rule::delta_commit().on("/silver/");
    let mut raced = 0_u64;
    for at in 1.. {
        let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        layer(Arc::clone(&inner), Layer::Bronze, &all).await;
        let faulty = FaultyStore::new(Arc::clone(&inner));
        let (rival, folder) = (Arc::clone(&inner), all.clone());
        let (tell, told) = std::sync::mpsc::channel();
        faulty.before(commit.clone(), at, move |_| async move {
            tell.send(layer(rival, Layer::Silver, &folder).await.exit_code()).expect("the test waits");
        });
        let code = layer(Arc::new(faulty), Layer::Silver, &all).await.exit_code();
        let Ok(first) = told.try_recv() else { break };
        raced += 1;
        assert_eq!(first, ExitCode::Done, "the run that was first, before commit {at}");
        assert!(matches!(code, ExitCode::Done | ExitCode::Busy), "the run that came second at commit {at} ended with {code:?}");
        assert!(layer(Arc::clone(&inner), Layer::Silver, &all).await.nothing_new(), "before commit {at}");
        layer(Arc::clone(&inner), Layer::Gold, &all).await;
        assert_eq!(silver_and_gold(inner).await, expected, "the second run came before commit {at}");
    }
    assert!(raced >= 4, "one race a silver table at least, not {raced}");
}

/// OPS-01: cleared old runs start in random order.
#[tokio::test]
async fn ops_01_intervals_that_run_out_of_order_give_the_tables_of_the_order() {
    let drops = Drops::new();
    let [_, _, after] = drops.in_turn();
    let mut found = Vec::new();
    for order in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
        let (folder, store): (_, Arc<dyn ObjectStore>) = (tempfile::tempdir().expect("a folder"), Arc::new(InMemory::new()));
        for side in ["shop", "depot"] {
            fs::create_dir(folder.path().join(side)).expect("a folder");
        }
        for interval in order {
            for side in ["shop", "depot"] {
                let file = format!("{side}/{interval}.jsonl");
                fs::copy(after.join(&file), folder.path().join(&file)).expect("a drop");
            }
            shop::run(&shop::open(Arc::clone(&store)), folder.path()).await;
        }
        found.push(silver_and_gold(store).await);
    }
    assert_eq!(found[1], found[0]);
    assert_eq!(found[2], found[0]);
}

/// Events with a sequence of their own, merged by it.
const EVENTS: &str = "
name: backfill
feeds:
  - name: incoming
    table: bronze.events
    decode: json
    source: { files: { path: events, format: jsonl } }
    columns: [{ name: id, type: long }, { name: v, type: string }, { name: seq, type: long }]
silver:
  - table: silver.events
    sources: [bronze.events]
    keys: [id]
    sequence_by: [seq]
    policy: scd_type1
";

struct Events {
    folder: tempfile::TempDir,
    pipeline: Pipeline,
    store: Arc<dyn ObjectStore>,
}

impl Events {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("events")).expect("a folder");
        let pipeline = Pipeline::from_yaml(&[("events.yml", EVENTS)]).expect("a pipeline");
        Self { folder, pipeline, store: Arc::new(InMemory::new()) }
    }

    fn lake(&self) -> Lake {
        shop::open(Arc::clone(&self.store))
    }

    async fn drop_and_run(&self, file: &str, events: &[(i64, &str, i64)], options: RunOptions) -> RunReport {
        let lines: String = events.iter().map(|(id, v, seq)| format!("{}\n", json!({ "id": id, "v": v, "seq": seq }))).collect();
        fs::write(self.folder.path().join("events").join(file), lines).expect("a drop");
        self.run(options).await
    }

    async fn run(&self, options: RunOptions) -> RunReport {
        let options = RunOptions { base_data_path: self.folder.path().to_owned(), ..options };
        self.lake().run(&self.pipeline, options).await.expect("the run ends with a report")
    }

    async fn silver(&self) -> Vec<String> {
        let frame = tributary::sql::query(&self.lake(), "select id, v, seq from silver.events order by id").await.expect("a query");
        frame.collect().await.expect("rows").iter().flat_map(shop::rows_as_text).collect()
    }

    /// Version of the table, and the version of its source that it has read.
    async fn position(&self) -> (u64, u64) {
        let lake = self.lake();
        let (silver, bronze) = (lake.table("silver.events").await.expect("a table"), lake.table("bronze.events").await.expect("a table"));
        (silver.version(), bronze.version())
    }
}

/// OPS-03: a backfill of an old range overwrites what the regular run has just written. The old range is delivered again, late.
#[tokio::test]
async fn ops_03_an_old_range_delivered_again_leaves_newer_rows_alone() {
    let events = Events::new();
    events.drop_and_run("new.jsonl", &[(1, "new", 90)], RunOptions::default()).await;
    events.drop_and_run("old.jsonl", &[(1, "old", 10), (2, "old", 11)], RunOptions::default()).await;
    assert_eq!(events.silver().await, ["1|new|90", "2|old|11"]);
}

/// OPS-03: the backfill and the regular run are at work at once, and the backfill commits first.
#[tokio::test]
async fn ops_03_a_backfill_beside_the_regular_run_leaves_newer_rows_alone() {
    let events = Events::new();
    events.drop_and_run("first.jsonl", &[(3, "first", 1)], RunOptions::default()).await;
    let only_bronze = RunOptions { layers: vec![Layer::Bronze], ..RunOptions::default() };
    events.drop_and_run("new.jsonl", &[(1, "new", 90)], only_bronze).await;
    let backfill = Events { store: Arc::clone(&events.store), ..Events::new() };
    let faulty = FaultyStore::new(Arc::clone(&events.store));
    faulty.before(Rule::delta_commit().on("/silver/"), 1, move |_| async move {
        backfill.drop_and_run("old.jsonl", &[(1, "old", 10), (2, "old", 11)], RunOptions::default()).await;
    });
    let regular = Events { store: Arc::new(faulty), ..events };
    let report = regular.run(RunOptions::default()).await;
    assert_eq!(report.exit_code(), ExitCode::Done);
    assert!(report.datasets.iter().any(|dataset| dataset.conflicts > 0), "the backfill was first");
    assert_eq!(regular.silver().await, ["1|new|90", "2|old|11", "3|first|1"]);
}

/// OPS-03: the regular position is moved neither back nor forward by a run that is told to start from an old version.
#[tokio::test]
async fn ops_03_a_starting_version_does_not_move_the_position_of_a_table_that_has_one() {
    let events = Events::new();
    for n in 0..6 {
        events.drop_and_run(&format!("{n}.jsonl"), &[(n, "old", n)], RunOptions::default()).await;
    }
    let (before, rows) = (events.position().await, events.silver().await);
    for starting_version in [0, 3, 100] {
        let only = vec!["silver.events".parse().expect("a name")];
        let report = events.run(RunOptions { starting_version, only, ..RunOptions::default() }).await;
        assert!(report.nothing_new(), "from version {starting_version}");
        assert_eq!((events.position().await, events.silver().await), (before, rows.clone()), "from version {starting_version}");
    }
    events.drop_and_run("late.jsonl", &[(0, "new", 90)], RunOptions::default()).await;
    assert_eq!(events.silver().await[0], "0|new|90");
}
