//! A column under construction. Unlike Arrow's own builders it can be cut back to an earlier row, because a record
//! whose tenth value turns out bad must leave no trace in the nine columns before.

mod exact;
mod slots;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, ListArray, MapArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType as Arrow};
use tributary_specs::{Column as Spec, DataType};

use crate::column::exact::{double, exact, float, narrow, whole};
use crate::column::slots::{Bits, Bytes, Offsets, Slots, Validity};
use crate::json::Cursor;
use crate::number::Decimal;
use crate::placeholder::Placeholder;
use crate::scalar::Scalar;
use crate::zeros::Zeros;

/// Ten to the power of the index.
const LIMITS: [u64; 20] = {
    let mut limits = [1; 20];
    let mut at = 1;
    while at < 20 {
        limits[at] = limits[at - 1] * 10;
        at += 1;
    }
    limits
};

/// Why a value did not go into a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The column's type does not hold the value exactly.
    DoesNotFit,
    /// The column's text would exceed 2 GiB.
    TooLarge,
}

/// A column under construction.
#[derive(Debug)]
pub(crate) struct Column {
    data_type: DataType,
    nulls: Validity,
    values: Values,
    /// Rows and bytes of text of the last batch.
    room: (usize, usize),
}

#[derive(Debug)]
enum Values {
    Boolean(Bits),
    Byte(Vec<i8>),
    Short(Vec<i16>),
    Integer(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal(Vec<i128>, u8, u8),
    Text(Bytes),
    Binary(Bytes),
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    TimestampNtz(Vec<i64>),
    List(Offsets, Box<Column>),
    Struct(Vec<(String, Column)>),
    Map(Offsets, Box<(Column, Column)>),
}

impl Values {
    /// The rows' places, whatever lies in them; `None` = a struct, which has none but its fields'.
    fn slots(&mut self) -> Option<&mut dyn Slots> {
        Some(match self {
            Self::Boolean(values) => values,
            Self::Byte(values) => values,
            Self::Short(values) => values,
            Self::Integer(values) | Self::Date(values) => values,
            Self::Long(values) | Self::Timestamp(values) | Self::TimestampNtz(values) => values,
            Self::Float(values) => values,
            Self::Double(values) => values,
            Self::Decimal(values, ..) => values,
            Self::Text(values) | Self::Binary(values) => values,
            Self::List(offsets, _) | Self::Map(offsets, _) => offsets,
            Self::Struct(_) => return None,
        })
    }
}

impl Column {
    /// An empty column.
    pub(crate) fn new(data_type: &DataType) -> Self {
        let values = match data_type {
            DataType::Boolean => Values::Boolean(Bits::default()),
            DataType::Byte => Values::Byte(Vec::new()),
            DataType::Short => Values::Short(Vec::new()),
            DataType::Integer => Values::Integer(Vec::new()),
            DataType::Long => Values::Long(Vec::new()),
            DataType::Float => Values::Float(Vec::new()),
            DataType::Double => Values::Double(Vec::new()),
            DataType::Decimal { precision, scale } => Values::Decimal(Vec::new(), *precision, *scale),
            DataType::String => Values::Text(Bytes::new()),
            DataType::Binary => Values::Binary(Bytes::new()),
            DataType::Date => Values::Date(Vec::new()),
            DataType::Timestamp => Values::Timestamp(Vec::new()),
            DataType::TimestampNtz => Values::TimestampNtz(Vec::new()),
            DataType::Array(element) => Values::List(Offsets::new(), Box::new(Self::new(element))),
            DataType::Struct(fields) => {
                Values::Struct(fields.iter().map(|field| (field.name.clone(), Self::new(&field.data_type))).collect())
            }
            DataType::Map(key, value) => Values::Map(Offsets::new(), Box::new((Self::new(key), Self::new(value)))),
        };
        Self { data_type: data_type.clone(), nulls: Validity::default(), values, room: (0, 0) }
    }

    /// The type.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Rows so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.nulls.len
    }

