//! A statement read word by word.

use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, Ident, Query, TableFactor};
use tributary_lake::datafusion::sql::sqlparser::dialect::DatabricksDialect;
use tributary_lake::datafusion::sql::sqlparser::parser::{Parser, ParserError};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::Name;
use crate::parse::syntax;
use crate::script::Piece;
use crate::{Error, error};

/// Where in a statement the reader is; queries and expressions are read by the parser below.
pub(super) struct Cursor<'p> {
    piece: &'p Piece,
    parser: Parser<'p>,
}

static DIALECT: DatabricksDialect = DatabricksDialect {};

impl<'p> Cursor<'p> {
    pub(super) fn new(piece: &'p Piece) -> Self {
        Self { piece, parser: Parser::new(&DIALECT).with_tokens_with_locations(piece.tokens.clone()) }
    }

    /// The word so far ahead, in capitals; none where it is quoted or no word.
    pub(super) fn word(&self, ahead: usize) -> Option<String> {
        match &self.parser.peek_nth_token_ref(ahead).token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        }
    }

    /// Whether these words come next.
    pub(super) fn sees(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| self.word(ahead).as_deref() == Some(word))
    }

    /// Passes over these words where they come next.
    pub(super) fn eat(&mut self, words: &[&str]) -> bool {
        let seen = self.sees(words);
        if seen {
            words.iter().for_each(|_| self.skip());
        }
        seen
    }

    /// Passes over these words, which must come next.
    pub(super) fn expect(&mut self, words: &[&str]) -> Result<(), Error> {
        if self.eat(words) { Ok(()) } else { Err(self.expected(&words.join(" "))) }
    }

    pub(super) fn skip(&mut self) {
        self.parser.next_token();
    }

    pub(super) fn sign(&self) -> &Token {
        &self.parser.peek_nth_token_ref(0).token
    }

    pub(super) fn sign_after(&self, ahead: usize) -> &Token {
        &self.parser.peek_nth_token_ref(ahead).token
    }

    pub(super) fn eat_sign(&mut self, sign: &Token) -> bool {
        self.parser.consume_token(sign)
    }

    pub(super) fn expect_sign(&mut self, sign: &Token) -> Result<(), Error> {
        if self.eat_sign(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.sign(), Token::EOF)
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.is_done() { Ok(()) } else { Err(self.expected("the end of the statement")) }
    }

    /// Line and column of what comes next.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        error::position(self.parser.peek_nth_token_ref(0).span)
    }

    /// That something else should come next.
    pub(super) fn expected(&self, what: &str) -> Error {
        let TokenWithSpan { token, span } = self.parser.peek_nth_token_ref(0);
        let found: String = token.to_string().chars().take(40).collect();
        let at = if span.start.line > 0 { span.start.to_string() } else { String::new() };
        Error::Syntax { reason: format!("Expected: {what}, found: {found}{at}") }
    }

    /// A refusal of what comes next.
    pub(super) fn refused(&self, what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Refused { what: what.into(), hint: Some(hint.into()), span: self.place() }
    }

    pub(super) fn ident(&mut self) -> Result<Ident, Error> {
        match self.sign() {
            Token::Word(_) => self.parsed(Parser::parse_identifier),
            _ => Err(self.expected("a name")),
        }
    }

    /// A name of one to three parts.
    pub(super) fn name(&mut self) -> Result<Name, Error> {
        let span = self.place();
        let mut parts = vec![self.ident()?.value];
        while self.eat_sign(&Token::Period) {
            parts.push(self.ident()?.value);
        }
        match parts.len() {
            1..=3 => Ok(Name { parts, span }),
            _ => Err(Error::Refused { what: format!("the name `{}`", parts.join(".")), hint: None, span }),
        }
    }

    /// Names in brackets.
    pub(super) fn names(&mut self) -> Result<Vec<Ident>, Error> {
        self.expect_sign(&Token::LParen)?;
        let mut names = vec![self.ident()?];
        while self.eat_sign(&Token::Comma) {
            names.push(self.ident()?);
        }
        self.expect_sign(&Token::RParen)?;
        Ok(names)
    }

    /// A text in quotes.
    pub(super) fn string(&mut self) -> Result<String, Error> {
        match self.sign().clone() {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                self.skip();
                Ok(text)
            }
            _ => Err(self.expected("a text in quotes")),
        }
    }

    pub(super) fn expression(&mut self) -> Result<Expr, Error> {
        self.parsed(Parser::parse_expr)
    }

    pub(super) fn query(&mut self) -> Result<Box<Query>, Error> {
        self.parsed(Parser::parse_query)
    }

    pub(super) fn factor(&mut self) -> Result<TableFactor, Error> {
        self.parsed(Parser::parse_table_factor)
    }

    fn parsed<T>(&mut self, read: impl FnOnce(&mut Parser<'p>) -> Result<T, ParserError>) -> Result<T, Error> {
        read(&mut self.parser).map_err(|error| syntax(&error))
    }

    /// The place of what comes next, to take its text later.
    pub(super) fn mark(&self) -> usize {
        self.parser.index()
    }

    /// The text from a mark up to here.
    pub(super) fn text_from(&self, mark: usize) -> String {
        let Some(last) = self.parser.index().checked_sub(1) else { return String::new() };
        let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        let tokens = self.piece.tokens.get(mark..=last).unwrap_or_default();
        let first = tokens.iter().find(|token| !is_blank(token));
        match (first, tokens.last()) {
            (Some(first), Some(last)) => self.piece.whole.between(first.span.start, last.span.end).to_owned(),
            _ => String::new(),
        }
    }

    /// An expression and its text.
    pub(super) fn expression_text(&mut self) -> Result<String, Error> {
        let mark = self.mark();
        self.expression()?;
        Ok(self.text_from(mark))
    }

    /// `[AS] alias`, where what comes next is not one of these words.
    pub(super) fn alias(&mut self, but_not: &[&str]) -> Result<Option<Ident>, Error> {
        if self.eat(&["AS"]) {
            return self.ident().map(Some);
        }
        match self.sign() {
            Token::Word(word) if word.quote_style.is_some() || !but_not.iter().any(|not| word.value.eq_ignore_ascii_case(not)) => {
                self.ident().map(Some)
            }
            _ => Ok(None),
        }
    }
}
