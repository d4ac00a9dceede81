//! What can go wrong in maintenance, and what may be done about it.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_specs::TableName;

/// An error of maintenance. Messages name the table and column, never row values. The table is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A table without clustering columns cannot be clustered. Declare `cluster_by`, or say by which columns it is to be Z-ordered.
    #[error("`{table}` has no clustering columns")]
    NotClustered {
        /// The table.
        table: TableName,
    },
    /// Rows of a clustered table lie along its clustering columns, and cannot lie by others at the same time.
    #[error("`{table}` is clustered by {}, and cannot be Z-ordered too", columns.join(", "))]
    Clustered {
        /// The table.
        table: TableName,
        /// Its clustering columns.
        columns: Vec<String>,
    },
    /// A table cannot be ordered by this column. Name columns that have statistics and that it is not partitioned by.
    #[error("`{table}` cannot be ordered by column `{column}`: {reason}")]
    Column {
        /// The table.
        table: TableName,
        /// As it was named.
        column: String,
        /// Why not.
        reason: String,
    },
    /// Rows could not be sorted in the memory and disk that there are. Raise `--memory-limit`, lower `--max-sort-bytes`, or give a
    /// folder with more room to spill to.
    #[error("rows of `{table}` cannot be sorted: {reason}")]
    NoRoom {
        /// The table.
        table: TableName,
        /// What the query engine says.
        reason: String,
    },
    /// A step on a table of the lake failed.
    #[error("{action} `{table}`")]
    Lake {
        /// What was done.
        action: &'static str,
        /// To which table.
        table: TableName,
        /// The lake's error.
        #[source]
        source: Box<tributary_lake::Error>,
    },
}

impl Error {
    /// Wraps an error of the lake with what was being done.
    pub(crate) fn lake(action: &'static str, table: &TableName) -> impl FnOnce(tributary_lake::Error) -> Self {
        let table = table.clone();
        move |source| Self::Lake { action, table, source: Box::new(source) }
    }

    /// A failure of the query engine while rows were sorted.
    pub(crate) fn sorting(table: &TableName) -> impl FnOnce(DataFusionError) -> Self {
        let table = table.clone();
        move |error| match error.find_root() {
            DataFusionError::ResourcesExhausted(reason) => Self::NoRoom { table, reason: reason.clone() },
            _ => Self::Lake { action: "sorting rows of", table, source: Box::new(error.into()) },
        }
    }

    /// Whether a table asks for something that this program does not know: nothing can be done about it.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(self, Self::Lake { source, .. } if matches!(**source, tributary_lake::Error::Unsupported { .. }))
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Lake { source, .. } => source.class(),
            Self::NotClustered { .. } | Self::Clustered { .. } | Self::Column { .. } | Self::NoRoom { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Lake { source, .. } => return source.code(),
            Self::NotClustered { .. } => "MT0001",
            Self::Clustered { .. } => "MT0002",
            Self::Column { .. } => "MT0003",
            Self::NoRoom { .. } => "MT0004",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(match self {
            Self::Lake { source, .. } => return source.next_command(),
            Self::NotClustered { table } => format!("tributary maintain zorder --by COLUMN {table}"),
            Self::Clustered { table, .. } => format!("tributary maintain cluster {table}"),
            Self::Column { table, .. } => format!("tributary ddl {table}"),
            Self::NoRoom { table, .. } => format!("tributary maintain cluster --max-sort-bytes '1 GiB' {table}"),
        })
    }
}