    /// Appends a null.
    #[inline]
    pub(crate) fn push_null(&mut self) {
        match &mut self.values {
            Values::Boolean(values) => values.push(false),
            Values::Byte(values) => values.push(0),
            Values::Short(values) => values.push(0),
            Values::Integer(values) | Values::Date(values) => values.push(0),
            Values::Long(values) | Values::Timestamp(values) | Values::TimestampNtz(values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Decimal(values, ..) => values.push(0),
            Values::Text(Bytes { offsets, .. })
            | Values::Binary(Bytes { offsets, .. })
            | Values::List(offsets, _)
            | Values::Map(offsets, _) => offsets.push_empty(),
            // Its fields catch up when one of them is needed.
            Values::Struct(_) => {}
        }
        self.nulls.push_nulls(1);
    }

    /// Appends nulls until there are so many rows.
    #[inline(always)]
    pub(crate) fn fill(&mut self, rows: usize) {
        if self.len() < rows {
            self.fill_nulls(rows);
        }
    }

    fn fill_nulls(&mut self, rows: usize) {
        let Some(missing) = rows.checked_sub(self.len()).filter(|missing| *missing > 0) else { return };
        if let Some(slots) = self.values.slots() {
            slots.fill(rows);
        }
        self.nulls.push_nulls(missing);
    }

    /// Cuts back to so many rows, and drops what belongs to a nested row that was not closed.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.nulls.truncate(rows);
        if let Some(slots) = self.values.slots() {
            slots.truncate(rows);
        }
        match &mut self.values {
            Values::List(offsets, element) => element.truncate(offsets.end()),
            Values::Struct(fields) => fields.iter_mut().for_each(|(_, field)| field.truncate(rows)),
            Values::Map(offsets, entries) => {
                entries.0.truncate(offsets.end());
                entries.1.truncate(offsets.end());
            }
            _ => {}
        }
    }

