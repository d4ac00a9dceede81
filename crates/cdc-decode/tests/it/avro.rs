//! Avro gives the rows that JSON with the same schema gives, and bad Avro gives no row.

use proptest::prelude::*;
use serde_json::{Value, json};
use tributary_cdc_decode::{Decoded, Decoder, Error, Header, IgnoreReason, ReasonCode, Record, SchemaId};
use tributary_specs::{Decode, SchemaPolicy, SourceFeed};
use tributary_testkit::Law;
use tributary_testkit::avro::{AvroRegistry, write_bytes, write_long};
use tributary_testkit::strategy::{EnvelopeForm, SourceTable, envelope_forms, envelopes, source_history};

use crate::capture::{ALL, Event, EventHeader, events, expected, with_records};
use crate::captures::{feed_for, of_table};
use crate::feeds::{column, columns, feed};
use crate::message::{cells, event, postgres, type_of};

/// An event whose key and value are bytes.
#[derive(Clone)]
struct Framed {
    event: Event,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
}

/// The event in Avro; what has no schema block stays as it is. The event's own text is written anew, because numbers read
/// by the test's own JSON reader are not always those of the text.
fn framed(registry: &mut AvroRegistry, event: &Event) -> Framed {
    let mut event = event.clone();
    let mut bytes = |text: &mut Option<String>| match text {
        Some(text) if text.starts_with("{\"schema\":") || text.starts_with("{\"payload\":") => {
            let message: Value = serde_json::from_str(text).unwrap();
            *text = message.to_string();
            registry.framed(&message)
        }
        other => other.clone().map(String::into_bytes),
    };
    Framed { key: bytes(&mut event.key), value: bytes(&mut event.value), event }
}

fn decode(decoder: &mut Decoder, registry: &AvroRegistry, events: &[Framed]) -> Decoded {
    let headers: Vec<Vec<Header<'_>>> = events.iter().map(|event| headers(&event.event.headers)).collect();
    let records: Vec<Record<'_>> = events
        .iter()
        .zip(&headers)
        .map(|(Framed { event, key, value }, headers)| Record {
            topic: &event.topic,
            partition: event.partition,
            offset: event.offset,
            key: key.as_deref(),
            value: value.as_deref(),
            headers,
            timestamp_ms: event.timestamp,
            file: None,
            line: None,
        })
        .collect();
    for id in decoder.missing_schemas(&records) {
        match registry.text(id.0) {
            Some(text) => drop(decoder.learn_schema(id, text, &[])),
            None => decoder.learn_absent(id),
        }
    }
    assert!(decoder.missing_schemas(&records).is_empty());
    let decoded = decoder.decode(&records, 0);
    let ignored: u64 = decoded.ignored.values().sum();
    if decoded.stop.is_none() {
        assert_eq!(records.len(), decoded.batch.num_rows() + decoded.rejects.len() + usize::try_from(ignored).unwrap());
    }
    decoded
}

fn headers(headers: &[EventHeader]) -> Vec<Header<'_>> {
    headers.iter().map(|header| Header { key: &header.key, value: header.value.as_ref().map(String::as_bytes) }).collect()
}

/// What differs between what JSON gave and what Avro gave, if anything does.
fn difference(json: &Decoded, avro: &Decoded) -> Option<String> {
    if json.stop.as_ref().map(std::mem::discriminant) != avro.stop.as_ref().map(std::mem::discriminant) {
        return Some(format!("stop: {:?} and {:?}", json.stop, avro.stop));
    }
    if json.stop.is_some() {
        return None;
    }
    let rejects = |decoded: &Decoded| decoded.rejects.iter().map(|reject| (reject.index, reject.reason)).collect::<Vec<_>>();
    if rejects(json) != rejects(avro) {
        return Some(format!("rejects: {:?} and {:?}", json.rejects, avro.rejects));
    }
    if json.ignored != avro.ignored || json.notes != avro.notes || json.schema_change != avro.schema_change {
        let changed = |decoded: &Decoded| decoded.schema_change.as_ref().map(|change| (change.added.clone(), change.widened.clone()));
        let told = |decoded: &Decoded| format!("{:?} {:?} {:?}", decoded.ignored, decoded.notes, changed(decoded));
        return Some(format!("{}\nand\n{}", told(json), told(avro)));
    }
    if json.batch.schema() != avro.batch.schema() {
        return Some(format!("{:?}\nand\n{:?}", json.batch.schema(), avro.batch.schema()));
    }
    for (at, field) in json.batch.schema_ref().fields().iter().enumerate() {
        if json.batch.column(at) != avro.batch.column(at) {
            let (one, other) = (cells(&json.batch, field.name()), cells(&avro.batch, field.name()));
            // The test's own JSON writer sorts the members of an object.
            let parsed = |cell: &String| serde_json::from_str(cell).ok().filter(Value::is_object).unwrap_or_else(|| cell.clone().into());
            if one.iter().map(parsed).eq(other.iter().map(parsed)) {
                continue;
            }
            let row = one.iter().zip(&other).position(|(one, other)| one != other);
            let row = row.unwrap_or(0);
            return Some(format!("column {} row {row}: {:?} and {:?}", field.name(), one.get(row), other.get(row)));
        }
    }
    None
}

