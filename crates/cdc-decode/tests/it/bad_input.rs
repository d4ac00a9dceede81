//! Bad records go to quarantine with their reason; nothing else of the batch is touched.

use proptest::prelude::*;
use serde_json::json;
use tributary_cdc_decode::{Decoder, ReasonCode, Record};
use tributary_specs::{Decode, SchemaPolicy};
use tributary_testkit::Law;
use tributary_testkit::strategy::damage;

use crate::capture::{ALL, Event, events, with_records};
use crate::captures::feed_for;
use crate::feeds::{columns, feed};
use crate::message::{cells, create, decode, event, rows};

fn text(value: &str) -> Event {
    Event { value: Some(value.to_owned()), ..event(7, Some(&json!({"id": 1})), None) }
}

fn reason_of(value: &str) -> ReasonCode {
    let good = event(1, Some(&json!({"id": 1})), Some(&create(1, &json!({"id": 1, "title": "before"}))));
    let after = event(2, Some(&json!({"id": 2})), Some(&create(2, &json!({"id": 2, "title": "after"}))));
    let mut table = feed(Decode::Debezium, columns("id long\ntitle string"));
    table.schema_policy = SchemaPolicy::Add;
    let decoded = decode(&table, &[good, text(value), after]);
    assert_eq!(cells(&decoded.batch, "title"), ["before", "after"], "{value}");
    let [reject] = decoded.rejects.as_slice() else { panic!("{value}: {:?}", decoded.rejects) };
    assert_eq!(reject.index, 1);
    assert!(!reject.message.contains("secret"), "{}", reject.message);
    reject.reason
}

