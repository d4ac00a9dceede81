//! Every logical type to its column's type, exactly. These tests run in other zones too, see `zone.rs`.

use serde_json::{Value, json};
use tributary_cdc_decode::{Decoded, Decoder, ReasonCode};
use tributary_specs::Decode;

use crate::feeds::{columns, feed};
use crate::message::{cells, create, decode, decode_with, event, type_of, wrapped};

/// Decodes values of one field with a schema block; gives the column's type and the values.
pub fn typed(schema: &Value, values: &[Value]) -> (String, Vec<String>) {
    let (decoder, decoded) = field(schema, values);
    assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
    (type_of(&decoder, "x"), cells(&decoded.batch, "x"))
}

fn field(schema: &Value, values: &[Value]) -> (Decoder, Decoded) {
    let mut schema = schema.clone();
    schema["field"] = "x".into();
    schema["optional"] = true.into();
    let events: Vec<_> = values
        .iter()
        .zip(1i64..)
        .map(|(value, lsn)| event(lsn, None, Some(&wrapped(&json!([schema]), &create(lsn, &json!({"x": value}))))))
        .collect();
    let mut decoder = Decoder::new(&feed(Decode::Debezium, Vec::new())).unwrap();
    let decoded = decode_with(&mut decoder, &events);
    (decoder, decoded)
}

pub fn named(kind: &str, name: &str) -> Value {
    json!({"type": kind, "name": name, "version": 1})
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[test]
fn plain_types_have_their_own_columns() {
    for (kind, data_type, value, text) in [
        ("boolean", "boolean", json!(true), "true"),
        ("int8", "byte", json!(-128), "-128"),
        ("int16", "short", json!(-32_768), "-32768"),
        ("int32", "integer", json!(2_147_483_647), "2147483647"),
        ("int64", "long", json!(9_223_372_036_854_775_807i64), "9223372036854775807"),
        ("float", "float", json!(0.3), "0.3"),
        ("double", "double", json!(-88.400215), "-88.400215"),
        ("string", "string", json!("tëxt \"quoted\" \n 😀"), "tëxt \"quoted\" \n 😀"),
        ("bytes", "binary", json!("ckmb+hIeg2sqwVc="), "72499bfa121e836b2ac157"),
    ] {
        let (found, values) = typed(&json!({"type": kind}), &[value, Value::Null]);
        assert_eq!((found.as_str(), values), (data_type, strings(&[text, "∅"])), "{kind}");
    }
}

#[test]
fn a_date_too_far_away_for_a_declared_timestamp_is_rejected() {
    let mut schema = named("int32", "io.debezium.time.Date");
    schema["field"] = "x".into();
    let day = |days: i32| event(1, None, Some(&wrapped(&json!([schema]), &create(1, &json!({"x": days})))));
    let mut feed = feed(Decode::Debezium, columns("x timestamp_ntz"));
    feed.schema_policy = tributary_specs::SchemaPolicy::Add;
    let decoded = decode(&feed, &[day(20_000), day(106_751_992)]);
    assert_eq!((cells(&decoded.batch, "x"), decoded.rejects[0].reason), (strings(&["2024-10-04T00:00:00"]), ReasonCode::DoesNotFit));
}

#[test]
fn a_decimal_is_exact_and_negative_bytes_are_extended_by_their_sign() {
    let schema = json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2", "connect.decimal.precision": "12"}});
    let encoded = ["nA==", "/w==", "MZw=", "MgA=", "7Sl5", "AA==", "AlQL4/8=", "AlQL4/8"].map(Value::from);
    let (data_type, values) = typed(&schema, &encoded);
    assert_eq!(data_type, "decimal(12,2)");
    assert_eq!(values, ["-1.00", "-0.01", "127.00", "128.00", "-12345.67", "0.00", "99999999.99", "99999999.99"]);
}

#[test]
fn a_decimal_may_come_as_a_number_and_keeps_every_digit() {
    let schema = json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "4", "connect.decimal.precision": "30"}});
    let text = wrapped(
        &json!([{"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "optional": true, "field": "x",
        "parameters": {"scale": "4", "connect.decimal.precision": "30"}}]),
        &create(1, &json!({"x": "@"})),
    )
    .to_string();
    let mut record = event(1, None, None);
    record.value = Some(text.replace("\"@\"", "12345678901234567.8901"));
    let decoded = decode(&feed(Decode::Debezium, Vec::new()), &[record]);
    assert_eq!(cells(&decoded.batch, "x"), ["12345678901234567.8901"]);
    assert_eq!(typed(&schema, &[json!("AA==")]).0, "decimal(30,4)");
}

