//! The recorded events, table by table, bare or with their schema.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};

/// How the messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Bare,
    Wrapped,
}

impl Form {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Wrapped => "wrapped",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Bare, Self::Wrapped].into_iter().find(|form| form.name() == name)
    }
}

/// A recorded Kafka record, as the capture has it.
#[derive(Debug, Deserialize)]
struct Line {
    topic: String,
    partition: i32,
    offset: i64,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<LineHeader>,
    timestamp: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct LineHeader {
    key: String,
    value: Option<String>,
}

/// A record whose bytes lie in its table's buffer, as those of a consumer lie in its fetch buffers.
#[derive(Debug)]
pub struct Event {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Range<usize>>,
    pub value: Option<Range<usize>>,
    /// Name and value of each header.
    pub headers: Vec<(Range<usize>, Option<Range<usize>>)>,
    pub timestamp: Option<i64>,
}

/// A column of a source table: its name, its declaration for bare JSON and its schema for wrapped JSON.
pub struct Column {
    pub name: &'static str,
    pub data_type: &'static str,
    pub encoding: Option<&'static str>,
    schema: &'static str,
}

const fn column(name: &'static str, data_type: &'static str, encoding: Option<&'static str>, schema: &'static str) -> Column {
    Column { name, data_type, encoding, schema }
}

const INT32: &str = r#""type":"int32""#;
const INT64: &str = r#""type":"int64""#;
const TEXT: &str = r#""type":"string""#;
const BOOLEAN: &str = r#""type":"boolean""#;
const ZONED: &str = r#""type":"string","name":"io.debezium.time.ZonedTimestamp","version":1"#;
const MICROS: &str = r#""type":"int64","name":"io.debezium.time.MicroTimestamp","version":1"#;
const DATE: &str = r#""type":"int32","name":"io.debezium.time.Date","version":1"#;
const JSON: &str = r#""type":"string","name":"io.debezium.data.Json","version":1"#;
const UUID: &str = r#""type":"string","name":"io.debezium.data.Uuid","version":1"#;
const ENUM: &str = r#""type":"string","name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"pending,paid,packed,shipped,delivered,cancelled"}"#;
const MONEY: &str = r#""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2","connect.decimal.precision":"12"}"#;
const COST: &str = r#""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"4","connect.decimal.precision":"12"}"#;
const VARIABLE: &str = r#""type":"struct","fields":[{"type":"int32","optional":false,"field":"scale"},{"type":"bytes","optional":false,"field":"value"}],"name":"io.debezium.data.VariableScaleDecimal","version":1,"doc":"Variable scaled decimal""#;
const TEXTS: &str = r#""type":"array","items":{"type":"string","optional":true}"#;

const ORDERS: &[Column] = &[
    column("order_id", "long", None, INT64),
    column("customer_id", "long", None, INT64),
    column("sku", "string", None, TEXT),
    column("warehouse", "integer", None, INT32),
    column("qty", "integer", None, INT32),
    column("amount", "decimal(12,2)", Some("unscaled"), MONEY),
    column("status", "string", None, ENUM),
    column("placed_at", "timestamp", None, ZONED),
    column("updated_at", "timestamp", None, ZONED),
    column("ship_day", "date", None, DATE),
    column("notes", "string", None, TEXT),
    column("carrier", "string", None, TEXT),
];

const CUSTOMERS: &[Column] = &[
    column("id", "long", None, INT64),
    column("external_id", "string", None, UUID),
    column("name", "string", None, TEXT),
    column("email", "string", None, TEXT),
    column("tier", "string", None, TEXT),
    column("balance", "string", Some("unscaled"), VARIABLE),
    column("credit_limit", "decimal(12,2)", Some("unscaled"), MONEY),
    column("signup_at", "timestamp", None, ZONED),
    column("birth_date", "date", None, DATE),
    column("tags", "array<string>", None, TEXTS),
    column("prefs", "string", None, JSON),
    column("last_ip", "string", None, TEXT),
    column("active", "boolean", None, BOOLEAN),
];

const INVENTORY: &[Column] = &[
    column("sku", "string", None, TEXT),
    column("warehouse", "integer", None, INT32),
    column("qty", "integer", None, INT32),
    column("reserved", "integer", None, INT32),
    column("unit_cost", "decimal(12,4)", Some("unscaled"), COST),
    column("counted_at", "timestamp_ntz", Some("micros"), MICROS),
];

/// The events of one table.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    /// Whether the source table has REPLICA IDENTITY FULL.
    pub full_before_images: bool,
    pub topic: String,
    pub buffer: String,
    pub events: Vec<Event>,
}

