//! Statements of one file, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlparser::tokenizer::Token;
use tributary_fault::nearest;
use tributary_specs::Place;

use crate::cursor::{Cursor, Tokens};
use crate::error::Error;
use crate::names::{Scope, Written};
use crate::parameters::Parameters;
use crate::parsed::{DatasetName, Definition, Flow};
use crate::place::Lines;
use crate::portability::rules;
use crate::report::Report;
use crate::scan::Statement;

/// What the files define.
#[derive(Debug, Default)]
pub(crate) struct Defined {
    pub(crate) datasets: Vec<Definition>,
    pub(crate) flows: Vec<Flow>,
    /// Datasets whose definition has a mistake: what reads them is not told that they are missing.
    pub(crate) broken: Vec<DatasetName>,
    /// Texts in double quotes, which look like names, by the place of the definition or flow they stand in.
    pub(crate) double_quoted: Vec<(Place, String, Place)>,
    /// Words, in lower case, with which statements begin that could not be read so far as to know what they define.
    pub(crate) unread: BTreeSet<String>,
    /// Whether there are more datasets than a pipeline has.
    pub(crate) too_many: bool,
}

/// Datasets and flows of a pipeline at most.
const DATASETS_MAX: usize = 2000;

/// Words of an unread statement among which the name of what it defines is.
const HEAD_WORDS: usize = 14;

impl Defined {
    /// Whether a statement with a mistake may define this name.
    pub(crate) fn may_define(&self, name: &DatasetName) -> bool {
        let same = |other: &DatasetName| other.name.eq_ignore_ascii_case(&name.name);
        self.broken.iter().any(same) || self.unread.contains(&name.name.to_lowercase())
    }
}

/// Reads statements of one file.
pub(crate) struct Reader<'a> {
    pub(crate) scope: &'a mut Scope,
    pub(crate) parameters: &'a mut Parameters,
    pub(crate) report: &'a mut Report,
    pub(crate) defined: &'a mut Defined,
    /// `SET` statements of the file: name and place.
    pub(crate) settings: &'a mut Vec<(String, Place)>,
}

/// Statements by their first words, for the nearest one.
const STATEMENTS: &[&str] = &[
    "CREATE", "APPLY", "AUTO", "SET", "USE", "REFRESH", "ALTER", "DROP", "GRANT", "REVOKE", "SHOW", "OPTIMIZE", "COPY", "INSERT", "MERGE",
    "SELECT", "UPDATE", "DELETE", "COMMENT",
];

