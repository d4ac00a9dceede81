//! Messages as connectors write them, and rows as text.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use serde_json::{Value, json};
use tributary_cdc_decode::{Decoded, Decoder};
use tributary_specs::SourceFeed;

use crate::capture::{Event, EventHeader, with_records};

/// A record of topic `t`, partition 0.
pub fn event(offset: i64, key: Option<&Value>, value: Option<&Value>) -> Event {
    Event {
        topic: "shop.public.t".to_owned(),
        partition: 0,
        offset,
        key: key.map(Value::to_string),
        value: value.map(Value::to_string),
        headers: Vec::new(),
        timestamp: Some(1_770_112_800_000),
    }
}

/// The same record with a header.
pub fn with_header(mut event: Event, key: &str, value: &str) -> Event {
    event.headers.push(EventHeader { key: key.to_owned(), value: Some(value.to_owned()) });
    event
}

/// PostgreSQL's source block at an LSN.
pub fn postgres(lsn: i64) -> Value {
    json!({"connector": "postgresql", "name": "shop", "db": "shop", "schema": "public", "table": "t", "lsn": lsn,
           "ts_ms": 1_770_112_800_000i64 + lsn, "snapshot": "false"})
}

/// A bare envelope.
pub fn envelope(op: &str, before: &Value, after: &Value, source: &Value) -> Value {
    json!({"before": before, "after": after, "source": source, "op": op, "ts_ms": 1_770_112_800_007i64})
}

/// A bare create.
pub fn create(lsn: i64, after: &Value) -> Value {
    envelope("c", &Value::Null, after, &postgres(lsn))
}

/// An envelope with its schema, given the schemas of the row's fields.
pub fn wrapped(fields: &Value, payload: &Value) -> Value {
    let row = |side: &str| json!({"type": "struct", "fields": fields, "optional": true, "field": side});
    let rest = [json!({"type": "struct", "fields": [], "field": "source"}), json!({"type": "string", "field": "op"})];
    let mut all = vec![row("before"), row("after")];
    all.extend(rest);
    json!({"schema": {"type": "struct", "fields": all, "optional": false, "name": "t.Envelope"}, "payload": payload})
}

/// Decodes events in one batch; every event must be accounted for.
pub fn decode(feed: &SourceFeed, events: &[Event]) -> Decoded {
    decode_with(&mut Decoder::new(feed).unwrap(), events)
}

/// As [`decode`], with a decoder that goes on.
pub fn decode_with(decoder: &mut Decoder, events: &[Event]) -> Decoded {
    let decoded = with_records(events, |records| decoder.decode(records, 1_770_112_900_000_000));
    let ignored: u64 = decoded.ignored.values().sum();
    if decoded.stop.is_none() {
        assert_eq!(events.len(), decoded.batch.num_rows() + decoded.rejects.len() + usize::try_from(ignored).unwrap());
        let names: Vec<&str> = decoded.batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        let columns = decoder.columns();
        assert_eq!(names, columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), "the batch has the table's columns");
    }
    decoded
}

/// Rows as text, nulls left out.
pub fn rows(batch: &RecordBatch) -> Vec<BTreeMap<String, String>> {
    let options = FormatOptions::default().with_null("∅");
    let formatters: Vec<(String, ArrayFormatter<'_>)> = batch
        .schema_ref()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| (field.name().clone(), ArrayFormatter::try_new(column, &options).unwrap()))
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            let cells = formatters.iter().map(|(name, formatter)| (name.clone(), formatter.value(row).to_string()));
            cells.filter(|(_, text)| text != "∅").collect()
        })
        .collect()
}

/// One column of every row as text, `∅` for null.
pub fn cells(batch: &RecordBatch, column: &str) -> Vec<String> {
    rows(batch).iter().map(|row| row.get(column).cloned().unwrap_or_else(|| "∅".to_owned())).collect()
}

/// The type of a column.
pub fn type_of(decoder: &Decoder, column: &str) -> String {
    let columns = decoder.columns();
    columns.iter().find(|known| known.name == column).map_or_else(|| "none".to_owned(), |known| known.data_type.to_string())
}
