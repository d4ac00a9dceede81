//! How a value is written in a message, and the one table from that to the type of its column.

use tributary_specs::{Column, DataType, Encoding};

/// What a number of a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// How bytes are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Base64, standard alphabet, padded or not.
    Base64,
    /// Base64, URL alphabet, padded or not.
    Base64Url,
    /// Hexadecimal digits.
    Hex,
    /// Base64 of a bit string's bytes, lowest byte first.
    Bits,
}

/// What a number is where a moment is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Nothing before its unit is declared.
    Undeclared,
    /// No moment: moments are text here.
    Refused,
    /// So many of this unit since the epoch.
    In(Unit),
}

/// How a value is written in JSON. Null is null whatever the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wire {
    Boolean,
    /// A whole number of so many bits.
    Integer(u8),
    /// A number, or `NaN`, `Infinity`, `-Infinity` as text.
    Float,
    /// As [`Wire::Float`], 64 bits.
    Double,
    /// A number as text.
    Digits,
    Text,
    /// Text as it is; anything else as its JSON text.
    Anything,
    /// A number read as the inferred column holds it; text of more digits than a double has does not fit.
    Number,
    /// Members of a set in any order, put into the order of their declaration.
    Set(Vec<String>),
    Bytes(Form),
    /// Base64 of an unscaled big-endian integer, or a number (`decimal.format=NUMERIC`).
    Unscaled {
        scale: i32,
        /// Digits in all, when the schema says.
        precision: Option<u32>,
    },
    /// An object of `scale` and `value`, or a number; text where the column is text.
    VariableScale,
    /// A number or an object of `scale` and `value`; text is refused because it may be digits or bytes.
    DecimalUndeclared,
    /// A signed 64-bit number standing for an unsigned one.
    Unsigned,
    /// Days since the epoch or ISO text.
    Date,
    /// µs of the day: a number in this unit, or ISO text.
    Time(Unit),
    /// Without zone: ISO text, or a number.
    WallClock(Numbers),
    /// An instant: ISO text, or a number.
    Instant {
        numbers: Numbers,
        /// Whether text without an offset is taken as UTC; else it is refused.
        utc: bool,
    },
    /// Text that may be bytes in several forms: refused.
    BytesUndeclared,
    /// Year, month, day and so on as fields of an object.
    Structured(Structured),
    Array(Box<Wire>),
    Struct(Vec<(String, Wire)>),
    /// An object, or an array of pairs when keys are no texts.
    Map(Box<Wire>, Box<Wire>),
}

/// Which of the structured forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structured {
    Date,
    Time,
    WallClock,
    Instant,
}

