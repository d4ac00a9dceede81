//! What Oracle's connector sends.

use serde_json::{Value, json};
use tributary_specs::{Decode, ReplicaIdentity, SchemaPolicy};

use crate::feeds::{columns, feed};
use crate::message::{cells, decode, envelope, event};
use crate::types::{named, typed};

const NULL: Value = Value::Null;

fn source(scn: &str, commit: Value, number: Value, snapshot: &str) -> Value {
    json!({"version": "3.6.3.Final", "connector": "oracle", "name": "shop", "ts_ms": 1_770_112_800_000i64, "snapshot": snapshot,
        "db": "ORCL", "sequence": null, "schema": "SHOP", "table": "ORDERS", "txId": "0a001100f2040000", "txSeq": number, "scn": scn,
        "commit_scn": commit, "lcr_position": null, "rs_id": "0x000123.00000456.0010", "ssn": 0, "redo_thread": 1, "user_name": "SHOP",
        "redo_sql": null, "row_id": "AAASgjAAMAAAACnAAA"})
}

#[test]
fn every_type_has_its_column() {
    let decimal = |scale: &str, precision: &str| {
        json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
            "parameters": {"scale": scale, "connect.decimal.precision": precision}})
    };
    let variable = named("struct", "io.debezium.data.VariableScaleDecimal");
    for (sql_type, schema, value, data_type, expected) in [
        ("number(2)", json!({"type": "int8"}), json!(-99), "byte", "-99"),
        ("number(4)", json!({"type": "int16"}), json!(9999), "short", "9999"),
        ("number(9)", json!({"type": "int32"}), json!(999_999_999), "integer", "999999999"),
        ("number(18)", json!({"type": "int64"}), json!(-999_999_999_999_999_999i64), "long", "-999999999999999999"),
        ("number(10,2)", decimal("2", "10"), json!("7Sl5"), "decimal(10,2)", "-12345.67"),
        ("integer", decimal("0", "38"), json!("AQ=="), "decimal(38,0)", "1"),
        ("number", variable.clone(), json!({"scale": 3, "value": "Ai7N"}), "string", "143.053"),
        ("number, whole", variable.clone(), json!({"scale": 0, "value": "/w=="}), "string", "-1"),
        ("number, of negative scale", variable.clone(), json!({"scale": -2, "value": "BQ=="}), "string", "500"),
        ("float(126)", variable, json!({"scale": 1, "value": "Dw=="}), "string", "1.5"),
        ("binary_float", json!({"type": "float"}), json!(0.25), "float", "0.25"),
        ("binary_double", json!({"type": "double"}), json!(1e300), "double", "1e300"),
        ("date", named("int64", "io.debezium.time.Timestamp"), json!(1_770_141_064_000i64), "timestamp_ntz", "2026-02-03T17:51:04"),
        (
            "timestamp(6)",
            named("int64", "io.debezium.time.MicroTimestamp"),
            json!(1_770_141_064_123_456i64),
            "timestamp_ntz",
            "2026-02-03T17:51:04.123456",
        ),
        (
            "timestamp(9)",
            named("int64", "io.debezium.time.NanoTimestamp"),
            json!(1_770_141_064_123_456_789i64),
            "timestamp_ntz",
            "2026-02-03T17:51:04.123456",
        ),
        (
            "timestamp with time zone",
            named("string", "io.debezium.time.ZonedTimestamp"),
            json!("2026-02-03T17:51:04.123456-08:00"),
            "timestamp",
            "2026-02-04T01:51:04.123456Z",
        ),
        ("interval", named("int64", "io.debezium.time.MicroDuration"), json!(-110_451_600_000_000i64), "long", "-110451600000000"),
        ("interval as text", named("string", "io.debezium.time.Interval"), json!("P0Y0M3DT4H5M6.78S"), "string", "P0Y0M3DT4H5M6.78S"),
        ("raw", json!({"type": "bytes"}), json!("/wA="), "binary", "ff00"),
    ] {
        assert_eq!(typed(&schema, &[value, NULL]), (data_type.to_owned(), vec![expected.to_owned(), "∅".to_owned()]), "{sql_type}");
    }
}

#[test]
fn a_number_of_no_fixed_scale_goes_into_a_declared_decimal_exactly_or_not_at_all() {
    let mut columns = columns("id long\namount decimal(10,2)");
    columns[1].encoding = Some(tributary_specs::Encoding::Unscaled);
    let mut table = feed(Decode::Debezium, columns);
    table.schema_policy = SchemaPolicy::Add;
    let row = |id: i64, scale: i64, value: &str| {
        envelope("c", &NULL, &json!({"id": id, "amount": {"scale": scale, "value": value}}), &source("1", json!("1"), json!(id), "false"))
    };
    let decoded = decode(
        &table,
        &[event(0, None, Some(&row(1, 1, "Dw=="))), event(1, None, Some(&row(2, 3, "Ai7N"))), event(2, None, Some(&row(3, -2, "BQ==")))],
    );
    assert_eq!(cells(&decoded.batch, "amount"), ["1.50", "500.00"]);
    assert_eq!(decoded.rejects.len(), 1, "143.053 has a digit more than the column");
}

#[test]
fn positions_follow_the_commits_and_a_snapshot_is_before_what_it_does_not_contain() {
    let steps = [
        source("98", NULL, NULL, "true"),
        source("90", json!("100"), json!(1), "false"),
        source("90", json!("100"), json!(2), "false"),
        source("95", json!("100"), json!(10), "false"),
        source("80", json!("101:1:7,99:2:8"), json!(1), "false"),
        source("1000", json!("1000"), json!(1), "false"),
    ];
    let events: Vec<_> =
        steps.iter().zip(0i64..).map(|(source, at)| event(at, None, Some(&envelope("c", &NULL, &json!({"id": at}), source)))).collect();
    let decoded = decode(&feed(Decode::Debezium, columns("id long")), &events);
    let positions = cells(&decoded.batch, "_position");
    assert_eq!(positions[0], "000000/00000000000000000098/00000000000000000000/0000000000");
    assert_eq!(positions[4], "000000/00000000000000000101/00000000000000000080/0000000001");
    assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    assert!(cells(&decoded.batch, "_source")[1].contains("tx_id: 0a001100f2040000"));
}

#[test]
fn a_large_object_that_an_update_left_alone_is_unavailable() {
    let after = json!({"id": 1, "note": "__debezium_unavailable_value"});
    let update =
        envelope("u", &json!({"id": 1, "note": "__debezium_unavailable_value"}), &after, &source("5", json!("6"), json!(1), "false"));
    let mut feed = feed(Decode::Debezium, columns("id long\nnote string"));
    feed.replica_identity = ReplicaIdentity::Full;
    let decoded = decode(&feed, &[event(0, Some(&json!({"id": 1})), Some(&update))]);
    assert_eq!((cells(&decoded.batch, "note"), cells(&decoded.batch, "_unavailable")), (vec!["∅".to_owned()], vec!["[note]".to_owned()]));
}
