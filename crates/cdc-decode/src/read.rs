//! Reads one JSON value, written in a known way, into a column.

use tributary_specs::DataType;

use crate::column::{Column, Refused};
use crate::encoded::{decode, short_base64, unscaled};
use crate::infer::value_type;
use crate::json::{Broken, Cursor, Kind};
use crate::number::Decimal;
use crate::placeholder::Placeholder;
use crate::scalar::Scalar;
use crate::time::{DAY, LastDate, Moment, Parsed, SECOND, days, parse_date, parse_moment, parse_time};
use crate::wire::{BYTES_CHOICES, DECIMAL_CHOICES, Form, Numbers, Structured, TIME_CHOICES, Unit, Wire};

/// What became of a value. Unless it failed, the column has one more row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// It is in the column.
    Done,
    /// It is null.
    Null,
    /// It was not sent because it did not change; the column holds null.
    Unavailable,
    /// The column's type has no such value; the column holds null.
    Lost(Lost),
    /// It is in the column, but for fields that the column does not have ([`Reader::extras`]).
    Extras,
    /// It could not be read ([`Reader::problem`]); the column may hold part of it and must be cut back.
    Failed,
}

/// Values that sources have and our types do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A date with month or day zero.
    ZeroDate,
    /// An infinite date or timestamp, or one too far away.
    Infinite,
    /// A decimal that is not a number or infinite.
    NotANumber,
}

impl Lost {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ZeroDate => "zero date",
            Self::Infinite => "infinite or too distant time",
            Self::NotANumber => "decimal without a number",
        }
    }
}

/// Why a value could not be read. The column may hold part of it and must be cut back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Json(Broken),
    /// The value is of another form than its schema or declaration says.
    WrongType {
        found: &'static str,
        wanted: &'static str,
    },
    /// The column's type does not hold it; this one would. Of a nested column only the part that does not fit.
    DoesNotFit(DataType),
    /// A nested object has a field that the column has not: the column's type with this field alone.
    NewField(DataType),
    /// It can be read in more than one way and nothing says in which.
    Undeclared {
        found: &'static str,
        choices: &'static str,
    },
    /// The batch's text would exceed 2 GiB.
    TooLarge,
}

impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        Self::Json(broken)
    }
}

/// A value in a nested object that its column cannot take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extra {
    /// Where it is in the object: `address.zip`.
    pub path: String,
    /// Its JSON text.
    pub json: Vec<u8>,
    /// The object's type with this field alone, where the column could have it but has not; `None` for a value that no field takes.
    pub missing: Option<DataType>,
}

impl Extra {
    /// Of a field with a value that the column's type of it does not have, or that was not sent.
    pub(crate) fn of_value(json: Vec<u8>) -> Self {
        Self { path: String::new(), json, missing: None }
    }

    /// Of a field that the struct does not have.
    pub(crate) fn of_field(name: &str, json: Vec<u8>, data_type: Option<DataType>) -> Self {
        Self { path: name.to_owned(), json, missing: data_type.map(|data_type| field_alone(name, data_type)) }
    }

    /// The same as seen from the struct around.
    pub(crate) fn below(&mut self, name: &str) {
        self.path = if self.path.is_empty() { name.to_owned() } else { format!("{name}.{}", self.path) };
        self.missing = self.missing.take().map(|missing| field_alone(name, missing));
    }

    /// The same as seen from the list or map around.
    pub(crate) fn inside(&mut self, around: impl Fn(DataType) -> DataType) {
        self.missing = self.missing.take().map(around);
    }
}

fn field_alone(name: &str, data_type: DataType) -> DataType {
    DataType::Struct(vec![tributary_specs::Column::new(name, data_type)])
}

/// A struct with one field of this type, for what does not fit inside of it.
pub(crate) fn in_field(problem: Problem, name: &str) -> Problem {
    around(problem, |data_type| field_alone(name, data_type))
}

/// A list of this type, likewise.
pub(crate) fn in_list(data_type: DataType) -> DataType {
    DataType::Array(Box::new(data_type))
}

/// A map with these values, likewise.
pub(crate) fn in_map(keys: &DataType) -> impl Fn(DataType) -> DataType + use<> {
    let keys = keys.clone();
    move |data_type| DataType::Map(Box::new(keys.clone()), Box::new(data_type))
}

