//! A text of several statements, cut at semicolons and notebook cells.
//!
//! Every piece keeps the places its words have in the whole text, so that an error of the third statement tells the line of the file.

use std::ops::Range;
use std::sync::Arc;

use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace};

use crate::parse::{TOKENS_MAX, words};
use crate::{Error, lex};

/// Bytes of a text at most.
const BYTES_MAX: usize = 8 << 20;

/// Words, signs and blanks of all its statements at most, about.
const SCRIPT_TOKENS_MAX: usize = 2_000_000;
/// Signs between two marks of a text.
const STRIDE: usize = 64;

/// One statement of a text, not yet read.
#[derive(Debug, Clone)]
pub struct Piece {
    pub(crate) tokens: Vec<TokenWithSpan>,
    pub(crate) whole: Arc<Whole>,
    range: Range<usize>,
    ended: bool,
}

/// The text that pieces are of.
#[derive(Debug)]
pub(crate) struct Whole {
    text: String,
    /// Which sign of the text each line begins with.
    lines: Vec<usize>,
    /// The byte of every so manieth sign, so that a place far into a line is found as soon as one near its start.
    marks: Vec<usize>,
}

impl Whole {
    fn new(text: &str) -> Self {
        let (mut lines, mut marks) = (vec![0], Vec::new());
        for (sign, (at, char)) in text.char_indices().enumerate() {
            if sign % STRIDE == 0 {
                marks.push(at);
            }
            if char == '\n' {
                lines.push(sign + 1);
            }
        }
        Self { text: text.to_owned(), lines, marks }
    }

    /// The byte at a place.
    fn byte(&self, place: Location) -> usize {
        let line = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.lines.get(line) else { return self.text.len() };
        let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let sign = start.saturating_add(column);
        let Some(mark) = self.marks.get(sign / STRIDE) else { return self.text.len() };
        self.text[*mark..].char_indices().nth(sign % STRIDE).map_or(self.text.len(), |(at, _)| mark + at)
    }

    /// The text between two places.
    pub(crate) fn between(&self, from: Location, to: Location) -> &str {
        self.text.get(self.byte(from)..self.byte(to)).unwrap_or_default()
    }
}

impl Piece {
    /// The statement as it stands in the text, without its semicolon.
    pub fn text(&self) -> &str {
        self.whole.text.get(self.range.clone()).unwrap_or_default()
    }

    /// The bytes of the text that it is.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Line and column where it begins, counted from 1.
    pub fn place(&self) -> (u64, u64) {
        self.tokens.iter().find(|token| !is_blank(&token.token)).map_or((1, 1), |token| (token.span.start.line, token.span.start.column))
    }

    /// Whether a semicolon or the mark of a cell ends it.
    pub fn is_ended(&self) -> bool {
        self.ended
    }
}

/// Cuts a text into statements; what is empty or only a comment is none.
///
/// # Errors
/// [`Error::Syntax`] for a text that is not even words and signs: an open string or comment, a byte of no text; [`Error::Refused`] for
/// one that is too long.
///
/// ```
/// let pieces = tributary_spark_sql::pieces("select ';'; -- nothing;\nselect 2")?;
/// assert_eq!(pieces.iter().map(|piece| piece.text()).collect::<Vec<_>>(), ["select ';'", "select 2"]);
/// assert_eq!(pieces[1].place(), (2, 1));
/// # Ok::<(), tributary_spark_sql::Error>(())
/// ```
pub fn pieces(text: &str) -> Result<Vec<Piece>, Error> {
    if text.len() > BYTES_MAX {
        return Err(Error::Refused { what: format!("a text of more than {BYTES_MAX} bytes"), hint: None, span: None });
    }
    let tokens = words(text, SCRIPT_TOKENS_MAX)?;
    let whole = Arc::new(Whole::new(text));
    let mut pieces = Vec::new();
    let mut here: Vec<TokenWithSpan> = Vec::new();
    for token in tokens {
        refuse_pasted(&token)?;
        if matches!(token.token, Token::SemiColon) || is_cell_mark(&token.token) {
            pieces.extend(piece(std::mem::take(&mut here), &whole, true)?);
        } else if !matches!(token.token, Token::EOF) {
            here.push(token);
        }
    }
    pieces.extend(piece(here, &whole, false)?);
    Ok(pieces)
}

