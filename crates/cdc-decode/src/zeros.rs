//! Columns without a single value, all made of the same zeros.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
    types::{
        ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType,
    },
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType as Arrow};
use tributary_specs::DataType;

/// Zeros that every column without a value shares, so that a batch spends neither memory nor time on it.
#[derive(Debug, Default)]
pub(crate) struct Zeros {
    zeros: Option<Buffer>,
    /// Rows they reach for.
    rows: usize,
    /// The most null texts there have been; fewer are a piece of them.
    texts: Option<StringArray>,
}

impl Zeros {
    /// So many nulls of a type.
    ///
    /// # Errors
    /// What Arrow says when the parts do not fit together, which would be a bug of this crate.
    pub(crate) fn of(&mut self, data_type: &DataType, rows: usize) -> Result<ArrayRef, ArrowError> {
        let nulls = Some(self.nulls(rows));
        Ok(match data_type {
            DataType::Boolean => Arc::new(BooleanArray::new(BooleanBuffer::new(self.buffer(rows), 0, rows), nulls)),
            DataType::Byte => Arc::new(self.numbers::<Int8Type>(rows)?),
            DataType::Short => Arc::new(self.numbers::<Int16Type>(rows)?),
            DataType::Integer => Arc::new(self.numbers::<Int32Type>(rows)?),
            DataType::Long => Arc::new(self.numbers::<Int64Type>(rows)?),
            DataType::Float => Arc::new(self.numbers::<Float32Type>(rows)?),
            DataType::Double => Arc::new(self.numbers::<Float64Type>(rows)?),
            DataType::Decimal { precision, scale } => {
                Arc::new(self.numbers::<Decimal128Type>(rows)?.with_precision_and_scale(*precision, scale.cast_signed())?)
            }
            DataType::Date => Arc::new(self.numbers::<Date32Type>(rows)?),
            DataType::Timestamp => Arc::new(self.numbers::<TimestampMicrosecondType>(rows)?.with_timezone("UTC")),
            DataType::TimestampNtz => Arc::new(self.numbers::<TimestampMicrosecondType>(rows)?),
            DataType::String => return self.text(rows),
            DataType::Binary => Arc::new(BinaryArray::try_new(self.offsets(rows), Buffer::default(), nulls)?),
            DataType::Array(element) => {
                let Arrow::List(field) = data_type.to_arrow() else { return Err(mismatch(data_type)) };
                Arc::new(ListArray::try_new(field, self.offsets(rows), self.of(element, 0)?, nulls)?)
            }
            DataType::Struct(fields) => {
                let Arrow::Struct(names) = data_type.to_arrow() else { return Err(mismatch(data_type)) };
                let arrays = fields.iter().map(|field| self.of(&field.data_type, rows)).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(names, arrays, nulls, rows)?)
            }
            DataType::Map(key, value) => {
                let Arrow::Map(field, sorted) = data_type.to_arrow() else { return Err(mismatch(data_type)) };
                let Arrow::Struct(names) = field.data_type().clone() else { return Err(mismatch(data_type)) };
                let entries = StructArray::try_new(names, vec![self.of(key, 0)?, self.of(value, 0)?], None)?;
                Arc::new(MapArray::try_new(field, self.offsets(rows), entries, nulls, sorted)?)
            }
        })
    }

    /// So many null texts.
    ///
    /// # Errors
    /// As [`Zeros::of`].
    pub(crate) fn text(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        if let Some(texts) = self.texts.as_ref().filter(|texts| texts.len() >= rows) {
            return Ok(Arc::new(texts.slice(0, rows)));
        }
        let texts = StringArray::try_new(self.offsets(rows), Buffer::default(), Some(self.nulls(rows)))?;
        Ok(Arc::new(self.texts.insert(texts).clone()))
    }

    fn numbers<T: ArrowPrimitiveType>(&mut self, rows: usize) -> Result<PrimitiveArray<T>, ArrowError> {
        PrimitiveArray::try_new(ScalarBuffer::new(self.buffer(rows), 0, rows), Some(self.nulls(rows)))
    }

    fn offsets(&mut self, rows: usize) -> OffsetBuffer<i32> {
        OffsetBuffer::new(ScalarBuffer::new(self.buffer(rows), 0, rows + 1))
    }

    fn nulls(&mut self, rows: usize) -> NullBuffer {
        NullBuffer::new_null(rows)
    }

    /// At least so many zeros of the widest type, and one more.
    fn buffer(&mut self, rows: usize) -> Buffer {
        match &self.zeros {
            Some(zeros) if self.rows >= rows => zeros.clone(),
            _ => {
                let zeros = Buffer::from_vec(vec![0i128; rows + 1]);
                self.rows = rows;
                self.zeros.insert(zeros).clone()
            }
        }
    }
}

fn mismatch(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("{data_type} has another shape in arrow"))
}

#[cfg(test)]
mod tests {
    use arrow_array::new_null_array;
    use tributary_specs::Column as Spec;

    use super::*;

    #[test]
    fn every_type_has_a_column_of_nothing_but_nulls() {
        let names = "boolean byte short integer long float double decimal(12,2) date timestamp timestamp_ntz string binary";
        let flat: Vec<DataType> = names.split(' ').map(|name| name.parse().unwrap()).collect();
        let nested = flat.iter().flat_map(|data_type| {
            let boxed = || Box::new(data_type.clone());
            [
                DataType::Array(boxed()),
                DataType::Struct(vec![Spec::new("a", data_type.clone())]),
                DataType::Map(Box::new(DataType::String), boxed()),
            ]
        });
        let mut zeros = Zeros::default();
        for data_type in flat.iter().cloned().chain(nested) {
            for rows in [0, 1, 9, 3, 1000] {
                let array = zeros.of(&data_type, rows).unwrap();
                assert_eq!(array.len(), rows);
                assert_eq!(&array, &new_null_array(&data_type.to_arrow(), rows), "{data_type}");
            }
        }
    }
}
