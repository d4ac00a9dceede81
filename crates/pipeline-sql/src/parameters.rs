//! `${name}` in the text of a file, and what the names stand for.

use std::collections::{BTreeMap, BTreeSet};

use tributary_fault::nearest;
use tributary_sql_dialect::closing_quote;

use crate::error::Error;
use crate::literal;

/// Bytes that values put into one file, at most: values may stand for values, each of which doubles.
const PUT_MAX: usize = 4 << 20;

/// What names stand for at a place of a file.
#[derive(Debug, Clone)]
pub(crate) struct Parameters {
    /// From the bundle or the command line.
    given: BTreeMap<String, String>,
    /// From `SET` in the file.
    set: BTreeMap<String, String>,
    used: std::cell::RefCell<BTreeSet<String>>,
    /// Bytes that values have put into the file.
    put: std::cell::Cell<usize>,
}

impl Parameters {
    pub(crate) fn new(given: &BTreeMap<String, String>) -> Self {
        Self { given: given.clone(), set: BTreeMap::new(), used: std::cell::RefCell::default(), put: std::cell::Cell::new(0) }
    }

    /// Sets a value for the rest of the file.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.set.insert(name.to_owned(), value.to_owned());
    }

    /// Whether anything of the file has asked for a name.
    pub(crate) fn is_used(&self, name: &str) -> bool {
        self.used.borrow().contains(name)
    }

    /// What a name stands for, to be put into the file.
    ///
    /// # Errors
    /// When it is not set, and when values have put too much into the file.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Error> {
        let name = name.trim();
        self.used.borrow_mut().insert(name.to_owned());
        match self.set.get(name).or_else(|| self.given.get(name)) {
            Some(value) => {
                self.put.set(self.put.get().saturating_add(value.len()));
                let too_large = || Error::TooLarge {
                    what: format!("the file, with what ${{{name}}} puts into it,"),
                    most: PUT_MAX,
                    of: "bytes of values",
                };
                if self.put.get() > PUT_MAX { Err(too_large()) } else { Ok(value) }
            }
            None => {
                let near = nearest(name, self.set.keys().chain(self.given.keys()).map(String::as_str));
                Err(Error::ParameterUnset { name: name.to_owned(), nearest: near.map(str::to_owned) })
            }
        }
    }

    /// A text with its references replaced, each by what `fit` makes of the value; and what is wrong, at the byte of the text.
    pub(crate) fn put_into(&self, text: &str, fit: impl Fn(&str) -> Result<String, &'static str>) -> (String, Vec<(usize, Error)>) {
        let mut out = String::with_capacity(text.len());
        let mut mistakes = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            out.push_str(&rest[..at]);
            let here = text.len() - rest.len() + at;
            rest = &rest[at..];
            let Some(length) = reference(rest) else { break };
            let name = rest[2..length - 1].trim();
            let value =
                self.text(name).and_then(|value| fit(value).map_err(|reason| Error::ParameterValue { name: name.to_owned(), reason }));
            match value {
                Ok(value) => out.push_str(&value),
                Err(error) => {
                    mistakes.push((here, error));
                    // A name goes on where a name is meant, so that one mistake is told once.
                    out.push_str("unset");
                }
            }
            rest = &rest[length..];
        }
        out.push_str(rest);
        (out, mistakes)
    }
}

/// The length of the `${name}` that a text begins with.
pub(crate) fn reference(text: &str) -> Option<usize> {
    let name = text.strip_prefix("${")?;
    let end = name.find(['}', '\n', '\'', '"', ';'])?;
    name[end..].starts_with('}').then_some(end + 3)
}

/// A value that stands outside quotes: it may be a name, a number or an expression, but neither end the statement nor open
/// what it does not close.
pub(crate) fn fit_for_code(value: &str) -> Result<String, &'static str> {
    let trimmed = value.trim();
    let quoted_whole = ['\'', '"'].into_iter().any(|quote| {
        trimmed
            .strip_prefix(quote)
            .is_some_and(|body| closing_quote(body, quote, true) == Some(body.len().saturating_sub(1)) && !body.is_empty())
    });
    if quoted_whole {
        let quote = if trimmed.starts_with('"') { '"' } else { '\'' };
        let body = &trimmed[1..trimmed.len() - 1];
        let (value, _) = literal::value(body, literal::Quoted { quote, raw: false }, |_| Ok(""));
        return Ok(literal::quoted(&value));
    }
    if value.contains(['\'', '"', '`', '\\']) {
        Err("it has a quote or a backslash, and stands outside quotes")
    } else if value.contains(';') {
        Err("it has a semicolon, which would end the statement")
    } else if value.contains("--") || value.contains("/*") {
        Err("it begins a comment")
    } else if !value.is_ascii() || value.chars().any(|c| c.is_control()) {
        Err("it has characters that cannot stand outside quotes")
    } else {
        Ok(value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_become_a_statement() {
        for value in ["a; DROP TABLE x", "x' OR '1'='1", "a -- b", "a /* b", "'a' OR 'b'", "`", "\\", "\"", "'"] {
            assert!(fit_for_code(value).is_err(), "{value}");
        }
        for (value, text) in [("bz", "bz"), ("2024-01-01", "2024-01-01"), ("'2024-01-01'", "'2024-01-01'"), ("\"a'b\"", "'a''b'"), ("", "")]
        {
            assert_eq!(fit_for_code(value), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_reference_ends_on_its_line() {
        assert_eq!(reference("${a} b"), Some(4));
        assert_eq!(reference("${a\n}"), None);
        assert_eq!(reference("${a"), None);
    }
}
