//! A file to statements: cut at semicolons and notebook cells, what people paste made plain, parameters put in.
//!
//! Strings, quoted names and comments are recognised here, so that nothing inside them cuts a statement. What is said outside
//! them is left to the grammar.

use std::sync::Arc;

use tributary_sql_dialect::{closing_quote, comment_end};

use crate::error::Error;
use crate::literal::{self, Quoted};
use crate::parameters::{self, Parameters};
use crate::place::Lines;
use crate::portability::{PortabilityRule, rules};
use crate::text::Prepared;

/// Bytes of a file at most.
const FILE_BYTES_MAX: usize = 8 << 20;
/// Mistakes below the grammar that are told of one file.
const MISTAKES_MAX: usize = 50;

/// One statement of a file.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) prepared: Prepared,
    /// Mistakes below the grammar, each at its byte of the file. The statement is read on all the same, for its name.
    pub(crate) mistakes: Vec<(usize, Error)>,
    /// Hints (`/*+ … */`) that were taken out.
    pub(crate) hints: Vec<usize>,
    /// Texts that stand in double quotes, and where.
    pub(crate) double_quoted: Vec<(usize, String)>,
    /// What other platforms take otherwise, and where.
    pub(crate) uses: Vec<(usize, &'static PortabilityRule)>,
    /// Whether the statement is all there.
    pub(crate) whole: bool,
}

/// Cuts a file into statements. `each` is given one after the other, and may change the parameters for those that follow.
pub(crate) fn statements(text: &str, lines: &Arc<Lines>, parameters: &mut Parameters, mut each: impl FnMut(Statement, &mut Parameters)) {
    let mut scanner = Scanner { text, lines, at: 0, told: 0 };
    if let Some(mistake) = scanner.unfit() {
        let statement = Statement { mistakes: vec![mistake], ..scanner.empty() };
        return each(statement, parameters);
    }
    while scanner.at < text.len() {
        let statement = scanner.statement(parameters);
        let blank = statement.mistakes.is_empty() && statement.hints.is_empty() && statement.prepared.text.trim().is_empty();
        if blank {
            continue;
        }
        scanner.told += statement.mistakes.len();
        let stop = scanner.told > MISTAKES_MAX;
        each(statement, parameters);
        if stop {
            return;
        }
    }
}

struct Scanner<'a> {
    text: &'a str,
    lines: &'a Arc<Lines>,
    at: usize,
    told: usize,
}

