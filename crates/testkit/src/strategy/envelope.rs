//! Changes as Debezium's records: with and without schema wrapper, before-images by replica identity, unavailable values,
//! tombstones, heartbeats, fields of a newer version.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use tributary_specs::{Column, DataType, ReplicaIdentity};

use super::feed::{Change, ChangeKind, Snapshot};
use super::history::{History, SourceRow};
use super::source::{ColumnKind, SourceTable};
use crate::value::Value;

/// How the connector and its converter are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvelopeForm {
    /// `schemas.enable`: key and value are each wrapped with their schema.
    pub wrapped: bool,
    /// `tombstones.on.delete`.
    pub tombstones: bool,
    /// `decimal.handling.mode`: precise is base64 of the unscaled digits, else text.
    pub precise_decimals: bool,
    /// Heartbeats between the events, on a topic of their own.
    pub heartbeats: bool,
    /// Fields no version known today has.
    pub unknown_fields: bool,
}

/// One Kafka record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaRecord {
    /// Its topic.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Counts up from 0 a topic and partition.
    pub offset: i64,
    /// The key's bytes as text.
    pub key: Option<String>,
    /// The value's bytes as text; `None` is a tombstone.
    pub value: Option<String>,
    /// Names and JSON texts.
    pub headers: Vec<(String, String)>,
    /// ms since the epoch.
    pub timestamp_ms: i64,
    /// Which change of the history it is; none for tombstones and heartbeats.
    pub change: Option<usize>,
}

/// Any setting of the connector.
pub fn envelope_forms() -> impl Strategy<Value = EnvelopeForm> {
    (any::<[bool; 5]>()).prop_map(|[wrapped, tombstones, precise_decimals, heartbeats, unknown_fields]| EnvelopeForm {
        wrapped,
        tombstones,
        precise_decimals,
        heartbeats,
        unknown_fields,
    })
}

/// The placeholder Debezium sends for a value it does not have.
pub const UNAVAILABLE: &str = "__debezium_unavailable_value";

/// The records of a history, in the order the connector emits them.
pub fn envelopes(history: &History, form: EnvelopeForm) -> Vec<KafkaRecord> {
    let mut writer = Writer { table: &history.table, form, records: Vec::new() };
    for (at, change) in history.changes.iter().enumerate() {
        writer.change(at, change);
        if form.heartbeats && at % 5 == 4 {
            writer.heartbeat(change.at_us / 1_000);
        }
    }
    writer.records
}

struct Writer<'a> {
    table: &'a SourceTable,
    form: EnvelopeForm,
    records: Vec<KafkaRecord>,
}