impl Wire {
    /// The type of a column made for such values.
    ///
    /// | written as | column |
    /// |---|---|
    /// | int8, int16, int32, int64, boolean, float, double | byte, short, integer, long, boolean, float, double |
    /// | unsigned 64-bit | decimal(20,0) |
    /// | decimal of p ≤ 38 digits | decimal(p,s); wider or of variable scale: string |
    /// | days | date |
    /// | time of day | long, µs |
    /// | timestamp without zone | `timestamp_ntz` |
    /// | timestamp with zone | timestamp |
    /// | interval as text, enum, set, uuid, json, xml, time with zone | string |
    /// | interval as number | long, µs |
    /// | bytes, bits | binary |
    /// | arrays, maps, geometry and other structs | array, map, struct |
    pub(crate) fn natural(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer(8) => DataType::Byte,
            Self::Integer(16) => DataType::Short,
            Self::Integer(32) => DataType::Integer,
            Self::Integer(_) | Self::Time(_) | Self::Structured(Structured::Time) => DataType::Long,
            Self::Float => DataType::Float,
            Self::Double | Self::Number => DataType::Double,
            Self::Unscaled { scale, precision } => match (u8::try_from(*scale), precision.map_or(Some(38), |p| u8::try_from(p).ok())) {
                (Ok(scale), Some(precision)) if (1..=38).contains(&precision) && scale <= precision => {
                    DataType::Decimal { precision, scale }
                }
                _ => DataType::String,
            },
            Self::Unsigned => DataType::Decimal { precision: 20, scale: 0 },
            Self::Digits
            | Self::Text
            | Self::Anything
            | Self::Set(_)
            | Self::VariableScale
            | Self::DecimalUndeclared
            | Self::BytesUndeclared => DataType::String,
            Self::Bytes(_) => DataType::Binary,
            Self::Date | Self::Structured(Structured::Date) => DataType::Date,
            Self::WallClock(_) | Self::Structured(Structured::WallClock) => DataType::TimestampNtz,
            Self::Instant { .. } | Self::Structured(Structured::Instant) => DataType::Timestamp,
            Self::Array(element) => DataType::Array(Box::new(element.natural())),
            Self::Struct(fields) => DataType::Struct(fields.iter().map(|(name, wire)| Column::new(name.clone(), wire.natural())).collect()),
            Self::Map(key, value) => DataType::Map(Box::new(key.natural()), Box::new(value.natural())),
        }
    }

    /// How a declared column is read from a message without schema. `plain` = the producer writes plain JSON or CSV, where a
    /// text bound for a decimal is digits, one bound for bytes is base64, one without offset bound for a timestamp is UTC;
    /// Debezium's bare JSON may mean other things.
    ///
    /// # Errors
    /// The encodings that fit, when `encoding` does not go with the type.
    pub(crate) fn declared(data_type: &DataType, encoding: Option<Encoding>, plain: bool) -> Result<Self, &'static str> {
        use Encoding as E;
        let unit = |encoding| match encoding {
            E::Millis => Some(Unit::Millis),
            E::Micros => Some(Unit::Micros),
            E::Nanos => Some(Unit::Nanos),
            _ => None,
        };
        Ok(match data_type {
            DataType::Boolean => match encoding {
                None => Self::Boolean,
                Some(_) => return Err("none"),
            },
            DataType::Byte | DataType::Short | DataType::Integer => match encoding {
                None => Self::Integer(64),
                Some(E::Text) => Self::Digits,
                Some(_) => return Err("text"),
            },
            DataType::Long => match encoding {
                None => Self::Integer(64),
                Some(E::Text) => Self::Digits,
                Some(E::Iso) => Self::Time(Unit::Micros),
                Some(encoding) => Self::Time(unit(encoding).ok_or("text, iso, millis, micros, nanos")?),
            },
            DataType::Float | DataType::Double => match encoding {
                None if matches!(data_type, DataType::Float) => Self::Float,
                None => Self::Double,
                Some(E::Text) => Self::Digits,
                Some(_) => return Err("text"),
            },
            DataType::Decimal { scale, precision } => match encoding {
                None if plain => Self::Digits,
                None => Self::DecimalUndeclared,
                Some(E::Text) => Self::Digits,
                Some(E::Unscaled) => Self::Unscaled { scale: i32::from(*scale), precision: Some(u32::from(*precision)) },
                Some(E::Unsigned) => Self::Unsigned,
                Some(_) => return Err(DECIMAL_CHOICES),
            },
            DataType::String => match encoding {
                None | Some(E::Text) => Self::Anything,
                Some(E::Unscaled) => Self::VariableScale,
                Some(_) => return Err("text, unscaled"),
            },
            DataType::Binary => match encoding {
                None if plain => Self::Bytes(Form::Base64),
                None => Self::BytesUndeclared,
                Some(E::Base64) => Self::Bytes(Form::Base64),
                Some(E::Base64Url) => Self::Bytes(Form::Base64Url),
                Some(E::Hex) => Self::Bytes(Form::Hex),
                Some(E::Bits) => Self::Bytes(Form::Bits),
                Some(_) => return Err(BYTES_CHOICES),
            },
            DataType::Date => match encoding {
                None | Some(E::Iso) => Self::Date,
                Some(_) => return Err("iso"),
            },
            DataType::Timestamp | DataType::TimestampNtz => {
                let numbers = match encoding {
                    None => Numbers::Undeclared,
                    Some(E::Iso) => Numbers::Refused,
                    Some(encoding) => Numbers::In(unit(encoding).ok_or(TIME_CHOICES)?),
                };
                if matches!(data_type, DataType::Timestamp) { Self::Instant { numbers, utc: plain } } else { Self::WallClock(numbers) }
            }
            DataType::Array(element) => Self::Array(Box::new(Self::declared(element, encoding, plain)?)),
            DataType::Struct(fields) => Self::Struct(
                fields
                    .iter()
                    .map(|field| Ok((field.name.clone(), Self::declared(&field.data_type, fitting(field, encoding, plain), plain)?)))
                    .collect::<Result<_, &'static str>>()?,
            ),
            DataType::Map(key, value) => {
                Self::Map(Box::new(Self::declared(key, None, plain)?), Box::new(Self::declared(value, encoding, plain)?))
            }
        })
    }

    /// Whether a schema that says only this says nothing about what is meant, so that a declared encoding may.
    pub(crate) fn says_little(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Text)
    }
}

/// Encodings of a decimal.
pub(crate) const DECIMAL_CHOICES: &str = "unscaled, text, unsigned";
/// Encodings of bytes.
pub(crate) const BYTES_CHOICES: &str = "base64, base64_url, hex, bits";
/// Encodings of a timestamp.
pub(crate) const TIME_CHOICES: &str = "millis, micros, nanos, iso";

/// A field's own encoding, else that of the column around it where it goes with the field's type.
fn fitting(field: &Column, around: Option<Encoding>, plain: bool) -> Option<Encoding> {
    field.encoding.or_else(|| around.filter(|_| Wire::declared(&field.data_type, around, plain).is_ok()))
}
