//! Queries: what they read, as a stream or as a whole, and what they are made of.

mod gathers;
mod stream_joins;

use std::collections::{BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};

use sqlparser::ast::{
    Expr, Ident, ObjectName, Query as Tree, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Visit, Visitor,
};
use sqlparser::parser::{Parser, ParserError};
use tributary_specs::{Place, Watermark};
use tributary_sql_dialect::{Spark, readable};

use crate::call::Call;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::names::{Scope, Written};
use crate::parameters::Parameters;
use crate::parsed::{DatasetName, Placed};
use crate::report::Report;
use crate::streams::{self, Plain};
use crate::table_changes::{self, Changes};
use crate::woven::Trail;

pub(crate) use gathers::Gathers;
use stream_joins::Streamed;
pub(crate) use stream_joins::Unkept;

/// A query of a definition or flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The text as it is written, parameters put in.
    pub text: String,
    /// Where it begins.
    pub place: Place,
    /// Tables and views it reads, in the order of the text.
    pub reads: Vec<Read>,
    pub(crate) shape: Box<Shape>,
    /// How the options of its stream have it read.
    pub(crate) stream_read: tributary_specs::StreamRead,
    /// Where the text stands.
    pub(crate) trail: Trail,
    /// Bytes of the text in whose place something else is meant, in order.
    pub(crate) edits: Vec<(Range<usize>, String)>,
}

/// One relation that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The table or view; none for a function such as `read_files`.
    pub name: Option<DatasetName>,
    /// Whether only its new rows are read.
    pub streaming: bool,
    /// Where it stands.
    pub place: Place,
    /// The name without the catalogue and schema that the settings add.
    pub(crate) written: Written,
    /// Bytes of the query's text.
    pub(crate) range: Range<usize>,
    /// Whether the query gives it another name.
    pub(crate) aliased: bool,
    /// The first clause around it that makes one row of several; one that no groups tell before one that they do.
    pub(crate) gathers: Option<Gathers>,
    /// How long it is waited for its rows, where it is a stream that says so.
    pub(crate) watermark: Option<Placed<Watermark>>,
    pub(crate) call: Option<Call>,
    /// The range of its changes, where these are read.
    pub(crate) changes: Option<Changes>,
}

/// What a query is made of, as far as it matters before it is planned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    /// `SELECT * FROM one` and nothing else.
    pub(crate) everything: bool,
    /// The first clause that no stream of rows can have, as `GROUP BY`.
    pub(crate) gathers: Option<Gathers>,
    /// The first such clause around a stream, in the query or in one within it.
    pub(crate) around_stream: Option<Gathers>,
    /// The first join of streams that cannot be kept.
    pub(crate) unkept: Option<Unkept>,
    /// Where a name `_metadata.…` stands.
    pub(crate) metadata: Vec<Metadata>,
    /// What may be names of tables before columns.
    pub(crate) qualified: Vec<Qualified>,
}

/// What may be the name of a table before a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Qualified {
    /// Bytes of the text.
    pub(crate) range: Range<usize>,
    pub(crate) parts: Vec<String>,
}

/// A field of `_metadata` that a query names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// Bytes of the text.
    pub(crate) range: Range<usize>,
    /// In lower case.
    pub(crate) field: String,
    /// Whether it names a column of the query too.
    pub(crate) names_column: bool,
}

impl Query {
    /// Whether it asks for what a feed tells of files only where it is asked to.
    pub(crate) fn asks_of_files(&self) -> bool {
        self.shape.metadata.iter().any(|metadata| ["file_size", "file_modification_time"].contains(&metadata.field.as_str()))
    }
}

/// Reads the query that stands from `cursor` to its end.
pub(crate) fn read(cursor: &Cursor, of: &str, scope: &Scope, parameters: &Parameters, report: &mut Report) -> Option<Query> {
    if cursor.is_done() {
        let missing = Error::Syntax { of: of.to_owned(), expected: "a query".to_owned(), found: cursor.found() };
        report.fault(&cursor.place(), &missing);
        return None;
    }
    let plain = streams::plain(cursor, false, of, parameters, report);
    query(cursor, plain, of, scope, report)
}

