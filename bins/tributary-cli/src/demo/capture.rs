//! A pipeline for any recorded capture: one feed and one silver table for each table of the recorded final state.
//!
//! Messages with a schema block say all there is to know. Bare JSON does not, so columns are declared from the types the
//! source itself recorded; where Debezium's settings decide how such a type is written, the values of the capture are looked at.

use std::collections::BTreeMap;

use serde_json::Value;
use tributary::{
    Column, DataType, Decode, Encoding, FileFormat, FileSource, MergePolicy, Pipeline, SchemaPolicy, SilverSpec, SourceFeed, TableName,
};

use super::canonical::Kind;
use super::expected::{Expected, ExpectedTable, Server, SourceColumn};

/// What the values of one column look like across a capture.
#[derive(Debug, Clone, Default)]
struct Shape {
    numbers: bool,
    texts: bool,
    objects: bool,
    magnitudes: Vec<f64>,
    only_digits: bool,
    only_hex: bool,
    url_alphabet: bool,
    padded_or_plus: bool,
}

/// What a capture says of itself.
#[derive(Debug, Default)]
pub struct Sample {
    topics: BTreeMap<String, String>,
    flattened: bool,
    with_schema: bool,
    shapes: BTreeMap<(String, String), Shape>,
}

impl Sample {
    /// Reads every record of the capture once.
    pub fn of(events: &str, expected: &Expected) -> Self {
        let mut sample = Self::default();
        for line in events.lines() {
            let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
            let topic = record["topic"].as_str().unwrap_or_default();
            let Some(table) = expected.tables.keys().find(|table| topic.rsplit('.').next() == Some(table.as_str())) else { continue };
            sample.topics.insert(table.clone(), topic.to_owned());
            let Some(value) = record["value"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()) else { continue };
            let (payload, wrapped) = match (value.get("schema"), value.get("payload")) {
                (Some(_), Some(payload)) => (payload, true),
                _ => (&value, false),
            };
            sample.with_schema |= wrapped;
            let enveloped = payload.get("op").is_some() && payload.get("source").is_some();
            sample.flattened |= !enveloped && payload.is_object();
            let row = if enveloped { &payload["after"] } else { payload };
            for (column, value) in row.as_object().into_iter().flatten() {
                sample.shapes.entry((table.clone(), column.clone())).or_insert_with(Shape::unseen).add(value);
            }
        }
        sample
    }

    fn shape(&self, table: &str, column: &str) -> Shape {
        self.shapes.get(&(table.to_owned(), column.to_owned())).cloned().unwrap_or_default()
    }
}

impl Shape {
    fn unseen() -> Self {
        Self { only_digits: true, only_hex: true, ..Self::default() }
    }

    /// Of the numbers' magnitudes: infinite dates are huge whatever the unit.
    fn median(&self) -> f64 {
        let mut magnitudes = self.magnitudes.clone();
        magnitudes.sort_by(f64::total_cmp);
        magnitudes.get(magnitudes.len() / 2).copied().unwrap_or(0.0)
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Number(number) => {
                self.numbers = true;
                self.magnitudes.push(number.as_f64().unwrap_or(0.0).abs());
            }
            Value::String(text) if text == "__debezium_unavailable_value" => {}
            Value::String(text) => {
                self.texts = true;
                self.only_digits &=
                    text.parse::<f64>().is_ok() || matches!(text.as_str(), "NAN" | "POSITIVE_INFINITY" | "NEGATIVE_INFINITY");
                self.only_hex &= text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
                self.url_alphabet |= text.contains(['-', '_']);
                self.padded_or_plus |= text.contains(['=', '+', '/']);
            }
            Value::Object(_) => self.objects = true,
            Value::Null | Value::Bool(_) | Value::Array(_) => {}
        }
    }
}

/// For each table of the recorded state a feed, a table of current rows and, where it has a key, one of history (`<table>_history`).
pub fn pipeline(name: &str, folder: &str, expected: &Expected, sample: &Sample) -> Result<Pipeline, tributary::Error> {
    let mut builder = Pipeline::builder(name);
    for (table, recorded) in &expected.tables {
        let Some(topic) = sample.topics.get(table) else { continue };
        let bronze = TableName::new("bronze", table);
        let files = FileSource::new(folder, FileFormat::KafkaJsonl).with_topics([topic.as_str()]);
        let columns = recorded.columns.iter().map(|column| declare(expected.server(), table, column, sample));
        let decode = if sample.flattened { Decode::DebeziumFlattened } else { Decode::Debezium };
        let feed = SourceFeed::new(format!("{table}_events"), bronze.clone(), files).with_decode(decode).with_columns(columns);
        builder = builder.feed(feed.with_schema_policy(SchemaPolicy::Widen).with_keys(recorded.primary_key.iter().map(String::as_str)));
        builder = builder.silver(silver(table, &bronze, recorded, MergePolicy::default()));
        if !recorded.primary_key.is_empty() {
            let history = MergePolicy::ScdType2 { track_history: Default::default() };
            builder = builder.silver(silver(&format!("{table}_history"), &bronze, recorded, history));
        }
    }
    builder.build()
}

