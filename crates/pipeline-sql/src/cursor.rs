//! The words and signs of one statement, and a place among them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use sqlparser::dialect::DatabricksDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use tributary_specs::Place;

use crate::error::Error;
use crate::text::Prepared;
use crate::woven::Trail;

/// Words and signs of a statement at most.
const TOKENS_MAX: usize = 50_000;
/// Brackets within brackets at most.
const BRACKETS_MAX: usize = 40;

/// The words and signs of one statement.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) prepared: Prepared,
    /// Without blanks and comments; strings hold what they mean.
    list: Vec<Word>,
    by_location: HashMap<(u64, u64), usize>,
}

/// A word or sign and the bytes of the prepared text that it takes.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) token: TokenWithSpan,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Tokens {
    /// The words of a statement.
    ///
    /// # Errors
    /// For what no SQL can be, with the byte of the prepared text.
    pub(crate) fn new(prepared: Prepared) -> Result<Self, (Prepared, usize, Error)> {
        let tokenized = Tokenizer::new(&DatabricksDialect, &prepared.text).tokenize_with_location();
        let mut bytes = Bytes { text: &prepared.text, at: 0, line: 1, column: 1 };
        let tokens = match tokenized {
            Ok(tokens) => tokens,
            Err(error) => {
                let at = bytes.at(error.location);
                let syntax = Error::Syntax { of: "the statement".to_owned(), expected: "SQL".to_owned(), found: error.message };
                return Err((prepared, at, syntax));
            }
        };
        let mut list = Vec::new();
        let mut by_location = HashMap::new();
        let mut depth = 0usize;
        for mut token in tokens {
            if let Token::SingleQuotedString(text) = &mut token.token {
                *text = text.replace("\\\\", "\\");
            }
            let (start, end) = (bytes.at(token.span.start), bytes.at(token.span.end));
            if matches!(token.token, Token::Whitespace(_) | Token::EOF) {
                continue;
            }
            match token.token {
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            let too_large = |most, of| Error::TooLarge { what: "the statement".to_owned(), most, of };
            if depth > BRACKETS_MAX {
                return Err((prepared, start, too_large(BRACKETS_MAX, "brackets within each other")));
            }
            if list.len() >= TOKENS_MAX {
                return Err((prepared, start, too_large(TOKENS_MAX, "words and signs")));
            }
            by_location.insert((token.span.start.line, token.span.start.column), list.len());
            list.push(Word { token, start, end });
        }
        Ok(Self { prepared, list, by_location })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of the word that begins at a location of the prepared text.
    pub(crate) fn at_location(&self, location: Location) -> Option<usize> {
        self.by_location.get(&(location.line, location.column)).copied()
    }

    /// Whether the string at a byte of the text is compared with something that is no string.
    pub(crate) fn is_compared(&self, at: usize) -> bool {
        let index = self.list.partition_point(|word| word.start < at);
        let sign = |before: usize| index.checked_sub(before).and_then(|index| self.list.get(index)).map(|word| &word.token.token);
        let compares =
            matches!(sign(1), Some(Token::Eq | Token::DoubleEq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq));
        compares && !matches!(sign(2), Some(Token::SingleQuotedString(_)))
    }

    pub(crate) fn word(&self, index: usize) -> Option<&Word> {
        self.list.get(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Where a word stands in the file; behind the last one the end of the statement.
    pub(crate) fn place(&self, index: usize) -> Place {
        let at = match self.list.get(index) {
            Some(word) => word.start,
            None => self.list.last().map_or(0, |last| last.end),
        };
        self.prepared.place(at)
    }

    /// The text of some words, with what stands between them.
    pub(crate) fn text(&self, from: usize, to: usize) -> &str {
        &self.prepared.text[self.bytes(from, to)]
    }

    /// Where the text of some words stands.
    pub(crate) fn trail(&self, from: usize, to: usize) -> Trail {
        self.prepared.trail(&self.bytes(from, to))
    }

    fn bytes(&self, from: usize, to: usize) -> Range<usize> {
        match (self.list.get(from), to.checked_sub(1).and_then(|last| self.list.get(last))) {
            (Some(first), Some(last)) if to > from => first.start..last.end,
            _ => 0..0,
        }
    }
}

/// Walks a text alongside its tokens.
struct Bytes<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    column: u64,
}

impl Bytes<'_> {
    /// The byte at a location that is not before the last one asked for.
    fn at(&mut self, location: Location) -> usize {
        while (self.line, self.column) < (location.line, location.column)
            && let Some(next) = self.text[self.at..].chars().next()
        {
            self.at += next.len_utf8();
            if next == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.at
    }
}

/// A place among the words of a statement, and where they end for whoever reads here.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl Cursor {
    pub(crate) fn new(tokens: Arc<Tokens>) -> Self {
        let end = tokens.len();
        Self { tokens, at: 0, end }
    }

    /// The same words, of which only some can be read.
    pub(crate) fn within(&self, from: usize, to: usize) -> Self {
        Self { tokens: Arc::clone(&self.tokens), at: from, end: to }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.end
    }

    /// The sign at a distance.
    pub(crate) fn sign(&self, ahead: usize) -> Option<&Token> {
        let index = self.at + ahead;
        if index >= self.end { None } else { self.tokens.word(index).map(|word| &word.token.token) }
    }

    /// The word at a distance, in capitals, where it is one without quotes.
    pub(crate) fn keyword(&self, ahead: usize) -> Option<String> {
        match self.sign(ahead)? {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        }
    }

    /// Whether these keywords come next.
    pub(crate) fn sees(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| match self.sign(ahead) {
            Some(Token::Word(found)) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
            _ => false,
        })
    }

    /// Passes over these keywords, if they come next.
    pub(crate) fn eat(&mut self, words: &[&str]) -> bool {
        let seen = self.sees(words);
        if seen {
            self.at += words.len();
        }
        seen
    }

    /// Passes over a sign, if it comes next.
    pub(crate) fn eat_sign(&mut self, sign: &Token) -> bool {
        let seen = self.sign(0) == Some(sign);
        if seen {
            self.at += 1;
        }
        seen
    }

    pub(crate) fn place(&self) -> Place {
        self.tokens.place(self.at)
    }

    /// What comes next, for a message.
    pub(crate) fn found(&self) -> String {
        self.found_at(self.at)
    }

    pub(crate) fn found_at(&self, index: usize) -> String {
        match self.tokens.word(index).filter(|_| index < self.tokens.len()) {
            Some(word) => {
                let text: String = self.tokens.prepared.text[word.start..word.end].chars().take(40).collect();
                format!("`{text}`")
            }
            None => "the end of the statement".to_owned(),
        }
    }

    /// The next word as it is written, quotes of names taken off; it is passed over.
    pub(crate) fn identifier(&mut self) -> Option<String> {
        match self.sign(0)? {
            Token::Word(word) if matches!(word.quote_style, None | Some('`')) => {
                let value = word.value.clone();
                self.at += 1;
                Some(value)
            }
            _ => None,
        }
    }

    /// A string; it is passed over.
    pub(crate) fn string(&mut self) -> Option<String> {
        match self.sign(0)? {
            Token::SingleQuotedString(text) => {
                let text = text.clone();
                self.at += 1;
                Some(text)
            }
            _ => None,
        }
    }

    /// Behind the bracket that closes the one at `index`; the end where it is not closed.
    pub(crate) fn closing(&self, index: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in index..self.end {
            match self.tokens.word(at).map(|word| &word.token.token) {
                Some(Token::LParen | Token::LBracket | Token::LBrace) => depth += 1,
                Some(Token::RParen | Token::RBracket | Token::RBrace) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// What stands in the brackets that open here, cut at commas; they are passed over.
    pub(crate) fn bracketed(&mut self) -> Option<Vec<Self>> {
        if self.sign(0) != Some(&Token::LParen) {
            return None;
        }
        let close = self.closing(self.at)?;
        let items = self.within(self.at + 1, close).split();
        self.at = close + 1;
        Some(items)
    }

    /// The words from here on, cut at the commas that stand outside brackets, those of types included.
    pub(crate) fn split(&self) -> Vec<Self> {
        let mut items = Vec::new();
        let (mut depth, mut angles, mut from) = (0usize, 0usize, self.at);
        let mut typed = false;
        for at in self.at..self.end {
            let Some(word) = self.tokens.word(at) else { break };
            match &word.token.token {
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
                Token::Lt if typed => angles += 1,
                Token::Gt => angles = angles.saturating_sub(1),
                Token::ShiftRight => angles = angles.saturating_sub(2),
                Token::Comma if depth == 0 && angles == 0 => {
                    items.push(self.within(from, at));
                    from = at + 1;
                }
                _ => {}
            }
            typed = matches!(&word.token.token, Token::Word(word)
                if word.quote_style.is_none() && ["array", "map", "struct"].iter().any(|name| word.value.eq_ignore_ascii_case(name)));
        }
        if from < self.end || !items.is_empty() {
            items.push(self.within(from, self.end));
        }
        items
    }

    /// The text from a word up to here.
    pub(crate) fn text_from(&self, from: usize) -> &str {
        self.tokens.text(from, self.at)
    }

    /// Bytes of [`Self::rest`] that these words take.
    pub(crate) fn bytes(&self, words: &Range<usize>) -> Range<usize> {
        let base = self.tokens.word(self.at).map_or(0, |word| word.start);
        let Range { start, end } = self.tokens.bytes(words.start, words.end);
        start.saturating_sub(base)..end.saturating_sub(base)
    }

    /// All of the text that can still be read.
    pub(crate) fn rest(&self) -> &str {
        self.tokens.text(self.at, self.end)
    }
}