impl Writer<'_> {
    fn change(&mut self, at: usize, change: &Change) {
        let topic = self.table.topic();
        let key = (change.kind != ChangeKind::Truncate).then(|| self.wrap(self.key_json(&change.key), || self.key_schema()));
        let value = self.wrap(self.envelope(change), || self.envelope_schema());
        let moved = |name: &str, key: &Vec<Value>| (name.to_owned(), self.key_json(key).to_string());
        let mut headers = vec![("__debezium.context.connectorName".to_owned(), "\"postgresql\"".to_owned())];
        headers.extend(change.moved_to.as_ref().map(|key| moved("__debezium.newkey", key)));
        headers.extend(change.moved_from.as_ref().map(|key| moved("__debezium.oldkey", key)));
        let tombstone = self.form.tombstones && change.kind == ChangeKind::Delete;
        let timestamp_ms = change.at_us / 1_000 + 7;
        self.record(topic.clone(), change.partition, key.clone(), Some(value), headers.clone(), timestamp_ms, Some(at));
        if tombstone {
            self.record(topic, change.partition, key, None, headers, timestamp_ms, None);
        }
    }

    fn heartbeat(&mut self, ts_ms: i64) {
        let topic = format!("__debezium-heartbeat.{}", self.table.prefix);
        let key = json!({ "serverName": self.table.prefix }).to_string();
        self.record(topic, 0, Some(key), Some(json!({ "ts_ms": ts_ms }).to_string()), Vec::new(), ts_ms, None);
    }

    #[expect(clippy::too_many_arguments, reason = "a record's fields, once")]
    fn record(
        &mut self,
        topic: String,
        partition: i32,
        key: Option<String>,
        value: Option<String>,
        headers: Vec<(String, String)>,
        timestamp_ms: i64,
        change: Option<usize>,
    ) {
        let offset = self.records.iter().filter(|record| record.topic == topic && record.partition == partition).count() as i64;
        self.records.push(KafkaRecord { topic, partition, offset, key, value, headers, timestamp_ms, change });
    }

    fn wrap(&self, payload: Json, schema: impl Fn() -> Json) -> String {
        if self.form.wrapped { json!({ "schema": schema(), "payload": payload }).to_string() } else { payload.to_string() }
    }

    fn envelope(&self, change: &Change) -> Json {
        let ts_ms = change.at_us / 1_000 + 3;
        let mut envelope = json!({
            "before": self.before_json(change),
            "after": change.after.as_ref().map(|row| self.row_json(row, |name| change.unavailable.contains(name))),
            "source": self.source_json(change),
            "transaction": null,
            "op": change.kind.letter(),
            "ts_ms": ts_ms,
            "ts_us": ts_ms * 1_000 + 1,
            "ts_ns": (ts_ms * 1_000 + 1) * 1_000,
        });
        if self.form.unknown_fields
            && let Some(fields) = envelope.as_object_mut()
        {
            fields.insert("future".to_owned(), json!({ "nested": [1, { "deep": null }] }));
        }
        envelope
    }

    /// By replica identity: full, or the key with invented values in columns that refuse null; updates then have none.
    fn before_json(&self, change: &Change) -> Json {
        match (&change.before, self.table.identity, change.kind) {
            (Some(row), ReplicaIdentity::Full, _) => self.row_json(row, |_| false),
            (Some(row), ReplicaIdentity::Default, ChangeKind::Delete) => {
                let value = |column: &Column, kind| match kind {
                    ColumnKind::Key => self.value_json(&row[&column.name], &column.data_type),
                    _ if column.nullable => Json::Null,
                    _ => self.value_json(&invented(&column.data_type), &column.data_type),
                };
                self.table
                    .columns
                    .iter()
                    .map(|spec| (spec.column.name.clone(), value(&spec.column, spec.kind)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            _ => Json::Null,
        }
    }

    fn source_json(&self, change: &Change) -> Json {
        let incremental = change.snapshot == Snapshot::Incremental;
        let committed = (change.committed > 0).then(|| change.committed.to_string());
        json!({
            "version": "3.6.3.Final",
            "connector": "postgresql",
            "name": self.table.prefix,
            "ts_ms": change.at_us / 1_000,
            "snapshot": change.snapshot.word(),
            "db": self.table.prefix,
            "sequence": if incremental { Json::Null } else { json!([committed, change.lsn.to_string()]).to_string().into() },
            "ts_us": change.at_us,
            "ts_ns": change.at_us * 1_000,
            "schema": "public",
            "table": self.table.name,
            "txId": change.transaction,
            "lsn": if incremental { Json::Null } else { change.lsn.into() },
            "xmin": null,
        })
    }

    fn key_json(&self, key: &[Value]) -> Json {
        let columns = self.table.of_kind(ColumnKind::Key).zip(key);
        columns.map(|(column, value)| (column.name.clone(), self.value_json(value, &column.data_type))).collect::<Map<_, _>>().into()
    }

    fn row_json(&self, row: &SourceRow, unavailable: impl Fn(&str) -> bool) -> Json {
        let value = |column: &Column| match unavailable(&column.name) {
            true => UNAVAILABLE.into(),
            false => self.value_json(&row[&column.name], &column.data_type),
        };
        self.table.columns.iter().map(|spec| (spec.column.name.clone(), value(&spec.column))).collect::<Map<_, _>>().into()
    }

    fn value_json(&self, value: &Value, data_type: &DataType) -> Json {
        match (value, data_type) {
            (Value::Null, _) => Json::Null,
            (Value::Int(unscaled), DataType::Decimal { .. }) if self.form.precise_decimals => STANDARD.encode(shortest(*unscaled)).into(),
            (Value::Int(unscaled), DataType::Decimal { scale, .. }) => decimal_text(*unscaled, *scale).into(),
            (Value::Int(ticks), DataType::Timestamp) => zoned(*ticks).into(),
            (value, _) => value.to_json(),
        }
    }

    fn key_schema(&self) -> Json {
        let fields: Vec<Json> = self.table.of_kind(ColumnKind::Key).map(|column| self.field_schema(column, false)).collect();
        json!({ "type": "struct", "fields": fields, "optional": false, "name": format!("{}.Key", self.table.topic()) })
    }

    fn envelope_schema(&self) -> Json {
        let columns: Vec<Json> = self.table.columns.iter().map(|spec| self.field_schema(&spec.column, spec.column.nullable)).collect();
        let row = |field: &str| json!({ "type": "struct", "fields": columns, "optional": true, "name": format!("{}.Value", self.table.topic()), "field": field });
        let plain = |kind: &str, field: &str, optional: bool| json!({ "type": kind, "optional": optional, "field": field });
        let source = [
            ("string", "version"),
            ("string", "connector"),
            ("string", "name"),
            ("int64", "ts_ms"),
            ("string", "snapshot"),
            ("string", "db"),
            ("string", "sequence"),
            ("int64", "ts_us"),
            ("int64", "ts_ns"),
            ("string", "schema"),
            ("string", "table"),
            ("int64", "txId"),
            ("int64", "lsn"),
            ("int64", "xmin"),
        ]
        .map(|(kind, field)| plain(kind, field, true));
        json!({
            "type": "struct",
            "fields": [
                row("before"),
                row("after"),
                { "type": "struct", "fields": source, "optional": false, "name": "io.debezium.connector.postgresql.Source", "version": 1, "field": "source" },
                plain("string", "op", false),
                plain("int64", "ts_ms", true),
                plain("int64", "ts_us", true),
                plain("int64", "ts_ns", true),
            ],
            "optional": false,
            "name": format!("{}.Envelope", self.table.topic()),
            "version": 2,
        })
    }

    fn field_schema(&self, column: &Column, optional: bool) -> Json {
        let (kind, name) = match &column.data_type {
            DataType::Boolean => ("boolean", None),
            DataType::Byte => ("int8", None),
            DataType::Short => ("int16", None),
            DataType::Integer => ("int32", None),
            DataType::Long => ("int64", None),
            DataType::Float => ("float", None),
            DataType::Double => ("double", None),
            DataType::Date => ("int32", Some("io.debezium.time.Date")),
            DataType::Timestamp => ("string", Some("io.debezium.time.ZonedTimestamp")),
            DataType::TimestampNtz => ("int64", Some("io.debezium.time.MicroTimestamp")),
            DataType::Decimal { .. } if self.form.precise_decimals => ("bytes", Some("org.apache.kafka.connect.data.Decimal")),
            DataType::String | DataType::Decimal { .. } => ("string", None),
            other => panic!("source columns of type {other} are not generated"),
        };
        let mut field = json!({ "type": kind, "optional": optional, "field": column.name });
        if let (Some(name), Some(fields)) = (name, field.as_object_mut()) {
            fields.insert("name".to_owned(), name.into());
            fields.insert("version".to_owned(), 1.into());
        }
        if let (DataType::Decimal { precision, scale }, Some(fields)) =
            (&column.data_type, field.as_object_mut().filter(|_| self.form.precise_decimals))
        {
            fields
                .insert("parameters".to_owned(), json!({ "scale": scale.to_string(), "connect.decimal.precision": precision.to_string() }));
        }
        field
    }
}

/// What stands in a column that refuses null when its value is not known.
fn invented(data_type: &DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Bool(false),
        DataType::String => Value::text(""),
        DataType::Float | DataType::Double => Value::Float(0.0),
        _ => Value::Int(0),
    }
}

/// Big-endian two's complement in as few bytes as hold it.
fn shortest(unscaled: i128) -> Vec<u8> {
    let bytes = unscaled.to_be_bytes();
    let needless = |at: &usize| {
        let fill = if unscaled < 0 { 0xff } else { 0 };
        bytes[*at] == fill && (bytes[at + 1] & 0x80 == fill & 0x80)
    };
    let skip = (0..15).take_while(needless).count();
    bytes[skip..].to_vec()
}

fn decimal_text(unscaled: i128, scale: u8) -> String {
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if unscaled < 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn zoned(ticks: i128) -> String {
    let ticks = i64::try_from(ticks).expect("a timestamp of 64 bits");
    DateTime::from_timestamp_micros(ticks).expect("a timestamp chrono has").to_rfc3339_opts(SecondsFormat::Micros, true)
}
