//! Values one by one, for the functions that ask what is inside: lists, structs, maps, texts of all types, hashes.

use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tributary_lake::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray, TimestampMicrosecondArray, new_null_array,
};
use tributary_lake::arrow::buffer::{NullBuffer, OffsetBuffer};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use tributary_lake::datafusion::error::{DataFusionError, Result};

/// A value of a row.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// None.
    Null,
    /// Of a boolean.
    Boolean(bool),
    /// Of a whole number of any width.
    Whole(i64),
    /// Of a float.
    Float(f32),
    /// Of a double.
    Double(f64),
    /// Of a decimal: its digits and how many stand behind the point.
    Decimal(i128, i8),
    /// Of a string.
    Text(String),
    /// Of a binary.
    Bytes(Vec<u8>),
    /// Of a date: days since 1970-01-01.
    Date(i32),
    /// Of a timestamp with or without a zone: microseconds since 1970-01-01.
    Instant(i64),
    /// Of a list.
    List(Vec<Value>),
    /// Of a struct: its fields.
    Struct(Vec<Value>),
    /// Of a map: keys and values in the order they were put.
    Map(Vec<(Value, Value)>),
}

/// A timestamp: an instant, in microseconds.
pub(crate) fn instant_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A timestamp without a zone.
pub(crate) fn local_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// A list of values that may be null.
pub(crate) fn list_type(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

/// A struct of fields that may be null.
pub(crate) fn struct_type<'n>(fields: impl IntoIterator<Item = (&'n str, DataType)>) -> DataType {
    DataType::Struct(fields.into_iter().map(|(name, data_type)| Field::new(name, data_type, true)).collect())
}

/// A map; its values may be null.
pub(crate) fn map_type(key: DataType, value: DataType) -> DataType {
    let entries = DataType::Struct([Field::new("key", key, false), Field::new("value", value, true)].into_iter().collect());
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}

/// The one form in which values of a type are read here.
pub(crate) fn canonical(data_type: &DataType) -> DataType {
    let field = |field: &FieldRef| Arc::new(Field::clone(field).with_data_type(canonical(field.data_type())));
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, Some(_)) => instant_type(),
        DataType::Timestamp(_, None) => local_type(),
        DataType::Dictionary(_, of) => canonical(of),
        DataType::List(of) | DataType::LargeList(of) | DataType::ListView(of) | DataType::LargeListView(of) => DataType::List(field(of)),
        DataType::FixedSizeList(of, _) => DataType::List(field(of)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        other => other.clone(),
    }
}

/// A column in that form.
pub(crate) fn in_canonical_form(column: &ArrayRef) -> Result<ArrayRef> {
    let to = canonical(column.data_type());
    if to == *column.data_type() { Ok(Arc::clone(column)) } else { Ok(cast(column, &to)?) }
}

/// The values of a column in its canonical form.
pub(crate) fn read_all(column: &ArrayRef) -> Result<Vec<Value>> {
    (0..column.len()).map(|row| read(column, row)).collect()
}

