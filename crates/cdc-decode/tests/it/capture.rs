//! Recorded events and the final state of the tables they came from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use serde::Deserialize;
use tributary_cdc_decode::{Header, Record};

/// A recorded Kafka record that owns its bytes.
#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<String>,
    pub value: Option<String>,
    #[serde(default)]
    pub headers: Vec<EventHeader>,
    pub timestamp: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct EventHeader {
    pub key: String,
    pub value: Option<String>,
}

/// A source table's content after all events.
#[derive(Debug, Deserialize)]
pub struct Expected {
    pub primary_key: Vec<String>,
    pub columns: Vec<ExpectedColumn>,
    pub row_count: usize,
    pub rows: Vec<BTreeMap<String, Option<String>>>,
}

#[derive(Debug, Deserialize)]
pub struct ExpectedColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub sql_type: String,
}

#[derive(Debug, Deserialize)]
struct ExpectedFile {
    tables: BTreeMap<String, Expected>,
}

fn read(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debezium");
    let plain = folder.join(name);
    if plain.exists() {
        return std::fs::read_to_string(plain).unwrap();
    }
    let packed = std::fs::File::open(folder.join(format!("{name}.gz"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text
}

/// The events of a capture in the order they were emitted.
pub fn events(capture: &str) -> Vec<Event> {
    read(&format!("{capture}.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The final state of a capture's tables.
pub fn expected(capture: &str) -> BTreeMap<String, Expected> {
    let file: ExpectedFile = serde_json::from_str(&read(&format!("{capture}.expected.json"))).unwrap();
    file.tables
}

/// Every capture there is.
pub const ALL: [&str; 16] = [
    "mysql-json-default",
    "mysql-json-schema",
    "mysql-json-string-isostring",
    "mysql-unwrap-rewrite",
    "postgres-big-workload",
    "postgres-incremental-snapshot",
    "postgres-json-default",
    "postgres-json-default-dbz307",
    "postgres-json-double-connect",
    "postgres-json-schema",
    "postgres-json-schema-double-connect",
    "postgres-json-string-isostring",
    "postgres-null-default-nokey",
    "postgres-null-kept-nokey",
    "postgres-txmeta-heartbeat",
    "postgres-unwrap-rewrite",
];

/// Lends events to a decoder.
pub fn with_records<T>(events: &[Event], use_them: impl FnOnce(&[Record<'_>]) -> T) -> T {
    let headers: Vec<Vec<Header<'_>>> = events
        .iter()
        .map(|event| {
            event.headers.iter().map(|header| Header { key: &header.key, value: header.value.as_ref().map(String::as_bytes) }).collect()
        })
        .collect();
    let records: Vec<Record<'_>> = events
        .iter()
        .zip(&headers)
        .map(|(event, headers)| {
            let [key, value] = [&event.key, &event.value].map(|part| part.as_ref().map(String::as_bytes));
            Record { key, value, headers, timestamp_ms: event.timestamp, ..Record::at(&event.topic, event.partition, event.offset) }
        })
        .collect();
    use_them(&records)
}
