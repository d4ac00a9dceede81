//! The text of a query as engines take it: names in full, views put in, streams without their words.

use std::ops::Range;

use tributary_specs::{Expectation, ExpectationAction, FILE_COLUMNS, StreamRead, StreamedTable, TableName, Watermark};

use super::{Lowering, Meaning, table_of};
use crate::check::is_stream;
use crate::error::Error;
use crate::parsed::{Definition, Kind, Placed, quoted};
use crate::query::{Metadata, Query, Read};
use crate::woven::Woven;

/// Bytes of a query at most, views put in.
const BYTES_MAX: usize = 1 << 20;
/// Bytes of all queries at most, views put in.
const BYTES_MAX_ALL: usize = 32 << 20;
/// Steps of where the texts of all queries stand at most; of what comes behind them only the beginning is known.
const STEPS_MAX_ALL: usize = 1 << 20;
/// Views within views at most.
const VIEWS_MAX: usize = 100;

/// A query as engines take it.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) woven: Woven,
    /// Tables it reads, in the order of the text.
    pub(super) reads: Vec<TableName>,
    /// The table of which only new rows are read.
    pub(super) stream: Option<TableName>,
    /// Every table that is read as a stream, each once, with the longest it is waited for.
    pub(super) streams: Vec<StreamedTable>,
    /// How that table is read.
    pub(super) stream_read: StreamRead,
    /// The table for which rows of streams that come late are left out.
    for_table: Option<TableName>,
    /// Tables of rows that come in time, each with its source and watermark.
    pub(super) in_time: Vec<(TableName, TableName, Placed<Watermark>)>,
    /// A table of which changes are read that are not new ones of the stream.
    pub(super) changes_of: Option<TableName>,
    /// Whether a view stands in the text.
    pub(super) has_view: bool,
    /// Views around the text that is being made.
    within: usize,
}

impl Rendered {
    /// The table that is read in a stream's place, where late rows of it are left out.
    fn table_in_time(&mut self, source: &TableName, read: &Read) -> Option<TableName> {
        let (of, watermark) = self.for_table.as_ref().zip(read.watermark.as_ref())?;
        let known = self.in_time.iter().find(|(_, known, other)| known.same_without_case(source) && other.value == watermark.value);
        if let Some((table, ..)) = known {
            return Some(table.clone());
        }
        let number = self.in_time.iter().filter(|(_, known, _)| known.name.eq_ignore_ascii_case(&source.name)).count();
        let number = if number == 0 { String::new() } else { format!("_{}", number + 1) };
        let table = TableName::new(&of.schema, format!("{}_{}_in_time{number}", of.name, source.name));
        self.in_time.push((table.clone(), source.clone(), watermark.clone()));
        Some(table)
    }