#[test]
fn each_kind_of_bad_record_has_its_reason() {
    let cut = create(1, &json!({"id": 1, "title": "secret"})).to_string();
    for (value, reason) in [
        (&cut[..cut.len() - 1], ReasonCode::BrokenJson),
        (&cut[..cut.len() / 2], ReasonCode::BrokenJson),
        ("{\"op\":\"c\",", ReasonCode::BrokenJson),
        ("secret", ReasonCode::BrokenJson),
        ("[]", ReasonCode::UnknownShape),
        ("42", ReasonCode::UnknownShape),
        ("{}", ReasonCode::UnknownShape),
        ("{\"id\":1,\"title\":\"secret\"}", ReasonCode::UnknownShape),
        ("{\"before\":null,\"after\":{\"id\":1},\"source\":{},\"op\":\"x\"}", ReasonCode::UnknownOp),
        ("{\"before\":null,\"after\":null,\"source\":{},\"op\":\"c\"}", ReasonCode::MissingRow),
        ("{\"before\":null,\"source\":{},\"op\":\"u\"}", ReasonCode::MissingRow),
        ("{\"after\":{\"id\":\"secret\"},\"source\":{},\"op\":\"c\"}", ReasonCode::WrongType),
        ("{\"after\":{\"id\":99999999999999999999},\"source\":{},\"op\":\"c\"}", ReasonCode::DoesNotFit),
        ("{\"after\":{\"id\":1e400},\"source\":{},\"op\":\"c\"}", ReasonCode::DoesNotFit),
        ("{\"after\":{\"id\":1,\"title\":\"\\ud83d\"},\"source\":{},\"op\":\"c\"}", ReasonCode::BrokenJson),
        ("{\"after\":{\"id\":1,\"title\":\"a\nb\"},\"source\":{},\"op\":\"c\"}", ReasonCode::BrokenJson),
        ("{\"after\":{\"id\":01},\"source\":{},\"op\":\"c\"}", ReasonCode::BrokenJson),
        (
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"field\":\"after\",\"fields\":[{\"type\":\"odd\",\"field\":\"id\"}]}]},\"payload\":{\"after\":{\"id\":1},\"op\":\"c\"}}",
            ReasonCode::BrokenSchema,
        ),
        (
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"field\":\"after\",\"fields\":[]}]},\"payload\":{\"after\":{\"id\":1},\"op\":\"c\"}}",
            ReasonCode::BrokenSchema,
        ),
    ] {
        assert_eq!(reason_of(value), reason, "{value}");
    }
    let deep = format!("{{\"after\":{{\"id\":1,\"x\":{}{}}},\"op\":\"c\"}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(reason_of(&deep), ReasonCode::TooDeep);
}

#[test]
fn bytes_that_are_no_text_go_to_quarantine() {
    let feed = feed(Decode::Debezium, columns("id long\ntitle string"));
    let mut value = create(1, &json!({"id": 1, "title": "@"})).to_string().into_bytes();
    let at = value.iter().position(|byte| *byte == b'@').unwrap();
    value[at] = 0xff;
    let record = Record { value: Some(&value), ..Record::line_of_file("f", 1, b"") };
    let decoded = Decoder::new(&feed).unwrap().decode(&[record], 0);
    assert_eq!(decoded.rejects[0].reason, ReasonCode::NotUtf8);
}

#[test]
fn a_byte_order_mark_blanks_and_another_order_of_members_are_read() {
    let table = feed(Decode::Debezium, columns("id long\ntitle string"));
    let decoded = decode(
        &table,
        &[
            text("\u{feff}{\"after\":{\"id\":1,\"title\":\"a\"},\"source\":{\"connector\":\"postgresql\",\"lsn\":5},\"op\":\"c\"}"),
            text(
                " { \"op\" : \"c\" , \"source\" : { \"lsn\" : 6 , \"connector\" : \"postgresql\" } ,\n\t\"after\" : { \"title\" : \"b\" , \"id\" : 2 } } \n",
            ),
            text(
                "{\"payload\":{\"after\":{\"id\":3,\"title\":\"c\"},\"source\":{\"connector\":\"postgresql\",\"lsn\":7},\"op\":\"c\"},\"schema\":null}",
            ),
        ],
    );
    assert_eq!(cells(&decoded.batch, "title"), ["a", "b", "c"]);
    assert_eq!(cells(&decoded.batch, "id"), ["1", "2", "3"]);
    assert!(cells(&decoded.batch, "_position").is_sorted_by(|a, b| a < b));
}

#[test]
fn of_a_key_that_comes_twice_the_last_value_is_taken_and_it_is_counted() {
    let table = feed(Decode::Debezium, columns("id long\ntitle string"));
    let twice = "{\"after\":{\"id\":1,\"title\":\"first\",\"id\":2,\"title\":null,\"title\":\"last\"},\"op\":\"u\",\"op\":\"c\",\"source\":{\"connector\":\"postgresql\",\"lsn\":5}}";
    let images =
        "{\"after\":{\"id\":1,\"title\":\"first\"},\"after\":{\"id\":3},\"op\":\"c\",\"source\":{\"connector\":\"postgresql\",\"lsn\":6}}";
    let decoded = decode(&table, &[text(twice), text(images)]);
    assert_eq!(cells(&decoded.batch, "id"), ["2", "3"]);
    assert_eq!(cells(&decoded.batch, "title"), ["last", "∅"]);
    assert_eq!(cells(&decoded.batch, "_op"), ["create", "create"]);
    assert_eq!(decoded.duplicate_keys, 5);
}

#[test]
fn numbers_beyond_64_bits_are_exact() {
    let table = feed(Decode::Debezium, columns("id long\namount decimal(38,4)"));
    let value = "{\"after\":{\"id\":1,\"amount\":1234567890123456789012345678901234.5678},\"op\":\"c\",\"source\":{}}";
    assert_eq!(cells(&decode(&table, &[text(value)]).batch, "amount"), ["1234567890123456789012345678901234.5678"]);
}

/// An event of any capture, with damage done to its value, key or one of its headers.
fn damaged() -> impl Strategy<Value = (usize, Event, Vec<u8>, u8)> {
    let all: Vec<(usize, Event)> = ALL
        .iter()
        .enumerate()
        .flat_map(|(capture, name)| events(name).into_iter().take(400).map(move |event| (capture, event)))
        .filter(|(_, event)| event.value.is_some())
        .collect();
    (prop::sample::select(all), 0..3u8).prop_flat_map(|((capture, event), part)| {
        let bytes = match part {
            0 => event.value.clone(),
            1 => event.key.clone(),
            _ => event.headers.last().and_then(|header| header.value.clone()),
        };
        damage(bytes.unwrap_or_default().into_bytes()).prop_map(move |bytes| (capture, event.clone(), bytes, part))
    })
}

#[test]
fn law_no_damage_makes_the_decoder_panic_or_lose_count() {
    let whole: Vec<Vec<Event>> = ALL.iter().map(|capture| events(capture).into_iter().take(60).collect()).collect();
    Law::new("damage").holds(&damaged(), |(capture, event, bytes, part), tried| {
        let table = event.topic.rsplit('.').next().unwrap_or_default();
        for policy in [SchemaPolicy::Widen, SchemaPolicy::Rescue, SchemaPolicy::Quarantine] {
            let mut feed = if ["customers", "orders", "order_items", "inventory", "stock_moves", "settings", "audit_log"].contains(&table) {
                feed_for(ALL[capture], table)
            } else {
                feed(Decode::Debezium, Vec::new())
            };
            feed.schema_policy = policy;
            let mut decoder = Decoder::new(&feed).unwrap();
            let others: Vec<Event> = whole[capture].iter().filter(|other| other.topic == event.topic).cloned().collect();
            let alone = with_records(&others, |records| decoder.decode(records, 0));
            let decoded = with_records(std::slice::from_ref(&event), |records| {
                let mut record = records[0];
                let mut headers = record.headers.to_vec();
                match part {
                    0 => record.value = Some(&bytes),
                    1 => record.key = Some(&bytes),
                    _ => {
                        if let Some(header) = headers.last_mut() {
                            header.value = Some(&bytes);
                        }
                    }
                }
                record.headers = &headers;
                decoder.decode(&[record, record], 0)
            });
            tried.add("records", 2);
            let ignored: u64 = decoded.ignored.values().sum();
            let count = decoded.batch.num_rows() + decoded.rejects.len() + usize::try_from(ignored).unwrap_or(0);
            prop_assert!(decoded.stop.is_some() || count == 2, "{} of 2", count);
            prop_assert_eq!(rows(&decoded.batch).len(), decoded.batch.num_rows());
            // What follows is decoded as if the damaged record had not been there, but for a schema it may have changed.
            if decoded.stop.is_none() && policy == SchemaPolicy::Quarantine && alone.stop.is_none() {
                let again = with_records(&others, |records| decoder.decode(records, 0));
                prop_assert!(again.stop.is_some() || again.batch.num_rows() == alone.batch.num_rows());
            }
        }
        Ok(())
    });
}
