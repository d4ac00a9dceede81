//! Feeds that are no change feeds: JSON, CSV, and records as they came.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use serde_json::json;
use tributary_cdc_decode::{Decoder, Header, IgnoreReason, ReasonCode, Record};
use tributary_specs::{CsvOptions, Decode, SchemaPolicy, Source, SourceFeed};

use crate::feeds::{columns, feed};
use crate::message::{cells, decode, event, type_of};

fn lines(feed: &SourceFeed, header: Option<&[&str]>, lines: &[&str]) -> (Decoder, tributary_cdc_decode::Decoded) {
    let mut decoder = Decoder::new(feed).unwrap();
    if let Some(header) = header {
        decoder.csv_header(header).unwrap();
    }
    let records: Vec<Record<'_>> =
        lines.iter().zip(1i64..).map(|(line, number)| Record::line_of_file("in/f", number, line.as_bytes())).collect();
    let decoded = decoder.decode(&records, 0);
    assert_eq!(
        lines.len(),
        decoded.batch.num_rows() + decoded.rejects.len() + usize::try_from(decoded.ignored.values().sum::<u64>()).unwrap()
    );
    (decoder, decoded)
}

fn csv(text: &str, options: CsvOptions) -> SourceFeed {
    let mut feed = feed(Decode::Csv, columns(text));
    feed.schema_policy = SchemaPolicy::Add;
    if let Source::Files(files) = &mut feed.source {
        files.csv = options;
    }
    feed
}

