//! The schema block that Kafka Connect's JSON converter puts beside each payload.

use crate::json::{Broken, Cursor, Kind};
use crate::wire::{Form, Numbers, Structured, Unit, Wire};

/// A schema as the block writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Schema {
    /// `struct`, `int32`, `string`, …
    pub kind: String,
    /// The semantic name, empty when there is none.
    pub name: String,
    /// Whether null is a value.
    pub optional: bool,
    /// Whether a default is given.
    pub defaulted: bool,
    /// The field's name in the struct around it.
    pub field: String,
    /// Fields of a struct.
    pub fields: Vec<Schema>,
    /// Elements of an array; keys and values of a map.
    pub items: Vec<Schema>,
    /// `parameters.scale`.
    pub(crate) scale: Option<i32>,
    /// `parameters.connect.decimal.precision`.
    pub(crate) precision: Option<u32>,
    /// `parameters.allowed`, the labels of an enum or set.
    pub(crate) allowed: String,
    /// `parameters.__debezium.source.column.type`.
    pub(crate) source_type: String,
}

/// Nested deeper than this no schema is.
const DEPTH_MAX: usize = 64;

impl Schema {
    /// Reads a block.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Broken> {
        Self::read_at(cursor, 0)
    }

    fn read_at(cursor: &mut Cursor<'_>, depth: usize) -> Result<Self, Broken> {
        if depth > DEPTH_MAX {
            return Err(Broken::Deep(cursor.at()));
        }
        let mut schema = Self::default();
        if cursor.kind()? == Kind::Text {
            schema.kind = owned(cursor)?;
            return Ok(schema);
        }
        let mut members = cursor.object()?;
        let mut scratch = Vec::new();
        while let Some(key) = cursor.member(&mut members)? {
            let key = key.resolve(&mut scratch)?;
            match (key, cursor.kind()?) {
                (b"type", Kind::Text) => schema.kind = owned(cursor)?,
                (b"name", Kind::Text) => schema.name = owned(cursor)?,
                (b"field", Kind::Text) => schema.field = owned(cursor)?,
                (b"optional", Kind::Boolean) => schema.optional = cursor.boolean()?,
                (b"default", kind) => {
                    schema.defaulted = kind != Kind::Null;
                    cursor.skip()?;
                }
                (b"fields", Kind::Array) => {
                    let mut elements = cursor.array()?;
                    while cursor.element(&mut elements)? {
                        schema.fields.push(Self::read_at(cursor, depth + 1)?);
                    }
                }
                (b"items" | b"keys" | b"values", Kind::Object) => schema.items.push(Self::read_at(cursor, depth + 1)?),
                (b"parameters", Kind::Object) => schema.parameters(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(schema)
    }

    fn parameters(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let mut members = cursor.object()?;
        let mut scratch = Vec::new();
        while let Some(key) = cursor.member(&mut members)? {
            let key = key.resolve(&mut scratch)?;
            if cursor.kind()? != Kind::Text {
                cursor.skip()?;
                continue;
            }
            let value = owned(cursor)?;
            match key {
                b"scale" => self.scale = value.parse().ok(),
                b"connect.decimal.precision" => self.precision = value.parse().ok(),
                b"allowed" => self.allowed = value,
                b"__debezium.source.column.type" => self.source_type = value,
                _ => {}
            }
        }
        Ok(())
    }

    /// The field of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.fields.iter().find(|field| field.field == name)
    }

    /// How its values are written. `None` = a schema that contradicts itself or names an unknown type.
    pub(crate) fn wire(&self) -> Option<Wire> {
        if let Some(wire) = self.semantic() {
            return Some(wire);
        }
        Some(match self.kind.as_str() {
            "boolean" => Wire::Boolean,
            "int8" => Wire::Integer(8),
            "int16" => Wire::Integer(16),
            "int32" => Wire::Integer(32),
            "int64" if is_unsigned_64(&self.source_type) => Wire::Unsigned,
            "int64" => Wire::Integer(64),
            "float" | "float32" => Wire::Float,
            "double" | "float64" => Wire::Double,
            "string" => Wire::Text,
            "bytes" => Wire::Bytes(Form::Base64),
            "array" => Wire::Array(Box::new(self.items.first()?.wire()?)),
            "map" => match self.items.as_slice() {
                [key, value] => Wire::Map(Box::new(key.wire()?), Box::new(value.wire()?)),
                _ => return None,
            },
            // Delta has no struct without fields; its text is kept.
            "struct" if self.fields.is_empty() => Wire::Anything,
            "struct" => Wire::Struct(self.fields.iter().map(|field| Some((field.field.clone(), field.wire()?))).collect::<Option<_>>()?),
            _ => return None,
        })
    }

    /// The wire of a semantic name, if it has one that changes what its bare type means.
    fn semantic(&self) -> Option<Wire> {
        let name = self.name.as_str();
        let kind = self.kind.as_str();
        Some(match (name, kind) {
            ("org.apache.kafka.connect.data.Decimal", "bytes") => Wire::Unscaled { scale: self.scale?, precision: self.precision },
            ("io.debezium.data.VariableScaleDecimal", "struct") => Wire::VariableScale,
            ("io.debezium.time.Date" | "org.apache.kafka.connect.data.Date", "int32") | ("io.debezium.time.IsoDate", "string") => {
                Wire::Date
            }
            ("io.debezium.time.Time" | "org.apache.kafka.connect.data.Time", "int32" | "int64") => Wire::Time(Unit::Millis),
            ("io.debezium.time.MicroTime", "int64") | ("io.debezium.time.IsoTime", "string") => Wire::Time(Unit::Micros),
            ("io.debezium.time.NanoTime", "int64") => Wire::Time(Unit::Nanos),
            ("io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp", "int64") => {
                Wire::WallClock(Numbers::In(Unit::Millis))
            }
            ("io.debezium.time.MicroTimestamp", "int64") | ("io.debezium.time.IsoTimestamp", "string") => {
                Wire::WallClock(Numbers::In(Unit::Micros))
            }
            ("io.debezium.time.NanoTimestamp", "int64") => Wire::WallClock(Numbers::In(Unit::Nanos)),
            ("io.debezium.time.ZonedTimestamp", "string") => Wire::Instant { numbers: Numbers::Refused, utc: false },
            ("io.debezium.time.StructuredDate", "struct") => Wire::Structured(Structured::Date),
            ("io.debezium.time.StructuredTime", "struct") => Wire::Structured(Structured::Time),
            ("io.debezium.time.StructuredTimestamp", "struct") => Wire::Structured(Structured::WallClock),
            ("io.debezium.time.StructuredZonedTimestamp", "struct") => Wire::Structured(Structured::Instant),
            ("io.debezium.time.Year", "int32") => Wire::Integer(32),
            ("io.debezium.time.NanoDuration" | "io.debezium.time.MicroDuration", "int64") => Wire::Integer(64),
            ("io.debezium.data.Bits", "bytes") => Wire::Bytes(Form::Bits),
            // Avro's logical types, whose timestamps are instants.
            ("decimal", "bytes") => Wire::Unscaled { scale: self.scale?, precision: self.precision },
            ("date", "int32") => Wire::Date,
            ("time-millis", "int32") => Wire::Time(Unit::Millis),
            ("time-micros", "int64") => Wire::Time(Unit::Micros),
            ("timestamp-millis", "int64") => Wire::Instant { numbers: Numbers::In(Unit::Millis), utc: true },
            ("timestamp-micros", "int64") => Wire::Instant { numbers: Numbers::In(Unit::Micros), utc: true },
            ("timestamp-nanos", "int64") => Wire::Instant { numbers: Numbers::In(Unit::Nanos), utc: true },
            ("local-timestamp-millis", "int64") => Wire::WallClock(Numbers::In(Unit::Millis)),
            ("local-timestamp-micros", "int64") => Wire::WallClock(Numbers::In(Unit::Micros)),
            ("local-timestamp-nanos", "int64") => Wire::WallClock(Numbers::In(Unit::Nanos)),
            ("io.debezium.data.EnumSet", "string") => Wire::Set(self.allowed.split(',').map(str::to_owned).collect()),
            _ => return None,
        })
    }

    /// Whether null is a value of its own: a null shows as null and not as a default.
    pub(crate) fn shows_null(&self) -> bool {
        self.optional && !self.defaulted
    }
}

fn is_unsigned_64(source_type: &str) -> bool {
    source_type.to_ascii_uppercase().starts_with("BIGINT UNSIGNED")
}

fn owned(cursor: &mut Cursor<'_>) -> Result<String, Broken> {
    let mut scratch = Vec::new();
    let text = cursor.text()?;
    Ok(String::from_utf8_lossy(text.resolve(&mut scratch)?).into_owned())
}