/// Reads what stands after the FROM of `AUTO CDC`, as the query of all its columns.
pub(crate) fn read_source(cursor: &Cursor, of: &str, scope: &Scope, parameters: &Parameters, report: &mut Report) -> Option<Query> {
    let mut plain = streams::plain(cursor, true, of, parameters, report);
    let begin = plain.tokens.first()?.span;
    let word = |text: &str| sqlparser::tokenizer::TokenWithSpan { token: sqlparser::tokenizer::Token::make_keyword(text), span: begin };
    let star = sqlparser::tokenizer::TokenWithSpan { token: sqlparser::tokenizer::Token::Mul, span: begin };
    plain.tokens.splice(0..0, [word("SELECT"), star, word("FROM")]);
    query(cursor, plain, of, scope, report)
}

fn query(cursor: &Cursor, plain: Plain, of: &str, scope: &Scope, report: &mut Report) -> Option<Query> {
    let dialect = Spark::new(plain.tokens.len());
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(plain.tokens.clone());
    let tree = match parser.parse_query() {
        Ok(tree) => tree,
        Err(error) => {
            let (at, error) = unreadable(&error, cursor, of);
            report.fault(&cursor.tokens.place(at), &error);
            return None;
        }
    };
    let next = parser.peek_token();
    if next.token != sqlparser::tokenizer::Token::EOF {
        let at = cursor.tokens.at_location(next.span.start).unwrap_or(cursor.end);
        let statement =
            |at: usize| matches!(cursor.within(at, cursor.end).keyword(0).as_deref(), Some("CREATE" | "APPLY" | "AUTO" | "SET" | "USE"));
        // The word that begins the next statement may have been taken for a name.
        let at = if at > cursor.at && statement(at - 1) { at - 1 } else { at };
        let instead = statement(at).then(|| "a semicolon before it".to_owned());
        let reason = format!("{} is not expected here", cursor.found_at(at));
        report.fault(&cursor.tokens.place(at), &Error::QueryUnreadable { of: of.to_owned(), reason, instead });
        return None;
    }
    let mut gathering = Gathering {
        cursor,
        plain: &plain,
        scope,
        of,
        report,
        frames: Vec::new(),
        tables: HashMap::new(),
        found: Vec::new(),
        edits: Vec::new(),
        metadata: Vec::new(),
        columns: BTreeSet::new(),
        around_stream: None,
        unkept: None,
        qualified: Vec::new(),
    };
    let _ = tree.visit(&mut gathering);
    let Gathering { mut found, mut edits, metadata, around_stream, unkept, qualified, .. } = gathering;
    // What is taken out takes the blanks after it along.
    let text = cursor.rest().to_owned();
    for words in &plain.removed {
        let mut range = cursor.bytes(words);
        let begins = text[..range.start].chars().next_back().is_none_or(|before| before.is_whitespace() || before == '(');
        let blanks = text[range.end..].len() - text[range.end..].trim_start().len();
        range.end += if begins { blanks } else { 0 };
        edits.push((range, String::new()));
    }
    edits.extend(plain.replaced.iter().map(|(words, text)| (cursor.bytes(words), text.clone())));
    edits.sort_by_key(|(range, _)| range.start);
    found.sort_by_key(|read: &Read| read.range.start);
    let shape = Box::new(Shape { metadata, around_stream, unkept, qualified, ..shape(&tree) });
    let trail = cursor.tokens.trail(cursor.at, cursor.end);
    let changes = found.iter().filter(|read| read.streaming).find_map(|read| read.changes.as_ref()?.stream());
    let stream_read = changes.unwrap_or(plain.stream_read);
    Some(Query { text, place: cursor.place(), reads: found, shape, stream_read, trail, edits })
}

/// What the parser says, and at which word.
pub(crate) fn unreadable(error: &ParserError, cursor: &Cursor, of: &str) -> (usize, Error) {
    let (reason, location) = match error {
        ParserError::RecursionLimitExceeded => {
            return (cursor.at, Error::TooLarge { what: format!("the SQL of {of}"), most: 50, of: "levels, or more ways to read it" });
        }
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => located(text),
    };
    let at = location.and_then(|(line, column)| cursor.tokens.at_location(sqlparser::tokenizer::Location { line, column }));
    let reason = readable(&reason)
        .replace("found: EOF", &format!("found: {}", cursor.found_at(cursor.end)))
        .replace("Expected: ", "expected ")
        .replace(", found: ", ", found ");
    (at.unwrap_or(cursor.end), Error::QueryUnreadable { of: of.to_owned(), reason, instead: None })
}

