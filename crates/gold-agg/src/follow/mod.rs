//! A view follows its inputs: it is brought up to date at the price of what changed.
//!
//! ```text
//! inputs ── change feeds between the recorded and the newest versions ──▶ changed rows
//!                                                                           │ through the plan, in columns that are told
//!                                                                           ▼
//!                                                    the values that name rows of the view which may differ
//!                          ┌────────────────────────────────────────────────┴───────────┐
//!            rows of the view with these values                        the query, held to these values
//!                          └───────────────▶ what differs, as bags ◀────────────────────┘
//!                                                   ▼
//!                       one commit: rows taken out, rows added, change feed, positions
//! ```
//!
//! What must stay true:
//! - Every row of the query's result whose count differs between the recorded and the newest versions of the inputs has naming values
//!   that were found. Too many found ones cost reading and change nothing.
//! - What is not proved to follow does not: [`Stop::Full`] says why, and nothing is committed.
//! - No state is kept beside the view: any columns that are told may name its rows, in each run others.

mod audit;
mod bounded;
mod changed;
mod feed;
mod means;
mod named;
mod naming;
mod normal;
mod not_null;
mod replace;
mod rows;
mod run;
mod shape;
mod signed;

use tributary_fault::{Fault, FaultClass};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_spark_sql::words_without_values;
use tributary_specs::TableName;

use crate::{Error, Result};

pub use audit::Audit;
pub(crate) use run::{Followed, Follower, means_of};
pub(crate) use shape::Places;

/// Why a view did not follow.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It must be refreshed in full, for this reason.
    Full(String),
    /// It failed, and a full refresh would not mend that.
    Failed(Error),
    /// The same, of the lake.
    Lake(tributary_lake::Error),
}

pub(crate) fn too_much() -> Stop {
    Stop::Full("what changed does not fit into the memory that may be used".to_owned())
}

impl Stop {
    /// The reason for a refresh in full.
    ///
    /// # Errors
    /// When a full refresh would not mend it.
    pub fn reason(self, view: &TableName) -> Result<String> {
        match self {
            Self::Full(reason) => Ok(reason),
            Self::Failed(error) => Err(error),
            Self::Lake(source) => Err(Error::lake("reading what feeds", view)(source)),
        }
    }

    /// What the lake says of its tables: what is gone for good is read no more, all else may be tried again.
    fn of_lake(error: tributary_lake::Error) -> Self {
        use tributary_lake::Error as Lake;
        match error {
            Lake::Query(error) => Self::of_engine(&error),
            Lake::NoChangeFeed { table, version } => Self::Full(format!("`{table}` has no change feed at version {version}")),
            Lake::NoVersion { table, version, .. } => {
                Self::Full(format!("the history of `{table}` no longer reaches back to version {version}"))
            }
            Lake::Store { source: tributary_lake::object_store::Error::NotFound { .. }, .. } => {
                Self::Full("files with changed rows of an input are gone".to_owned())
            }
            error if error.class() == FaultClass::Transient || error.class() == FaultClass::Unknown => Self::Lake(error),
            error => Self::Full(tributary_fault::chain(&error)),
        }
    }

    /// The engine computes pairs of rows that were never there together, so that what fails here need not fail in full.
    fn of_engine(error: &DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => too_much(),
            _ => Self::Full(format!("the changed rows cannot be computed by themselves: {}", words_without_values(error))),
        }
    }
}

impl From<DataFusionError> for Stop {
    fn from(error: DataFusionError) -> Self {
        Self::of_lake(error.into())
    }
}

impl From<tributary_lake::Error> for Stop {
    fn from(error: tributary_lake::Error) -> Self {
        Self::of_lake(error)
    }
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Self {
        Self::of_engine(&DataFusionError::from(error))
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