/// Reads values; keeps its buffers between them.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) placeholder: Placeholder,
    text: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    last_date: LastDate,
    /// Values that had digits below a microsecond.
    pub cut: u64,
    /// Keys that came twice in one object.
    pub duplicates: u64,
    /// What nested objects have that their column cannot take.
    pub extras: Vec<Extra>,
    pub(crate) problem: Option<Problem>,
}

/// What a value is.
pub(crate) enum Outcome<'a> {
    Value(Scalar<'a>),
    Unavailable,
    Lost(Lost),
}

impl Reader {
    pub(crate) fn new(placeholder: Placeholder) -> Self {
        Self {
            placeholder,
            text: Vec::new(),
            bytes: Vec::new(),
            last_date: LastDate::default(),
            cut: 0,
            duplicates: 0,
            extras: Vec::new(),
            problem: None,
        }
    }

    /// What has been found behind the first `before` of [`Self::extras`].
    pub(crate) fn extras_since(&mut self, before: usize) -> impl Iterator<Item = &mut Extra> {
        self.extras.iter_mut().skip(before)
    }

    /// What was wrong with the value that failed.
    pub(crate) fn problem(&mut self) -> Problem {
        self.problem.take().unwrap_or(Problem::Json(Broken::Short))
    }

    /// Takes the next value into a column, if it is one of the commonest, and without a call; nulls and values not sent are none.
    /// `false` = nothing has happened.
    #[inline(always)]
    pub(crate) fn read_quickly(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, column: &mut Column) -> bool {
        match wire {
            Wire::Text | Wire::Anything => return column.copy_text(cursor, &self.placeholder),
            Wire::Integer(_) => {
                let start = cursor.at();
                if let Some(value) = cursor.small_integer() {
                    if column.push_whole(value).is_ok() {
                        return true;
                    }
                    *cursor = cursor.back_to(start);
                }
            }
            Wire::Date => {
                let start = cursor.at();
                if let Some(days) = cursor.small_integer() {
                    if let Ok(day) = i32::try_from(days)
                        && DATE_RANGE.contains(&days)
                        && column.push_day(day)
                    {
                        return true;
                    }
                    *cursor = cursor.back_to(start);
                }
            }
            Wire::Boolean => {
                let start = cursor.at();
                let value = cursor.literal(b"true");
                if (value || cursor.literal(b"false")) && column.push_boolean(value) {
                    return true;
                }
                *cursor = cursor.back_to(start);
            }
            Wire::WallClock(Numbers::In(Unit::Micros)) => {
                let start = cursor.at();
                if let Some(micros) = cursor.small_integer() {
                    // Infinite ones have more digits than a small integer.
                    if column.push_micros(micros) {
                        return true;
                    }
                    *cursor = cursor.back_to(start);
                }
            }
            Wire::Instant { .. } | Wire::WallClock(_) => {
                let start = cursor.at();
                let micros = match cursor.text_of_length() {
                    Some(text) => self.last_date.parse_micros(text),
                    None => cursor.text_of_length().and_then(|text| self.last_date.parse_seconds(text)),
                };
                if let Some(micros) = micros
                    && column.push_micros(micros)
                {
                    return true;
                }
                *cursor = cursor.back_to(start);
            }
            Wire::Unscaled { scale, .. } => {
                let start = cursor.at();
                if let Some(text) = cursor.plain_text() {
                    if !self.placeholder.is_text(text)
                        && let Some(unscaled) = short_base64(text)
                        && column.push_unscaled(unscaled, *scale)
                    {
                        return true;
                    }
                    *cursor = cursor.back_to(start);
                }
            }
            Wire::Array(element) if matches!(**element, Wire::Text | Wire::Anything) => {
                return column.copy_texts(cursor, &self.placeholder);
            }
            Wire::VariableScale => {
                let start = cursor.at();
                if let Some((scale, text)) = usual_scale_and_value(cursor)
                    && !self.placeholder.is_text(text)
                    && let Some(unscaled) = short_base64(text)
                    && column.push_written(|out| Decimal { unscaled: i128::from(unscaled), scale }.write(out)).is_ok()
                {
                    return true;
                }
                *cursor = cursor.back_to(start);
            }
            _ => {}
        }
        false
    }

    /// Reads the next value into a column.
    pub(crate) fn read(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, column: &mut Column) -> Read {
        if self.read_quickly(cursor, wire, column) {
            return Read::Done;
        }
        if cursor.literal(b"null") {
            column.push_null();
            return Read::Null;
        }
        self.read_any(cursor, wire, column)
    }