impl Reader<'_> {
    /// Reads a statement.
    pub(crate) fn statement(&mut self, statement: Statement, lines: &Lines) {
        self.report.muted = false;
        if self.defined.datasets.len() + self.defined.flows.len() >= DATASETS_MAX {
            if !self.defined.too_many {
                self.defined.too_many = true;
                let what = "the pipeline".to_owned();
                self.report.fault(&statement.prepared.place(0), &Error::TooLarge { what, most: DATASETS_MAX, of: "datasets and flows" });
            }
            return;
        }
        for (at, error) in &statement.mistakes {
            self.report.fault(&lines.place(*at), error);
        }
        for at in &statement.hints {
            self.report.not_applied(lines.place(*at), "a hint (/*+ … */)", None, "the plan is found without hints");
        }
        self.report.muted = !statement.mistakes.is_empty();
        let (datasets, flows) = (self.defined.datasets.len(), self.defined.flows.len());
        let faults = self.report.faults.len();
        let words = statement.prepared.text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let head: Vec<String> = words.take(HEAD_WORDS).map(str::to_lowercase).collect();
        let mut double_quoted: Vec<(Place, String)> = Vec::new();
        let read = match Tokens::new(statement.prepared) {
            Ok(tokens) if tokens.is_empty() => return,
            Ok(tokens) => {
                for (at, rule) in &statement.uses {
                    self.report.uses(lines.place(*at), rule, None);
                }
                let compared = |at: &usize| tokens.is_compared(*at);
                let quoted = statement.double_quoted.into_iter().filter(|(at, _)| compared(at));
                double_quoted = quoted.map(|(at, text)| (tokens.prepared.place(at), text)).collect();
                self.words(Cursor::new(Arc::new(tokens)))
            }
            Err((prepared, at, error)) => {
                self.report.fault(&prepared.place(at), &error);
                None
            }
        };
        let failed = !statement.whole || self.report.muted || self.report.faults.len() > faults;
        if failed {
            match read {
                Some(name) => self.defined.broken.push(name),
                None => self.defined.unread.extend(head),
            }
            self.defined.broken.extend(self.defined.datasets[datasets..].iter().map(|dataset| dataset.name.clone()));
        }
        let owner = self.defined.datasets.get(datasets).map(|dataset| dataset.place.clone());
        let owner = owner.or_else(|| self.defined.flows.get(flows).map(|flow| flow.place.clone()));
        if let Some(owner) = owner {
            self.defined.double_quoted.extend(double_quoted.into_iter().map(|(place, text)| (owner.clone(), text, place)));
        }
    }

    /// Reads the words of a statement; gives the name of the dataset it is about, where it got so far.
    fn words(&mut self, mut cursor: Cursor) -> Option<DatasetName> {
        let begin = cursor.place();
        match cursor.keyword(0).as_deref() {
            Some("CREATE") => self.create(&mut cursor),
            Some("APPLY") if cursor.eat(&["APPLY", "CHANGES"]) => self.changes(cursor, &begin),
            Some("AUTO") if cursor.eat(&["AUTO", "CDC"]) => self.changes(cursor, &begin),
            Some("SET") => self.set(cursor, &begin),
            Some("USE") => self.use_scope(cursor, &begin),
            _ => self.other(cursor, &begin),
        }
    }

    /// `SET name = value`, `SET CATALOG name`.
    fn set(&mut self, mut cursor: Cursor, begin: &Place) -> Option<DatasetName> {
        cursor.at += 1;
        if cursor.eat(&["CATALOG"]) {
            match cursor.identifier().or_else(|| cursor.string()) {
                Some(catalog) => self.scope.catalog = Some(catalog),
                None => self.expected(&cursor, "SET CATALOG", "a name"),
            }
            return None;
        }
        let from = cursor.at;
        while !cursor.is_done() && cursor.sign(0) != Some(&Token::Eq) {
            cursor.at += 1;
        }
        let name: String = cursor.text_from(from).split_whitespace().collect();
        let name = name.trim_matches(['`', '\'']).to_owned();
        if name.is_empty() || !cursor.eat_sign(&Token::Eq) {
            self.expected(&cursor, "SET", "name = value");
            return None;
        }
        let value = cursor.rest().trim().to_owned();
        self.parameters.set(&name, &value);
        self.settings.push((name, begin.clone()));
        None
    }

    /// `USE CATALOG c`, `USE SCHEMA s`, `USE [c.]s`: for the rest of the file.
    fn use_scope(&mut self, mut cursor: Cursor, begin: &Place) -> Option<DatasetName> {
        cursor.at += 1;
        let catalog = cursor.eat(&["CATALOG"]);
        let named = catalog || cursor.eat(&["SCHEMA"]) || cursor.eat(&["DATABASE"]);
        if catalog {
            self.report.uses(begin.clone(), &rules::USE_CATALOG, None);
        }
        let name = Written::read(&mut cursor).filter(|_| cursor.is_done());
        match name.map(|name| name.parts) {
            Some(parts) if catalog && parts.len() == 1 => self.scope.catalog = parts.into_iter().next(),
            Some(parts) if !catalog && parts.len() == 1 => self.scope.schema = parts.into_iter().next(),
            Some(parts) if !catalog && parts.len() == 2 => {
                let mut parts = parts.into_iter();
                (self.scope.catalog, self.scope.schema) = (parts.next(), parts.next());
            }
            _ => self.expected(&cursor, "USE", if named { "one name" } else { "CATALOG name or SCHEMA name" }),
        }
        None
    }

    /// Statements that pipelines do not execute, and what is no statement.
    fn other(&mut self, cursor: Cursor, begin: &Place) -> Option<DatasetName> {
        let words: Vec<String> = (0..3).map_while(|ahead| cursor.keyword(ahead)).collect();
        let text = self.parameters_free(&cursor);
        let shown = if words.is_empty() { cursor.found() } else { words.iter().take(2).cloned().collect::<Vec<_>>().join(" ") };
        let here = self.report.not_applied.len();
        let has = |clause: &[&str]| (cursor.at..cursor.end).any(|at| cursor.within(at, cursor.end).sees(clause));
        match words.first().map(String::as_str) {
            Some("ALTER") if has(&["SET", "MASK"]) => self.report.unprotected(begin.clone(), "SET MASK", text.as_deref()),
            Some("ALTER") if has(&["SET", "ROW", "FILTER"]) => self.report.unprotected(begin.clone(), "SET ROW FILTER", text.as_deref()),
            Some(
                "GRANT" | "REVOKE" | "SHOW" | "OPTIMIZE" | "COPY" | "ALTER" | "DROP" | "REFRESH" | "MERGE" | "INSERT" | "COMMENT"
                | "DESCRIBE" | "DESC" | "ANALYZE" | "VACUUM",
            ) => {
                let reason = "a pipeline only defines datasets; such statements are for `tributary sql`";
                self.report.not_applied(begin.clone(), &shown, text.as_deref(), reason);
            }
            Some(
                "SELECT" | "WITH" | "UPDATE" | "DELETE" | "TRUNCATE" | "EXPLAIN" | "CALL" | "DECLARE" | "BEGIN" | "EXECUTE" | "VALUES"
                | "TABLE" | "FROM",
            ) => {
                self.report.fault(begin, &Error::UnknownStatement { statement: shown, nearest: None });
            }
            first => {
                let near = first.and_then(|first| nearest(first, STATEMENTS.iter().copied())).map(str::to_owned);
                self.report.fault(begin, &Error::UnknownStatement { statement: shown, nearest: near });
            }
        }
        if self.report.not_applied.len() > here {
            self.report.uses(begin.clone(), &rules::OTHER_STATEMENT, text.as_deref());
        }
        None
    }

    /// The name a statement such as `ALTER TABLE name` is about.
    fn parameters_free(&self, cursor: &Cursor) -> Option<String> {
        let kinds = ["TABLE", "VIEW", "FUNCTION", "SCHEMA", "CATALOG", "INTO", "OPTIMIZE"];
        let at = (cursor.at..cursor.end)
            .take(8)
            .find(|at| cursor.within(*at, cursor.end).keyword(0).is_some_and(|word| kinds.contains(&word.as_str())))?;
        let mut name = cursor.within(at + 1, cursor.end);
        let _ = name.eat(&["IF", "EXISTS"]) || name.eat(&["IF", "NOT", "EXISTS"]);
        Written::read(&mut name).map(|name| name.parts.join("."))
    }

    /// Tells that something else was expected where the cursor is.
    pub(crate) fn expected(&mut self, cursor: &Cursor, of: &str, expected: &str) {
        let found = cursor.found();
        self.report.fault(&cursor.place(), &Error::Syntax { of: of.to_owned(), expected: expected.to_owned(), found });
    }

    /// A name, or a mistake that is told; it is passed over.
    pub(crate) fn name(&mut self, cursor: &mut Cursor, of: &str) -> Option<(Written, DatasetName, Place)> {
        let place = cursor.place();
        let identifier = cursor.sees(&["IDENTIFIER"]) && cursor.sign(1) == Some(&Token::LParen);
        let written = if identifier { self.identifier(cursor) } else { Written::read(cursor) };
        let Some(written) = written else {
            self.expected(cursor, of, "a name");
            return None;
        };
        if cursor.sign(0) == Some(&Token::Minus) {
            let name = written.parts.join(".");
            let reason = "it has a dash outside back-quotes".to_owned();
            self.report
                .fault(&place, &Error::NameUnreadable { name, reason, instead: Some("the part with the dash in back-quotes".to_owned()) });
            return None;
        }
        let name = self.scope.named(&written, &place, self.report)?;
        Some((written, name, place))
    }

    /// `IDENTIFIER('a.b')` or `IDENTIFIER(:p)` as a name.
    fn identifier(&mut self, cursor: &mut Cursor) -> Option<Written> {
        let close = cursor.closing(cursor.at + 1)?;
        let mut inside = cursor.within(cursor.at + 2, close);
        let text = match inside.string() {
            Some(text) => text,
            None if inside.eat_sign(&Token::Colon) => {
                let name = inside.identifier()?;
                self.report.uses(cursor.place(), &rules::NAMED_PARAMETER, None);
                match self.parameters.text(&name) {
                    Ok(text) => text.to_owned(),
                    Err(error) => {
                        self.report.fault(&cursor.place(), &error);
                        return None;
                    }
                }
            }
            None => return None,
        };
        cursor.at = close + 1;
        let parts: Vec<(String, bool)> = text.split('.').map(|part| (part.trim().trim_matches('`').to_owned(), false)).collect();
        Some(Written::of(&parts))
    }

    /// Names in brackets, `(a, b)`; they are passed over.
    pub(crate) fn columns(&mut self, cursor: &mut Cursor, of: &str, clause: &str) -> Option<Vec<String>> {
        let before = cursor.clone();
        let Some(items) = cursor.bracketed() else {
            self.expected(cursor, &format!("{of}: {clause}"), "a list of columns in brackets");
            return None;
        };
        if items.is_empty() {
            self.expected(&before.within(before.at + 1, before.end), &format!("{of}: {clause}"), "a column");
            return None;
        }
        let mut names = Vec::new();
        for mut item in items {
            let name = item.identifier();
            match name.filter(|_| item.is_done()) {
                Some(name) => names.push(name),
                None => {
                    self.expected(&item, &format!("{of}: {clause}"), "the name of a column");
                    return None;
                }
            }
        }
        Some(names)
    }
}
