//! Keys as bytes: which are wanted, in which slice each is, and between which values they lie.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, RecordBatch, make_comparator};
use tributary_lake::arrow::compute::SortOptions;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{RowConverter, Rows, SortField};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::Result as QueryResult;
use tributary_lake::{KeyRange, KeyRanges};

use crate::shape::Shape;

/// One key, encoded.
pub(crate) type Key = Box<[u8]>;

/// Encodes keys of one table; equal keys have equal bytes, null equal to null.
#[derive(Debug)]
pub(crate) struct KeyCodec {
    /// Names of the key columns.
    pub names: Vec<String>,
    converter: RowConverter,
}

impl KeyCodec {
    /// The codec of a table's keys.
    ///
    /// # Errors
    /// When a key column's type has no order.
    pub fn new(shape: &Shape) -> Result<Self, ArrowError> {
        let fields = shape.keys.iter().map(|key| shape.schema.field(*key));
        let names = fields.clone().map(|field| field.name().clone()).collect();
        let converter = RowConverter::new(fields.map(|field| SortField::new(field.data_type().clone())).collect())?;
        Ok(Self { names, converter })
    }

    /// Encodes key columns.
    ///
    /// # Errors
    /// When they do not have the table's types.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Rows, ArrowError> {
        self.converter.convert_columns(columns)
    }

    /// The key columns of rows in the fold's shape.
    pub fn columns_of(&self, shape: &Shape, rows: &RecordBatch) -> Vec<ArrayRef> {
        shape.keys.iter().map(|key| Arc::clone(rows.column(*key))).collect()
    }
}

/// How keys are dealt to slices. Keys that key changes tie together are in the first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slices {
    /// How many there are.
    pub count: usize,
    /// Keys that have or had another key.
    pub tied: HashSet<Key>,
}

impl Slices {
    /// The slice of a key.
    pub fn of(&self, key: &[u8]) -> usize {
        if self.count <= 1 || self.tied.contains(key) {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        (hasher.finish() % self.count as u64) as usize
    }
}

/// Which rows are looked for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Those of these keys.
    Keys { keys: HashSet<Key>, ranges: KeyRanges },
    /// Every one of a slice.
    Slice(usize),
}

impl Wanted {
    /// Whether the rows of a key are looked for.
    pub fn contains(&self, key: &[u8], slices: &Slices) -> bool {
        match self {
            Self::Keys { keys, .. } => keys.contains(key),
            Self::Slice(at) => slices.of(key) == *at,
        }
    }

    /// Whether a file can hold a row that is looked for.
    pub fn may_be_in(&self, file: &tributary_lake::DataFile) -> bool {
        let Self::Keys { ranges, .. } = self else { return true };
        ranges.0.iter().all(|(column, range)| {
            let Some(stats) = file.stats.columns.get(column) else { return true };
            let nulls = range.nulls && stats.null_count != Some(0);
            let values = match (&range.bounds, &stats.min, &stats.max) {
                (Some((least, greatest)), Some(min), Some(max)) => {
                    let after = least.partial_cmp(max) == Some(Ordering::Greater);
                    let before = greatest.partial_cmp(min) == Some(Ordering::Less);
                    !after && !before
                }
                (Some(_), _, _) => true,
                (None, _, _) => false,
            };
            nulls || values
        })
    }
}

/// Widens the range of each key column by the values of `columns`.
///
/// # Errors
/// When a value cannot be taken as a scalar.
pub(crate) fn widen(ranges: &mut KeyRanges, names: &[String], columns: &[ArrayRef]) -> QueryResult<()> {
    for (name, array) in names.iter().zip(columns).filter(|(_, array)| !array.is_empty()) {
        let range = ranges.0.entry(name.clone()).or_insert(KeyRange { bounds: None, nulls: false });
        range.nulls |= array.null_count() > 0;
        let compare = make_comparator(array, array, SortOptions::default())?;
        let valid = || (0..array.len()).filter(|row| array.is_valid(*row));
        let (Some(least), Some(greatest)) = (valid().min_by(|a, b| compare(*a, *b)), valid().max_by(|a, b| compare(*a, *b))) else {
            continue;
        };
        let (least, greatest) = (ScalarValue::try_from_array(array, least)?, ScalarValue::try_from_array(array, greatest)?);
        range.bounds = Some(match range.bounds.take() {
            None => (least, greatest),
            Some((min, max)) => {
                let min = if least.partial_cmp(&min) == Some(Ordering::Less) { least } else { min };
                let max = if greatest.partial_cmp(&max) == Some(Ordering::Greater) { greatest } else { max };
                (min, max)
            }
        });
    }
    Ok(())
}
