//! How two frames are compared: the one options value.

use std::collections::BTreeMap;

use super::Frame;
use super::difference::Difference;
use super::matching::compare_rows;
use super::schema::{self, SchemaOptions};

/// A comparison of two frames, to be narrowed and then asserted or computed.
#[derive(Debug, Clone)]
#[must_use = "nothing is compared before assert or compute"]
pub struct FrameDiff {
    pub(super) actual: Frame,
    pub(super) expected: Frame,
    pub(super) keys: Vec<String>,
    ignored: Vec<String>,
    pub(super) tolerances: BTreeMap<String, f64>,
    pub(super) row_order: bool,
    pub(super) nan_equal: bool,
    column_order: bool,
    physical: bool,
    nullability: bool,
}

impl FrameDiff {
    /// Compares what there is with what there should be.
    pub fn between(actual: impl Into<Frame>, expected: impl Into<Frame>) -> Self {
        Self {
            actual: actual.into(),
            expected: expected.into(),
            keys: Vec::new(),
            ignored: Vec::new(),
            tolerances: BTreeMap::new(),
            row_order: false,
            nan_equal: false,
            column_order: false,
            physical: false,
            nullability: true,
        }
    }

    /// Rows with equal values here are the same row: differences are told cell by cell.
    pub fn by_key<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.keys = columns.into_iter().map(Into::into).collect();
        self
    }

    /// These columns are left out on both sides, there or not.
    pub fn ignoring<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.ignored.extend(columns.into_iter().map(Into::into));
        self
    }

    /// Floats of this column (`a.b` for a field of a struct) may differ by at most this much.
    pub fn tolerating(mut self, column: impl Into<String>, tolerance: f64) -> Self {
        self.tolerances.insert(column.into(), tolerance);
        self
    }

    /// The n-th row is compared with the n-th row.
    pub fn in_order(mut self) -> Self {
        self.row_order = true;
        self
    }

    /// Columns must come in the same order.
    pub fn with_column_order(mut self) -> Self {
        self.column_order = true;
        self
    }

    /// NaN equals NaN, whatever its bits.
    pub fn nan_equal(mut self) -> Self {
        self.nan_equal = true;
        self
    }

    /// Dictionaries, runs, views and wide offsets differ from their plain type.
    pub fn physical(mut self) -> Self {
        self.physical = true;
        self
    }

    /// Nullable and not null are the same.
    pub fn ignoring_nullability(mut self) -> Self {
        self.nullability = false;
        self
    }

    /// How the frames differ.
    ///
    /// # Panics
    /// When a key or a tolerance names no column, or a tolerance names a column without floats.
    #[track_caller]
    pub fn compute(&self) -> Difference {
        let narrowed = Self { actual: self.without_ignored(&self.actual), expected: self.without_ignored(&self.expected), ..self.clone() };
        narrowed.difference()
    }

    /// Panics with the difference, if there is one.
    ///
    /// # Panics
    /// When the frames differ.
    #[track_caller]
    pub fn assert(&self) {
        let difference = self.compute();
        assert!(difference.is_none(), "{difference}");
    }

    fn difference(self) -> Difference {
        let options = SchemaOptions { physical: self.physical, nullability: self.nullability, column_order: self.column_order };
        let schema = schema::compare(&self.actual.schema(), &self.expected.schema(), options);
        if !schema.is_empty() {
            return Difference::of_schema(self.actual, self.expected.len(), schema);
        }
        compare_rows(self)
    }

    fn without_ignored(&self, frame: &Frame) -> Frame {
        let schema = frame.schema();
        let kept: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .filter(|name| !self.ignored.iter().any(|other| other == name))
            .collect();
        frame.select(&kept)
    }
}
