//! The cases of `tests/cases/handed.jsonl` that are about types and order, from the bytes a connector sends for them.

use serde_json::{Value, json};
use tributary_specs::Decode;

use crate::feeds::{columns, feed};
use crate::message::{cells, create, decode, envelope, event};
use crate::types::{named, typed};

fn case(id: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/handed.jsonl");
    let cases = std::fs::read_to_string(path).unwrap();
    let cases = cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.into_iter().find(|case| case["id"] == id).unwrap()
}

#[test]
fn dbzt_01_the_sign_of_a_decimal_is_extended() {
    let case = case("DBZT-01");
    let field = &case["input"]["schema_field"];
    let schema = json!({"type": "bytes", "name": field["name"],
        "parameters": {"scale": field["scale"].to_string(), "connect.decimal.precision": field["precision"].to_string()}});
    let values = case["input"]["values"].as_object().unwrap();
    let (data_type, decoded) = typed(&schema, &values.values().cloned().collect::<Vec<_>>());
    assert_eq!(data_type, "decimal(12,2)");
    assert_eq!(decoded, values.keys().map(String::as_str).collect::<Vec<_>>());
    for wanted in case["expected"]["decoded"].as_array().unwrap() {
        assert!(decoded.iter().any(|value| *wanted == **value), "{wanted}");
    }
}

