//! Which tables a statement reads, and how.

use std::ops::ControlFlow;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, Spanned, TableFactor, TableFunctionArgs, TableVersion, TypedString, Value, Visit,
    Visitor,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;
use tributary_sql_dialect::name_parts;

use crate::{Error, calls, error, range, unfold};

/// A table as a statement uses it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableUse {
    /// One to three parts, as they are written.
    pub parts: Vec<String>,
    /// What is read of it.
    pub read: Read,
}

/// What is read of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Read {
    /// Its latest version.
    Latest,
    /// The rows of one version.
    At(Point),
    /// The changes between two points, both included; without an end up to the latest version.
    Changes(Point, Option<Point>),
}

/// A version, or the instant that stands for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// A version of the table.
    Version(u64),
    /// The version that was the latest then.
    Instant(DateTime<Utc>),
}

impl Read {
    /// The words that say what is read; none for the latest version.
    pub(crate) fn how(&self) -> Option<&'static str> {
        match self {
            Self::Latest => None,
            Self::At(Point::Version(_)) => Some("VERSION AS OF"),
            Self::At(Point::Instant(_)) => Some("TIMESTAMP AS OF"),
            Self::Changes(..) => Some("table_changes"),
        }
    }

    /// A name for what is read of a table of this name.
    pub(crate) fn describe(&self, table: &str) -> String {
        let point = |point: &Point| match point {
            Point::Version(version) => format!("v{version}"),
            Point::Instant(instant) => instant.to_rfc3339(),
        };
        match self {
            Self::Latest => table.to_owned(),
            Self::At(at) => format!("{table}@{}", point(at)),
            Self::Changes(from, to) => {
                let to = to.as_ref().map_or_else(|| "latest".to_owned(), point);
                format!("changes of {table} from {} to {to}", point(from))
            }
        }
    }
}

/// Every use of a table, names of common table expressions included.
pub(crate) fn collect(part: &impl Visit) -> Result<Vec<TableUse>, Error> {
    struct Collector(Vec<TableUse>);
    impl Visitor for Collector {
        type Break = Error;

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
            match TableUse::of(factor) {
                Ok(Some(used)) if !self.0.contains(&used) => self.0.push(used),
                Ok(_) => {}
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        }
    }
    let mut collector = Collector(Vec::new());
    match part.visit(&mut collector) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(collector.0),
    }
}

impl TableUse {
    /// What a factor of a FROM clause uses; `None` when it is no table.
    ///
    /// # Errors
    /// For a table function that there is not, and for arguments that cannot be read.
    pub fn of(factor: &TableFactor) -> Result<Option<Self>, Error> {
        let TableFactor::Table { name, args, version, .. } = factor else { return Ok(None) };
        let parts = parts(name)?;
        match args {
            None => Ok(Some(Self { parts, read: version.as_ref().map(travel).transpose()?.map_or(Read::Latest, Read::At) })),
            Some(args) if parts.len() == 1 && parts[0].eq_ignore_ascii_case("table_changes") => changes(name, args).map(Some),
            Some(_) if range::is_range(name) || unfold::is_rows(&calls::written(name)) => Ok(None),
            Some(_) => Err(Error::refused(format!("the table function `{name}`"), name.span())),
        }
    }
}

fn parts(name: &ObjectName) -> Result<Vec<String>, Error> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.clone())).collect();
    parts.filter(|parts| (1..=3).contains(&parts.len())).ok_or_else(|| Error::refused(format!("the table name `{name}`"), name.span()))
}

fn travel(version: &TableVersion) -> Result<Point, Error> {
    match version {
        TableVersion::VersionAsOf(expression) => self::version(expression),
        TableVersion::TimestampAsOf(expression) => timestamp(expression),
        other => Err(Error::refused(format!("the clause {other}"), Span::empty())),
    }
}

/// What stands behind `VERSION AS OF`.
pub(crate) fn version(expression: &Expr) -> Result<Point, Error> {
    let wrong = || argument("VERSION AS OF", "a whole number", expression);
    text_or_number(expression).and_then(|text| text.parse().ok()).map(Point::Version).ok_or_else(wrong)
}

/// What stands behind `TIMESTAMP AS OF`.
pub(crate) fn timestamp(expression: &Expr) -> Result<Point, Error> {
    let wrong = || argument("TIMESTAMP AS OF", INSTANT, expression);
    text(expression).and_then(|text| instant(&text)).map(Point::Instant).ok_or_else(wrong)
}

const INSTANT: &str = "an instant in quotes, such as '2024-05-01', '2024-05-01 12:00:00' (UTC) or '2024-05-01T12:00:00+02:00'";

fn changes(function: &ObjectName, arguments: &TableFunctionArgs) -> Result<TableUse, Error> {
    let wrong = |expected| Error::Argument { what: "table_changes".to_owned(), expected, span: error::position(function.span()) };
    if arguments.settings.is_some() {
        return Err(Error::refused("the clause SETTINGS", function.span()));
    }
    let expressions: Option<Vec<&Expr>> = arguments
        .args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
            _ => None,
        })
        .collect();
    let shape = "a table's name in quotes, the first version or instant, and optionally the last";
    let expressions = expressions.filter(|expressions| (2..=3).contains(&expressions.len())).ok_or_else(|| wrong(shape))?;
    let name = text(expressions[0]).ok_or_else(|| wrong(shape))?;
    let parts = name_parts(&name).filter(|parts| (1..=3).contains(&parts.len())).ok_or_else(|| wrong(shape))?;
    let parts = parts.into_iter().map(|part| part.value).collect();
    let point = |expression: &Expr| {
        let version = number(expression).and_then(|text| text.parse().ok()).map(Point::Version);
        version
            .or_else(|| text(expression).and_then(|text| instant(&text)).map(Point::Instant))
            .ok_or_else(|| argument("table_changes", "versions (whole numbers) or instants (in quotes)", expression))
    };
    let from = point(expressions[1])?;
    let to = expressions.get(2).map(|expression| point(expression)).transpose()?;
    Ok(TableUse { parts, read: Read::Changes(from, to) })
}

fn argument(what: &str, expected: &'static str, expression: &Expr) -> Error {
    Error::Argument { what: what.to_owned(), expected, span: error::position(expression.span()) }
}

fn text_or_number(expression: &Expr) -> Option<String> {
    number(expression).or_else(|| text(expression))
}

fn number(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, false) => Some(digits.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// The text of a quoted literal, plain or with a type before it.
fn text(expression: &Expr) -> Option<String> {
    let value = match expression {
        Expr::Value(value) | Expr::TypedString(TypedString { value, .. }) => value,
        _ => return None,
    };
    match &value.value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
        _ => None,
    }
}

/// An instant as people type it; without a zone it is in UTC, a day is its start. None where it is none.
///
/// ```
/// assert_eq!(tributary_spark_sql::instant("2024-05-01"), tributary_spark_sql::instant("2024-05-01T02:00:00+02:00"));
/// assert_eq!(tributary_spark_sql::instant("soon"), None);
/// ```
pub fn instant(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Some(instant.to_utc());
    }
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"] {
        if let Ok(local) = NaiveDateTime::parse_from_str(text, format) {
            return Some(local.and_utc());
        }
    }
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0).map(|start| start.and_utc())
}
