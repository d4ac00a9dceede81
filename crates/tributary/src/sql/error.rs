//! What can be wrong with a SQL text over a lake.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_spark_sql::words_without_values;

/// A query of people fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not executed as it stands.
    #[error(transparent)]
    Text(#[from] tributary_spark_sql::Error),
    /// TR0108. The query was planned and then failed: a division by zero, a text that is no number, too little memory, a store
    /// that did not answer. Say `--memory-limit` where memory was short; a store may answer when asked again.
    #[error("the query failed: {reason}")]
    Run {
        /// The engine's words, values left out.
        reason: String,
        /// What may be done about it.
        class: FaultClass,
    },
    /// The lake refused or failed.
    #[error(transparent)]
    Lake(#[from] tributary_lake::Error),
    /// A pipeline of the text could not be made or run, or a table of `system` not be written.
    #[error(transparent)]
    Facade(Box<crate::Error>),
    /// Files of a table could not be written anew.
    #[error(transparent)]
    Maintenance(Box<crate::maintenance::Error>),
    /// TR0109. Something is created that is there. Say `IF NOT EXISTS` to let it be.
    #[error("{kind} `{name}` is there already")]
    Exists {
        /// `catalogue`, `schema`, `table`, `function`.
        kind: &'static str,
        /// Its full name.
        name: String,
    },
    /// TR0110. A catalogue, schema, function or other thing is named that is not there.
    #[error("{kind} `{name}` does not exist{}", hint(.nearest))]
    Missing {
        /// What it would be.
        kind: &'static str,
        /// As it is written.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// TR0111. Rows are changed of a table that something else keeps: a pipeline, whose positions say what its rows come from and which
    /// would not know of the change, or the program itself.
    #[error("the rows of `{table}` are kept by {by}: a statement may not change them")]
    Kept {
        /// The table.
        table: String,
        /// What keeps it.
        by: &'static str,
    },
    /// TR0112. A mask or row filter is asked for, which hides data from people, and this release does not enforce it: whoever reads the
    /// files sees everything, and so do its own queries. `--accept-unprotected` records it all the same.
    #[error("{clause} on `{table}` would not be enforced: every reader sees the data as it is")]
    Unprotected {
        /// The table.
        table: String,
        /// The clause.
        clause: String,
    },
    /// TR0113. Several rows of a MERGE's source match one row of the table, and which of them shall win is not said.
    #[error("several rows of the source match one row of `{table}`")]
    Several {
        /// The table.
        table: String,
    },
    /// TR0114. Other writers were first at every attempt.
    #[error("{attempts} attempts to change `{table}` each lost a race: {conflict}")]
    Contended {
        /// The table.
        table: String,
        /// How many.
        attempts: u32,
        /// The last one's.
        conflict: String,
    },
    /// TR0115. A privilege is not known, or cannot be given on such a thing.
    #[error("`{privilege}` is no privilege on {kind}{}{}", at(*.span), hint(.nearest))]
    Privilege {
        /// As it is written.
        privilege: String,
        /// On what.
        kind: String,
        /// The nearest known.
        nearest: Option<String>,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// TR0116. A table would be dropped, and its name was not given to `--destroy`.
    #[error("dropping table `{table}` loses its rows and its history: say --destroy {table}")]
    Destroy {
        /// The table.
        table: String,
    },
    /// TR0117. What is inserted does not fit the columns of the table.
    #[error("the rows do not fit the columns of `{table}`: {reason}")]
    Columns {
        /// The table.
        table: String,
        /// Why.
        reason: String,
    },
    /// TR0118. A schema or catalogue that is dropped still holds something.
    #[error("{kind} `{name}` is not empty: it holds {holds}")]
    NotEmpty {
        /// `schema`, `catalogue`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Something in it.
        holds: String,
    },
    /// TR0119. A name has too few parts where none is the current one, or too many.
    #[error("`{name}` names no {kind}: {reason}")]
    Name {
        /// As it is written.
        name: String,
        /// What it should name.
        kind: &'static str,
        /// Why.
        reason: &'static str,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

fn at(span: Option<(u64, u64)>) -> String {
    span.map(|(line, column)| format!(" (line {line}, column {column})")).unwrap_or_default()
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::Lake(error) => Self::Lake(error),
            other => Self::Facade(Box::new(other)),
        }
    }
}

impl Error {
    /// A failure of a query while it runs, as [`crate::sql::query`]'s frame gives it; values of rows are left out.
    ///
    /// ```
    /// use tributary::datafusion::error::DataFusionError;
    /// let error = tributary::sql::Error::run(DataFusionError::Execution("the divisor is zero".to_owned()));
    /// assert_eq!(error.to_string(), "the query failed: the divisor is zero");
    /// ```
    pub fn run(error: DataFusionError) -> Self {
        match of_lake(error) {
            Ok(error) => Self::Lake(error),
            Err(error) => Self::Run { reason: words_without_values(&error), class: class(&error) },
        }
    }
}

/// The lake's error inside, where there is one.
fn of_lake(error: DataFusionError) -> Result<tributary_lake::Error, DataFusionError> {
    match error {
        DataFusionError::External(inside) => match inside.downcast::<tributary_lake::Error>() {
            Ok(error) => Ok(*error),
            Err(inside) => Err(DataFusionError::External(inside)),
        },
        DataFusionError::Context(_, inside) | DataFusionError::Diagnostic(_, inside) => of_lake(*inside),
        other => Err(other),
    }
}

fn class(error: &DataFusionError) -> FaultClass {
    match error.find_root() {
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => FaultClass::Transient,
        DataFusionError::Internal(_) => FaultClass::Bug,
        _ => FaultClass::BadInput,
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Text(source) => source.class(),
            Self::Run { class, .. } => *class,
            Self::Lake(source) => source.class(),
            Self::Facade(source) => source.class(),
            Self::Maintenance(source) => source.class(),
            Self::Contended { .. } => FaultClass::Conflict,
            Self::Exists { .. }
            | Self::Missing { .. }
            | Self::Kept { .. }
            | Self::Unprotected { .. }
            | Self::Several { .. }
            | Self::Privilege { .. }
            | Self::Destroy { .. }
            | Self::Columns { .. }
            | Self::NotEmpty { .. }
            | Self::Name { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        match self {
            Self::Text(source) => source.code(),
            Self::Run { .. } => FaultCode("TR0108"),
            Self::Lake(source) => source.code(),
            Self::Facade(source) => source.code(),
            Self::Maintenance(source) => source.code(),
            Self::Exists { .. } => FaultCode("TR0109"),
            Self::Missing { .. } => FaultCode("TR0110"),
            Self::Kept { .. } => FaultCode("TR0111"),
            Self::Unprotected { .. } => FaultCode("TR0112"),
            Self::Several { .. } => FaultCode("TR0113"),
            Self::Contended { .. } => FaultCode("TR0114"),
            Self::Privilege { .. } => FaultCode("TR0115"),
            Self::Destroy { .. } => FaultCode("TR0116"),
            Self::Columns { .. } => FaultCode("TR0117"),
            Self::NotEmpty { .. } => FaultCode("TR0118"),
            Self::Name { .. } => FaultCode("TR0119"),
        }
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Text(source) => source.next_command(),
            Self::Lake(source) => source.next_command(),
            Self::Facade(source) => source.next_command(),
            Self::Maintenance(source) => source.next_command(),
            Self::Missing { .. } => Some("tributary sql \"SHOW SCHEMAS\"".to_owned()),
            _ => Some(format!("tributary help {}", self.code())),
        }
    }
}
