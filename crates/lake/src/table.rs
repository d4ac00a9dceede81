//! One immutable snapshot of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::Expr;
use tributary_specs::{Check, Column, TableName};

use crate::{Commit, CommitOutcome, DataFile, Lake, Result};

/// What of a table is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// These columns in this order; `None` = all.
    pub columns: Option<Vec<String>>,
    /// Only rows for which this is true; files and row groups that cannot hold one are skipped.
    pub filter: Option<Expr>,
}

/// One commit of a table's history.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitEntry {
    /// The version it made.
    pub version: u64,
    /// In-commit timestamp where the table has them, else the log file's time.
    pub timestamp: DateTime<Utc>,
    /// `WRITE`, `MERGE`, …; `None` for a commit without commit information.
    pub operation: Option<String>,
    /// As the writer described it.
    pub parameters: BTreeMap<String, String>,
    /// As the writer counted it.
    pub metrics: BTreeMap<String, String>,
    /// Who wrote it.
    pub engine: Option<String>,
    /// The writer's own id of the commit.
    pub txn_id: Option<String>,
    /// Free text of the writer.
    pub user_metadata: Option<String>,
    /// Positions that rode in it.
    pub progress: BTreeMap<String, i64>,
    /// Files added.
    pub files_added: u64,
    /// Files removed.
    pub files_removed: u64,
}

/// One immutable snapshot of a table. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Table {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    lake: Lake,
    name: TableName,
}

impl Table {
    /// Its name.
    pub fn name(&self) -> &TableName {
        &self.inner.name
    }

    /// The lake it is in.
    pub fn lake(&self) -> &Lake {
        &self.inner.lake
    }

    /// The version of this snapshot.
    pub fn version(&self) -> u64 {
        todo!()
    }

    /// Its columns as Arrow types: timestamps in µs (`UTC` or without zone), text as `Utf8`, decimals as `Decimal128`.
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }

    /// Its columns as declared, in order.
    pub fn columns(&self) -> &[Column] {
        todo!()
    }

    /// Its CHECK constraints.
    pub fn checks(&self) -> &[Check] {
        todo!()
    }

    /// Partition columns, in order.
    pub fn partition_columns(&self) -> &[String] {
        todo!()
    }

    /// Clustering columns, in order; empty when it has none.
    pub fn cluster_columns(&self) -> &[String] {
        todo!()
    }

    /// Table properties, constraints left out.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        todo!()
    }

    /// The latest snapshot of the same table.
    ///
    /// # Errors
    /// [`crate::Error::NoTable`] when it is gone; as [`Lake::table`].
    pub async fn refresh(&self) -> Result<Self> {
        todo!()
    }

    /// The snapshot of an earlier (or later) version.
    ///
    /// # Errors
    /// [`crate::Error::NoVersion`] when it was never made or its log is gone.
    pub async fn at_version(&self, _version: u64) -> Result<Self> {
        todo!()
    }

    /// The position of `app_id` in this snapshot.
    ///
    /// # Errors
    /// Store errors.
    pub async fn progress(&self, _app_id: &str) -> Result<Option<i64>> {
        todo!()
    }

    /// All positions whose application id begins with `prefix`.
    ///
    /// # Errors
    /// Store errors.
    pub async fn progress_with_prefix(&self, _prefix: &str) -> Result<BTreeMap<String, i64>> {
        todo!()
    }

    /// A metadata domain's configuration in this snapshot.
    ///
    /// # Errors
    /// Store errors.
    pub async fn domain(&self, _domain: &str) -> Result<Option<String>> {
        todo!()
    }

    /// The snapshot as a DataFusion table: pruned by statistics, deletion vectors applied.
    ///
    /// # Errors
    /// Store errors.
    pub async fn provider(&self) -> Result<Arc<dyn TableProvider>> {
        todo!()
    }

    /// Live rows.
    ///
    /// # Errors
    /// [`crate::Error::Batch`] when a column does not exist; store errors, also while the stream is read.
    pub async fn read(&self, _options: ReadOptions) -> Result<SendableRecordBatchStream> {
        todo!()
    }

    /// Rows added by the data-changing commits of `(from_exclusive, to_inclusive]`, commit by commit; `None` reads from the first.
    /// Commits that only rearranged rows are passed over.
    ///
    /// # Errors
    /// [`crate::Error::NotAppendOnly`] when a commit in the range removed rows, [`crate::Error::NoVersion`] when its log is gone.
    pub async fn appended(&self, _from_exclusive: Option<u64>, _to_inclusive: u64) -> Result<SendableRecordBatchStream> {
        todo!()
    }

    /// Live data files with their statistics.
    ///
    /// # Errors
    /// Store errors.
    pub async fn files(&self) -> Result<Vec<DataFile>> {
        todo!()
    }

    /// Live rows of one file in file order, in the table's schema (or `columns` of it), partition columns filled in.
    ///
    /// # Errors
    /// Store errors, also while the stream is read.
    pub async fn read_file(&self, _file: &DataFile, _columns: Option<&[String]>) -> Result<SendableRecordBatchStream> {
        todo!()
    }

    /// Commits, newest first, as far as the log goes.
    ///
    /// # Errors
    /// Store errors.
    pub async fn history(&self, _limit: Option<usize>) -> Result<Vec<CommitEntry>> {
        todo!()
    }

    /// One commit. A blind append that lost a race is tried again on top of the winner; everything else follows
    /// [`crate::Reads`]. See [`CommitOutcome`].
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] for a plan that contradicts itself, [`crate::Error::SchemaChange`], [`crate::Error::Unknown`] when no answer came and
    /// the log cannot be read either.
    pub async fn commit(&self, _commit: Commit) -> Result<CommitOutcome> {
        todo!()
    }
}
