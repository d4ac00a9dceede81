//! A pull reader of JSON text: it hands out what is asked for and checks what it skips.
//!
//! Nothing is built in between (no tape, no map), so the cost of a value that no column needs is one pass over its bytes,
//! and a number is always at hand as it was written. What it accepts is RFC 8259, with a byte-order mark in front allowed
//! and a lone surrogate refused only where the text is really needed.
//!
//! [`quick`] has the ways of reading what connectors write nearly always, [`number`] and [`text`] the grammar of those two.

mod number;
mod quick;
mod text;

pub(crate) use quick::{Digits, Token, digits_in};
pub(crate) use text::{Text, write_text};

use crate::words::plain_length;

/// How deep objects and arrays may nest.
pub(crate) const DEPTH_MAX: usize = 1024;

/// Why text is not JSON, with the byte position where that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The text ends in the middle.
    Short,
    /// Another character was due.
    Unexpected(usize),
    /// Nested deeper than [`DEPTH_MAX`].
    Deep(usize),
    /// Half of a surrogate pair, which no UTF-8 text can hold.
    LoneSurrogate,
}

impl Broken {
    /// The message for a person.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Short => "json text ends in the middle".to_owned(),
            Self::Unexpected(at) => format!("unexpected character in json at byte {at}"),
            Self::Deep(at) => format!("json nested deeper than {DEPTH_MAX} at byte {at}"),
            Self::LoneSurrogate => "json text with half of a surrogate pair".to_owned(),
        }
    }
}

/// What a value begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// The word for it in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "text",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A place in JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of a text.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// At a byte of a text.
    pub(crate) fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The same text, at an earlier byte.
    pub(crate) fn back_to(&self, at: usize) -> Self {
        Self { bytes: self.bytes, at }
    }

    /// The byte position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The bytes from a position up to here.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// The first byte of the next token, without taking it.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<u8, Broken> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.peek_after_blanks(),
        }
    }

    #[cold]
    fn peek_after_blanks(&mut self) -> Result<u8, Broken> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(&byte) => return Ok(byte),
                None => return Err(Broken::Short),
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, byte: u8) -> Result<(), Broken> {
        if self.peek()? == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(Broken::Unexpected(self.at))
        }
    }

    /// What the next value is.
    #[inline]
    pub(crate) fn kind(&mut self) -> Result<Kind, Broken> {
        Ok(match self.peek()? {
            b'"' => Kind::Text,
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'n' => Kind::Null,
            b't' | b'f' => Kind::Boolean,
            b'-' | b'0'..=b'9' => Kind::Number,
            _ => return Err(Broken::Unexpected(self.at)),
        })
    }

    /// Takes a `null` if the next value is one.
    #[inline]
    pub(crate) fn null(&mut self) -> Result<bool, Broken> {
        if self.peek()? != b'n' {
            return Ok(false);
        }
        self.word(b"null")?;
        Ok(true)
    }

    /// Takes a boolean.
    pub(crate) fn boolean(&mut self) -> Result<bool, Broken> {
        if self.peek()? == b't' {
            self.word(b"true")?;
            Ok(true)
        } else {
            self.word(b"false")?;
            Ok(false)
        }
    }

    #[inline]
    fn word(&mut self, word: &[u8]) -> Result<(), Broken> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            Ok(())
        } else if self.bytes.len() < self.at + word.len() {
            Err(Broken::Short)
        } else {
            Err(Broken::Unexpected(self.at))
        }
    }

    /// Takes a string.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Text<'a>, Broken> {
        self.take(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_length(self.bytes.get(self.at..).unwrap_or_default());
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let raw = self.bytes.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(Broken::Unexpected(self.at)),
                None => return Err(Broken::Short),
            }
        }
    }

    /// Takes one escape and checks its form.
    fn escape(&mut self) -> Result<(), Broken> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).ok_or(Broken::Short)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Broken::Unexpected(self.at));
                }
                self.at += 6;
            }
            Some(_) => return Err(Broken::Unexpected(self.at)),
            None => return Err(Broken::Short),
        }
        Ok(())
    }

    /// Takes any value and checks its form.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<(), Broken> {
        match self.peek()? {
            b'"' => self.text().map(drop),
            b'-' | b'0'..=b'9' => self.skip_number(),
            b'n' => self.word(b"null"),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'{' | b'[' => self.skip_nested(1),
            _ => Err(Broken::Unexpected(self.at)),
        }
    }

    fn skip_nested(&mut self, depth: usize) -> Result<(), Broken> {
        if depth > DEPTH_MAX {
            return Err(Broken::Deep(self.at));
        }
        if self.peek()? == b'{' {
            let mut members = self.object()?;
            while self.member(&mut members)?.is_some() {
                self.skip_at(depth)?;
            }
        } else {
            let mut elements = self.array()?;
            while self.element(&mut elements)? {
                self.skip_at(depth)?;
            }
        }
        Ok(())
    }

    fn skip_at(&mut self, depth: usize) -> Result<(), Broken> {
        match self.peek()? {
            b'{' | b'[' => self.skip_nested(depth + 1),
            _ => self.skip(),
        }
    }

    /// Takes any value and gives its text.
    pub(crate) fn raw(&mut self) -> Result<&'a [u8], Broken> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(self.since(start))
    }

    /// Enters an object.
    #[inline]
    pub(crate) fn object(&mut self) -> Result<Members, Broken> {
        self.take(b'{')?;
        Ok(Members { first: true })
    }

    /// Takes the next key of an object and its colon; `None` = the object has ended and is left.
    #[inline]
    pub(crate) fn member(&mut self, members: &mut Members) -> Result<Option<Text<'a>>, Broken> {
        if !self.more(b'}', &mut members.first)? {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// Takes a key and its colon.
    pub(crate) fn key(&mut self) -> Result<Text<'a>, Broken> {
        let key = self.text()?;
        self.take(b':')?;
        Ok(key)
    }

    /// Enters an array.
    pub(crate) fn array(&mut self) -> Result<Elements, Broken> {
        self.take(b'[')?;
        Ok(Elements { first: true })
    }

    /// Whether another element follows; `false` = the array has ended and is left.
    pub(crate) fn element(&mut self, elements: &mut Elements) -> Result<bool, Broken> {
        self.more(b']', &mut elements.first)
    }

    #[inline(always)]
    fn more(&mut self, close: u8, first: &mut bool) -> Result<bool, Broken> {
        let byte = self.peek()?;
        if byte == close {
            // `[1,]` does not come here: after a comma a value is due, and a closing bracket begins none.
            self.at += 1;
            return Ok(false);
        }
        if *first {
            *first = false;
        } else if byte == b',' {
            self.at += 1;
            if self.peek()? == close {
                return Err(Broken::Unexpected(self.at));
            }
        } else {
            return Err(Broken::Unexpected(self.at));
        }
        Ok(true)
    }

    /// Takes a closing brace.
    pub(crate) fn close_object(&mut self) -> Result<(), Broken> {
        self.take(b'}')
    }

    /// That nothing but blanks follows.
    pub(crate) fn end(&mut self) -> Result<(), Broken> {
        match self.peek() {
            Err(_) => Ok(()),
            Ok(_) => Err(Broken::Unexpected(self.at)),
        }
    }
}

