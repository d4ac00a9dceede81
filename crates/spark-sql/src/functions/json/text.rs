//! JSON texts, read as Jackson reads them for the dialect: numbers keep their digits, single quotes are quotes, and what follows the
//! first value does not matter.

use crate::shortest;

/// Lists and objects inside each other at most.
const LEVELS_MAX: usize = 500;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Boolean(bool),
    /// As it is written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// Names and values in their order; a name may be there twice.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The first value of a text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text, levels: 0 };
        reader.value()
    }

    /// The only value of a text.
    pub fn parse_whole(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text, levels: 0 };
        let found = reader.value()?;
        reader.blank();
        reader.rest.is_empty().then_some(found)
    }

    /// A field of an object: the first of its name.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Without blanks.
    pub fn write(&self, told: &mut String) {
        match self {
            Self::Null => told.push_str("null"),
            Self::Boolean(yes) => told.push_str(if *yes { "true" } else { "false" }),
            Self::Number(digits) => told.push_str(&number(digits)),
            Self::Text(text) => quoted(text, told),
            Self::List(inside) => {
                told.push('[');
                for (at, value) in inside.iter().enumerate() {
                    if at > 0 {
                        told.push(',');
                    }
                    value.write(told);
                }
                told.push(']');
            }
            Self::Object(fields) => {
                told.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        told.push(',');
                    }
                    quoted(name, told);
                    told.push(':');
                    value.write(told);
                }
                told.push('}');
            }
        }
    }

    /// A text as it is, anything else as it is written.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => {
                let mut told = String::new();
                other.write(&mut told);
                told
            }
        }
    }
}

/// Whole numbers keep their digits, others are written as doubles are.
fn number(digits: &str) -> String {
    match digits.parse::<f64>() {
        Ok(double) if digits.contains(['.', 'e', 'E']) => shortest::double(double),
        _ => digits.to_owned(),
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &str, told: &mut String) {
    told.push('"');
    for sign in text.chars() {
        match sign {
            '"' => told.push_str("\\\""),
            '\\' => told.push_str("\\\\"),
            '\n' => told.push_str("\\n"),
            '\r' => told.push_str("\\r"),
            '\t' => told.push_str("\\t"),
            '\u{8}' => told.push_str("\\b"),
            '\u{c}' => told.push_str("\\f"),
            sign if sign < ' ' => told.push_str(&format!("\\u{:04X}", u32::from(sign))),
            sign => told.push(sign),
        }
    }
    told.push('"');
}

struct Reader<'t> {
    rest: &'t str,
    levels: usize,
}

impl Reader<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Json> {
        self.blank();
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return None;
        }
        let found = match self.rest.chars().next()? {
            '{' => self.object(),
            '[' => self.list(),
            '"' | '\'' => self.text().map(Json::Text),
            '-' | '0'..='9' => self.number(),
            _ if self.take("true") => Some(Json::Boolean(true)),
            _ if self.take("false") => Some(Json::Boolean(false)),
            _ if self.take("null") => Some(Json::Null),
            _ => None,
        };
        self.levels -= 1;
        found
    }

    fn object(&mut self) -> Option<Json> {
        self.take("{");
        let mut fields = Vec::new();
        self.blank();
        if self.take("}") {
            return Some(Json::Object(fields));
        }
        loop {
            self.blank();
            let name = self.text()?;
            self.blank();
            self.take(":").then_some(())?;
            fields.push((name, self.value()?));
            self.blank();
            if self.take("}") {
                return Some(Json::Object(fields));
            }
            self.take(",").then_some(())?;
        }
    }

    fn list(&mut self) -> Option<Json> {
        self.take("[");
        let mut inside = Vec::new();
        self.blank();
        if self.take("]") {
            return Some(Json::List(inside));
        }
        loop {
            inside.push(self.value()?);
            self.blank();
            if self.take("]") {
                return Some(Json::List(inside));
            }
            self.take(",").then_some(())?;
        }
    }

    fn text(&mut self) -> Option<String> {
        let quote = self.rest.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
        let mut told = String::new();
        let mut signs = self.rest[1..].char_indices();
        while let Some((at, sign)) = signs.next() {
            match sign {
                sign if sign == quote => {
                    self.rest = &self.rest[at + 2..];
                    return Some(told);
                }
                '\\' => match signs.next()?.1 {
                    'n' => told.push('\n'),
                    't' => told.push('\t'),
                    'r' => told.push('\r'),
                    'b' => told.push('\u{8}'),
                    'f' => told.push('\u{c}'),
                    'u' => {
                        let mut unit = || (0..4).try_fold(0_u32, |unit, _| Some(unit * 16 + signs.next()?.1.to_digit(16)?));
                        let high = unit()?;
                        let code = if (0xd800..0xdc00).contains(&high) {
                            (signs.next()?.1 == '\\' && signs.next()?.1 == 'u').then_some(())?;
                            let low = (0..4).try_fold(0_u32, |unit, _| Some(unit * 16 + signs.next()?.1.to_digit(16)?))?;
                            0x1_0000 + ((high - 0xd800) << 10) + low.checked_sub(0xdc00)?
                        } else {
                            high
                        };
                        told.push(char::from_u32(code)?);
                    }
                    sign @ ('"' | '\\' | '/' | '\'') => told.push(sign),
                    _ => return None,
                },
                sign if sign < ' ' => return None,
                sign => told.push(sign),
            }
        }
        None
    }

    fn number(&mut self) -> Option<Json> {
        let end =
            self.rest.find(|sign: char| !(sign.is_ascii_digit() || matches!(sign, '-' | '+' | '.' | 'e' | 'E'))).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let magnitude = digits.strip_prefix('-').unwrap_or(digits);
        let whole = magnitude.split(['.', 'e', 'E']).next().unwrap_or_default();
        let fraction_is_there = magnitude.split_once('.').is_none_or(|(_, rest)| rest.starts_with(|sign: char| sign.is_ascii_digit()));
        let is_number =
            !whole.is_empty() && (whole == "0" || !whole.starts_with('0')) && fraction_is_there && digits.parse::<f64>().is_ok();
        self.rest = rest;
        is_number.then(|| Json::Number(digits.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        let of = |text: &str| Json::parse(text).map(|json| json.plain());
        assert_eq!(of(r#" {"a" : [1, 2.50, "x\ny"], 'b': null} rest"#).as_deref(), Some(r#"{"a":[1,2.5,"x\ny"],"b":null}"#));
        assert_eq!(of(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
        for text in ["{", "[1,]", "01", "1.", "nul", "\"open", "{\"a\" 1}", "", "-"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of(&"[".repeat(100_000)), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in r#"(\{|\}|\[|\]|"|'|:|,|1|-|\.|e|\\|u00|true|null| |ä){0,20}"#) {
            if let Some(json) = Json::parse(&text) {
                proptest::prop_assert_eq!(Json::parse(&{ let mut told = String::new(); json.write(&mut told); told }).map(|json| json.plain()), Some(json.plain()));
            }
        }
    }
}
