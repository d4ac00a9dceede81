//! Keys of one column whose values are stored as whole numbers: compared as such.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::Lookup;
use super::filter::Filter;

/// A whole number as an array stores it.
pub(super) trait Number: Ord + Copy + fmt::Debug + Send + Sync {
    /// Different for different numbers, as far as 64 bits go.
    fn bits(self) -> u64;
}

macro_rules! number {
    ($($type:ty),*) => { $(impl Number for $type {
        fn bits(self) -> u64 {
            self as u64
        }
    })* };
}
number!(i8, i16, i32, i64);

impl Number for i128 {
    fn bits(self) -> u64 {
        (self as u64) ^ ((self >> 64) as u64).rotate_left(32)
    }
}

/// The keys of a column of type `T`, null perhaps among them.
#[derive(Debug)]
pub(super) struct Whole<T: ArrowPrimitiveType> {
    data_type: DataType,
    /// Each once.
    ascending: Vec<T::Native>,
    has_null: bool,
    filter: Filter,
}

impl<T: ArrowPrimitiveType<Native: Number>> Whole<T> {
    pub fn new(column: &ArrayRef) -> Result<Self, ArrowError> {
        let (data_type, column) = (column.data_type().clone(), of_type::<T>(column)?);
        let mut ascending: Vec<T::Native> = column.iter().flatten().collect();
        ascending.sort_unstable();
        ascending.dedup();
        let filter = Filter::new(ascending.iter().map(|value| value.bits()));
        Ok(Self { data_type, ascending, has_null: column.null_count() > 0, filter })
    }

    fn contains(&self, value: T::Native) -> bool {
        self.filter.may_contain(value.bits()) && self.ascending.binary_search(&value).is_ok()
    }
}

impl<T: ArrowPrimitiveType<Native: Number> + fmt::Debug> Lookup for Whole<T> {
    fn len(&self) -> usize {
        self.ascending.len() + usize::from(self.has_null)
    }

    fn rows_among(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError> {
        let [column] = columns else { return Err(ArrowError::InvalidArgumentError("keys have one column".to_owned())) };
        let column = of_type::<T>(column)?;
        let values = column.values();
        let rows = 0..values.len() as u32;
        Ok(match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => rows.filter(|row| self.contains(values[*row as usize])).collect(),
            Some(nulls) => {
                let is_key = |row: usize| if nulls.is_null(row) { self.has_null } else { self.contains(values[row]) };
                rows.filter(|row| is_key(*row as usize)).collect()
            }
        })
    }

    fn may_be_between(&self, least: &ArrayRef, greatest: &ArrayRef) -> Result<Vec<bool>, ArrowError> {
        let (least, greatest) = (of_type::<T>(least)?, of_type::<T>(greatest)?);
        let any_between = |low: T::Native, high: T::Native| {
            let at = self.ascending.partition_point(|value| *value < low);
            self.ascending.get(at).is_some_and(|value| *value <= high)
        };
        let between = |(low, high): (Option<T::Native>, Option<T::Native>)| low.zip(high).is_none_or(|(low, high)| any_between(low, high));
        Ok(least.iter().zip(greatest.iter()).map(between).collect())
    }

    fn all(&self) -> Result<Vec<ArrayRef>, ArrowError> {
        let null = self.has_null.then_some(None);
        let keys: PrimitiveArray<T> = null.into_iter().chain(self.ascending.iter().copied().map(Some)).collect();
        Ok(vec![Arc::new(keys.with_data_type(self.data_type.clone()))])
    }
}

fn of_type<T: ArrowPrimitiveType>(column: &ArrayRef) -> Result<&PrimitiveArray<T>, ArrowError> {
    let other = || ArrowError::InvalidArgumentError(format!("{} where {} is compared", column.data_type(), T::DATA_TYPE));
    column.as_primitive_opt::<T>().ok_or_else(other)
}
