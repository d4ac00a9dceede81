//! One decoded value into a column, as the reader of JSON does it: what a value means is decided by the same wires.

use tributary_specs::DataType;

use crate::avro::image::{Node, Values, range};
use crate::column::Column;
use crate::encoded::decode;
use crate::number::Decimal;
use crate::read::{
    Extra, Outcome, Problem, Read, Reader, around, assembled, digits, in_field, in_list, in_map, in_order, push, take, wanted, written,
};
use crate::scalar::Scalar;
use crate::wire::{Form, Wire};

/// Takes the value of a row into a column.
pub(crate) fn read(reader: &mut Reader, node: &Node, at: usize, wire: &Wire, column: &mut Column) -> Read {
    match try_read(reader, node, at, wire, column) {
        Ok(Read::Done) if !reader.extras.is_empty() => Read::Extras,
        Ok(read) => read,
        Err(problem) => {
            reader.problem = Some(problem);
            Read::Failed
        }
    }
}

fn try_read(reader: &mut Reader, node: &Node, at: usize, wire: &Wire, column: &mut Column) -> Result<Read, Problem> {
    if node.is_null(at) {
        column.push_null();
        return Ok(Read::Null);
    }
    if matches!(wire, Wire::Array(_) | Wire::Struct(_) | Wire::Map(..)) {
        return nested(reader, node, at, wire, column);
    }
    let mut json = Vec::new();
    let outcome = scalar(reader, node, at, wire, column, &mut json)?;
    take(column, outcome, wire)
}

fn wrong(node: &Node, wire: &Wire) -> Problem {
    Problem::WrongType { found: node.name(), wanted: wanted(wire) }
}

fn scalar<'s>(
    reader: &'s mut Reader,
    node: &'s Node,
    at: usize,
    wire: &Wire,
    column: &Column,
    json: &'s mut Vec<u8>,
) -> Result<Outcome<'s>, Problem> {
    if let Some(text) = node.text(at) {
        if reader.placeholder.is_text(text) && !is_time(wire) && !matches!(wire, Wire::Set(_)) {
            return Ok(Outcome::Unavailable);
        }
        return of_text(reader, text, wire, column).unwrap_or_else(|| Err(wrong(node, wire)));
    }
    if let Some(bytes) = node.bytes(at) {
        if reader.placeholder.is_text(bytes) {
            return Ok(Outcome::Unavailable);
        }
        let scalar = match wire {
            Wire::Bytes(Form::Bits) => {
                reader.bytes.clear();
                reader.bytes.extend(bytes.iter().rev());
                Scalar::Bytes(&reader.bytes)
            }
            Wire::Bytes(_) => Scalar::Bytes(bytes),
            Wire::Unscaled { scale, .. } => unscaled(bytes, *scale),
            _ => return Err(wrong(node, wire)),
        };
        return Ok(Outcome::Value(scalar));
    }
    if let Some(number) = node.whole(at) {
        return match wire {
            Wire::Date | Wire::Time(_) | Wire::WallClock(_) | Wire::Instant { .. } => {
                reader.counted(number, wire).ok_or_else(|| wrong(node, wire))?
            }
            Wire::Unsigned if number < 0 => {
                Ok(Outcome::Value(Scalar::Decimal(Decimal { unscaled: i128::from(number.cast_unsigned()), scale: 0 })))
            }
            Wire::Boolean | Wire::Integer(_) | Wire::Number | Wire::Unsigned => Ok(Outcome::Value(Scalar::Integer(number))),
            Wire::Anything => Ok(Outcome::Value(Scalar::Text(node.json(at, json)))),
            Wire::Float | Wire::Double | Wire::Digits | Wire::Unscaled { .. } | Wire::VariableScale | Wire::DecimalUndeclared => {
                Ok(Outcome::Value(Scalar::Number(node.json(at, json))))
            }
            _ => Err(wrong(node, wire)),
        };
    }
    let scalar = match (wire, &node.values) {
        (Wire::Boolean, Values::Boolean(values)) => Scalar::Boolean(values.value(at)),
        (Wire::Float | Wire::Double | Wire::Digits, Values::Float(values)) => {
            floating(Scalar::Float(values.value(at)), values.value(at).is_finite(), column, || node.json(at, json))
        }
        (Wire::Float | Wire::Double | Wire::Digits, Values::Double(values)) => {
            floating(Scalar::Double(values.value(at)), values.value(at).is_finite(), column, || node.json(at, json))
        }
        (Wire::VariableScale | Wire::Unscaled { .. } | Wire::DecimalUndeclared, Values::Record(_)) => {
            let scale = node.named("scale").and_then(|part| part.whole(at)).and_then(|scale| i32::try_from(scale).ok());
            let value = node.named("value").and_then(|part| part.bytes(at));
            let (scale, value) = scale.zip(value).ok_or_else(|| wrong(node, wire))?;
            if reader.placeholder.is_text(value) {
                return Ok(Outcome::Unavailable);
            }
            unscaled(value, scale)
        }
        (Wire::Structured(which), Values::Record(_)) => {
            if node.named("specialValue").is_some_and(|part| !part.is_null(at)) {
                return Ok(Outcome::Lost(crate::read::Lost::Infinite));
            }
            let parts = ["year", "month", "day", "hour", "minute", "second", "nanos", "offsetSeconds"];
            let parts = parts.map(|name| node.named(name).and_then(|part| part.whole(at)));
            assembled(parts, *which).ok_or_else(|| wrong(node, wire))?
        }
        (Wire::Anything, _) => Scalar::Text(node.json(at, json)),
        _ => return Err(wrong(node, wire)),
    };
    Ok(Outcome::Value(scalar))
}

