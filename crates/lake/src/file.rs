//! Files of a table as a snapshot names them and as a commit adds them.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::ScalarValue;

use crate::arranged::{self, Arranged};

/// A Parquet data file written but in no commit yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFile {
    /// Relative to the table's root, as the object store names it; the commit percent-encodes it once.
    pub path: String,
    /// Partition column → the raw value in Delta's text form, `None` for null. Every partition column is present.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
    /// Delta's `stats` JSON: `numRecords`, `minValues`, `maxValues`, `nullCount`, `tightBounds`.
    pub stats: String,
    /// Kept in the log where an `Optimize` adds the file.
    pub arranged: Arranged,
}

/// A Parquet change-feed file written but in no commit yet. Its rows carry `_change_type`.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeFile {
    /// Relative to the table's root (`_change_data/…`), as the object store names it.
    pub path: String,
    /// As [`NewFile::partition_values`].
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    pub size: u64,
    /// Rows by change type: never a guess, counted when written.
    pub rows: ChangeRows,
}

/// Rows of a change-feed file by `_change_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeRows {
    /// `insert`.
    pub insert: u64,
    /// `update_preimage`.
    pub update_preimage: u64,
    /// `update_postimage`.
    pub update_postimage: u64,
    /// `delete`.
    pub delete: u64,
}

/// A live data file of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// Relative to the table's root, decoded: what the object store calls it. An absolute URL for files outside the root.
    pub path: String,
    /// The path exactly as the log spells it; a `remove` repeats it.
    pub(crate) log_path: String,
    /// As [`NewFile::partition_values`].
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the epoch, as its writer said.
    pub modified_ms: i64,
    /// What the log knows of its rows. Statistics that are missing say nothing: they never exclude a file.
    pub stats: FileStats,
    /// Rows marked as deleted, or none.
    pub deletion_vector: Option<DeletionVector>,
    /// Row tracking of the file, repeated by a `remove`.
    pub(crate) row_tracking: Option<RowTracking>,
    /// What else its `add` says, repeated when the file is added again with other rows marked as deleted.
    pub(crate) said: Said,
}

/// What an `add` says beside, as it stands there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Said {
    /// The statistics as the log spells them.
    pub stats: Option<Arc<str>>,
    pub tags: Option<BTreeMap<String, Option<String>>>,
    pub clustering_provider: Option<String>,
}

impl DataFile {
    /// Live rows where the file's statistics give the row count.
    pub fn live_rows(&self) -> Option<u64> {
        let deleted = self.deletion_vector.as_ref().map_or(0, |vector| vector.rows);
        self.stats.rows.map(|rows| rows.saturating_sub(deleted))
    }

    /// How its rows came to lie as they do, as far as its writer says.
    pub fn arranged(&self) -> Arranged {
        self.said.tags.as_ref().map(arranged::of_tags).unwrap_or_default()
    }

    /// Whose clustering laid its rows (`clusteringProvider`); nobody else may cluster it anew.
    pub fn clustering_provider(&self) -> Option<&str> {
        self.said.clustering_provider.as_deref()
    }
}

/// `baseRowId` and `defaultRowCommitVersion` of an `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowTracking {
    pub base_row_id: Option<i64>,
    pub default_row_commit_version: Option<i64>,
}

/// A deletion vector as the log describes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVector {
    /// `u` a file named by a UUID, `p` a file named by its path, `i` inline.
    pub storage_type: String,
    /// What the storage type says: encoded UUID, path or bytes.
    pub path_or_inline_dv: String,
    /// Where it begins in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Bytes.
    pub size_in_bytes: i32,
    /// Deleted rows.
    #[serde(rename = "cardinality")]
    pub rows: u64,
}

/// Statistics of a file, typed as the table's columns. Only top-level columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileStats {
    /// Physical rows, deleted ones included.
    pub rows: Option<u64>,
    /// By column.
    pub columns: BTreeMap<String, ColumnStats>,
}

/// Bounds of a column in a file. An absent bound means unknown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnStats {
    /// No row has less.
    pub min: Option<ScalarValue>,
    /// No row has more.
    pub max: Option<ScalarValue>,
    /// Null rows.
    pub null_count: Option<u64>,
}