impl Table {
    /// A piece of the buffer.
    pub fn text(&self, range: &Range<usize>) -> &str {
        &self.buffer[range.clone()]
    }

    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.buffer.len();
        self.buffer.push_str(text);
        start..self.buffer.len()
    }

    fn push(&mut self, line: Line, form: Form) {
        let headers =
            line.headers.iter().map(|header| (self.keep(&header.key), header.value.as_ref().map(|value| self.keep(value)))).collect();
        let key = line.key.as_ref().map(|key| self.keep(key));
        let value = line.value.map(|value| if form == Form::Wrapped { wrap(self, &value) } else { value });
        let value = value.map(|value| self.keep(&value));
        self.topic = line.topic;
        self.events.push(Event { partition: line.partition, offset: line.offset, key, value, headers, timestamp: line.timestamp });
    }
}

/// The events of all tables.
pub struct Workload {
    pub tables: Vec<Table>,
    pub form: Form,
}

impl Workload {
    /// Reads the big capture.
    pub fn load(form: Form) -> Result<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debezium");
        let path = folder.join("postgres-big-workload.jsonl.gz");
        let lines = BufReader::new(GzDecoder::new(File::open(&path).with_context(|| path.display().to_string())?)).lines();
        let table = |name, columns, full_before_images| Table {
            name,
            columns,
            full_before_images,
            topic: String::new(),
            buffer: String::new(),
            events: Vec::new(),
        };
        let mut tables = vec![table("orders", ORDERS, false), table("customers", CUSTOMERS, true), table("inventory", INVENTORY, true)];
        for line in lines {
            let line: Line = serde_json::from_str(&line?)?;
            let name = line.topic.rsplit('.').next().context("a topic without a table")?;
            let table = tables.iter_mut().find(|table| table.name == name).with_context(|| format!("no table {name}"))?;
            table.push(line, form);
        }
        Ok(Self { tables, form })
    }

    /// Calls `batch` with a table's index and a range of its events until so many events have passed; returns how many.
    pub fn until(&self, events: usize, size: usize, mut batch: impl FnMut(usize, Range<usize>) -> Result<()>) -> Result<u64> {
        let mut passed = 0;
        loop {
            for (index, table) in self.tables.iter().enumerate() {
                for start in (0..table.events.len()).step_by(size) {
                    let end = (start + size).min(table.events.len()).min(start + events - passed);
                    batch(index, start..end)?;
                    passed += end - start;
                    if passed == events {
                        return Ok(u64::try_from(passed)?);
                    }
                }
            }
        }
    }
}

/// A message as Connect's converter writes it with schemas on. A column that came later is only in the schema of its rows.
fn wrap(table: &Table, value: &str) -> String {
    let fields: Vec<String> = table
        .columns
        .iter()
        .filter(|column| value.contains(&format!("\"{}\":", column.name)))
        .map(|column| format!(r#"{{{},"optional":true,"field":"{}"}}"#, column.schema, column.name))
        .collect();
    let row = |side: &str| {
        format!(
            r#"{{"type":"struct","fields":[{}],"optional":true,"name":"shop.public.{}.Value","field":"{side}"}}"#,
            fields.join(","),
            table.name
        )
    };
    let schema = format!(
        r#"{{"type":"struct","fields":[{},{},{}],"optional":false,"name":"shop.public.{}.Envelope","version":2}}"#,
        row("before"),
        row("after"),
        envelope_fields(),
        table.name
    );
    format!(r#"{{"schema":{schema},"payload":{value}}}"#)
}

/// The envelope's other fields, as Debezium 3.6 declares them.
fn envelope_fields() -> String {
    let field = |kind: &str, optional: bool, name: &str| json!({"type": kind, "optional": optional, "field": name});
    let source: Vec<Value> = vec![
        field("string", false, "version"),
        field("string", false, "connector"),
        field("string", false, "name"),
        field("int64", false, "ts_ms"),
        json!({"type": "string", "optional": true, "name": "io.debezium.data.Enum", "version": 1,
               "parameters": {"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
               "default": "false", "field": "snapshot"}),
        field("string", false, "db"),
        field("string", true, "sequence"),
        field("int64", true, "ts_us"),
        field("int64", true, "ts_ns"),
        field("string", false, "schema"),
        field("string", false, "table"),
        field("int64", true, "txId"),
        field("int64", true, "lsn"),
        field("int64", true, "xmin"),
        field("string", true, "origin"),
        field("int64", true, "origin_lsn"),
    ];
    let transaction =
        vec![field("string", false, "id"), field("int64", false, "total_order"), field("int64", false, "data_collection_order")];
    let fields = [
        json!({"type": "struct", "fields": source, "optional": false, "name": "io.debezium.connector.postgresql.Source", "version": 1, "field": "source"}),
        json!({"type": "struct", "fields": transaction, "optional": true, "name": "event.block", "version": 1, "field": "transaction"}),
        field("string", false, "op"),
        field("int64", true, "ts_ms"),
        field("int64", true, "ts_us"),
        field("int64", true, "ts_ns"),
    ];
    fields.iter().map(Value::to_string).collect::<Vec<_>>().join(",")
}
