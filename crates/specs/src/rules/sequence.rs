//! The declared order of a silver dataset.

use std::collections::HashMap;

use super::Findings;
use crate::data_type::DataType;
use crate::dataset::{MergePolicy, SilverSpec};
use crate::error::Error;
use crate::feed::SourceFeed;
use crate::pipeline::Pipeline;
use crate::problem::Path;
use crate::properties::SEQUENCE_TEXT;
use crate::table_name::TableName;

/// Columns of a bronze table that are text of varying length.
const TEXT_METADATA: [&str; 5] = ["_topic", "_file", "_op", "_rescued_data", "topic"];

pub(super) fn check(findings: &mut Findings, path: &Path, spec: &SilverSpec, pipeline: &Pipeline) {
    let at = path.field("sequence_by");
    let stream = feed_of(pipeline, spec.sources.first());
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (index, expression) in spec.sequence_by.iter().enumerate() {
        let at = at.index(index);
        findings.refuse_empty(&at, expression, "a sequence");
        if let Some(first) = seen.insert(expression.trim().to_lowercase(), expression) {
            findings.add(at.clone(), Error::NameTwice { name: expression.clone(), first: first.to_owned(), what: "sequence" });
        }
        check_type(findings, &at, expression, spec, stream);
    }
}

/// What reads a stream whose changes have no order of their own declares one.
pub(super) fn check_stream(findings: &mut Findings, path: &Path, spec: &SilverSpec, stream: Option<&TableName>, pipeline: &Pipeline) {
    let ordered = spec.policy != MergePolicy::Append;
    let feed = feed_of(pipeline, stream);
    if let Some(feed) = feed.filter(|feed| ordered && spec.sequence_by.is_empty() && !feed.has_position()) {
        findings.add(path.field("sequence_by"), Error::SequenceMissing { source_table: feed.table.clone() });
    }
}

fn feed_of<'p>(pipeline: &'p Pipeline, table: Option<&TableName>) -> Option<&'p SourceFeed> {
    table.and_then(|table| pipeline.feeds.iter().find(|feed| feed.table.same_without_case(table)))
}

fn check_type(findings: &mut Findings, path: &Path, expression: &str, spec: &SilverSpec, stream: Option<&SourceFeed>) {
    let column = column_name(expression);
    match type_of(column, spec, stream) {
        Some(DataType::String) if !spec.allows_text_sequence() => {
            let error = Error::SequenceIsText { column: column.to_owned(), property: SEQUENCE_TEXT };
            findings.add(path.clone(), error);
        }
        Some(data_type) if has_no_order(&data_type) => {
            findings.add(path.clone(), Error::SequenceUnordered { column: column.to_owned(), data_type: data_type.to_string() });
        }
        _ => {}
    }
}

/// A sequence that is a column and no expression, without its quotes.
fn column_name(expression: &str) -> &str {
    let trimmed = expression.trim();
    let unquoted = |quote: char| trimmed.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    unquoted('`').or_else(|| unquoted('"')).unwrap_or(trimmed)
}

/// The type of a column, where the specs say it: of the stream's row, or of the result when there is a select.
fn type_of(column: &str, spec: &SilverSpec, stream: Option<&SourceFeed>) -> Option<DataType> {
    let named = |name: &str| name.eq_ignore_ascii_case(column);
    let result = spec.schema.iter().find(|declared| named(&declared.name));
    if spec.select.is_some() || result.is_some() {
        return result.map(|declared| declared.data_type.clone());
    }
    let feed = stream?;
    let declared = feed.columns.iter().find(|declared| named(&declared.name)).map(|declared| declared.data_type.clone());
    declared.or_else(|| TEXT_METADATA.iter().any(|name| named(name)).then_some(DataType::String))
}

fn has_no_order(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::Array(element) => has_no_order(element),
        DataType::Struct(fields) => fields.iter().any(|field| has_no_order(&field.data_type)),
        _ => false,
    }
}
