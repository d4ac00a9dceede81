//! What is needed to create a table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::table_name::TableName;

/// A named CHECK constraint: a row is refused where the expression is not true; false and null refuse it, as in Spark.
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
