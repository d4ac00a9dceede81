//! Decoded records as Arrow holds them, value by value.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::avro::schema::{Kind, Type};
use crate::json::write_text;

/// A column of decoded values, and what lies inside it.
#[derive(Debug)]
pub(crate) struct Node {
    nulls: Option<NullBuffer>,
    pub values: Values,
}

#[derive(Debug)]
pub(crate) enum Values {
    Boolean(BooleanArray),
    Int(Int32Array),
    Long(Int64Array),
    Float(Float32Array),
    Double(Float64Array),
    Bytes(BinaryArray),
    Fixed(FixedSizeBinaryArray),
    Text(StringArray),
    /// Places in the list of symbols.
    Symbol(Int32Array, Vec<String>),
    List(OffsetBuffer<i32>, Box<Node>),
    /// Keys and values.
    Map(OffsetBuffer<i32>, Box<(Node, Node)>),
    Record(Vec<(String, Node)>),
}

impl Node {
    /// The records of a batch that was decoded by this type; `None` = the batch has another shape.
    pub(crate) fn of_batch(batch: &RecordBatch, data: &Type) -> Option<Self> {
        let fields = data.fields();
        let parts = fields.iter().zip(batch.columns()).map(|(field, array)| Some((field.name.clone(), Self::of(array, &field.data)?)));
        (fields.len() == batch.num_columns()).then(|| Some(Self { nulls: None, values: Values::Record(parts.collect::<Option<_>>()?) }))?
    }

    fn of(array: &ArrayRef, data: &Type) -> Option<Self> {
        let values = match &data.body.kind {
            Kind::Boolean => Values::Boolean(array.as_boolean_opt()?.clone()),
            Kind::Int => Values::Int(array.as_primitive_opt::<Int32Type>()?.clone()),
            Kind::Long => Values::Long(array.as_primitive_opt::<Int64Type>()?.clone()),
            Kind::Float => Values::Float(array.as_primitive_opt::<Float32Type>()?.clone()),
            Kind::Double => Values::Double(array.as_primitive_opt::<Float64Type>()?.clone()),
            Kind::Bytes => Values::Bytes(array.as_binary_opt::<i32>()?.clone()),
            Kind::Text => Values::Text(array.as_string_opt::<i32>()?.clone()),
            Kind::Fixed(_) => Values::Fixed(array.as_fixed_size_binary_opt()?.clone()),
            Kind::Enum(symbols) => {
                let dictionary = array.as_dictionary_opt::<Int32Type>()?;
                Values::Symbol(dictionary.keys().clone(), symbols.clone())
            }
            Kind::Array(items) => {
                let list = array.as_list_opt::<i32>()?;
                let inner = Self::of(list.values(), items)?;
                match (items.entry(), inner) {
                    (Some(_), Self { values: Values::Record(parts), .. }) => {
                        let mut parts = parts.into_iter().map(|(_, part)| part);
                        Values::Map(list.offsets().clone(), Box::new((parts.next()?, parts.next()?)))
                    }
                    (_, inner) => Values::List(list.offsets().clone(), Box::new(inner)),
                }
            }
            Kind::Map(inner) => {
                let map = array.as_map_opt()?;
                let keys = Self { nulls: None, values: Values::Text(map.keys().as_string_opt::<i32>()?.clone()) };
                Values::Map(map.offsets().clone(), Box::new((keys, Self::of(map.values(), inner)?)))
            }
            Kind::Record(fields) => {
                let record = array.as_struct_opt()?;
                let parts = fields.iter().zip(record.columns());
                Values::Record(
                    parts.map(|(field, array)| Some((field.name.clone(), Self::of(array, &field.data)?))).collect::<Option<_>>()?,
                )
            }
        };
        Some(Self { nulls: array.nulls().cloned(), values })
    }

    /// Of no records.
    pub(crate) fn none() -> Self {
        Self { nulls: None, values: Values::Record(Vec::new()) }
    }

    /// The names of a record's fields; `None` = no record.
    pub(crate) fn field_names(&self) -> Option<impl Iterator<Item = &str>> {
        match &self.values {
            Values::Record(parts) => Some(parts.iter().map(|(name, _)| name.as_str())),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self, at: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| at >= nulls.len() || nulls.is_null(at))
    }

    /// A field of a record by its place; `None` also where the record is null.
    pub(crate) fn part(&self, place: usize) -> Option<&Self> {
        match &self.values {
            Values::Record(parts) => parts.get(place).map(|(_, part)| part),
            _ => None,
        }
    }

    /// A field of a record by its name.
    pub(crate) fn named(&self, name: &str) -> Option<&Self> {
        match &self.values {
            Values::Record(parts) => parts.iter().find(|(known, _)| known == name).map(|(_, part)| part),
            _ => None,
        }
    }