fn silver(name: &str, bronze: &TableName, recorded: &ExpectedTable, policy: MergePolicy) -> SilverSpec {
    let spec = SilverSpec::new(TableName::new("silver", name), [bronze.clone()]);
    if recorded.primary_key.is_empty() {
        spec.with_policy(MergePolicy::Append)
    } else {
        spec.with_policy(policy).with_keys(recorded.primary_key.iter().map(String::as_str))
    }
}

/// The column as the feed declares it: the Delta type of the source's type, and how bare JSON writes it.
fn declare(server: Server, table: &str, column: &SourceColumn, sample: &Sample) -> Column {
    let shape = sample.shape(table, &column.name);
    let kind = Kind::of(server, &column.source_type);
    let (data_type, encoding) = delta_type(server, kind, &column.source_type, &shape);
    let declared = Column::new(&column.name, data_type);
    match encoding {
        Some(encoding) if !sample.with_schema || encoding == Encoding::Unsigned => declared.encoded(encoding),
        _ => declared,
    }
}

fn delta_type(server: Server, kind: Kind, source_type: &str, shape: &Shape) -> (DataType, Option<Encoding>) {
    let base = source_type.split(['(', ' ']).next().unwrap_or(source_type);
    let unsigned = source_type.ends_with("unsigned");
    let mut digits = arguments(source_type);
    if digits.is_empty() && server == Server::MariaDb {
        digits.push(0);
    }
    match kind {
        Kind::Boolean => (DataType::Boolean, None),
        Kind::Integer => match (base, unsigned) {
            ("bigint", true) => {
                (DataType::Decimal { precision: 20, scale: 0 }, Some(if shape.texts { Encoding::Unscaled } else { Encoding::Unsigned }))
            }
            ("bigint" | "oid", false) | ("int", true) => (DataType::Long, None),
            ("smallint" | "tinyint", false) | ("tinyint", true) => (DataType::Short, None),
            _ => (DataType::Integer, None),
        },
        Kind::Number => match digits.as_slice() {
            [precision, scale] if *precision <= 38 => {
                (DataType::Decimal { precision: *precision, scale: *scale }, Some(number_encoding(shape)))
            }
            _ => (DataType::String, Some(number_encoding(shape))),
        },
        Kind::Double => (DataType::Double, None),
        Kind::Float => (DataType::Float, None),
        Kind::Date => (DataType::Date, shape.texts.then_some(Encoding::Iso)),
        Kind::Instant => (DataType::Timestamp, Some(Encoding::Iso)),
        Kind::WallClock => (DataType::TimestampNtz, Some(clock_encoding(shape, &digits, 3e14))),
        Kind::Time if server == Server::MariaDb && shape.numbers => (DataType::Long, Some(clock_encoding(shape, &[6], 0.0))),
        Kind::Time => (DataType::Long, Some(clock_encoding(shape, &digits, 8.7e7))),
        Kind::Bytes => (DataType::Binary, Some(bytes_encoding(shape))),
        Kind::Bits => (DataType::Binary, Some(Encoding::Bits)),
        Kind::TextArray => (DataType::Array(Box::new(DataType::String)), None),
        Kind::ZonedTime | Kind::Interval | Kind::Json | Kind::Hstore | Kind::Set | Kind::Text => (DataType::String, None),
    }
}

/// The numbers in a type's brackets.
fn arguments(source_type: &str) -> Vec<u8> {
    let inner = source_type.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inner, _)| inner);
    inner.split(',').filter_map(|text| text.trim().parse().ok()).collect()
}

fn number_encoding(shape: &Shape) -> Encoding {
    if shape.texts && !shape.only_digits || shape.objects && !shape.texts { Encoding::Unscaled } else { Encoding::Text }
}

/// Text is ISO; numbers up to `millis_max` are milliseconds, as are those of types with at most three digits of fraction.
fn clock_encoding(shape: &Shape, digits: &[u8], millis_max: f64) -> Encoding {
    if shape.texts {
        Encoding::Iso
    } else if digits.first().is_some_and(|digits| *digits <= 3) || shape.median() <= millis_max {
        Encoding::Millis
    } else {
        Encoding::Micros
    }
}

fn bytes_encoding(shape: &Shape) -> Encoding {
    if shape.texts && shape.only_hex && !shape.padded_or_plus {
        Encoding::Hex
    } else if shape.url_alphabet {
        Encoding::Base64Url
    } else {
        Encoding::Base64
    }
}
