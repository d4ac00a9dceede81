//! How two frames differ, as a value.

use super::Frame;
use crate::value::Value;

/// How two frames differ. Its text is the message of a failed assertion.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Paths at which the schemas differ; while there are any, rows are not compared.
    pub schema: Vec<SchemaDifference>,
    /// Expected rows that are not there.
    pub missing: Vec<Vec<Value>>,
    /// Rows that are there and were not expected.
    pub unexpected: Vec<Vec<Value>>,
    /// Rows of one key, or of one place, with other cells.
    pub changed: Vec<ChangedRow>,
    /// Rows that are equal.
    pub equal: usize,
    pub(super) actual: Frame,
    pub(super) expected_rows: usize,
    pub(super) keys: Vec<String>,
}

/// One path at which two schemas differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDifference {
    /// `customer.address.zip`.
    pub path: String,
    /// What is there; `None` when nothing is.
    pub actual: Option<String>,
    /// What should be there; `None` when nothing should.
    pub expected: Option<String>,
}

/// A row with other cells than expected.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedRow {
    /// The row's place from 0, when rows were compared in order.
    pub position: Option<usize>,
    /// The row as it is, in the expected column order.
    pub actual: Vec<Value>,
    /// The row as it should be.
    pub expected: Vec<Value>,
    /// Which columns differ.
    pub cells: Vec<usize>,
}

impl Difference {
    /// Whether the frames are equal.
    pub fn is_none(&self) -> bool {
        self.schema.is_empty() && self.missing.is_empty() && self.unexpected.is_empty() && self.changed.is_empty()
    }

    pub(super) fn of_schema(actual: Frame, expected_rows: usize, schema: Vec<SchemaDifference>) -> Self {
        Self { schema, ..Self::none(actual, expected_rows, Vec::new()) }
    }

    pub(super) fn none(actual: Frame, expected_rows: usize, keys: Vec<String>) -> Self {
        Self { schema: Vec::new(), missing: Vec::new(), unexpected: Vec::new(), changed: Vec::new(), equal: 0, actual, expected_rows, keys }
    }
}
