//! Text to one statement.

use tributary_lake::datafusion::sql::sqlparser::ast::{DescribeAlias, Expr, Spanned, Statement};
use tributary_lake::datafusion::sql::sqlparser::keywords::Keyword;
use tributary_lake::datafusion::sql::sqlparser::parser::Parser;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};

use tributary_sql_dialect::{Spark, escape, name_parts, readable};

use crate::{Error, depth, lex, literal, travel};

/// Words, signs and blanks of a text at most.
pub(crate) const TOKENS_MAX: usize = 50_000;
/// Expressions and queries within each other, as the parser counts them; deeper trees are refused by their levels.
const NESTING_MAX: usize = 250;

/// One query, or an `EXPLAIN` of one.
pub(crate) fn statement(text: &str) -> Result<Statement, Error> {
    one(tokens(text)?)
}

/// Every statement of a text, of whatever kind; strings hold what they mean.
///
/// # Errors
/// [`Error::Syntax`] and [`Error::Refused`] for a text that cannot be read or is too long.
pub fn statements(text: &str) -> Result<Vec<Statement>, Error> {
    all(tokens(text)?)
}

fn all(tokens: Vec<TokenWithSpan>) -> Result<Vec<Statement>, Error> {
    let dialect = Spark::new(tokens.len());
    depth::with_room(nesting(&tokens), || {
        let parser = Parser::new(&dialect).with_recursion_limit(NESTING_MAX);
        parser.with_tokens_with_locations(tokens).parse_statements().map_err(|error| syntax(&error))
    })
}

/// How deep brackets and CASE nest in a text.
fn nesting(tokens: &[TokenWithSpan]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for token in tokens {
        match &token.token {
            Token::LParen => now += 1,
            Token::RParen => now = now.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::CASE && word.quote_style.is_none() => now += 1,
            Token::Word(word) if word.keyword == Keyword::END && word.quote_style.is_none() => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// `identifier('a.b')` as the name that it is.
fn named(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut told = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let call = matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("identifier"));
        let behind: Vec<(usize, &Token)> = match call {
            true => {
                let behind = tokens.iter().enumerate().skip(at + 1).filter(|(_, token)| !is_blank(token));
                behind.take(3).map(|(at, token)| (at, &token.token)).collect()
            }
            false => Vec::new(),
        };
        if let [(_, Token::LParen), (_, Token::SingleQuotedString(text)), (last, Token::RParen)] = behind.as_slice()
            && let Some(parts) = name_parts(text)
        {
            for (place, part) in parts.into_iter().enumerate() {
                if place > 0 {
                    told.push(TokenWithSpan { token: Token::Period, span: token.span });
                }
                told.push(TokenWithSpan { token: Token::make_word(&part.value, Some('`')), span: token.span });
            }
            at = last + 1;
        } else {
            told.push(token.clone());
            at += 1;
        }
    }
    told
}

/// One query, or an `EXPLAIN` of one, of these words.
pub(crate) fn one(tokens: Vec<TokenWithSpan>) -> Result<Statement, Error> {
    let mut statements = all(tokens)?.into_iter();
    match (statements.next(), statements.next()) {
        (None, _) => Err(Error::Syntax { reason: "it is empty".to_owned() }),
        (Some(_), Some(second)) => Err(Error::refused("a second statement", second.span())),
        (Some(statement), None) => query_or_explain(statement),
    }
}

fn query_or_explain(statement: Statement) -> Result<Statement, Error> {
    match statement {
        Statement::Query(_) => Ok(statement),
        Statement::Explain {
            describe_alias: DescribeAlias::Explain,
            query_plan: false,
            estimate: false,
            format: None,
            options: None,
            statement: ref explained,
            ..
        } if matches!(**explained, Statement::Query(_)) => Ok(statement),
        other => {
            let words: Vec<String> = other.to_string().split_whitespace().take(2).map(str::to_owned).collect();
            let hint = "only queries are; `tributary setup`, `ddl` and `show` create and describe tables";
            Err(Error::refused_with_hint(format!("the statement {}", words.join(" ")), hint, Span::empty()))
        }
    }
}

/// One expression.
pub(crate) fn expression(text: &str) -> Result<Expr, Error> {
    let tokens = tokens(text)?;
    let dialect = Spark::new(tokens.len());
    depth::with_room(nesting(&tokens), || {
        let mut parser = Parser::new(&dialect).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens);
        let expression = parser.parse_expr().map_err(|error| syntax(&error))?;
        parser.expect_token(&Token::EOF).map_err(|error| syntax(&error))?;
        Ok(expression)
    })
}

fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, Error> {
    let tokens = words(text, TOKENS_MAX)?;
    match tokens.get(TOKENS_MAX) {
        Some(first) => Err(lex::too_many(TOKENS_MAX, first.span)),
        None => Ok(named(tokens)),
    }
}

/// The words, signs and blanks of a text; strings hold what they mean, numbers the letters that tell their types. A text of many more
/// than `most` is not read.
pub(crate) fn words(text: &str, most: usize) -> Result<Vec<TokenWithSpan>, Error> {
    lex::check(text, most)?;
    let masked = lex::masked(text);
    let (text, mask) = masked.as_ref().map_or((text, None), |(masked, mask)| (masked.as_str(), Some(*mask)));
    let tokens = Tokenizer::new(&Spark::new(0), text).with_unescape(false).tokenize_with_location().map_err(|error| syntax(&error))?;
    let mut told: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        let before = told.last().filter(|before| before.span.end == token.span.start);
        let is_raw = before.is_some_and(|before| is_raw_mark(&before.token));
        let string = |text: &str, quote: char| if is_raw { raw(text, quote, mask) } else { meant(text, quote) };
        let joined = match &mut token.token {
            Token::SingleQuotedString(text) => {
                *text = string(text, '\'');
                is_raw
            }
            Token::DoubleQuotedString(text) => {
                *text = string(text, '"');
                is_raw
            }
            Token::Word(word) if word.quote_style == Some('`') => {
                word.value = word.value.replace("``", "`");
                false
            }
            Token::Word(word) if word.quote_style.is_none() => match number(&word.value, before.map(|before| &before.token)) {
                Some((number, joined)) => {
                    token.token = number;
                    joined
                }
                None => false,
            },
            _ => false,
        };
        if joined && let Some(first) = told.pop() {
            token.span.start = first.span.start;
        }
        told.push(token);
    }
    Ok(travel::told(told))
}

/// A number with letters that tell its type, and whether what stands before the word is part of it: to the tokenizer `1S` is a word, and
/// `1e3D` a number and a word.
fn number(word: &str, before: Option<&Token>) -> Option<(Token, bool)> {
    match before {
        Some(Token::Number(digits, false)) if literal::is_suffix(word) => Some((Token::Number(format!("{digits}{word}"), false), true)),
        Some(Token::Period) => None,
        _ => literal::has_suffix(word).then(|| (Token::Number(word.to_owned(), false), false)),
    }
}

/// Whether a string right behind is raw.
fn is_raw_mark(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("r"))
}

/// What a raw string means: its signs as they are. Two quotes end one such string and begin another, which is joined to it.
fn raw(written: &str, quote: char, mask: Option<char>) -> String {
    let told = written.replace(&quote.to_string().repeat(2), "");
    match mask {
        Some(mask) => told.replace(mask, "\\"),
        None => told,
    }
}

/// What a string means: a backslash and what follows it are one sign, and so are two of its quotes.
fn meant(written: &str, quote: char) -> String {
    let mut told = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        if sign == '\\' {
            let (meaning, length) = escape(rest);
            told.push_str(&meaning);
            rest = &rest[length..];
        } else {
            told.push(sign);
            rest = rest.strip_prefix(quote).filter(|_| sign == quote).unwrap_or(rest);
        }
    }
    told
}

pub(crate) fn syntax(error: &dyn std::fmt::Display) -> Error {
    Error::Syntax { reason: readable(&error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_mean_what_the_dialect_says() {
        for (written, told) in [
            (r"'it\'s'", "it's"),
            ("'it''s'", "it's"),
            (r"'C:\\'", r"C:\"),
            (r"'\\d'", r"\d"),
            (r"'\d'", "d"),
            (r"'10\%\_'", r"10\%\_"),
            (r"'a\nb\u00e9\uzz'", "a\nbéuzz"),
            (r"'\101\U0001F600'", "A\u{1F600}"),
            ("\"say \"\"no\"\"\"", "say \"no\""),
            (r"r'\d+\'", r"\d+\"),
            (r#"R"C:\it's""#, r"C:\it's"),
            (r"r'a\n''b'", r"a\nb"),
            (r#"r'a""b'"#, r#"a""b"#),
        ] {
            let tokens = words(written, 99).unwrap();
            let (Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) = &tokens[0].token else { panic!("{written}") };
            assert_eq!(text, told, "{written}");
        }
        assert!(words(r"'open\'", 99).is_err());
        let Token::Word(name) = &words("`a``b`", 99).unwrap()[0].token else { panic!("a name") };
        assert_eq!(name.value, "a`b");
    }
}
