//! Parameters of a SQL file: `:name` as a text of SQL, `{{name}}` as it is.

use std::collections::BTreeMap;

use crate::sql;

/// Puts values in for parameters that are known; `:name` in texts, quoted names and comments stays, as does `a:b` and `a::b`.
pub fn fill(text: &str, parameters: &BTreeMap<String, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = passed_over(rest).unwrap_or(0);
        if length > 0 {
            filled.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let after_word = filled.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '`' | ')' | ']' | '"'));
        if let Some((name, length)) = named(rest).filter(|_| !after_word)
            && let Some(value) = parameters.get(name)
        {
            filled.push_str(&sql::literal(value));
            rest = &rest[length..];
            continue;
        }
        if let Some((name, length)) = braced(rest)
            && let Some(value) = parameters.get(name)
        {
            filled.push_str(value);
            rest = &rest[length..];
            continue;
        }
        filled.push(first);
        rest = &rest[first.len_utf8()..];
    }
    filled
}

/// The bytes of a text, quoted name or comment that begins here.
fn passed_over(text: &str) -> Option<usize> {
    match text.as_bytes() {
        [b'-', b'-', ..] => Some(text.find('\n').map_or(text.len(), |at| at + 1)),
        [b'/', b'*', ..] => Some(comment(text)),
        [quote @ (b'\'' | b'"' | b'`'), ..] => {
            let mut escaped = false;
            let end = text.bytes().enumerate().skip(1).find(|(_, byte)| {
                let closes = byte == quote && !escaped;
                escaped = *byte == b'\\' && !escaped && *quote != b'`';
                closes
            });
            Some(end.map_or(text.len(), |(at, _)| at + 1))
        }
        _ => None,
    }
}

/// The bytes of a comment, which may hold others.
fn comment(text: &str) -> usize {
    let mut open = 0usize;
    let mut at = 0;
    while let Some(sign) = text.as_bytes().get(at..at + 2) {
        match sign {
            b"/*" => (open, at) = (open + 1, at + 2),
            b"*/" if open == 1 => return at + 2,
            b"*/" => (open, at) = (open - 1, at + 2),
            _ => at += 1,
        }
    }
    text.len()
}

fn named(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix(':')?;
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (length > 0).then(|| (&rest[..length], length + 1))
}

fn braced(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix("{{")?;
    let end = rest.find("}}")?;
    Some((rest[..end].trim(), end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_put_in_where_sql_means_them() {
        let parameters = BTreeMap::from([("day".to_owned(), r"it's \".to_owned()), ("t".to_owned(), "silver.orders".to_owned())]);
        for (text, expected) in [
            ("select * from {{ t }} where d = :day", r"select * from silver.orders where d = 'it''s \\'"),
            ("select ':day', `:day`, 'a\\':day' -- :day\n, :day", "select ':day', `:day`, 'a\\':day' -- :day\n, 'it''s \\\\'"),
            (r"select `a\`, :day /* a /* b */ :day */", r"select `a\`, 'it''s \\' /* a /* b */ :day */"),
            ("select body:day::string, :days, x /* :day */", "select body:day::string, :days, x /* :day */"),
            ("select {{other}} 'open :day", "select {{other}} 'open :day"),
        ] {
            assert_eq!(fill(text, &parameters), expected);
        }
    }
}
