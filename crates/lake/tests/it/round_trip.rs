//! Laws of writing: whatever goes in comes out, and no statistics hide a row from a filter.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Builder,
    Int64Array, ListBuilder, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::get_field;
use datafusion::logical_expr::{Expr, Operator, binary_expr};
use datafusion::prelude::{SessionContext, ident, lit};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tributary_lake::{ReadOptions, Table};
use tributary_specs::{Column, DataType};

use crate::shop::{Shop, append, collect, rows, sorted_lines};

/// One row: every type a table has, each value possibly null.
#[derive(Debug, Clone)]
struct Row {
    flag: Option<bool>,
    tiny: Option<i8>,
    long: Option<i64>,
    single: Option<f32>,
    double: Option<f64>,
    exact: Option<i128>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    day: Option<i32>,
    at: Option<i64>,
    wall: Option<i64>,
    who: Option<(Option<String>, Option<i64>)>,
    list: Option<Vec<Option<i32>>>,
    part: Option<String>,
}

const EXACT_MAX: i128 = 10_i128.pow(20) - 1;

/// Times from the year 1 to 9999, in µs, with the edges.
fn times() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(-62_135_596_800_000_000),
        Just(253_402_300_799_999_999),
        Just(0),
        Just(-1),
        Just(1),
        -62_135_596_800_000_000_i64..253_402_300_800_000_000
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![".{0,6}", Just(String::new()), "[a-c]{30,36}", "\u{10FFFF}{31,34}", "z{40}", Just("\u{0}\"\\\n".to_owned())]
}

fn doubles() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(0.0), Just(-0.0), -3.0..3.0]
}

fn row() -> impl Strategy<Value = Row> {
    let numbers = (
        option::of(any::<bool>()),
        option::of(any::<i8>()),
        option::of(prop_oneof![any::<i64>(), -3_i64..3]),
        option::of(doubles().prop_map(|value| value as f32)),
        option::of(doubles()),
        option::of(-EXACT_MAX..=EXACT_MAX),
    );
    let others = (
        option::of(texts()),
        option::of(vec(any::<u8>(), 0..5)),
        option::of(-719_162_i32..=2_932_896),
        option::of(times()),
        option::of(times()),
    );
    let nested = (
        option::of((option::of(texts()), option::of(any::<i64>()))),
        option::of(vec(option::of(any::<i32>()), 0..3)),
        option::of("[^\u{0}]{1,4}"),
    );
    (numbers, others, nested).prop_map(|((flag, tiny, long, single, double, exact), (text, bytes, day, at, wall), (who, list, part))| Row {
        flag,
        tiny,
        long,
        single,
        double,
        exact,
        text,
        bytes,
        day,
        at,
        wall,
        who,
        list,
        part,
    })
}

