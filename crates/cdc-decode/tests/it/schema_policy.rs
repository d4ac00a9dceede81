//! Fields and types that the table does not have, under each policy.

use serde_json::{Value, json};
use tributary_cdc_decode::{Decoded, Decoder, ReasonCode, Record, Resume};
use tributary_specs::{Column, Decode, SchemaPolicy, SourceFeed};

use crate::feeds::{columns, feed};
use crate::message::{cells, create, decode_with, event, type_of, wrapped};

fn table(policy: SchemaPolicy) -> SourceFeed {
    SourceFeed { schema_policy: policy, ..feed(Decode::Debezium, columns("id integer\ncode integer")) }
}

fn run(feed: &SourceFeed, rows: &[Value]) -> (Decoder, Decoded) {
    let mut decoder = Decoder::new(feed).unwrap();
    let events: Vec<_> = rows.iter().zip(1i64..).map(|(row, lsn)| event(lsn, None, Some(&create(lsn, row)))).collect();
    let decoded = decode_with(&mut decoder, &events);
    (decoder, decoded)
}

fn names(columns: &[Column]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn a_new_column_is_treated_as_the_policy_says() {
    let rows = [json!({"id": 1, "code": 7}), json!({"id": 2, "code": 8, "extra": "x"}), json!({"id": 3, "code": 9, "extra": null})];
    for policy in [SchemaPolicy::Add, SchemaPolicy::Widen] {
        let (decoder, decoded) = run(&table(policy), &rows);
        let change = decoded.schema_change.unwrap();
        assert_eq!((names(&change.added), names(&change.widened)), (vec!["extra"], vec![]));
        assert_eq!(change.columns, decoder.columns());
        assert_eq!(cells(&decoded.batch, "extra"), ["∅", "x", "∅"]);
    }
    let (_, decoded) = run(&table(SchemaPolicy::Rescue), &rows);
    assert_eq!(cells(&decoded.batch, "_rescued_data"), ["∅", "{\"extra\":\"x\"}", "∅"]);
    assert!(decoded.schema_change.is_none());
    let (_, decoded) = run(&table(SchemaPolicy::Quarantine), &rows);
    assert_eq!(cells(&decoded.batch, "id"), ["1", "3"]);
    assert_eq!(decoded.rejects[0].reason, ReasonCode::UnknownColumn);
    let (_, decoded) = run(&table(SchemaPolicy::Freeze), &rows);
    let stop = decoded.stop.unwrap().to_string();
    assert!(stop.contains("column extra") && stop.contains("offset 2"), "{stop}");
}

#[test]
fn a_policy_that_stops_names_the_file_and_line_where_there_is_one() {
    let feed = SourceFeed { schema_policy: SchemaPolicy::Freeze, ..feed(Decode::Json, columns("id long")) };
    let record = Record::line_of_file("in/7.jsonl", 3, br#"{"id":1,"extra":2}"#);
    let stop = Decoder::new(&feed).unwrap().decode(&[record], 0).stop.unwrap().to_string();
    assert!(stop.contains("column extra") && stop.ends_with("(file in/7.jsonl, line 3)"), "{stop}");
}

#[test]
fn a_name_that_no_column_may_have_is_kept_aside() {
    let feed = feed(Decode::Json, columns("id long"));
    let text = r#"{"id":1,"a\u0000b":2,"tab\t":3,"__x":4,"fine":5}"#;
    let decoded = Decoder::new(&feed).unwrap().decode(&[Record::line_of_file("f", 1, text.as_bytes())], 0);
    assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
    assert_eq!(names(&decoded.schema_change.unwrap().added), ["fine"]);
    let kept: Value = serde_json::from_str(&cells(&decoded.batch, "_rescued_data")[0]).unwrap();
    assert_eq!(kept, json!({"a\u{0}b": 2, "tab\t": 3, "__x": 4}));
}

#[test]
fn a_schema_block_tells_of_a_new_column_before_it_has_a_value() {
    let field = |name: &str| json!({"type": "int32", "optional": true, "field": name});
    let old = event(1, None, Some(&wrapped(&json!([field("id")]), &create(1, &json!({"id": 1})))));
    let new = event(2, None, Some(&wrapped(&json!([field("id"), field("extra")]), &create(2, &json!({"id": 2, "extra": null})))));
    for (policy, added) in [(SchemaPolicy::Add, true), (SchemaPolicy::Rescue, false), (SchemaPolicy::Quarantine, false)] {
        let mut decoder = Decoder::new(&SourceFeed { schema_policy: policy, ..feed(Decode::Debezium, Vec::new()) }).unwrap();
        decode_with(&mut decoder, std::slice::from_ref(&old));
        let decoded = decode_with(&mut decoder, &[new.clone(), old.clone()]);
        assert_eq!(decoded.schema_change.is_some(), added);
        assert_eq!(cells(&decoded.batch, "id"), ["2", "1"]);
    }
    let mut decoder = Decoder::new(&SourceFeed { schema_policy: SchemaPolicy::Freeze, ..feed(Decode::Debezium, Vec::new()) }).unwrap();
    assert!(decode_with(&mut decoder, &[old, new]).stop.is_some());
}

#[test]
fn a_value_that_does_not_fit_is_treated_as_the_policy_says() {
    let rows = [json!({"id": 1, "code": 7}), json!({"id": 2, "code": 5_000_000_000i64}), json!({"id": 3, "code": 9})];
    let (_, decoded) = run(&table(SchemaPolicy::Add), &rows);
    assert_eq!(cells(&decoded.batch, "id"), ["1", "3"]);
    let message = &decoded.rejects[0].message;
    assert!(message.contains("column code") && message.contains("integer") && message.contains("long"), "{message}");
    assert!(!message.contains("5000000000"), "{message}");
    let (decoder, decoded) = run(&table(SchemaPolicy::Widen), &rows);
    assert_eq!(
        (type_of(&decoder, "code").as_str(), cells(&decoded.batch, "code")),
        ("long", vec!["7".to_owned(), "5000000000".to_owned(), "9".to_owned()])
    );
    assert_eq!(names(&decoded.schema_change.unwrap().widened), ["code"]);
    let (_, decoded) = run(&table(SchemaPolicy::Rescue), &rows);
    assert_eq!(cells(&decoded.batch, "_rescued_data")[1], "{\"code\":5000000000}");
    let (_, decoded) = run(&table(SchemaPolicy::Freeze), &rows);
    assert!(decoded.stop.unwrap().to_string().contains("column code"));
}

#[test]
fn a_table_made_again_with_another_type_sends_its_rows_to_quarantine_until_it_is_widened() {
    let rows = [json!({"id": 1, "code": 7}), json!({"id": 2, "code": "A-7"})];
    let (_, decoded) = run(&table(SchemaPolicy::Add), &rows);
    assert_eq!(cells(&decoded.batch, "code"), ["7"]);
    assert!(decoded.rejects[0].message.contains("column code of type integer"), "{}", decoded.rejects[0].message);
    let text = SourceFeed { columns: columns("id integer\ncode string"), ..table(SchemaPolicy::Add) };
    let (_, decoded) = run(&text, &rows);
    assert_eq!(cells(&decoded.batch, "code"), ["7", "A-7"]);
}

#[test]
fn an_inferred_column_is_widened_to_text_where_numbers_become_text() {
    let undeclared = feed(Decode::Debezium, Vec::new());
    let mut decoder = Decoder::new(&undeclared).unwrap();
    let first = [event(1, None, Some(&create(1, &json!({"id": 1, "code": 7, "price": 1.5}))))];
    decode_with(&mut decoder, &first);
    let second = [
        event(2, None, Some(&create(2, &json!({"id": 2, "code": "A-7", "price": 2.5})))),
        event(3, None, Some(&create(3, &json!({"id": 3, "code": 8})))),
    ];
    let decoded = decode_with(&mut decoder, &second);
    assert_eq!((type_of(&decoder, "code").as_str(), cells(&decoded.batch, "code")), ("string", vec!["A-7".to_owned(), "8".to_owned()]));
}

#[test]
fn a_decimal_widens_in_digits_before_and_after_the_point() {
    let field = |precision: &str, scale: &str| {
        json!([{"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "optional": true, "field": "p",
        "parameters": {"scale": scale, "connect.decimal.precision": precision}}])
    };
    let old = event(1, None, Some(&wrapped(&field("5", "2"), &create(1, &json!({"p": "MZw="})))));
    let new = event(2, None, Some(&wrapped(&field("16", "4"), &create(2, &json!({"p": "AJI6cw=="})))));
    let mut decoder = Decoder::new(&feed(Decode::Debezium, Vec::new())).unwrap();
    let decoded = decode_with(&mut decoder, &[old, new]);
    assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
    assert_eq!(cells(&decoded.batch, "p"), ["127.0000", "958.3219"]);
    assert_eq!(type_of(&decoder, "p"), "decimal(16,4)");
}

#[test]
fn names_that_no_column_may_have_are_kept_aside() {
    let declared = feed(Decode::Debezium, columns("id long"));
    let (decoder, decoded) = run(&declared, &[json!({"id": 1, "ID": 2, "_op": "x", "__y": 3, "": 4, "_Before": null})]);
    assert_eq!(type_of(&decoder, "ID"), "none");
    let rescued: Value = serde_json::from_str(&cells(&decoded.batch, "_rescued_data")[0]).unwrap();
    assert_eq!(rescued, json!({"ID": 2, "_op": "x", "__y": 3, "": 4}));
    assert!(decoded.notes.keys().any(|note| note.contains("field ID")), "{:?}", decoded.notes);
    assert!(Decoder::new(&feed(Decode::Debezium, columns("_op string"))).is_err());
    assert!(Decoder::new(&feed(Decode::Debezium, columns("a string\nA string"))).is_err());
}

#[test]
fn the_first_batch_of_undeclared_bare_json_makes_the_table_and_the_policy_holds_it() {
    for policy in [SchemaPolicy::Freeze, SchemaPolicy::Rescue, SchemaPolicy::Quarantine] {
        let undeclared = SourceFeed { schema_policy: policy, ..feed(Decode::Debezium, Vec::new()) };
        let (mut decoder, decoded) = run(&undeclared, &[json!({"id": 1}), json!({"id": 2, "late": "in the batch"})]);
        assert!(decoded.stop.is_none() && decoded.rejects.is_empty());
        assert_eq!(names(&decoded.schema_change.unwrap().added), ["id", "late"]);
        let later = decode_with(&mut decoder, &[event(9, None, Some(&create(9, &json!({"id": 3, "more": 1}))))]);
        assert_eq!(later.stop.is_some(), policy == SchemaPolicy::Freeze);
        assert!(later.schema_change.is_none());
    }
}

#[test]
fn an_empty_array_has_no_type_yet_and_is_kept_aside() {
    let undeclared = feed(Decode::Debezium, Vec::new());
    let (decoder, decoded) = run(&undeclared, &[json!({"id": 1, "tags": []})]);
    assert_eq!(type_of(&decoder, "tags"), "none");
    assert_eq!(cells(&decoded.batch, "_rescued_data"), ["{\"tags\":[]}"]);
}

#[test]
fn a_table_as_it_stands_is_taken_up() {
    let (first, _) = run(&feed(Decode::Debezium, Vec::new()), &[json!({"id": 1, "name": "a"})]);
    let mut second = Decoder::new(&feed(Decode::Debezium, Vec::new())).unwrap();
    second.resume(Resume { columns: first.columns(), ..Resume::default() });
    assert_eq!(second.columns(), first.columns());
    let decoded = decode_with(&mut second, &[event(2, None, Some(&create(2, &json!({"id": 2, "name": "b"}))))]);
    assert!(decoded.schema_change.is_none());
}
