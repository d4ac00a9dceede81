//! Between Arrow arrays and plain values.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

use super::schema::plain;
use crate::value::Value;

/// Calls `$name!(PrimitiveType)` for the whole-number type behind `$data_type`, or takes `$otherwise`.
macro_rules! of_whole {
    ($data_type:expr, $name:ident, $otherwise:expr) => {
        match $data_type {
            DataType::Int8 => $name!(Int8Type),
            DataType::Int16 => $name!(Int16Type),
            DataType::Int32 => $name!(Int32Type),
            DataType::Int64 => $name!(Int64Type),
            DataType::UInt8 => $name!(UInt8Type),
            DataType::UInt16 => $name!(UInt16Type),
            DataType::UInt32 => $name!(UInt32Type),
            DataType::UInt64 => $name!(UInt64Type),
            DataType::Decimal32(..) => $name!(Decimal32Type),
            DataType::Decimal64(..) => $name!(Decimal64Type),
            DataType::Decimal128(..) => $name!(Decimal128Type),
            DataType::Date32 => $name!(Date32Type),
            DataType::Date64 => $name!(Date64Type),
            DataType::Time32(TimeUnit::Second) => $name!(Time32SecondType),
            DataType::Time32(_) => $name!(Time32MillisecondType),
            DataType::Time64(TimeUnit::Microsecond) => $name!(Time64MicrosecondType),
            DataType::Time64(_) => $name!(Time64NanosecondType),
            DataType::Timestamp(TimeUnit::Second, _) => $name!(TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => $name!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => $name!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => $name!(TimestampNanosecondType),
            DataType::Duration(TimeUnit::Second) => $name!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => $name!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => $name!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => $name!(DurationNanosecondType),
            _ => $otherwise,
        }
    };
}

/// Every value of an array, whatever its layout.
pub(super) fn to_values(array: &dyn Array) -> Vec<Value> {
    let data_type = array.data_type();
    macro_rules! whole {
        ($primitive:ty) => {
            array
                .as_primitive::<$primitive>()
                .iter()
                .map(|value| value.map_or(Value::Null, |value| Value::Int(i128::from(value))))
                .collect()
        };
    }
    match data_type {
        DataType::Null => vec![Value::Null; array.len()],
        DataType::Boolean => array.as_boolean().iter().map(Value::from).collect(),
        DataType::Float32 => floats::<Float32Type>(array),
        DataType::Float64 => floats::<Float64Type>(array),
        DataType::Utf8 => array.as_string::<i32>().iter().map(Value::from).collect(),
        DataType::Binary => {
            array.as_binary::<i32>().iter().map(|bytes| bytes.map_or(Value::Null, |bytes| Value::Bytes(bytes.to_vec()))).collect()
        }
        DataType::FixedSizeBinary(_) => {
            array.as_fixed_size_binary().iter().map(|bytes| bytes.map_or(Value::Null, |bytes| Value::Bytes(bytes.to_vec()))).collect()
        }
        DataType::List(_) => {
            array.as_list::<i32>().iter().map(|list| list.map_or(Value::Null, |list| Value::List(to_values(&list)))).collect()
        }
        DataType::FixedSizeList(..) => {
            array.as_fixed_size_list().iter().map(|list| list.map_or(Value::Null, |list| Value::List(to_values(&list)))).collect()
        }
        DataType::Struct(fields) => {
            let children: Vec<Vec<Value>> = array.as_struct().columns().iter().map(|child| to_values(child)).collect();
            (0..array.len())
                .map(|row| match array.is_null(row) {
                    true => Value::Null,
                    false => Value::Struct(
                        fields.iter().zip(&children).map(|(field, child)| (field.name().clone(), child[row].clone())).collect(),
                    ),
                })
                .collect()
        }
        DataType::Map(..) => array
            .as_map()
            .iter()
            .map(|entries| {
                entries.map_or(Value::Null, |entries| {
                    Value::Map(to_values(entries.column(0)).into_iter().zip(to_values(entries.column(1))).collect())
                })
            })
            .collect(),
        _ => of_whole!(data_type, whole, {
            let plain = plain(data_type);
            assert_ne!(&plain, data_type, "the testkit has no value for {data_type}");
            to_values(&cast(array, &one_layer(data_type)).expect("a layout that casts to its plain one"))
        }),
    }
}

/// The plain layout of the outermost layer, what is inside left as it is.
fn one_layer(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::LargeList(element) | DataType::ListView(element) | DataType::LargeListView(element) => {
            DataType::List(Arc::clone(element))
        }
        other => plain(other),
    }
}

fn floats<T: ArrowPrimitiveType>(array: &dyn Array) -> Vec<Value>
where
    T::Native: Into<f64>,
{
    array.as_primitive::<T>().iter().map(|value| value.map_or(Value::Null, |value| Value::Float(value.into()))).collect()
}

