//! What SQL Server's connector sends.

use serde_json::{Value, json};
use tributary_specs::Decode;

use crate::feeds::{columns, feed};
use crate::message::{cells, decode, envelope, event, with_header};
use crate::types::{named, typed};

const NULL: Value = Value::Null;

fn source(commit: &str, change: Value, serial: Value, snapshot: &str) -> Value {
    json!({"version": "3.6.3.Final", "connector": "sqlserver", "name": "shop", "ts_ms": 1_770_112_800_000i64, "snapshot": snapshot,
        "db": "shop", "sequence": null, "schema": "dbo", "table": "orders", "change_lsn": change, "commit_lsn": commit,
        "event_serial_no": serial})
}

#[test]
fn every_type_has_its_column() {
    let decimal = |scale: &str, precision: &str| {
        json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
            "parameters": {"scale": scale, "connect.decimal.precision": precision}})
    };
    for (sql_type, schema, value, data_type, expected) in [
        ("bit", json!({"type": "boolean"}), json!(true), "boolean", "true"),
        ("tinyint", json!({"type": "int16"}), json!(255), "short", "255"),
        ("smallint", json!({"type": "int16"}), json!(-32768), "short", "-32768"),
        ("bigint", json!({"type": "int64"}), json!(i64::MIN), "long", "-9223372036854775808"),
        ("money", decimal("4", "19"), json!("gAAAAAAAAAA="), "decimal(19,4)", "-922337203685477.5808"),
        ("smallmoney", decimal("4", "10"), json!("gAAAAA=="), "decimal(10,4)", "-214748.3648"),
        ("decimal(38,10)", decimal("10", "38"), json!("AQ=="), "decimal(38,10)", "0.0000000001"),
        ("real", json!({"type": "float"}), json!(1.5), "float", "1.5"),
        (
            "uniqueidentifier",
            json!({"type": "string"}),
            json!("6F9619FF-8B86-D011-B42D-00C04FC964FF"),
            "string",
            "6F9619FF-8B86-D011-B42D-00C04FC964FF",
        ),
        ("xml", named("string", "io.debezium.data.Xml"), json!("<a/>"), "string", "<a/>"),
        ("date", named("int32", "io.debezium.time.Date"), json!(-719_162), "date", "0001-01-01"),
        ("time(3)", named("int32", "io.debezium.time.Time"), json!(86_399_999), "long", "86399999000"),
        ("time(6)", named("int64", "io.debezium.time.MicroTime"), json!(86_399_999_999i64), "long", "86399999999"),
        ("time(7)", named("int64", "io.debezium.time.NanoTime"), json!(86_399_999_999_900i64), "long", "86399999999"),
        ("datetime", named("int64", "io.debezium.time.Timestamp"), json!(1_770_141_064_123i64), "timestamp_ntz", "2026-02-03T17:51:04.123"),
        (
            "datetime2(6)",
            named("int64", "io.debezium.time.MicroTimestamp"),
            json!(1_770_141_064_123_456i64),
            "timestamp_ntz",
            "2026-02-03T17:51:04.123456",
        ),
        (
            "datetime2(7)",
            named("int64", "io.debezium.time.NanoTimestamp"),
            json!(1_770_141_064_123_456_700i64),
            "timestamp_ntz",
            "2026-02-03T17:51:04.123456",
        ),
        (
            "datetimeoffset",
            named("string", "io.debezium.time.ZonedTimestamp"),
            json!("2026-02-03T17:51:04.1234567+05:30"),
            "timestamp",
            "2026-02-03T12:21:04.123456Z",
        ),
        ("rowversion", json!({"type": "bytes"}), json!("AAAAAAAAB9E="), "binary", "00000000000007d1"),
        ("varbinary", json!({"type": "bytes"}), json!("/wA="), "binary", "ff00"),
    ] {
        assert_eq!(typed(&schema, &[value, NULL]), (data_type.to_owned(), vec![expected.to_owned(), "∅".to_owned()]), "{sql_type}");
    }
}

#[test]
fn positions_are_commit_change_and_serial_and_a_snapshot_is_before_what_follows() {
    let row = json!({"id": 1});
    let key = json!({"id": 1});
    let steps = [
        ("r", NULL, row.clone(), source("00000027:00000ac0:0002", NULL, NULL, "true")),
        ("c", NULL, row.clone(), source("00000027:00000ac0:0002", json!("00000027:00000ab0:0001"), json!(1), "false")),
        ("u", row.clone(), row.clone(), source("00000027:00000ac0:0002", json!("00000027:00000ab8:0001"), json!(2), "false")),
        ("d", row.clone(), NULL, source("0000002a:00000010:0003", json!("0000002a:00000010:0002"), json!(1), "false")),
        ("c", NULL, row, source("0000002a:00000010:0003", json!("0000002a:00000010:0002"), json!(2), "false")),
    ];
    let events: Vec<_> = steps
        .iter()
        .zip(0i64..)
        .map(|((op, before, after, source), at)| event(at, Some(&key), Some(&envelope(op, before, after, source))))
        .collect();
    let decoded = decode(&feed(Decode::Debezium, columns("id long")), &events);
    let positions = cells(&decoded.batch, "_position");
    assert_eq!(positions[0], "000000/00000027:00000ac0:0002/00000000:00000000:0000/0000000000");
    assert_eq!(positions[4], "000000/0000002a:00000010:0003/0000002a:00000010:0002/0000000002");
    assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    assert_eq!(cells(&decoded.batch, "_before"), ["∅", "∅", "{id: 1}", "{id: 1}", "∅"], "before-images are complete");
    assert!(cells(&decoded.batch, "_source")[1].starts_with("{connector: sqlserver, database: shop, schema: dbo, table: orders"));
}

#[test]
fn both_halves_of_a_key_change_are_paired_and_ordered() {
    let at = |serial: i64| source("0000002a:00000010:0003", json!("0000002a:00000010:0002"), json!(serial), "false");
    let delete = envelope("d", &json!({"id": 1}), &NULL, &at(1));
    let create = envelope("c", &NULL, &json!({"id": 9}), &at(2));
    let decoded = decode(
        &feed(Decode::Debezium, columns("id long")),
        &[
            with_header(event(0, Some(&json!({"id": 1})), Some(&delete)), "__debezium.newkey", r#"{"id":9}"#),
            with_header(event(1, Some(&json!({"id": 9})), Some(&create)), "__debezium.oldkey", "Struct{id=1}"),
        ],
    );
    assert_eq!(cells(&decoded.batch, "_key_changed_to"), ["{id: 9}", "∅"]);
    assert_eq!(cells(&decoded.batch, "_key_changed_from"), ["∅", "{id: 1}"]);
    assert!(cells(&decoded.batch, "_position").is_sorted_by(|a, b| a < b));
}