fn piece(mut tokens: Vec<TokenWithSpan>, whole: &Arc<Whole>, ended: bool) -> Result<Option<Piece>, Error> {
    tokens.retain(|token| !is_invisible(&token.token));
    let blanks = tokens.iter().take_while(|token| is_blank(&token.token)).count();
    tokens.drain(..blanks);
    if let [TokenWithSpan { token: Token::Mod, .. }, TokenWithSpan { token: Token::Word(word), .. }, ..] = tokens.as_slice()
        && word.value.eq_ignore_ascii_case("sql")
    {
        return piece(tokens.split_off(2), whole, ended);
    }
    let Some(last) = tokens.iter().rposition(|token| !is_blank(&token.token)) else { return Ok(None) };
    if tokens.len() > TOKENS_MAX {
        return Err(lex::too_many(TOKENS_MAX, tokens[TOKENS_MAX].span));
    }
    let range = whole.byte(tokens[0].span.start)..whole.byte(tokens[last].span.end);
    Ok(Some(Piece { tokens, whole: Arc::clone(whole), range, ended }))
}

fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

/// `-- COMMAND ----------`: the mark between cells of an exported notebook.
fn is_cell_mark(token: &Token) -> bool {
    matches!(token, Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) if comment.trim().starts_with("COMMAND -----"))
}

/// What web pages leave in a text and nobody sees.
fn is_invisible(token: &Token) -> bool {
    matches!(token, Token::Char('\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}'))
}

fn refuse_pasted(token: &TokenWithSpan) -> Result<(), Error> {
    match token.token {
        Token::Char(quote @ ('\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}')) => {
            let Location { line, column } = token.span.start;
            let reason = format!("the curly quote {quote} stands at Line: {line}, Column: {column}; type a straight one");
            Err(Error::Syntax { reason })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        pieces(text).unwrap().iter().map(|piece| piece.text().to_owned()).collect()
    }

    #[test]
    fn a_text_is_cut_at_semicolons_outside_of_quotes_and_comments() {
        for (text, expected) in [
            ("select 1", vec!["select 1"]),
            ("select 1;;\n;select 2;", vec!["select 1", "select 2"]),
            ("select ';', \";\", `;` -- ;\n, 2; /* ; /* ; */ */ select 3", vec!["select ';', \";\", `;` -- ;\n, 2", "select 3"]),
            ("-- only a comment", vec![]),
            ("\u{feff}select 1;\u{a0}select\u{a0}2", vec!["select 1", "select\u{a0}2"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn cells_of_a_notebook_are_statements() {
        let text = "-- Databricks notebook source\n-- MAGIC %md A title\n\n-- COMMAND ----------\n\n%sql\nselect 1\n-- COMMAND ----------\nselect 2\n";
        assert_eq!(texts(text), ["select 1", "select 2"]);
    }

    #[test]
    fn places_are_those_of_the_whole_text() {
        let pieces = pieces("select 'é';\n\n  select 2;\nselect").unwrap();
        assert_eq!(pieces.iter().map(Piece::place).collect::<Vec<_>>(), [(1, 1), (3, 3), (4, 1)]);
        assert_eq!(pieces.iter().map(Piece::is_ended).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn what_is_no_text_is_told_with_its_place() {
        assert!(pieces("select 'open").unwrap_err().to_string().contains("Unterminated string"));
        let curly = pieces("select 1;\nselect \u{2018}a\u{2019}").unwrap_err().to_string();
        assert!(curly.contains("Line: 2, Column: 8"), "{curly}");
    }
}