/// A floating number as the column holds it; one bound for a column of another type as its shortest digits, but for a float, to which
/// they would be rounded.
fn floating<'s>(value: Scalar<'s>, is_finite: bool, column: &Column, digits: impl FnOnce() -> &'s [u8]) -> Scalar<'s> {
    let keeps = *column.data_type() == value.data_type() || *column.data_type() == DataType::Float;
    if is_finite && !keeps { Scalar::Number(digits()) } else { value }
}

/// Like a set, nothing that Debezium leaves out of an update.
const fn is_time(wire: &Wire) -> bool {
    matches!(wire, Wire::Date | Wire::Time(_) | Wire::WallClock(_) | Wire::Instant { .. })
}

/// A text by its wire; `None` = no wire of texts.
fn of_text<'s>(reader: &'s mut Reader, text: &'s [u8], wire: &Wire, column: &Column) -> Option<Result<Outcome<'s>, Problem>> {
    let scalar = match wire {
        Wire::Text | Wire::Anything => Scalar::Text(text),
        Wire::VariableScale if column.data_type() == &DataType::String => Scalar::Text(text),
        Wire::Set(order) => Scalar::Text(in_order(text, order, &mut reader.bytes)),
        Wire::Digits => return digits(text, column).map(Ok),
        Wire::Bytes(form) => {
            decode(*form, text, &mut reader.bytes)?;
            Scalar::Bytes(&reader.bytes)
        }
        wire if is_time(wire) => return written(text, wire, &mut reader.cut).map(Ok),
        _ => return None,
    };
    Some(Ok(Outcome::Value(scalar)))
}

fn unscaled(bytes: &[u8], scale: i32) -> Scalar<'_> {
    match Decimal::from_big_endian(bytes, scale) {
        Some(decimal) => Scalar::Decimal(decimal),
        None => Scalar::Wide { unscaled: bytes, scale },
    }
}

