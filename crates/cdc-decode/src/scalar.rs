//! One value on its way from a message into a column.

use tributary_specs::DataType;

use crate::number::{Decimal, write_big_endian};
use crate::time::{DAY, write_date, write_moment, write_time};

/// A value, borrowed from the message where it can be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A number as it was written.
    Number(&'a [u8]),
    /// As [`Scalar::Number`], where a double is meant.
    Double(f64),
    /// As [`Scalar::Double`], 32 bits.
    Float(f32),
    Decimal(Decimal),
    /// An unscaled integer of more than 38 digits, big-endian.
    Wide {
        unscaled: &'a [u8],
        scale: i32,
    },
    /// UTF-8.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// Days since the epoch.
    Date(i32),
    /// µs of the day.
    Time(i64),
    /// µs since the epoch without zone.
    WallClock(i64),
    /// µs since the epoch in UTC.
    Instant(i64),
}

impl Scalar<'_> {
    /// The narrowest type that holds the value.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Null | Self::Text(_) | Self::Wide { .. } => DataType::String,
            Self::Boolean(_) => DataType::Boolean,
            Self::Integer(value) => {
                if i32::try_from(*value).is_ok() {
                    DataType::Integer
                } else {
                    DataType::Long
                }
            }
            Self::Number(raw) => match Decimal::parse(raw) {
                Some(decimal) => decimal_type(decimal),
                None => DataType::String,
            },
            Self::Double(_) => DataType::Double,
            Self::Float(_) => DataType::Float,
            Self::Decimal(decimal) => decimal_type(*decimal),
            Self::Bytes(_) => DataType::Binary,
            Self::Date(_) => DataType::Date,
            Self::Time(_) => DataType::Long,
            Self::WallClock(_) => DataType::TimestampNtz,
            Self::Instant(_) => DataType::Timestamp,
        }
    }

    /// The value as text, the way a `string` column holds it. `None` = it has no text form (bytes, or an integer beyond 64 KiB).
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let mut text = String::new();
        match self {
            Self::Null | Self::Bytes(_) => return None,
            Self::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Self::Integer(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
            Self::Number(raw) => out.extend_from_slice(raw),
            Self::Double(value) => write_double(*value, &value.to_string(), out),
            Self::Float(value) => write_double(f64::from(*value), &value.to_string(), out),
            Self::Decimal(decimal) => decimal.write(out),
            Self::Wide { unscaled, scale } => write_big_endian(unscaled, *scale, out)?,
            Self::Text(value) => out.extend_from_slice(value),
            Self::Date(days) => write_date(i64::from(*days), &mut text),
            Self::Time(micros) => write_time(*micros, &mut text),
            Self::WallClock(micros) => write_moment(*micros, &mut text),
            Self::Instant(micros) => {
                write_moment(*micros, &mut text);
                text.push('Z');
            }
        }
        out.extend_from_slice(text.as_bytes());
        Some(())
    }

    /// Midnight of a date, as µs; `None` = too far away for a timestamp.
    pub(crate) fn midnight(days: i32) -> Option<i64> {
        i64::from(days).checked_mul(DAY)
    }
}

fn write_double(value: f64, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(match value {
        value if value.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => text.as_bytes(),
    });
}

fn decimal_type(decimal: Decimal) -> DataType {
    let (before, after) = decimal.digits();
    let precision = before.saturating_add(after).max(1);
    if precision <= 38 { DataType::Decimal { precision, scale: after } } else { DataType::String }
}
