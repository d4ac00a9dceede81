//! Records in quarantine become rows when the feed's declaration comes to hold them.

use std::sync::Arc;

use serde_json::{Value, json};
use tributary_bronze::{Requeued, requeue};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::{DataType, SchemaPolicy, SourceFeed, Status};
use tributary_testkit::{KillPoints, Rule, ScriptedFault, crash};

use crate::custom::Memory;
use crate::world::{World, feed, json_lines, record};

/// A change of MySQL's `stock`, as Debezium sends it: offset 1 is the code that no integer holds, between two that are.
fn change(offset: i64, code: &Value) -> String {
    change_of(offset, &json!({"id": offset + 1, "code": code}))
}

/// The same of a whole row.
pub fn change_of(offset: i64, row: &Value) -> String {
    let source = json!({
        "connector": "mysql", "name": "inv", "db": "inv", "table": "stock", "file": "bin.000007", "pos": 10 * (offset + 1), "row": 0,
        "server_id": 1, "ts_ms": 1_770_112_800_000_i64 + offset, "snapshot": "false",
    });
    record("inv.stock", offset, &json!({"before": null, "after": row, "source": source, "op": "c", "ts_ms": 0}))
}

/// The feed with `code` declared as an integer.
pub fn stock() -> SourceFeed {
    feed(json!({
        "name": "stock", "table": "bronze.stock", "decode": "debezium", "keys": ["id"], "schema_policy": "widen",
        "source": {"files": {"path": "in", "format": "kafka_jsonl"}},
        "columns": [{"name": "id", "type": "long"}, {"name": "code", "type": "integer"}],
    }))
}

/// And as text.
fn as_text() -> SourceFeed {
    let mut feed = stock();
    feed.columns[1].data_type = DataType::String;
    feed
}

/// Three changes, of which the second is in quarantine, as is one that no declaration can save.
async fn quarantined() -> World {
    let world = World::new();
    let bad = record("inv.stock", 3, &json!("no change"));
    world.drop_file("in/1.jsonl", [change(0, &json!(7)), change(1, &json!("A-7")), change(2, &json!(9)), bad].concat()).await;
    let report = world.run_one(&stock()).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 2));
    world
}

async fn requeued(world: &World, feed: &SourceFeed, reason: Option<&str>, dry_run: bool) -> Requeued {
    requeue(&world.lake(), feed, reason, dry_run, &world.options()).await.unwrap()
}

/// Rows by their place, and the open records by theirs.
async fn see(world: &World) -> (Vec<Value>, Vec<Value>) {
    let rows = world.columns("bronze.stock", &["_position", "_offset", "_line", "id", "code"]).await;
    let open = world.rows("quarantine.stock").await.into_iter().filter(|row| row.get("superseded_at").is_none_or(Value::is_null));
    (rows, open.map(|row| json!([row["line"], row["reason"]])).collect())
}

fn position(offset: i64) -> String {
    format!("000000/{:010}/{:020}/{:010}", 7, 10 * (offset + 1), 0)
}

#[tokio::test]
async fn dbzs_11_a_widened_declaration_rewrites_the_table_and_the_quarantined_change_lands_at_its_own_place() {
    let world = quarantined().await;
    let refused = world.rows("quarantine.stock").await;
    let message = refused.iter().find(|row| row["line"] == 2).unwrap()["message"].as_str().unwrap();
    assert!(message.contains("column code of type integer"), "{message}");

    let report = world.run_one(&as_text()).await;
    assert_eq!((report.status, report.rows_in, report.commits), (Status::Committed, 0, 1), "{report:?}");
    assert!(report.notes.iter().any(|note| note.contains("widened code to string")), "{:?}", report.notes);
    assert_eq!(world.run_one(&as_text()).await.status, Status::NothingNew);
    let (rows, _) = see(&world).await;
    assert_eq!(rows, [json!([position(0), 0, 1, 1, "7"]), json!([position(2), 2, 3, 3, "9"])]);

    let versions = world.versions().await;
    let dry = requeued(&world, &as_text(), None, true).await;
    assert_eq!((dry.records, dry.rows, dry.left.values().sum::<u64>(), dry.version), (2, 1, 1, None), "{dry:?}");
    assert_eq!(world.versions().await, versions, "a dry run writes nothing");

    let done = requeued(&world, &as_text(), None, false).await;
    assert_eq!((done.records, done.rows, done.left.values().sum::<u64>()), (2, 1, 1), "{done:?}");
    assert!(done.version.is_some());
    let (rows, open) = see(&world).await;
    assert_eq!(rows, [json!([position(0), 0, 1, 1, "7"]), json!([position(1), 1, 2, 2, "A-7"]), json!([position(2), 2, 3, 3, "9"])]);
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(world.rows("quarantine.stock").await.len(), 2, "marked, not removed");

    let versions = world.versions().await;
    let again = requeued(&world, &as_text(), None, false).await;
    assert_eq!((again.records, again.rows), (1, 0), "{again:?}");
    assert_eq!(world.versions().await, versions, "and it lands once");
    assert_eq!(world.run_one(&as_text()).await.status, Status::NothingNew);
}

