//! What can go wrong in silver, and what may be done about it.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::{Conflict, keys_named};
use tributary_spark_sql::{without_values, words_without_values};
use tributary_specs::{Mismatch, TableName};

/// An error of the silver layer. Messages name the table, column and position, never row values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A source of the dataset does not exist. Run the layer that makes it first, or correct the spec's `sources`.
    #[error("`{table}` reads `{source_table}`, which does not exist")]
    NoSource {
        /// The dataset.
        table: TableName,
        /// What it reads.
        source_table: Box<TableName>,
    },
    /// The spec contradicts itself or asks for something that has no defined result. Nothing was read.
    #[error("`{table}` cannot be kept as declared: {reason}")]
    Spec {
        /// The dataset.
        table: TableName,
        /// What is wrong, naming the column or clause, and what to write instead.
        reason: String,
    },
    /// An SQL text of the spec is not executed as it stands. The code is the one of what is wrong with the text.
    #[error("{clause} of `{table}` is not executed")]
    Text {
        /// The dataset.
        table: TableName,
        /// `select`, `sequence_by`, `expectation x`, …
        clause: String,
        /// What is wrong, with line and column.
        #[source]
        source: Box<tributary_spark_sql::Error>,
    },
    /// The spec names a column that its query does not yield. Correct the name, or select the column.
    #[error("{clause} of `{table}` names `{column}`, which the query does not yield{}", nearest(suggestion.as_deref()))]
    NoColumn {
        /// The dataset.
        table: TableName,
        /// `keys`, `columns`, `track_history`, ….
        clause: &'static str,
        /// As it is written.
        column: String,
        /// The nearest name there is.
        suggestion: Option<Box<str>>,
    },
    /// The query, or what a program built, cannot be planned over the source: a step of it is not one row out for one row in.
    #[error("{clause} of `{table}` cannot be planned")]
    Sql {
        /// The dataset.
        table: TableName,
        /// `select`, `sequence_by`, `expectation x`, …
        clause: String,
        /// What the query engine says.
        #[source]
        source: Box<DataFusionError>,
    },
    /// The query, or a rule or condition, of the dataset failed while it ran: a value did not fit its cast, a number grew too large, a
    /// division had zero below. Guard the expression (`try_cast`, `nullif`), or set such rows aside by an expectation.
    #[error("the query of `{table}` failed: {reason}")]
    Query {
        /// The dataset.
        table: TableName,
        /// What the query engine says, values left out.
        reason: String,
    },
    /// The query gives several rows for one row of its first source, so that a change is no longer one change. A lookup by a
    /// column that is not unique does this.
    #[error("the query of `{table}` gives {rows} rows for {of} rows of `{source_table}`: one row in must be at most one row out")]
    NotOneToOne {
        /// The dataset.
        table: TableName,
        /// Its first source.
        source_table: Box<TableName>,
        /// Rows out.
        rows: u64,
        /// Different rows in.
        of: u64,
    },
    /// `NULL_KEY`: changes without a value in a key column, in a dataset that refuses them. Nothing was written. Declare
    /// `null_keys: quarantine` to set such rows aside, `null_safe` to let null equal null.
    #[error("NULL_KEY: {rows} rows of `{source_table}` have no value for key column `{column}` of `{table}`, the first at {position}")]
    NullKey {
        /// The dataset.
        table: TableName,
        /// Its first source.
        source_table: Box<TableName>,
        /// The key column.
        column: String,
        /// How many.
        rows: u64,
        /// Position, or file and line, of the first.
        position: String,
    },
    /// `NULL_SEQUENCE`: changes without a value of the declared sequence, in a dataset that refuses them. Nothing was written.
    /// Declare `null_keys: quarantine` to set such rows aside.
    #[error("NULL_SEQUENCE: {rows} rows of `{source_table}` have no value for the sequence of `{table}`, the first at {position}")]
    NullSequence {
        /// The dataset.
        table: TableName,
        /// Its first source.
        source_table: Box<TableName>,
        /// How many.
        rows: u64,
        /// Position, or file and line, of the first.
        position: String,
    },
    /// A text sequence whose values have different lengths: as text, `9` comes after `10`. Cast it in `sequence_by`, or set the
    /// table property `tributary.sequence.text` to `true` where the order of text is meant.
    #[error(
        "sequence `{column}` of `{table}` is text of varying length, whose order is not the order of numbers or dates: cast it, or set the property tributary.sequence.text"
    )]
    TextSequence {
        /// The dataset.
        table: TableName,
        /// The sequence.
        column: String,
    },
    /// An expectation with the action `fail` failed. Nothing of the batch was written. The message names up to ten of the keys whose
    /// rows break it: mend them where they come from, or change the rule.
    #[error("EXPECTATION_VIOLATION: {rows} rows of `{table}` break `{expectation}`, the first at {position}{}", keys_named(keys))]
    Expectation {
        /// The dataset.
        table: TableName,
        /// The rule.
        expectation: String,
        /// How many rows break it.
        rows: u64,
        /// Position, or file and line, of the first.
        position: String,
        /// Up to ten of their keys.
        keys: Vec<String>,
    },
    /// A rule of the whole table with the action `fail` would not hold after the commit. Nothing was written.
    #[error("EXPECTATION_VIOLATION: `{table}` would break `{expectation}`: {reason}{}", keys_named(keys))]
    SetExpectation {
        /// The dataset.
        table: TableName,
        /// The rule.
        expectation: String,
        /// Why it would not hold, in counts.
        reason: String,
        /// Up to ten of the keys that break it.
        keys: Vec<String>,
    },
    /// A stream is read by the appends of its source, and a commit there updated or deleted rows: what was read before cannot be taken
    /// back. Pass such commits over (`skipChangeCommits`), read the source's change feed, or build the table anew.
    #[error(
        "`{table}` reads the appends of `{source_table}`, whose version {version} updated or deleted rows: pass such commits over (skipChangeCommits), read its change feed (readChangeFeed), or refresh `{table}` in full"
    )]
    SourceChanged {
        /// The dataset.
        table: TableName,
        /// What it streams from.
        source_table: Box<TableName>,
        /// The first such version.
        version: u64,
    },
    /// A full refresh would build the table from a source that no longer has all that the table was made of: rows were removed from it,
    /// or its log no longer reaches back to its start. The table is as it was. Where the shorter history is meant, say so.
    #[error(
        "a full refresh of `{table}` would make its history shorter: `{source_table}` {why}; the table is unchanged, --accept-shorter-history does it all the same"
    )]
    HistoryShorter {
        /// The dataset.
        table: TableName,
        /// What it streams from.
        source_table: Box<TableName>,
        /// Which versions it no longer has.
        why: String,
    },
    /// The declared schema and what the query yields differ.
    #[error("the declared schema of `{table}` does not fit its query: {}", in_words(differences))]
    DeclaredSchema {
        /// The dataset.
        table: TableName,
        /// Each difference.
        differences: Vec<Mismatch>,
    },
    /// Keys, a key's type, the kind of table or the type of the sequence differ from what the table was made with. What is
    /// stored cannot be read that way: a full refresh is needed.
    #[error("`{table}` was made with {found} and is declared with {declared}: it needs a full refresh")]
    Changed {
        /// The dataset.
        table: TableName,
        /// What the table has.
        found: String,
        /// What the spec says.
        declared: String,
    },
    /// The table was filled by a feed and is declared with flows of its own, which would bring its records once more: give the flows another
    /// table, or take the table's folder away and run.
    #[error("`{table}` was made for {found} and is declared with {declared}: take its folder away and run, which makes it anew")]
    Remade {
        /// The dataset.
        table: TableName,
        /// What the table has.
        found: String,
        /// What the spec says.
        declared: String,
    },
    /// The type of a column is no longer that of the table. A cast in the query, a `schema_policy` that rewrites the table, or a full
    /// refresh is needed.
    #[error("column `{column}` of `{table}` is {found} in the table and {query} in the query: cast it, or {}", without_cast(*widens))]
    ColumnType {
        /// The dataset.
        table: TableName,
        /// The column.
        column: String,
        /// The table's type.
        found: Box<str>,
        /// The query's type.
        query: Box<str>,
        /// Whether the policy `widen` would let the table hold both.
        widens: bool,
    },
    /// The schema policy is `freeze`, and the query yields a column, or a field of a struct, that the table does not have. Leave it out
    /// of the query, or choose another policy.
    #[error("column `{column}` comes from the query of `{table}`, which does not have it, and the schema policy is freeze")]
    Frozen {
        /// The dataset.
        table: TableName,
        /// The column, or the path of the field.
        column: String,
    },
    /// The source is not the table that was consumed: it was made again, or its latest version is below the one consumed, because it
    /// was restored from a copy. What its versions hold now cannot be told from what the target has.
    #[error("{}", of_another_source(table, source_table, *position, *latest, *made_again))]
    SourceWentBack {
        /// The dataset.
        table: TableName,
        /// Its first source.
        source_table: Box<TableName>,
        /// What was consumed.
        position: i64,
        /// What is there.
        latest: u64,
        /// Whether what is there is another table of the same name.
        made_again: bool,
    },
    /// What the target retains beside its rows is not there as the target was planned on it. Without it deleted rows would come back.
    #[error(
        "`{state}`, by which `{table}` remembers its deletes, {lost}: bring it back, or take the folders of `{table}` and `{state}` away and run, which builds them anew"
    )]
    StateLost {
        /// The dataset.
        table: TableName,
        /// The state table.
        state: Box<TableName>,
        /// What of it is lost.
        lost: String,
    },
    /// The `_state` table of this name belongs to another dataset.
    #[error("`{state}` holds the state of `{owner}`, not of `{table}`: two datasets of one name cannot share it")]
    StateOfAnother {
        /// The dataset.
        table: TableName,
        /// The state table.
        state: Box<TableName>,
        /// Whose it is.
        owner: String,
    },
    /// A release before kept a position by the source's name, and several flows read that source now.
    #[error(
        "`{table}` has consumed version {position} of `{source_table}` and does not say by which flow, and {} read it now: run it once with only the flow that has read it, or refresh it in full",
        flows.iter().map(|flow| format!("`{flow}`")).collect::<Vec<_>>().join(", ")
    )]
    FlowUnknown {
        /// The dataset.
        table: TableName,
        /// The source.
        source_table: Box<TableName>,
        /// The version consumed.
        position: i64,
        /// Names of the flows over it.
        flows: Vec<String>,
    },
    /// Other writers won every race for the table.
    #[error("`{table}`: another writer was first {attempts} times, last because {conflict}")]
    Contended {
        /// The dataset.
        table: TableName,
        /// How often it was planned.
        attempts: u32,
        /// The last lost race.
        conflict: Box<Conflict>,
    },
    /// Another run moved the dataset's position while this one worked on it, again and again.
    #[error("`{table}` is being written by another run: its position `{app_id}` moved {attempts} times")]
    Busy {
        /// The dataset.
        table: TableName,
        /// Whose position.
        app_id: String,
        /// How often it was planned.
        attempts: u32,
    },
    /// The run was cancelled before its commit; the table is as it was.
    #[error("the run of `{table}` was cancelled before its commit")]
    Cancelled {
        /// The dataset.
        table: TableName,
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
    /// Arrow refused an operation that the plan holds to be legal.
    #[error("a kernel refused the columns of `{table}`: {reason}")]
    Kernel {
        /// The dataset.
        table: TableName,
        /// What Arrow says, values left out.
        reason: String,
    },
}

