//! What can be wrong with pipeline SQL. Each variant's first paragraph is what happened, the second what to do.

use tributary_fault::{Fault, FaultClass, FaultCode};
use tributary_specs::Place;

/// One kind of mistake in pipeline SQL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not text: it is not UTF-8, or has a control character that no text has.
    ///
    /// Give SQL files only; save the file as UTF-8.
    #[error("the file is not text: {found}")]
    NotText {
        /// What stands there.
        found: String,
    },
    /// A file, a statement or an expression is larger or nests deeper than anybody writes.
    ///
    /// Cut it into several datasets or views.
    #[error("{what} has more than {most} {of}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The limit.
        most: usize,
        /// Of what.
        of: &'static str,
    },
    /// A string, a comment or a name in back-quotes is opened and never closed, or closed only in a later statement.
    ///
    /// Close it where it is meant to end.
    #[error("{what} that begins here is never closed")]
    Unterminated {
        /// What is opened.
        what: String,
        /// What closes it.
        close: &'static str,
    },
    /// A sign stands outside strings that SQL does not have: the curly quotes and long dashes of word processors and web
    /// pages, or a letter beyond ASCII in a name without back-quotes.
    ///
    /// Type the plain sign; put names with such letters in back-quotes.
    #[error("{}", foreign(*sign, *name))]
    ForeignSign {
        /// The sign.
        sign: char,
        /// The plain sign that is meant.
        instead: Option<&'static str>,
        /// Whether it is a letter.
        name: bool,
    },
    /// `${name}` or `:name` stands for nothing: neither a `SET` before it in the file, nor the pipeline's `configuration`,
    /// nor the command line gives it a value.
    ///
    /// Set it, for example with `--conf name=value`, or correct the spelling.
    #[error("the parameter {name:?} is not set{}", hint(nearest))]
    ParameterUnset {
        /// The parameter.
        name: String,
        /// The nearest one that is set.
        nearest: Option<String>,
    },
    /// The value of a parameter would change the statement it stands in: it has a quote, a semicolon or a comment mark outside
    /// of a string.
    ///
    /// Put the reference in quotes in the file, or give a value that is a name, a number or one whole string.
    #[error("the value of the parameter {name:?} cannot stand here: {reason}")]
    ParameterValue {
        /// The parameter.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A statement is not written as the grammar wants it.
    ///
    /// The message names what was expected at this place.
    #[error("{of}: {expected} is expected here, not {found}")]
    Syntax {
        /// The statement or dataset.
        of: String,
        /// What the grammar wants.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A statement begins with words that pipelines do not have.
    ///
    /// Correct the spelling; statements that are not part of a pipeline are for `tributary sql`.
    #[error("{statement} is not a statement of pipelines{}", hint(nearest))]
    UnknownStatement {
        /// How it begins.
        statement: String,
        /// The nearest statement there is.
        nearest: Option<String>,
    },
    /// A dataset or flow has a clause that it cannot have.
    ///
    /// Correct the spelling, or take the clause out.
    #[error("{of} has no clause {clause}{}", hint(nearest))]
    UnknownClause {
        /// The dataset or flow.
        of: String,
        /// The clause as it begins.
        clause: String,
        /// The nearest clause there is.
        nearest: Option<String>,
    },
    /// A clause, an option or a property stands twice.
    ///
    /// Take one of the two out.
    #[error("{of}: {clause} stands twice")]
    ClauseTwice {
        /// The dataset or flow.
        of: String,
        /// The clause.
        clause: String,
    },
    /// A clause without which the statement means nothing is not there.
    ///
    /// Add it.
    #[error("{of}: the clause {clause} is missing")]
    ClauseMissing {
        /// The dataset or flow.
        of: String,
        /// The clause.
        clause: &'static str,
        /// How it is written.
        instead: String,
    },
    /// A clause contradicts another one, or what it stands in.
    ///
    /// The message says what with; keep one of them.
    #[error("{of}: {clause} cannot stand here: {reason}")]
    ClauseRefused {
        /// The dataset or flow.
        of: String,
        /// The clause.
        clause: String,
        /// Why not.
        reason: String,
        /// What to write.
        instead: Option<String>,
    },
    /// A query cannot be read.
    ///
    /// Mend it at the place the message names; `tributary sql` runs a query by itself.
    #[error("the query of {of} cannot be read: {reason}")]
    QueryUnreadable {
        /// The dataset or flow.
        of: String,
        /// What the parser found.
        reason: String,
        /// What to write.
        instead: Option<String>,
    },
    /// An expression cannot be read, or asks what an expression at this place may not ask.
    ///
    /// Mend it; a rule looks at the columns of one row only.
    #[error("{of}: the expression of {clause} cannot be read: {reason}")]
    ExpressionUnreadable {
        /// The dataset or flow.
        of: String,
        /// The clause.
        clause: String,
        /// What the parser found.
        reason: String,
    },
    /// A column's type is not one that tables have.
    ///
    /// Use the types of the message's page SP0002.
    #[error("{of}: column {column:?} has no readable type: {reason}")]
    TypeUnreadable {
        /// The dataset.
        of: String,
        /// The column.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// A name is not that of a dataset: it has too many parts, or lacks the schema while the pipeline has none.
    ///
    /// Write `schema.table` or `catalogue.schema.table`.
    #[error("{name} cannot be the name of a dataset: {reason}")]
    NameUnreadable {
        /// As it is written.
        name: String,
        /// Why not.
        reason: String,
        /// What to write.
        instead: Option<String>,
    },
    /// Two statements define one dataset, or two flows have one name.
    ///
    /// Rename one, or take it out.
    #[error("{what} {name} is already defined in {first}")]
    NameTwice {
        /// `dataset` or `flow`.
        what: &'static str,
        /// The name.
        name: String,
        /// Where the first one stands.
        first: Place,
    },
    /// A flow writes into a table that no statement of the pipeline defines as a streaming table.
    ///
    /// Add `CREATE OR REFRESH STREAMING TABLE name;`, or correct the spelling.
    #[error("the flow writes into {target}, {found}{}", hint(nearest))]
    NoTarget {
        /// The target.
        target: String,
        /// What it is instead.
        found: &'static str,
        /// The nearest streaming table.
        nearest: Option<String>,
    },
    /// A dataset reads `LIVE.name`, and no statement of the pipeline defines it.
    ///
    /// Correct the spelling, add the dataset, or write the full name of a table that something else makes.
    #[error("{of} reads LIVE.{name}, which is not defined in this pipeline{}", hint(nearest))]
    SourceUnknown {
        /// The dataset.
        of: String,
        /// What it reads.
        name: String,
        /// The nearest dataset there is.
        nearest: Option<String>,
    },
    /// Datasets read each other in a circle, so that none can be first.
    ///
    /// Break the circle at one of its edges.
    #[error("datasets read each other in a circle: {cycle}")]
    Cycle {
        /// The datasets with arrows between them.
        cycle: String,
    },
    /// A stream reads a materialized view, whose rows are replaced and not appended.
    ///
    /// Stream from what the view reads, or make the reading dataset a materialized view too.
    #[error("{of} streams from the materialized view {view}, whose rows are replaced and not appended")]
    StreamFromView {
        /// The dataset.
        of: String,
        /// The view.
        view: String,
    },
    /// A streaming table or a flow reads its source as a whole and not as a stream.
    ///
    /// Write `STREAM(name)`, or make it a materialized view.
    #[error("{of} reads no stream: {found}")]
    NotStreaming {
        /// The dataset or flow.
        of: String,
        /// What it reads.
        found: String,
        /// What to write.
        instead: String,
    },
    /// A function that reads files or topics has an option that it does not know, lacks one, or has one of the wrong kind.
    ///
    /// The message names the option and what it may be.
    #[error("{of}: {function}: {reason}")]
    SourceOption {
        /// The dataset.
        of: String,
        /// `read_files`, `read_kafka` or `cloud_files`.
        function: String,
        /// What is wrong.
        reason: String,
    },
    /// A table property has a value that it cannot have.
    ///
    /// The message lists the values.
    #[error("{of}: the property {property:?} {reason}")]
    PropertyValue {
        /// The dataset.
        of: String,
        /// The property.
        property: String,
        /// What is wrong.
        reason: String,
    },
    /// The pipeline means something that this release does not execute and that cannot be left out without other rows coming
    /// out.
    ///
    /// Say it in another way, which the message names where there is one.
    #[error("{of}: {what} is not executed by this release")]
    NotExecuted {
        /// The dataset or flow.
        of: String,
        /// What.
        what: String,
        /// Another way.
        instead: Option<String>,
    },
    /// What the SQL makes breaks a rule of the pipeline's specs.
    ///
    /// The message's own code has a page.
    #[error("{of}: {problem}")]
    Spec {
        /// The dataset.
        of: String,
        /// What the rule says.
        problem: tributary_specs::Error,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

fn foreign(sign: char, name: bool) -> String {
    match name {
        true => format!("the letter {sign} (U+{:04X}) stands in a name without back-quotes", u32::from(sign)),
        false => format!("the sign {sign} (U+{:04X}) is no sign of SQL", u32::from(sign)),
    }
}

impl Error {
    /// What to type instead, where that can be said.
    pub(crate) fn instead(&self) -> Option<String> {
        match self {
            Self::Unterminated { close, .. } => Some(format!("close it with {close}")),
            Self::ForeignSign { instead: Some(instead), .. } => Some(format!("type {instead}")),
            Self::ForeignSign { name: true, .. } => Some("put the name in back-quotes".to_owned()),
            Self::ParameterUnset { name, .. } => Some(format!("set it with --conf {name}=…")),
            Self::ParameterValue { .. } => Some("put the reference in quotes".to_owned()),
            Self::ClauseMissing { instead, .. } | Self::NotStreaming { instead, .. } => Some(format!("write {instead}")),
            Self::ClauseRefused { instead, .. }
            | Self::QueryUnreadable { instead, .. }
            | Self::NameUnreadable { instead, .. }
            | Self::NotExecuted { instead, .. } => instead.as_ref().map(|instead| format!("write {instead}")),
            Self::NoTarget { target, nearest: None, .. } => Some(format!("add CREATE OR REFRESH STREAMING TABLE {target};")),
            _ => None,
        }
    }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::NotText { .. } => "PS0001",
            Self::TooLarge { .. } => "PS0002",
            Self::Unterminated { .. } => "PS0003",
            Self::ForeignSign { .. } => "PS0004",
            Self::ParameterUnset { .. } => "PS0005",
            Self::ParameterValue { .. } => "PS0006",
            Self::Syntax { .. } => "PS0007",
            Self::UnknownStatement { .. } => "PS0008",
            Self::UnknownClause { .. } => "PS0009",
            Self::ClauseTwice { .. } => "PS0010",
            Self::ClauseMissing { .. } => "PS0011",
            Self::ClauseRefused { .. } => "PS0012",
            Self::QueryUnreadable { .. } => "PS0013",
            Self::ExpressionUnreadable { .. } => "PS0014",
            Self::TypeUnreadable { .. } => "PS0015",
            Self::NameUnreadable { .. } => "PS0016",
            Self::NameTwice { .. } => "PS0017",
            Self::NoTarget { .. } => "PS0018",
            Self::SourceUnknown { .. } => "PS0019",
            Self::Cycle { .. } => "PS0020",
            Self::StreamFromView { .. } => "PS0021",
            Self::NotStreaming { .. } => "PS0022",
            Self::SourceOption { .. } => "PS0023",
            Self::PropertyValue { .. } => "PS0024",
            Self::NotExecuted { .. } => "PS0025",
            Self::Spec { problem, .. } => return problem.code(),
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(format!("tributary help {}", self.code()))
    }
}
