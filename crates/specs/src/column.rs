//! A column of a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data_type::DataType;
use crate::encoding::Encoding;

/// Words with which an option of a column begins in SQL, in capitals: what stands before the first of them is the column's type.
pub const COLUMN_OPTIONS: &[&str] = &[
    "NOT",
    "NULL",
    "COMMENT",
    "DEFAULT",
    "GENERATED",
    "PRIMARY",
    "FOREIGN",
    "REFERENCES",
    "MASK",
    "CONSTRAINT",
    "COLLATE",
    "UNIQUE",
    "CHECK",
];

/// A column of a table or a field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The name as it is written; unique in its table without regard to case.
    pub name: String,
    /// The Delta type.
    #[serde(rename = "type")]
    pub data_type: DataType,
    /// Whether null is a value; default yes.
    #[serde(default = "yes")]
    pub nullable: bool,
    /// Shown by catalogues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// SQL expression taken when a row does not give the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// SQL expression over other columns; computed when absent, checked when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// How bare JSON writes the values; only in the declared columns of a feed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
}

impl Column {
    /// A nullable column.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, nullable: true, comment: None, default: None, generated: None, encoding: None }
    }

    /// The same column, its values written so where messages carry no schema.
    #[must_use]
    pub fn encoded(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// The same column, refusing null.
    #[must_use]
    pub fn not_null(mut self) -> Self {
        self.nullable = false;
        self
    }
}

fn yes() -> bool {
    true
}
