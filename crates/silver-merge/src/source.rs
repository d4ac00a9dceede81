//! The stream of a dataset: which rows of its first source are new, and what the source tells about each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::{Appended, Result as LakeResult, Table};
use tributary_specs::{Decode, FILE_COLUMNS, MergePolicy, SilverSpec, StreamRead, TableName};

use crate::error::{Error, Result};

/// Columns that a bronze table has besides its business columns.
pub(crate) const TECHNICAL: &[&str] = Decode::Debezium.metadata_columns();
/// Columns of a change feed besides the table's.
pub(crate) const FEED: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];
/// The table property that says a table of ours has rows that change, so that it is read through its change feed.
pub(crate) const ROW_CHANGES: &str = "tributary.rowChanges";

/// How a source tells what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Decoded change events, appended: `_op` and `_position`.
    Changes,
    /// Rows, appended.
    Rows,
    /// A table whose rows change, made by this layer: its change feed.
    Feed,
}

/// The first source of a flow.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub table: Table,
    pub delivery: Delivery,
    /// Which of its rows are read.
    extent: Extent,
    /// Commits passed over in the last reading of each range, by its first version.
    passed_over: Arc<Mutex<BTreeMap<u64, u64>>>,
}

/// Which rows of a source are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// At first those there are, then those of commits that only add some; another commit is an error.
    Appends,
    /// At first those there are, then those of commits that only add some; others are passed over.
    AppendsAlone,
    /// Those there are.
    Live,
    /// Every change.
    Changes,
    /// At first those there are, then every change.
    LiveThenChanges,
}

/// The first version above one; none = the first of all.
pub(crate) fn first_after(from: Option<u64>) -> u64 {
    from.map_or(0, |from| from + 1)
}

/// Whether a table was made for rows that change.
pub(crate) fn has_row_changes(table: &Table) -> bool {
    table.properties().get(ROW_CHANGES).is_some_and(|value| value == "true")
}

impl Source {
    /// How a flow reads `table`.
    pub fn new(table: Table, flow: &SilverSpec) -> Self {
        let only_adds = flow.policy == MergePolicy::Append;
        let by_appends = flow.once || only_adds || flow.stream == StreamRead::SkipChangeCommits;
        let delivery = if flow.stream.is_change_feed() || (!by_appends && has_row_changes(&table)) {
            Delivery::Feed
        } else if has_column(&table, "_op") && has_column(&table, "_position") {
            Delivery::Changes
        } else {
            Delivery::Rows
        };
        let extent = match (flow.once, flow.stream) {
            (true, _) => Extent::Live,
            (false, StreamRead::SkipChangeCommits) => Extent::AppendsAlone,
            (false, StreamRead::ChangeFeed) if only_adds => Extent::LiveThenChanges,
            (false, _) if delivery == Delivery::Feed => Extent::Changes,
            (false, StreamRead::Auto | StreamRead::ChangeFeed | StreamRead::Changes { .. }) => Extent::Appends,
        };
        Self { table, delivery, extent, passed_over: Arc::default() }
    }

    /// The same source, read past commits that updated or deleted rows where it is read by its appends.
    #[must_use]
    pub fn passing_over_changes(mut self, passes_over: bool) -> Self {
        if passes_over && self.extent == Extent::Appends {
            self.extent = Extent::AppendsAlone;
        }
        self
    }

    /// Its name.
    pub fn name(&self) -> &TableName {
        self.table.name()
    }

    /// Columns of its stream.
    pub fn schema(&self) -> SchemaRef {
        match self.delivery {
            Delivery::Feed => self.table.change_schema(),
            Delivery::Changes | Delivery::Rows => self.table.schema(),
        }
    }

    /// Its business columns: what a dataset without a query holds.
    pub fn business_columns(&self) -> Vec<String> {
        let schema = self.table.schema();
        let names = schema.fields().iter().map(|field| field.name());
        match self.delivery {
            Delivery::Feed => names.filter(|name| !name.starts_with("__")).cloned().collect(),
            Delivery::Changes | Delivery::Rows => {
                let technical = |name: &&String| TECHNICAL.contains(&name.as_str()) || FILE_COLUMNS.contains(&name.as_str());
                names.filter(|name| !technical(name) && !name.starts_with("__")).cloned().collect()
            }
        }
    }

