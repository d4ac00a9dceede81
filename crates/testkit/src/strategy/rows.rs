//! Tables of any schema: nulls, extremes, empty, NaN, −0.0, far dates, long text.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use proptest::collection::vec;
use proptest::prelude::*;
use tributary_specs::DataType as Delta;

use crate::frame::Frame;
use crate::value::Value;

/// Any schema of Delta types with one to `columns_max` columns, structs, lists and maps nested to depth two.
pub fn schemas(columns_max: usize) -> impl Strategy<Value = SchemaRef> {
    let field =
        (names(), data_types(), any::<bool>()).prop_map(|(name, data_type, nullable)| Field::new(name, data_type.to_arrow(), nullable));
    vec(field, 1..=columns_max).prop_map(|fields| {
        let fields: Vec<Field> = fields
            .into_iter()
            .enumerate()
            .map(|(at, field)| {
                let name = format!("{}{at}", field.name());
                field.with_name(name)
            })
            .collect();
        Arc::new(Schema::new(fields))
    })
}

/// Any table of a schema with up to `rows_max` rows.
pub fn rows(schema: &SchemaRef, rows_max: usize) -> BoxedStrategy<Frame> {
    let columns: Vec<BoxedStrategy<Value>> = schema.fields().iter().map(|field| values(field.data_type(), field.is_nullable())).collect();
    let schema = Arc::clone(schema);
    vec(columns, 0..=rows_max).prop_map(move |rows| Frame::from_rows(Arc::clone(&schema), &rows)).boxed()
}

/// Any value of an Arrow type that has a Delta type, and of unsigned and time types; of ten nullable ones about one is null.
pub fn values(data_type: &DataType, nullable: bool) -> BoxedStrategy<Value> {
    let value = not_null(data_type);
    if nullable { prop_oneof![9 => value, 1 => Just(Value::Null)].boxed() } else { value }
}

fn not_null(data_type: &DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Bool).boxed(),
        DataType::Int8 => whole(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => whole(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 | DataType::Time32(_) => whole(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 | DataType::Time64(_) | DataType::Duration(_) => whole(i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => whole(0, u8::MAX.into()),
        DataType::UInt16 => whole(0, u16::MAX.into()),
        DataType::UInt32 => whole(0, u32::MAX.into()),
        DataType::UInt64 => whole(0, u64::MAX.into()),
        DataType::Decimal32(precision, _) | DataType::Decimal64(precision, _) | DataType::Decimal128(precision, _) => {
            let max = 10i128.pow(u32::from(*precision)) - 1;
            whole(-max, max)
        }
        DataType::Float32 => floats().prop_map(|float| Value::Float(f64::from(float as f32))).boxed(),
        DataType::Float64 => floats().prop_map(Value::Float).boxed(),
        DataType::Date32 => {
            prop_oneof![4 => -30_000..30_000i128, 1 => i128::from(i32::MIN)..=i128::from(i32::MAX)].prop_map(Value::Int).boxed()
        }
        DataType::Timestamp(unit, _) => instants(*unit),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts().prop_map(Value::Text).boxed(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => vec(any::<u8>(), 0..12).prop_map(Value::Bytes).boxed(),
        DataType::FixedSizeBinary(width) => vec(any::<u8>(), usize::try_from(*width).unwrap_or_default()).prop_map(Value::Bytes).boxed(),
        DataType::List(element) => vec(values(element.data_type(), element.is_nullable()), 0..4).prop_map(Value::List).boxed(),
        DataType::Struct(fields) => {
            let children: Vec<_> = fields.iter().map(|field| values(field.data_type(), field.is_nullable())).collect();
            let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
            children.prop_map(move |children| Value::Struct(names.iter().cloned().zip(children).collect())).boxed()
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { panic!("a map's entries are a struct") };
            let entry = (values(pair[0].data_type(), false), values(pair[1].data_type(), pair[1].is_nullable()));
            vec(entry, 0..4).prop_map(Value::Map).boxed()
        }
        other => panic!("there is no strategy for {other}"),
    }
}

fn whole(min: i128, max: i128) -> BoxedStrategy<Value> {
    let small = (-20i128).max(min)..=20i128.min(max);
    prop_oneof![4 => small, 4 => min..=max, 1 => Just(min), 1 => Just(max)].prop_map(Value::Int).boxed()
}

fn floats() -> BoxedStrategy<f64> {
    let odd = proptest::sample::select(vec![
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
    ]);
    prop_oneof![4 => -1000.0..1000.0, 2 => any::<f64>(), 2 => odd].boxed()
}

fn instants(unit: TimeUnit) -> BoxedStrategy<Value> {
    let a_second: i128 = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let near = (-2_000_000_000..4_000_000_000i128, 0..a_second).prop_map(move |(seconds, rest)| seconds * a_second + rest);
    let far = i128::from(i64::MIN)..=i128::from(i64::MAX);
    prop_oneof![6 => near, 1 => far].prop_map(Value::Int).boxed()
}

fn texts() -> BoxedStrategy<String> {
    let odd = proptest::sample::select(vec![
        "",
        " ",
        "null",
        "NULL",
        "a|b",
        "\"",
        "\\",
        "`",
        "line\nline",
        "tab\tcr\r",
        "'",
        "// not a comment",
        "ünïcode 😀",
        "\u{0}",
        "\u{feff}",
        "0x",
        "__debezium_unavailable_value",
    ]);
    prop_oneof![5 => "[a-z]{0,8}", 2 => odd.prop_map(str::to_owned), 1 => ".{0,20}", 1 => "x{200,400}"].boxed()
}

fn names() -> BoxedStrategy<String> {
    let odd = proptest::sample::select(vec!["a b", "x`y", "q\"uote", "pi|pe", "col:on", "Größe", "time"]);
    prop_oneof![6 => "[a-z]{1,6}", 1 => odd.prop_map(str::to_owned)].boxed()
}

fn data_types() -> BoxedStrategy<Delta> {
    let decimal = (1..=38u8)
        .prop_flat_map(|precision| (Just(precision), 0..=precision))
        .prop_map(|(precision, scale)| Delta::Decimal { precision, scale });
    let simple = prop_oneof![
        12 => proptest::sample::select(vec![
            Delta::Boolean, Delta::Byte, Delta::Short, Delta::Integer, Delta::Long, Delta::Float, Delta::Double, Delta::String, Delta::Binary,
            Delta::Date, Delta::Timestamp, Delta::TimestampNtz,
        ]),
        2 => decimal,
    ];
    simple
        .prop_recursive(2, 6, 3, |inner| {
            let field = (names(), inner.clone(), any::<bool>());
            prop_oneof![
                inner.clone().prop_map(|element| Delta::Array(Box::new(element))),
                inner.clone().prop_map(|value| Delta::Map(Box::new(Delta::String), Box::new(value))),
                vec(field, 1..3).prop_map(|fields| {
                    let column = |(at, (name, data_type, nullable)): (usize, (String, Delta, bool))| {
                        let column = tributary_specs::Column::new(format!("{name}{at}"), data_type);
                        if nullable { column } else { column.not_null() }
                    };
                    Delta::Struct(fields.into_iter().enumerate().map(column).collect())
                }),
            ]
        })
        .boxed()
}
