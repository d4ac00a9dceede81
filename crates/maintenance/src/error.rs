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
    /// Files or versions of so short a time are needed by who reads or writes by an older version. Say a longer retention, or accept that
    /// they fail with `--accept-unsafe-retention`.
    #[error(
        "a retention of {asked} seconds for `{table}` is shorter than its own of {safe}: who reads or writes by an older version would fail"
    )]
    UnsafeRetention {
        /// The table.
        table: TableName,
        /// What was to be done, as `tributary maintain` calls it.
        verb: &'static str,
        /// Seconds.
        asked: u64,
        /// Seconds.
        safe: u64,
    },
    /// A property of the table holds no length of time.
    #[error("property `{property}` of `{table}` is `{value}`, and is a time such as `interval 7 days`")]
    Property {
        /// The table.
        table: TableName,
        /// Its name.
        property: &'static str,
        /// As it stands there.
        value: String,
    },
    /// A declared reader says nothing about what it needs.
    #[error("property `{property}` of `{table}` declares a reader: {reason}")]
    Reader {
        /// The table.
        table: TableName,
        /// The property.
        property: String,
        /// What is wrong.
        reason: String,
    },
    /// Every attempt found that somebody else had changed the table first.
    #[error("`{table}` was changed by others in each of {attempts} attempts")]
    Contended {
        /// The table.
        table: TableName,
        /// How many were made.
        attempts: usize,
    },
    /// The version cannot come back, for files of it are deleted.
    #[error("version {version} of `{table}` cannot come back: {count} files of it are gone: {}", files.join(", "))]
    FilesGone {
        /// The table.
        table: TableName,
        /// The version.
        version: u64,
        /// How many.
        count: usize,
        /// The first of them.
        files: Vec<String>,
    },
    /// The table's position in a source cannot go back with its rows, for the source's log does not reach back so far. Keep the positions
    /// (`--positions keep`): what came since is not taken up again; or refresh the table in full.
    #[error(
        "`{table}` would go on after version {version} of `{source_table}`, whose log begins {}: what came since cannot be read again",
        earliest.map_or("nowhere: it is gone".to_owned(), |earliest| format!("at version {earliest}"))
    )]
    PositionGone {
        /// The table.
        table: TableName,
        /// What it reads.
        source_table: TableName,
        /// The position.
        version: u64,
        /// The first commit that is there.
        earliest: Option<u64>,
    },
    /// Files of the table are being deleted, and the version that is to come back may need them. Wait for the vacuum's end; one that was
    /// killed is ended by another one.
    #[error("a vacuum of `{table}` began with version {version} and has not ended")]
    VacuumUnderWay {
        /// The table.
        table: TableName,
        /// The version of its first commit.
        version: u64,
    },
    /// A repair would lose rows, and their files were not accepted by their number.
    #[error("to repair `{table}` loses {files} files{}", rows.map_or(String::new(), |rows| format!(" with {rows} rows")))]
    RepairLoses {
        /// The table.
        table: TableName,
        /// Files whose rows cannot be told any more.
        files: u64,
        /// Their rows, where the log counts them.
        rows: Option<u64>,
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
            Self::Contended { .. } => FaultClass::Conflict,
            Self::VacuumUnderWay { .. } => FaultClass::Transient,
            Self::NotClustered { .. }
            | Self::Clustered { .. }
            | Self::Column { .. }
            | Self::NoRoom { .. }
            | Self::UnsafeRetention { .. }
            | Self::Property { .. }
            | Self::Reader { .. }
            | Self::FilesGone { .. }
            | Self::PositionGone { .. }
            | Self::RepairLoses { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Lake { source, .. } => return source.code(),
            Self::NotClustered { .. } => "MT0001",
            Self::Clustered { .. } => "MT0002",
            Self::Column { .. } => "MT0003",
            Self::NoRoom { .. } => "MT0004",
            Self::UnsafeRetention { .. } => "MT0005",
            Self::Property { .. } => "MT0006",
            Self::Reader { .. } => "MT0007",
            Self::Contended { .. } => "MT0008",
            Self::FilesGone { .. } => "MT0009",
            Self::PositionGone { .. } => "MT0010",
            Self::VacuumUnderWay { .. } => "MT0011",
            Self::RepairLoses { .. } => "MT0012",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(match self {
            Self::Lake { source, .. } => return source.next_command(),
            Self::NotClustered { table } => format!("tributary maintain zorder --by COLUMN {table}"),
            Self::Clustered { table, .. } => format!("tributary maintain cluster {table}"),
            Self::Column { table, .. } | Self::Property { table, .. } | Self::Reader { table, .. } => format!("tributary ddl {table}"),
            Self::UnsafeRetention { table, verb, .. } => format!("tributary maintain {verb} --accept-unsafe-retention --dry-run {table}"),
            Self::Contended { table, .. } | Self::FilesGone { table, .. } => format!("tributary show history {table}"),
            Self::PositionGone { table, .. } => format!("tributary maintain restore --positions keep {table}"),
            Self::VacuumUnderWay { table, .. } => format!("tributary maintain vacuum {table}"),
            Self::RepairLoses { table, files, .. } => format!("tributary maintain fsck --repair --accept-lost-files {files} {table}"),
            Self::NoRoom { table, .. } => format!("tributary maintain cluster --max-sort-bytes '1 GiB' {table}"),
        })
    }
}
