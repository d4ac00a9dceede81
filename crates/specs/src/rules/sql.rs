//! Just enough of SQL to see which columns a condition names.

/// A piece of SQL text; comments and blanks are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A bare word, in lower case.
    Word(String),
    /// A name in back-quotes or double quotes.
    Quoted(String),
    /// A text in single quotes.
    Text(String),
    /// A number as written.
    Number(String),
    /// Anything else, operators of two characters together.
    Symbol(String),
}

/// The pieces of `sql`, or what is not closed.
pub(super) fn tokens(sql: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let (token, after) = match c {
            _ if c.is_whitespace() => (None, &rest[c.len_utf8()..]),
            _ if rest.starts_with("--") => (None, rest.split_once('\n').map_or("", |(_, after)| after)),
            _ if rest.starts_with("/*") => (None, rest.split_once("*/").ok_or("a comment is not closed")?.1),
            '\'' => quoted(rest, '\'').map(|(text, after)| (Some(Token::Text(text)), after))?,
            '`' | '"' => quoted(rest, c).map(|(text, after)| (Some(Token::Quoted(text)), after))?,
            _ if c.is_alphabetic() || c == '_' => {
                let (word, after) = while_true(rest, |c| c.is_alphanumeric() || c == '_');
                (Some(Token::Word(word.to_lowercase())), after)
            }
            _ if c.is_ascii_digit() => {
                let (number, after) = while_true(rest, |c| c.is_ascii_alphanumeric() || c == '.');
                (Some(Token::Number(number.to_owned())), after)
            }
            _ => {
                let two = ["<=", ">=", "<>", "!=", "||", "::"].into_iter().find(|two| rest.starts_with(two));
                let length = two.map_or(c.len_utf8(), str::len);
                (Some(Token::Symbol(rest[..length].to_owned())), &rest[length..])
            }
        };
        tokens.extend(token);
        rest = after;
    }
    Ok(tokens)
}

fn while_true(text: &str, holds: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !holds(c)).unwrap_or(text.len()))
}

/// The text between quotes, the quote itself doubled inside.
fn quoted(sql: &str, quote: char) -> Result<(String, &str), &'static str> {
    let mut text = String::new();
    let mut rest = &sql[1..];
    while let Some(at) = rest.find(quote) {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix(quote) {
            Some(next) => {
                text.push(quote);
                rest = next;
            }
            None => return Ok((text, rest)),
        }
    }
    Err("a quote is not closed")
}