#[tokio::test]
async fn a_requeue_meets_the_changed_declaration_by_itself_and_a_dry_one_tells_what_it_would_come_to() {
    let world = quarantined().await;
    let versions = world.versions().await;
    assert_eq!(requeued(&world, &as_text(), None, true).await.rows, 1);
    assert_eq!(world.versions().await, versions);
    let done = requeued(&world, &as_text(), None, false).await;
    assert_eq!(done.rows, 1);
    assert!(done.notes.iter().any(|note| note.contains("widened code to string")), "{:?}", done.notes);
    assert_eq!(see(&world).await.0.len(), 3);
}

#[tokio::test]
async fn only_records_of_the_reason_asked_for_are_decoded_again() {
    let world = quarantined().await;
    assert_eq!(requeued(&world, &as_text(), Some("no_such_reason"), false).await.records, 0);
    let done = requeued(&world, &as_text(), Some("wrong_type"), false).await;
    assert_eq!((done.records, done.rows), (1, 1), "{done:?}");
}

#[tokio::test]
async fn what_still_does_not_decode_stays_and_is_counted_by_todays_reason() {
    let world = quarantined().await;
    let done = requeued(&world, &stock(), None, false).await;
    assert_eq!((done.records, done.rows, done.version), (2, 0, None), "{done:?}");
    assert_eq!(done.left.get("wrong_type"), Some(&1), "{done:?}");
    assert_eq!(see(&world).await.1.len(), 2);
}

#[tokio::test]
async fn a_declaration_that_the_policy_does_not_follow_is_named_with_what_may_be_typed() {
    for policy in [SchemaPolicy::Add, SchemaPolicy::Freeze, SchemaPolicy::Rescue, SchemaPolicy::Quarantine] {
        let world = World::new();
        let mut feed = json_lines("a", "in");
        feed.schema_policy = policy;
        world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
        world.run_one(&feed).await;
        feed.columns[0].data_type = DataType::String;
        let report = world.run_one(&feed).await;
        let note = report.notes.iter().find(|note| note.contains("column id is declared string and is long in the table"));
        assert!(note.is_some_and(|note| note.contains("schema_policy: widen")), "{policy:?}: {:?}", report.notes);
        assert_eq!(report.status, Status::NothingNew);
    }
}

#[tokio::test]
async fn a_record_that_bronze_has_not_read_past_is_left_to_the_next_run() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/0.jsonl", "{\"id\":0}\n").await;
    world.run_one(&feed).await;
    world.drop_file("in/1.jsonl", "{\"id\":1}\n{\"id\":\"two\"}\n").await;
    world.lake_store.fail(Rule::delta_commit().on("bronze/a/_delta_log/00000000000000000002"), 1, ScriptedFault::Denied);
    assert_eq!(world.run(std::slice::from_ref(&feed)).await[0].status, Status::Failed);
    let mut text = feed.clone();
    text.columns[0].data_type = DataType::String;
    text.schema_policy = SchemaPolicy::Widen;
    let done = requeued(&world, &text, None, false).await;
    assert_eq!((done.rows, done.left.get("not_read_past_yet")), (0, Some(&1)), "{done:?}");
    let report = world.run_one(&text).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 0));
    assert_eq!(requeued(&world, &text, None, false).await.records, 0);
    assert_eq!(world.columns("bronze.a", &["id"]).await, [json!(["0"]), json!(["1"]), json!(["two"])]);
}

#[tokio::test]
async fn a_record_of_a_source_with_offsets_lands_at_its_offset() {
    let world = World::new();
    let mut source = feed(json!({
        "name": "a", "table": "bronze.a", "decode": "json", "source": {"custom": "memory"}, "schema_policy": "widen",
        "columns": [{"name": "id", "type": "long"}],
    }));
    let mut options = world.options();
    let records = [json!({"id": 1}), json!({"id": "two"}), json!({"id": 3})];
    options.sources = vec![Memory::with(vec![(0, records.map(Some).into())])];
    let report = world.run_with(std::slice::from_ref(&source), &options).await.remove(0);
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 1), "{report:?}");
    source.columns[0].data_type = DataType::String;
    let done = requeue(&world.lake(), &source, None, false, &options).await.unwrap();
    assert_eq!(done.rows, 1, "{done:?}");
    let rows = world.columns("bronze.a", &["_topic", "_offset", "id"]).await;
    assert_eq!(rows, [json!(["m", 0, "1"]), json!(["m", 1, "two"]), json!(["m", 2, "3"])]);
    let after = world.run_with(std::slice::from_ref(&source), &options).await.remove(0);
    assert_eq!(after.status, Status::NothingNew);
}