    /// Notes that a table is read as a stream.
    fn streams(&mut self, table: &TableName, read: &Read) {
        self.stream.get_or_insert_with(|| table.clone());
        let watermark = read.watermark.as_ref().map(|placed| placed.value.clone());
        match self.streams.iter_mut().find(|known| known.table.same_without_case(table)) {
            // what one read waits for, the table is waited for
            Some(known) if known.watermark.as_ref().zip(watermark.as_ref()).is_some_and(|(a, b)| a.delay_millis < b.delay_millis) => {
                known.watermark = watermark;
            }
            Some(known) => known.watermark = known.watermark.take().or(watermark),
            None => self.streams.push(StreamedTable { table: table.clone(), watermark }),
        }
    }

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
        self.rendered(query, of, feed, once, &mut out)?;
        Some(out)
    }

    /// The same, late rows of streams that have a watermark left out for a table.
    pub(super) fn render_in_time(
        &mut self,
        query: &Query,
        of: &str,
        feed: Option<&TableName>,
        table: Option<TableName>,
    ) -> Option<Rendered> {
        let mut out = Rendered { for_table: table, ..Rendered::default() };
        self.rendered(query, of, feed, false, &mut out)?;
        Some(out)
    }

    fn rendered(&mut self, query: &Query, of: &str, feed: Option<&TableName>, once: bool, out: &mut Rendered) -> Option<()> {
        let woven = self.text(query, of, feed, once, out)?;
        self.steps += woven.trail.len();
        let trail = if self.steps > STEPS_MAX_ALL { woven.trail.forgotten() } else { woven.trail };
        out.woven = Woven { trail, ..woven };
        Some(())
    }

    /// `in_stream`: the query is a view that is read as a stream.
    fn text(&mut self, query: &Query, of: &str, feed: Option<&TableName>, in_stream: bool, out: &mut Rendered) -> Option<Woven> {
        let edits = query.edits.iter().map(|(range, text)| (range.clone(), in_place(query, range, text)));
        let mut edits: Vec<(Range<usize>, Woven)> = edits.collect();
        if !query.stream_read.is_auto() {
            out.stream_read = query.stream_read;
        }
        for metadata in &query.shape.metadata {
            let text = self.metadata(metadata, query, of)?;
            edits.push((metadata.range.clone(), in_place(query, &metadata.range, &text)));
        }
        edits.extend(qualifiers(query, out.for_table.is_some()));
        let batch = !in_stream && !query.reads.iter().any(is_stream);
        for (number, read) in query.reads.iter().enumerate() {
            let streams = is_stream(read) || (in_stream && number == 0);
            let Some(call) = &read.call else {
                edits.extend(self.relation(query, read, of, streams, out)?);
                continue;
            };
            let text = match feed {
                // its star leaves out what tells where a row is from
                Some(table) if batch => format!("{table}{}", if read.aliased { "" } else { " AS files" }),
                Some(table) if streams => {
                    let read_from = out.table_in_time(table, read).unwrap_or_else(|| table.clone());
                    out.streams(&read_from, read);
                    out.reads.push(read_from.clone());
                    let text = read_from.to_string();
                    edits.push((read.range.clone(), in_place(query, &read.range, &text)));
                    continue;
                }
                _ => {
                    let instead = Some("a streaming table FROM STREAM of it, and read that table".to_owned());
                    let what = format!("{}(…) in this place", call.function);
                    self.report.fault(&read.place, &Error::NotExecuted { of: of.to_owned(), what, instead });
                    return None;
                }
            };
            out.reads.extend(feed.cloned());
            edits.push((read.range.clone(), in_place(query, &read.range, &text)));
        }
        let woven = edited(query, edits);
        self.rendered += woven.text.len();
        if woven.text.len() > BYTES_MAX || self.rendered > BYTES_MAX_ALL {
            self.report.fault(
                &query.place,
                &Error::TooLarge { what: format!("the query of {of}, its views put in,"), most: BYTES_MAX, of: "bytes" },
            );
            return None;
        }
        Some(woven)
    }

    /// What stands for the table or view that is read, where that is something else than is written.
    fn relation(
        &mut self,
        query: &Query,
        read: &Read,
        of: &str,
        streams: bool,
        out: &mut Rendered,
    ) -> Option<Option<(Range<usize>, Woven)>> {
        let defined = self.defined;
        let dataset = match self.meaning(read, of)? {
            Meaning::Table(table) => return Some(named(query, read, table, streams, out)),
            Meaning::Dataset(at) => defined.datasets.get(at)?,
        };
        let (Kind::View, Some(view)) = (dataset.kind, &dataset.query) else {
            return Some(named(query, read, table_of(&dataset.name), streams, out));
        };
        if read.changes.is_some() {
            let what = format!("table_changes of the view {}", dataset.name);
            let instead = Some("the changes of the table that it reads".to_owned());
            self.report.fault(&read.place, &Error::NotExecuted { of: of.to_owned(), what, instead });
            return None;
        }
        out.has_view = true;
        let inner = self.view_text(dataset, view, of, streams, out)?;
        let alias = if read.aliased { String::new() } else { format!(" AS {}", quoted(&dataset.name.name)) };
        let mut put_in = in_place(query, &read.range, "(");
        put_in.add(&inner);
        put_in.put(&format!("){alias}"), &query.trail, read.range.start);
        Some(Some((read.range.clone(), put_in)))
    }

    /// The query of a view, rows that its rules drop left out.
    fn view_text(&mut self, view: &Definition, query: &Query, of: &str, streams: bool, out: &mut Rendered) -> Option<Woven> {
        if out.within >= VIEWS_MAX {
            let what = format!("the query of {of}");
            self.report.fault(&query.place, &Error::TooLarge { what, most: VIEWS_MAX, of: "views within each other" });
            return None;
        }
        out.within += 1;
        let text = self.text(query, of, None, streams, out);
        out.within -= 1;
        let named = renamed(view, text?);
        let drops = |rule: &&Placed<Expectation>| rule.value.action == ExpectationAction::Drop;
        let rules: Vec<&Placed<Expectation>> = view.expectations.iter().filter(drops).collect();
        if rules.is_empty() {
            return Some(named);
        }
        let mut kept = Woven::default();
        kept.say("SELECT * FROM (");
        kept.add(&named);
        kept.say(&format!(") AS {} WHERE ", quoted(&view.name.name)));
        for (number, rule) in rules.into_iter().enumerate() {
            kept.say(if number == 0 { "(" } else { " AND (" });
            match self.report.expression_of(rule.place.as_ref(), &rule.value.expression) {
                Some(expression) => kept.add(expression),
                None => kept.say(&rule.value.expression),
            }
            kept.say(")");
        }
        Some(kept)
    }

    /// What a field of `_metadata` is in a feed's table.
    fn metadata(&mut self, metadata: &Metadata, query: &Query, of: &str) -> Option<String> {
        let field = metadata.field.as_str();
        let text = match field {
            "file_path" => "_file",
            "file_name" => "substring_index(_file, '/', -1)",
            "file_size" => FILE_COLUMNS[0],
            "file_modification_time" => FILE_COLUMNS[1],
            _ => {
                let instead = Some("_metadata.file_path, file_name, file_size or file_modification_time".to_owned());
                self.report.fault(&query.place, &Error::NotExecuted { of: of.to_owned(), what: format!("_metadata.{field}"), instead });
                return None;
            }
        };
        Some(if metadata.names_column { format!("{text} AS {field}") } else { text.to_owned() })
    }
}