/// The value of a row of a column in its canonical form.
pub(crate) fn read(column: &dyn Array, row: usize) -> Result<Value> {
    if column.is_null(row) || *column.data_type() == DataType::Null {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Boolean => Value::Boolean(column.as_boolean().value(row)),
        DataType::Int8 => Value::Whole(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::Whole(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Whole(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Whole(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Value::Float(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::Double(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => Value::Decimal(column.as_primitive::<Decimal128Type>().value(row), *scale),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Value::Bytes(column.as_binary::<i32>().value(row).to_owned()),
        DataType::Date32 => Value::Date(column.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Value::Instant(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::List(_) => Value::List(read_all(&column.as_list::<i32>().value(row))?),
        DataType::Struct(_) => {
            Value::Struct(column.as_struct().columns().iter().map(|field| read(field, row)).collect::<Result<Vec<_>>>()?)
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let (keys, values) = (read_all(entries.column(0))?, read_all(entries.column(1))?);
            Value::Map(keys.into_iter().zip(values).collect())
        }
        other => return Err(DataFusionError::NotImplemented(format!("values of the type {other}"))),
    })
}

/// A column of values; each is null or of the type, which is in its canonical form.
pub(crate) fn build(values: Vec<Value>, to: &DataType) -> Result<ArrayRef> {
    /// A column of values of one kind; another value is a null.
    macro_rules! column {
        ($array:ty, $pattern:pat => $value:expr) => {
            Arc::new(
                values
                    .into_iter()
                    .map(|value| match value {
                        $pattern => Some($value),
                        _ => None,
                    })
                    .collect::<$array>(),
            ) as ArrayRef
        };
    }
    if let Some(range) = range(to)
        && values.iter().any(|value| matches!(value, Value::Whole(number) if !range.contains(number)))
    {
        return Err(DataFusionError::Execution("a whole number is too large for its type".to_owned()));
    }
    Ok(match to {
        DataType::Null => new_null_array(to, values.len()),
        DataType::Boolean => column!(BooleanArray, Value::Boolean(value) => value),
        DataType::Int8 => column!(Int8Array, Value::Whole(value) => narrow(value)),
        DataType::Int16 => column!(Int16Array, Value::Whole(value) => narrow(value)),
        DataType::Int32 => column!(Int32Array, Value::Whole(value) => narrow(value)),
        DataType::Int64 => column!(Int64Array, Value::Whole(value) => value),
        DataType::Float32 => column!(Float32Array, Value::Float(value) => value),
        DataType::Float64 => column!(Float64Array, Value::Double(value) => value),
        DataType::Decimal128(..) => {
            let digits: Decimal128Array =
                values.into_iter().map(|value| if let Value::Decimal(digits, _) = value { Some(digits) } else { None }).collect();
            Arc::new(digits.with_data_type(to.clone()))
        }
        DataType::Utf8 => column!(StringArray, Value::Text(value) => value),
        DataType::Binary => column!(BinaryArray, Value::Bytes(value) => value),
        DataType::Date32 => column!(Date32Array, Value::Date(value) => value),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let instants: TimestampMicrosecondArray =
                values.into_iter().map(|value| if let Value::Instant(instant) = value { Some(instant) } else { None }).collect();
            Arc::new(instants.with_data_type(to.clone()))
        }
        DataType::List(field) => {
            let there: Vec<bool> = values.iter().map(|value| matches!(value, Value::List(_))).collect();
            let lists: Vec<Vec<Value>> =
                values.into_iter().map(|value| if let Value::List(inside) = value { inside } else { Vec::new() }).collect();
            let offsets = OffsetBuffer::<i32>::from_lengths(lists.iter().map(Vec::len));
            let inside = build(lists.into_iter().flatten().collect(), field.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(field), offsets, inside, Some(NullBuffer::from(there)))?)
        }
        DataType::Struct(fields) => {
            let there: Vec<bool> = values.iter().map(|value| matches!(value, Value::Struct(_))).collect();
            let mut columns: Vec<Vec<Value>> = fields.iter().map(|_| Vec::with_capacity(values.len())).collect();
            for value in values {
                let mut inside = if let Value::Struct(inside) = value { inside } else { Vec::new() }.into_iter();
                columns.iter_mut().for_each(|column| column.push(inside.next().unwrap_or(Value::Null)));
            }
            let length = there.len();
            let columns = columns.into_iter().zip(fields).map(|(column, field)| build(column, field.data_type()));
            let nulls = Some(NullBuffer::from(there));
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns.collect::<Result<_>>()?, nulls, length)?)
        }
        DataType::Map(field, sorted) => {
            let DataType::Struct(fields) = field.data_type() else {
                return Err(DataFusionError::Internal("a map without entries".to_owned()));
            };
            let there: Vec<bool> = values.iter().map(|value| matches!(value, Value::Map(_))).collect();
            let maps: Vec<Vec<(Value, Value)>> =
                values.into_iter().map(|value| if let Value::Map(inside) = value { inside } else { Vec::new() }).collect();
            let offsets = OffsetBuffer::<i32>::from_lengths(maps.iter().map(Vec::len));
            let (keys, values): (Vec<Value>, Vec<Value>) = maps.into_iter().flatten().unzip();
            let columns = vec![build(keys, fields[0].data_type())?, build(values, fields[1].data_type())?];
            let entries = StructArray::try_new(fields.clone(), columns, None)?;
            Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, Some(NullBuffer::from(there)), *sorted)?)
        }
        other => return Err(DataFusionError::NotImplemented(format!("values of the type {other}"))),
    })
}

/// The whole numbers of a type.
pub(crate) fn range(of: &DataType) -> Option<RangeInclusive<i64>> {
    match of {
        DataType::Int8 => Some(i8::MIN.into()..=i8::MAX.into()),
        DataType::Int16 => Some(i16::MIN.into()..=i16::MAX.into()),
        DataType::Int32 => Some(i32::MIN.into()..=i32::MAX.into()),
        DataType::Int64 => Some(i64::MIN..=i64::MAX),
        _ => None,
    }
}

/// A whole number that has been found to fit.
fn narrow<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}