#[test]
fn a_decimal_too_wide_or_of_variable_scale_is_text() {
    let wide = json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "1", "connect.decimal.precision": "60"}});
    let (data_type, values) = typed(&wide, &[json!("AQAAAAAAAAAAAAAAAAAAAAAAAAAA"), json!("CQ==")]);
    assert_eq!((data_type.as_str(), values), ("string", strings(&["146150163733090291820368483271628301965593254297.6", "0.9"])));
    let variable = named("struct", "io.debezium.data.VariableScaleDecimal");
    let (data_type, values) = typed(
        &variable,
        &[json!({"scale": 3, "value": "Ai7N"}), json!({"scale": 0, "value": "BWvHXi1jEAAA"}), json!({"scale": -2, "value": "BQ=="})],
    );
    assert_eq!((data_type.as_str(), values), ("string", strings(&["143.053", "100000000000000000000", "500"])));
}

#[test]
fn dates_and_times_without_zone_stay_without() {
    for (kind, name, data_type, values, texts) in [
        (
            "int32",
            "io.debezium.time.Date",
            "date",
            vec![json!(-557), json!(0), json!(20_513)],
            vec!["1968-06-23", "1970-01-01", "2026-03-01"],
        ),
        ("int32", "org.apache.kafka.connect.data.Date", "date", vec![json!(-5052)], vec!["1956-03-03"]),
        ("string", "io.debezium.time.IsoDate", "date", vec![json!("1968-06-23Z")], vec!["1968-06-23"]),
        ("int32", "io.debezium.time.Time", "long", vec![json!(86_399_999)], vec!["86399999000"]),
        ("int32", "org.apache.kafka.connect.data.Time", "long", vec![json!(1)], vec!["1000"]),
        (
            "int64",
            "io.debezium.time.MicroTime",
            "long",
            vec![json!(37_777_968_298i64), json!(-3_020_399_000_000i64)],
            vec!["37777968298", "-3020399000000"],
        ),
        ("int64", "io.debezium.time.NanoTime", "long", vec![json!(1_999)], vec!["1"]),
        ("string", "io.debezium.time.IsoTime", "long", vec![json!("10:29:37.968298Z")], vec!["37777968298"]),
        ("int64", "io.debezium.time.Timestamp", "timestamp_ntz", vec![json!(1_770_141_064_000i64)], vec!["2026-02-03T17:51:04"]),
        ("int64", "org.apache.kafka.connect.data.Timestamp", "timestamp_ntz", vec![json!(-1)], vec!["1969-12-31T23:59:59.999"]),
        (
            "int64",
            "io.debezium.time.MicroTimestamp",
            "timestamp_ntz",
            vec![json!(1_770_141_064_123_456i64)],
            vec!["2026-02-03T17:51:04.123456"],
        ),
        ("int64", "io.debezium.time.NanoTimestamp", "timestamp_ntz", vec![json!(-1)], vec!["1969-12-31T23:59:59.999999"]),
        (
            "string",
            "io.debezium.time.IsoTimestamp",
            "timestamp_ntz",
            vec![json!("2025-03-29T01:39:31.456354Z")],
            vec!["2025-03-29T01:39:31.456354"],
        ),
    ] {
        let (found, cells) = typed(&named(kind, name), &values);
        assert_eq!((found.as_str(), cells), (data_type, strings(&texts)), "{name}");
    }
}

