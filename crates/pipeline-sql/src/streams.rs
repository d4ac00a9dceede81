//! What stands around tables in a FROM clause and only pipelines have: `STREAM`, `WATERMARK`, options of a stream, `IDENTIFIER`.
//!
//! It is taken out of the words before the parser of queries gets them, and remembered at the word where the table's name begins.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use tributary_specs::{StreamRead, Watermark};

use crate::cursor::Cursor;
use crate::error::Error;
use crate::literal;
use crate::parameters::Parameters;
use crate::parsed::Placed;
use crate::portability::rules;
use crate::report::Report;

/// The words of a query as the parser of queries takes them.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// Words at which the name of a streamed table begins.
    pub(crate) streamed: BTreeSet<usize>,
    /// Watermarks of streamed tables, by the same words.
    pub(crate) watermarks: BTreeMap<usize, Placed<Watermark>>,
    /// Words of the statement that were taken out.
    pub(crate) removed: Vec<Range<usize>>,
    /// Words in whose place something else is read.
    pub(crate) replaced: Vec<(Range<usize>, String)>,
    /// How the options of a stream have it read.
    pub(crate) stream_read: StreamRead,
    /// Names given by `IDENTIFIER(…)`: where they begin and end.
    pub(crate) identifiers: BTreeMap<usize, Range<usize>>,
}

/// Words after which `STREAM` before them was a table's name.
const AFTER_NAME: &[&str] = &[
    "AS",
    "WHERE",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "NATURAL",
    "SEMI",
    "ANTI",
    "ON",
    "USING",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "QUALIFY",
    "WINDOW",
    "LATERAL",
    "TABLESAMPLE",
    "VERSION",
    "TIMESTAMP",
    "WATERMARK",
];

/// What part of a query the words at one depth of brackets stand in.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    select: bool,
    from: bool,
    /// Whether a table comes next.
    table: bool,
}

/// Takes apart the words from `cursor` on. `in_from`: they are what follows a FROM.
pub(crate) fn plain(cursor: &Cursor, in_from: bool, of: &str, parameters: &Parameters, report: &mut Report) -> Plain {
    let mut walk = Walk {
        cursor: cursor.clone(),
        parts: vec![Part { select: in_from, from: in_from, table: in_from }],
        plain: Plain::default(),
        of,
        parameters,
        closing_streams: BTreeSet::new(),
        stream: None,
    };
    while !walk.cursor.is_done() {
        walk.step(report);
    }
    walk.plain
}

struct Walk<'a> {
    cursor: Cursor,
    parts: Vec<Part>,
    plain: Plain,
    of: &'a str,
    parameters: &'a Parameters,
    /// Brackets that only close a `STREAM(`.
    closing_streams: BTreeSet<usize>,
    /// The word at which the name of the last table began, where that is a stream.
    stream: Option<usize>,
}