    fn read_any(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, column: &mut Column) -> Read {
        match self.try_read(cursor, wire, column) {
            Ok(Read::Done) if !self.extras.is_empty() => Read::Extras,
            Ok(read) => read,
            Err(problem) => {
                self.problem = Some(problem);
                Read::Failed
            }
        }
    }

    fn try_read(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, column: &mut Column) -> Result<Read, Problem> {
        if cursor.null()? {
            column.push_null();
            return Ok(Read::Null);
        }
        match wire {
            Wire::Array(_) | Wire::Struct(_) | Wire::Map(..) => self.nested(cursor, wire, column),
            _ => self.leaf(cursor, wire, column),
        }
    }

    fn leaf(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, column: &mut Column) -> Result<Read, Problem> {
        let outcome = self.scalar(cursor, wire, column)?;
        take(column, outcome, wire)
    }

    fn scalar<'s, 'c: 's>(&'s mut self, cursor: &mut Cursor<'c>, wire: &Wire, column: &Column) -> Result<Outcome<'s>, Problem> {
        let kind = cursor.kind()?;
        let scalar = match (wire, kind) {
            (Wire::Text | Wire::Anything, Kind::Text) => {
                let text = cursor.text()?.resolve(&mut self.text)?;
                if self.placeholder.is_text(text) {
                    return Ok(Outcome::Unavailable);
                }
                Scalar::Text(text)
            }
            (Wire::Anything, _) => Scalar::Text(cursor.raw()?),
            (Wire::Boolean, Kind::Boolean) => Scalar::Boolean(cursor.boolean()?),
            (Wire::Boolean | Wire::Integer(_) | Wire::Number, Kind::Number) => {
                let number = cursor.number()?;
                match number.integer {
                    Some(value) => Scalar::Integer(value),
                    None if *wire == Wire::Number && significant(number.raw) > DOUBLE_DIGITS => {
                        return Err(Problem::DoesNotFit(DataType::String));
                    }
                    None => Scalar::Number(number.raw),
                }
            }
            // Its digits alone would be rounded to those of a float.
            (Wire::Double, Kind::Number) if *column.data_type() == DataType::Float => {
                let raw = cursor.number()?.raw;
                std::str::from_utf8(raw).ok().and_then(|digits| digits.parse().ok()).map_or(Scalar::Number(raw), Scalar::Double)
            }
            (
                Wire::Float | Wire::Double | Wire::Digits | Wire::Unscaled { .. } | Wire::VariableScale | Wire::DecimalUndeclared,
                Kind::Number,
            ) => Scalar::Number(cursor.number()?.raw),
            (Wire::Float | Wire::Double, Kind::Text) => match special_number(cursor.text()?.raw) {
                Some(value) => Scalar::Double(value),
                None => return Err(wrong(kind, wire)),
            },
            (Wire::Digits, Kind::Text) => {
                let text = cursor.text()?.raw;
                if self.placeholder.is_text(text) {
                    return Ok(Outcome::Unavailable);
                }
                return digits(text, column).ok_or_else(|| wrong(kind, wire));
            }
            (Wire::Set(order), Kind::Text) => {
                let text = cursor.text()?.resolve(&mut self.text)?;
                Scalar::Text(in_order(text, order, &mut self.bytes))
            }
            (Wire::Bytes(form), Kind::Text) => {
                let text = cursor.text()?.resolve(&mut self.text)?;
                if self.placeholder.is_text(text) {
                    return Ok(Outcome::Unavailable);
                }
                decode(*form, text, &mut self.bytes).ok_or_else(|| wrong(kind, wire))?;
                Scalar::Bytes(&self.bytes)
            }
            (Wire::BytesUndeclared, Kind::Text) => return self.undeclared(cursor, kind, BYTES_CHOICES),
            (Wire::DecimalUndeclared, Kind::Text) => return self.undeclared(cursor, kind, DECIMAL_CHOICES),
            (Wire::Unscaled { scale, .. }, Kind::Text) => {
                let text = cursor.text()?.raw;
                if self.placeholder.is_text(text) {
                    return Ok(Outcome::Unavailable);
                }
                unscaled(text, *scale, &mut self.bytes).ok_or_else(|| wrong(kind, wire))?
            }
            (Wire::VariableScale | Wire::Unscaled { .. } | Wire::DecimalUndeclared, Kind::Object) => {
                let (scale, value) = scale_and_value(cursor)?.ok_or_else(|| wrong(kind, wire))?;
                if self.placeholder.is_text(value) {
                    return Ok(Outcome::Unavailable);
                }
                unscaled(value, scale, &mut self.bytes).ok_or_else(|| wrong(kind, wire))?
            }
            (Wire::VariableScale, Kind::Text) => {
                let text = cursor.text()?.resolve(&mut self.text)?;
                if self.placeholder.is_text(text) {
                    return Ok(Outcome::Unavailable);
                }
                if column.data_type() != &DataType::String {
                    return Err(wrong(kind, wire));
                }
                // The source's column has become text itself.
                Scalar::Text(text)
            }
            (Wire::Unsigned, Kind::Number) => {
                let number = cursor.number()?;
                match number.integer {
                    Some(value) if value < 0 => Scalar::Decimal(Decimal { unscaled: i128::from(value.cast_unsigned()), scale: 0 }),
                    Some(value) => Scalar::Integer(value),
                    None => Scalar::Number(number.raw),
                }
            }
            (Wire::Date | Wire::Time(_) | Wire::WallClock(_) | Wire::Instant { .. }, Kind::Number) => {
                let number = cursor.number()?.integer.ok_or_else(|| wrong(kind, wire))?;
                return self.counted(number, wire).ok_or_else(|| wrong(kind, wire))?;
            }
            (Wire::Date | Wire::Time(_) | Wire::WallClock(_) | Wire::Instant { .. }, Kind::Text) => {
                let text = cursor.text()?.resolve(&mut self.text)?;
                return written(text, wire, &mut self.cut).ok_or_else(|| wrong(kind, wire));
            }
            (Wire::Structured(which), Kind::Object) => {
                return structured(cursor, *which)?.ok_or_else(|| wrong(kind, wire));
            }
            _ => return Err(wrong(kind, wire)),
        };
        Ok(Outcome::Value(scalar))
    }

