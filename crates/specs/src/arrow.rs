//! The one table of Delta types and Arrow types.

use std::sync::Arc;

use arrow_schema::{DataType as Arrow, Field, FieldRef, Schema, TimeUnit};

use crate::column::Column;
use crate::data_type::{DECIMAL_DIGITS_MAX, DataType};
use crate::error::Error;

/// Zone of every `timestamp` in Arrow.
const UTC: &str = "UTC";
/// Field metadata under which a column's comment stands.
const COMMENT: &str = "comment";
/// Arrow's name of the element of a list, as Delta's own libraries have it.
const ELEMENT: &str = "element";
/// Arrow's name of the entries of a map, as Delta's own libraries have it.
const ENTRIES: &str = "key_value";

impl DataType {
    /// The Arrow type that holds this type: `timestamp` is µs in UTC, `timestamp_ntz` µs without zone, text is `Utf8`.
    pub fn to_arrow(&self) -> Arrow {
        match self {
            Self::Boolean => Arrow::Boolean,
            Self::Byte => Arrow::Int8,
            Self::Short => Arrow::Int16,
            Self::Integer => Arrow::Int32,
            Self::Long => Arrow::Int64,
            Self::Float => Arrow::Float32,
            Self::Double => Arrow::Float64,
            Self::Decimal { precision, scale } => Arrow::Decimal128(*precision, scale.cast_signed()),
            Self::String => Arrow::Utf8,
            Self::Binary => Arrow::Binary,
            Self::Date => Arrow::Date32,
            Self::Timestamp => Arrow::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::TimestampNtz => Arrow::Timestamp(TimeUnit::Microsecond, None),
            Self::Array(element) => Arrow::List(Arc::new(Field::new(ELEMENT, element.to_arrow(), true))),
            Self::Struct(fields) => Arrow::Struct(fields.iter().map(Column::to_arrow).collect()),
            Self::Map(key, value) => {
                let entries = vec![Field::new("key", key.to_arrow(), false), Field::new("value", value.to_arrow(), true)];
                Arrow::Map(Arc::new(Field::new_struct(ENTRIES, entries, false)), false)
            }
        }
    }

    /// The Delta type that holds an Arrow type exactly. Text, bytes and lists are taken in any of Arrow's layouts, dictionaries
    /// as their values; elements of arrays and values of maps become nullable.
    ///
    /// # Errors
    /// [`Error::TypeNotDelta`] names `column` for unsigned integers, times, intervals, durations, units other than µs, zones
    /// other than UTC, 16-bit floats, negative scales and whatever else Delta does not have.
    pub fn from_arrow(column: &str, arrow: &Arrow) -> Result<Self, Error> {
        let refused = |hint| Err(Error::TypeNotDelta { column: column.to_owned(), arrow: arrow.to_string(), hint });
        Ok(match arrow {
            Arrow::Boolean => Self::Boolean,
            Arrow::Int8 => Self::Byte,
            Arrow::Int16 => Self::Short,
            Arrow::Int32 => Self::Integer,
            Arrow::Int64 => Self::Long,
            Arrow::Float32 => Self::Float,
            Arrow::Float64 => Self::Double,
            Arrow::Decimal32(precision, scale)
            | Arrow::Decimal64(precision, scale)
            | Arrow::Decimal128(precision, scale)
            | Arrow::Decimal256(precision, scale) => match u8::try_from(*scale) {
                Ok(scale) if *precision <= DECIMAL_DIGITS_MAX && scale <= *precision => Self::Decimal { precision: *precision, scale },
                _ => return refused("cast it to a decimal of at most 38 digits with a scale of 0 or more"),
            },
            Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View => Self::String,
            Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView | Arrow::FixedSizeBinary(_) => Self::Binary,
            Arrow::Date32 => Self::Date,
            Arrow::Timestamp(TimeUnit::Microsecond, None) => Self::TimestampNtz,
            Arrow::Timestamp(TimeUnit::Microsecond, Some(zone)) if is_utc(zone) => Self::Timestamp,
            Arrow::Timestamp(TimeUnit::Microsecond, Some(_)) => return refused("cast it to a timestamp in UTC"),
            Arrow::Timestamp(..) => return refused("cast it to microseconds"),
            Arrow::List(element)
            | Arrow::LargeList(element)
            | Arrow::ListView(element)
            | Arrow::LargeListView(element)
            | Arrow::FixedSizeList(element, _) => {
                Self::Array(Box::new(Self::from_arrow(&format!("{column}.element"), element.data_type())?))
            }
            Arrow::Struct(fields) => Self::Struct(fields.iter().map(|field| nested(column, field)).collect::<Result<_, _>>()?),
            Arrow::Map(entries, _) => match entries.data_type() {
                Arrow::Struct(pair) if pair.len() == 2 => Self::Map(
                    Box::new(Self::from_arrow(&format!("{column}.key"), pair[0].data_type())?),
                    Box::new(Self::from_arrow(&format!("{column}.value"), pair[1].data_type())?),
                ),
                _ => return refused("its entries are not pairs"),
            },
            Arrow::Dictionary(_, values) => Self::from_arrow(column, values)?,
            Arrow::RunEndEncoded(_, values) => Self::from_arrow(column, values.data_type())?,
            Arrow::UInt8 => return refused("cast it to smallint"),
            Arrow::UInt16 => return refused("cast it to int"),
            Arrow::UInt32 => return refused("cast it to bigint"),
            Arrow::UInt64 => return refused("cast it to decimal(20,0), or to bigint where the values fit"),
            Arrow::Float16 => return refused("cast it to real"),
            Arrow::Date64 => return refused("cast it to date"),
            Arrow::Time32(_) | Arrow::Time64(_) => return refused("cast it to microseconds of the day as bigint"),
            Arrow::Duration(_) | Arrow::Interval(_) => return refused("cast it to text or to a number of microseconds"),
            Arrow::Null => return refused("cast the null to the type it is meant to have"),
            Arrow::Union(..) => return refused("Delta has no union"),
        })
    }
}