fn of_another_source(table: &TableName, source: &TableName, position: i64, latest: u64, made_again: bool) -> String {
    let why = match made_again {
        true => format!("the one there (latest version {latest}) is another table, made again under its name"),
        false => format!("whose latest is {latest}: it was made again or restored"),
    };
    let state = crate::state::table_name(table);
    format!(
        "`{table}` has consumed version {position} of `{source}`, {why}; bring the one consumed back, or take the folders of `{table}` and `{state}` away and run, which builds them anew"
    )
}

fn without_cast(widens: bool) -> &'static str {
    if widens { "set schema_policy: widen, which rewrites the table" } else { "refresh the table in full" }
}

fn nearest(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

fn in_words(differences: &[Mismatch]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Error {
    pub(crate) fn text(table: &TableName, clause: &str, source: tributary_spark_sql::Error) -> Self {
        Self::Text { table: table.clone(), clause: clause.to_owned(), source: Box::new(source) }
    }

    /// Whether a column that the spec names is not there.
    pub(crate) fn is_of_unknown_column(&self) -> bool {
        match self {
            Self::Text { source, .. } => matches!(**source, tributary_spark_sql::Error::NoColumn { .. }),
            Self::NoColumn { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn lake(action: &'static str, table: &TableName, source: tributary_lake::Error) -> Self {
        Self::Lake { action, table: table.clone(), source: Box::new(source) }
    }

    pub(crate) fn kernel(table: &TableName, source: ArrowError) -> Self {
        Self::Kernel { table: table.clone(), reason: without_values(&source.to_string()) }
    }

    /// A failure while the query ran: what the lake says of its tables stays the lake's.
    pub(crate) fn query(table: &TableName, source: DataFusionError) -> Self {
        match tributary_lake::Error::from(source) {
            tributary_lake::Error::Query(error) => Self::Query { table: table.clone(), reason: words_without_values(&error) },
            source => Self::lake("read what feeds", table, source),
        }
    }

    /// A failure while events went through a local file.
    pub(crate) fn spilled(table: &TableName, source: DataFusionError) -> Self {
        match source {
            DataFusionError::ArrowError(error, _) => Self::kernel(table, *error),
            error => Self::lake("keep in a local file the changes of", table, error.into()),
        }
    }

    pub(crate) fn spec(table: &TableName, reason: impl Into<String>) -> Self {
        Self::Spec { table: table.clone(), reason: reason.into() }
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Lake { source, .. } => source.class(),
            Self::Text { source, .. } => source.class(),
            Self::Contended { .. } => FaultClass::Conflict,
            Self::Busy { .. } => FaultClass::Busy,
            Self::Expectation { .. } | Self::SetExpectation { .. } => FaultClass::Expectation,
            Self::Cancelled { .. } => FaultClass::Transient,
            Self::Kernel { .. } => FaultClass::Bug,
            Self::NoSource { .. }
            | Self::Spec { .. }
            | Self::NoColumn { .. }
            | Self::Sql { .. }
            | Self::Query { .. }
            | Self::NotOneToOne { .. }
            | Self::NullKey { .. }
            | Self::NullSequence { .. }
            | Self::TextSequence { .. }
            | Self::DeclaredSchema { .. }
            | Self::Changed { .. }
            | Self::Remade { .. }
            | Self::ColumnType { .. }
            | Self::Frozen { .. }
            | Self::SourceWentBack { .. }
            | Self::SourceChanged { .. }
            | Self::HistoryShorter { .. }
            | Self::StateLost { .. }
            | Self::FlowUnknown { .. }
            | Self::StateOfAnother { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Lake { source, .. } => return source.code(),
            Self::Text { source, .. } => return source.code(),
            Self::NoSource { .. } => "SM0001",
            Self::Spec { .. } => "SM0002",
            Self::Sql { .. } => "SM0003",
            Self::Query { .. } => "SM0004",
            Self::NotOneToOne { .. } => "SM0005",
            Self::NullKey { .. } => "SM0006",
            Self::NullSequence { .. } => "SM0007",
            Self::TextSequence { .. } => "SM0008",
            Self::Expectation { .. } => "SM0009",
            Self::DeclaredSchema { .. } => "SM0010",
            Self::Changed { .. } => "SM0011",
            Self::ColumnType { .. } => "SM0012",
            Self::SourceWentBack { .. } => "SM0013",
            Self::StateOfAnother { .. } => "SM0014",
            Self::Contended { .. } => "SM0015",
            Self::Busy { .. } => "SM0016",
            Self::Cancelled { .. } => "SM0017",
            Self::Kernel { .. } => "SM0018",
            Self::NoColumn { .. } => "SM0019",
            Self::StateLost { .. } => "SM0020",
            Self::Frozen { .. } => "SM0021",
            Self::SetExpectation { .. } => "SM0022",
            Self::SourceChanged { .. } => "SM0023",
            Self::HistoryShorter { .. } => "SM0024",
            Self::Remade { .. } => "SM0025",
            Self::FlowUnknown { .. } => "SM0026",
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Lake { source, .. } => source.next_command(),
            Self::Text { source, .. } => source.next_command(),
            Self::NoSource { .. } => Some("tributary show tables".to_owned()),
            Self::Spec { .. } | Self::NoColumn { .. } | Self::Sql { .. } | Self::DeclaredSchema { .. } | Self::StateOfAnother { .. } => {
                Some("tributary validate".to_owned())
            }
            Self::NullKey { source_table, .. } | Self::NullSequence { source_table, .. } | Self::NotOneToOne { source_table, .. } => {
                Some(format!("tributary show sample {source_table}"))
            }
            Self::Changed { table, .. } | Self::ColumnType { table, .. } => Some(format!("tributary run --full-refresh {table}")),
            Self::Frozen { table, .. } | Self::Remade { table, .. } => Some(format!("tributary ddl {table}")),
            Self::SourceWentBack { source_table, .. } => Some(format!("tributary show history {source_table}")),
            Self::Contended { table, .. } | Self::Busy { table, .. } | Self::StateLost { table, .. } => {
                Some(format!("tributary show history {table}"))
            }
            Self::Cancelled { table, .. }
            | Self::Query { table, .. }
            | Self::Expectation { table, .. }
            | Self::SetExpectation { table, .. }
            | Self::TextSequence { table, .. } => Some(format!("tributary run --only {table}")),
            Self::SourceChanged { table, .. } => Some(format!("tributary run --full-refresh {table}")),
            Self::FlowUnknown { table, .. } => Some(format!("tributary show history {table}")),
            Self::HistoryShorter { table, .. } => Some(format!("tributary run --full-refresh {table} --accept-shorter-history")),
            Self::Kernel { .. } => None,
        }
    }
}

/// What fallible functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