    fn undeclared(&self, cursor: &mut Cursor<'_>, kind: Kind, choices: &'static str) -> Result<Outcome<'static>, Problem> {
        if self.placeholder.is_text(cursor.text()?.raw) {
            return Ok(Outcome::Unavailable);
        }
        Err(Problem::Undeclared { found: kind.name(), choices })
    }

    /// A time as a number. The outer `None` = a number is none here, or is out of range for its type.
    pub(crate) fn counted(&mut self, number: i64, wire: &Wire) -> Option<Result<Outcome<'static>, Problem>> {
        let value = match wire {
            Wire::Date => {
                if !DATE_RANGE.contains(&number) {
                    return Some(Ok(Outcome::Lost(Lost::Infinite)));
                }
                Scalar::Date(i32::try_from(number).ok()?)
            }
            Wire::Time(unit) => Scalar::Time(self.micros(number, *unit)?),
            Wire::WallClock(Numbers::Undeclared) | Wire::Instant { numbers: Numbers::Undeclared, .. } => {
                return Some(Err(Problem::Undeclared { found: "a number", choices: TIME_CHOICES }));
            }
            Wire::WallClock(Numbers::In(unit)) | Wire::Instant { numbers: Numbers::In(unit), .. } => {
                let micros = if *unit == Unit::Nanos && (number == i64::MAX || number == i64::MIN) {
                    None
                } else {
                    self.micros(number, *unit).filter(|micros| MOMENTS.contains(micros))
                };
                match (micros, wire) {
                    (None, _) => return Some(Ok(Outcome::Lost(Lost::Infinite))),
                    (Some(micros), Wire::WallClock(_)) => Scalar::WallClock(micros),
                    (Some(micros), _) => Scalar::Instant(micros),
                }
            }
            _ => return None,
        };
        Some(Ok(Outcome::Value(value)))
    }

    fn micros(&mut self, number: i64, unit: Unit) -> Option<i64> {
        match unit {
            Unit::Millis => number.checked_mul(1000),
            Unit::Micros => Some(number),
            Unit::Nanos => {
                self.cut += u64::from(number % 1000 != 0);
                Some(number.div_euclid(1000))
            }
        }
    }

    fn nested(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, column: &mut Column) -> Result<Read, Problem> {
        if column.data_type() == &DataType::String {
            if self.is_unavailable(cursor)? {
                cursor.skip()?;
                column.push_null();
                return Ok(Read::Unavailable);
            }
            push(column, Scalar::Text(cursor.raw()?), wire)?;
            return Ok(Read::Done);
        }
        let kind = cursor.kind()?;
        if matches!(kind, Kind::Array | Kind::Object | Kind::Text) && !matches!(wire, Wire::Struct(_)) && self.is_unavailable(cursor)? {
            cursor.skip()?;
            column.push_null();
            return Ok(Read::Unavailable);
        }
        match (wire, kind) {
            (Wire::Array(wire), Kind::Array) => {
                let Some(element) = column.element() else { return Err(Problem::DoesNotFit(DataType::String)) };
                let extras = self.extras.len();
                let mut elements = cursor.array()?;
                while cursor.element(&mut elements)? {
                    self.try_read(cursor, wire, element).map_err(|problem| around(problem, in_list))?;
                }
                self.extras_since(extras).for_each(|extra| extra.inside(in_list));
            }
            (Wire::Struct(wires), Kind::Object) => {
                let Some(fields) = column.even_fields() else { return Err(Problem::DoesNotFit(DataType::String)) };
                self.fields(cursor, wires, fields)?;
            }
            (Wire::Map(key, value), Kind::Object) => {
                let Some((keys, values)) = column.entries() else { return Err(Problem::DoesNotFit(DataType::String)) };
                let around_values = in_map(keys.data_type());
                let extras = self.extras.len();
                let mut members = cursor.object()?;
                while let Some(name) = cursor.member(&mut members)? {
                    if **key != Wire::Text && **key != Wire::Anything {
                        return Err(wrong(Kind::Object, wire));
                    }
                    let name = name.resolve(&mut self.text)?;
                    push(keys, Scalar::Text(name), key)?;
                    self.try_read(cursor, value, values).map_err(|problem| around(problem, &around_values))?;
                }
                self.extras_since(extras).for_each(|extra| extra.inside(&around_values));
            }
            (Wire::Map(key, value), Kind::Array) => {
                let Some((keys, values)) = column.entries() else { return Err(Problem::DoesNotFit(DataType::String)) };
                let around_values = in_map(keys.data_type());
                let extras = self.extras.len();
                let mut pairs = cursor.array()?;
                while cursor.element(&mut pairs)? {
                    let mut pair = cursor.array()?;
                    if !cursor.element(&mut pair)? || cursor.kind()? == Kind::Null {
                        return Err(wrong(Kind::Array, wire));
                    }
                    self.try_read(cursor, key, keys)?;
                    if !cursor.element(&mut pair)? {
                        return Err(wrong(Kind::Array, wire));
                    }
                    self.try_read(cursor, value, values).map_err(|problem| around(problem, &around_values))?;
                    if cursor.element(&mut pair)? {
                        return Err(wrong(Kind::Array, wire));
                    }
                }
                self.extras_since(extras).for_each(|extra| extra.inside(&around_values));
            }
            _ => return Err(wrong(kind, wire)),
        }
        column.close().map_err(|_| Problem::TooLarge)?;
        Ok(Read::Done)
    }

    fn fields(&mut self, cursor: &mut Cursor<'_>, wires: &[(String, Wire)], fields: &mut [(String, Column)]) -> Result<(), Problem> {
        let rows = fields.first().map_or(0, |(_, field)| field.len());
        let mut members = cursor.object()?;
        let mut scratch = Vec::new();
        while let Some(key) = cursor.member(&mut members)? {
            let name = key.resolve(&mut scratch)?;
            let wire = wires.iter().find(|(wire, _)| wire.as_bytes() == name).map(|(_, wire)| wire);
            let field = fields.iter_mut().find(|(field, _)| field.as_bytes() == name);
            let (Some(wire), Some((name, field))) = (wire, field) else {
                // A field of this name, in whatever case, that the column has is not one that it lacks.
                let twin = fields.iter().any(|(field, _)| field.as_bytes().eq_ignore_ascii_case(name));
                let inferred = value_type(&mut cursor.clone())?;
                let raw = cursor.raw()?;
                if raw != b"null" {
                    let data_type = wire.map(Wire::natural).or(inferred).filter(|_| !twin && !name.is_empty());
                    self.extras.push(Extra::of_field(&String::from_utf8_lossy(name), raw.to_vec(), data_type));
                }
                continue;
            };
            if field.len() > rows {
                field.truncate(rows);
                self.duplicates += 1;
            }
            let extras = self.extras.len();
            let start = {
                cursor.kind()?;
                cursor.at()
            };
            match self.try_read(cursor, wire, field) {
                Ok(Read::Done | Read::Null | Read::Extras | Read::Failed) => {}
                Ok(Read::Unavailable | Read::Lost(_)) => self.extras.push(Extra::of_value(cursor.since(start).to_vec())),
                Err(problem) => return Err(in_field(problem, name)),
            }
            self.extras_since(extras).for_each(|extra| extra.below(name));
        }
        Ok(())
    }

    /// Whether the next value is the placeholder of an array, map or text. Takes nothing.
    fn is_unavailable(&mut self, cursor: &Cursor<'_>) -> Result<bool, Broken> {
        let mut ahead = cursor.clone();
        match ahead.kind()? {
            Kind::Text => {
                let text = ahead.text()?.raw;
                Ok(self.placeholder.is_text(text))
            }
            Kind::Array => {
                let mut elements = ahead.array()?;
                if !ahead.element(&mut elements)? {
                    return Ok(false);
                }
                match ahead.kind()? {
                    Kind::Text => {
                        let text = ahead.text()?.raw;
                        Ok(self.placeholder.is_element(text) && !ahead.element(&mut elements)?)
                    }
                    Kind::Number => {
                        let mut spelled = vec![ahead.number()?.integer];
                        while spelled.len() < 256 && ahead.element(&mut elements)? {
                            if ahead.kind()? != Kind::Number {
                                return Ok(false);
                            }
                            spelled.push(ahead.number()?.integer);
                        }
                        Ok(self.placeholder.is_spelled(spelled.into_iter().map(|value| value.unwrap_or(i64::MAX))))
                    }
                    _ => Ok(false),
                }
            }
            Kind::Object => {
                let mut members = ahead.object()?;
                let Some(key) = ahead.member(&mut members)? else { return Ok(false) };
                if !self.placeholder.is_text(key.raw) || ahead.kind()? != Kind::Text {
                    return Ok(false);
                }
                let value = ahead.text()?.raw;
                Ok(self.placeholder.is_text(value) && ahead.member(&mut members)?.is_none())
            }
            _ => Ok(false),
        }
    }
}