/// Where in an object the cursor is.
#[derive(Debug)]
pub(crate) struct Members {
    first: bool,
}

impl Members {
    /// Behind a first member.
    pub(crate) fn inside() -> Self {
        Self { first: false }
    }
}

/// Where in an array the cursor is.
#[derive(Debug)]
pub(crate) struct Elements {
    first: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepted(bytes: &[u8]) -> bool {
        let mut cursor = Cursor::new(bytes);
        cursor.skip().and_then(|()| cursor.end()).is_ok()
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..8).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_another_parser_writes_is_accepted(value in value()) {
            prop_assert!(accepted(value.to_string().as_bytes()));
        }

        #[test]
        fn damaged_text_is_judged_as_another_parser_judges_it(value in value(), at in any::<prop::sample::Index>(), with in any::<u8>()) {
            let mut bytes = value.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = with & 0x7f;
            // Ours does not look at surrogates and magnitudes of what it skips; those texts are left out.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            prop_assume!(!text.contains("\\u") && !text.contains(['e', 'E']) && text.len() == bytes.len());
            prop_assert_eq!(accepted(&bytes), serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok(), "{}", text);
        }
    }

    #[test]
    fn a_million_brackets_are_refused_without_harm() {
        let deep = vec![b'['; 1_000_000];
        assert_eq!(Cursor::new(&deep).skip(), Err(Broken::Deep(DEPTH_MAX)));
    }

    #[test]
    fn trailing_commas_and_missing_commas_are_refused() {
        for bad in
            ["[1,]", "{\"a\":1,}", "[1 2]", "{\"a\":1 \"b\":2}", "[,1]", "{,}", "{\"a\"}", "{1:2}", "[1", "{\"a\":", "\"a", "tru", "nul"]
        {
            assert!(!accepted(bad.as_bytes()), "{bad}");
        }
    }
}
