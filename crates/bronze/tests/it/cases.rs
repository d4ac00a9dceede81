//! Problems from the field, by their ids.

use serde_json::{Value, json};

use crate::world::{World, feed, recorded};

fn csv(null_text: Option<&str>, columns: Value) -> tributary_specs::SourceFeed {
    let csv = null_text.map_or_else(|| json!({}), |text| json!({"null_text": text}));
    feed(json!({
        "name": "a", "table": "bronze.a", "decode": "csv", "columns": columns,
        "source": {"files": {"path": "in", "format": "csv", "csv": csv}},
    }))
}

fn abc() -> Value {
    json!([{"name": "id", "type": "integer"}, {"name": "a", "type": "string"}, {"name": "b", "type": "string"}])
}

const FILE_01: &str = "id,a,b\r\n1,\"\",\r\n2,NULL,\"NULL\"\r\n3,x,\" y \"\r\n";

#[tokio::test]
async fn file_01_an_empty_field_an_empty_quoted_field_and_the_word_null_differ() {
    let world = World::new();
    world.drop_file("in/a.csv", FILE_01).await;
    let report = world.run_one(&csv(None, abc())).await;
    assert_eq!((report.rows_in, report.rows_out), (3, 3));
    let rows = world.columns("bronze.a", &["id", "a", "b"]).await;
    assert_eq!(rows, [json!([1, "", null]), json!([2, "NULL", "NULL"]), json!([3, "x", " y "])]);
}

#[tokio::test]
async fn file_01_a_null_text_can_be_set_and_is_text_inside_quotes() {
    let world = World::new();
    world.drop_file("in/a.csv", FILE_01).await;
    world.run_one(&csv(Some("NULL"), abc())).await;
    let rows = world.columns("bronze.a", &["id", "a", "b"]).await;
    assert_eq!(rows, [json!([1, "", null]), json!([2, null, "NULL"]), json!([3, "x", " y "])]);
}

#[tokio::test]
async fn file_03_a_line_break_inside_quotes_is_part_of_the_field() {
    let world = World::new();
    world.drop_file("in/a.csv", "id,note\n1,\"first\nsecond\"\n2,\"say \"\"hi\"\"\"\n3,\"a,b\"\n").await;
    let columns = json!([{"name": "id", "type": "integer"}, {"name": "note", "type": "string"}]);
    world.run_one(&csv(None, columns)).await;
    let rows = world.columns("bronze.a", &["id", "note", "_line"]).await;
    assert_eq!(rows, [json!([1, "first\nsecond", 2]), json!([2, "say \"hi\"", 4]), json!([3, "a,b", 5])]);
}

#[tokio::test]
async fn file_03_an_unclosed_quote_on_the_last_line_goes_to_quarantine_and_the_rest_loads() {
    let world = World::new();
    world.drop_file("in/a.csv", "id,note\n1,ok\n2,\"open\n").await;
    let columns = json!([{"name": "id", "type": "integer"}, {"name": "note", "type": "string"}]);
    let report = world.run_one(&csv(None, columns)).await;
    assert_eq!((report.rows_in, report.rows_out, report.rows_quarantined), (2, 1, 1));
    assert_eq!(world.columns("bronze.a", &["id"]).await, [json!([1])]);
    let refused = world.columns("quarantine.a", &["reason", "file", "line"]).await;
    assert_eq!(refused, [json!(["csv_unclosed_quote", "in/a.csv", 3])]);
}

#[tokio::test]
async fn file_05_a_record_time_below_1e11_is_seconds() {
    let world = World::new();
    let line = json!({"key": "YTE=", "value": "{\"id\":5,\"note\":\"start\"}", "topic": "workout", "partition": 1, "offset": 14, "timestamp": 1_700_000_000});
    world.drop_file("in/a.jsonl", format!("{line}\n")).await;
    world.run_one(&recorded("a", "in", &["workout"])).await;
    assert_eq!(world.columns("bronze.a", &["_event_time"]).await, [json!(["2023-11-14T22:13:20Z"])]);
}

#[tokio::test]
async fn file_07_coordinates_inside_a_recorded_record_are_data_not_identity() {
    let world = World::new();
    let lines: String = [(14, 5, "start"), (14, 6, "start"), (9, 5, "stop")]
        .iter()
        .map(|(offset, id, note)| {
            let line = json!({"topic": "workout", "partition": 1, "offset": offset, "timestamp": 1_700_000_000, "value": json!({"id": id, "note": note}).to_string()});
            format!("{line}\n")
        })
        .collect();
    world.drop_file("in/a.jsonl", lines).await;
    let report = world.run_one(&recorded("a", "in", &[])).await;
    assert_eq!(report.rows_out, 3);
    let rows = world.columns("bronze.a", &["_offset", "id", "note", "_line"]).await;
    assert_eq!(rows, [json!([14, 5, "start", 1]), json!([14, 6, "start", 2]), json!([9, 5, "stop", 3])]);
}

#[tokio::test]
async fn kafka_03_one_bad_record_takes_no_neighbour_with_it() {
    let world = World::new();
    let values =
        ["{\"id\":1,\"qty\":2}", "{\"id\":2,\"qty\":", "{\"id\":\"three\",\"qty\":4}", "{\"id\":4,\"qty\":5}", "\u{fffd}\u{0}binary"];
    let lines: String = values
        .iter()
        .enumerate()
        .map(|(offset, value)| {
            format!("{}\n", json!({"topic": "t", "partition": 0, "offset": offset, "key": (offset + 1).to_string(), "value": value}))
        })
        .collect();
    world.drop_file("in/a.jsonl", lines).await;
    let a = feed(json!({
        "name": "a", "table": "bronze.a", "decode": "json", "source": {"files": {"path": "in", "format": "kafka_jsonl"}},
        "columns": [{"name": "id", "type": "integer"}, {"name": "qty", "type": "integer"}],
    }));
    let report = world.run_one(&a).await;
    assert_eq!((report.rows_in, report.rows_out, report.rows_quarantined), (5, 2, 3));
    assert_eq!(world.columns("bronze.a", &["id", "qty"]).await, [json!([1, 2]), json!([4, 5])]);
    let refused = world.columns("quarantine.a", &["topic", "partition", "offset", "reason"]).await;
    assert_eq!(refused, [json!(["t", 0, 1, "broken_json"]), json!(["t", 0, 2, "wrong_type"]), json!(["t", 0, 4, "broken_json"])]);
    assert!(world.rows("quarantine.a").await.iter().all(|row| row["value"].is_string() && row["key"].is_string()));
    assert_eq!(world.run_one(&a).await.rows_in, 0);
}
