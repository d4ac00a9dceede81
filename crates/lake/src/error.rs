//! What can go wrong in a lake, and what may be done about it.

use datafusion::error::DataFusionError;
use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_specs::TableName;

/// An error of the lake. Messages name the table and column, never row values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The root of the lake is no place tables can be kept: the path cannot be created, or the URL names no store.
    #[error("`{root}` cannot hold a lake: {reason}")]
    Root {
        /// As given.
        root: String,
        /// Why.
        reason: String,
    },
    /// The object store did not answer, or answered with a failure. A retry may help.
    #[error("{action} failed in the object store")]
    Store {
        /// What was tried.
        action: String,
        /// The store's error.
        #[source]
        source: object_store::Error,
    },
    /// The object store answers that the caller may not do this, or that the place is read-only or full.
    #[error("{action} was refused by the object store")]
    Denied {
        /// What was tried.
        action: String,
        /// The store's error.
        #[source]
        source: object_store::Error,
    },
    /// There is no table of this name.
    #[error("table `{table}` does not exist")]
    NoTable {
        /// The table.
        table: TableName,
    },
    /// The table's protocol asks for something this program does not know. Nothing was read or written.
    #[error("table `{table}` needs {what}, which this program does not support")]
    Unsupported {
        /// The table.
        table: TableName,
        /// The feature or protocol version, by name.
        what: String,
    },
    /// The declaration of a table cannot be honoured, so it was not created.
    #[error("table `{table}` cannot be created: {reason}")]
    Spec {
        /// The table.
        table: TableName,
        /// What is wrong, naming the column or property.
        reason: String,
    },
    /// The table exists and differs from its declaration in a way that is never changed silently.
    #[error("table `{table}` exists but differs: {differences}")]
    Incompatible {
        /// The table.
        table: TableName,
        /// Each difference.
        differences: String,
    },
    /// A schema change that a commit cannot carry: it drops, renames, retypes or adds a column that refuses null.
    #[error("the schema of `{table}` cannot change so: {reason}")]
    SchemaChange {
        /// The table.
        table: TableName,
        /// What is wrong, naming the column.
        reason: String,
    },
    /// A batch does not have the table's columns.
    #[error("rows do not fit table `{table}`: {reason}")]
    Batch {
        /// The table.
        table: TableName,
        /// What is wrong, naming the column.
        reason: String,
    },
    /// A row breaks a constraint of the table.
    #[error("a row breaks constraint `{constraint}` of table `{table}`: {reason}")]
    Constraint {
        /// The table.
        table: TableName,
        /// The constraint's name, or the column that refuses null.
        constraint: String,
        /// The rule and how many rows break it; no values.
        reason: String,
    },
    /// The version was never made, or its log has been cleaned.
    #[error("table `{table}` has no version {version} (it has {earliest} to {latest})")]
    NoVersion {
        /// The table.
        table: TableName,
        /// Asked for.
        version: u64,
        /// The first that can be read.
        earliest: u64,
        /// The last.
        latest: u64,
    },
    /// The instant lies before the table's first commit that can still be read.
    #[error("table `{table}` has no version at {instant} (its first is of {earliest})")]
    NoInstant {
        /// The table.
        table: TableName,
        /// Asked for, RFC 3339.
        instant: String,
        /// The first commit's, RFC 3339.
        earliest: String,
    },
    /// The rows added between two versions were asked for, but a commit between them removed rows.
    #[error("table `{table}` is not append-only: version {version} removed rows; read its change feed instead")]
    NotAppendOnly {
        /// The table.
        table: TableName,
        /// The first such version.
        version: u64,
    },
    /// The change feed was not on for the whole range.
    #[error("table `{table}` has no change feed at version {version}")]
    NoChangeFeed {
        /// The table.
        table: TableName,
        /// The first such version.
        version: u64,
    },
    /// A range of versions or instants that ends before it begins.
    #[error("the changes of table `{table}` were asked for from {from} to {to}, which is backwards")]
    Range {
        /// The table.
        table: TableName,
        /// The first version or instant.
        from: String,
        /// The last.
        to: String,
    },
    /// A commit was sent and no answer came, and the log could not be read to learn whether it landed.
    #[error("the outcome of a commit to `{table}` at version {version} is unknown")]
    Unknown {
        /// The table.
        table: TableName,
        /// The version that was tried.
        version: u64,
        /// What the store said last.
        #[source]
        source: Box<object_store::Error>,
    },
    /// The log of the table contradicts itself or cannot be read.
    #[error("the log of table `{table}` cannot be read: {reason}")]
    Log {
        /// The table.
        table: TableName,
        /// What is wrong, naming the version.
        reason: String,
    },
    /// The Delta library refused or failed.
    #[error("reading table `{table}` failed")]
    Delta {
        /// The table.
        table: TableName,
        /// Its error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The query engine refused or failed.
    #[error("the query engine failed")]
    Query(#[source] Box<DataFusionError>),
    /// The plan of a commit contradicts itself: a bug of the caller.
    #[error("a commit to `{table}` is not well formed: {reason}")]
    Malformed {
        /// The table.
        table: TableName,
        /// What is wrong.
        reason: String,
    },
}

impl Error {
    /// A failure of the store, told apart by whether a retry may help.
    pub(crate) fn store(action: impl Into<String>, source: object_store::Error) -> Self {
        let action = action.into();
        match is_denied(&source) {
            true => Self::Denied { action, source },
            false => Self::Store { action, source },
        }
    }
}

/// Whether the store, or the file system below it, says that this will not work however often it is tried.
pub(crate) fn is_denied(error: &object_store::Error) -> bool {
    use std::io::ErrorKind;
    if matches!(error, object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }) {
        return true;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if matches!(
            kind,
            Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// What went through the query engine comes out as what it was: an error of ours, of the store, or the engine's own.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(source) => match source.downcast::<Self>() {
                Ok(error) => *error,
                Err(source) => Self::Query(Box::new(DataFusionError::External(source))),
            },
            DataFusionError::ObjectStore(source) => Self::store("reading", *source),
            DataFusionError::Context(_, source) => (*source).into(),
            error => Self::Query(Box::new(error)),
        }
    }
}

