//! A table, read at a version, at an instant, or as changes.

use chrono::{DateTime, Utc};
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::{CommitEntry, ReadOptions};
use tributary_specs::TableName;

use crate::Error;

/// One immutable version of a table.
///
/// ```no_run
/// # async fn read(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
/// use futures::TryStreamExt;
/// let orders = lake.table("silver.orders").await?;
/// let mut rows = orders.scan().await?;
/// while let Some(batch) = rows.try_next().await? {
///     println!("{} rows", batch.num_rows());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    inner: tributary_lake::Table,
}

impl Table {
    pub(crate) fn new(inner: tributary_lake::Table) -> Self {
        Self { inner }
    }

    /// The version this handle reads.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// println!("{}", lake.table("silver.orders").await?.version());
    /// # Ok(()) }
    /// ```
    pub fn version(&self) -> u64 {
        self.inner.version()
    }

    /// Its columns.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// for field in lake.table("silver.orders").await?.schema().fields() {
    ///     println!("{}: {}", field.name(), field.data_type());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    /// The same table at another version.
    ///
    /// # Errors
    /// [`Error::Lake`] when the version was never made or its log is gone.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// let first = lake.table("silver.orders").await?.at_version(0).await?;
    /// # Ok(()) }
    /// ```
    pub async fn at_version(&self, version: u64) -> Result<Self, Error> {
        Ok(Self::new(self.inner.at_version(version).await?))
    }

    /// The same table as it was at an instant.
    ///
    /// # Errors
    /// [`Error::Lake`] when the instant lies before its first commit.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
    /// let then = "2026-03-01T12:00:00Z".parse()?;
    /// let orders = lake.table("silver.orders").await?.at_instant(then).await?;
    /// # Ok(()) }
    /// ```
    pub async fn at_instant(&self, instant: DateTime<Utc>) -> Result<Self, Error> {
        Ok(Self::new(self.inner.at_timestamp(instant).await?))
    }

    /// Its rows, as a stream of Arrow batches.
    ///
    /// # Errors
    /// [`Error::Lake`] when the store does not answer, also while the stream is read.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// let rows = lake.table("silver.orders").await?.scan().await?;
    /// # Ok(()) }
    /// ```
    pub async fn scan(&self) -> Result<SendableRecordBatchStream, Error> {
        Ok(self.inner.read(ReadOptions::default()).await?)
    }

    /// Changes of the versions `from..=to`: its columns, then `_change_type`, `_commit_version`, `_commit_timestamp`.
    ///
    /// # Errors
    /// [`Error::Lake`] when `to` lies before `from` or the log of the range is gone.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// let orders = lake.table("silver.orders").await?;
    /// let changes = orders.changes(1, orders.version()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn changes(&self, from: u64, to: u64) -> Result<SendableRecordBatchStream, Error> {
        Ok(self.inner.changes(from, to).await?)
    }

    /// The versions of other tables that its rows are made of, one a flow; empty for a feed's table.
    ///
    /// # Errors
    /// [`Error::Lake`] when the store does not answer.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// for (source, version) in lake.table("silver.orders").await?.consumed().await? {
    ///     println!("{source} up to version {version}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn consumed(&self) -> Result<Vec<(TableName, u64)>, Error> {
        Ok(tributary_silver_merge::consumed(&self.inner).await?)
    }

    /// Its commits, newest first, as far as the log goes.
    ///
    /// # Errors
    /// [`Error::Lake`] when the store does not answer.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// for commit in lake.table("silver.orders").await?.history(Some(10)).await? {
    ///     println!("{} {}", commit.version, commit.timestamp);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn history(&self, limit: Option<usize>) -> Result<Vec<CommitEntry>, Error> {
        Ok(self.inner.history(limit).await?)
    }

    /// The table as the layers see it.
    pub fn into_inner(self) -> tributary_lake::Table {
        self.inner
    }
}
