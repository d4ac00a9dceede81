//! Tables that grow with their sources, and change tables of recorded Debezium events.

use serde_json::json;
use tributary_specs::{SchemaPolicy, SourceFeed};
use tributary_testkit::captures;

use crate::requeue::{change_of, stock};
use crate::world::{World, feed, json_lines};

fn policy(policy: SchemaPolicy) -> SourceFeed {
    SourceFeed { schema_policy: policy, ..json_lines("a", "in") }
}

#[tokio::test]
async fn a_new_column_rides_in_the_commit_of_its_rows() {
    let world = World::new();
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    world.run_one(&policy(SchemaPolicy::Add)).await;
    world.drop_file("in/2.jsonl", "{\"id\":2}\n{\"id\":3,\"extra\":\"x\"}\n").await;
    let mut options = world.options();
    options.slice_records = 1;
    let report = world.run_with(&[policy(SchemaPolicy::Add)], &options).await.remove(0);
    assert_eq!((report.error, report.version_from, report.version_to), (None, Some(1), Some(2)));
    assert!(report.notes.iter().any(|note| note.contains("extra")), "{:?}", report.notes);
    assert_eq!(world.columns("bronze.a", &["id", "extra"]).await, [json!([1, null]), json!([2, null]), json!([3, "x"])]);
}

#[tokio::test]
async fn a_raw_feed_keeps_records_as_they_came() {
    let world = World::new();
    let raw = feed(json!({
        "name": "a", "table": "bronze.a", "decode": "raw", "partition_by": ["topic"],
        "source": {"files": {"path": "in", "format": "kafka_jsonl"}},
    }));
    let line = json!({"topic": "t", "partition": 2, "offset": 7, "key": "k", "value": null, "headers": [{"key": "h", "value": "v"}], "timestamp": 1_770_112_800_000_i64});
    world.drop_file("in/1.jsonl", format!("{line}\n")).await;
    world.run_one(&raw).await;
    let rows = world.columns("bronze.a", &["key", "value", "topic", "partition", "offset", "timestamp", "headers", "_file", "_line"]).await;
    let headers = json!([{"key": "h", "value": "76"}]);
    assert_eq!(rows, [json!(["6b", null, "t", 2, 7, "2026-02-03T10:00:00Z", headers, "in/1.jsonl", 1])]);
}

/// The same recording, once in one run, once cut into many files over many runs, gives the same change table.
#[tokio::test]
async fn a_recording_gives_the_same_change_table_however_it_is_cut() {
    for name in ["postgres-json-schema", "postgres-incremental-snapshot"] {
        let text = std::fs::read_to_string(captures::directory().join(format!("{name}.jsonl"))).unwrap();
        let lines: Vec<_> = text.lines().collect();
        // Without a declaration, how much bare events prove of their before-images depends on what a run has seen.
        let identity = tributary_specs::ReplicaIdentity::Full;
        let customers = SourceFeed { replica_identity: identity, ..debezium("customers", "shop.public.customers") };
        let feeds = [debezium("orders", "shop.public.orders"), customers];
        let mut seen = Vec::new();
        for cut in [lines.len(), 40] {
            let world = World::new();
            for (at, chunk) in lines.chunks(cut).enumerate() {
                world.drop_file(&format!("in/{at:04}.jsonl"), chunk.join("\n") + "\n").await;
                for report in world.run(&feeds).await {
                    assert_eq!(report.error, None, "{name}");
                }
            }
            let mut tables = Vec::new();
            for table in ["bronze.orders", "bronze.customers"] {
                let mut rows = world.rows(table).await;
                rows.iter_mut().filter_map(|row| row.as_object_mut()).for_each(|row| {
                    row.retain(|column, _| !matches!(column.as_str(), "_file" | "_line" | "_ingested_at"));
                });
                rows.sort_by_key(|row| (row["_partition"].as_i64(), row["_offset"].as_i64()));
                assert!(!rows.is_empty(), "{name}: {table}");
                tables.push(rows);
            }
            seen.push(tables);
        }
        for (whole, cut) in seen[0].iter().zip(&seen[1]) {
            for (whole, cut) in whole.iter().zip(cut) {
                assert_eq!(whole, cut, "{name}");
            }
            assert_eq!(whole.len(), cut.len());
        }
    }
}

fn debezium(name: &str, topic: &str) -> SourceFeed {
    feed(json!({
        "name": name, "table": format!("bronze.{name}"), "decode": "debezium",
        "source": {"files": {"path": "in", "format": "kafka_jsonl", "topics": [topic]}},
    }))
}

