//! Laws of frame equality.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use tributary_testkit::strategy::{rows, schemas, values};
use tributary_testkit::{Frame, FrameDiff, Law, Value, frame};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};

fn frames() -> impl Strategy<Value = Frame> {
    schemas(5).prop_flat_map(|schema| rows(&schema, 6))
}

fn filled() -> impl Strategy<Value = Frame> {
    frames().prop_filter("a frame with rows", |frame| !frame.is_empty())
}

fn differs(actual: &Frame, expected: &Frame) -> bool {
    !FrameDiff::between(actual, expected).nan_equal().compute().is_none()
}

fn with_rows(frame: &Frame, rows: &[Vec<Value>]) -> Frame {
    Frame::from_rows(frame.schema(), rows)
}

#[test]
fn law_a_frame_equals_itself_and_every_shuffle_of_its_rows_and_columns() {
    let shuffled = filled().prop_flat_map(|frame| {
        let columns: Vec<usize> = (0..frame.schema().fields().len()).collect();
        let rows = Just(frame.rows()).prop_shuffle();
        (Just(frame), rows, Just(columns).prop_shuffle())
    });
    Law::new("a frame equals its shuffles").holds(&shuffled, |(frame, rows, columns), tried| {
        tried.add("rows", rows.len());
        let shuffled = with_rows(&frame, &rows).batch().project(&columns).expect("columns that exist");
        let difference = FrameDiff::between(shuffled, &frame).nan_equal().compute();
        prop_assert!(difference.is_none(), "{difference}");
        prop_assert_eq!(difference.equal, rows.len());
        Ok(())
    });
}

#[test]
fn law_a_frame_reads_back_from_its_own_text() {
    Law::new("a frame reads back from its text").holds(&frames(), |frame, tried| {
        tried.add("rows", frame.len());
        let difference =
            FrameDiff::between(Frame::parse(&frame.to_string()), &frame).nan_equal().in_order().with_column_order().physical().compute();
        prop_assert!(difference.is_none(), "{difference}");
        Ok(())
    });
}

#[test]
fn law_changing_any_one_cell_is_found() {
    let changed = (filled(), any::<Index>(), any::<Index>()).prop_flat_map(|(frame, row, column)| {
        let schema = frame.schema();
        let (row, column) = (row.index(frame.len()), column.index(schema.fields().len()));
        let field = schema.field(column).clone();
        (Just(frame), Just(row), Just(column), values(field.data_type(), field.is_nullable()))
    });
    Law::new("a changed cell is found").holds(&changed, |(frame, row, column, value), tried| {
        let mut rows = frame.rows();
        if rows[row][column] == value {
            return Ok(());
        }
        tried.add("changed cells", 1);
        rows[row][column] = value;
        let other = with_rows(&frame, &rows);
        prop_assert!(differs(&other, &frame));
        prop_assert!(differs(&frame, &other));
        let difference = FrameDiff::between(&other, &frame).nan_equal().in_order().compute();
        prop_assert_eq!(difference.changed.iter().map(|row| row.cells.clone()).collect::<Vec<_>>(), vec![vec![column]]);
        Ok(())
    });
}

#[test]
fn law_a_row_more_or_less_is_found_also_when_its_twin_is_there() {
    Law::new("duplicates count").holds(&(filled(), any::<Index>()), |(frame, at), tried| {
        tried.add("duplicates", 1);
        let mut rows = frame.rows();
        rows.push(rows[at.index(rows.len())].clone());
        let twice = with_rows(&frame, &rows);
        let difference = FrameDiff::between(&twice, &frame).nan_equal().compute();
        prop_assert_eq!((difference.missing.len(), difference.unexpected.len(), difference.equal), (0, 1, frame.len()));
        let difference = FrameDiff::between(&frame, &twice).nan_equal().compute();
        prop_assert_eq!((difference.missing.len(), difference.unexpected.len(), difference.equal), (1, 0, frame.len()));
        Ok(())
    });
}

#[test]
fn law_a_changed_null_flag_name_or_type_is_found_before_any_row() {
    let cases = (filled(), any::<Index>(), 0..3u8);
    Law::new("a changed schema is found").holds(&cases, |(frame, column, what), tried| {
        tried.add("schemas", 1);
        let column = column.index(frame.schema().fields().len());
        let mut fields: Vec<Field> = frame.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        let field = fields[column].clone();
        let mut columns = frame.batch().columns().to_vec();
        fields[column] = match what {
            0 => field.clone().with_nullable(!field.is_nullable()),
            1 => field.clone().with_name(format!("{}_", field.name())),
            _ => {
                let other = if field.data_type() == &DataType::Boolean { DataType::Int8 } else { DataType::Boolean };
                columns[column] = arrow_array::new_null_array(&other, frame.len());
                field.clone().with_data_type(other).with_nullable(true)
            }
        };
        if columns[column].null_count() > 0 && !fields[column].is_nullable() {
            return Ok(());
        }
        let other = Frame::from(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a batch"));
        let difference = FrameDiff::between(&other, &frame).compute();
        prop_assert!(!difference.schema.is_empty());
        prop_assert!(difference.schema.iter().any(|one| one.path.starts_with(field.name().as_str())));
        prop_assert_eq!(difference.missing.len() + difference.unexpected.len() + difference.changed.len(), 0);
        Ok(())
    });
}

#[test]
fn dictionary_and_view_layouts_equal_their_plain_type_unless_asked() {
    let plain = frame!(
        "
        name: string | n: long
        paid         | 1
        null         | 2
        "
    );
    let columns = ["Utf8View", "LargeUtf8", "Dictionary(Int32, Utf8)"].map(|layout| {
        let data_type: DataType = layout.parse().expect("a layout");
        arrow_cast::cast(plain.batch().column(0), &data_type).expect("another layout")
    });
    for column in columns {
        let fields = vec![Field::new("name", column.data_type().clone(), true), Field::new("n", DataType::Int64, true)];
        let other =
            RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![column, Arc::clone(plain.batch().column(1))]).expect("a batch");
        FrameDiff::between(&other, &plain).assert();
        assert!(!FrameDiff::between(&other, &plain).physical().compute().is_none());
    }
}

