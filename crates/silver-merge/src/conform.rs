//! Values in another layout of their type: fields of structs are found by name, absent ones are null; everything else is cast so
//! that every value is kept, or fails.

use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, new_null_array};
use crate::arrow::compute::{CastOptions, cast_with_options};
use crate::arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampNanosecondType};
use crate::arrow::error::ArrowError;

/// The values of `array` as `data_type`.
pub(crate) fn conform(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), data_type) {
        (have, want) if have == want => Ok(Arc::clone(array)),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let from = array.as_struct();
            let column = |field: &FieldRef| match from.column_by_name(field.name()) {
                Some(column) => conform(column, field.data_type()),
                None => Ok(new_null_array(field.data_type(), from.len())),
            };
            let columns = fields.iter().map(column).collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, from.nulls().cloned(), from.len())?))
        }
        (DataType::List(_), DataType::List(element)) => {
            let from = array.as_list::<i32>();
            let values = conform(from.values(), element.data_type())?;
            Ok(Arc::new(ListArray::try_new(Arc::clone(element), from.offsets().clone(), values, from.nulls().cloned())?))
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, _), DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            let values = array.as_primitive::<TimestampNanosecondType>();
            if values.iter().flatten().any(|value| value % 1000 != 0) {
                return Err(ArrowError::CastError("an instant between two microseconds".to_owned()));
            }
            cast_with_options(array, data_type, &CastOptions { safe: false, ..CastOptions::default() })
        }
        _ => cast_with_options(array, data_type, &CastOptions { safe: false, ..CastOptions::default() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::array::{Int32Array, Int64Array, StringArray, TimestampNanosecondArray};
    use crate::arrow::datatypes::Field;

    #[test]
    fn fields_are_found_by_name_and_absent_ones_are_null() {
        let swapped = StructArray::from(vec![
            (Arc::new(Field::new("family", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["Okoro"])) as ArrayRef),
            (Arc::new(Field::new("given", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["Ben"])) as ArrayRef),
        ]);
        let wanted = ["given", "family", "born"].map(|name| Field::new(name, DataType::Utf8, true));
        let out = conform(&(Arc::new(swapped) as ArrayRef), &DataType::Struct(wanted.to_vec().into())).unwrap();
        let out = out.as_struct();
        assert_eq!(out.column(0).as_string::<i32>().value(0), "Ben");
        assert_eq!(out.column(1).as_string::<i32>().value(0), "Okoro");
        assert!(out.column(2).is_null(0));
    }

    #[test]
    fn an_instant_is_never_rounded() {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert!(conform(&(Arc::new(TimestampNanosecondArray::from(vec![1_000])) as ArrayRef), &micros).is_ok());
        assert!(conform(&(Arc::new(TimestampNanosecondArray::from(vec![1_001])) as ArrayRef), &micros).is_err());
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error() {
        let fits = Arc::new(Int64Array::from(vec![7])) as ArrayRef;
        assert_eq!(conform(&fits, &DataType::Int32).unwrap().as_ref(), &Int32Array::from(vec![7]) as &dyn Array);
        let too_big = Arc::new(Int64Array::from(vec![i64::MAX])) as ArrayRef;
        assert!(conform(&too_big, &DataType::Int32).is_err());
    }
}
