//! What people read when frames differ.

use tributary_testkit::{FrameDiff, assert_golden, frame};

#[test]
fn golden_message_of_rows_compared_by_key() {
    let actual = frame!(
        r#"
        order_id: long! | status: string | amount: decimal(12,2) | placed_at: timestamp
        1               | paid           | 10.50                 | 2026-02-01T06:00:00Z
        2               | new            | 1.00                  | 2026-02-01T06:00:01.000001Z
        3               | "null"         | null                  | null
        9               | void           | -0.01                 | 2026-02-01T06:00:00Z
        "#
    );
    let expected = frame!(
        r#"
        order_id: long! | status: string | amount: decimal(12,2) | placed_at: timestamp
        1               | paid           | 10.50                 | 2026-02-01T06:00:00Z
        2               | paid           | 1.01                  | 2026-02-01T06:00:01.000001Z
        3               | null           | null                  | null
        4               | paid           | 7.00                  | 2026-02-01T06:00:00Z
        "#
    );
    assert_golden!("tests/golden/rows_by_key.txt", FrameDiff::between(actual, expected).by_key(["order_id"]).compute().to_string());
}

#[test]
fn golden_message_of_two_bags() {
    let actual = frame!(
        r#"
        store: string | tags: array<string> | at: struct<x:long,y:double>
        north         | ["a", null]         | {"x": 1, "y": "NaN"}
        north         | []                  | {"x": 1, "y": 2.0}
        north         | []                  | {"x": 1, "y": 2.0}
        "a|b"         | null                | null
        "#
    );
    let expected = frame!(
        r#"
        store: string | tags: array<string> | at: struct<x:long,y:double>
        north         | ["a", null]         | {"x": 1, "y": "NaN"}
        north         | []                  | {"x": 1, "y": 2.0}
        s1            | null                | null
        s2            | null                | null
        s3            | null                | null
        s4            | null                | null
        s5            | null                | null
        s6            | null                | null
        s7            | null                | null
        "#
    );
    assert_golden!("tests/golden/bags.txt", FrameDiff::between(actual, expected).nan_equal().compute().to_string());
}

#[test]
fn golden_message_of_schemas() {
    let actual = frame!(
        "
        customer: struct<name:string,address:struct<zip:string,street:string>> | amount: decimal(12,2) | at: Timestamp(ms) | extra: long | tags: array<long>
        null | 1.00 | 2026-02-01T06:00:00.001 | 1 | null
        "
    );
    let expected = frame!(
        "
        customer: struct<name:string,address:struct<zip:string not null,city:string>> | amount: decimal(10,2) | at: timestamp! | tags: array<string> | id: long!
        null | 1.00 | 2026-02-01T06:00:00.001Z | null | 7
        "
    );
    assert_golden!("tests/golden/schemas.txt", FrameDiff::between(actual, expected).compute().to_string());
}

#[test]
fn golden_message_of_rows_in_order() {
    let actual = frame!("n: long\n1\n2\n3");
    let expected = frame!("n: long\n1\n3\n2\n4");
    assert_golden!("tests/golden/rows_in_order.txt", FrameDiff::between(actual, expected).in_order().compute().to_string());
}