/// Appends what a value is: itself, or null.
pub(crate) fn take(column: &mut Column, outcome: Outcome<'_>, wire: &Wire) -> Result<Read, Problem> {
    let read = match outcome {
        Outcome::Value(scalar) => return push(column, scalar, wire).map(|()| Read::Done),
        Outcome::Unavailable => Read::Unavailable,
        Outcome::Lost(lost) => Read::Lost(lost),
    };
    column.push_null();
    Ok(read)
}

/// Appends a value, or says what type would hold it.
#[inline]
pub(crate) fn push(column: &mut Column, scalar: Scalar<'_>, wire: &Wire) -> Result<(), Problem> {
    column.push(scalar).map_err(|refused| refusal(refused, column, scalar, wire))
}

/// What type would hold a value that a column refused.
#[cold]
fn refusal(refused: Refused, column: &Column, scalar: Scalar<'_>, wire: &Wire) -> Problem {
    match refused {
        Refused::TooLarge => Problem::TooLarge,
        Refused::DoesNotFit => {
            let natural = wire.natural();
            // A schema's own type first, unless the column has it already and the value is what is odd.
            Problem::DoesNotFit(if natural == *column.data_type() { scalar.data_type() } else { natural_of(natural, scalar) })
        }
    }
}

/// The wire's type where it says one, else the value's.
fn natural_of(natural: DataType, scalar: Scalar<'_>) -> DataType {
    match (&natural, scalar) {
        (DataType::String, Scalar::Decimal(_) | Scalar::Number(_)) | (DataType::Double, Scalar::Integer(_) | Scalar::Number(_)) => {
            scalar.data_type()
        }
        _ => natural,
    }
}

