//! What no partition of a Delta table can hold: an empty text, for Delta has one form for it and for null, and what has no text there.

use serde_json::{Value, json};
use tributary_cdc_decode::{Decoder, Reject};
use tributary_cdc_decode::{ReasonCode, Record};
use tributary_specs::{Decode, ReplicaIdentity, SourceFeed};

use crate::feeds::{columns, feed};
use crate::message::{cells, decode, envelope, event, postgres, wrapped};

const NULL: Value = Value::Null;

fn sites(decode: Decode, partition_by: &[&str]) -> SourceFeed {
    let mut feed = feed(decode, columns("id long\nsite string\nday date\nname string"));
    feed.partition_by = partition_by.iter().map(|name| (*name).to_owned()).collect();
    feed.keys = vec!["id".to_owned()];
    feed.replica_identity = ReplicaIdentity::Full;
    feed
}

fn assert_refused(rejects: &[Reject], at: &[usize]) {
    assert_eq!(rejects.iter().map(|reject| reject.index).collect::<Vec<_>>(), at);
    for reject in rejects {
        assert_eq!(reject.reason, ReasonCode::DoesNotFit);
        assert!(reject.message.contains("column site: an empty text"), "{}", reject.message);
    }
}

#[test]
fn a_change_to_an_empty_partition_is_set_aside_and_the_others_are_rows() {
    let row = |id: i64, site: Value| json!({"id": id, "site": site, "day": 20_000, "name": ""});
    let changes = [
        envelope("c", &NULL, &row(1, json!("north")), &postgres(1)),
        envelope("c", &NULL, &row(2, json!("")), &postgres(2)),
        envelope("u", &row(1, json!("north")), &row(1, json!("")), &postgres(3)),
        envelope("c", &NULL, &row(3, NULL), &postgres(4)),
        // a delete says where its row was, and finds it wherever that is
        envelope("d", &row(1, json!("")), &NULL, &postgres(5)),
        envelope("d", &row(3, json!("south")), &NULL, &postgres(6)),
        envelope("t", &NULL, &NULL, &postgres(7)),
        envelope("c", &NULL, &row(4, json!(" ")), &postgres(8)),
    ];
    let fields = json!([
        {"type": "int64", "field": "id"}, {"type": "string", "optional": true, "field": "site"},
        {"type": "int32", "optional": true, "name": "io.debezium.time.Date", "field": "day"}, {"type": "string", "optional": true, "field": "name"}
    ]);
    for with_schema in [false, true] {
        let events = (0..).zip(&changes).map(|(offset, change)| match with_schema {
            true => event(offset, None, Some(&wrapped(&fields, change))),
            false => event(offset, None, Some(change)),
        });
        let decoded = decode(&sites(Decode::Debezium, &["day", "site"]), &events.collect::<Vec<_>>());
        assert_refused(&decoded.rejects, &[1, 2]);
        assert_eq!(cells(&decoded.batch, "id"), ["1", "3", "1", "3", "∅", "4"]);
        assert_eq!(cells(&decoded.batch, "site"), ["north", "∅", "∅", "south", "∅", " "]);
        assert_eq!(cells(&decoded.batch, "name"), ["", "", "", "", "∅", ""]);
        assert_eq!(cells(&decoded.batch, "_op"), ["create", "create", "delete", "delete", "truncate", "create"]);
        assert!(cells(&decoded.batch, "_before")[2].contains("site: ,"), "{:?}", cells(&decoded.batch, "_before"));
    }
}

#[test]
fn a_delete_of_an_empty_key_is_set_aside_with_what_it_deletes() {
    let mut feed = sites(Decode::Debezium, &["site"]);
    feed.keys.push("site".to_owned());
    let row = json!({"id": 1, "site": "", "day": null, "name": "a"});
    let events = [
        event(0, None, Some(&envelope("c", &NULL, &row, &postgres(1)))),
        event(1, Some(&json!({"id": 1, "site": ""})), Some(&envelope("d", &row, &NULL, &postgres(2)))),
    ];
    let decoded = decode(&feed, &events);
    assert_refused(&decoded.rejects, &[0, 1]);
    assert_eq!(decoded.batch.num_rows(), 0);
}

#[test]
fn feeds_of_plain_rows_set_them_aside_too() {
    let lines = |feed: &SourceFeed, lines: &[&str]| {
        let mut decoder = Decoder::new(feed).unwrap();
        decoder.csv_header(&["id", "site", "day", "name"]).unwrap();
        let records: Vec<Record<'_>> =
            lines.iter().zip(1i64..).map(|(line, number)| Record::line_of_file("in/f", number, line.as_bytes())).collect();
        decoder.decode(&records, 0)
    };
    let json = lines(&sites(Decode::Json, &["site"]), &[r#"{"id":1,"site":""}"#, r#"{"id":2,"site":"a"}"#, r#"{"id":3}"#]);
    assert_refused(&json.rejects, &[0]);
    assert_eq!(cells(&json.batch, "id"), ["2", "3"]);
    let csv = lines(&sites(Decode::Csv, &["site"]), &["1,\"\",2026-01-01,x", "2,a,2026-01-01,y"]);
    let sites_read = cells(&csv.batch, "site");
    assert!(csv.rejects.len() + sites_read.iter().filter(|site| *site == "∅").count() == 1, "{sites_read:?} {:?}", csv.rejects);
    assert!(!sites_read.contains(&String::new()));
    let flattened = [
        event(0, None, Some(&json!({"id": 1, "site": "", "__op": "c", "__deleted": "false"}))),
        event(1, None, Some(&json!({"id": 2, "site": "a", "__op": "c", "__deleted": "false"}))),
    ];
    let flattened = decode(&sites(Decode::DebeziumFlattened, &["site"]), &flattened);
    assert_refused(&flattened.rejects, &[0]);
    assert_eq!(cells(&flattened.batch, "id"), ["2"]);
}

#[test]
fn a_day_outside_the_years_of_partitions_is_set_aside_where_the_table_is_partitioned_by_it() {
    let days = [-719_163, -719_162, 2_932_896, 2_932_897];
    let row = |day: &i32| json!({"id": day, "site": "north", "day": day, "name": "a"});
    let events: Vec<_> =
        (0..).zip(&days).map(|(offset, day)| event(offset, None, Some(&envelope("c", &NULL, &row(day), &postgres(1))))).collect();
    let decoded = decode(&sites(Decode::Debezium, &["day"]), &events);
    assert_eq!(
        decoded.rejects.iter().map(|reject| (reject.index, reject.reason)).collect::<Vec<_>>(),
        [(0, ReasonCode::DoesNotFit), (3, ReasonCode::DoesNotFit)]
    );
    assert!(decoded.rejects[0].message.contains("column day: a time outside the years 1 to 9999"), "{}", decoded.rejects[0].message);
    assert_eq!(cells(&decoded.batch, "day"), ["0001-01-01", "9999-12-31"]);
    assert_eq!(decode(&sites(Decode::Debezium, &["site"]), &events).batch.num_rows(), 4);
}

#[test]
fn a_feed_without_partitions_keeps_empty_texts() {
    let row = json!({"id": 1, "site": "", "day": null, "name": ""});
    let decoded = decode(&sites(Decode::Debezium, &[]), &[event(0, None, Some(&envelope("c", &NULL, &row, &postgres(1))))]);
    assert_eq!(cells(&decoded.batch, "site"), [""]);
}