impl DataType {
    /// The Delta type the result column of a query is cast to: the exact one where there is one, a signed integer for an unsigned
    /// one (64 bits stay 64 bits, and the cast refuses what does not fit), µs for other units of time, UTC for other zones.
    ///
    /// # Errors
    /// As [`DataType::from_arrow`] for what has no near type either.
    pub fn for_result(column: &str, arrow: &Arrow) -> Result<Self, Error> {
        Self::from_arrow(column, &nearest_exact(arrow))
    }
}

/// The Arrow type with a Delta type that is nearest to `arrow`, at every depth.
fn nearest_exact(arrow: &Arrow) -> Arrow {
    let field = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(nearest_exact(field.data_type())));
    match arrow {
        Arrow::UInt8 => Arrow::Int16,
        Arrow::UInt16 => Arrow::Int32,
        Arrow::UInt32 | Arrow::UInt64 => Arrow::Int64,
        Arrow::Float16 => Arrow::Float32,
        Arrow::Date64 => Arrow::Date32,
        Arrow::Timestamp(_, zone) => Arrow::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| UTC.into())),
        Arrow::List(element) => Arrow::List(field(element)),
        Arrow::LargeList(element) => Arrow::LargeList(field(element)),
        Arrow::Struct(fields) => Arrow::Struct(fields.iter().map(field).collect()),
        Arrow::Map(entries, sorted) => Arrow::Map(field(entries), *sorted),
        Arrow::Dictionary(_, values) => nearest_exact(values),
        other => other.clone(),
    }
}

fn nested(parent: &str, field: &FieldRef) -> Result<Column, Error> {
    let mut column = Column::from_arrow(field).map_err(|error| match error {
        Error::TypeNotDelta { column, arrow, hint } => Error::TypeNotDelta { column: format!("{parent}.{column}"), arrow, hint },
        other => other,
    })?;
    column.default = None;
    column.generated = None;
    Ok(column)
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "utc" | "Z" | "+00:00" | "-00:00" | "+00" | "+0000" | "Etc/UTC" | "GMT")
}