fn columns() -> Vec<Column> {
    let who = DataType::Struct(vec![Column::new("name", DataType::String), Column::new("n", DataType::Long)]);
    [
        ("flag", DataType::Boolean),
        ("tiny", DataType::Byte),
        ("long", DataType::Long),
        ("single", DataType::Float),
        ("double", DataType::Double),
        ("exact", DataType::Decimal { precision: 20, scale: 7 }),
        ("text", DataType::String),
        ("bytes", DataType::Binary),
        ("day", DataType::Date),
        ("at", DataType::Timestamp),
        ("wall", DataType::TimestampNtz),
        ("who", who),
        ("list", DataType::Array(Box::new(DataType::Integer))),
        ("part", DataType::String),
    ]
    .map(|(name, data_type)| Column::new(name, data_type))
    .into()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let each = rows.iter();
    let fields = Fields::from(vec![Field::new("name", ArrowType::Utf8, true), Field::new("n", ArrowType::Int64, true)]);
    let who = StructArray::new(
        fields,
        vec![
            Arc::new(each.clone().map(|row| row.who.as_ref().and_then(|who| who.0.clone())).collect::<StringArray>()) as ArrayRef,
            Arc::new(each.clone().map(|row| row.who.as_ref().and_then(|who| who.1)).collect::<Int64Array>()),
        ],
        Some(each.clone().map(|row| row.who.is_some()).collect::<Vec<_>>().into()),
    );
    let mut list = ListBuilder::new(Int32Builder::new());
    each.clone().for_each(|row| list.append_option(row.list.clone()));
    let arrays: [(&str, ArrayRef); 14] = [
        ("flag", Arc::new(each.clone().map(|row| row.flag).collect::<BooleanArray>())),
        ("tiny", Arc::new(each.clone().map(|row| row.tiny).collect::<Int8Array>())),
        ("long", Arc::new(each.clone().map(|row| row.long).collect::<Int64Array>())),
        ("single", Arc::new(each.clone().map(|row| row.single).collect::<Float32Array>())),
        ("double", Arc::new(each.clone().map(|row| row.double).collect::<Float64Array>())),
        ("exact", Arc::new(each.clone().map(|row| row.exact).collect::<Decimal128Array>().with_precision_and_scale(20, 7).unwrap())),
        ("text", Arc::new(each.clone().map(|row| row.text.clone()).collect::<StringArray>())),
        ("bytes", Arc::new(each.clone().map(|row| row.bytes.as_deref()).collect::<BinaryArray>())),
        ("day", Arc::new(each.clone().map(|row| row.day).collect::<Date32Array>())),
        ("at", Arc::new(each.clone().map(|row| row.at).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))),
        ("wall", Arc::new(each.clone().map(|row| row.wall).collect::<TimestampMicrosecondArray>())),
        ("who", Arc::new(who)),
        ("list", Arc::new(list.finish())),
        ("part", Arc::new(each.map(|row| row.part.clone()).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// A column, a comparison and the row whose value it is compared with.
fn filters() -> impl Strategy<Value = (usize, usize, usize)> {
    (0..13_usize, 0..8_usize, any::<usize>())
}

/// `column <op> value of that row`; columns that SQL orders. `None` when the row has none.
fn filter(batch: &RecordBatch, (column, operator, row): (usize, usize, usize)) -> Option<Expr> {
    const NAMES: [&str; 12] = ["tiny", "long", "single", "double", "exact", "text", "day", "at", "wall", "part", "flag", "bytes"];
    let (column, array) = match NAMES.get(column) {
        Some(name) => (ident(*name), Arc::clone(batch.column_by_name(name)?)),
        None => (get_field(ident("who"), "n"), Arc::clone(batch.column_by_name("who")?.as_struct().column(1))),
    };
    let operator = match operator {
        0 => return Some(column.is_null()),
        1 => return Some(column.is_not_null()),
        2 => Operator::Lt,
        3 => Operator::LtEq,
        4 => Operator::Gt,
        5 => Operator::GtEq,
        6 => Operator::Eq,
        _ => Operator::NotEq,
    };
    if array.is_empty() {
        return None;
    }
    let value = ScalarValue::try_from_array(&array, row % array.len()).ok()?;
    (!value.is_null()).then(|| binary_expr(column, operator, lit(value)))
}

async fn filtered_in_memory(batch: &RecordBatch, filter: &Expr) -> Result<Vec<String>> {
    let frame = SessionContext::new().read_batch(batch.clone())?.filter(filter.clone())?;
    Ok(sorted_lines(&frame.collect().await?))
}

async fn filtered_by_the_delta_library(shop: &Shop, table: &Table, filter: &Expr) -> Result<Vec<String>> {
    let provider = shop.foreign(table).await?.table_provider().await?;
    Ok(sorted_lines(&SessionContext::new().read_table(provider)?.filter(filter.clone())?.collect().await?))
}

async fn holds(cuts: Vec<Vec<Row>>, partitioned: bool, wanted: Vec<(usize, usize, usize)>) -> Result<()> {
    let shop = Shop::open();
    let mut table = shop.table("law", columns(), if partitioned { &["part"] } else { &[] }).await?;
    let batches: Vec<RecordBatch> = cuts.iter().map(|rows| batch(rows)).collect();
    for batch in &batches {
        if batch.num_rows() > 0 {
            table = append(&table, std::slice::from_ref(batch)).await?;
        }
    }
    let all = arrow::compute::concat_batches(&batches[0].schema(), &batches)?;
    let expected = sorted_lines(std::slice::from_ref(&all));
    assert_eq!(sorted_lines(&[rows(&table).await?]), expected, "ours");
    assert_eq!(sorted_lines(&shop.foreign_sql(&table, "SELECT * FROM t").await?), expected, "the Delta library's");
    if table.version() > 0 {
        let told = collect(table.changes(0, table.version()).await?).await?;
        assert_eq!(sorted_lines(&[told.project(&(0..14).collect::<Vec<_>>())?]), expected, "the change feed's");
    }
    for wanted in wanted {
        let Some(filter) = filter(&all, wanted) else { continue };
        let expected = filtered_in_memory(&all, &filter).await?;
        let own = collect(table.read(ReadOptions { columns: None, filter: Some(filter.clone()) }).await?).await?;
        assert_eq!(sorted_lines(&[own]), expected, "ours where {filter}");
        assert_eq!(filtered_by_the_delta_library(&shop, &table, &filter).await?, expected, "the Delta library's where {filter}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out_and_no_filter_loses_a_row(
        cuts in vec(vec(row(), 0..5), 1..4),
        partitioned in any::<bool>(),
        wanted in vec(filters(), 4),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(holds(cuts, partitioned, wanted)).unwrap();
    }
}