    /// Whether its rows have a position of their own: change events have, and so have records of a log; lines of files have none.
    /// `None` where only rows could tell, and there are none.
    ///
    /// # Errors
    /// Store errors.
    pub async fn has_positions(&self) -> Result<Option<bool>> {
        match self.delivery {
            Delivery::Changes | Delivery::Feed => Ok(Some(true)),
            Delivery::Rows if !has_column(&self.table, "_position") => Ok(Some(false)),
            Delivery::Rows => {
                let files = self.table.files().await.map_err(|source| Error::lake("list the files of", self.name(), source))?;
                let all_null = |file: &tributary_lake::DataFile| {
                    let nulls = file.stats.columns.get("_position").and_then(|column| column.null_count);
                    nulls.is_some() && nulls == file.stats.rows
                };
                Ok((!files.is_empty()).then(|| !files.iter().all(all_null)))
            }
        }
    }

    /// The rows, for a flow into `of`, of the versions above `from` (none = from the first) to `to`.
    ///
    /// # Errors
    /// When a version of the range can no longer be read, or removed rows of a source that is read by its appends.
    pub async fn rows(&self, of: &TableName, from: Option<u64>, to: u64) -> Result<SendableRecordBatchStream> {
        let stream = match (self.delivery, self.extent) {
            (Delivery::Feed, Extent::LiveThenChanges) if from.is_none() => self.table.rows_as_inserts(to).await,
            (Delivery::Feed, _) => self.table.changes(first_after(from), to).await,
            (_, Extent::Live) => self.table.live_rows(to).await,
            (_, Extent::AppendsAlone) if from.is_some() => self.appends_alone(from, to).await,
            _ => match self.table.appended(from, to).await {
                // What is read for the first time is read as it is.
                Err(tributary_lake::Error::NotAppendOnly { .. }) if from.is_none() => self.table.live_rows(to).await,
                read => read,
            },
        };
        stream.map_err(|source| match source {
            tributary_lake::Error::NotAppendOnly { version, .. } => {
                Error::SourceChanged { table: of.clone(), source_table: Box::new(self.name().clone()), version }
            }
            source => Error::lake("read the new rows of", self.name(), source),
        })
    }

    async fn appends_alone(&self, from: Option<u64>, to: u64) -> LakeResult<SendableRecordBatchStream> {
        let Appended { rows, passed_over } = self.table.appended_without_changes(from, to).await?;
        let mut counted = self.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
        counted.insert(first_after(from), passed_over);
        Ok(rows)
    }

    /// Commits that were passed over because they update or delete rows.
    pub fn passed_over(&self) -> u64 {
        self.passed_over.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Whether the first reading of the versions to `to` must be of them all at once: read in parts, it would come upon changes of rows
    /// that a reading of the table as it is never sees.
    ///
    /// # Errors
    /// Store errors.
    pub async fn is_first_read_whole(&self, to: u64) -> Result<bool> {
        match self.extent {
            Extent::LiveThenChanges => Ok(true),
            Extent::Live | Extent::Changes => Ok(false),
            Extent::Appends | Extent::AppendsAlone => match self.table.added(None, to).await {
                Err(tributary_lake::Error::NotAppendOnly { .. }) => Ok(true),
                added => added.map(|_| false).map_err(|source| Error::lake("read the history of", self.name(), source)),
            },
        }
    }

    /// Whether its log still has its first version.
    ///
    /// # Errors
    /// Store errors.
    pub async fn reaches_back(&self) -> Result<bool> {
        self.table.reaches_back().await.map_err(|source| Error::lake("read the history of", self.name(), source))
    }

    /// Why a table that is built anew from this source may come to hold less than was read of it before, if it may.
    ///
    /// # Errors
    /// Store errors.
    pub async fn shortened(&self, to: u64) -> Result<Option<String>> {
        let fail = |source| Error::lake("read the history of", self.name(), source);
        if self.extent == Extent::Live {
            return Ok(None);
        }
        let reaches_back = self.table.reaches_back().await.map_err(fail)?;
        let cut = || "no longer has its first versions in its log".to_owned();
        if self.delivery == Delivery::Feed && self.extent != Extent::LiveThenChanges {
            return Ok((!reaches_back).then(cut));
        }
        let mut from = None;
        loop {
            match self.table.added(from, to).await {
                // What of its rows was left out then was left out by choice.
                Err(tributary_lake::Error::NotAppendOnly { version, .. }) if self.table.was_built_anew(version).await.map_err(fail)? => {
                    from = Some(version);
                }
                Err(tributary_lake::Error::NotAppendOnly { version, .. }) => {
                    return Ok(Some(format!("had rows removed by version {version}, which are not read again")));
                }
                Err(other) => return Err(fail(other)),
                // Tables of feeds only grow, as far back as their log may go.
                Ok(_) => return Ok((!reaches_back && !has_column(&self.table, "_ingested_at")).then(cut)),
            }
        }
    }
}

fn has_column(table: &Table, name: &str) -> bool {
    table.schema().column_with_name(name).is_some()
}
