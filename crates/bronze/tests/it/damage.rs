//! Bad input: each has a clear error or lands in quarantine, nothing is lost, the next run goes on.

use serde_json::json;
use tributary_specs::{SourceFeed, Status};
use tributary_testkit::{Rule, ScriptedFault, Verb};

use crate::world::{BAD_INPUT, PARTIAL, World, code_of, exit_of, feed, gzip, json_lines, record, recorded};

fn csv(name: &str) -> SourceFeed {
    feed(json!({
        "name": name, "table": format!("bronze.{name}"), "decode": "csv", "source": {"files": {"path": "in", "format": "csv"}},
        "columns": [{"name": "id", "type": "integer"}, {"name": "note", "type": "string"}],
    }))
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let options = tributary_bronze::Options::new(tributary_bronze::DataRoot::local(folder.path().to_str().unwrap()).unwrap());
    let report = world.run_with(&[json_lines("a", "nowhere")], &options).await.remove(0);
    assert_eq!((report.status, exit_of(&report), code_of(&report)), (Status::Failed, BAD_INPUT, "BR0002"));
    let message = report.error.unwrap().message;
    assert!(message.contains("nowhere") && message.contains("feed a"), "{message}");
    assert!(world.versions().await.is_empty());
}

#[tokio::test]
async fn an_empty_file_is_nothing_and_writes_nothing() {
    let world = World::new();
    world.drop_file("in/a.jsonl", "").await;
    world.drop_file("in/b.jsonl.gz", gzip(b"")).await;
    let report = world.run_one(&json_lines("a", "in")).await;
    assert_eq!((report.status, report.rows_in), (Status::NothingNew, 0));
    assert!(world.versions().await.is_empty());
    world.drop_file("in/a.jsonl", "{\"id\":1}\n").await;
    assert_eq!(world.run_one(&json_lines("a", "in")).await.rows_out, 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_left_and_the_others_are_taken() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    world.drop_file("in/2.jsonl", "{\"id\":2}\n").await;
    world.data_store.fail(Rule::verbs([Verb::Get]).on("in/1.jsonl"), 1, ScriptedFault::Denied);
    let report = world.run(std::slice::from_ref(&feed)).await.remove(0);
    assert_eq!((report.status, exit_of(&report), code_of(&report), report.rows_out), (Status::Committed, BAD_INPUT, "BR0003", 1));
    assert_eq!(world.run_one(&feed).await.rows_out, 1);
}

#[tokio::test]
async fn a_cut_gzip_file_is_left_until_it_is_whole() {
    let world = World::new();
    let feed = json_lines("a", "in");
    let whole = gzip(b"{\"id\":1}\n{\"id\":2}\n");
    world.drop_file("in/1.jsonl.gz", whole[..whole.len() - 5].to_vec()).await;
    world.drop_file("in/2.jsonl", "{\"id\":3}\n").await;
    let report = world.run(std::slice::from_ref(&feed)).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report), report.rows_out), (PARTIAL, "BR0004", 1));
    world.drop_file("in/1.jsonl.gz", whole).await;
    assert_eq!(world.run_one(&feed).await.rows_out, 2);
}

#[tokio::test]
async fn a_repeated_header_name_is_refused_by_name_and_the_other_files_load() {
    let world = World::new();
    world.drop_file("in/1.csv", "id,Note,note\n1,a,b\n").await;
    world.drop_file("in/2.csv", "id,note\n2,b\n").await;
    let report = world.run(&[csv("a")]).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report), report.rows_out), (BAD_INPUT, "BR0006", 1));
    let message = report.error.unwrap().message;
    assert!(message.contains("in/1.csv") && message.contains("`note`") && message.contains("line 1"), "{message}");
}

#[tokio::test]
async fn a_byte_order_mark_is_passed_over_and_utf_16_is_refused() {
    let world = World::new();
    world.drop_file("in/1.csv", [b"\xef\xbb\xbf".as_slice(), b"id,note\n1,a\n"].concat()).await;
    world.drop_file("in/2.csv", b"\xff\xfei\0d\0".to_vec()).await;
    let report = world.run(&[csv("a")]).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report), report.rows_out), (BAD_INPUT, "BR0005", 1));
    assert_eq!(world.columns("bronze.a", &["id", "note"]).await, [json!([1, "a"])]);
}

