//! What can go wrong in gold, and what may be done about it.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::keys_named;
use tributary_spark_sql::words_without_values;
use tributary_specs::{Mismatch, TableName};

/// An error of the gold layer. Messages name the view and column, never row values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query of a view is not one query over tables of the lake. Write one `SELECT` (with `WITH` where needed) that names its
    /// tables as `schema.table`.
    #[error("{}{reason}", of(table.as_ref()))]
    Query {
        /// The view; none where only a text was given.
        table: Option<TableName>,
        /// What is wrong, with line and column where there are any, and what to write instead.
        reason: String,
    },
    /// The view is to be refreshed incrementally or not at all, and only a full refresh would bring it up to date. Make it anew once,
    /// or say `refresh: auto`.
    #[error("`{table}` asks for incremental refresh and would be refreshed in full, for {reason}")]
    IncrementalUnavailable {
        /// The view.
        table: TableName,
        /// Why it does not follow its inputs.
        reason: String,
    },
    /// A table that the view reads does not exist. Run the layer that makes it first, or correct the name.
    #[error("`{table}` reads `{source_table}`, which does not exist{}", hint(nearest.as_deref()))]
    NoSource {
        /// The view.
        table: TableName,
        /// What it reads.
        source_table: TableName,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// The view reads itself, so that it could never equal its query.
    #[error("`{table}` reads itself")]
    ReadsItself {
        /// The view.
        table: TableName,
    },
    /// A view built in code says nothing about its inputs. Name them in the spec's `sources`.
    #[error("`{table}` is built in code and names no sources")]
    NoSources {
        /// The view.
        table: TableName,
    },
    /// The query is not executed as it stands. The code is the one of what is wrong with the text.
    #[error("the query of `{table}` is not executed")]
    Sql {
        /// The view.
        table: TableName,
        /// What is wrong, with line and column.
        #[source]
        source: Box<tributary_spark_sql::Error>,
    },
    /// The engine refuses a view built in code: a column does not exist, types do not fit, a column is not grouped by.
    #[error("the query of `{table}` cannot be planned")]
    Planned {
        /// The view.
        table: TableName,
        /// What the engine says.
        #[source]
        source: Box<DataFusionError>,
    },
    /// The query failed while it ran: a value did not fit its cast, a number grew too large, a division had zero below. Guard the
    /// expression in the query (`try_cast`, `nullif`), or keep such rows out.
    #[error("the query of `{table}` failed: {reason}")]
    Failed {
        /// The view.
        table: TableName,
        /// What the engine says, values left out.
        reason: String,
    },
    /// The query needs more memory than the run may use, though it spills where it can. Raise `--memory-limit`, or let the query
    /// do less at once.
    #[error("the query of `{table}` does not fit in memory: {reason}")]
    OutOfMemory {
        /// The view.
        table: TableName,
        /// Which operator asked for how much.
        reason: String,
    },
    /// A function of the query gives another answer each time, so that the table cannot equal its query. Take it out; `now()` and
    /// `current_date` are allowed.
    #[error("the query of `{table}` calls `{function}`, which gives another answer each time")]
    Volatile {
        /// The view.
        table: TableName,
        /// The function.
        function: String,
    },
    /// A column of the result has a type or name that a Delta table cannot have. Cast it, or give it a name with `AS`.
    #[error("the query of `{table}`: {reason}")]
    Column {
        /// The view.
        table: TableName,
        /// What is wrong, naming the column.
        reason: String,
    },
    /// The declared schema and what the query yields differ.
    #[error("the declared schema of `{table}` does not fit its query: {}", in_words(differences))]
    DeclaredSchema {
        /// The view.
        table: TableName,
        /// Each difference.
        differences: Vec<Mismatch>,
    },
    /// The table there has a column of another type than the query, or one that refuses null and the query does not yield. Cast it
    /// in the query, or make the table anew.
    #[error("`{table}` has other columns than its query: {reason}")]
    TableColumns {
        /// The view.
        table: TableName,
        /// Each difference, naming the column.
        reason: String,
    },
    /// The condition of an expectation cannot be planned over the view's rows, or is not true or false.
    #[error("expectation `{expectation}` of `{table}` cannot be asked: {reason}{}", span.map(at).unwrap_or_default())]
    Rule {
        /// The view.
        table: TableName,
        /// The expectation.
        expectation: String,
        /// What the engine says.
        reason: String,
        /// Line and column of the condition, where they are known.
        span: Option<(u64, u64)>,
    },
    /// An expectation with the action `fail` failed. The view is as it was.
    ///
    /// Up to ten of their keys are named where a `unique` rule of the view says which columns these are.
    #[error("EXPECTATION_VIOLATION: {rows} rows of `{table}` break `{expectation}`{}", keys_named(keys))]
    Expectation {
        /// The view.
        table: TableName,
        /// The expectation.
        expectation: String,
        /// How many rows break it.
        rows: u64,
        /// Up to ten of their keys.
        keys: Vec<String>,
    },
    /// A rule of the whole view with the action `fail` would not hold after the refresh. The view is as it was.
    #[error("EXPECTATION_VIOLATION: `{table}` would break `{expectation}`: {reason}{}", keys_named(keys))]
    SetExpectation {
        /// The view.
        table: TableName,
        /// The rule.
        expectation: String,
        /// Why it would not hold, in counts.
        reason: String,
        /// Up to ten of the keys that break it.
        keys: Vec<String>,
    },
    /// An input's latest version is below the one the view was made from: the input was made again or restored.
    #[error("`{table}` was made from version {position} of `{source_table}`, whose latest is {latest}: it was made again or restored")]
    SourceWentBack {
        /// The view.
        table: TableName,
        /// The input.
        source_table: TableName,
        /// What the view records.
        position: i64,
        /// What is there.
        latest: u64,
    },
    /// The table there holds rows and was not made as a view: a refresh would replace them. Give the view another name, or take the
    /// table away first.
    #[error("`{table}` holds rows that no view made, and a refresh would replace them")]
    NotAView {
        /// The view.
        table: TableName,
    },
    /// Other writers won every race for the view.
    #[error("`{table}`: another writer was first {attempts} times, last because {conflict}")]
    Contended {
        /// The view.
        table: TableName,
        /// How often it was planned.
        attempts: u32,
        /// The last lost race.
        conflict: String,
    },
    /// The run was cancelled before its commit; the view is as it was.
    #[error("the run of `{table}` was cancelled before its commit")]
    Cancelled {
        /// The view.
        table: TableName,
    },
    /// Groups of the view that were computed again from its inputs, at the versions that it records, differ from its rows: somebody else
    /// wrote to it, or we have a bug.
    #[error("`{table}` differs from its query: {differing} rows of {groups} groups that were computed again")]
    Differs {
        /// The view.
        table: TableName,
        /// Rows that it has and should not, or has not and should.
        differing: u64,
        /// Groups looked at.
        groups: u64,
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

fn at((line, column): (u64, u64)) -> String {
    format!(" (line {line}, column {column})")
}

fn in_words(differences: &[Mismatch]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn of(table: Option<&TableName>) -> String {
    table.map(|table| format!("the query of `{table}`: ")).unwrap_or_default()
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl Error {
    /// Wraps an error of the lake with what was being done.
    pub(crate) fn lake(action: &'static str, table: &TableName) -> impl FnOnce(tributary_lake::Error) -> Self {
        let table = table.clone();
        move |source| Self::Lake { action, table, source: Box::new(source) }
    }

    /// A failure while the query ran: what the lake says of its tables stays the lake's.
    pub(crate) fn failed(table: &TableName, error: DataFusionError) -> Self {
        match tributary_lake::Error::from(error) {
            tributary_lake::Error::Query(error) => Self::of_query(table.clone(), &error),
            source => Self::Lake { action: "reading what feeds", table: table.clone(), source: Box::new(source) },
        }
    }

    fn of_query(table: TableName, error: &DataFusionError) -> Self {
        let reason = words_without_values(error);
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::OutOfMemory { table, reason },
            _ => Self::Failed { table, reason },
        }
    }

    /// Whether a column that the query names is not there.
    pub(crate) fn is_of_unknown_column(&self) -> bool {
        matches!(self, Self::Sql { source, .. } if matches!(**source, tributary_spark_sql::Error::NoColumn { .. }))
    }

    /// A refusal of the planner: what the lake says of its tables stays the lake's.
    pub(crate) fn planned(table: &TableName, error: DataFusionError) -> Self {
        match tributary_lake::Error::from(error) {
            tributary_lake::Error::Query(source) => Self::Planned { table: table.clone(), source },
            source => Self::Lake { action: "reading what feeds", table: table.clone(), source: Box::new(source) },
        }
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            // A row that breaks the table's own rules comes from the query, and comes again.
            Self::Lake { source, .. } if source.class() == FaultClass::BadData => FaultClass::BadInput,
            Self::Lake { source, .. } => source.class(),
            Self::Sql { source, .. } => source.class(),
            Self::Contended { .. } => FaultClass::Conflict,
            Self::Expectation { .. } | Self::SetExpectation { .. } => FaultClass::Expectation,
            Self::Cancelled { .. } => FaultClass::Transient,
            Self::Differs { .. } => FaultClass::Bug,
            Self::Query { .. }
            | Self::IncrementalUnavailable { .. }
            | Self::NoSource { .. }
            | Self::ReadsItself { .. }
            | Self::NoSources { .. }
            | Self::Planned { .. }
            | Self::Failed { .. }
            | Self::OutOfMemory { .. }
            | Self::Volatile { .. }
            | Self::Column { .. }
            | Self::DeclaredSchema { .. }
            | Self::TableColumns { .. }
            | Self::Rule { .. }
            | Self::NotAView { .. }
            | Self::SourceWentBack { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Lake { source, .. } => return source.code(),
            Self::Sql { source, .. } => return source.code(),
            Self::Query { .. } => "GA0001",
            Self::IncrementalUnavailable { .. } => "GA0002",
            Self::NoSource { .. } => "GA0003",
            Self::ReadsItself { .. } => "GA0004",
            Self::NoSources { .. } => "GA0005",
            Self::Planned { .. } => "GA0006",
            Self::Failed { .. } => "GA0007",
            Self::Volatile { .. } => "GA0008",
            Self::Column { .. } => "GA0009",
            Self::DeclaredSchema { .. } => "GA0010",
            Self::TableColumns { .. } => "GA0011",
            Self::Rule { .. } => "GA0012",
            Self::Expectation { .. } => "GA0013",
            Self::SourceWentBack { .. } => "GA0014",
            Self::Contended { .. } => "GA0015",
            Self::Cancelled { .. } => "GA0016",
            Self::OutOfMemory { .. } => "GA0017",
            Self::NotAView { .. } => "GA0018",
            Self::SetExpectation { .. } => "GA0019",
            Self::Differs { .. } => "GA0020",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(match self {
            Self::Lake { source, .. } => return source.next_command(),
            Self::Sql { source, .. } => return source.next_command(),
            Self::NoSource { .. } => "tributary show tables".to_owned(),
            Self::TableColumns { table, .. } | Self::IncrementalUnavailable { table, .. } | Self::Differs { table, .. } => {
                format!("tributary run --full-refresh {table}")
            }
            Self::SourceWentBack { source_table, .. } => format!("tributary show history {source_table}"),
            Self::Contended { table, .. } | Self::NotAView { table } => format!("tributary show history {table}"),
            Self::OutOfMemory { table, .. } => format!("tributary run --only {table} --memory-limit 4GiB"),
            // rows of the inputs stopped the query: it is corrected, or they are looked at, before it is run again
            Self::Failed { .. } => "tributary help GA0007".to_owned(),
            Self::Expectation { table, .. } | Self::SetExpectation { table, .. } | Self::Cancelled { table } => {
                format!("tributary run --only {table}")
            }
            Self::Query { .. }
            | Self::ReadsItself { .. }
            | Self::NoSources { .. }
            | Self::Planned { .. }
            | Self::Volatile { .. }
            | Self::Column { .. }
            | Self::DeclaredSchema { .. }
            | Self::Rule { .. } => "tributary validate".to_owned(),
        })
    }
}

/// What fallible functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