/// Decodes the same events both ways, in batches.
fn both_ways(feed: &SourceFeed, events: &[Event], size: usize) -> Result<usize, String> {
    let mut registry = AvroRegistry::default();
    let framed: Vec<Framed> = events.iter().map(|event| framed(&mut registry, event)).collect();
    let (mut json, mut avro) = (Decoder::new(feed).unwrap(), Decoder::new(feed).unwrap());
    let mut rows = 0;
    for framed in framed.chunks(size) {
        let events: Vec<Event> = framed.iter().map(|framed| framed.event.clone()).collect();
        let of_json = with_records(&events, |records| json.decode(records, 0));
        let of_avro = decode(&mut avro, &registry, framed);
        if let Some(difference) = difference(&of_json, &of_avro) {
            return Err(difference);
        }
        if of_json.stop.is_some() {
            break;
        }
        rows += of_avro.batch.num_rows();
    }
    Ok(rows)
}

#[test]
fn every_capture_with_schemas_gives_the_same_rows_as_avro() {
    let mut compared = 0;
    for capture in ALL.into_iter().filter(|capture| capture.contains("schema")) {
        let all = events(capture);
        for table in expected(capture).keys() {
            for size in [7, 100_000] {
                match both_ways(&feed_for(capture, table), &of_table(&all, table), size) {
                    Ok(rows) => compared += rows,
                    Err(difference) => panic!("{capture} {table} in batches of {size}: {difference}"),
                }
            }
        }
    }
    assert!(compared > 700, "{compared} rows");
}

#[test]
fn law_random_envelopes_give_the_same_rows_as_avro() {
    let table = prop_oneof![Just(SourceTable::orders()), Just(SourceTable::customers())];
    let cases = (table.prop_flat_map(|table| source_history(table, 30)), envelope_forms(), 1..9usize);
    Law::new("avro envelopes").holds(&cases, |(history, form, size), tried| {
        let form = EnvelopeForm { wrapped: true, ..form };
        let events: Vec<Event> = envelopes(&history, form)
            .into_iter()
            .map(|record| Event {
                topic: record.topic,
                partition: record.partition,
                offset: record.offset,
                key: record.key,
                value: record.value,
                headers: record.headers.into_iter().map(|(key, value)| EventHeader { key, value: Some(value) }).collect(),
                timestamp: Some(record.timestamp_ms),
            })
            .collect();
        let mut feed = feed(Decode::Debezium, Vec::new());
        feed.replica_identity = history.table.identity;
        match both_ways(&feed, &events, size) {
            Ok(rows) => tried.add("rows", rows),
            Err(difference) => return Err(TestCaseError::fail(difference)),
        }
        Ok(())
    });
}

/// What values are made of.
#[derive(Debug, Clone)]
struct Raw {
    null: bool,
    unavailable: bool,
    whole: i64,
    text: String,
    bytes: Vec<u8>,
}