impl Walk<'_> {
    fn part(&mut self) -> &mut Part {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Passes the next word on.
    fn keep(&mut self) {
        let at = self.cursor.at;
        if let Some(word) = self.cursor.tokens.word(at) {
            self.plain.tokens.push(word.token.clone());
        }
        self.cursor.at += 1;
    }

    /// Takes words out.
    fn remove(&mut self, count: usize) {
        let at = self.cursor.at;
        self.plain.removed.push(at..at + count);
        self.cursor.at += count;
    }

    fn step(&mut self, report: &mut Report) {
        if self.closing_streams.remove(&self.cursor.at) {
            return self.remove(1);
        }
        let part = *self.part();
        match self.cursor.sign(0).cloned() {
            Some(Token::LParen) => {
                self.part().table = false;
                self.parts.push(Part { select: false, from: part.table, table: part.table });
                self.keep();
            }
            Some(Token::RParen) => {
                self.parts.pop();
                self.keep();
            }
            Some(Token::Comma) => {
                let from = part.from;
                self.part().table = from;
                self.keep();
            }
            Some(Token::Colon) => self.colon(report),
            Some(Token::Word(word)) if word.quote_style.is_none() => self.word(&word.value.to_ascii_uppercase(), part, report),
            _ => {
                self.part().table = false;
                self.keep();
            }
        }
    }

    fn word(&mut self, word: &str, part: Part, report: &mut Report) {
        if part.table && word == "STREAM" && self.stream(report) {
            return;
        }
        self.stream = self.stream.filter(|_| !part.table);
        if part.table && word == "IDENTIFIER" && self.cursor.sign(1) == Some(&Token::LParen) {
            return self.identifier(report);
        }
        if part.from && word == "WATERMARK" && !part.table {
            return self.watermark(report);
        }
        if part.from && !part.table && word == "IDENTIFIED" && self.cursor.sees(&["IDENTIFIED", "BY"]) {
            return self.remove(3);
        }
        if part.from && !part.table && word == "CHANGES" && self.cursor.sees(&["CHANGES", "FROM"]) {
            let what = "CHANGES FROM VERSION".to_owned();
            let instead = Some("STREAM(table), which reads what is new since the last run".to_owned());
            report.fault(&self.cursor.place(), &Error::NotExecuted { of: self.of.to_owned(), what, instead });
            self.cursor.at = self.cursor.end;
            return;
        }
        if part.from && !part.table && word == "WITH" && self.cursor.sign(1) == Some(&Token::LParen) {
            return self.options(report);
        }
        let distinct_from =
            word == "FROM" && self.plain.tokens.last().is_some_and(|last| last.token.to_string().eq_ignore_ascii_case("distinct"));
        let state = self.part();
        state.table = false;
        match word {
            "SELECT" => *state = Part { select: true, from: false, table: false },
            "FROM" if state.select && !distinct_from => (state.from, state.table) = (true, true),
            "JOIN" if state.from => state.table = true,
            "LATERAL" if part.table => state.table = true,
            "WHERE" | "GROUP" | "HAVING" | "ORDER" | "LIMIT" | "WINDOW" | "QUALIFY" | "UNION" | "EXCEPT" | "INTERSECT" => {
                state.from = false
            }
            _ => {}
        }
        self.keep();
    }

    /// `STREAM t`, `STREAM(t)`, `STREAM f(…)`, `STREAM(f(…))`.
    fn stream(&mut self, report: &mut Report) -> bool {
        match self.cursor.sign(1) {
            Some(Token::LParen) => {
                let inner = self.cursor.keyword(2);
                if matches!(inner.as_deref(), Some("SELECT" | "WITH" | "VALUES")) {
                    let reason = "a stream is of a table or of a function, not of a query".to_owned();
                    let instead = Some("(SELECT … FROM STREAM(table)), with STREAM inside the query".to_owned());
                    let clause = "STREAM (SELECT …)".to_owned();
                    report.fault(&self.cursor.place(), &Error::ClauseRefused { of: self.of.to_owned(), clause, reason, instead });
                    self.remove(1);
                    return true;
                }
                if let Some(close) = self.cursor.closing(self.cursor.at + 1) {
                    self.closing_streams.insert(close);
                }
                self.remove(2);
            }
            Some(Token::Word(word))
                if word.quote_style.is_some() || !AFTER_NAME.iter().any(|after| word.value.eq_ignore_ascii_case(after)) =>
            {
                self.remove(1);
            }
            _ => return false,
        }
        self.plain.streamed.insert(self.cursor.at);
        self.stream = Some(self.cursor.at);
        if self.cursor.keyword(0).as_deref() == Some("IDENTIFIER") && self.cursor.sign(1) == Some(&Token::LParen) {
            self.identifier(report);
        } else {
            self.part().table = false;
            self.keep();
        }
        true
    }

    /// `WATERMARK c DELAY OF INTERVAL 10 SECONDS`: how long it is waited for rows of the stream before it.
    fn watermark(&mut self, report: &mut Report) {
        let place = self.cursor.place();
        let begin = self.cursor.at;
        let syntax = |walk: &mut Self, at: usize, report: &mut Report| {
            let expected = "WATERMARK column DELAY OF INTERVAL n unit".to_owned();
            report.fault(&place, &Error::Syntax { of: walk.of.to_owned(), expected, found: walk.cursor.found_at(at) });
            walk.cursor.at = walk.cursor.end;
        };
        let delay = (begin..self.cursor.end).find(|at| self.cursor.within(*at, self.cursor.end).sees(&["DELAY", "OF", "INTERVAL"]));
        let Some(delay) = delay else { return syntax(self, begin + 1, report) };
        let Some((millis, words)) = interval(&self.cursor.within(delay + 3, self.cursor.end)) else {
            return syntax(self, delay + 3, report);
        };
        report.uses(place.clone(), &rules::WATERMARK, Some(self.of));
        let is_long = (begin..delay).any(|at| self.cursor.within(at, delay).sees(&["AS"]));
        match self.cursor.sign(1).cloned() {
            Some(Token::Word(column)) if delay == begin + 2 => {
                let watermark = Placed { value: Watermark { column: column.value, delay_millis: millis }, place: Some(place.clone()) };
                match self.stream {
                    Some(stream) => drop(self.plain.watermarks.insert(stream, watermark)),
                    None => report.not_applied(place, "WATERMARK", Some(self.of), "only a stream has one"),
                }
            }
            _ => {
                let name = if is_long { " with a name" } else { "" };
                let what = format!("WATERMARK over an expression{name}");
                let instead = Some("the expression as a column of a view, and WATERMARK over that column".to_owned());
                report.fault(&place, &Error::NotExecuted { of: self.of.to_owned(), what, instead });
            }
        }
        self.remove(delay + 3 + words - begin);
    }

    /// `STREAM t WITH ('k' = 'v')`, `WITH (SKIPCHANGECOMMITS)`.
    fn options(&mut self, report: &mut Report) {
        let place = self.cursor.place();
        let Some(close) = self.cursor.closing(self.cursor.at + 1) else {
            self.cursor.at = self.cursor.end;
            return;
        };
        report.uses(place.clone(), &rules::STREAM_OPTIONS, Some(self.of));
        let text = self.cursor.tokens.text(self.cursor.at + 2, close).to_lowercase();
        for option in text.split(',') {
            let (name, value) = option.split_once('=').unwrap_or((option, "true"));
            let bare = |text: &str| text.trim().trim_matches(['\'', '"', '`']).to_owned();
            match (bare(name).as_str(), bare(value) == "true") {
                ("skipchangecommits", true) => self.plain.stream_read = StreamRead::SkipChangeCommits,
                ("readchangefeed" | "readchangedata", true) => self.plain.stream_read = StreamRead::ChangeFeed,
                ("skipchangecommits" | "readchangefeed" | "readchangedata", false) => {}
                (name, _) => {
                    let reason = format!("{name} does nothing: a stream is read from where the last run ended");
                    report.not_applied(place.clone(), "WITH (…) of a stream", Some(self.of), &reason);
                }
            }
        }
        self.remove(close + 1 - self.cursor.at);
    }

    /// `:name` outside a path into JSON is a parameter.
    fn colon(&mut self, report: &mut Report) {
        let at = self.cursor.at;
        let adjacent = |a: usize, b: usize| match (self.cursor.tokens.word(a), self.cursor.tokens.word(b)) {
            (Some(a), Some(b)) => a.end == b.start,
            _ => false,
        };
        let path = at > 0
            && adjacent(at - 1, at)
            && !matches!(
                self.cursor.tokens.word(at - 1).map(|word| &word.token.token),
                Some(Token::LParen | Token::Comma | Token::Eq | Token::Lt | Token::Gt)
            );
        match self.cursor.sign(1).cloned() {
            Some(Token::Word(name)) if !path && adjacent(at, at + 1) => {
                report.uses(self.cursor.place(), &rules::NAMED_PARAMETER, Some(self.of));
                let value = self.parameters.text(&name.value).map(str::to_owned).unwrap_or_else(|error| {
                    report.fault(&self.cursor.place(), &error);
                    String::new()
                });
                if let Some(word) = self.cursor.tokens.word(at) {
                    let token = Token::SingleQuotedString(value.clone());
                    self.plain.tokens.push(TokenWithSpan { token, span: word.token.span });
                }
                self.plain.replaced.push((at..at + 2, literal::quoted(&value)));
                self.cursor.at += 2;
            }
            _ => self.keep(),
        }
    }

    /// `IDENTIFIER('a.b')`, `IDENTIFIER(:p)` as the name of a table.
    fn identifier(&mut self, report: &mut Report) {
        let at = self.cursor.at;
        self.part().table = false;
        let Some(close) = self.cursor.closing(at + 1) else { return self.keep() };
        let inside = self.cursor.within(at + 2, close);
        let text = match (inside.sign(0), inside.sign(1)) {
            (Some(Token::SingleQuotedString(text)), None) => Ok(text.clone()),
            (Some(Token::Colon), Some(Token::Word(name))) => {
                report.uses(inside.place(), &rules::NAMED_PARAMETER, Some(self.of));
                self.parameters.text(&name.value).map(str::to_owned)
            }
            _ => {
                Err(Error::Syntax { of: self.of.to_owned(), expected: "a name in quotes or a parameter".to_owned(), found: inside.found() })
            }
        };
        let text = text.unwrap_or_else(|error| {
            report.fault(&inside.place(), &error);
            "unknown".to_owned()
        });
        if let Some(word) = self.cursor.tokens.word(at) {
            let span = word.token.span;
            for (index, part) in text.split('.').enumerate() {
                if index > 0 {
                    self.plain.tokens.push(TokenWithSpan { token: Token::Period, span });
                }
                let token = Token::make_word(part.trim().trim_matches('`'), Some('`'));
                self.plain.tokens.push(TokenWithSpan { token, span });
            }
        }
        self.plain.identifiers.insert(at, at..close + 1);
        self.cursor.at = close + 1;
    }
}

/// An interval of one unit, `30 SECONDS` or `'30 seconds'`, in milliseconds, and how many words it takes; none where none begins here.
fn interval(cursor: &Cursor) -> Option<(u64, usize)> {
    let (number, unit, words) = match (cursor.sign(0)?, cursor.sign(1)) {
        (Token::Number(number, _), Some(Token::Word(unit))) => (number.clone(), unit.value.clone(), 2),
        (Token::SingleQuotedString(text), unit) => match (text.trim().split_once(char::is_whitespace), unit) {
            (Some((number, unit)), _) => (number.to_owned(), unit.trim().to_owned(), 1),
            (None, Some(Token::Word(unit))) => (text.trim().to_owned(), unit.value.clone(), 2),
            (None, _) => return None,
        },
        _ => return None,
    };
    let unit = unit.to_lowercase();
    let millis: u64 = match unit.strip_suffix('s').unwrap_or(&unit) {
        "millisecond" => 1,
        "second" => 1000,
        "minute" => 60_000,
        "hour" => 3_600_000,
        "day" => 86_400_000,
        "week" => 7 * 86_400_000,
        _ => return None,
    };
    Some((number.parse::<u64>().ok()?.checked_mul(millis)?, words))
}
