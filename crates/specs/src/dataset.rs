//! Silver and gold datasets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::flow::{Flow, SetExpectation, StreamRead};
use crate::streamed::{LateRows, StreamedTable, Watermark};
use crate::table_name::TableName;
use crate::table_spec::Check;

/// A silver table kept current from change batches of its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilverSpec {
    /// The silver table.
    pub table: TableName,
    /// Tables read through their appends or change feed. The first is the stream; others are looked up as they are.
    pub sources: Vec<TableName>,
    /// SQL over the sources, one row out a row in; none = the business columns as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// The name of this flow, where it has one besides the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Reads the first source once, as it is then, and never again unless the dataset is refreshed in full: a backfill.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// How the first source is read.
    #[serde(default, skip_serializing_if = "StreamRead::is_auto")]
    pub stream: StreamRead,
    /// How long it is waited for rows of the first source, where rows are appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Watermark>,
    /// What becomes of rows that come later than the watermark.
    #[serde(default, skip_serializing_if = "LateRows::is_apply")]
    pub late: LateRows,
    /// Further flows into the table. One that reads a table which another flow reads already comes after that one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// Key columns of the result; required by every policy but `append`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Columns or SQL expressions over the source row, most significant first; empty = the source position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence_by: Vec<String>,
    /// How changes become rows.
    #[serde(default)]
    pub policy: MergePolicy,
    /// Which source rows are deletes and truncates.
    #[serde(default)]
    pub deletes: Deletes,
    /// Columns of the result.
    #[serde(default)]
    pub columns: ColumnSelection,
    /// Which null values mean "not written by this event".
    #[serde(default)]
    pub ignore_null_updates: IgnoreNullUpdates,
    /// What a null key or null declared sequence does.
    #[serde(default)]
    pub null_keys: NullKeys,
    /// An event is applied to an existing row only where this SQL over `source.` and `target.` is true. Legal forms: the same
    /// text as `insert_when`, over `source.` columns; or what the order says anyway, `source.s >= target.s` with `s` the one
    /// column of `sequence_by` (with `>` and its one column for `monotonic_advance`). See [`SilverSpec::upserts_when`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_when: Option<String>,
    /// A delete is applied only where this SQL over `source.` is true; the delete half of a key change always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_when: Option<String>,
    /// A new key is inserted only where this SQL over `source.` is true. Legal forms: over key columns; over any column for
    /// `append` and `insert_only`, or where `update_when` has the same text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_when: Option<String>,
    /// Declared schema; checked against what the query yields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<Column>,
    /// What a column, or a wider type, of the query does that the table does not have.
    #[serde(default)]
    pub schema_policy: GrowthPolicy,
    /// Rules a row must meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Rules that the table as a whole must meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_expectations: Vec<SetExpectation>,
    /// CHECK constraints of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Partition columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_by: Vec<String>,
    /// Clustering columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_by: Vec<String>,
    /// Where quarantined rows are kept; none = `quarantine.<table>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<TableName>,
    /// Shown by catalogues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Table properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// How changes of a key become rows of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MergePolicy {
    /// Every upsert is a row of its own.
    Append,
    /// Immutable facts: the first in the total order is the row.
    InsertOnly {
        /// A late earlier fact replaces the row instead of only being counted.
        #[serde(default)]
        exact: bool,
    },
    /// The greatest by the declared order is the row; deletes are not applied.
    LastWriterWins,
    /// The row is the latest state of the key, absent after a delete.
    #[default]
    ScdType1,
    /// A row a version, `__START_AT` and `__END_AT`.
    ScdType2 {
        /// Which columns open a new version.
        #[serde(default)]
        track_history: ColumnSelection,
    },
    /// An event is accepted only where it raises the named columns.
    MonotonicAdvance {
        /// Compared as a tuple.
        columns: Vec<String>,
    },
}

/// What a column, or a wider type, of the query does that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrowthPolicy {
    /// The dataset stops and names the column.
    Freeze,
    /// A column is added as a nullable one; a wider type stops the dataset.
    #[default]
    Add,
    /// A column is added; a wider type rewrites the table in one commit.
    Widen,
}

/// Which source rows are deletes and truncates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deletes {
    /// SQL over the source row; true = delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_as_delete_when: Option<String>,
    /// SQL over the source row; true = truncate. Refused for SCD 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_as_truncate_when: Option<String>,
    /// Whether deletes and truncates of a change feed are applied without `apply_as_delete_when`.
    pub implicit: bool,
    /// SCD 1: instead of removing the row, set this boolean column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_delete_column: Option<String>,
}

impl Default for Deletes {
    fn default() -> Self {
        Self { apply_as_delete_when: None, apply_as_truncate_when: None, implicit: true, soft_delete_column: None }
    }
}

/// A choice among columns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ColumnSelection {
    /// Every column.
    #[default]
    All,
    /// These and no others.
    Only(Vec<String>),
    /// Every column but these.
    Except(Vec<String>),
}

/// Which null values mean "not written by this event".
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum IgnoreNullUpdates {
    /// Null is a value.
    #[default]
    Off,
    /// Null in any column is not written.
    All,
    /// Null in these columns is not written.
    Columns(Vec<String>),
}

/// What a null key or null declared sequence does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NullKeys {
    /// The dataset stops before its commit.
    Refuse,
    /// The row goes to `quarantine.<table>`.
    #[default]
    Quarantine,
    /// Null equals null in key columns; a null sequence still goes to quarantine.
    NullSafe,
}

/// A rule a row must meet. A null result fails the rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The rule's name.
    pub name: String,
    /// SQL boolean expression over the row.
    pub expression: String,
    /// What a row that fails it does.
    #[serde(default)]
    pub action: ExpectationAction,
}

/// What a row that fails a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectationAction {
    /// It is counted and kept.
    #[default]
    Warn,
    /// It is counted and left out.
    Drop,
    /// It goes to `quarantine.<table>`.
    Quarantine,
    /// The dataset stops before its commit.
    Fail,
}

impl ExpectationAction {
    /// The word of files and reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Drop => "drop",
            Self::Quarantine => "quarantine",
            Self::Fail => "fail",
        }
    }
}

/// A gold view kept equal to its query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldSpec {
    /// The gold table.
    pub table: TableName,
    /// SQL over the lake's tables.
    pub query: String,
    /// Tables the query reads; filled from the query where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<TableName>,
    /// Sources that are read as streams: the view is a streaming table whose query remembers rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamedTable>,
    /// How the view is refreshed.
    #[serde(default)]
    pub refresh: Refresh,
    /// Declared schema; checked against what the query yields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<Column>,
    /// Rules a row must meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Rules that the table as a whole must meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_expectations: Vec<SetExpectation>,
    /// Partition columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_by: Vec<String>,
    /// Clustering columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_by: Vec<String>,
    /// Z-order columns; excludes `cluster_by`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zorder_by: Vec<String>,
    /// Where quarantined rows are kept; none = `quarantine.<table>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<TableName>,
    /// Shown by catalogues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Table properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// How a view is refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refresh {
    /// Incrementally where the query allows it, in full otherwise, with the reason.
    #[default]
    Auto,
    /// Incrementally or not at all.
    Incremental,
    /// In full.
    Full,
}