fn nested(reader: &mut Reader, node: &Node, at: usize, wire: &Wire, column: &mut Column) -> Result<Read, Problem> {
    let is_text_column = column.data_type() == &DataType::String;
    if (is_text_column || !matches!(wire, Wire::Struct(_))) && is_unavailable(reader, node, at) {
        column.push_null();
        return Ok(Read::Unavailable);
    }
    if is_text_column {
        let mut json = Vec::new();
        node.write_json(at, &mut json);
        push(column, Scalar::Text(&json), wire)?;
        return Ok(Read::Done);
    }
    match (wire, &node.values) {
        (Wire::Array(wire), Values::List(offsets, items)) => {
            let Some(element) = column.element() else { return Err(Problem::DoesNotFit(DataType::String)) };
            let extras = reader.extras.len();
            for item in range(offsets, at) {
                try_read(reader, items, item, wire, element).map_err(|problem| around(problem, in_list))?;
            }
            reader.extras_since(extras).for_each(|extra| extra.inside(in_list));
        }
        (Wire::Map(key, value), Values::Map(offsets, entries)) => {
            let Some((keys, values)) = column.entries() else { return Err(Problem::DoesNotFit(DataType::String)) };
            let around_values = in_map(keys.data_type());
            let extras = reader.extras.len();
            for entry in range(offsets, at) {
                if entries.0.is_null(entry) {
                    return Err(wrong(node, wire));
                }
                try_read(reader, &entries.0, entry, key, keys)?;
                try_read(reader, &entries.1, entry, value, values).map_err(|problem| around(problem, &around_values))?;
            }
            reader.extras_since(extras).for_each(|extra| extra.inside(&around_values));
        }
        (Wire::Struct(wires), Values::Record(parts)) => {
            let Some(fields) = column.even_fields() else { return Err(Problem::DoesNotFit(DataType::String)) };
            record(reader, parts, at, wires, fields)?;
        }
        _ => return Err(wrong(node, wire)),
    }
    column.close().map_err(|_| Problem::TooLarge)?;
    Ok(Read::Done)
}

fn record(
    reader: &mut Reader,
    parts: &[(String, Node)],
    at: usize,
    wires: &[(String, Wire)],
    fields: &mut [(String, Column)],
) -> Result<(), Problem> {
    for (name, node) in parts {
        let wire = wires.iter().find(|(wire, _)| wire == name).map(|(_, wire)| wire);
        let twin = fields.iter().any(|(field, _)| field != name && field.eq_ignore_ascii_case(name));
        let field = fields.iter_mut().find(|(field, _)| field == name);
        let json = || {
            let mut json = Vec::new();
            node.write_json(at, &mut json);
            json
        };
        let (Some(wire), Some((name, field))) = (wire, field) else {
            if !node.is_null(at) {
                let data_type = wire.map(Wire::natural).filter(|_| !twin);
                reader.extras.push(Extra::of_field(name, json(), data_type));
            }
            continue;
        };
        let extras = reader.extras.len();
        match try_read(reader, node, at, wire, field) {
            Ok(Read::Done | Read::Null | Read::Extras | Read::Failed) => {}
            Ok(Read::Unavailable | Read::Lost(_)) => reader.extras.push(Extra::of_value(json())),
            Err(problem) => return Err(in_field(problem, name)),
        }
        reader.extras_since(extras).for_each(|extra| extra.below(name));
    }
    Ok(())
}

/// Whether an array, map or text is the placeholder's form of it.
fn is_unavailable(reader: &Reader, node: &Node, at: usize) -> bool {
    let placeholder = &reader.placeholder;
    match &node.values {
        Values::List(offsets, items) => {
            let range = range(offsets, at);
            match &items.values {
                _ if range.is_empty() => false,
                Values::Text(_) | Values::Symbol(..) => {
                    range.len() == 1 && items.text(range.start).is_some_and(|text| placeholder.is_element(text))
                }
                Values::Bytes(_) | Values::Fixed(_) => {
                    range.len() == 1 && items.bytes(range.start).is_some_and(|bytes| placeholder.is_element(bytes))
                }
                Values::Int(_) | Values::Long(_) => {
                    placeholder.is_spelled(range.take(256).map(|item| items.whole(item).unwrap_or(i64::MAX)))
                }
                _ => false,
            }
        }
        Values::Map(offsets, entries) => {
            let range = range(offsets, at);
            let is = |node: &Node| node.text(range.start).is_some_and(|text| placeholder.is_text(text));
            range.len() == 1 && is(&entries.0) && is(&entries.1)
        }
        _ => node.text(at).is_some_and(|text| placeholder.is_text(text)),
    }
}
