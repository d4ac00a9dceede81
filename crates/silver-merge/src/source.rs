//! The stream of a dataset: which rows of its first source are new, and what the source tells about each.

use tributary_lake::Table;
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_specs::{Decode, TableName};

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

/// The first source of a dataset.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub table: Table,
    pub delivery: Delivery,
}

impl Source {
    /// How `table` is read.
    pub fn new(table: Table) -> Self {
        let delivery = if table.properties().get(ROW_CHANGES).is_some_and(|value| value == "true") {
            Delivery::Feed
        } else if has_column(&table, "_op") && has_column(&table, "_position") {
            Delivery::Changes
        } else {
            Delivery::Rows
        };
        Self { table, delivery }
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
            Delivery::Changes | Delivery::Rows => names.filter(|name| !TECHNICAL.contains(&name.as_str())).cloned().collect(),
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

    /// The rows of the versions above `from` (none = from the first) to `to`.
    ///
    /// # Errors
    /// When a version of the range can no longer be read, or removed rows of a source that is read by its appends.
    pub async fn rows(&self, from: Option<u64>, to: u64) -> Result<SendableRecordBatchStream> {
        let stream = match self.delivery {
            Delivery::Changes | Delivery::Rows => self.table.appended(from, to).await,
            Delivery::Feed => self.table.changes(from.map_or(0, |from| from + 1), to).await,
        };
        stream.map_err(|source| Error::lake("read the new rows of", self.name(), source))
    }
}

fn has_column(table: &Table, name: &str) -> bool {
    table.schema().column_with_name(name).is_some()
}