/// A message of the parser and the location at its end.
fn located(text: &str) -> (String, Option<(u64, u64)>) {
    let Some((reason, place)) = text.rsplit_once(" at Line: ") else { return (text.to_owned(), None) };
    let numbers = place.split_once(", Column: ");
    let location = numbers.and_then(|(line, column)| Some((line.trim().parse().ok()?, column.trim().parse().ok()?)));
    (reason.to_owned(), location)
}

fn shape(tree: &Tree) -> Shape {
    let gathers = Gathers::of_query(tree);
    let everything = match &*tree.body {
        SetExpr::Select(select) => gathers.is_none() && tree.with.is_none() && is_everything(select),
        _ => false,
    };
    Shape { everything, gathers, ..Shape::default() }
}

fn is_everything(select: &Select) -> bool {
    let star = match select.projection.as_slice() {
        [SelectItem::Wildcard(options)] => {
            options.opt_except.is_none()
                && options.opt_exclude.is_none()
                && options.opt_replace.is_none()
                && options.opt_rename.is_none()
                && options.opt_ilike.is_none()
        }
        _ => false,
    };
    let one = matches!(select.from.as_slice(), [from] if from.joins.is_empty() && matches!(from.relation, TableFactor::Table { .. }));
    star && one && select.selection.is_none() && select.lateral_views.is_empty() && select.sort_by.is_empty()
}

/// A common table expression.
#[derive(Clone)]
struct Common {
    name: String,
    /// What streams its rows are of.
    streamed: Streamed,
}

/// The common table expression that a name stands for.
fn common_of<'c>(common: &'c [Common], parts: &[&Ident]) -> Option<&'c Common> {
    let [name] = parts else { return None };
    common.iter().rev().find(|common| common.name.eq_ignore_ascii_case(&name.value))
}

/// Whether a function makes rows of its arguments, and reads nothing.
fn unfolds(name: &[String]) -> bool {
    let [name] = name else { return false };
    let name = name.to_lowercase();
    matches!(name.trim_end_matches("_outer"), "explode" | "posexplode" | "inline" | "json_tuple" | "stack")
}

/// What names of a query may stand for, while it is walked.
struct Frame {
    /// Common table expressions, outermost first.
    common: Vec<Common>,
    /// What makes rows of this query of several.
    gathers: Option<Gathers>,
}

/// Walks a query and takes down what it reads.
struct Gathering<'a> {
    cursor: &'a Cursor,
    plain: &'a Plain,
    scope: &'a Scope,
    of: &'a str,
    report: &'a mut Report,
    frames: Vec<Frame>,
    /// What can be named in the query of a common table expression, by the address of that query.
    tables: HashMap<*const Tree, Vec<Common>>,
    found: Vec<Read>,
    edits: Vec<(Range<usize>, String)>,
    metadata: Vec<Metadata>,
    /// Where names stand that are columns of the query as they are.
    columns: BTreeSet<usize>,
    around_stream: Option<Gathers>,
    unkept: Option<Unkept>,
    qualified: Vec<Qualified>,
}

