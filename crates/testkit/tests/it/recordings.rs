//! The recordings are read whole, and the oracle replays each of them to its database's final state.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use serde_json::Value as Json;
use tributary_testkit::Value;
use tributary_testkit::captures::{self, Capture, CapturedRecord, ExpectedTable};
use tributary_testkit::oracle::{Event, Kind, Model};
use tributary_testkit::strategy::UNAVAILABLE;

#[test]
fn all_sixteen_recordings_are_there_with_their_events_and_tables() {
    let counted: Vec<(String, usize, usize)> = captures::names()
        .iter()
        .map(|name| captures::load(name))
        .map(|capture| (capture.name, capture.records.len(), capture.tables.len()))
        .collect();
    assert_eq!(counted.len(), 16);
    let of = |name: &str| counted.iter().find(|one| one.0 == name).map(|one| (one.1, one.2));
    assert_eq!(of("postgres-big-workload"), Some((20_001, 3)));
    assert_eq!(of("postgres-json-default"), Some((307, 3)));
    assert_eq!(of("mysql-unwrap-rewrite"), Some((268, 2)));
}

#[test]
fn the_oracle_replays_every_envelope_recording_to_the_final_state_of_its_database() {
    let mut differing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut compared = 0;
    for name in captures::names().iter().filter(|name| !name.contains("unwrap")) {
        let capture = captures::load(name);
        for (table, expected) in capture.tables.iter().filter(|(_, expected)| !expected.primary_key.is_empty()) {
            let found = replay(&capture, table, expected);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected_rows(expected).keys().collect::<Vec<_>>(), "keys of {table} in {name}");
            for (key, row) in expected_rows(expected) {
                for column in comparable(expected) {
                    compared += 1;
                    if found[&key].get(column).cloned().flatten() != row[column] {
                        differing.entry(format!("{name} {table}")).or_default().insert(column.clone());
                    }
                }
            }
        }
    }
    // What the source's or the converter's own settings lost; the README's points 5, 6 and 11.
    let lost: Vec<String> =
        differing.iter().map(|(table, columns)| format!("{table}: {}", columns.iter().cloned().collect::<Vec<_>>().join(", "))).collect();
    println!("{compared} cells compared");
    assert!(compared > 36_000, "{compared}");
    tributary_testkit::assert_golden!("tests/golden/lost_by_the_source.txt", lost.join("\n") + "\n");
}

/// Columns whose JSON text is the server's own text.
fn comparable(table: &ExpectedTable) -> impl Iterator<Item = &String> {
    let plain = ["bigint", "integer", "smallint", "text", "character varying", "varchar", "int("];
    table
        .columns
        .iter()
        .filter(move |column| !column.type_text.ends_with("[]") && plain.iter().any(|start| column.type_text.starts_with(start)))
        .map(|column| &column.name)
}

type Rows = BTreeMap<Vec<Option<String>>, BTreeMap<String, Option<String>>>;

fn expected_rows(table: &ExpectedTable) -> Rows {
    table.rows.iter().map(|row| (table.primary_key.iter().map(|key| row[key].clone()).collect(), row.clone())).collect()
}

fn replay(capture: &Capture, table: &str, expected: &ExpectedTable) -> Rows {
    let mut columns: Vec<String> = expected.columns.iter().map(|column| column.name.clone()).collect();
    columns.sort();
    let model = Model::new(&expected.primary_key, &columns);
    let of_table = |record: &&CapturedRecord| record.topic.rsplit('.').next() == Some(table) && record.topic.matches('.').count() == 2;
    let mut last = BTreeMap::new();
    let events: Vec<Event> = capture.records.iter().filter(of_table).filter_map(|record| event(record, &model, &mut last)).collect();
    let types: BTreeMap<&String, &String> = expected.columns.iter().map(|column| (&column.name, &column.type_text)).collect();
    model
        .scd1(&events)
        .iter()
        .map(|row| {
            let row: BTreeMap<String, Option<String>> =
                columns.iter().zip(row).map(|(name, value)| (name.clone(), server_text(value, types[name]))).collect();
            (model.keys.iter().map(|key| row[key].clone()).collect(), row)
        })
        .collect()
}

/// What the server would print. An unsigned 64-bit number comes wrapped to a negative one, or as base64 of its digits.
fn server_text(value: &Value, type_text: &str) -> Option<String> {
    let unsigned = type_text.starts_with("bigint") && type_text.ends_with("unsigned");
    match value {
        Value::Null => None,
        Value::Int(whole) if unsigned && *whole < 0 => Some((whole + (1 << 64)).to_string()),
        Value::Text(text) if unsigned => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
            Some(bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte)).to_string())
        }
        Value::Text(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The event of a record; none for tombstones. Rows without a position take the last one of their partition.
fn event(record: &CapturedRecord, model: &Model, last: &mut BTreeMap<i32, String>) -> Option<Event> {
    let payload = |text: &str| {
        let json: Json = serde_json::from_str(text).expect("JSON");
        if json.get("schema").is_some() && json.get("payload").is_some() { json["payload"].clone() } else { json }
    };
    let value = payload(record.value.as_ref()?);
    let source = &value["source"];
    let position = match (source["lsn"].as_u64(), source["file"].as_str()) {
        (Some(lsn), _) => {
            let parts: Vec<Option<String>> = serde_json::from_str(source["sequence"].as_str().expect("a sequence")).expect("two numbers");
            let committed: u64 = parts[0].as_deref().map_or(0, |text| text.parse().expect("a number"));
            format!("{committed:020}/{lsn:020}")
        }
        (None, Some(file)) => {
            let suffix: u64 = file.rsplit('.').next().and_then(|text| text.parse().ok()).expect("a binlog number");
            format!("{suffix:010}/{:020}/{:010}", source["pos"].as_u64().expect("a place"), source["row"].as_u64().expect("a row"))
        }
        (None, None) => last.get(&record.partition).cloned().unwrap_or_default(),
    };
    last.insert(record.partition, position.clone());
    let values = |json: &Json| model.keys.iter().map(|key| Value::from_json(&json[key])).collect::<Vec<_>>();
    let key = record.key.as_ref().map(|key| values(&payload(key))).unwrap_or_default();
    let kind = match value["op"].as_str() {
        Some("d") => Kind::Delete,
        Some("t") => Kind::Truncate,
        _ => Kind::Upsert,
    };
    let after = value["after"].as_object().cloned().unwrap_or_default();
    let header = |name: &str| record.headers.iter().find(|(key, _)| key == name).map(|(_, json)| payload(json));
    Some(Event {
        kind,
        sequence: Some(Value::Text(position.clone())),
        position: Some(position),
        unavailable: after.iter().filter(|(_, value)| value.as_str() == Some(UNAVAILABLE)).map(|(name, _)| name.clone()).collect(),
        row: after.iter().map(|(name, value)| (name.clone(), Value::from_json(value))).collect(),
        moved_from: header("__debezium.oldkey").map(|key| values(&key)),
        key,
    })
}
