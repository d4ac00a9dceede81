//! What strings hold, with parameters in them, and how they are written for whoever reads them next.

use tributary_sql_dialect::escape;

use crate::error::Error;
use crate::parameters;

/// How a string stands in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoted {
    pub(crate) quote: char,
    pub(crate) raw: bool,
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
            rest = &rest[next.len_utf8()..];
            let doubled = rest.strip_prefix(quoted.quote).filter(|_| next == quoted.quote);
            // two of them end one raw string and begin another, which is joined to it
            if doubled.is_none() || !quoted.raw {
                value.push(next);
            }
            rest = doubled.unwrap_or(rest);
        }
    }
    (value, mistakes)
}

/// A string in single quotes, whose only escapes are backslashes and quotes written twice. Whoever reads the text of a query reads
/// escapes too.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use tributary_sql_dialect::closing_quote;

    use super::*;

    fn read(text: &str) -> String {
        let quote = text.chars().next().unwrap();
        let end = closing_quote(&text[1..], quote, true).unwrap();
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
        let raw = |body: &str| value(body, Quoted { quote: '\'', raw: true }, |_| Ok("")).0;
        let body = r"\d+\.csv";
        assert_eq!(closing_quote(r"\d+\.csv'", '\'', false), Some(body.len()));
        assert_eq!(raw(body), body);
        assert_eq!(raw(r#"a\n''b"""#), r#"a\nb"""#);
    }
}
