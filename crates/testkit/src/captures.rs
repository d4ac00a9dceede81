//! Recorded Debezium events and the tables they came from.
//!
//! `tests/fixtures/debezium/README.md` says how they were made and what they show.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value as Json;

/// One recording: the events in the order the connector emitted them, and the source's tables afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The file name without its endings.
    pub name: String,
    /// The events in the order they were emitted.
    pub records: Vec<CapturedRecord>,
    /// The server's version text.
    pub dumped_from: String,
    /// The source's tables after the last event, by name.
    pub tables: BTreeMap<String, ExpectedTable>,
}

/// One recorded Kafka record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedRecord {
    /// Its line in the file, from 1.
    pub line: i64,
    /// `<prefix>.<schema or database>.<table>`, or a side topic.
    pub topic: String,
    /// 0, or the murmur2 partition of the key.
    pub partition: i32,
    /// Counts up from 0 a topic and partition.
    pub offset: i64,
    /// The exact text; `None` is a null key.
    pub key: Option<String>,
    /// The exact text; `None` is a tombstone.
    pub value: Option<String>,
    /// Names and JSON texts.
    pub headers: Vec<(String, String)>,
    /// When the event was received, ms since the epoch.
    pub timestamp_ms: i64,
}

/// One table of the source, values as the server's own output text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedTable {
    /// Key columns in order; empty for a table without key.
    pub primary_key: Vec<String>,
    /// Columns in order.
    pub columns: Vec<SourceColumn>,
    /// Rows in key order; a null is `None`.
    pub rows: Vec<BTreeMap<String, Option<String>>>,
}

/// A column in the source's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// Its type: `numeric(12,2)`, `bigint(20) unsigned`.
    pub type_text: String,
    /// Whether it refuses null.
    pub not_null: bool,
}

/// Where the recordings are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debezium")
}

/// The names of all recordings there, sorted.
///
/// # Panics
/// When there is none.
pub fn names() -> Vec<String> {
    let directory = directory();
    let files = fs::read_dir(&directory).unwrap_or_else(|why| panic!("read {}: {why}", directory.display()));
    let mut names: Vec<String> = files
        .map(|file| file.expect("a directory entry").file_name().to_string_lossy().into_owned())
        .filter_map(|file| file.strip_suffix(".gz").unwrap_or(&file).strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    assert!(!names.is_empty(), "no recording in {}", directory.display());
    names.sort();
    names
}

/// Reads one recording with its expected tables, gzip or not.
///
/// # Panics
/// When a file is missing or is not of the form.
pub fn load(name: &str) -> Capture {
    let records = records(&read(&format!("{name}.jsonl")));
    let expected: Json = serde_json::from_str(&read(&format!("{name}.expected.json"))).expect("expected tables as JSON");
    let tables = expected["tables"].as_object().expect("tables by name");
    Capture {
        name: name.to_owned(),
        records,
        dumped_from: text(&expected["dumped_from"]),
        tables: tables.iter().map(|(name, json)| (name.clone(), table(name, json))).collect(),
    }
}

/// Reads records of the recordings' line format, one JSON object a line.
///
/// # Panics
/// When a line is not of the form; the message names it.
pub fn records(lines: &str) -> Vec<CapturedRecord> {
    lines.lines().enumerate().map(|(at, line)| record(at as i64 + 1, line)).collect()
}

fn read(file: &str) -> String {
    let path = directory().join(file);
    let zipped = directory().join(format!("{file}.gz"));
    let mut text = String::new();
    if path.exists() {
        text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("read {}: {why}", path.display()));
    } else {
        let bytes = fs::File::open(&zipped).unwrap_or_else(|why| panic!("open {}: {why}", zipped.display()));
        GzDecoder::new(bytes).read_to_string(&mut text).unwrap_or_else(|why| panic!("unpack {}: {why}", zipped.display()));
    }
    text
}

fn record(line: i64, json: &str) -> CapturedRecord {
    let json: Json = serde_json::from_str(json).unwrap_or_else(|why| panic!("line {line}: {why}"));
    let number = |name: &str| json[name].as_i64().unwrap_or_else(|| panic!("line {line}: {name} is not a number"));
    let optional = |name: &str| match &json[name] {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => panic!("line {line}: {name} is {other}, not a text"),
    };
    let headers = json["headers"].as_array().map(Vec::as_slice).unwrap_or_default();
    CapturedRecord {
        line,
        topic: text(&json["topic"]),
        partition: i32::try_from(number("partition")).expect("a partition"),
        offset: number("offset"),
        key: optional("key"),
        value: optional("value"),
        headers: headers.iter().map(|header| (text(&header["key"]), text(&header["value"]))).collect(),
        timestamp_ms: number("timestamp"),
    }
}

fn table(name: &str, json: &Json) -> ExpectedTable {
    let list = |field: &str| json[field].as_array().unwrap_or_else(|| panic!("{name}.{field} is not a list"));
    let rows: Vec<BTreeMap<String, Option<String>>> = list("rows")
        .iter()
        .map(|row| {
            let row = row.as_object().expect("a row");
            row.iter().map(|(column, value)| (column.clone(), value.as_str().map(str::to_owned))).collect()
        })
        .collect();
    assert_eq!(Some(rows.len() as u64), json["row_count"].as_u64(), "rows of {name}");
    ExpectedTable {
        primary_key: list("primary_key").iter().map(text).collect(),
        columns: list("columns")
            .iter()
            .map(|column| SourceColumn {
                name: text(&column["name"]),
                type_text: text(&column["type"]),
                not_null: column["not_null"].as_bool().expect("not_null"),
            })
            .collect(),
        rows,
    }
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_else(|| panic!("{json} is not a text")).to_owned()
}