#[test]
fn nan_equals_nothing_and_zero_differs_from_minus_zero_unless_asked() {
    let nan = frame!("x: double\nNaN");
    assert!(!FrameDiff::between(&nan, &nan).compute().is_none());
    FrameDiff::between(&nan, &nan).nan_equal().assert();
    let (zero, minus) = (frame!("x: double\n0.0"), frame!("x: double\n-0.0"));
    assert!(!FrameDiff::between(&zero, &minus).compute().is_none());
    FrameDiff::between(&zero, &minus).tolerating("x", 0.0).assert();
}

#[test]
fn a_pairing_within_tolerances_is_found_whenever_there_is_one() {
    // 1.0 may be paired with 1.5 or 0.5, 2.0 only with 1.5: taking the first that fits would leave 2.0 alone.
    let actual = frame!("x: double\n1.0\n2.0");
    let expected = frame!("x: double\n1.5\n0.5");
    FrameDiff::between(&actual, &expected).tolerating("x", 0.5).assert();
    let difference = FrameDiff::between(&actual, frame!("x: double\n1.5\n1.6")).tolerating("x", 0.45).compute();
    assert_eq!((difference.missing.len(), difference.unexpected.len()), (1, 1));
}

#[test]
#[should_panic(expected = "only floats are compared with a tolerance")]
fn a_tolerance_for_a_decimal_is_refused() {
    let frame = frame!("x: decimal(10,2)\n1.00");
    let _ = FrameDiff::between(&frame, &frame).tolerating("x", 0.1).compute();
}

#[test]
#[should_panic(expected = "there is no column \"order\"")]
fn a_key_that_is_no_column_is_refused() {
    let frame = frame!("id: long\n1");
    let _ = FrameDiff::between(&frame, &frame).by_key(["order"]).compute();
}

#[test]
fn order_and_columns_matter_only_when_asked() {
    let a = frame!("id: long | name: string\n1 | x\n2 | y");
    let b = frame!("name: string | id: long\ny | 2\nx | 1");
    FrameDiff::between(&a, &b).assert();
    assert_eq!(FrameDiff::between(&a, &b).in_order().compute().changed.len(), 2);
    assert_eq!(FrameDiff::between(&a, &b).with_column_order().compute().schema[0].path, "columns");
    FrameDiff::between(&a, frame!("id: long\n1\n2")).ignoring(["name"]).assert();
}

#[test]
fn a_key_that_comes_twice_is_compared_as_a_bag_within_the_key() {
    let actual = frame!("id: long | v: long\n1 | 10\n1 | 11\n1 | 12");
    let expected = frame!("id: long | v: long\n1 | 12\n1 | 10\n1 | 99");
    let difference = FrameDiff::between(&actual, &expected).by_key(["id"]).compute();
    assert_eq!((difference.equal, difference.changed.len(), difference.missing.len(), difference.unexpected.len()), (2, 1, 0, 0));
}

#[test]
fn json_objects_become_rows_of_declared_columns() {
    let columns = frame!("id: long! | at: timestamp | tags: array<string> | amount: decimal(6,2)\n1 | null | null | null");
    let columns = tributary_specs::Column::all_from_arrow(&columns.schema()).expect("Delta types");
    let rows = [
        serde_json::json!({ "id": 1, "at": "2026-02-01T00:00:00-06:00", "tags": ["a", null], "amount": "1.5" }),
        serde_json::json!({ "id": 2, "amount": 7 }),
    ];
    let expected = frame!(
        r#"
        id: long! | at: timestamp        | tags: array<string> | amount: decimal(6,2)
        1         | 2026-02-01T06:00:00Z | ["a", null]         | 1.50
        2         | null                 | null                | 7.00
        "#
    );
    tributary_testkit::assert_frames_eq!(Frame::from_json(&columns, &rows), expected);
}

#[test]
fn a_frame_literal_says_what_is_wrong_with_it() {
    for (text, problem) in [
        ("", "there is no header"),
        ("id long\n1", "a column is name: type"),
        ("id: lnog\n1", "did you mean long"),
        ("id: long | name: string\n1", "line 2: 1 cells for 2 columns"),
        ("id: long!\nnull", "row 0: column id is null and not nullable"),
        ("d: decimal(4,2)\n1.234", "column d: \"1.234\" is not a Decimal128(4, 2)"),
        ("t: timestamp\n2026-02-01T00:00:00", "column t:"),
        ("s: struct<a:long>\n{\"b\": 1}", "the struct has no field \"b\""),
    ] {
        let panic = std::panic::catch_unwind(|| Frame::parse(text)).expect_err(text);
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.contains(problem), "{message}");
    }
}
