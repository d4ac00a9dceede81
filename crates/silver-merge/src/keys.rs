//! Keys as bytes: which are wanted, and in which slice each is.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tributary_lake::KeySet;
use tributary_lake::arrow::array::{ArrayRef, RecordBatch};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{RowConverter, Rows, SortField};

use crate::shape::Shape;

/// One key, encoded.
pub(crate) type Key = Box<[u8]>;

/// Encodes keys of one table; equal keys have equal bytes, null equal to null.
#[derive(Debug)]
pub(crate) struct KeyCodec {
    /// Names of the key columns.
    pub names: Vec<String>,
    /// Their types in the fold's shape.
    pub types: Vec<DataType>,
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
        let types: Vec<DataType> = fields.map(|field| field.data_type().clone()).collect();
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())?;
        Ok(Self { names, types, converter })
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
    /// The least key of each slice but the first; none = by hash.
    pub bounds: Option<Vec<Key>>,
    /// Keys that have or had another key.
    pub tied: HashSet<Key>,
}

impl Slices {
    /// The slice of a key.
    pub fn of(&self, key: &[u8]) -> usize {
        if self.count <= 1 || self.tied.contains(key) {
            return 0;
        }
        if let Some(bounds) = &self.bounds {
            return bounds.partition_point(|bound| bound.as_ref() <= key);
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
    Keys(Box<KeySet>),
    /// Every one of a slice.
    Slice(usize),
}