#[test]
fn json_lines_become_rows_with_their_file_and_line() {
    let (decoder, decoded) = lines(
        &feed(Decode::Json, columns("id long\nprice decimal(8,2)\nat timestamp\nraw binary")),
        None,
        &[r#"{"id":1,"price":"12.50","at":"2026-02-03 17:51:04","raw":"AQI="}"#, r#"{"id":2,"price":3,"more":{"a":[1]}}"#, r#"{"id":"#],
    );
    assert_eq!(cells(&decoded.batch, "price"), ["12.50", "3.00"]);
    assert_eq!(cells(&decoded.batch, "at"), ["2026-02-03T17:51:04Z", "∅"]);
    assert_eq!(cells(&decoded.batch, "raw"), ["0102", "∅"]);
    assert_eq!(cells(&decoded.batch, "more"), ["∅", "{\"a\":[1]}"]);
    assert_eq!(
        (cells(&decoded.batch, "_file"), cells(&decoded.batch, "_line")),
        (vec!["in/f".to_owned(); 2], vec!["1".to_owned(), "2".to_owned()])
    );
    assert_eq!(cells(&decoded.batch, "_position"), ["∅", "∅"]);
    assert_eq!(decoded.rejects[0].reason, ReasonCode::BrokenJson);
    let names: Vec<String> = decoder.columns().into_iter().map(|column| column.name).collect();
    assert_eq!(
        names.join(","),
        "id,price,at,raw,more,_position,_topic,_partition,_offset,_file,_line,_event_time,_ingested_at,_rescued_data"
    );
}

#[test]
fn json_from_a_topic_has_its_place_as_position() {
    let decoded = decode(&feed(Decode::Json, columns("id long")), &[event(7, None, Some(&json!({"id": 1}))), event(8, None, None)]);
    assert_eq!(cells(&decoded.batch, "_position"), ["shop.public.t/0000000000/00000000000000000007"]);
    assert_eq!(cells(&decoded.batch, "_event_time"), ["2026-02-03T10:00:00Z"]);
    assert_eq!(decoded.ignored.get(&IgnoreReason::Tombstone), Some(&1));
}

#[test]
fn csv_is_read_by_its_header_whatever_the_order_of_the_columns() {
    let feed = csv("id long\nname string\nprice decimal(8,2)\nday date\nok boolean", CsvOptions::default());
    let (_, decoded) = lines(
        &feed,
        Some(&["price", "id", "name", "day", "ok", "extra"]),
        &["12.5,1,\"a, \"\"b\"\"\nc\",2026-02-03,true,x\n", ",2,\"\",,F,\r\n", "1,3,plain,2026-02-30,yes,", "1,4", "nope,5,n,,,"],
    );
    assert_eq!(cells(&decoded.batch, "name"), ["a, \"b\"\nc", ""]);
    assert_eq!(cells(&decoded.batch, "price"), ["12.50", "∅"]);
    assert_eq!(cells(&decoded.batch, "ok"), ["true", "false"]);
    assert_eq!(cells(&decoded.batch, "extra"), ["x", "∅"]);
    let reasons: Vec<ReasonCode> = decoded.rejects.iter().map(|reject| reject.reason).collect();
    assert_eq!(reasons, [ReasonCode::WrongType, ReasonCode::UnknownShape, ReasonCode::WrongType]);
    assert!(decoded.rejects[1].message.contains("2 fields where 6 are due"), "{}", decoded.rejects[1].message);
}

#[test]
fn csv_has_its_dialect() {
    let feed = csv("a string\nb string", CsvOptions { header: false, delimiter: ';', quote: '\'', null_text: Some("NULL".to_owned()) });
    let (_, decoded) = lines(&feed, None, &["NULL;'NULL'", "'it''s';", "x;y;z", "'open"]);
    assert_eq!(
        (cells(&decoded.batch, "a"), cells(&decoded.batch, "b")),
        (vec!["∅".to_owned(), "it's".to_owned()], vec!["NULL".to_owned(), "∅".to_owned()])
    );
    assert_eq!(decoded.rejects.len(), 2);
}

#[test]
fn csv_without_declaration_is_text_under_the_headers_names() {
    let (decoder, decoded) = lines(&csv("", CsvOptions::default()), Some(&["id", "n"]), &["1,x"]);
    assert_eq!((type_of(&decoder, "id"), cells(&decoded.batch, "id")), ("string".to_owned(), vec!["1".to_owned()]));
    let (decoder, _) = lines(&csv("", CsvOptions { header: false, ..CsvOptions::default() }), None, &["1,x"]);
    assert_eq!((type_of(&decoder, "_c0").as_str(), type_of(&decoder, "_c1").as_str()), ("string", "string"));
}

#[test]
fn a_header_with_a_repeated_or_empty_name_is_refused() {
    let mut decoder = Decoder::new(&csv("", CsvOptions::default())).unwrap();
    assert!(decoder.csv_header(&["a", "b", "A"]).unwrap_err().to_string().contains("columns 1 and 3"));
    assert!(decoder.csv_header(&["a", " "]).unwrap_err().to_string().contains("column 2 has no name"));
}

#[test]
fn raw_records_are_kept_byte_for_byte() {
    let feed = feed(Decode::Raw, Vec::new());
    let headers = [Header { key: "h", value: Some(b"\xff") }, Header { key: "h", value: None }];
    let record = Record {
        topic: "t",
        partition: 3,
        offset: 9,
        key: None,
        value: Some(b"\x00\xff{"),
        headers: &headers,
        timestamp_ms: Some(1_770_112_800_000),
        file: Some("f"),
        line: Some(1),
    };
    let mut decoder = Decoder::new(&feed).unwrap();
    let decoded = decoder.decode(&[record], 5);
    assert_eq!(decoded.batch.column_by_name("value").unwrap().as_binary::<i32>().value(0), b"\x00\xff{");
    assert!(decoded.batch.column_by_name("key").unwrap().is_null(0));
    assert_eq!(cells(&decoded.batch, "headers"), ["[{key: h, value: ff}, {key: h, value: ∅}]"]);
    assert_eq!(cells(&decoded.batch, "timestamp"), ["2026-02-03T10:00:00Z"]);
    let names: Vec<String> = decoder.columns().into_iter().map(|column| column.name).collect();
    assert_eq!(names.join(","), "key,value,topic,partition,offset,timestamp,headers,_file,_line,_ingested_at");
}