/// Text that stands for what is at some bytes of a query.
fn in_place(query: &Query, range: &Range<usize>, text: &str) -> Woven {
    let mut woven = Woven::default();
    woven.put(text, &query.trail, range.start);
    woven
}

/// What a stream is called that is read through its table of rows in time and has no other name: as its table, where that is no other
/// read's name too.
fn alias_in_time(query: &Query, read: &Read) -> String {
    let last = |read: &Read| read.name.as_ref().map(|name| name.name.clone()).unwrap_or_default();
    let name = last(read);
    let others = query.reads.iter().filter(|other| !other.aliased && other.range != read.range);
    match (others.filter(|other| last(other).eq_ignore_ascii_case(&name)).count(), read.name.as_ref().and_then(|name| name.schema.as_ref()))
    {
        (1.., Some(schema)) => format!("{schema}_{name}"),
        _ => name,
    }
}

/// Names of tables before columns, where the tables are read through those of rows in time.
fn qualifiers(query: &Query, in_time: bool) -> Vec<(Range<usize>, Woven)> {
    let mut edits = Vec::new();
    for read in query.reads.iter().filter(|read| in_time && is_stream(read) && read.watermark.is_some() && !read.aliased) {
        let Some(name) = &read.name else { continue };
        let full: Vec<&str> = [name.catalog.as_deref(), name.schema.as_deref(), Some(&name.name)].into_iter().flatten().collect();
        let named = |parts: &[String]| {
            let last: Vec<&String> = parts.iter().rev().collect();
            last.len() <= full.len() && last.iter().zip(full.iter().rev()).all(|(part, name)| part.eq_ignore_ascii_case(name))
        };
        for qualified in query.shape.qualified.iter().filter(|qualified| named(&qualified.parts)) {
            let alias = quoted(&alias_in_time(query, read));
            edits.push((qualified.range.clone(), in_place(query, &qualified.range, &alias)));
        }
    }
    edits
}

/// Notes a table that is read; tells what its name is written as, where that is something else than stands there.
fn named(query: &Query, read: &Read, table: TableName, streams: bool, out: &mut Rendered) -> Option<(Range<usize>, Woven)> {
    let parts = read.written.parts.as_slice() == [table.schema.clone(), table.name.clone()] && !read.written.live;
    let by_name = query.text.get(read.range.clone()).is_some_and(|written| !written.contains('('));
    let text = match read.changes.as_ref().filter(|_| !streams) {
        Some(changes) => changes.call(&table.to_string()),
        None => table.to_string(),
    };
    if read.changes.is_some() && (!streams || !read.streaming) {
        out.changes_of.get_or_insert_with(|| table.clone());
    }
    if streams {
        if let Some(in_time) = out.table_in_time(&table, read) {
            let alias = if read.aliased { String::new() } else { format!(" AS {}", quoted(&alias_in_time(query, read))) };
            let text = format!("{in_time}{alias}");
            out.streams(&in_time, read);
            out.reads.push(in_time);
            return Some((read.range.clone(), in_place(query, &read.range, &text)));
        }
        out.streams(&table, read);
    }
    out.reads.push(table);
    (!(parts && by_name)).then(|| (read.range.clone(), in_place(query, &read.range, &text)))
}

/// The query with the names that the definition gives its columns.
pub(super) fn renamed(definition: &Definition, query: Woven) -> Woven {
    let names: Vec<String> = definition.columns.iter().map(|column| quoted(&column.name)).collect();
    let untyped = definition.columns.iter().any(|column| column.data_type.is_none());
    if names.is_empty() || !untyped {
        return query;
    }
    let mut renamed = Woven::default();
    renamed.say("SELECT * FROM (");
    renamed.add(&query);
    renamed.say(&format!(") AS {}({})", quoted(&definition.name.name), names.join(", ")));
    renamed
}

/// A query with some of its bytes replaced.
fn edited(query: &Query, mut edits: Vec<(Range<usize>, Woven)>) -> Woven {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = Woven::default();
    let mut at = 0;
    for (range, instead) in edits {
        if range.start < at || query.text.get(range.clone()).is_none() {
            continue;
        }
        out.push(&query.text, &query.trail, at..range.start);
        out.add(&instead);
        at = range.end;
    }
    out.push(&query.text, &query.trail, at..query.text.len());
    out
}