impl Value {
    /// Whether there is none.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The order of two values of one type: NaN is the greatest number, null the least value.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Whole(a), Self::Whole(b)) | (Self::Instant(a), Self::Instant(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => doubles(f64::from(*a), f64::from(*b)),
            (Self::Double(a), Self::Double(b)) => doubles(*a, *b),
            (Self::Decimal(a, _), Self::Decimal(b, _)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) | (Self::Struct(a), Self::Struct(b)) => {
                let each = a.iter().zip(b).map(|(a, b)| a.order(b));
                each.into_iter().find(|order| *order != Ordering::Equal).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Map(a), Self::Map(b)) => {
                let each = a.iter().zip(b).map(|((a, c), (b, d))| a.order(b).then(c.order(d)));
                each.into_iter().find(|order| *order != Ordering::Equal).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            _ => Ordering::Equal,
        }
    }

    /// Whether two values of one type are the same, null included.
    pub fn is(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

/// The order of doubles: NaN last, the two zeros equal.
pub(crate) fn doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read_back() {
        let cases = [
            (DataType::Int8, vec![Value::Whole(-3), Value::Null]),
            (DataType::Decimal128(5, 2), vec![Value::Decimal(123, 2), Value::Null]),
            (
                list_type(DataType::Utf8),
                vec![Value::List(vec![Value::Text("a".to_owned()), Value::Null]), Value::Null, Value::List(vec![])],
            ),
            (struct_type([("a", DataType::Boolean)]), vec![Value::Null, Value::Struct(vec![Value::Boolean(true)])]),
            (struct_type([]), vec![Value::Null, Value::Struct(vec![])]),
            (
                map_type(DataType::Utf8, DataType::Date32),
                vec![Value::Map(vec![(Value::Text("k".to_owned()), Value::Date(1))]), Value::Null],
            ),
            (instant_type(), vec![Value::Instant(1)]),
            (DataType::Binary, vec![Value::Bytes(vec![0, 255]), Value::Null]),
        ];
        for (data_type, values) in cases {
            let column = build(values.clone(), &data_type).unwrap();
            assert_eq!(*column.data_type(), data_type);
            let read = read_all(&column).unwrap();
            assert!(read.len() == values.len() && read.iter().zip(&values).all(|(a, b)| a.is(b)), "{data_type}: {read:?}");
        }
    }

    #[test]
    fn not_a_number_is_the_greatest_and_zeros_are_one() {
        assert_eq!(doubles(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(doubles(f64::NAN, f64::NAN), Ordering::Equal);
        assert_eq!(doubles(0.0, -0.0), Ordering::Equal);
        assert_eq!(Value::Null.order(&Value::Whole(i64::MIN)), Ordering::Less);
    }
}