impl Column {
    /// The Arrow field of this column; a comment goes into the field's metadata under `comment`.
    pub fn to_arrow(&self) -> Field {
        let field = Field::new(&self.name, self.data_type.to_arrow(), self.nullable);
        match &self.comment {
            Some(comment) => field.with_metadata([(COMMENT.to_owned(), comment.clone())].into()),
            None => field,
        }
    }

    /// The column of an Arrow field, with its comment. Defaults and generation expressions are not read.
    ///
    /// # Errors
    /// As [`DataType::from_arrow`], naming the field.
    pub fn from_arrow(field: &Field) -> Result<Self, Error> {
        Ok(Self {
            name: field.name().clone(),
            data_type: DataType::from_arrow(field.name(), field.data_type())?,
            nullable: field.is_nullable(),
            comment: field.metadata().get(COMMENT).cloned(),
            default: None,
            generated: None,
            encoding: None,
        })
    }

    /// The columns of an Arrow schema.
    ///
    /// # Errors
    /// As [`Column::from_arrow`], at the first field that has no Delta type.
    pub fn all_from_arrow(schema: &Schema) -> Result<Vec<Self>, Error> {
        schema.fields().iter().map(|field| Self::from_arrow(field)).collect()
    }

    /// The Arrow schema of columns, in their order.
    pub fn all_to_arrow(columns: &[Self]) -> Schema {
        Schema::new(columns.iter().map(Self::to_arrow).collect::<Vec<_>>())
    }
}

impl TryFrom<&Field> for Column {
    type Error = Error;

    fn try_from(field: &Field) -> Result<Self, Error> {
        Self::from_arrow(field)
    }
}

impl From<&Column> for Field {
    fn from(column: &Column) -> Self {
        column.to_arrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delta_type_comes_back_from_its_arrow_type() {
        for text in [
            "boolean",
            "byte",
            "short",
            "integer",
            "long",
            "float",
            "double",
            "decimal(38,0)",
            "decimal(12,2)",
            "string",
            "binary",
            "date",
            "timestamp",
            "timestamp_ntz",
            "array<struct<a:long not null comment 'x'>>",
            "map<string,array<date>>",
        ] {
            let data_type: DataType = text.parse().unwrap();
            assert_eq!(DataType::from_arrow("c", &data_type.to_arrow()), Ok(data_type));
        }
    }

    #[test]
    fn a_type_delta_does_not_have_is_refused_with_the_column_named() {
        let ns = Arrow::Timestamp(TimeUnit::Nanosecond, None);
        let berlin = Arrow::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into()));
        let time = Arrow::Time64(TimeUnit::Microsecond);
        for arrow in
            [Arrow::UInt8, Arrow::UInt64, ns, berlin, time, Arrow::Duration(TimeUnit::Microsecond), Arrow::Decimal128(5, -2), Arrow::Null]
        {
            let field = Field::new("outer", Arrow::Struct(vec![Field::new("inner", Arrow::new_list(arrow, true), true)].into()), true);
            let error = Column::from_arrow(&field).unwrap_err();
            assert!(matches!(&error, Error::TypeNotDelta { column, .. } if column == "outer.inner.element"), "{error}");
        }
    }

    #[test]
    fn a_query_result_is_cast_to_the_nearest_type() {
        let ns = Arrow::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()));
        for (arrow, expected) in
            [(Arrow::UInt64, "long"), (Arrow::new_list(Arrow::UInt8, true), "array<short>"), (ns, "timestamp"), (Arrow::Int8, "byte")]
        {
            assert_eq!(DataType::for_result("c", &arrow).map(|data_type| data_type.to_string()), Ok(expected.to_owned()));
        }
        assert!(DataType::for_result("c", &Arrow::Duration(TimeUnit::Second)).is_err());
    }

    #[test]
    fn other_layouts_of_the_same_values_have_the_same_type() {
        let dictionary = Arrow::Dictionary(Box::new(Arrow::Int32), Box::new(Arrow::LargeUtf8));
        for arrow in [Arrow::Utf8View, Arrow::LargeUtf8, dictionary] {
            assert_eq!(DataType::from_arrow("c", &arrow), Ok(DataType::String));
        }
        assert_eq!(DataType::from_arrow("c", &Arrow::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))), Ok(DataType::Timestamp));
    }
}
