//! What can be wrong with a SQL text.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::words::words;

/// A SQL text is not executed. Positions are line and column of the text, counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// SQ0001. The text is not SQL of the dialect.
    #[error("the text cannot be read: {reason}")]
    Syntax {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// SQ0002. The text is SQL, but holds a clause, operator, function or type that this release does not execute as the
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
    /// SQ0003. No table has this name.
    #[error("table `{table}` does not exist{}{}", at(*span), nearest(suggestion.as_deref()))]
    NoTable {
        /// As it is written.
        table: String,
        /// The nearest name there is.
        suggestion: Option<String>,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// SQ0004. No table of the query has a column of this name.
    #[error("column `{column}` does not exist{}{}", at(*span), nearest(suggestion.as_deref()))]
    NoColumn {
        /// As it is written.
        column: String,
        /// The nearest name there is.
        suggestion: Option<String>,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// SQ0005. A name stands for more than one thing.
    #[error("`{name}` is ambiguous{}: it can be {candidates}", at(*span))]
    Ambiguous {
        /// As it is written.
        name: String,
        /// What it can be.
        candidates: String,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// SQ0006. A version, an instant or an argument of `table_changes` cannot be read.
    #[error("{what} takes {expected}{}", at(*span))]
    Argument {
        /// Whose argument.
        what: String,
        /// What it takes.
        expected: &'static str,
        /// Where it stands.
        span: Option<(u64, u64)>,
    },
    /// SQ0007. The engine refuses the query: types do not fit, a column is not grouped by, …
    #[error("the query cannot be planned: {reason}{}", at(*span))]
    Plan {
        /// The engine's words.
        reason: String,
        /// Where it stands, as far as it can be told.
        span: Option<(u64, u64)>,
    },
}

/// What is said of a column that stands beside aggregates alone.
const UNGROUPED: &str = "is neither grouped by nor within an aggregate function";

/// The column that the engine misses in GROUP BY.
fn ungrouped(reason: &str) -> Option<String> {
    let (column, _) = reason.split_once("column \"")?.1.split_once("\" must appear in the GROUP BY clause")?;
    Some(column.replace('"', ""))
}

/// What the engine says of types, in the dialect's words.
fn of_types(reason: &str) -> Option<String> {
    if let Some((_, of)) = reason.split_once("Unary operator 'NOT' requires a boolean expression, got ") {
        return Some(format!("NOT takes a boolean, not {}: cast it", in_words(of)));
    }
    if let Some((_, of)) = reason.split_once("Cannot infer common argument type for ") {
        let (operators, sides) = of.split_once("operation ")?;
        let operator = ["IS NOT DISTINCT FROM", "IS DISTINCT FROM", "<=", ">=", "!=", "<", ">", "="];
        let (left, right) = operator.iter().find_map(|operator| sides.split_once(&format!(" {operator} ")))?;
        let what = if operators.contains("comparison") { "compared" } else { "put together" };
        return Some(format!("{} and {} cannot be {what}: cast one side", in_words(left), in_words(right)));
    }
    if let Some((_, of)) = reason.split_once("There isn't a common type to coerce ") {
        let (sides, _) = of.split_once(" in LIKE")?;
        let (left, right) = sides.rsplit_once(" and ")?;
        return Some(format!("LIKE compares strings, not {} with {}: cast them", in_words(left), in_words(right)));
    }
    if let Some((_, of)) = reason.split_once("Cannot access field at argument ") {
        let (of, _) = of.split_once(": type ")?.1.split_once(" is not Struct")?;
        return Some(format!("there is no field inside {}", in_words(of)));
    }
    if let Some((of, _)) = reason.split_once("' failed to match any signature") {
        let (_, function) = of.rsplit_once("Function '")?;
        return Some(format!("`{function}` takes no values of these types"));
    }
    for (said, meant) in [
        ("Aggregate function calls cannot be nested", "an aggregate of an aggregate: compute the inner one in a query within FROM"),
        ("Too many columns! The subquery should only return one column", "a query that is one value has one column"),
        ("Fail to find the coerced type", "these values do not go together: cast some of them"),
    ] {
        if reason.contains(said) {
            return Some(meant.to_owned());
        }
    }
    let (_, of) = reason.split_once("user-defined coercion failed with: ")?;
    let (told, _) = of.split_once(". No function matches").unwrap_or((of, ""));
    Some(told.trim_start_matches("Error during planning: ").to_owned())
}

/// A type by the engine's name for it.
fn in_words(data_type: &str) -> String {
    let plain = data_type.trim().trim_end_matches('.');
    let word = match plain {
        "Utf8" | "LargeUtf8" | "Utf8View" => "a string",
        "Boolean" => "a boolean",
        "Int8" | "Int16" | "Int32" | "Int64" => "a whole number",
        "Float32" | "Float64" => "a double",
        "Date32" => "a date",
        "Null" => "null",
        "Binary" => "a binary",
        other if other.starts_with("Timestamp") => "a timestamp",
        other if other.starts_with("Decimal") => "a decimal",
        other if other.starts_with("List") => "an array",
        other if other.starts_with("Struct") => "a struct",
        other if other.starts_with("Map") => "a map",
        other => other,
    };
    word.to_owned()
}

fn at(span: Option<(u64, u64)>) -> String {
    span.map(|(line, column)| format!(" (line {line}, column {column})")).unwrap_or_default()
}

fn nearest(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// Line and column of a span, where it has one.
pub(crate) fn position(span: Span) -> Option<(u64, u64)> {
    (span.start.line > 0).then_some((span.start.line, span.start.column))
}

impl Error {
    pub(crate) fn refused(what: impl Into<String>, span: Span) -> Self {
        Self::Refused { what: what.into(), hint: None, span: position(span) }
    }

    pub(crate) fn refused_with_hint(what: impl Into<String>, hint: impl Into<String>, span: Span) -> Self {
        Self::Refused { what: what.into(), hint: Some(hint.into()), span: position(span) }
    }

    /// A refusal of the engine.
    pub(crate) fn plan(error: DataFusionError) -> Self {
        let reason = words(&error);
        let ungrouped = ungrouped(&reason).map(|column| format!("column `{column}` {UNGROUPED}"));
        Self::Plan { reason: ungrouped.or_else(|| of_types(&reason)).unwrap_or(reason), span: None }
    }
}

impl Error {
    /// Line and column of the text, where they are known.
    pub fn span(&self) -> Option<(u64, u64)> {
        match self {
            Self::Syntax { reason } => {
                let (line, column) = reason.rsplit_once(" at Line: ")?.1.split_once(", Column: ")?;
                Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
            }
            Self::Refused { span, .. }
            | Self::NoTable { span, .. }
            | Self::NoColumn { span, .. }
            | Self::Ambiguous { span, .. }
            | Self::Argument { span, .. }
            | Self::Plan { span, .. } => *span,
        }
    }

    /// What is wrong, without where: for whoever says that otherwise.
    pub fn without_place(&self) -> String {
        let told = self.to_string();
        match self.span() {
            Some((line, column)) => {
                told.replacen(&at(Some((line, column))), "", 1).replacen(&format!(" at Line: {line}, Column: {column}"), "", 1)
            }
            None => told,
        }
    }

    /// The name that is not known, where it is about one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::NoTable { table: name, .. } | Self::NoColumn { column: name, .. } | Self::Ambiguous { name, .. } => Some(name),
            Self::Syntax { .. } | Self::Refused { .. } | Self::Argument { .. } | Self::Plan { .. } => None,
        }
    }

    /// The same at a place, where it has none of its own.
    pub(crate) fn placed(mut self, place: impl FnOnce(&Self) -> Option<Span>) -> Self {
        if self.span().is_none() {
            let found = place(&self).and_then(position);
            if let Self::Refused { span, .. } | Self::Plan { span, .. } | Self::NoColumn { span, .. } = &mut self {
                *span = found;
            }
        }
        self
    }

    /// Whether it says the same, wherever.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.without_place() == other.without_place()
    }

    /// The column that is neither grouped by nor within an aggregate.
    pub(crate) fn ungrouped(&self) -> Option<String> {
        let Self::Plan { reason, .. } = self else { return None };
        let name = reason.strip_prefix("column `")?.split_once(&format!("` {UNGROUPED}"))?.0;
        Some(name.rsplit('.').next().unwrap_or(name).to_owned())
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Syntax { .. } => "SQ0001",
            Self::Refused { .. } => "SQ0002",
            Self::NoTable { .. } => "SQ0003",
            Self::NoColumn { .. } => "SQ0004",
            Self::Ambiguous { .. } => "SQ0005",
            Self::Argument { .. } => "SQ0006",
            Self::Plan { .. } => "SQ0007",
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::NoTable { .. } => Some("tributary show tables".to_owned()),
            _ => Some(format!("tributary help {}", self.code())),
        }
    }
}