impl<'a> Scanner<'a> {
    /// What makes the whole file no SQL.
    fn unfit(&self) -> Option<(usize, Error)> {
        if self.text.len() > FILE_BYTES_MAX {
            return Some((0, Error::TooLarge { what: "the file".to_owned(), most: FILE_BYTES_MAX, of: "bytes" }));
        }
        let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}');
        let odd = |c: char| control(c) || c == char::REPLACEMENT_CHARACTER;
        let at = self.text.find(odd)?;
        let sign = self.text[at..].chars().next().unwrap_or_default();
        let found = format!("the character U+{:04X} stands in it", u32::from(sign));
        Some((at, Error::NotText { found }))
    }

    fn empty(&self) -> Statement {
        Statement {
            prepared: Prepared::new(self.lines),
            mistakes: Vec::new(),
            hints: Vec::new(),
            double_quoted: Vec::new(),
            uses: Vec::new(),
            whole: true,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The text up to the next semicolon, cell mark or the end.
    fn statement(&mut self, parameters: &Parameters) -> Statement {
        let mut statement = self.empty();
        while let Some(next) = self.rest().chars().next() {
            if statement.mistakes.len() > MISTAKES_MAX {
                self.at = self.text.len();
                return statement;
            }
            let begins_line = self.at == 0 || self.text[..self.at].ends_with('\n');
            if begins_line && let Some(length) = cell_mark(self.rest()) {
                statement.uses.push((self.at, &rules::NOTEBOOK_CELL));
                self.at += length;
                return statement;
            }
            let rest = self.rest();
            match next {
                ';' => {
                    self.at += 1;
                    return statement;
                }
                '-' if rest.starts_with("--") => self.line_comment(&mut statement),
                '%' if begins_line && rest.starts_with("%sql") => {
                    statement.uses.push((self.at, &rules::NOTEBOOK_MAGIC));
                    self.skip(&mut statement, 4);
                }
                '/' if rest.starts_with("/*") => self.comment(&mut statement),
                '\'' | '"' => self.string(&mut statement, parameters, next, false),
                'r' | 'R' if rest[1..].starts_with(['\'', '"']) && !self.in_word() => {
                    let quote = rest[1..].chars().next().unwrap_or('\'');
                    self.string(&mut statement, parameters, quote, true);
                }
                '`' => self.quoted_name(&mut statement, parameters),
                '$' if rest.starts_with("${") => self.parameter(&mut statement, parameters),
                '\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}' => {
                    statement.uses.push((self.at, &rules::INVISIBLE_SIGN));
                    self.skip(&mut statement, next.len_utf8());
                }
                _ if next.is_ascii() => self.plain(&mut statement),
                _ if next.is_whitespace() || next == '\u{202f}' => self.skip(&mut statement, next.len_utf8()),
                _ => self.foreign(&mut statement, next),
            }
        }
        statement
    }

    /// Signs that mean nothing to this scanner, taken together.
    fn plain(&mut self, statement: &mut Statement) {
        let rest = self.rest();
        let special = |c: char| !c.is_ascii() || matches!(c, ';' | '-' | '%' | '/' | '\'' | '"' | '`' | '$' | '\n' | 'r' | 'R');
        let length = 1 + rest[1..].find(special).unwrap_or(rest.len() - 1);
        statement.prepared.keep(self.at, &rest[..length]);
        self.at += length;
    }

    /// Whether the byte before belongs to a word.
    fn in_word(&self) -> bool {
        self.text[..self.at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
    }

    /// A blank instead of some bytes.
    fn skip(&mut self, statement: &mut Statement, bytes: usize) {
        statement.prepared.put(self.at, " ");
        self.at += bytes;
    }

    fn line_comment(&mut self, statement: &mut Statement) {
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        statement.prepared.keep(self.at, &self.rest()[..length]);
        self.at += length;
    }

    /// A comment, which may hold others.
    fn comment(&mut self, statement: &mut Statement) {
        let rest = self.rest();
        let Some(end) = comment_end(rest) else { return self.unterminated(statement, "the comment", "*/") };
        if rest.starts_with("/*+") {
            statement.hints.push(self.at);
            statement.prepared.put(self.at, " ");
        } else {
            statement.prepared.keep(self.at, &rest[..end]);
        }
        self.at += end;
    }

    fn string(&mut self, statement: &mut Statement, parameters: &Parameters, quote: char, raw: bool) {
        let prefix = usize::from(raw);
        let body = &self.rest()[prefix + 1..];
        let end = closing_quote(body, quote, !raw).filter(|end| !swallows_statements(&body[..*end]));
        let Some(end) = end else { return self.unterminated(statement, "the string", if quote == '"' { "\"" } else { "'" }) };
        let written = &body[..end];
        let at = self.at;
        let plain = quote == '\'' && !raw && !written.contains('\\') && !written.contains("${");
        if plain {
            statement.prepared.keep(at, &self.rest()[..end + 2]);
        } else {
            let (value, mistakes) = literal::value(written, Quoted { quote, raw }, |name| parameters.text(name));
            let offset = |within: usize| at + prefix + 1 + within;
            statement.mistakes.extend(mistakes.into_iter().map(|(within, error)| (offset(within), error)));
            if quote == '"' {
                statement.double_quoted.push((statement.prepared.text.len(), value.clone()));
            }
            statement.prepared.put(at, &literal::quoted(&value));
        }
        self.at += prefix + 1 + end + 1;
    }

    fn quoted_name(&mut self, statement: &mut Statement, parameters: &Parameters) {
        let body = &self.rest()[1..];
        let line = &body[..body.find('\n').unwrap_or(body.len())];
        let Some(end) = closing_quote(line, '`', false) else { return self.unterminated(statement, "the name in back-quotes", "`") };
        let at = self.at;
        if line[..end].contains("${") {
            let (value, mistakes) = parameters.put_into(&line[..end], |value| Ok(value.replace('`', "``")));
            statement.mistakes.extend(mistakes.into_iter().map(|(within, error)| (at + 1 + within, error)));
            statement.prepared.put(at, &format!("`{value}`"));
        } else {
            statement.prepared.keep(at, &self.rest()[..end + 2]);
        }
        self.at += end + 2;
    }

    /// `${name}` outside quotes.
    fn parameter(&mut self, statement: &mut Statement, parameters: &Parameters) {
        let at = self.at;
        let rest = self.rest();
        let Some(length) = parameters::reference(rest) else {
            statement.mistakes.push((at, Error::Unterminated { what: "the parameter".to_owned(), close: "}" }));
            return self.skip(statement, 2);
        };
        let (value, mistakes) = parameters.put_into(&rest[..length], parameters::fit_for_code);
        statement.mistakes.extend(mistakes.into_iter().map(|(_, error)| (at, error)));
        statement.prepared.put(at, &value);
        self.at += length;
    }

    /// A sign that SQL does not know; the quotes of word processors are read as the ones that are meant, so that the rest makes sense.
    fn foreign(&mut self, statement: &mut Statement, sign: char) {
        let at = self.at;
        let instead = match sign {
            '‘' | '’' | '‚' | '‛' | '´' | '′' => Some("'"),
            '“' | '”' | '„' | '‟' | '«' | '»' | '″' => Some("\""),
            '–' | '—' | '−' | '‐' | '‑' => Some("-"),
            _ => None,
        };
        let name = sign.is_alphabetic();
        statement.mistakes.push((at, Error::ForeignSign { sign, instead, name }));
        self.at += sign.len_utf8();
        let close = match instead {
            Some("'") => ['‘', '’', '\''],
            Some("\"") => ['“', '”', '"'],
            _ if name => {
                let word = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest().len());
                self.at += word;
                statement.prepared.put(at, "a_name");
                return;
            }
            other => return statement.prepared.put(at, other.unwrap_or(" ")),
        };
        let line = &self.rest()[..self.rest().find('\n').unwrap_or(self.rest().len())];
        match line.find(close) {
            Some(end) => {
                statement.prepared.put(at, &literal::quoted(&line[..end]));
                self.at += end + line[end..].chars().next().map_or(0, char::len_utf8);
            }
            None => statement.prepared.put(at, " "),
        }
    }

    /// Something is opened and never closed: it is told where it opens, and reading goes on after the next end of a statement.
    fn unterminated(&mut self, statement: &mut Statement, what: &str, close: &'static str) {
        statement.mistakes.push((self.at, Error::Unterminated { what: what.to_owned(), close }));
        statement.whole = false;
        let rest = self.rest();
        let ends =
            rest.match_indices(';').map(|(at, _)| at).find(|at| rest[at + 1..].trim_start_matches([' ', '\t', '\r']).starts_with('\n'));
        let cell = rest.match_indices('\n').map(|(at, _)| at + 1).find(|at| cell_mark(&rest[*at..]).is_some());
        let end = match (ends, cell) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).unwrap_or(rest.len()),
        };
        self.at += end;
    }
}

/// How many bytes a notebook's mark between two cells has, at the begin of a line.
fn cell_mark(line: &str) -> Option<usize> {
    let line = &line[..line.find('\n').unwrap_or(line.len())];
    let mark = line.trim_start().strip_prefix("--")?.trim_start().strip_prefix("COMMAND")?.trim();
    (mark.len() >= 3 && mark.chars().all(|c| c == '-')).then_some(line.len())
}

/// Whether a string runs over the end of its statement into the next: then its closing quote is missing.
fn swallows_statements(body: &str) -> bool {
    body.match_indices(';').any(|(at, _)| {
        let after = &body[at + 1..];
        let next = after.trim_start();
        let new_line = after[..after.len() - next.len()].contains('\n');
        let begins = |word: &str| next.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        new_line && ["create ", "apply ", "auto cdc", "set ", "use ", "--"].into_iter().any(begins)
    })
}