/// What a value inside a nested one needs, as what the column around it needs.
pub(crate) fn around(problem: Problem, column: impl Fn(DataType) -> DataType) -> Problem {
    match problem {
        Problem::DoesNotFit(data_type) => Problem::DoesNotFit(column(data_type)),
        other => other,
    }
}

fn wrong(found: Kind, wire: &Wire) -> Problem {
    Problem::WrongType { found: found.name(), wanted: wanted(wire) }
}

/// What a value should have been, for messages.
pub(crate) const fn wanted(wire: &Wire) -> &'static str {
    match wire {
        Wire::Boolean => "a boolean",
        Wire::Integer(_) | Wire::Unsigned => "a whole number",
        Wire::Float | Wire::Double | Wire::Number => "a number",
        Wire::Digits => "digits",
        Wire::Text | Wire::Set(_) => "text",
        Wire::Anything => "anything",
        Wire::Bytes(Form::Base64 | Form::Bits) => "base64",
        Wire::Bytes(Form::Base64Url) => "base64 of the url alphabet",
        Wire::Bytes(Form::Hex) => "hexadecimal digits",
        Wire::BytesUndeclared => "bytes",
        Wire::Unscaled { .. } => "base64 of an unscaled integer",
        Wire::VariableScale => "an object of scale and value",
        Wire::DecimalUndeclared => "a decimal",
        Wire::Date => "days or an iso date",
        Wire::Time(_) => "a time of day",
        Wire::WallClock(_) => "a timestamp without zone",
        Wire::Instant { .. } => "a timestamp with offset",
        Wire::Structured(_) => "an object of date and time fields",
        Wire::Array(_) => "an array",
        Wire::Struct(_) => "an object",
        Wire::Map(..) => "an object or an array of pairs",
    }
}