#[test]
fn dbzt_04_dates_with_a_month_or_day_zero_are_null_and_noted_and_epoch_zero_is_a_date() {
    for event_of in case("DBZT-04")["input"]["events"].as_array().unwrap() {
        let value = &event_of["value"];
        let (schema, expected) = match event_of["col"].as_str().unwrap() {
            "timestamp text" => (named("string", "io.debezium.time.ZonedTimestamp"), "∅"),
            _ if value.is_null() => (named("int32", "io.debezium.time.Date"), "∅"),
            _ => (named("int32", "io.debezium.time.Date"), "1970-01-01"),
        };
        assert_eq!(typed(&schema, std::slice::from_ref(value)).1, [expected], "{event_of}");
    }
    let zero = decode(
        &feed(Decode::Debezium, columns("id long\nat timestamp")),
        &[event(1, None, Some(&create(1, &json!({"id": 1, "at": "2024-01-00 10:00:00"}))))],
    );
    assert_eq!(cells(&zero.batch, "_rescued_data"), [r#"{"at":"2024-01-00 10:00:00"}"#]);
    assert!(zero.notes.keys().any(|note| note.contains("zero date")), "{:?}", zero.notes);
}

#[test]
fn dbzt_05_times_without_zone_stay_without_and_instants_are_instants() {
    let case = case("DBZT-05");
    for field in case["input"]["schema"].as_array().unwrap() {
        let (name, value) = (field["f"].as_str().unwrap(), &field["value"]);
        let kind = if value.is_string() { "string" } else { "int64" };
        let (data_type, values) = typed(&named(kind, field["name"].as_str().unwrap()), std::slice::from_ref(value));
        assert_eq!(case["expected"]["types"][name], *data_type, "{name}");
        let (expected, found) = (case["expected"]["values"][name].as_str().unwrap().replace(' ', "T"), &values[0]);
        // Fractions of a second are written in threes.
        let plain = |text: &str| text.trim_end_matches('Z').trim_end_matches("00").to_owned();
        assert_eq!(plain(found), plain(&expected), "{name}");
        assert_eq!(found.ends_with('Z'), data_type == "timestamp", "{name}");
    }
}

#[test]
fn dbzt_07_a_set_has_one_form_and_an_empty_label_is_kept() {
    let columns_of = |name: &str| match name {
        "color" => json!({"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "red,green"}}),
        _ => json!({"type": "string", "name": "io.debezium.data.EnumSet", "parameters": {"allowed": "a,b,c"}}),
    };
    let case = case("DBZT-07");
    let events = case["input"]["events"].as_array().unwrap();
    for (name, expected) in [("color", ["green", "green", ""]), ("tags", ["a,c", "a,c", ""])] {
        let values: Vec<Value> = events.iter().map(|event| event["after"][name].clone()).collect();
        assert_eq!(typed(&columns_of(name), &values).1, expected, "{name}");
    }
}

#[test]
fn dbzt_09_a_time_that_was_never_set_is_null_and_not_epoch_zero() {
    let case = case("DBZT-09");
    let values: Vec<Value> = case["input"]["events"].as_array().unwrap().iter().map(|event| event["paid_at"].clone()).collect();
    let feed = feed(Decode::Debezium, columns("id long\npaid_at timestamp_ntz"));
    let events: Vec<_> =
        values.iter().zip(1i64..).map(|(value, id)| event(id, None, Some(&create(id, &json!({"id": id, "paid_at": value}))))).collect();
    assert_eq!(cells(&decode(&feed, &events).batch, "paid_at"), ["∅", "2026-02-03T00:00:00"]);
}

#[test]
fn kafka_05_a_number_is_a_time_only_in_the_unit_that_was_declared() {
    let case = case("KAFKA-05");
    let sent = case["input"]["events"].as_array().unwrap();
    let events: Vec<_> = sent.iter().zip(0i64..).map(|(value, at)| event(at, None, Some(value))).collect();
    let taken = |encoding: &str| {
        let decoded = decode(&feed(Decode::Json, columns(&format!("id long\nat timestamp{encoding}"))), &events);
        let refused: Vec<usize> = decoded.rejects.iter().map(|reject| reject.index + 1).collect();
        let times: Vec<_> = cells(&decoded.batch, "id").into_iter().zip(cells(&decoded.batch, "at")).collect();
        (times.iter().map(|(id, at)| format!("{id} {at}")).collect::<Vec<_>>(), refused)
    };
    let undeclared = decode(&feed(Decode::Json, columns("id long\nat timestamp")), &events);
    let stop = undeclared.stop.expect("a number without a unit stops the feed").to_string();
    assert!(stop.contains("column at") && stop.contains("offset 2") && stop.contains("millis, micros, nanos, iso"), "{stop}");
    let at = |id: usize| format!("{id} 2026-02-03T10:00:00Z");
    assert_eq!(taken(" iso"), (vec![at(1), at(2), at(6)], vec![3, 4, 5, 7]));
    for (unit, right, far) in [("millis", 3, 2), ("micros", 4, 2)] {
        let (times, refused) = taken(&format!(" {unit}"));
        assert!(times.contains(&at(right)) && refused == [7], "{unit}: {times:?}, {refused:?}");
        let decoded = decode(&feed(Decode::Json, columns(&format!("id long\nat timestamp {unit}"))), &events);
        let note = "column at: moments before 1971 or after 2100; is its encoding right?".to_owned();
        assert_eq!(decoded.notes, [(note, far)].into(), "numbers in another unit than the declared one are noted");
    }
}

/// What the connector makes of rows of a change table: an update of its two rows, a key change of a delete and a create.
fn envelopes(rows: &[Value]) -> Vec<Value> {
    let lsn = |text: &Value| {
        let digits: String = text.as_str().unwrap().chars().filter(char::is_ascii_hexdigit).collect();
        format!("{:0>8}:{:0>8}:0001", &digits[..2], &digits[2..])
    };
    let row = |row: &Value| json!({"id": row["id"], "v": row["v"]});
    let mut old = Value::Null;
    let mut envelopes = Vec::new();
    for change in rows {
        let operation = change["op"].as_i64().unwrap();
        let serial = if matches!(operation, 2 | 4) { 2 } else { 1 };
        let source = json!({"connector": "sqlserver", "db": "shop", "schema": "dbo", "table": "t", "ts_ms": 1_770_112_800_000i64,
            "commit_lsn": lsn(&change["start_lsn"]), "change_lsn": lsn(&change["seqval"]), "event_serial_no": serial});
        match operation {
            3 => old = row(change),
            4 => envelopes.push(envelope("u", &old, &row(change), &source)),
            1 => envelopes.push(envelope("d", &row(change), &Value::Null, &source)),
            _ => envelopes.push(envelope("c", &Value::Null, &row(change), &source)),
        }
    }
    envelopes
}

#[test]
fn mssql_03_changes_of_one_commit_are_ordered_by_their_place_in_it() {
    let case = case("MSSQL-03");
    let changes = envelopes(case["input"]["change_rows"].as_array().unwrap());
    let events: Vec<_> = changes.iter().zip(0i64..).map(|(change, at)| event(at, None, Some(change))).collect();
    let decoded = decode(&feed(Decode::Debezium, columns("id long\nv string")), &events);
    assert_eq!(cells(&decoded.batch, "_op"), ["update", "delete", "create"]);
    assert_eq!(cells(&decoded.batch, "v"), ["new", "new", "new"], "the old row of an update is no value");
    assert_eq!(cells(&decoded.batch, "_before"), ["{id: 1, v: old}", "{id: 1, v: new}", "∅"]);
    let positions = cells(&decoded.batch, "_position");
    assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    let last = cells(&decoded.batch, "id").pop();
    assert_eq!(last.as_deref(), Some(case["expected"]["silver_rows"][0]["id"].to_string().as_str()));
}