fn raw() -> impl Strategy<Value = Raw> {
    let whole = prop_oneof![4 => -1_000_000i64..1_000_000, 1 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let text = prop_oneof![
        "[a-zäö\"\\\\ ]{0,6}",
        "20[0-9]{2}-0[1-9]-[0-2][0-9]T1[0-9]:00:00(\\.[0-9]{1,7})?(Z|\\+02:00|)",
        Just("b,a".to_owned())
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..20);
    (prop::bool::weighted(0.2), prop::bool::weighted(0.1), whole, text, bytes).prop_map(|(null, unavailable, whole, text, bytes)| Raw {
        null,
        unavailable,
        whole,
        text,
        bytes,
    })
}

const PLACEHOLDER: &str = "__debezium_unavailable_value";

/// Schemas of fields, and how a value of each is made.
type Maker = fn(&Raw) -> Value;

fn makers() -> Vec<(Value, Maker)> {
    use base64::Engine;
    fn base64(bytes: &[u8]) -> Value {
        base64::engine::general_purpose::STANDARD.encode(bytes).into()
    }
    fn text(raw: &Raw) -> Value {
        if raw.unavailable { PLACEHOLDER.into() } else { raw.text.clone().into() }
    }
    fn bytes(raw: &Raw) -> Value {
        base64(if raw.unavailable { PLACEHOLDER.as_bytes() } else { &raw.bytes })
    }
    // Larger ones are written with an exponent, whose form is each writer's own.
    fn moderate(raw: &Raw) -> f64 {
        (raw.whole % 1_000_000) as f64
    }
    fn long(raw: &Raw) -> Value {
        raw.whole.into()
    }
    fn int(raw: &Raw) -> Value {
        (raw.whole as i32).into()
    }
    let named = |kind: &str, name: &str| json!({"type": kind, "name": format!("io.debezium.{name}"), "version": 1});
    let decimal = |parameters: Value| json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters});
    let part = |kind: &str, field: &str| json!({"type": kind, "optional": true, "field": field});
    vec![
        (json!({"type": "boolean"}), |raw| (raw.whole % 2 == 0).into()),
        (json!({"type": "int8"}), |raw| (raw.whole as i8).into()),
        (json!({"type": "int16"}), |raw| (raw.whole as i16).into()),
        (json!({"type": "int32"}), int),
        (json!({"type": "int64"}), long),
        (json!({"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}, "name": "x.Y"}), long),
        (json!({"type": "float"}), |raw| format!("{:?}", moderate(raw) as f32 / 64.0).parse::<f64>().unwrap().into()),
        (json!({"type": "double"}), |raw| if raw.unavailable { "NaN".into() } else { (moderate(raw) / 128.0).into() }),
        (json!({"type": "string"}), text),
        (json!({"type": "bytes"}), bytes),
        (decimal(json!({"scale": "2", "connect.decimal.precision": "12"})), bytes),
        (decimal(json!({"scale": "4"})), bytes),
        (decimal(json!({"scale": "-2", "connect.decimal.precision": "70"})), bytes),
        (
            json!({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}]}),
            |raw| json!({"scale": raw.whole % 10, "value": bytes(raw)}),
        ),
        (named("int32", "time.Date"), int),
        (json!({"type": "int32", "name": "org.apache.kafka.connect.data.Date"}), int),
        (named("int32", "time.Time"), int),
        (json!({"type": "int32", "name": "org.apache.kafka.connect.data.Time"}), int),
        (named("int64", "time.MicroTime"), long),
        (named("int64", "time.NanoTime"), long),
        (named("int64", "time.Timestamp"), long),
        (json!({"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}), long),
        (named("int64", "time.MicroTimestamp"), long),
        (named("int64", "time.NanoTimestamp"), long),
        (named("string", "time.ZonedTimestamp"), text),
        (named("string", "time.IsoTimestamp"), text),
        (named("string", "time.IsoDate"), text),
        (named("string", "time.ZonedTime"), text),
        (named("string", "time.Interval"), text),
        (named("int64", "time.MicroDuration"), long),
        (named("int32", "time.Year"), int),
        (json!({"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "12"}}), bytes),
        (named("string", "data.Json"), text),
        (json!({"type": "string", "name": "io.debezium.data.EnumSet", "parameters": {"allowed": "a,b,c"}}), text),
        (json!({"type": "array", "items": {"type": "string", "optional": true}}), |raw| {
            if raw.unavailable { json!([PLACEHOLDER]) } else { json!([raw.text, null, "x"]) }
        }),
        (json!({"type": "array", "items": {"type": "int32", "optional": true}}), |raw| {
            if raw.unavailable { PLACEHOLDER.bytes().collect::<Vec<_>>().into() } else { json!([raw.whole as i32, null]) }
        }),
        (json!({"type": "array", "items": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}}), |raw| json!([raw.whole])),
        (json!({"type": "array", "items": {"type": "array", "items": {"type": "double"}}}), |raw| json!([[moderate(raw)], []])),
        (json!({"type": "map", "keys": {"type": "string"}, "values": {"type": "string", "optional": true}}), |raw| {
            if raw.unavailable { json!({PLACEHOLDER: PLACEHOLDER}) } else { json!({"k": raw.text, "n": null}) }
        }),
        (json!({"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}}), |raw| {
            json!([[raw.whole as i16, 0.5], [7, 1.25]])
        }),
        (
            json!({"type": "struct", "name": "io.debezium.data.geometry.Point", "fields": [part("double", "x"), part("double", "y"), part("bytes", "wkb"), part("int32", "srid")]}),
            |raw| json!({"x": moderate(raw), "y": 0.25, "wkb": base64(&raw.bytes), "srid": null}),
        ),
        (
            json!({"type": "struct", "name": "io.debezium.time.StructuredTimestamp", "fields": [part("int32", "year"), part("int32", "month"),
                part("int32", "day"), part("int32", "hour"), part("int32", "minute"), part("int32", "second"), part("int32", "nanos"), part("string", "specialValue")]}),
            |raw| {
                json!({"year": 2000 + raw.whole % 50, "month": 1 + raw.whole.unsigned_abs() % 13, "day": 5, "hour": 6, "minute": 7, "second": 8, "nanos": 9000,
                       "specialValue": if raw.unavailable { json!("INFINITY") } else { Value::Null }})
            },
        ),
        (
            json!({"type": "struct", "fields": [part("string", "a"), {"type": "struct", "optional": true, "field": "b", "fields": [part("int64", "c")]}]}),
            |raw| json!({"a": text(raw), "b": if raw.whole % 2 == 0 { json!({"c": raw.whole}) } else { Value::Null }}),
        ),
    ]
}

/// Types that a feed may have declared, whatever the messages bring.
const DECLARED: [&str; 9] =
    ["string", "long", "short", "double", "decimal(20,4)", "timestamp_ntz", "date", "long micros", "decimal(10,2) text"];

#[test]
fn law_every_type_gives_the_same_values_as_avro_whatever_is_declared() {
    let makers = makers();
    let field = (0..makers.len(), prop::option::weighted(0.3, 0..DECLARED.len()), any::<bool>());
    let rows = |fields: usize| prop::collection::vec(prop::collection::vec(raw(), fields), 1..12);
    let cases =
        (prop::collection::vec(field, 1..5), 0..5usize, any::<bool>(), 1..9usize).prop_flat_map(|(fields, policy, flattened, size)| {
            (Just(fields.clone()), rows(fields.len()), Just(policy), Just(flattened), Just(size))
        });
    Law::new("avro types").holds(&cases, |(fields, rows, policy, flattened, size), tried| {
        let mut schemas = vec![json!({"type": "int64", "optional": false, "field": "id"})];
        let mut declared = vec![column("id long")];
        for (at, (maker, of, defaulted)) in fields.iter().enumerate() {
            let mut schema = makers[*maker].0.clone();
            schema["field"] = format!("f{at}").into();
            schema["optional"] = true.into();
            if *defaulted && matches!(schema["type"].as_str(), Some("int64" | "int32")) {
                schema["default"] = 7.into();
            }
            schemas.push(schema);
            declared.extend(of.map(|of| column(&format!("f{at} {}", DECLARED[of]))));
        }
        let form = if flattened { Decode::DebeziumFlattened } else { Decode::Debezium };
        let mut feed = feed(form, if fields.iter().any(|(_, of, _)| of.is_some()) { declared } else { Vec::new() });
        feed.schema_policy =
            [SchemaPolicy::Add, SchemaPolicy::Widen, SchemaPolicy::Rescue, SchemaPolicy::Quarantine, SchemaPolicy::Freeze][policy];
        let events: Vec<Event> = rows
            .iter()
            .zip(1i64..)
            .map(|(row, lsn)| {
                let mut payload = json!({"id": lsn});
                for (at, (raw, (maker, ..))) in row.iter().zip(&fields).enumerate() {
                    payload[format!("f{at}")] = if raw.null { Value::Null } else { makers[*maker].1(raw) };
                }
                let value = if flattened { flat(&schemas, &payload) } else { enveloped(&schemas, lsn, &payload) };
                event(lsn, Some(&key(lsn)), Some(&value))
            })
            .collect();
        match both_ways(&feed, &events, size) {
            Ok(rows) => tried.add("rows", rows),
            Err(difference) => return Err(TestCaseError::fail(difference)),
        }
        Ok(())
    });
}

fn key(id: i64) -> Value {
    let schema =
        json!({"type": "struct", "fields": [{"type": "int64", "optional": false, "field": "id"}], "optional": false, "name": "t.Key"});
    json!({"schema": schema, "payload": {"id": id}})
}

fn flat(fields: &[Value], payload: &Value) -> Value {
    json!({"schema": {"type": "struct", "fields": fields, "optional": false, "name": "shop.public.t.Value"}, "payload": payload})
}

fn enveloped(fields: &[Value], lsn: i64, after: &Value) -> Value {
    change(fields, "c", lsn, &Value::Null, after)
}

fn change(fields: &[Value], op: &str, lsn: i64, before: &Value, after: &Value) -> Value {
    let row = |side: &str| json!({"type": "struct", "fields": fields, "optional": true, "name": "shop.public.t.Value", "field": side});
    let text = |field: &str| json!({"type": "string", "optional": true, "field": field});
    let long = |field: &str| json!({"type": "int64", "optional": true, "field": field});
    let source = json!({"type": "struct", "name": "io.debezium.connector.postgresql.Source", "optional": false, "field": "source",
        "fields": [text("connector"), text("name"), text("db"), text("schema"), text("table"), long("lsn"), long("ts_ms"), text("snapshot")]});
    let transaction = json!({"type": "struct", "name": "event.block", "optional": true, "field": "transaction", "fields": [text("id"), long("total_order")]});
    let schema = json!({"type": "struct", "optional": false, "name": "shop.public.t.Envelope",
        "fields": [row("before"), row("after"), source, text("op"), long("ts_ms"), transaction]});
    let payload = json!({"before": before, "after": after, "source": postgres(lsn), "op": op, "ts_ms": 1_770_112_800_007i64,
        "transaction": {"id": format!("tx{lsn}"), "total_order": 1}});
    json!({"schema": schema, "payload": payload})
}

fn id_and(schemas: &[Value]) -> Vec<Value> {
    let mut all = vec![json!({"type": "int64", "optional": false, "field": "id"})];
    all.extend(schemas.iter().cloned());
    all
}

/// A record of a plain Avro schema.
fn plain(registry: &mut AvroRegistry, schema: &Value, write: impl FnOnce(&mut Vec<u8>)) -> Framed {
    let mut bytes = vec![0];
    bytes.extend(registry.id_of(schema).to_be_bytes());
    write(&mut bytes);
    Framed { event: event(0, None, None), key: None, value: Some(bytes) }
}

#[test]
fn flattened_rows_carry_their_operation_and_deletes() {
    let text = |field: &str| json!({"type": "string", "optional": true, "field": field});
    let fields = id_and(&[
        text("name"),
        text("__op"),
        text("__deleted"),
        json!({"type": "int64", "optional": true, "field": "__source_lsn"}),
        text("__source_connector"),
    ]);
    let row = |id: i64, op: &str, deleted: &str| json!({"id": id, "name": "x", "__op": op, "__deleted": deleted, "__source_lsn": 100 + id, "__source_connector": "postgresql"});
    let mut events = vec![
        event(0, Some(&key(1)), Some(&flat(&fields, &row(1, "c", "false")))),
        event(1, Some(&key(1)), Some(&flat(&fields, &row(1, "d", "true")))),
        event(2, Some(&key(1)), None),
    ];
    events[1].headers.push(EventHeader { key: "other".to_owned(), value: None });
    assert_eq!(both_ways(&feed(Decode::DebeziumFlattened, Vec::new()), &events, 10), Ok(2));
    // Without rows for deletes, the null value is the delete.
    let fields = id_and(&[text("name")]);
    let events = [event(0, Some(&key(1)), Some(&flat(&fields, &json!({"id": 1, "name": "x"})))), event(1, Some(&key(1)), None)];
    assert_eq!(both_ways(&feed(Decode::DebeziumFlattened, Vec::new()), &events, 1), Ok(2));
}

#[test]
fn changes_of_every_operation_and_of_keys_are_the_same_as_avro() {
    let fields = id_and(&[json!({"type": "string", "optional": true, "field": "name"})]);
    let row = |id: i64| json!({"id": id, "name": "x"});
    let null = Value::Null;
    let mut events = vec![
        event(0, Some(&key(1)), Some(&change(&fields, "r", 1, &null, &row(1)))),
        event(1, Some(&key(1)), Some(&change(&fields, "u", 2, &row(1), &row(1)))),
        event(2, Some(&key(1)), Some(&change(&fields, "d", 3, &json!({"id": 1, "name": null}), &null))),
        event(3, Some(&key(1)), None),
        event(4, Some(&key(2)), Some(&change(&fields, "c", 3, &null, &row(2)))),
        event(5, None, Some(&change(&fields, "t", 4, &null, &null))),
        event(6, Some(&key(3)), Some(&change(&fields, "u", 5, &null, &null))),
        event(7, Some(&key(3)), Some(&change(&fields, "x", 6, &null, &row(3)))),
        event(8, None, Some(&change(&fields, "d", 7, &null, &null))),
        event(9, Some(&key(3)), Some(&change(&fields, "m", 8, &null, &null))),
    ];
    events[2].headers.push(EventHeader { key: "__debezium.newkey".to_owned(), value: Some("{\"id\":2}".to_owned()) });
    events[4].headers.push(EventHeader { key: "__debezium.oldkey".to_owned(), value: Some("{\"id\":1}".to_owned()) });
    for size in [1, 3, 20] {
        assert_eq!(both_ways(&feed(Decode::Debezium, Vec::new()), &events, size), Ok(5));
    }
}

#[test]
fn a_key_change_may_be_told_in_avro() {
    let fields = id_and(&[json!({"type": "string", "optional": true, "field": "name"})]);
    let mut registry = AvroRegistry::default();
    let created = framed(&mut registry, &event(0, Some(&key(2)), Some(&enveloped(&fields, 3, &json!({"id": 2, "name": "x"})))));
    let old = registry.framed(&key(1)).unwrap();
    let headers = [Header { key: "__debezium.oldkey", value: Some(&old) }];
    let record = Record {
        topic: "shop.public.t",
        partition: 0,
        offset: 0,
        key: created.key.as_deref(),
        value: created.value.as_deref(),
        headers: &headers,
        timestamp_ms: None,
        file: None,
        line: None,
    };
    let mut decoder = Decoder::new(&feed(Decode::Debezium, Vec::new())).unwrap();
    assert_eq!(decoder.missing_schemas(&[record]).len(), 2, "that of the key and that of the value");
    for id in decoder.missing_schemas(&[record]) {
        decoder.learn_schema(id, registry.text(id.0).unwrap(), &[]).unwrap();
    }
    let decoded = decoder.decode(&[record], 0);
    assert_eq!(cells(&decoded.batch, "_key_changed_from"), ["{id: 1}"]);
    assert_eq!(cells(&decoded.batch, "_key_changed_to"), ["∅"]);
}

#[test]
fn heartbeats_transactions_and_signals_are_no_rows_in_avro_either() {
    let long = |field: &str| json!({"type": "int64", "optional": true, "field": field});
    let text = |field: &str| json!({"type": "string", "optional": true, "field": field});
    let message = |fields: Vec<Value>, payload: Value| json!({"schema": {"type": "struct", "fields": fields, "optional": false, "name": "x.Y"}, "payload": payload});
    let signal = [text("id"), text("type"), text("data")];
    let mut events = [
        event(0, None, Some(&message(vec![long("ts_ms")], json!({"ts_ms": 1})))),
        event(
            1,
            None,
            Some(&message(
                vec![text("status"), text("id"), long("event_count"), text("data_collections")],
                json!({"status": "BEGIN", "id": "1", "event_count": null, "data_collections": null}),
            )),
        ),
        event(2, None, Some(&change(&signal, "c", 1, &Value::Null, &json!({"id": "1", "type": "execute-snapshot", "data": "{}"})))),
        event(3, None, Some(&message(vec![text("something")], json!({"something": "else"})))),
    ];
    events[0].topic = "__debezium-heartbeat.shop".to_owned();
    let mut registry = AvroRegistry::default();
    let all: Vec<Framed> = events.iter().map(|event| framed(&mut registry, event)).collect();
    let decoded = decode(&mut Decoder::new(&feed(Decode::Debezium, Vec::new())).unwrap(), &registry, &all);
    let expected = [IgnoreReason::Heartbeat, IgnoreReason::Transaction, IgnoreReason::Signal];
    assert_eq!(decoded.ignored.keys().copied().collect::<Vec<_>>(), {
        let mut sorted = expected.to_vec();
        sorted.sort_unstable();
        sorted
    });
    assert_eq!(decoded.rejects.len(), 1);
    assert_eq!((decoded.rejects[0].index, decoded.rejects[0].reason), (3, ReasonCode::UnknownShape));
    assert!(both_ways(&feed(Decode::Debezium, Vec::new()), &events, 10).is_ok());
}

#[test]
fn plain_records_have_the_columns_of_their_logical_types() {
    let schema = json!({"type": "record", "name": "Row", "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "exact", "type": {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 6, "scale": 1}},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["red", "green"]}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "float"}]}]},
        {"name": "raw", "type": {"type": "fixed", "name": "G", "size": 2}},
    ]});
    let mut registry = AvroRegistry::default();
    let record = plain(&mut registry, &schema, |out| {
        write_long(1, out);
        write_long(1_770_112_800_123, out);
        write_long(1_770_112_800_123_456, out);
        write_long(20_000, out);
        write_bytes(&[0xff], out);
        out.extend([0, 1, 0]);
        write_long(1, out);
        write_long(1, out);
        write_bytes(b"a", out);
        write_long(-3, out);
        write_long(0, out);
        write_long(1, out);
        out.extend(1.5f32.to_le_bytes());
        out.extend([7, 8]);
    });
    let mut null = record.clone();
    null.value = None;
    let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
    let decoded = decode(&mut decoder, &registry, &[record, null]);
    assert_eq!(decoded.rejects, []);
    assert_eq!(decoded.ignored.keys().collect::<Vec<_>>(), [&IgnoreReason::Tombstone], "a null value is no row, as in plain JSON");
    for (name, data_type, text) in [
        ("id", "long", "1"),
        ("at", "timestamp", "2026-02-03T10:00:00.123Z"),
        ("local", "timestamp_ntz", "2026-02-03T10:00:00.123456"),
        ("day", "date", "2024-10-04"),
        ("price", "decimal(9,2)", "-0.01"),
        ("exact", "decimal(6,1)", "25.6"),
        ("colour", "string", "green"),
        ("tags", "map<string,integer>", "{a: -3}"),
        ("place", "struct<x: float>", "{x: 1.5}"),
        ("raw", "binary", "0708"),
    ] {
        assert_eq!(
            (type_of(&decoder, name).replace(": ", ":"), cells(&decoded.batch, name)),
            (data_type.replace(": ", ":"), vec![text.to_owned()]),
            "{name}"
        );
    }
    assert_eq!(cells(&decoded.batch, "_position"), ["shop.public.t/0000000000/00000000000000000000"]);
}

fn row_schema(fields: &Value) -> Value {
    json!({"type": "record", "name": "Row", "fields": fields})
}

/// Writers of several versions in one batch: a column more, one less, a wider one.
fn evolving(registry: &mut AvroRegistry) -> Vec<Framed> {
    let one = row_schema(&json!([{"name": "id", "type": "long"}, {"name": "n", "type": "int"}]));
    let two = row_schema(
        &json!([{"name": "id", "type": "long"}, {"name": "n", "type": "long"}, {"name": "extra", "type": ["null", "string"], "default": null}]),
    );
    let three = row_schema(&json!([{"name": "extra", "type": ["string", "null"]}, {"name": "id", "type": "long"}]));
    let old = |registry: &mut AvroRegistry, id: i64| {
        plain(registry, &one, |out| {
            write_long(id, out);
            write_long(5, out);
        })
    };
    let mut all = vec![old(registry, 1)];
    all.push(plain(registry, &two, |out| {
        write_long(2, out);
        write_long(1 << 40, out);
        write_long(1, out);
        write_bytes(b"e", out);
    }));
    all.push(old(registry, 3));
    all.push(plain(registry, &three, |out| {
        write_long(0, out);
        write_bytes(b"f", out);
        write_long(4, out);
    }));
    all.push(old(registry, 5));
    all
}

#[test]
fn writers_of_several_versions_share_a_batch_and_the_rows_keep_their_order() {
    for (policy, ids, rejected, n) in [
        (SchemaPolicy::Widen, "1 2 3 4 5", "", "long"),
        (SchemaPolicy::Add, "1 3 4 5", "1", "integer"),
        (SchemaPolicy::Rescue, "1 2 3 4 5", "", "integer"),
        (SchemaPolicy::Quarantine, "1 3 5", "1 3", "integer"),
    ] {
        let mut registry = AvroRegistry::default();
        let records = evolving(&mut registry);
        let mut feed = feed(Decode::Avro, columns("id long\nn integer"));
        feed.schema_policy = policy;
        let mut decoder = Decoder::new(&feed).unwrap();
        let decoded = decode(&mut decoder, &registry, &records);
        let rejects: Vec<String> = decoded.rejects.iter().map(|reject| reject.index.to_string()).collect();
        assert_eq!((cells(&decoded.batch, "id").join(" "), rejects.join(" ")), (ids.to_owned(), rejected.to_owned()), "{policy:?}");
        assert_eq!(type_of(&decoder, "n"), n, "{policy:?}");
        if policy == SchemaPolicy::Rescue {
            assert_eq!(cells(&decoded.batch, "_rescued_data"), ["∅", r#"{"n":1099511627776,"extra":"e"}"#, "∅", r#"{"extra":"f"}"#, "∅"]);
        }
    }
    let mut registry = AvroRegistry::default();
    let records = evolving(&mut registry);
    let mut feed = feed(Decode::Avro, columns("id long\nn integer"));
    feed.schema_policy = SchemaPolicy::Freeze;
    let decoded = decode(&mut Decoder::new(&feed).unwrap(), &registry, &records);
    assert!(matches!(decoded.stop, Some(Error::Frozen { column, .. }) if column == "extra"));
}

#[test]
fn a_slice_larger_than_what_is_decoded_together_keeps_every_row() {
    let mut registry = AvroRegistry::default();
    let schema = row_schema(&json!([{"name": "id", "type": "long"}]));
    let other = row_schema(&json!([{"name": "id", "type": "int"}]));
    let records: Vec<Framed> =
        (0..5_000i64).map(|id| plain(&mut registry, if id % 3 == 0 { &schema } else { &other }, |out| write_long(id, out))).collect();
    let decoded = decode(&mut Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap(), &registry, &records);
    assert_eq!(cells(&decoded.batch, "id"), (0..5_000).map(|id: i64| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn types_are_found_in_references_however_deep() {
    let country = r#"{"type":"record","name":"geo.Country","fields":[{"name":"code","type":"string"}]}"#.to_owned();
    let city = r#"{"type":"record","name":"City","namespace":"geo","fields":[{"name":"name","type":"string"},{"name":"country","type":"Country"}]}"#.to_owned();
    let row = r#"{"type":"record","name":"Row","fields":[{"name":"home","type":"geo.City"},{"name":"work","type":["null","geo.City"]}]}"#;
    let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
    let mut value = vec![0, 0, 0, 0, 9];
    write_bytes(b"Bern", &mut value);
    write_bytes(b"CH", &mut value);
    write_long(0, &mut value);
    let record = Record::line_of_file("f", 1, &value);
    assert_eq!(decoder.missing_schemas(&[record]), [SchemaId(9)]);
    let missing = decoder.learn_schema(SchemaId(9), row, &[]).unwrap_err().to_string();
    assert!(missing.contains("geo.City is not defined"), "{missing}");
    decoder.learn_schema(SchemaId(9), row, &[country, city]).unwrap();
    let decoded = decoder.decode(&[record], 0);
    assert_eq!(cells(&decoded.batch, "home"), ["{name: Bern, country: {code: CH}}"]);
}

fn reject_of(decoder: &mut Decoder, value: &[u8]) -> (ReasonCode, String) {
    let decoded = decoder.decode(&[Record::line_of_file("f", 1, value)], 0);
    assert_eq!((decoded.batch.num_rows(), decoded.rejects.len()), (0, 1), "{value:?}");
    (decoded.rejects[0].reason, decoded.rejects[0].message.clone())
}

#[test]
fn schemas_that_no_table_can_be_made_of_are_refused_with_the_reason() {
    let field = |data: &str| format!(r#"{{"type":"record","name":"Row","fields":[{{"name":"x","type":{data}}}]}}"#);
    let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(200), "}".repeat(200));
    let wide = {
        // Each record twice the one before: a few lines stand for a billion fields.
        let mut text = r#"{"type":"record","name":"R0","fields":[{"name":"a","type":"int"}]}"#.to_owned();
        for at in 1..40 {
            let before = at - 1;
            text =
                format!(r#"{{"type":"record","name":"R{at}","fields":[{{"name":"a","type":{text}}},{{"name":"b","type":"R{before}"}}]}}"#);
        }
        text
    };
    for (schema, told) in [
        (field(r#"["null","int","string"]"#), "a union of 3 types"),
        (field(r#"["int","string"]"#), "a union of 2 types"),
        (field(r#"["null"]"#), "a union of 1 types"),
        (field(r#""null""#), "always null"),
        (field(r#"["null","Row"]"#), "contains itself"),
        (field(r#"{"type":"array","items":{"type":"record","name":"E","fields":[]}}"#), "has no fields"),
        (field(r#""Nowhere""#), "not defined"),
        (field(r#"{"type":"fixed","name":"F","size":0}"#), "has no size"),
        (field(r#"{"type":"fixed","name":"F","size":99999999999}"#), "has no size"),
        (field(r#"{"type":"enum","name":"E","symbols":[]}"#), "no symbols"),
        (field("{}"), "a type is not named"),
        (field("7"), "no type"),
        (field(&deep), "nested deeper"),
        (wide, "more than 20000 parts"),
        (r#""string""#.to_owned(), "no record"),
        (r#"["null",{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}]"#.to_owned(), "no record"),
        ("{".to_owned(), "no json"),
        (String::new(), "no json"),
        (r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}"#.to_owned(), "two fields a"),
    ] {
        let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
        let error = decoder.learn_schema(SchemaId(3), &schema, &[]).unwrap_err().to_string();
        assert!(error.contains(told), "{told}: {error}");
        let (reason, message) = reject_of(&mut decoder, &[0, 0, 0, 0, 3, 2]);
        assert_eq!(reason, ReasonCode::UnsupportedSchema);
        assert!(message.contains("schema 3") && message.contains(told), "{message}");
    }
}

#[test]
fn a_schema_that_the_registry_does_not_have_sends_its_records_to_quarantine() {
    let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
    let (reason, message) = reject_of(&mut decoder, &[0, 0, 0, 1, 1, 2]);
    assert_eq!(
        (reason, message.as_str()),
        (ReasonCode::UnknownSchema, "schema 257 has not been looked up: the source has no schema registry")
    );
    decoder.learn_absent(SchemaId(257));
    let (reason, message) = reject_of(&mut decoder, &[0, 0, 0, 1, 1, 2]);
    assert_eq!((reason, message.as_str()), (ReasonCode::UnknownSchema, "the schema registry has no schema 257"));
    decoder.learn_foreign(SchemaId(7), "PROTOBUF");
    let (reason, message) = reject_of(&mut decoder, &[0, 0, 0, 0, 7, 2]);
    assert_eq!((reason, message.as_str()), (ReasonCode::UnsupportedSchema, "schema 7 is of type PROTOBUF; only avro is read"));
}

#[test]
fn only_feeds_that_may_hold_avro_ask_for_schemas() {
    let record = Record::line_of_file("f", 1, &[0, 0, 0, 0, 7, 2]);
    for (decode, asked) in
        [(Decode::Avro, 1), (Decode::Debezium, 1), (Decode::DebeziumFlattened, 1), (Decode::Json, 0), (Decode::Csv, 0), (Decode::Raw, 0)]
    {
        assert_eq!(Decoder::new(&feed(decode, Vec::new())).unwrap().missing_schemas(&[record, record]).len(), asked, "{decode:?}");
    }
}

/// A decoder with one schema, and a record of it.
fn taught() -> (Decoder, Vec<u8>) {
    let schema = row_schema(&json!([
        {"name": "id", "type": "long"},
        {"name": "flag", "type": "boolean"},
        {"name": "n", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "list", "type": {"type": "array", "items": "string"}},
        {"name": "colour", "type": {"type": "enum", "name": "C", "symbols": ["a", "b"]}},
    ]));
    let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
    decoder.learn_schema(SchemaId(5), &schema.to_string(), &[]).unwrap();
    let mut value = vec![0, 0, 0, 0, 5];
    write_long(-300, &mut value);
    value.push(1);
    write_long(7, &mut value);
    write_long(1, &mut value);
    write_bytes(b"text", &mut value);
    write_long(1, &mut value);
    write_bytes(b"item", &mut value);
    write_long(0, &mut value);
    write_long(1, &mut value);
    (decoder, value)
}

#[test]
fn bytes_that_do_not_fit_their_schema_are_rejected_by_field_and_byte() {
    let (mut decoder, good) = taught();
    assert_eq!(decoder.decode(&[Record::line_of_file("f", 1, &good)], 0).batch.num_rows(), 1);
    for length in 0..good.len() {
        let (reason, _) = reject_of(&mut decoder, &good[..length]);
        assert_eq!(reason, ReasonCode::BrokenAvro, "{length}");
    }
    let change = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed.splice(at..at + 1, bytes.iter().copied());
        changed
    };
    for (value, told) in [
        ([&good[..], &[0]].concat(), "bytes follow the record at byte 23"),
        ([&good[..], &good[..]].concat(), "bytes follow the record at byte 23"),
        (change(5, &[0xff; 12]), "field id: a number has more than 64 bits at byte 5"),
        (change(7, &[2]), "field flag: a boolean is neither 0 nor 1 at byte 8"),
        (change(8, &[0xfe, 0xff, 0xff, 0xff, 0x7f]), "field n: an int has more than 32 bits at byte 8"),
        (change(9, &[4]), "field name: a union has no such branch at byte 10"),
        (change(10, &[1]), "field name: a length is negative at byte 11"),
        (change(10, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), "field name: the record is cut short at byte 20"),
        (change(11, &[0xff]), "field name: a text is not utf-8, before at byte 15"),
        (change(15, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), "field list: the record is cut short"),
        (change(15, &[1, 2]), "field list: a block has another size than it says at byte 22"),
        (change(22, &[8]), "field colour: an enum has no such symbol at byte 23"),
        (b"{\"id\":1}".to_vec(), "the value is not framed"),
        (vec![0, 0, 0], "cut short in its frame"),
        (Vec::new(), "the value is not framed"),
    ] {
        let (reason, message) = reject_of(&mut decoder, &value);
        assert_eq!(reason, ReasonCode::BrokenAvro, "{message}");
        assert!(message.contains(told), "{told}: {message}");
    }
    // A bad record between good ones takes nothing with it.
    let records = [&good[..], &good[..12], &good[..]].map(|value| Record::line_of_file("f", 1, value));
    let decoded = decoder.decode(&records, 0);
    assert_eq!((cells(&decoded.batch, "name"), decoded.rejects[0].index), (vec!["text".to_owned(); 2], 1));
}

#[test]
fn law_no_avro_bytes_make_the_decoder_panic() {
    let fields = id_and(
        &makers()
            .into_iter()
            .zip(0..)
            .map(|((mut schema, _), at)| {
                schema["field"] = format!("f{at}").into();
                schema["optional"] = (at % 2 == 0).into();
                schema
            })
            .collect::<Vec<_>>(),
    );
    let makers = makers();
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..6);
    let cases = (prop::collection::vec(raw(), makers.len()), prop::collection::vec(damage, 1..8), any::<bool>());
    Law::new("avro bytes").holds(&cases, |(raws, damages, flattened), tried| {
        let mut row = json!({"id": 1});
        for (at, (raw, (schema, maker))) in raws.iter().zip(&makers).enumerate() {
            let null = raw.null && at % 2 == 0;
            let _ = schema;
            row[format!("f{at}")] = if null { Value::Null } else { maker(raw) };
        }
        let mut registry = AvroRegistry::default();
        let value = if flattened { flat(&fields, &row) } else { enveloped(&fields, 1, &row) };
        let good = framed(&mut registry, &event(1, Some(&key(1)), Some(&value)));
        let mut records = vec![good.clone()];
        for damage in damages {
            let mut bad = good.clone();
            for (at, byte, how) in damage {
                for bytes in [&mut bad.value, &mut bad.key].into_iter().flatten() {
                    let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
                    match how {
                        0 => bytes.truncate(at),
                        1 => bytes.insert(at, byte),
                        2 => drop(bytes.drain(..at.min(bytes.len()))),
                        _ if at < bytes.len() => bytes[at] ^= byte,
                        _ => {}
                    }
                }
            }
            records.push(bad);
        }
        records.push(good);
        let form = if flattened { Decode::DebeziumFlattened } else { Decode::Debezium };
        let decoded = decode(&mut Decoder::new(&feed(form, Vec::new())).unwrap(), &registry, &records);
        tried.add("rejected", decoded.rejects.len());
        Ok(())
    });
}

#[test]
fn law_no_schema_text_makes_the_decoder_panic() {
    let text = json!({"type": "record", "name": "a.Row", "fields": [
        {"name": "x", "type": ["null", {"type": "bytes", "logicalType": "decimal", "connect.parameters": {"scale": "2"}, "connect.name": "org.apache.kafka.connect.data.Decimal"}], "default": null},
        {"name": "y", "type": {"type": "map", "values": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 4}}}},
        {"name": "z", "type": {"type": "enum", "name": "E", "symbols": ["s"]}},
    ]}).to_string().into_bytes();
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>(), 0..3u8), 1..5);
    Law::new("avro schemas").holds(&edits, |edits, tried| {
        let mut bytes = text.clone();
        for (at, byte, other, how) in edits {
            let (at, other) = (at.index(bytes.len()), other.index(bytes.len()));
            match how {
                0 => bytes[at] = byte & 0x7f,
                1 => drop(bytes.splice(at..at, text[at.min(other).min(text.len())..other.max(at).min(text.len())].to_vec())),
                _ => drop(bytes.drain(at.min(other)..at.max(other))),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let learned = decoder.learn_schema(SchemaId(1), &text, &[]).is_ok();
        tried.add("usable", usize::from(learned));
        let decoded = decoder.decode(&[Record::line_of_file("f", 1, &[0, 0, 0, 0, 1, 0, 2, 2, b'k', 0, 0, 0, 0])], 0);
        prop_assert_eq!(decoded.batch.num_rows() + decoded.rejects.len(), 1);
        Ok(())
    });
}