/// The array of a field from its values.
///
/// # Panics
/// When a value does not fit the field's type; the message names the field.
pub(super) fn from_values(field: &Field, values: Vec<&Value>) -> ArrayRef {
    let data_type = field.data_type();
    macro_rules! whole {
        ($primitive:ty) => {{
            let mut builder = PrimitiveBuilder::<$primitive>::new().with_data_type(data_type.clone());
            for value in values {
                match value {
                    Value::Null => builder.append_null(),
                    Value::Int(whole) => builder.append_value((*whole).try_into().unwrap_or_else(|_| misfit(field, value))),
                    _ => misfit(field, value),
                }
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    match data_type {
        DataType::Null => new_null_array(data_type, values.len()),
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            for value in values {
                match value {
                    Value::Null => builder.append_null(),
                    Value::Bool(truth) => builder.append_value(*truth),
                    _ => misfit(field, value),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Float32 =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "32-bit values were widened exactly")]
            Arc::new(values.into_iter().map(|value| float(field, value).map(|float| float as f32)).collect::<arrow_array::Float32Array>())
        }
        DataType::Float64 => Arc::new(values.into_iter().map(|value| float(field, value)).collect::<arrow_array::Float64Array>()),
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            for value in values {
                match value {
                    Value::Null => builder.append_null(),
                    Value::Text(text) => builder.append_value(text),
                    _ => misfit(field, value),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            for value in values {
                match value {
                    Value::Null => builder.append_null(),
                    Value::Bytes(bytes) => builder.append_value(bytes),
                    _ => misfit(field, value),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for value in values {
                match value {
                    Value::Null => builder.append_null(),
                    Value::Bytes(bytes) => builder.append_value(bytes).unwrap_or_else(|_| misfit(field, value)),
                    _ => misfit(field, value),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::List(element) => {
            let lists: Vec<&[Value]> = values
                .iter()
                .map(|value| match value {
                    Value::Null => &[] as &[Value],
                    Value::List(elements) => elements,
                    _ => misfit(field, value),
                })
                .collect();
            let elements = from_values(element, lists.iter().flat_map(|list| list.iter()).collect());
            let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.len()));
            Arc::new(ListArray::new(Arc::clone(element), offsets, elements, nulls(&values)))
        }
        DataType::Struct(fields) if fields.is_empty() => Arc::new(StructArray::new_empty_fields(values.len(), nulls(&values))),
        DataType::Struct(fields) => {
            let children = fields
                .iter()
                .map(|child| from_values(&nullable(child), values.iter().map(|value| field_of(field, value, child.name())).collect()))
                .collect();
            Arc::new(StructArray::try_new(fields.clone(), children, nulls(&values)).unwrap_or_else(|why| panic!("{}: {why}", field.name())))
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(pair) = entries.data_type() else { panic!("a map's entries are a struct") };
            let maps: Vec<&[(Value, Value)]> = values
                .iter()
                .map(|value| match value {
                    Value::Null => &[] as &[(Value, Value)],
                    Value::Map(entries) => entries,
                    _ => misfit(field, value),
                })
                .collect();
            let keys = from_values(&pair[0], maps.iter().flat_map(|map| map.iter().map(|(key, _)| key)).collect());
            let items = from_values(&pair[1], maps.iter().flat_map(|map| map.iter().map(|(_, item)| item)).collect());
            let offsets = OffsetBuffer::from_lengths(maps.iter().map(|map| map.len()));
            let pairs = StructArray::new(pair.clone(), vec![keys, items], None);
            Arc::new(MapArray::new(Arc::clone(entries), offsets, pairs, nulls(&values), *sorted))
        }
        _ => of_whole!(data_type, whole, {
            let plain = plain(data_type);
            assert_ne!(&plain, data_type, "the testkit makes no array of {data_type}");
            let array = from_values(&Field::new(field.name(), plain, true), values);
            cast(&array, data_type).unwrap_or_else(|why| panic!("{}: {why}", field.name()))
        }),
    }
}

fn misfit(field: &Field, value: &Value) -> ! {
    panic!("{value} does not fit {} of type {}", field.name(), field.data_type())
}

fn float(field: &Field, value: &Value) -> Option<f64> {
    match value {
        Value::Null => None,
        Value::Float(float) => Some(*float),
        #[expect(clippy::cast_precision_loss, reason = "a literal such as 1 in a float column")]
        Value::Int(whole) => Some(*whole as f64),
        _ => misfit(field, value),
    }
}

/// The child of a struct value; of a null struct, and where the field is not given, null.
fn field_of<'a>(field: &Field, value: &'a Value, name: &str) -> &'a Value {
    match value {
        Value::Null => &Value::Null,
        Value::Struct(fields) => fields.iter().find(|(field, _)| field == name).map_or(&Value::Null, |(_, value)| value),
        _ => misfit(field, value),
    }
}

/// Below a null struct a not-null child still needs an array with nulls in it.
fn nullable(field: &FieldRef) -> Field {
    field.as_ref().clone().with_nullable(true)
}

fn nulls(values: &[&Value]) -> Option<NullBuffer> {
    let nulls = NullBuffer::from_iter(values.iter().map(|value| !value.is_null()));
    (nulls.null_count() > 0).then_some(nulls)
}