/// A feed of CSV files into `bronze.a`, with `code` declared as an integer.
fn sheets(header: bool) -> SourceFeed {
    feed(json!({
        "name": "a", "table": "bronze.a", "decode": "csv", "schema_policy": "widen",
        "source": {"files": {"path": "in", "format": "csv", "csv": {"header": header}}},
        "columns": [{"name": "id", "type": "long"}, {"name": "code", "type": "integer"}],
    }))
}

#[tokio::test]
async fn csv_records_keep_the_names_of_their_fields_whatever_the_order_of_columns_in_their_file() {
    let world = World::new();
    let mut feed = sheets(true);
    world.drop_file("in/1.csv", "id,code\n1,7\n2,A-7\n").await;
    world.drop_file("in/2.csv", "code,id\nB-8,3\n9,4\n").await;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 2), "{report:?}");
    let open = world.rows("quarantine.a").await;
    assert!(open.iter().any(|row| row["headers"] == json!([{"key": "code"}, {"key": "id"}])), "{open:?}");
    feed.columns[1].data_type = DataType::String;
    let done = requeued(&world, &feed, None, false).await;
    assert_eq!((done.records, done.rows), (2, 2), "{done:?}");
    let rows = world.columns("bronze.a", &["_file", "_line", "id", "code"]).await;
    let row = |file: &str, line: i64, id: i64, code: &str| json!([file, line, id, code]);
    assert_eq!(rows, [row("in/1.csv", 2, 1, "7"), row("in/1.csv", 3, 2, "A-7"), row("in/2.csv", 2, 3, "B-8"), row("in/2.csv", 3, 4, "9")]);
    assert_eq!(world.run_one(&feed).await.status, Status::NothingNew);
}

#[tokio::test]
async fn a_csv_record_without_the_names_of_its_fields_stays_and_says_so() {
    let world = World::new();
    world.drop_file("in/1.csv", "1,7\n2,A-7\n").await;
    assert_eq!(world.run_one(&sheets(false)).await.rows_quarantined, 1);
    let done = requeued(&world, &sheets(true), None, false).await;
    assert_eq!((done.rows, done.left.get("csv_header_not_kept")), (0, Some(&1)), "{done:?}");
}

#[tokio::test]
async fn a_requeued_record_is_once_in_bronze_or_once_open_whatever_call_the_requeue_is_killed_at() {
    let world = quarantined().await;
    let prepared = InMemory::new();
    copy(world.lake_store.inner().as_ref(), &prepared).await;
    let data = world.data_store.inner();
    let process = |store: Arc<dyn ObjectStore>| World::over(store, Arc::clone(&data));
    let report = crash(
        KillPoints::All,
        async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
        async |store| {
            let world = process(store);
            requeue(&world.lake(), &as_text(), None, false, &world.options()).await.map(|_| ())
        },
        async |store| see(&process(store)).await,
    )
    .await;
    println!("{report}");
    assert!(report.holds() && report.kills > 12, "{report}\n{}", report.differences.join("\n"));
}

async fn copy(from: &dyn ObjectStore, to: &InMemory) {
    use futures::TryStreamExt;
    use tributary_lake::object_store::ObjectStoreExt;
    let objects: Vec<_> = from.list(None).try_collect().await.unwrap();
    for object in objects {
        to.put(&object.location, from.get(&object.location).await.unwrap().bytes().await.unwrap().into()).await.unwrap();
    }
}

#[tokio::test]
async fn of_two_requeues_at_once_each_record_lands_once() {
    let world = quarantined().await;
    let feed = as_text();
    world.run_one(&feed).await;
    let (one, other) = (world.lake(), world.lake());
    let options = world.options();
    let (left, right) = tokio::join!(requeue(&one, &feed, None, false, &options), requeue(&other, &feed, None, false, &options));
    assert_eq!(left.unwrap().rows + right.unwrap().rows, 1);
    assert_eq!(see(&world).await.0.len(), 3);
    assert_eq!(see(&world).await.1.len(), 1);
}
