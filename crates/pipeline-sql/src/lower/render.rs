//! The text of a query as engines take it: names in full, views put in, streams without their words.

use std::ops::Range;

use tributary_specs::{ExpectationAction, StreamRead, TableName};

use super::{Lowering, Meaning, table_of};
use crate::check::is_stream;
use crate::error::Error;
use crate::parsed::{Definition, quoted};
use crate::query::Query;

/// Bytes of a query at most, views put in.
const BYTES_MAX: usize = 1 << 20;
/// Bytes of all queries at most, views put in.
const BYTES_MAX_ALL: usize = 32 << 20;
/// Views within views at most.
const VIEWS_MAX: usize = 100;

/// A query as engines take it.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) text: String,
    /// Tables it reads, in the order of the text.
    pub(super) reads: Vec<TableName>,
    /// The table of which only new rows are read.
    pub(super) stream: Option<TableName>,
    /// How that table is read.
    pub(super) stream_read: StreamRead,
    /// Whether a view stands in the text.
    pub(super) has_view: bool,
    /// Views around the text that is being made.
    within: usize,
}

impl Rendered {
    /// The stream first, then what is looked up; each table once.
    pub(super) fn sources(&self) -> Vec<TableName> {
        let mut sources: Vec<TableName> = Vec::new();
        for table in self.stream.iter().chain(&self.reads) {
            if !sources.iter().any(|known| known.same_without_case(table)) {
                sources.push(table.clone());
            }
        }
        sources
    }
}

impl Lowering<'_> {
    /// The query's text; `once`: the first table it reads is taken for its stream. A mistake is told and gives none.
    pub(super) fn render(&mut self, query: &Query, of: &str, feed: Option<&TableName>, once: bool) -> Option<Rendered> {
        let mut out = Rendered::default();
        let text = self.text(query, of, feed, once, &mut out)?;
        out.text = text;
        Some(out)
    }

    /// `in_stream`: the query is a view that is read as a stream.
    fn text(&mut self, query: &Query, of: &str, feed: Option<&TableName>, in_stream: bool, out: &mut Rendered) -> Option<String> {
        let mut edits: Vec<(Range<usize>, String)> = query.edits.clone();
        if !query.stream_read.is_auto() {
            out.stream_read = query.stream_read;
        }
        for (range, field) in &query.shape.metadata {
            edits.push((range.clone(), self.metadata(field, query, of)?));
        }
        for (number, read) in query.reads.iter().enumerate() {
            let streams = is_stream(read) || (in_stream && number == 0);
            if read.call.is_some() {
                let Some(table) = feed.filter(|_| streams) else {
                    let function = read.call.as_ref().map(|call| call.function.clone()).unwrap_or_default();
                    let instead = Some("a streaming table FROM STREAM of it, and read that table".to_owned());
                    let what = format!("{function}(…) in this place");
                    self.report.fault(&read.place, &Error::NotExecuted { of: of.to_owned(), what, instead });
                    return None;
                };
                out.stream = Some(table.clone());
                out.reads.push(table.clone());
                edits.push((read.range.clone(), table.to_string()));
                continue;
            }
            match self.meaning(read, of)? {
                Meaning::Dataset(at) => {
                    let defined = self.defined;
                    let dataset = defined.datasets.get(at)?;
                    if let Some(view) = dataset.query.as_ref().filter(|_| dataset.kind == crate::parsed::Kind::View) {
                        out.has_view = true;
                        let inner = self.view_text(dataset, view, of, streams, out)?;
                        let alias = if read.aliased { String::new() } else { format!(" AS {}", quoted(&dataset.name.name)) };
                        edits.push((read.range.clone(), format!("({inner}){alias}")));
                    } else {
                        let table = table_of(&dataset.name);
                        self.named(query, read, table, streams, &mut edits, out);
                    }
                }
                Meaning::Table(table) => self.named(query, read, table, streams, &mut edits, out),
            }
        }
        let text = edited(&query.text, edits);
        self.rendered += text.len();
        if text.len() > BYTES_MAX || self.rendered > BYTES_MAX_ALL {
            self.report.fault(
                &query.place,
                &Error::TooLarge { what: format!("the query of {of}, its views put in,"), most: BYTES_MAX, of: "bytes" },
            );
            return None;
        }
        Some(text)
    }

    fn named(
        &self,
        query: &Query,
        read: &crate::query::Read,
        table: TableName,
        streams: bool,
        edits: &mut Vec<(Range<usize>, String)>,
        out: &mut Rendered,
    ) {
        let parts = read.written.parts.as_slice() == [table.schema.clone(), table.name.clone()] && !read.written.live;
        let by_name = query.text.get(read.range.clone()).is_some_and(|written| !written.contains('('));
        let same = parts && by_name;
        if !same {
            edits.push((read.range.clone(), table.to_string()));
        }
        if streams && out.stream.is_none() {
            out.stream = Some(table.clone());
        }
        out.reads.push(table);
    }

    /// The query of a view, rows that its rules drop left out.
    fn view_text(&mut self, view: &Definition, query: &Query, of: &str, streams: bool, out: &mut Rendered) -> Option<String> {
        if out.within >= VIEWS_MAX {
            let what = format!("the query of {of}");
            self.report.fault(&query.place, &Error::TooLarge { what, most: VIEWS_MAX, of: "views within each other" });
            return None;
        }
        out.within += 1;
        let text = self.text(query, of, None, streams, out);
        out.within -= 1;
        let text = text?;
        let rules: Vec<String> = view
            .expectations
            .iter()
            .filter(|rule| rule.value.action == ExpectationAction::Drop)
            .map(|rule| format!("({})", rule.value.expression))
            .collect();
        let named = renamed(view, &text);
        if rules.is_empty() {
            return Some(named);
        }
        Some(format!("SELECT * FROM ({named}) AS {} WHERE {}", quoted(&view.name.name), rules.join(" AND ")))
    }

    /// What a field of `_metadata` is called in a feed's table.
    fn metadata(&mut self, field: &str, query: &Query, of: &str) -> Option<String> {
        if field == "file_path" {
            return Some("_file".to_owned());
        }
        let instead = Some("_metadata.file_path, which is the column _file".to_owned());
        self.report.fault(&query.place, &Error::NotExecuted { of: of.to_owned(), what: format!("_metadata.{field}"), instead });
        None
    }
}

/// The query with the names that the definition gives its columns.
pub(super) fn renamed(definition: &Definition, text: &str) -> String {
    let names: Vec<String> = definition.columns.iter().map(|column| quoted(&column.name)).collect();
    let untyped = definition.columns.iter().any(|column| column.data_type.is_none());
    if names.is_empty() || !untyped {
        return text.to_owned();
    }
    format!("SELECT * FROM ({text}) AS {}({})", quoted(&definition.name.name), names.join(", "))
}

/// A text with some of its bytes replaced.
fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, instead) in edits {
        if range.start < at || text.get(range.clone()).is_none() {
            continue;
        }
        out.push_str(&text[at..range.start]);
        out.push_str(&instead);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}