impl Gathering<'_> {
    /// The words that the parts of a name take.
    fn words(&self, parts: &[&Ident]) -> Option<Range<usize>> {
        let begin = self.cursor.tokens.at_location(parts.first()?.span.start)?;
        if let Some(range) = self.plain.identifiers.get(&begin) {
            return Some(range.clone());
        }
        let last = self.cursor.tokens.at_location(parts.last()?.span.start)?;
        Some(begin..last + 1)
    }

    fn relation(&mut self, name: &ObjectName, aliased: bool, call: bool) {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let Some(words) = self.words(&parts) else { return };
        let streaming = self.plain.streamed.contains(&words.start);
        let around = || self.frames.iter().filter_map(|frame| frame.gathers);
        // what cannot be kept is told before what can
        let gathers = around().find(|gathers| !gathers.by_groups).or_else(|| around().next());
        if streaming {
            self.around_stream = gathers.filter(|gathers| !gathers.by_groups).or(self.around_stream).or(gathers);
        }
        let watermark = self.plain.watermarks.get(&words.start).cloned();
        let place = self.cursor.tokens.place(words.start);
        let texts: Vec<String> = parts.iter().map(|part| part.value.clone()).collect();
        if call {
            if !streaming && unfolds(&texts) {
                return;
            }
            let Some(open) = self.cursor.closing(words.end) else { return };
            let arguments = self.cursor.within(words.end, open + 1);
            let call = Call::read(&texts.join("."), arguments, self.of, self.report);
            if call.function == "range" && !streaming {
                return;
            }
            let range = self.cursor.bytes(&(words.start..open + 1));
            let written = Written::default();
            let read = Read { name: None, streaming, place, written, range, aliased, gathers, watermark, call: None, changes: None };
            if call.function == table_changes::NAME {
                return self.changes(&call, read);
            }
            self.found.push(Read { call: Some(call), ..read });
            return;
        }
        if !streaming && common_of(self.common(), &parts).is_some() {
            return;
        }
        let written = Written::of(&parts.iter().map(|part| (part.value.clone(), part.quote_style.is_some())).collect::<Vec<_>>());
        if let Some(name) = self.scope.named(&written, &place, self.report) {
            let range = self.cursor.bytes(&words);
            self.found.push(Read {
                name: Some(name),
                streaming,
                place,
                written,
                range,
                aliased,
                gathers,
                watermark,
                call: None,
                changes: None,
            });
        }
    }

    /// Takes down what may be the name of a table, in two parts or three, before a column.
    fn qualified(&mut self, parts: &[&Ident]) {
        for count in [3, 2] {
            if let Some(parts) = parts.get(..count)
                && let Some(words) = self.words(parts)
            {
                let range = self.cursor.bytes(&words);
                self.qualified.push(Qualified { range, parts: parts.iter().map(|part| part.value.clone()).collect() });
            }
        }
    }

    /// The common table expressions that can be named in the query that is walked.
    fn common(&self) -> &[Common] {
        self.frames.last().map_or(&[], |frame| &frame.common)
    }

    /// `table_changes('t', from[, to])` is a read of the table that it names.
    fn changes(&mut self, call: &Call, read: Read) {
        let Some((written, changes)) = table_changes::read(call, self.of, self.report) else { return };
        if read.streaming && changes.stream().is_none() {
            let what = "table_changes from an instant on, as a stream,".to_owned();
            let instead = Some("the version (tributary show history tells it)".to_owned());
            return self.report.fault(&read.place, &Error::NotExecuted { of: self.of.to_owned(), what, instead });
        }
        if let Some(name) = self.scope.named(&written, &read.place, self.report) {
            self.found.push(Read { name: Some(name), written, changes: Some(changes), ..read });
        }
    }
}

impl Visitor for Gathering<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Tree) -> ControlFlow<()> {
        let outer = self.tables.remove(&std::ptr::from_ref(query));
        let mut common = outer.unwrap_or_else(|| self.frames.last().map(|frame| frame.common.clone()).unwrap_or_default());
        if let Some(with) = &query.with {
            for table in &with.cte_tables {
                let name = table.alias.name.value.clone();
                let streamed = self.streamed(&table.query, &common);
                if with.recursive {
                    common.push(Common { name: name.clone(), streamed });
                }
                self.tables.insert(std::ptr::from_ref(&*table.query), common.clone());
                common.push(Common { name, streamed });
            }
        }
        self.frames.push(Frame { common, gathers: shape(query).gathers });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Tree) -> ControlFlow<()> {
        self.frames.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if self.unkept.is_none() {
            self.unkept = select.from.iter().find_map(|from| self.unkept_join(from));
        }
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                    let words = self.words(&parts.iter().collect::<Vec<_>>());
                    self.columns.extend(words.map(|words| words.start));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
                    self.qualified(&parts);
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, args, .. } => self.relation(name, alias.is_some(), args.is_some()),
            TableFactor::Function { name, alias, .. } => self.relation(name, alias.is_some(), true),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if self.unkept.is_none() {
            self.unkept = self.unkept_condition(expression);
        }
        let Expr::CompoundIdentifier(parts) = expression else { return ControlFlow::Continue(()) };
        let parts: Vec<&Ident> = parts.iter().collect();
        if let Some((_, table)) = parts.split_last() {
            self.qualified(table);
        }
        let Some(words) = self.words(&parts) else { return ControlFlow::Continue(()) };
        if let [live, _, _, ..] = parts.as_slice()
            && live.quote_style.is_none()
            && live.value.eq_ignore_ascii_case("live")
        {
            let range = self.cursor.bytes(&(words.start..words.start + 2));
            self.edits.push((range, String::new()));
        }
        if let [metadata, field] = parts.as_slice()
            && metadata.value.eq_ignore_ascii_case("_metadata")
        {
            let range = self.cursor.bytes(&words);
            let names_column = self.columns.contains(&words.start);
            self.metadata.push(Metadata { range, field: field.value.to_lowercase(), names_column });
        }
        ControlFlow::Continue(())
    }
}
