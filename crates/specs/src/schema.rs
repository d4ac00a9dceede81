//! Columns and types of a table, as Delta has them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `schema.table` inside the lake's catalogue. Spelling is kept; comparison of names is exact here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// `bronze`, `silver`, `gold`, `quarantine`, `_state`, `system` or the schema every layer was put into.
    pub schema: String,
    /// The table's name in its schema.
    pub name: String,
}

impl TableName {
    /// Both parts as given; [`std::str::FromStr`] reads the dotted form.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// A Delta type. Text form: `long`, `decimal(12,2)`, `array<string>`, `struct<a:integer,b:string>`, `map<string,long>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 1 bit.
    Boolean,
    /// 8-bit signed integer.
    Byte,
    /// 16-bit signed integer.
    Short,
    /// 32-bit signed integer.
    Integer,
    /// 64-bit signed integer.
    Long,
    /// 32-bit IEEE number.
    Float,
    /// 64-bit IEEE number.
    Double,
    /// Exact number, at most 38 digits.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// UTF-8 text.
    String,
    /// Bytes.
    Binary,
    /// Days since 1970-01-01.
    Date,
    /// Instant, µs since the epoch, UTC.
    Timestamp,
    /// Wall clock without zone, µs.
    TimestampNtz,
    /// Elements are nullable.
    Array(Box<DataType>),
    /// Named fields.
    Struct(Vec<Column>),
    /// Keys are not null, values are nullable.
    Map(Box<DataType>, Box<DataType>),
}

/// A column of a table or a field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The name as it is written; unique in its table without regard to case.
    pub name: String,
    /// The Delta type.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
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
}

impl Column {
    /// A nullable column.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, nullable: true, comment: None, default: None, generated: None }
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

/// A named CHECK constraint: a row is refused where the expression is false (SQL: null passes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The constraint's name.
    pub name: String,
    /// SQL boolean expression over the row.
    pub expression: String,
}

/// Everything `lake` needs to create a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// Where the table is.
    pub name: TableName,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Partition columns, a subset of `columns`.
    pub partition_by: Vec<String>,
    /// Clustering columns; excludes `partition_by`.
    pub cluster_by: Vec<String>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Shown by catalogues.
    pub comment: Option<String>,
    /// Delta table properties and our own (`tributary.*`, `pipelines.*`).
    pub properties: BTreeMap<String, String>,
    /// Whether rows are ever updated or deleted; such tables may carry deletion vectors, others stay without.
    pub row_changes: bool,
}

impl TableSpec {
    /// A table with nothing but columns.
    pub fn new(name: TableName, columns: Vec<Column>) -> Self {
        Self {
            name,
            columns,
            partition_by: Vec::new(),
            cluster_by: Vec::new(),
            checks: Vec::new(),
            comment: None,
            properties: BTreeMap::new(),
            row_changes: false,
        }
    }
}