/// A query fails for want of an answer, for want of memory, or because we made it wrong.
fn query_class(error: &DataFusionError) -> FaultClass {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<object_store::Error>() || error.is::<std::io::Error>() {
            return FaultClass::Transient;
        }
        cause = error.source();
    }
    match error.find_root() {
        // The engine keeps only the text of what kept it from reading a file's footer.
        DataFusionError::ParquetError(_) => FaultClass::Transient,
        DataFusionError::ResourcesExhausted(_) => FaultClass::BadInput,
        _ => FaultClass::Bug,
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::Query(Box::new(error.into()))
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Store { .. } | Self::Delta { .. } => FaultClass::Transient,
            Self::Unknown { .. } => FaultClass::Unknown,
            Self::Query(error) => query_class(error),
            Self::Malformed { .. } => FaultClass::Bug,
            Self::Root { .. }
            | Self::Denied { .. }
            | Self::NoTable { .. }
            | Self::Unsupported { .. }
            | Self::Spec { .. }
            | Self::Incompatible { .. }
            | Self::SchemaChange { .. }
            | Self::Batch { .. }
            | Self::Constraint { .. }
            | Self::NoVersion { .. }
            | Self::NoInstant { .. }
            | Self::NotAppendOnly { .. }
            | Self::NoChangeFeed { .. }
            | Self::Range { .. }
            | Self::Log { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Root { .. } => "LK0001",
            Self::Store { .. } => "LK0002",
            Self::Denied { .. } => "LK0003",
            Self::NoTable { .. } => "LK0004",
            Self::Unsupported { .. } => "LK0005",
            Self::Spec { .. } => "LK0006",
            Self::Incompatible { .. } => "LK0007",
            Self::SchemaChange { .. } => "LK0008",
            Self::Batch { .. } => "LK0009",
            Self::Constraint { .. } => "LK0010",
            Self::NoVersion { .. } => "LK0011",
            Self::NoInstant { .. } => "LK0012",
            Self::NotAppendOnly { .. } => "LK0013",
            Self::NoChangeFeed { .. } => "LK0014",
            Self::Unknown { .. } => "LK0015",
            Self::Log { .. } => "LK0016",
            Self::Delta { .. } => "LK0017",
            Self::Query(_) => "LK0018",
            Self::Malformed { .. } => "LK0019",
            Self::Range { .. } => "LK0020",
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::NoTable { .. } => Some("tributary show tables".to_owned()),
            Self::Incompatible { .. } => Some("tributary setup".to_owned()),
            Self::NoVersion { table, .. }
            | Self::NoInstant { table, .. }
            | Self::NotAppendOnly { table, .. }
            | Self::Range { table, .. } => Some(format!("tributary show history {table}")),
            Self::Unknown { table, .. } => Some(format!("tributary show history {table}")),
            // nothing of ours reads such a table: the page says who does
            Self::Unsupported { .. } => Some("tributary help LK0005".to_owned()),
            Self::Root { .. } | Self::Denied { .. } => Some("tributary doctor".to_owned()),
            Self::Spec { table, .. } | Self::SchemaChange { table, .. } | Self::Batch { table, .. } | Self::Constraint { table, .. } => {
                Some(format!("tributary ddl {table}"))
            }
            _ => None,
        }
    }
}