#[tokio::test]
async fn records_with_a_wrong_number_of_fields_or_wrong_bytes_go_to_quarantine() {
    let world = World::new();
    let content = [b"id,note\n1,a\n2\n3,b,c\n4,".as_slice(), b"\xe9", b"\nfive,d\n6,\"e\"f\n7,g\n"].concat();
    world.drop_file("in/1.csv", content).await;
    let report = world.run_one(&csv("a")).await;
    assert_eq!((report.rows_in, report.rows_out, report.rows_quarantined), (7, 2, 5));
    assert_eq!(world.columns("bronze.a", &["id", "note"]).await, [json!([1, "a"]), json!([7, "g"])]);
    let lines: Vec<_> = world.columns("quarantine.a", &["line"]).await.into_iter().map(|row| row[0].as_i64().unwrap()).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn a_quarantine_row_keeps_bytes_place_and_reason() {
    let world = World::new();
    let bad = json!({"topic": "t", "partition": 3, "offset": 9, "key": "k", "value": "{\"id\":\"x\"}", "headers": [{"key": "h", "value": "v"}], "timestamp": 1_770_112_800_000_i64});
    world.drop_file("in/1.jsonl", format!("{bad}\nno record\n")).await;
    world.run_one(&recorded("a", "in", &[])).await;
    let rows = world.rows("quarantine.a").await;
    assert_eq!(rows.len(), 2);
    let row = rows.iter().find(|row| row["reason"] == "wrong_type").unwrap();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!((&row["key"], &row["value"]), (&json!(hex("k")), &json!(hex("{\"id\":\"x\"}"))));
    assert_eq!(
        (&row["topic"], &row["partition"], &row["offset"], &row["timestamp"]),
        (&json!("t"), &json!(3), &json!(9), &json!("2026-02-03T10:00:00Z"))
    );
    assert_eq!((&row["file"], &row["line"]), (&json!("in/1.jsonl"), &json!(1)));
    assert_eq!(row["headers"], json!([{"key": "h", "value": hex("v")}]));
    assert!(
        row["first_seen"].is_string() && row["decoder_version"].as_str().unwrap().starts_with("tributary ") && row["message"].is_string()
    );
    assert_eq!(row["content"].as_str().unwrap().len(), 64);
    let broken = rows.iter().find(|row| row["reason"] == "kafka_line").unwrap();
    assert_eq!((&broken["value"], &broken["line"]), (&json!(hex("no record")), &json!(2)));
}

#[tokio::test]
async fn a_format_that_does_not_go_with_its_decoding_is_refused_before_anything_is_read() {
    let world = World::new();
    let mut wrong = csv("a");
    wrong.decode = tributary_specs::Decode::Debezium;
    let report = world.run(&[wrong]).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0008"));
    assert!(world.data_store.calls().is_empty());
}

#[tokio::test]
async fn a_table_that_is_no_bronze_table_is_named() {
    let world = World::new();
    let name = tributary_specs::TableName::new("bronze", "a");
    let columns = vec![tributary_specs::Column::new("id", tributary_specs::DataType::Long)];
    world.lake().create(&tributary_specs::TableSpec::new(name, columns)).await.unwrap();
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    let report = world.run(&[json_lines("a", "in")]).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0013"));
}

#[tokio::test]
async fn a_read_only_warehouse_stops_with_what_to_change_and_the_next_run_goes_on() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    world.lake_store.fail(Rule::mutating(), 1, ScriptedFault::Denied);
    let report = world.run(std::slice::from_ref(&feed)).await.remove(0);
    assert_eq!((report.status, exit_of(&report)), (Status::Failed, BAD_INPUT));
    assert_eq!(world.run_one(&feed).await.rows_out, 1);
}

#[tokio::test]
async fn one_feed_that_stops_leaves_the_others_of_its_files_running() {
    let world = World::new();
    let mut strict = recorded("a", "in", &["t"]);
    strict.schema_policy = tributary_specs::SchemaPolicy::Freeze;
    let content = [record("t", 0, &json!({"id": 1, "new": 1})), record("u", 0, &json!({"id": 2}))].concat();
    world.drop_file("in/1.jsonl", content).await;
    let reports = world.run(&[strict, recorded("b", "in", &["u"])]).await;
    assert_eq!((exit_of(&reports[0]), code_of(&reports[0]), reports[0].rows_out), (BAD_INPUT, "CD0003", 0));
    assert_eq!((reports[1].error.clone(), reports[1].rows_out), (None, 1));
}

#[tokio::test]
async fn a_cancelled_run_says_so_and_the_next_one_takes_everything() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    let options = world.options();
    options.cancel.cancel();
    let report = world.run_with(std::slice::from_ref(&feed), &options).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report), report.rows_out), (PARTIAL, "BR0017", 0));
    assert_eq!(world.run_one(&feed).await.rows_out, 1);
}