#[test]
fn an_instant_is_an_instant_whatever_its_offset() {
    let (data_type, values) = typed(
        &named("string", "io.debezium.time.ZonedTimestamp"),
        &[
            json!("2026-02-03T17:51:04Z"),
            json!("2026-02-03T17:51:04.5+05:30"),
            json!("2026-02-03T17:51:04.123456-00:30"),
            json!("0044-03-15T00:00:00Z"),
        ],
    );
    assert_eq!(data_type, "timestamp");
    assert_eq!(values, ["2026-02-03T17:51:04Z", "2026-02-03T12:21:04.500Z", "2026-02-03T18:21:04.123456Z", "0044-03-15T00:00:00Z"]);
}

#[test]
fn texts_with_a_meaning_stay_texts() {
    for name in [
        "io.debezium.data.Json",
        "io.debezium.data.Xml",
        "io.debezium.data.Uuid",
        "io.debezium.data.Ltree",
        "io.debezium.data.Tsvector",
        "io.debezium.data.Enum",
        "io.debezium.time.ZonedTime",
        "io.debezium.time.Interval",
        "some.future.Type",
    ] {
        assert_eq!(typed(&named("string", name), &[json!("{\"a\": 1}")]), ("string".to_owned(), strings(&["{\"a\": 1}"])), "{name}");
    }
}