    /// Appends text to a `string` column or bytes to a `binary` one; anything else is refused.
    #[inline]
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        match &mut self.values {
            Values::Text(values) | Values::Binary(values) => values.push(bytes)?,
            _ => return Err(Refused::DoesNotFit),
        }
        self.nulls.push_valid();
        Ok(())
    }

    /// Appends what is written to a `string` column; anything else is refused.
    #[inline(always)]
    pub(crate) fn push_written(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refused> {
        let Values::Text(values) = &mut self.values else { return Err(Refused::DoesNotFit) };
        write(&mut values.data);
        if let Err(refused) = values.offsets.push(values.data.len()) {
            values.data.truncate(values.offsets.end());
            return Err(refused);
        }
        self.nulls.push_valid();
        Ok(())
    }

    /// Appends to a `long`, `timestamp` or `timestamp_ntz` column; anything else is refused.
    #[inline]
    pub(crate) fn push_long(&mut self, value: i64) -> Result<(), Refused> {
        match &mut self.values {
            Values::Long(values) | Values::Timestamp(values) | Values::TimestampNtz(values) => values.push(value),
            _ => return Err(Refused::DoesNotFit),
        }
        self.nulls.push_valid();
        Ok(())
    }

    /// Appends a whole number where the type holds it.
    #[inline(always)]
    pub(crate) fn push_whole(&mut self, value: i64) -> Result<(), Refused> {
        match &mut self.values {
            Values::Long(values) => values.push(value),
            Values::Integer(values) => values.push(i32::try_from(value).map_err(|_| Refused::DoesNotFit)?),
            _ => return self.push(Scalar::Integer(value)),
        }
        self.nulls.push_valid();
        Ok(())
    }

    /// Appends µs to a `timestamp` or `timestamp_ntz` column without ado; `false` = it is another type.
    #[inline(always)]
    pub(crate) fn push_micros(&mut self, micros: i64) -> bool {
        match &mut self.values {
            Values::Timestamp(values) | Values::TimestampNtz(values) => values.push(micros),
            _ => return false,
        }
        self.nulls.push_valid();
        true
    }

    /// Appends a day to a `date` column without ado; `false` = it is another type.
    #[inline(always)]
    pub(crate) fn push_day(&mut self, day: i32) -> bool {
        match &mut self.values {
            Values::Date(values) => values.push(day),
            _ => return false,
        }
        self.nulls.push_valid();
        true
    }

    /// Appends to a `boolean` column without ado; `false` = it is another type.
    #[inline(always)]
    pub(crate) fn push_boolean(&mut self, value: bool) -> bool {
        match &mut self.values {
            Values::Boolean(values) => values.push(value),
            _ => return false,
        }
        self.nulls.push_valid();
        true
    }

    /// Appends an unscaled number to a `decimal` column of this very scale, where it fits; `false` = it does not.
    #[inline(always)]
    pub(crate) fn push_unscaled(&mut self, unscaled: i64, scale: i32) -> bool {
        match &mut self.values {
            Values::Decimal(values, precision, own) if i32::from(*own) == scale => {
                let fits = LIMITS.get(usize::from(*precision)).is_none_or(|limit| unscaled.unsigned_abs() < *limit);
                if !fits {
                    return false;
                }
                values.push(i128::from(unscaled));
            }
            _ => return false,
        }
        self.nulls.push_valid();
        true
    }

    /// Takes a string from JSON text, with none but the short escapes. `false` = it is something else, goes elsewhere or is the
    /// placeholder of a value that was not sent; nothing has happened.
    #[inline(always)]
    pub(crate) fn copy_text(&mut self, cursor: &mut Cursor<'_>, placeholder: &Placeholder) -> bool {
        let Values::Text(values) = &mut self.values else { return false };
        let (start, from) = (values.data.len(), cursor.at());
        let copied = cursor.copy_text(&mut values.data);
        let unavailable = || values.data.get(start..).is_some_and(|text| placeholder.is_text(text));
        // What exceeds 2 GiB is taken back and refused on the way that says so.
        if !copied || unavailable() || values.offsets.push(values.data.len()).is_err() {
            *cursor = cursor.back_to(from);
            values.data.truncate(start);
            return false;
        }
        self.nulls.push_valid();
        true
    }

    /// Takes an array of strings from JSON text into a column of arrays, as [`Column::copy_text`] takes one. `false` = nothing has
    /// happened.
    pub(crate) fn copy_texts(&mut self, cursor: &mut Cursor<'_>, placeholder: &Placeholder) -> bool {
        let Values::List(offsets, element) = &mut self.values else { return false };
        let (start, from) = (element.len(), cursor.at());
        let copied = element.copy_elements(cursor, placeholder);
        let Values::Text(texts) = &element.values else { return false };
        let is_placeholder = element.len() == start + 1 && placeholder.is_element(texts.get(start));
        if !copied || is_placeholder || offsets.push(element.len()).is_err() {
            *cursor = cursor.back_to(from);
            element.truncate(start);
            return false;
        }
        self.nulls.push_valid();
        true
    }

    fn copy_elements(&mut self, cursor: &mut Cursor<'_>, placeholder: &Placeholder) -> bool {
        if !matches!(self.values, Values::Text(_)) || !cursor.byte(b'[') {
            return false;
        }
        if cursor.byte(b']') {
            return true;
        }
        while self.copy_text(cursor, placeholder) {
            if !cursor.byte(b',') {
                return cursor.byte(b']');
            }
        }
        false
    }

    /// Appends to an `integer` column; anything else is refused.
    pub(crate) fn push_integer(&mut self, value: i32) -> Result<(), Refused> {
        match &mut self.values {
            Values::Integer(values) => values.push(value),
            _ => return Err(Refused::DoesNotFit),
        }
        self.nulls.push_valid();
        Ok(())
    }

    /// Appends a value if the type holds it exactly. Nothing is appended when it is refused.
    #[inline]
    pub(crate) fn push(&mut self, scalar: Scalar<'_>) -> Result<(), Refused> {
        if matches!(scalar, Scalar::Null) {
            self.push_null();
            return Ok(());
        }
        match &mut self.values {
            Values::Text(values) => match scalar {
                Scalar::Text(text) => values.push(text)?,
                other => {
                    let mut text = Vec::new();
                    other.write(&mut text).ok_or(Refused::DoesNotFit)?;
                    values.push(&text)?;
                }
            },
            Values::Binary(values) => match scalar {
                Scalar::Bytes(bytes) => values.push(bytes)?,
                _ => return Err(Refused::DoesNotFit),
            },
            Values::Long(values) => values.push(whole(scalar)?),
            Values::Integer(values) => values.push(narrow(scalar)?),
            Values::Short(values) => values.push(narrow(scalar)?),
            Values::Byte(values) => values.push(narrow(scalar)?),
            Values::Decimal(values, precision, scale) => {
                let decimal = exact(scalar)?;
                values.push(decimal.fit(*precision, *scale).ok_or(Refused::DoesNotFit)?);
            }
            Values::Double(values) => values.push(double(scalar)?),
            Values::Float(values) => values.push(float(scalar)?),
            Values::Boolean(values) => values.push(match scalar {
                Scalar::Boolean(value) => value,
                Scalar::Integer(value @ (0 | 1)) => value == 1,
                _ => return Err(Refused::DoesNotFit),
            }),
            Values::Date(values) => match scalar {
                Scalar::Date(days) => values.push(days),
                _ => return Err(Refused::DoesNotFit),
            },
            Values::Timestamp(values) | Values::TimestampNtz(values) => values.push(match scalar {
                Scalar::Instant(micros) | Scalar::WallClock(micros) => micros,
                Scalar::Date(days) => Scalar::midnight(days).ok_or(Refused::DoesNotFit)?,
                _ => return Err(Refused::DoesNotFit),
            }),
            Values::List(..) | Values::Struct(_) | Values::Map(..) => return Err(Refused::DoesNotFit),
        }
        self.nulls.push_valid();
        Ok(())
    }

    /// Whether the row is not null.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.nulls.is_valid(row)
    }

    /// The value of a row of a column that is not nested.
    pub(crate) fn get(&self, row: usize) -> Option<Scalar<'_>> {
        if !self.is_valid(row) {
            return Some(Scalar::Null);
        }
        Some(match &self.values {
            Values::Boolean(values) => Scalar::Boolean(values.get(row)),
            Values::Byte(values) => Scalar::Integer(i64::from(*values.get(row)?)),
            Values::Short(values) => Scalar::Integer(i64::from(*values.get(row)?)),
            Values::Integer(values) => Scalar::Integer(i64::from(*values.get(row)?)),
            Values::Long(values) => Scalar::Integer(*values.get(row)?),
            Values::Float(values) => Scalar::Float(*values.get(row)?),
            Values::Double(values) => Scalar::Double(*values.get(row)?),
            Values::Decimal(values, _, scale) => Scalar::Decimal(Decimal { unscaled: *values.get(row)?, scale: i32::from(*scale) }),
            Values::Text(values) => Scalar::Text(values.get(row)),
            Values::Binary(values) => Scalar::Bytes(values.get(row)),
            Values::Date(values) => Scalar::Date(*values.get(row)?),
            Values::Timestamp(values) => Scalar::Instant(*values.get(row)?),
            Values::TimestampNtz(values) => Scalar::WallClock(*values.get(row)?),
            Values::List(..) | Values::Struct(_) | Values::Map(..) => return None,
        })
    }

    /// The same rows in a wider type; `None` = one of them has no form in it.
    pub(crate) fn widened(&self, data_type: &DataType) -> Option<Self> {
        let mut wide = Self::new(data_type);
        for row in 0..self.len() {
            wide.copy(self, row)?;
        }
        Some(wide)
    }

    /// Appends a row of a column of a narrower type; `None` = it has no form in this one.
    fn copy(&mut self, from: &Self, row: usize) -> Option<()> {
        if !from.is_valid(row) {
            self.push_null();
            return Some(());
        }
        let rows = self.len();
        match (&mut self.values, &from.values) {
            (Values::List(_, to), Values::List(offsets, element)) => offsets.range(row).try_for_each(|at| to.copy(element, at))?,
            (Values::Map(_, to), Values::Map(offsets, entries)) => offsets.range(row).try_for_each(|at| {
                to.0.copy(&entries.0, at)?;
                to.1.copy(&entries.1, at)
            })?,
            (Values::Struct(to), Values::Struct(fields)) => {
                for (name, column) in to {
                    column.fill(rows);
                    match fields.iter().find(|(field, _)| field == name) {
                        Some((_, field)) => column.copy(field, row)?,
                        None => column.push_null(),
                    }
                }
            }
            _ => return self.push(from.get(row)?).ok(),
        }
        self.close().ok()
    }

    /// The element column of a list, and the end of the row that the elements appended since become.
    pub(crate) fn element(&mut self) -> Option<&mut Column> {
        match &mut self.values {
            Values::List(_, element) => Some(element),
            _ => None,
        }
    }

    /// The key and value columns of a map.
    pub(crate) fn entries(&mut self) -> Option<&mut (Column, Column)> {
        match &mut self.values {
            Values::Map(_, entries) => Some(entries),
            _ => None,
        }
    }

    /// The fields of a struct. One may be behind: it is null in the rows that it lacks.
    pub(crate) fn fields(&mut self) -> Option<&mut Vec<(String, Column)>> {
        match &mut self.values {
            Values::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// The fields of a struct, each with as many rows as the struct.
    pub(crate) fn even_fields(&mut self) -> Option<&mut Vec<(String, Column)>> {
        let rows = self.len();
        let fields = self.fields()?;
        fields.iter_mut().for_each(|(_, field)| field.fill(rows));
        Some(fields)
    }

    /// Adds a field to a struct, null in the rows so far.
    pub(crate) fn add_field(&mut self, spec: &Spec) {
        let rows = self.len();
        if let (Values::Struct(fields), DataType::Struct(specs)) = (&mut self.values, &mut self.data_type) {
            let mut field = Self::new(&spec.data_type);
            field.fill(rows);
            fields.push((spec.name.clone(), field));
            specs.push(spec.clone());
        }
    }

    /// Gives a field of a struct a wider type. `false` = a row so far has no form in it; nothing has changed then.
    pub(crate) fn widen_field(&mut self, name: &str, data_type: &DataType) -> bool {
        let (Values::Struct(fields), DataType::Struct(specs)) = (&mut self.values, &mut self.data_type) else { return true };
        let Some((field, spec)) = fields.iter_mut().zip(specs).find(|((field, _), _)| field == name) else { return true };
        let Some(wide) = field.1.widened(data_type) else { return false };
        field.1 = wide;
        spec.data_type = data_type.clone();
        true
    }

    /// Ends a row of a list, map or struct whose parts have been appended.
    pub(crate) fn close(&mut self) -> Result<(), Refused> {
        match &mut self.values {
            Values::List(offsets, element) => offsets.push(element.len())?,
            Values::Map(offsets, entries) => offsets.push(entries.0.len())?,
            Values::Struct(_) => {}
            _ => return Err(Refused::DoesNotFit),
        }
        self.nulls.push_valid();
        Ok(())
    }

    fn bytes(&self) -> usize {
        match &self.values {
            Values::Text(values) | Values::Binary(values) => values.data.len(),
            _ => 0,
        }
    }

    /// Makes room for so many rows like those of the last batch. At the start of a batch and not at the end of the one before, so that the
    /// memory of a batch that has been let go can be used again.
    pub(crate) fn prepare(&mut self, rows: usize) {
        let (last_rows, last_bytes) = self.room;
        if last_rows == 0 {
            return;
        }
        // A little more text than last time, so that it seldom has to be moved.
        let bytes = last_bytes.saturating_mul(rows) / last_rows * 17 / 16;
        if let Some(slots) = self.values.slots() {
            slots.reserve(rows, bytes);
        }
        match &mut self.values {
            Values::List(_, element) => element.prepare(element.room.0.saturating_mul(rows) / last_rows),
            Values::Struct(fields) => fields.iter_mut().for_each(|(_, field)| field.prepare(rows)),
            Values::Map(_, entries) => {
                let entries_of = |column: &Self| column.room.0.saturating_mul(rows) / last_rows;
                entries.0.prepare(entries_of(&entries.0));
                entries.1.prepare(entries_of(&entries.1));
            }
            _ => {}
        }
    }

    /// As [`Column::finish`], with nulls up to so many rows.
    pub(crate) fn finish_at(&mut self, rows: usize, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        if self.len() == 0 && rows > 0 {
            self.room = (0, 0);
            return zeros.of(&self.data_type, rows);
        }
        self.fill(rows);
        self.finish(zeros)
    }

    /// The rows as an Arrow array; the column is empty afterwards.
    ///
    /// # Errors
    /// What Arrow says when the parts do not fit together, which would be a bug of this crate.
    pub(crate) fn finish(&mut self, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        let rows = self.len();
        self.room = (rows, self.bytes());
        let nulls = self.nulls.take();
        Ok(match &mut self.values {
            Values::Boolean(values) => Arc::new(BooleanArray::new(values.take(), nulls)),
            Values::Byte(values) => Arc::new(Int8Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Short(values) => Arc::new(Int16Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Integer(values) => Arc::new(Int32Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Long(values) => Arc::new(Int64Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Float(values) => Arc::new(Float32Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Double(values) => Arc::new(Float64Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Decimal(values, precision, scale) => Arc::new(
                Decimal128Array::try_new(std::mem::take(values).into(), nulls)?
                    .with_precision_and_scale(*precision, scale.cast_signed())?,
            ),
            Values::Text(values) => {
                let (offsets, data) = values.take();
                Arc::new(StringArray::try_new(offsets, data.into(), nulls)?)
            }
            Values::Binary(values) => {
                let (offsets, data) = values.take();
                Arc::new(BinaryArray::try_new(offsets, data.into(), nulls)?)
            }
            Values::Date(values) => Arc::new(Date32Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Timestamp(values) => {
                Arc::new(TimestampMicrosecondArray::try_new(std::mem::take(values).into(), nulls)?.with_timezone("UTC"))
            }
            Values::TimestampNtz(values) => Arc::new(TimestampMicrosecondArray::try_new(std::mem::take(values).into(), nulls)?),
            Values::List(starts, element) => {
                let values = element.finish(zeros)?;
                let Arrow::List(field) = self.data_type.to_arrow() else { return Err(mismatch(&self.data_type)) };
                Arc::new(ListArray::try_new(field, starts.take(), values, nulls)?)
            }
            Values::Struct(fields) => {
                let Arrow::Struct(names) = self.data_type.to_arrow() else { return Err(mismatch(&self.data_type)) };
                let arrays = fields.iter_mut().map(|(_, field)| field.finish_at(rows, zeros)).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new(names, arrays, nulls)?)
            }
            Values::Map(starts, entries) => {
                let (keys, values) = (entries.0.finish(zeros)?, entries.1.finish(zeros)?);
                map(&self.data_type, starts.take(), vec![keys, values], nulls)?
            }
        })
    }
}

fn map(data_type: &DataType, starts: OffsetBuffer<i32>, entries: Vec<ArrayRef>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let Arrow::Map(field, sorted) = data_type.to_arrow() else { return Err(mismatch(data_type)) };
    let Arrow::Struct(names) = field.data_type().clone() else { return Err(mismatch(data_type)) };
    let entries = StructArray::try_new(names, entries, None)?;
    Ok(Arc::new(MapArray::try_new(field, starts, entries, nulls, sorted)?))
}

fn mismatch(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("{data_type} has another shape in arrow"))
}