/// Days that a database's date can be; PostgreSQL's last is 5874897-12-31. Infinite ones arrive as numbers outside.
const DATE_RANGE: std::ops::RangeInclusive<i64> = -2_147_000_000..=2_145_031_948;
/// Moments in µs that readers can print: the years -262143 to 262142. PostgreSQL's infinite timestamps are outside, as Debezium
/// passes them on.
const MOMENTS: std::ops::RangeInclusive<i64> = -8_334_601_228_800_000_000..=8_210_266_876_799_999_999;

/// The most significant digits of a decimal number that comes back from a double as it went in.
const DOUBLE_DIGITS: usize = 17;

/// Digits of a number from its first that is not zero, exponent left out.
pub(crate) fn significant(raw: &[u8]) -> usize {
    let mantissa = raw.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    mantissa.filter(|byte| byte.is_ascii_digit()).skip_while(|byte| **byte == b'0').count()
}

fn special_number(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" | b"NAN" => Some(f64::NAN),
        b"Infinity" | b"POSITIVE_INFINITY" => Some(f64::INFINITY),
        b"-Infinity" | b"NEGATIVE_INFINITY" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A number as text.
pub(crate) fn number_text<'a>(text: &'a [u8], data_type: &DataType) -> Option<Result<Scalar<'a>, Lost>> {
    if let Some(value) = special_number(text) {
        return Some(match data_type {
            DataType::Float | DataType::Double => Ok(Scalar::Double(value)),
            DataType::String => Ok(Scalar::Text(text)),
            _ => Err(Lost::NotANumber),
        });
    }
    let long = || {
        let mut cursor = Cursor::new(text);
        cursor.number().is_ok() && cursor.end().is_ok()
    };
    (Decimal::parse(text).is_some() || long()).then_some(Ok(Scalar::Number(text)))
}

pub(crate) fn digits<'a>(text: &'a [u8], column: &Column) -> Option<Outcome<'a>> {
    Some(match number_text(text, column.data_type())? {
        Ok(scalar) => Outcome::Value(scalar),
        Err(lost) => Outcome::Lost(lost),
    })
}

/// A set's members in the order of their declaration, so that equal sets are equal texts.
pub(crate) fn in_order<'s>(text: &'s [u8], order: &[String], out: &'s mut Vec<u8>) -> &'s [u8] {
    let place = |member: &[u8]| order.iter().position(|allowed| allowed.as_bytes() == member);
    let members: Vec<&[u8]> = text.split(|byte| *byte == b',').collect();
    let places: Option<Vec<usize>> = members.iter().map(|member| place(member)).collect();
    let Some(mut places) = places.filter(|places| !places.is_sorted()) else { return text };
    places.sort_unstable();
    out.clear();
    for (at, place) in places.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(order.get(place).map_or(b"", String::as_bytes));
    }
    out
}

/// The two parts of a decimal that brings its own scale, as they are nearly always written. `None` = otherwise, the cursor is
/// anywhere.
fn usual_scale_and_value<'a>(cursor: &mut Cursor<'a>) -> Option<(i32, &'a [u8])> {
    if !cursor.literal(br#"{"scale":"#) {
        return None;
    }
    let scale = i32::try_from(cursor.small_integer()?).ok()?;
    if !cursor.literal(br#","value":"#) {
        return None;
    }
    let value = cursor.plain_text()?;
    cursor.byte(b'}').then_some((scale, value))
}

/// The two parts of a decimal that brings its own scale.
fn scale_and_value<'a>(cursor: &mut Cursor<'a>) -> Result<Option<(i32, &'a [u8])>, Broken> {
    let (mut scale, mut value) = (None, None);
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        match (key.raw, cursor.kind()?) {
            (b"scale", Kind::Number) => scale = cursor.number()?.integer.and_then(|scale| i32::try_from(scale).ok()),
            (b"value", Kind::Text) => value = Some(cursor.text()?.raw),
            _ => cursor.skip()?,
        }
    }
    Ok(scale.zip(value))
}