#[test]
fn numbers_with_a_meaning_stay_numbers() {
    assert_eq!(typed(&named("int32", "io.debezium.time.Year"), &[json!(2155)]), ("integer".to_owned(), strings(&["2155"])));
    assert_eq!(
        typed(&named("int64", "io.debezium.time.MicroDuration"), &[json!(-259_200_000_000i64)]),
        ("long".to_owned(), strings(&["-259200000000"]))
    );
    let unsigned = json!({"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}});
    assert_eq!(typed(&unsigned, &[json!(-2), json!(7)]), ("decimal(20,0)".to_owned(), strings(&["18446744073709551614", "7"])));
}

#[test]
fn a_set_has_one_form_whatever_the_order_of_its_members() {
    let tags = json!({"type": "string", "name": "io.debezium.data.EnumSet", "parameters": {"allowed": "a,b,c"}});
    assert_eq!(typed(&tags, &[json!("a,c"), json!("c,a"), json!(""), json!("x,a")]).1, ["a,c", "a,c", "", "x,a"]);
    let color = json!({"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "red,green"}});
    assert_eq!(typed(&color, &[json!("green"), json!("green"), json!("")]).1, ["green", "green", ""]);
}

#[test]
fn bits_are_turned_highest_first() {
    let bits = json!({"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "10"}});
    assert_eq!(typed(&bits, &[json!("YQI=")]), ("binary".to_owned(), strings(&["0261"])));
}

#[test]
fn arrays_maps_and_structs_are_nested_columns() {
    let array = json!({"type": "array", "items": {"type": "string", "optional": true}});
    assert_eq!(
        typed(&array, &[json!(["é", null, ""]), json!([]), Value::Null]),
        ("array<string>".to_owned(), strings(&["[é, ∅, ]", "[]", "∅"]))
    );
    let dates = json!({"type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date", "optional": true}});
    assert_eq!(typed(&dates, &[json!([0, 1])]), ("array<date>".to_owned(), strings(&["[1970-01-01, 1970-01-02]"])));
    let map = json!({"type": "map", "keys": {"type": "string"}, "values": {"type": "string", "optional": true}});
    assert_eq!(typed(&map, &[json!({"a": "1", "b": null})]), ("map<string,string>".to_owned(), strings(&["{a: 1, b: ∅}"])));
    let pairs = json!({"type": "map", "keys": {"type": "int32"}, "values": {"type": "double"}});
    assert_eq!(typed(&pairs, &[json!([[1, 0.5], [2, 1.5]])]), ("map<integer,double>".to_owned(), strings(&["{1: 0.5, 2: 1.5}"])));
    let point = json!({"type": "struct", "name": "io.debezium.data.geometry.Point", "fields": [
        {"type": "double", "field": "x"}, {"type": "double", "field": "y"},
        {"type": "bytes", "optional": true, "field": "wkb"}, {"type": "int32", "optional": true, "field": "srid"}]});
    let (data_type, values) = typed(&point, &[json!({"x": 1.5, "y": -2.0, "wkb": "AQ==", "srid": null})]);
    assert_eq!(data_type, "struct<x:double,y:double,wkb:binary,srid:integer>");
    assert_eq!(values, ["{x: 1.5, y: -2.0, wkb: 01, srid: ∅}"]);
    let vector = json!({"type": "array", "name": "io.debezium.data.DoubleVector", "items": {"type": "double"}});
    assert_eq!(typed(&vector, &[json!([0.1, 2])]).0, "array<double>");
    let sparse = json!({"type": "struct", "name": "io.debezium.data.SparseDoubleVector", "fields": [
        {"type": "int16", "field": "dimensions"}, {"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}, "field": "vector"}]});
    assert_eq!(typed(&sparse, &[json!({"dimensions": 5, "vector": [[2, 0.5]]})]).1, ["{dimensions: 5, vector: {2: 0.5}}"]);
}

#[test]
fn structured_times_are_put_together() {
    let parts = json!({"year": 2026, "month": 2, "day": 3, "hour": 17, "minute": 51, "second": 4, "nanos": 500_000_999, "offsetSeconds": 19_800, "specialValue": null});
    for (name, data_type, text) in [
        ("StructuredDate", "date", "2026-02-03"),
        ("StructuredTime", "long", "64264500000"),
        ("StructuredTimestamp", "timestamp_ntz", "2026-02-03T17:51:04.500"),
        ("StructuredZonedTimestamp", "timestamp", "2026-02-03T12:21:04.500Z"),
    ] {
        let schema = named("struct", &format!("io.debezium.time.{name}"));
        assert_eq!(typed(&schema, std::slice::from_ref(&parts)), (data_type.to_owned(), strings(&[text])), "{name}");
    }
}

#[test]
fn values_that_our_types_do_not_have_become_null_and_are_kept_aside() {
    for (schema, value) in [
        (named("string", "io.debezium.time.ZonedTimestamp"), json!("infinity")),
        (named("string", "io.debezium.time.ZonedTimestamp"), json!("-infinity")),
        (named("string", "io.debezium.time.ZonedTimestamp"), json!("0000-00-00 00:00:00")),
        (named("string", "io.debezium.time.ZonedTimestamp"), json!("2024-01-00 10:00:00")),
        (named("int64", "io.debezium.time.MicroTimestamp"), json!(-9_223_372_036_832_400_000i64)),
        (named("int64", "io.debezium.time.MicroTimestamp"), json!(9_223_372_036_825_200_000i64)),
        (named("int64", "io.debezium.time.MicroTimestamp"), json!(i64::MAX)),
        (named("int64", "io.debezium.time.MicroTimestamp"), json!(i64::MIN)),
        (named("int64", "io.debezium.time.MicroTimestamp"), json!(8_210_266_876_800_000_000i64)),
        (named("int64", "io.debezium.time.Timestamp"), json!(i64::MAX / 1000)),
        (named("int64", "io.debezium.time.Timestamp"), json!(-9_223_372_036_832_400i64)),
        (named("int64", "io.debezium.time.NanoTimestamp"), json!(i64::MAX)),
        (named("string", "io.debezium.time.IsoTimestamp"), json!("-290308-12-21T19:59:27.6Z")),
        (named("int32", "io.debezium.time.Date"), json!(-2_147_472_692)),
        (named("string", "io.debezium.time.IsoDate"), json!("-5877611-06-21Z")),
        (named("struct", "io.debezium.time.StructuredDate"), json!({"specialValue": "POSITIVE_INFINITY"})),
    ] {
        let (_, decoded) = field(&schema, std::slice::from_ref(&value));
        assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
        assert_eq!(cells(&decoded.batch, "x"), ["∅"], "{value}");
        let kept: Value = serde_json::from_str(&cells(&decoded.batch, "_rescued_data")[0]).unwrap();
        assert_eq!(kept, json!({"x": value}));
        assert_eq!(decoded.notes.values().sum::<u64>(), 1, "{:?}", decoded.notes);
    }
}

#[test]
fn the_first_and_last_moment_that_a_reader_can_print_are_kept() {
    let moments = [-8_334_601_228_800_000_000i64, 8_210_266_876_799_999_999];
    let (data_type, values) = typed(&named("int64", "io.debezium.time.MicroTimestamp"), &moments.map(Value::from));
    assert_eq!((data_type.as_str(), values), ("timestamp_ntz", strings(&["-262143-01-01T00:00:00", "+262142-12-31T23:59:59.999999"])));
}

#[test]
fn special_floats_are_floats() {
    let (data_type, values) = typed(&json!({"type": "double"}), &[json!("NaN"), json!("Infinity"), json!("-Infinity")]);
    assert_eq!((data_type.as_str(), values), ("double", strings(&["NaN", "inf", "-inf"])));
}

#[test]
fn epoch_zero_is_a_date_like_any_other() {
    let (_, decoded) = field(&named("int32", "io.debezium.time.Date"), &[json!(0)]);
    assert_eq!(cells(&decoded.batch, "x"), ["1970-01-01"]);
    assert!(decoded.notes.is_empty());
}

#[test]
fn a_value_of_another_form_than_its_schema_goes_to_quarantine_and_is_not_shown() {
    for (schema, value) in [
        (json!({"type": "int32"}), json!("secret")),
        (json!({"type": "string"}), json!(4711)),
        (json!({"type": "bytes"}), json!("*secret*")),
        (named("string", "io.debezium.time.ZonedTimestamp"), json!("2026-02-03T17:51:04")),
        (named("string", "io.debezium.time.ZonedTimestamp"), json!("2026-02-30T17:51:04Z")),
        (named("int32", "io.debezium.time.Date"), json!(1.5)),
        (json!({"type": "array", "items": {"type": "int32"}}), json!({"secret": 4711})),
        (json!({"type": "boolean"}), json!("secret")),
        (named("struct", "io.debezium.time.StructuredDate"), json!({"year": 4711})),
        (named("struct", "io.debezium.data.VariableScaleDecimal"), json!({"scale": 4711})),
    ] {
        let (_, decoded) = field(&schema, std::slice::from_ref(&value));
        let [reject] = decoded.rejects.as_slice() else { panic!("{value}: {:?}", decoded.rejects) };
        assert!(matches!(reject.reason, ReasonCode::WrongType | ReasonCode::DoesNotFit), "{reject:?}");
        assert!(reject.message.contains("column x"), "{}", reject.message);
        assert!(!reject.message.contains("secret") && !reject.message.contains("4711"), "{}", reject.message);
    }
}

/// Decodes values of one bare, declared field.
fn declared(column: &str, values: &[Value]) -> Decoded {
    let events: Vec<_> = values.iter().zip(1i64..).map(|(value, lsn)| event(lsn, None, Some(&create(lsn, &json!({"x": value}))))).collect();
    decode(&feed(Decode::Debezium, columns(column)), &events)
}

#[test]
fn a_declaration_says_what_bare_json_does_not() {
    for (column, value, text) in [
        ("x decimal(12,2) unscaled", json!("7Sl5"), "-12345.67"),
        ("x decimal(12,2) text", json!("-12345.67"), "-12345.67"),
        ("x decimal(12,2)", json!(-12345.67), "-12345.67"),
        ("x decimal(12,3)", json!({"scale": 2, "value": "7Sl5"}), "-12345.670"),
        ("x decimal(20,0) unsigned", json!(-2), "18446744073709551614"),
        ("x string unscaled", json!({"scale": 2, "value": "7Sl5"}), "-12345.67"),
        ("x timestamp_ntz millis", json!(1_770_141_064_000i64), "2026-02-03T17:51:04"),
        ("x timestamp_ntz micros", json!(1_770_141_064_123_456i64), "2026-02-03T17:51:04.123456"),
        ("x timestamp_ntz nanos", json!(1_770_141_064_123_456_789i64), "2026-02-03T17:51:04.123456"),
        ("x timestamp_ntz iso", json!("2026-02-03T17:51:04Z"), "2026-02-03T17:51:04"),
        ("x timestamp micros", json!(1_770_141_064_123_456i64), "2026-02-03T17:51:04.123456Z"),
        ("x timestamp", json!("2026-02-03T17:51:04Z"), "2026-02-03T17:51:04Z"),
        ("x date", json!(-557), "1968-06-23"),
        ("x date", json!("1968-06-23"), "1968-06-23"),
        ("x long millis", json!(37_777_968), "37777968000"),
        ("x long micros", json!(37_777_968_298i64), "37777968298"),
        ("x long iso", json!("10:29:37.968298Z"), "37777968298"),
        ("x long text", json!("42"), "42"),
        ("x binary base64", json!("ckmb+hIe"), "72499bfa121e"),
        ("x binary base64_url", json!("ckmb-hIe"), "72499bfa121e"),
        ("x binary hex", json!("72499BFA121e"), "72499bfa121e"),
        ("x binary bits", json!("YQI="), "0261"),
        ("x boolean", json!(1), "true"),
        ("x double", json!("NaN"), "NaN"),
        ("x double text", json!("0.1"), "0.1"),
        ("x string", json!({"a": [1, null]}), "{\"a\":[1,null]}"),
        ("x array<decimal(6,2)> unscaled", json!(["AQ==", null]), "[0.01, ∅]"),
        ("x struct<a:integer,b:array<string>>", json!({"a": 1, "b": ["x"]}), "{a: 1, b: [x]}"),
    ] {
        let decoded = declared(column, std::slice::from_ref(&value));
        assert!(decoded.stop.is_none() && decoded.rejects.is_empty(), "{column}: {:?} {:?}", decoded.stop, decoded.rejects);
        assert_eq!(cells(&decoded.batch, "x"), [text], "{column}");
        assert!(decoded.notes.is_empty() || column.contains("nanos"), "{:?}", decoded.notes);
    }
}

#[test]
fn what_may_be_read_in_two_ways_and_is_not_declared_stops_the_feed() {
    for (column, value) in [
        ("x decimal(12,2)", json!("1234")),
        ("x timestamp_ntz", json!(1_770_141_064_000i64)),
        ("x timestamp", json!(1_770_141_064_000i64)),
        ("x binary", json!("abcd")),
    ] {
        let stop = declared(column, std::slice::from_ref(&value)).stop.expect(column);
        let message = stop.to_string();
        assert!(message.contains("column x") && message.contains("encoding") && message.contains("offset 1"), "{message}");
        assert!(!message.contains("1234") && !message.contains("1770"), "{message}");
    }
}

#[test]
fn an_encoding_that_does_not_go_with_the_type_is_refused_at_the_door() {
    for column in [
        "x boolean micros",
        "x binary micros",
        "x decimal(12,2) hex",
        "x timestamp base64",
        "x date millis",
        "x integer iso",
        "x string hex",
    ] {
        let error = Decoder::new(&feed(Decode::Debezium, columns(column))).unwrap_err().to_string();
        assert!(error.contains("column x") && error.contains("encodings that do"), "{error}");
    }
}

#[test]
fn undeclared_columns_are_kept_as_they_came_and_reported() {
    let rows = [
        json!({"id": 1, "amount": "KSs=", "at": 1_772_316_000_000_000i64, "balance": {"scale": 0, "value": "AA=="}, "ok": true, "tags": ["a"]}),
    ];
    let events: Vec<_> = rows.iter().zip(1i64..).map(|(row, lsn)| event(lsn, None, Some(&create(lsn, row)))).collect();
    let mut decoder = Decoder::new(&feed(Decode::Debezium, Vec::new())).unwrap();
    let decoded = decode_with(&mut decoder, &events);
    let types = ["id", "amount", "at", "balance", "ok", "tags"].map(|column| type_of(&decoder, column));
    assert_eq!(types, ["long", "string", "long", "string", "boolean", "array<string>"]);
    assert_eq!(cells(&decoded.batch, "amount"), ["KSs="]);
    assert_eq!(cells(&decoded.batch, "balance"), ["{\"scale\":0,\"value\":\"AA==\"}"]);
    assert_eq!(decoded.notes.len(), 6, "{:?}", decoded.notes);
    assert!(decoded.notes.keys().any(|note| note.contains("column amount is not declared")), "{:?}", decoded.notes);
}