    /// A text or symbol.
    pub(crate) fn text(&self, at: usize) -> Option<&[u8]> {
        if self.is_null(at) {
            return None;
        }
        match &self.values {
            Values::Text(values) => Some(values.value(at).as_bytes()),
            Values::Symbol(places, symbols) => {
                usize::try_from(places.value(at)).ok().and_then(|place| symbols.get(place)).map(String::as_bytes)
            }
            _ => None,
        }
    }

    /// A whole number.
    pub(crate) fn whole(&self, at: usize) -> Option<i64> {
        if self.is_null(at) {
            return None;
        }
        match &self.values {
            Values::Int(values) => Some(i64::from(values.value(at))),
            Values::Long(values) => Some(values.value(at)),
            _ => None,
        }
    }

    /// Bytes of either kind.
    pub(crate) fn bytes(&self, at: usize) -> Option<&[u8]> {
        if self.is_null(at) {
            return None;
        }
        match &self.values {
            Values::Bytes(values) => Some(values.value(at)),
            Values::Fixed(values) => Some(values.value(at)),
            _ => None,
        }
    }

    pub(crate) fn boolean(&self, at: usize) -> Option<bool> {
        match &self.values {
            Values::Boolean(values) if !self.is_null(at) => Some(values.value(at)),
            _ => None,
        }
    }

    /// What kind of value it holds, for messages.
    pub(crate) const fn name(&self) -> &'static str {
        match &self.values {
            Values::Boolean(_) => "a boolean",
            Values::Int(_) | Values::Long(_) | Values::Float(_) | Values::Double(_) => "a number",
            Values::Bytes(_) | Values::Fixed(_) => "bytes",
            Values::Text(_) | Values::Symbol(..) => "text",
            Values::List(..) => "an array",
            Values::Map(..) => "a map",
            Values::Record(_) => "a record",
        }
    }

    /// A value as JSON text, made in `scratch`.
    pub(crate) fn json<'s>(&self, at: usize, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        self.write_json(at, scratch);
        scratch
    }

    /// Appends a value as JSON text, as Connect's JSON converter writes it.
    pub(crate) fn write_json(&self, at: usize, out: &mut Vec<u8>) {
        if self.is_null(at) {
            out.extend_from_slice(b"null");
            return;
        }
        match &self.values {
            Values::Boolean(values) => out.extend_from_slice(if values.value(at) { b"true" } else { b"false" }),
            Values::Int(values) => out.extend_from_slice(itoa::Buffer::new().format(values.value(at)).as_bytes()),
            Values::Long(values) => out.extend_from_slice(itoa::Buffer::new().format(values.value(at)).as_bytes()),
            Values::Float(values) => write_float(values.value(at), out),
            Values::Double(values) => write_double(values.value(at), out),
            Values::Bytes(_) | Values::Fixed(_) => {
                write_text(STANDARD.encode(self.bytes(at).unwrap_or_default()).as_bytes(), out);
            }
            Values::Text(_) | Values::Symbol(..) => write_text(self.text(at).unwrap_or_default(), out),
            Values::List(offsets, items) => {
                out.push(b'[');
                for (place, item) in range(offsets, at).enumerate() {
                    separate(place, out);
                    items.write_json(item, out);
                }
                out.push(b']');
            }
            Values::Map(offsets, entries) => {
                let (keys, values) = &**entries;
                let texts = matches!(keys.values, Values::Text(_));
                out.push(if texts { b'{' } else { b'[' });
                for (place, entry) in range(offsets, at).enumerate() {
                    separate(place, out);
                    if !texts {
                        out.push(b'[');
                    }
                    keys.write_json(entry, out);
                    out.push(if texts { b':' } else { b',' });
                    values.write_json(entry, out);
                    if !texts {
                        out.push(b']');
                    }
                }
                out.push(if texts { b'}' } else { b']' });
            }
            Values::Record(parts) => {
                out.push(b'{');
                for (place, (name, part)) in parts.iter().enumerate() {
                    separate(place, out);
                    write_text(name.as_bytes(), out);
                    out.push(b':');
                    part.write_json(at, out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Where the elements of a list or map are.
pub(crate) fn range(offsets: &OffsetBuffer<i32>, at: usize) -> std::ops::Range<usize> {
    let place = |at: usize| offsets.get(at).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0);
    place(at)..place(at + 1)
}

fn separate(place: usize, out: &mut Vec<u8>) {
    if place > 0 {
        out.push(b',');
    }
}

/// Appends the shortest digits that give a float back, with a point or exponent; text where it is no number.
fn write_float(value: f32, out: &mut Vec<u8>) {
    if value.is_finite() { out.extend_from_slice(format!("{value:?}").as_bytes()) } else { write_special(f64::from(value), out) }
}

/// As [`write_float`].
fn write_double(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() { out.extend_from_slice(format!("{value:?}").as_bytes()) } else { write_special(value, out) }
}

fn write_special(value: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(match value {
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => b"\"NaN\"",
    });
}
