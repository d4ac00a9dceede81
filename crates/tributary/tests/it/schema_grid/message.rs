//! Rows of an entry as the messages of a source.

use serde_json::{Value, json};

use super::entry::{Batch, Entry};

/// The connector's schema of a column.
fn schema(name: &str, data_type: &str) -> Value {
    let mut schema = match data_type {
        "int" => json!({"type": "int32"}),
        "long" => json!({"type": "int64"}),
        "float" => json!({"type": "float"}),
        "double" => json!({"type": "double"}),
        "string" => json!({"type": "string"}),
        "date" => json!({"type": "int32", "name": "io.debezium.time.Date"}),
        "timestamp_ntz" => json!({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}),
        "timestamp" => json!({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}),
        nested => nested_schema(nested),
    };
    schema["field"] = name.into();
    schema["optional"] = true.into();
    schema
}

fn nested_schema(data_type: &str) -> Value {
    let inside = |opens: &str, closes: &str| data_type.strip_prefix(opens)?.strip_suffix(closes);
    if let Some(digits) = inside("decimal(", ")") {
        let (precision, scale) = digits.split_once(',').expect("digits");
        let parameters = json!({"scale": scale, "connect.decimal.precision": precision});
        return json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters});
    }
    if let Some(element) = inside("array<", ">") {
        return json!({"type": "array", "items": schema("element", element)});
    }
    let fields = inside("struct<", ">").unwrap_or_else(|| panic!("type {data_type}"));
    let fields: Vec<Value> = super::entry::split(fields, ',')
        .map(|field| {
            let (name, data_type) = field.split_once(':').expect("name and type");
            schema(name, data_type)
        })
        .collect();
    json!({"type": "struct", "fields": fields})
}

fn value(text: &str, data_type: &str) -> Value {
    match data_type {
        _ if text == "∅" => Value::Null,
        "string" | "date" | "timestamp_ntz" | "timestamp" => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// The cells of a row by column; a row is `1|2|x`.
fn cells(columns: &[(&str, &str)], row: &str) -> Vec<(String, Value)> {
    let cells: Vec<&str> = row.split('|').collect();
    assert_eq!(cells.len(), columns.len(), "{row} has the cells of {columns:?}");
    columns.iter().zip(cells).map(|((name, data_type), cell)| ((*name).to_owned(), value(cell, data_type))).collect()
}

/// A file of messages. `offset` is the first record's.
pub fn file(entry: &Entry, batch: &Batch, wire: &str, offset: usize) -> String {
    let columns = entry.shape(&batch.shape);
    match wire {
        "csv" => {
            let header = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
            let lines = batch.rows.iter().map(|row| row.replace('|', ",").replace('∅', "")).collect::<Vec<_>>();
            format!("{header}\n{}\n", lines.join("\n"))
        }
        "json" => batch.rows.iter().map(|row| format!("{}\n", object(cells(&columns, row)))).collect(),
        _ => batch.rows.iter().zip(offset..).map(|(row, offset)| format!("{}\n", record(&columns, row, offset))).collect(),
    }
}

/// In the order of the columns: a map of values would sort them.
fn object(cells: Vec<(String, Value)>) -> String {
    let members: Vec<String> = cells.into_iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn record(columns: &[(&str, &str)], row: &str, offset: usize) -> Value {
    let cells = cells(columns, row);
    let (key, sequence) = (cells[0].1.clone(), cells[1].1.as_i64().expect("a sequence"));
    let fields: Vec<Value> = columns.iter().map(|(name, data_type)| schema(name, data_type)).collect();
    let side = |side: &str| json!({"type": "struct", "fields": fields, "optional": true, "field": side});
    let rest = [json!({"type": "struct", "fields": [], "field": "source"}), json!({"type": "string", "field": "op"})];
    let schemas: Vec<Value> = ["before", "after"].into_iter().map(side).chain(rest).collect();
    let source = json!({"connector": "postgresql", "name": "shop", "db": "shop", "schema": "public", "table": "t", "lsn": sequence,
        "ts_ms": 1_770_112_800_000_i64, "snapshot": "false"});
    let schema = json!({"type": "struct", "fields": schemas, "optional": false, "name": "t.Envelope"});
    let after = object(cells);
    let payload = format!(r#"{{"before":null,"after":{after},"source":{source},"op":"c","ts_ms":1770112800007}}"#);
    json!({
        "topic": "shop.public.t", "partition": 0, "offset": offset, "key": json!({"id": key}).to_string(), "headers": [],
        "value": format!(r#"{{"schema":{schema},"payload":{payload}}}"#), "timestamp": 1_770_112_800_000_i64,
    })
}
