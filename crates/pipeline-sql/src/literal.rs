//! Strings as Spark writes them: both quotes, escapes by backslash, raw ones, quotes doubled.

use crate::error::Error;
use crate::parameters;

/// How a string stands in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoted {
    pub(crate) quote: char,
    pub(crate) raw: bool,
}

/// Where the string ends whose body begins here: the byte of its closing quote.
pub(crate) fn end(body: &str, quote: char, raw: bool) -> Option<usize> {
    let bytes = body.as_bytes();
    let quote = u8::try_from(quote).ok()?;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if !raw => at += 2,
            byte if byte == quote && !raw && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// Where the name in back-quotes ends whose body begins here.
pub(crate) fn end_of_name(body: &str) -> Option<usize> {
    let bytes = body.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'`', Some(b'`')) => at += 2,
            (b'`', _) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// What a string holds, its parameters put in; and what is wrong with these, at the byte of the body.
pub(crate) fn value<'p>(body: &str, quoted: Quoted, parameter: impl Fn(&str) -> Result<&'p str, Error>) -> (String, Vec<(usize, Error)>) {
    let mut value = String::with_capacity(body.len());
    let mut mistakes = Vec::new();
    let mut rest = body;
    while let Some(next) = rest.chars().next() {
        let at = body.len() - rest.len();
        if let Some(length) = rest.strip_prefix("${").and(parameters::reference(rest)) {
            match parameter(&rest[2..length - 1]) {
                Ok(text) => value.push_str(text),
                Err(error) => mistakes.push((at, error)),
            }
            rest = &rest[length..];
        } else if next == '\\' && !quoted.raw {
            let (text, length) = escape(&rest[1..]);
            value.push_str(&text);
            rest = &rest[1 + length..];
        } else {
            let doubled = next == quoted.quote && !quoted.raw;
            value.push(next);
            rest = &rest[next.len_utf8() * (1 + usize::from(doubled))..];
        }
    }
    (value, mistakes)
}

/// What follows a backslash: its meaning and its length.
fn escape(after: &str) -> (String, usize) {
    let digits = |from: usize, count: usize, radix: u32| {
        let text = after.get(from..from + count)?;
        let all = text.chars().all(|c| c.is_digit(radix));
        let number = all.then(|| u32::from_str_radix(text, radix).ok()).flatten()?;
        Some((char::from_u32(number)?.to_string(), from + count))
    };
    let plain = |text: &str, length: usize| (text.to_owned(), length);
    match after.chars().next() {
        None => plain("\\", 0),
        Some('n') => plain("\n", 1),
        Some('t') => plain("\t", 1),
        Some('r') => plain("\r", 1),
        Some('b') => plain("\u{8}", 1),
        Some('Z') => plain("\u{1a}", 1),
        // Patterns of LIKE keep their backslash.
        Some('%') => plain("\\%", 1),
        Some('_') => plain("\\_", 1),
        Some('u') => digits(1, 4, 16).unwrap_or_else(|| plain("u", 1)),
        Some('U') => digits(1, 8, 16).unwrap_or_else(|| plain("U", 1)),
        Some('0') => digits(0, 3, 8).unwrap_or_else(|| plain("\0", 1)),
        Some('1') => digits(0, 3, 8).unwrap_or_else(|| plain("1", 1)),
        Some(other) => (other.to_string(), other.len_utf8()),
    }
}

/// A string in single quotes, whose only escapes are backslashes and quotes written twice. Whoever reads the text of a query reads
/// escapes too.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let quote = text.chars().next().unwrap();
        let end = end(&text[1..], quote, false).unwrap();
        assert_eq!(end + 2, text.len());
        value(&text[1..=end], Quoted { quote, raw: false }, |_| Ok("")).0
    }

    #[test]
    fn strings_mean_what_spark_means() {
        assert_eq!(read(r"'it\'s'"), "it's");
        assert_eq!(read("'it''s'"), "it's");
        assert_eq!(read(r#""say \"no\"; 'yes'""#), r#"say "no"; 'yes'"#);
        assert_eq!(read(r"'a\nb\\n\u00e9\101'"), "a\nb\\né".to_owned() + "A");
        assert_eq!(read(r"'10\%\_'"), r"10\%\_");
        assert_eq!(read(r"'\d+'"), "d+");
    }

    #[test]
    fn a_raw_string_keeps_its_backslashes() {
        let body = r"\d+\.csv";
        assert_eq!(end(r"\d+\.csv'", '\'', true), Some(body.len()));
        assert_eq!(value(body, Quoted { quote: '\'', raw: true }, |_| Ok("")).0, body);
    }
}
