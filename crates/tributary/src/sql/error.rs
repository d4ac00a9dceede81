//! What can be wrong with a SQL text.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

/// A SQL text is not executed. Positions are line and column of the text, counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// TR0101. The text is not SQL of the dialect.
    #[error("the text is not one query: {reason}")]
    Syntax {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// TR0102. The text is SQL, but holds a clause, operator, function or type that this release does not execute as the
    /// dialect means it. It is refused because the engine below would ignore it or answer something else. The message names
    /// it and, where there is one, a way to say the same.
    #[error("{what} is not executed by this release{}{}", at(*span), hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Refused {
        /// The clause, operator, function or type.
        what: String,
        /// A way to say the same, or why not.
        hint: Option<String>,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// TR0103. No table has this name.
    #[error("table `{table}` does not exist{}{}", at(*span), nearest(suggestion.as_deref()))]
    NoTable {
        /// As it is written.
        table: String,
        /// The nearest name there is.
        suggestion: Option<String>,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// TR0104. No table of the query has a column of this name.
    #[error("column `{column}` does not exist{}{}", at(*span), nearest(suggestion.as_deref()))]
    NoColumn {
        /// As it is written.
        column: String,
        /// The nearest name there is.
        suggestion: Option<String>,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// TR0105. A name stands for more than one thing.
    #[error("`{name}` is ambiguous{}: it can be {candidates}", at(*span))]
    Ambiguous {
        /// As it is written.
        name: String,
        /// What it can be.
        candidates: String,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// TR0106. A version, an instant or an argument of `table_changes` cannot be read.
    #[error("{what} takes {expected}{}", at(*span))]
    Argument {
        /// Whose argument.
        what: String,
        /// What it takes.
        expected: &'static str,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// TR0107. The engine refuses the query: types do not fit, a column is not grouped by, …
    #[error("the query cannot be planned: {reason}")]
    Plan {
        /// The engine's words.
        reason: String,
    },
    /// TR0108. The query was planned and then failed: a division by zero, a text that is no number, too little memory, a store
    /// that did not answer. Say `--memory-limit` where memory was short; a store may answer when asked again.
    #[error("the query failed: {reason}")]
    Run {
        /// The engine's words.
        reason: String,
        /// What may be done about it.
        class: FaultClass,
    },
    /// The lake refused or failed.
    #[error(transparent)]
    Lake(#[from] tributary_lake::Error),
}

fn at(span: Option<(u64, u64)>) -> String {
    span.map(|(line, column)| format!(" (line {line}, column {column})")).unwrap_or_default()
}

fn nearest(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// Line and column of a span, where it has one.
pub(super) fn position(span: Span) -> Option<(u64, u64)> {
    (span.start.line > 0).then_some((span.start.line, span.start.column))
}

impl Error {
    pub(super) fn refused(what: impl Into<String>, span: Span) -> Self {
        Self::Refused { what: what.into(), hint: None, span: position(span) }
    }

    pub(super) fn refused_with_hint(what: impl Into<String>, hint: impl Into<String>, span: Span) -> Self {
        Self::Refused { what: what.into(), hint: Some(hint.into()), span: position(span) }
    }

    /// A refusal of the engine; an error of the lake that travelled through it stays itself.
    pub(super) fn plan(error: DataFusionError) -> Self {
        match of_lake(error) {
            Ok(error) => Self::Lake(error),
            Err(error) => Self::Plan { reason: words(&error) },
        }
    }

    /// A failure of a query while it runs, as [`crate::sql::query`]'s frame gives it.
    ///
    /// ```
    /// use tributary::datafusion::error::DataFusionError;
    /// let error = tributary::sql::Error::run(DataFusionError::Execution("the divisor is zero".to_owned()));
    /// assert_eq!(error.to_string(), "the query failed: the divisor is zero");
    /// ```
    pub fn run(error: DataFusionError) -> Self {
        match of_lake(error) {
            Ok(error) => Self::Lake(error),
            Err(error) => Self::Run { reason: words(&error), class: class(&error) },
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

/// What the engine says, in one line, without its own prefixes.
fn words(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::Plan(text) | DataFusionError::Execution(text) | DataFusionError::NotImplemented(text) => text.clone(),
        root => root.strip_backtrace(),
    };
    let text = text.split("\n\nbacktrace:").next().unwrap_or_default();
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
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
            Self::Lake(source) => source.class(),
            Self::Run { class, .. } => *class,
            Self::Syntax { .. }
            | Self::Refused { .. }
            | Self::NoTable { .. }
            | Self::NoColumn { .. }
            | Self::Ambiguous { .. }
            | Self::Argument { .. }
            | Self::Plan { .. } => FaultClass::BadInput,
        }
    }

    fn code(&self) -> FaultCode {
        match self {
            Self::Syntax { .. } => FaultCode("TR0101"),
            Self::Refused { .. } => FaultCode("TR0102"),
            Self::NoTable { .. } => FaultCode("TR0103"),
            Self::NoColumn { .. } => FaultCode("TR0104"),
            Self::Ambiguous { .. } => FaultCode("TR0105"),
            Self::Argument { .. } => FaultCode("TR0106"),
            Self::Plan { .. } => FaultCode("TR0107"),
            Self::Run { .. } => FaultCode("TR0108"),
            Self::Lake(source) => source.code(),
        }
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::NoTable { .. } => Some("tributary show tables".to_owned()),
            Self::Lake(source) => source.next_command(),
            _ => Some(format!("tributary help {}", self.code())),
        }
    }
}
