//! B1 and B2 under a kill at every mutating call: each record is once in bronze or once, open, in quarantine.

use std::sync::Arc;

use serde_json::{Value, json};
use tributary_bronze::Options;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::SourceFeed;
use tributary_testkit::{Control, Controls, CrashReport, KillPoints, crash};

use crate::world::{World, gzip, record, recorded};

/// Two feeds over files with good and bad records, records of nobody, and a line that is no record.
async fn drops() -> World {
    let world = World::new();
    let good = |topic: &str, ids: std::ops::Range<i64>| -> String { ids.map(|id| record(topic, id, &json!({"id": id}))).collect() };
    world.drop_file("in/1.jsonl", [good("t", 0..4), record("t", 4, &json!({"id": "four"})), good("u", 0..2)].concat()).await;
    world.drop_file("in/2.jsonl.gz", gzip([good("t", 5..9), good("nobody", 0..2)].concat().as_bytes())).await;
    world
        .drop_file("in/3.jsonl", [good("u", 2..4), record("u", 4, &json!({"id": "four"})), "{\"topic\":\"t\",\"par".to_owned()].concat())
        .await;
    world
}

fn feeds() -> [SourceFeed; 2] {
    [recorded("a", "in", &["t"]), recorded("b", "in", &["u"])]
}

async fn run(world: &World) -> Result<(), String> {
    let mut options: Options = world.options();
    options.max_files_per_trigger = 2;
    options.slice_records = 3;
    let reports = world.run_with(&feeds(), &options).await;
    reports
        .into_iter()
        .filter_map(|report| report.error)
        .map(|error| Err(format!("{}: {}", error.code, error.message)))
        .next()
        .unwrap_or(Ok(()))
}

/// What readers see: rows of both tables, and the open rows of both quarantines.
async fn see(world: &World) -> Vec<Vec<Value>> {
    let mut seen = Vec::new();
    for table in ["bronze.a", "bronze.b"] {
        seen.push(world.columns(table, &["id", "_file", "_line", "_topic", "_offset"]).await);
    }
    for table in ["quarantine.a", "quarantine.b"] {
        let open = |row: &Value| row.get("superseded_at").is_none_or(Value::is_null);
        let rows = world.rows(table).await.into_iter().filter(open);
        seen.push(rows.map(|row| json!([row["file"], row["line"], row["reason"], row["value"]])).collect());
    }
    seen
}

async fn killed_everywhere(controls: Controls) -> CrashReport {
    let data = drops().await.data_store;
    let process = |store: Arc<dyn ObjectStore>| World { controls, ..World::over(store, data.inner()) };
    crash(
        KillPoints::All,
        async || Arc::new(InMemory::new()) as Arc<dyn ObjectStore>,
        async |store| run(&process(store)).await,
        async |store| see(&process(store)).await,
    )
    .await
}

#[tokio::test]
async fn each_record_lands_once_whatever_call_the_run_is_killed_at() {
    let world = drops().await;
    run(&world).await.unwrap();
    let lengths: Vec<_> = see(&world).await.iter().map(Vec::len).collect();
    assert_eq!(lengths, [8, 4, 2, 1], "the run that is never killed");

    let report = killed_everywhere(Controls::none()).await;
    println!("{report}");
    assert!(report.holds(), "{report}\n{}", report.differences.join("\n"));
}

/// The control of B1 and B2.
#[tokio::test]
async fn positions_outside_the_commit_make_the_crash_test_fail() {
    let report = killed_everywhere(Controls::none().with(Control::PositionsOutsideCommit)).await;
    assert!(report.kills > 0 && !report.differences.is_empty(), "{report}");
}
