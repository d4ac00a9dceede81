//! What can be wrong with a spec. Each variant's first paragraph is what happened, the second what to do.

use tributary_fault::{Fault, FaultClass, FaultCode};

use crate::problem::Location;
use crate::table_name::TableName;

/// One kind of mistake in a spec, a name or a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A table name is not of the form `schema.table`.
    ///
    /// Write both parts with one dot between them; put a part that holds a dot or a blank in back-quotes.
    #[error("{text:?} is not a table name of the form schema.table: {reason}")]
    TableNameUnreadable {
        /// The name as given.
        text: String,
        /// What stands in the way.
        reason: String,
    },
    /// A column type is not one of the types a Delta table has.
    ///
    /// Use boolean, byte, short, integer, long, float, double, decimal(p,s), string, binary, date, timestamp,
    /// timestamp_ntz, `array<…>`, `map<…,…>` or `struct<name:type,…>`.
    #[error("{text:?} is not a column type: {reason}")]
    TypeUnreadable {
        /// The type as given.
        text: String,
        /// What stands in the way.
        reason: String,
    },
    /// A column has an Arrow type that no Delta type can hold without changing values.
    ///
    /// Cast the column in the query, for example an unsigned integer to `BIGINT` or a nanosecond time to microseconds.
    #[error("column {column:?} has type {arrow}, which no Delta table can hold: {hint}")]
    TypeNotDelta {
        /// The column, with dots for nested fields.
        column: String,
        /// The Arrow type.
        arrow: String,
        /// What to cast it to.
        hint: &'static str,
    },
    /// A file is not well-formed YAML, or uses parts of YAML that specs do without (several documents, tags of one's own).
    ///
    /// Mend the file at the line and column; indentation and unquoted `:` or `#` are the usual causes.
    #[error("not readable as YAML: {reason}")]
    YamlUnreadable {
        /// What the parser found.
        reason: String,
    },
    /// A mapping has a field that specs do not know.
    ///
    /// Correct the spelling, or take the field out; `docs/reference/pipeline.schema.json` lists all fields.
    #[error("there is no field {field:?} here{}", hint(nearest))]
    UnknownField {
        /// The field as written.
        field: String,
        /// The nearest name of a field that stands here.
        nearest: Option<String>,
    },
    /// A value has another type than its field.
    ///
    /// Write the value in the form the message names; put numbers and `true` that are meant as text in quotes.
    #[error("{expected} is expected here, not {found}")]
    WrongType {
        /// What stands in its field, for example `a list`.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A value is none of the choices of its field.
    ///
    /// Take one of the choices the message lists.
    #[error("{found:?} is not one of {choices}{}", hint(nearest))]
    UnknownChoice {
        /// The value as written.
        found: String,
        /// All choices.
        choices: String,
        /// The nearest of them.
        nearest: Option<String>,
    },
    /// A choice was given an option that it does not have.
    ///
    /// Take the option out, or take the choice that has it.
    #[error("{choice} has no option {option:?}{}", other.as_ref().map(|other| format!("; it belongs to {other}")).unwrap_or_default())]
    OptionOfAnother {
        /// The option.
        option: String,
        /// The choice.
        choice: String,
        /// The choice that has it.
        other: Option<String>,
    },
    /// A field without which a spec means nothing is not there.
    ///
    /// Add the field.
    #[error("the field {field:?} is missing")]
    MissingField {
        /// The field.
        field: String,
    },
    /// A key stands twice in one mapping; YAML readers differ in which one counts.
    ///
    /// Take one of the two out.
    #[error("{key:?} is already given in line {first_line}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it stands first.
        first_line: usize,
    },
    /// Two files of one pipeline name it differently.
    ///
    /// Give the same name in both, or in one only.
    #[error("this file names the pipeline {name:?}, {other_file} names it {other:?}")]
    PipelineNameDiffers {
        /// The name here.
        name: String,
        /// The name there.
        other: String,
        /// There.
        other_file: String,
    },
    /// A name, an expression or a list is empty.
    ///
    /// Give it, or take the field out.
    #[error("{what} is empty")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// A column, table or feed has a name that it may not have.
    ///
    /// Rename it; names that begin with `__`, the change feed's columns and the columns bronze adds are taken.
    #[error("{name:?} may not be the name of {what}: {reason}")]
    NameForbidden {
        /// The name.
        name: String,
        /// Of what.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// A name stands twice in a list where it may stand once; case does not make two names of one.
    ///
    /// Take one out or rename it.
    #[error("{name:?} and {first:?} are the same {what}; case does not count")]
    NameTwice {
        /// The second one.
        name: String,
        /// The first one.
        first: String,
        /// Of what.
        what: &'static str,
    },
    /// Two datasets write one table.
    ///
    /// Give one of them another table.
    #[error("table {table} is already made by {first}")]
    TableTwice {
        /// The table.
        table: TableName,
        /// The dataset that makes it first.
        first: Box<Location>,
    },
    /// Two datasets would keep their quarantined rows in one table, though their rows differ in shape.
    ///
    /// Name the feed after its source (`shop_orders`), or set `quarantine` of one of the two.
    #[error("quarantine {table} is already used by {first}; rename the feed or set the field quarantine")]
    QuarantineTwice {
        /// The quarantine table.
        table: TableName,
        /// The dataset that uses it first.
        first: Box<Location>,
    },
    /// A silver dataset that merges has no key.
    ///
    /// Name the key columns, or use the policy `append`.
    #[error("keys are required by the policy {policy}")]
    KeysMissing {
        /// The policy.
        policy: &'static str,
    },
    /// Nothing says in which order changes of a key are applied: the source has no position and no sequence is declared.
    ///
    /// Name the column that orders the changes of a key in `sequence_by`.
    #[error("sequence_by is required: rows of {source_table} carry no source position")]
    SequenceMissing {
        /// The stream's table.
        source_table: TableName,
    },
    /// An option means nothing under the dataset's policy, format or decoder.
    ///
    /// Take the option out, or choose what it belongs to.
    #[error("{option} has no meaning with {with}{}", reason(why))]
    OptionWithoutEffect {
        /// The option.
        option: &'static str,
        /// The policy, format or decoder.
        with: String,
        /// Why, where it is not plain.
        why: &'static str,
    },
    /// `apply_as_truncate_when` stands on a dataset that keeps history (TRUNCATE_REQUIRES_SCD1).
    ///
    /// Take it out or use `scd_type1`; a truncate sent by the source itself closes all open rows without it.
    #[error("TRUNCATE_REQUIRES_SCD1: apply_as_truncate_when is refused for scd_type2")]
    TruncateRequiresScd1,
    /// Two layouts that exclude each other are both given.
    ///
    /// Keep one of them.
    #[error("{first} and {second} exclude each other")]
    LayoutTwice {
        /// The first layout.
        first: &'static str,
        /// The second layout.
        second: &'static str,
    },
    /// A layout names a column it cannot use.
    ///
    /// Choose another column.
    #[error("{layout} cannot use column {column:?}: {reason}")]
    LayoutColumn {
        /// The layout.
        layout: &'static str,
        /// The column.
        column: String,
        /// Why not.
        reason: &'static str,
    },
    /// A list names a column that the declared schema does not have.
    ///
    /// Correct the spelling, or declare the column.
    #[error("there is no column {column:?} in {of}{}", hint(nearest))]
    ColumnUnknown {
        /// The column.
        column: String,
        /// In what it was looked for.
        of: String,
        /// The nearest one.
        nearest: Option<String>,
    },
    /// A dataset reads a table that nothing makes.
    ///
    /// Correct the spelling, add the feed or dataset, or list a table made elsewhere under `external`.
    #[error("no feed or dataset makes {table}{}", hint(nearest))]
    SourceUnknown {
        /// The table.
        table: TableName,
        /// The nearest one that is made.
        nearest: Option<String>,
    },
    /// A gold dataset's query cannot be read as SQL, so that what it reads is not known.
    ///
    /// Mend the query; `tributary sql` runs it by itself.
    #[error("the query cannot be read: {reason}")]
    QueryUnreadable {
        /// What the SQL parser found.
        reason: String,
    },
    /// Datasets read each other in a circle, so that none can be first.
    ///
    /// Break the circle at one of its edges.
    #[error("datasets read each other in a circle: {cycle}")]
    Cycle {
        /// The tables with arrows between them.
        cycle: String,
    },
    /// A silver dataset streams from a gold view, whose rows are replaced and not appended.
    ///
    /// Stream from what the view reads; a view can only be looked up, as a source after the first.
    #[error("{table} is a gold view; it can be looked up but not be the stream")]
    StreamFromView {
        /// The view.
        table: TableName,
    },
    /// The sequence is text, and texts of varying length order "10" before "9".
    ///
    /// Cast it to a number or a time, or set the property `tributary.sequence.text` to `true` where all values have one
    /// length or text order is meant.
    #[error("sequence column {column:?} is text; cast it, or set the property {property} to true")]
    SequenceIsText {
        /// The column.
        column: String,
        /// The property that allows it.
        property: &'static str,
    },
    /// A sequence has a type without an order.
    ///
    /// Use a number, a time or a struct of these.
    #[error("sequence column {column:?} has type {data_type}, which has no order")]
    SequenceUnordered {
        /// The column.
        column: String,
        /// Its type.
        data_type: String,
    },
    /// A merge condition would make the result depend on how changes are cut into batches or in which order they arrive.
    ///
    /// The forms that cannot are: `update_when` and `insert_when` with the same text over `source.` columns; `insert_when` over
    /// key columns (any source column for `append` and `insert_only`); `delete_when` over `source.` columns; and `update_when`
    /// that repeats the order, `source.s >= target.s`. To accept only growing values use the policy `monotonic_advance`.
    #[error("{condition} would make the result depend on arrival: {reason}")]
    ConditionDependsOnArrival {
        /// `update_when`, `insert_when` or `delete_when`.
        condition: &'static str,
        /// What in it does.
        reason: String,
    },
    /// A property is refused, misspelt or has a value it cannot have.
    ///
    /// Take it out or correct it.
    #[error("property {property:?} is refused: {reason}")]
    PropertyRefused {
        /// The property.
        property: String,
        /// Why.
        reason: String,
    },
    /// A column declares something that our tables do not have (identity, defaults inside a struct, both default and generated).
    ///
    /// Take it out.
    #[error("column {column:?}: {reason}")]
    ColumnRefused {
        /// The column.
        column: String,
        /// What is refused.
        reason: &'static str,
    },
    /// A setting of the CSV dialect is not a single ASCII character, or two of them are the same.
    ///
    /// Use one ASCII character each.
    #[error("{setting} {reason}")]
    CsvDialect {
        /// `delimiter` or `quote`.
        setting: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Several flows apply changes to one table, and nothing says which change of two flows is the later one: positions of two sources
    /// have no common order.
    ///
    /// Declare `sequence_by`.
    #[error("several flows apply changes to the table: declare sequence_by, for positions of two sources have no common order")]
    SequenceOfFlows,
    /// A watermark where it would decide nothing.
    ///
    /// Declare it of a table with the policy `append` that has one flow, which reads its stream by its appends.
    #[error("a watermark means nothing here: {reason}")]
    WatermarkRefused {
        /// Why.
        reason: &'static str,
    },
    /// A streaming table names a stream that its query does not read.
    ///
    /// Name the tables of the query in `sources`, and of them those that are streams in `streams`.
    #[error("{table} is among the streams, but not among the sources")]
    StreamUnread {
        /// The stream.
        table: TableName,
    },
    /// A consumer property would decide what exactly-once reading decides.
    ///
    /// Take the property away, or use the option that the message names.
    #[error("the consumer property `{property}` cannot be set: {reason}")]
    KafkaProperty {
        /// librdkafka's name of it.
        property: String,
        /// Who decides instead.
        reason: &'static str,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

fn reason(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::TableNameUnreadable { .. } => "SP0001",
            Self::TypeUnreadable { .. } => "SP0002",
            Self::TypeNotDelta { .. } => "SP0003",
            Self::YamlUnreadable { .. } => "SP0010",
            Self::UnknownField { .. } => "SP0011",
            Self::WrongType { .. } => "SP0012",
            Self::UnknownChoice { .. } => "SP0013",
            Self::MissingField { .. } => "SP0014",
            Self::DuplicateKey { .. } => "SP0015",
            Self::OptionOfAnother { .. } => "SP0017",
            Self::PipelineNameDiffers { .. } => "SP0016",
            Self::Empty { .. } => "SP0020",
            Self::NameForbidden { .. } => "SP0021",
            Self::NameTwice { .. } => "SP0022",
            Self::TableTwice { .. } => "SP0023",
            Self::QuarantineTwice { .. } => "SP0024",
            Self::KeysMissing { .. } => "SP0025",
            Self::SequenceMissing { .. } => "SP0026",
            Self::OptionWithoutEffect { .. } => "SP0027",
            Self::TruncateRequiresScd1 => "SP0028",
            Self::LayoutTwice { .. } => "SP0029",
            Self::LayoutColumn { .. } => "SP0030",
            Self::ColumnUnknown { .. } => "SP0031",
            Self::SourceUnknown { .. } => "SP0032",
            Self::Cycle { .. } => "SP0033",
            Self::StreamFromView { .. } => "SP0034",
            Self::SequenceIsText { .. } => "SP0035",
            Self::SequenceUnordered { .. } => "SP0036",
            Self::ConditionDependsOnArrival { .. } => "SP0037",
            Self::PropertyRefused { .. } => "SP0038",
            Self::ColumnRefused { .. } => "SP0039",
            Self::CsvDialect { .. } => "SP0040",
            Self::QueryUnreadable { .. } => "SP0041",
            Self::KafkaProperty { .. } => "SP0042",
            Self::SequenceOfFlows => "SP0043",
            Self::StreamUnread { .. } => "SP0044",
            Self::WatermarkRefused { .. } => "SP0045",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(format!("tributary help {}", self.code()))
    }
}