fn lost_or<T>(parsed: Parsed<T>, cut: &mut u64) -> Option<Result<T, Lost>> {
    Some(match parsed {
        Parsed::Value { value, cut: was_cut } => {
            *cut += u64::from(was_cut);
            Ok(value)
        }
        Parsed::ZeroDate => Err(Lost::ZeroDate),
        Parsed::Infinite | Parsed::TooFar => Err(Lost::Infinite),
        Parsed::Malformed => return None,
    })
}

/// A date or time from its text, as a column of this wire takes it. `None` = not of the form.
pub(crate) fn time_text(text: &[u8], wire: &Wire, cut: &mut u64) -> Option<Result<Scalar<'static>, Lost>> {
    let scalar = match wire {
        Wire::Date => match lost_or(parse_date(text), cut)? {
            Ok(days) if DATE_RANGE.contains(&days) => Ok(Scalar::Date(i32::try_from(days).ok()?)),
            Ok(_) => Err(Lost::Infinite),
            Err(lost) => Err(lost),
        },
        Wire::Time(_) => lost_or(parse_time(text), cut)?.map(Scalar::Time),
        Wire::WallClock(_) | Wire::Instant { .. } => match lost_or(parse_moment(text), cut)? {
            Ok(Moment { micros, .. }) if !MOMENTS.contains(&micros) => Err(Lost::Infinite),
            Ok(Moment { micros, offset }) => Ok(match (wire, offset) {
                (Wire::WallClock(_), None | Some(0)) => Scalar::WallClock(micros),
                (Wire::Instant { .. }, Some(_)) | (Wire::Instant { utc: true, .. }, None) => Scalar::Instant(micros),
                _ => return None,
            }),
            Err(lost) => Err(lost),
        },
        _ => return None,
    };
    Some(scalar)
}

pub(crate) fn written(text: &[u8], wire: &Wire, cut: &mut u64) -> Option<Outcome<'static>> {
    Some(match time_text(text, wire, cut)? {
        Ok(scalar) => Outcome::Value(scalar),
        Err(lost) => Outcome::Lost(lost),
    })
}

/// A date or time from its parts. The inner `None` = a part is missing or out of range.
fn structured(cursor: &mut Cursor<'_>, which: Structured) -> Result<Option<Outcome<'static>>, Broken> {
    let mut parts = [None::<i64>; 8];
    let mut special = false;
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        let part = match key.raw {
            b"year" => 0,
            b"month" => 1,
            b"day" => 2,
            b"hour" => 3,
            b"minute" => 4,
            b"second" => 5,
            b"nanos" => 6,
            b"offsetSeconds" => 7,
            b"specialValue" => {
                special |= cursor.kind()? != Kind::Null;
                cursor.skip()?;
                continue;
            }
            _ => {
                cursor.skip()?;
                continue;
            }
        };
        if cursor.kind()? == Kind::Number {
            parts[part] = cursor.number()?.integer;
        } else {
            cursor.skip()?;
        }
    }
    if special {
        return Ok(Some(Outcome::Lost(Lost::Infinite)));
    }
    Ok(assembled(parts, which).map(Outcome::Value))
}

pub(crate) fn assembled(parts: [Option<i64>; 8], which: Structured) -> Option<Scalar<'static>> {
    let [year, month, day, hour, minute, second, nanos, offset] = parts;
    let date = || {
        let (year, month, day) = (year?, month?, day?);
        let valid = (-1_000_000..=1_000_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        valid.then(|| days(year, month, day))
    };
    let time = || {
        let (hour, minute, second, nanos) = (hour?, minute?, second.unwrap_or(0), nanos.unwrap_or(0));
        let valid =
            (0..=24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second) && (0..1_000_000_000).contains(&nanos);
        valid.then(|| (hour * 3600 + minute * 60 + second) * SECOND + nanos / 1000)
    };
    let moment = || date()?.checked_mul(DAY)?.checked_add(time()?);
    Some(match which {
        Structured::Date => Scalar::Date(i32::try_from(date()?).ok()?),
        Structured::Time => Scalar::Time(time()?),
        Structured::WallClock => Scalar::WallClock(moment()?),
        Structured::Instant => {
            let offset = offset.filter(|offset| offset.abs() <= 86_400)?;
            Scalar::Instant(moment()?.checked_sub(offset * SECOND)?)
        }
    })
}
