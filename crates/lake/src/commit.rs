//! What a commit is and how it ends.

use std::collections::BTreeMap;

use datafusion::common::ScalarValue;
use tributary_specs::Column;

use crate::{ChangeFile, DataFile, NewFile};

/// One atomic change of a table: rows, schema and the positions they bring it to.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// What the history calls it.
    pub operation: Operation,
    /// Files that become live.
    pub adds: Vec<NewFile>,
    /// Files of the snapshot that stop being live.
    pub removes: Vec<DataFile>,
    /// Files of an earlier version that become live again as they were, their deletion vectors with them (`Restore`).
    pub again: Vec<DataFile>,
    /// Rows of files of the snapshot that are no longer live; the files stay, with deletion vectors. A file of which no row is left
    /// is removed. Only where [`crate::Table::marks_rows`] says so.
    pub marks: Vec<RowMarks>,
    /// Files of the snapshot in which rows of its keys were found that stay as they are ([`Reads::Keys`]): who removes rows of them
    /// breaks the plan, as who removes rows of a file it marks does.
    pub rests_on: Vec<DataFile>,
    /// Change-feed files. With any of them readers look at nothing else: they hold every change of the commit, inserts included.
    pub changes: Vec<ChangeFile>,
    /// Positions that ride in the commit.
    pub progress: Vec<Progress>,
    /// All columns of the table after the commit: those it has, in their order, then new nullable ones.
    pub schema: Option<Vec<Column>>,
    /// Table properties to set, beside `schema`.
    pub properties: BTreeMap<String, String>,
    /// Metadata domains to set (`Some`) or remove (`None`), for example a file ledger of ours.
    pub domains: BTreeMap<String, Option<String>>,
    /// What the writer read to plan this; decides which lost races can be rebased.
    pub reads: Reads,
    /// Positions may go backwards, because a person chose to read a source again. A restore always may.
    pub rewinds: bool,
    /// All rows are replaced ([`Self::removes`] has every live file, [`Reads::WholeTable`]): `schema` may then have other columns and
    /// types than the table, but all that it is partitioned, clustered or checked by.
    pub replaces: bool,
    /// How the table lies from this commit on, where that is otherwise than before; only where all rows are replaced.
    pub layout: Option<TableLayout>,
    /// Free text, kept in the history.
    pub user_metadata: Option<String>,
    /// Numbers kept in the history (`numOutputRows`, …).
    pub metrics: BTreeMap<String, String>,
    /// What was asked for, kept in the history, beside what follows from the operation.
    pub parameters: BTreeMap<String, String>,
}

/// By which columns a table is partitioned or clustered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableLayout {
    /// Partition columns.
    pub partition_by: Vec<String>,
    /// Clustering columns; none where there are partition columns.
    pub cluster_by: Vec<String>,
}

/// Rows of a live file that a commit marks as deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMarks {
    /// The file as the snapshot has it, with the row count in its statistics.
    pub file: DataFile,
    /// Positions in the file from zero, rows that are marked already counted in; ascending, each of a live row, at least one.
    pub rows: Vec<u64>,
}

/// What the history calls a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// Rows were added.
    #[default]
    Write,
    /// Rows were added, changed and removed by key.
    Merge,
    /// Rows were changed by a condition.
    Update,
    /// Rows were removed by a condition.
    Delete,
    /// All rows were replaced.
    Overwrite,
    /// Files were rewritten, rows were not: `dataChange` is false in every action.
    Optimize,
    /// An earlier version's rows and positions came back; the one operation whose positions may go backwards.
    Restore,
    /// Only schema, properties or protocol changed.
    Alter,
    /// Files that no version needs are about to be deleted; nothing else is in it.
    VacuumStart,
    /// They are deleted; nothing else is in it.
    VacuumEnd,
    /// Files that are not there any more stop being live.
    Fsck,
}

/// What a writer read to plan its commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Reads {
    /// Nothing of the table: nothing that others add or remove matters.
    #[default]
    BlindAppend,
    /// The rows of its keys: files others add matter unless their statistics are disjoint from `keys`.
    Keys(KeyRanges),
    /// The files it removes or marks rows of, and nothing else: what others add does not matter (`Optimize`).
    Files,
    /// The whole table: every file others add or remove matters.
    WholeTable,
}

/// For each key column the range of the batch's keys. A file that is disjoint in one column holds none of them.
/// Empty: no file is known to be disjoint.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyRanges(pub BTreeMap<String, KeyRange>);

/// The keys of a batch in one column.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRange {
    /// Least and greatest non-null value, inclusive, in the column's type; `None` when all are null.
    pub bounds: Option<(ScalarValue, ScalarValue)>,
    /// Whether a null is among the keys and equals null.
    pub nulls: bool,
}

/// A position of ours, kept as a `txn` action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Whose position it is: `tributary:kafka:<feed>:<topic>:<partition>`, `tributary:source:<schema.table>`, …
    pub app_id: String,
    /// What the writer believes is the table's current one; a commit whose belief is wrong is fenced.
    pub expected: Option<i64>,
    /// What it is after the commit.
    pub version: i64,
}

/// How a commit ended. A refused one is an error; one without an answer is looked up in the log first.
#[must_use = "a commit that conflicted or was fenced changed nothing"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// It is in the table.
    Committed {
        /// The version it made.
        version: u64,
    },
    /// Another writer was first with something this plan does not survive: take a fresh snapshot and plan again.
    Conflicted(Conflict),
    /// The position of `app_id` is not where the writer believed: another process owns it, or moved it meanwhile. Read positions again.
    Fenced {
        /// Whose position.
        app_id: String,
        /// What the writer believed.
        expected: Option<i64>,
        /// What the table says.
        found: Option<i64>,
    },
}

/// What the winner of a race did that the loser's plan does not survive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Schema, properties or partitioning.
    #[error("version {version} changed the table's metadata")]
    Metadata {
        /// The winner.
        version: u64,
    },
    /// Protocol.
    #[error("version {version} changed the table's protocol")]
    Protocol {
        /// The winner.
        version: u64,
    },
    /// A file this commit removes or marks rows of is gone or has another deletion vector.
    #[error("version {version} changed file {path}, which this commit changes")]
    FileChanged {
        /// The winner.
        version: u64,
        /// As the log spells it.
        path: String,
    },
    /// Rows that this commit should have read.
    #[error("version {version} added rows in {path} that this commit should have read")]
    RowsAdded {
        /// The winner.
        version: u64,
        /// As the log spells it.
        path: String,
    },
    /// Rows that this commit read are gone.
    #[error("version {version} removed {path}, which this commit has read")]
    RowsRemoved {
        /// The winner.
        version: u64,
        /// As the log spells it.
        path: String,
    },
    /// A metadata domain this commit writes.
    #[error("version {version} wrote the metadata domain `{domain}`")]
    Domain {
        /// The winner.
        version: u64,
        /// The domain.
        domain: String,
    },
    /// Files are being deleted, and this commit makes files live again.
    #[error("version {version} began to delete files that this commit may need")]
    Vacuum {
        /// The winner.
        version: u64,
    },
    /// Every attempt found a newer version.
    #[error("{attempts} attempts each found a newer version")]
    Attempts {
        /// How many were made.
        attempts: u32,
    },
}