#[tokio::test]
async fn widen_rewrites_the_table_in_one_commit_that_changes_no_row() {
    let world = World::new();
    let mut feed = policy(SchemaPolicy::Widen);
    feed.columns[0].data_type = tributary_specs::DataType::Integer;
    world.drop_file("in/1.jsonl", "{\"id\":1}\n{\"id\":2,\"note\":\"b\"}\n").await;
    world.run_one(&feed).await;
    world.drop_file("in/2.jsonl", "{\"id\":3}\n{\"id\":5000000000}\n").await;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_in, report.rows_out, report.version_from, report.version_to), (2, 2, Some(1), Some(3)));
    assert!(report.notes.iter().any(|note| note.contains("widened id to long")), "{:?}", report.notes);
    let ids = world.columns("bronze.a", &["id", "note"]).await;
    assert_eq!(ids, [json!([1, null]), json!([2, "b"]), json!([3, null]), json!([5_000_000_000_i64, null])]);
    assert_eq!(world.run_one(&feed).await.rows_in, 0);
}

#[tokio::test]
async fn a_column_that_only_quarantined_records_show_does_not_enter_the_table() {
    let world = World::new();
    let feed = policy(SchemaPolicy::Add);
    world.drop_file("in/1.jsonl", "{\"id\":1}\n{\"id\":\"bad\",\"typo\":1,\"extra\":2}\n").await;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (1, 1));
    assert!(!report.notes.iter().any(|note| note.contains("typo")), "{:?}", report.notes);
    world.drop_file("in/2.jsonl", "{\"id\":\"bad\",\"typo\":1}\n{\"id\":2,\"extra\":5}\n").await;
    let report = world.run_one(&feed).await;
    assert!(report.notes.iter().any(|note| note.contains("column extra added")), "{:?}", report.notes);
    assert_eq!(world.columns("bronze.a", &["id", "extra"]).await, [json!([1, null]), json!([2, 5])]);
    let lake = world.lake();
    let table = lake.table(&feed.table).await.unwrap().unwrap();
    let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).filter(|name| !name.starts_with('_')).collect();
    assert_eq!(names, ["id", "note", "extra"]);
    let done = tributary_bronze::requeue(&lake, &feed, None, false, &world.options()).await.unwrap();
    assert_eq!((done.records, done.rows), (2, 0));
    assert_eq!(lake.table(&feed.table).await.unwrap().unwrap().version(), table.version());
}

#[tokio::test]
async fn a_column_that_only_quarantined_changes_show_does_not_enter_the_table() {
    let world = World::new();
    let feed = SourceFeed { schema_policy: SchemaPolicy::Add, ..stock() };
    let good = |offset: i64| change_of(offset, &json!({"id": offset, "code": 7}));
    let bad = |offset: i64| change_of(offset, &json!({"id": offset, "code": "A-7", "typo": 1, "extra": 2}));
    world.drop_file("in/1.jsonl", [good(0), bad(1), good(2)].concat()).await;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 1));
    assert!(!report.notes.iter().any(|note| note.contains("typo")), "{:?}", report.notes);
    // in the same process, slice by slice: what was forgotten comes back with the first row that has it, positions go on
    let mut options = world.options();
    options.slice_records = 2;
    let extra = change_of(6, &json!({"id": 6, "code": 7, "extra": 5}));
    world.drop_file("in/2.jsonl", [good(3), bad(4), good(5), extra, good(0)].concat()).await;
    let report = world.run_with(std::slice::from_ref(&feed), &options).await.remove(0);
    assert_eq!((report.error, report.rows_out, report.rows_quarantined), (None, 4, 1));
    let rows = world.columns("bronze.stock", &["_offset", "id", "extra"]).await;
    let expected =
        [json!([0, 0, null]), json!([0, 0, null]), json!([2, 2, null]), json!([3, 3, null]), json!([5, 5, null]), json!([6, 6, 5])];
    assert_eq!(rows, expected);
    let table = world.lake().table(&feed.table).await.unwrap().unwrap();
    let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).filter(|name| !name.starts_with('_')).collect();
    assert_eq!(names, ["id", "code", "extra"]);
    let before = table.columns().iter().find(|column| column.name == "_before").unwrap();
    let tributary_specs::DataType::Struct(fields) = &before.data_type else { panic!("{before:?}") };
    assert_eq!(fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["id", "code", "extra"]);
}
