//! Text to one statement.

use tributary_lake::datafusion::sql::sqlparser::ast::{DescribeAlias, Expr, Spanned, Statement};
use tributary_lake::datafusion::sql::sqlparser::dialect::{DatabricksDialect, Dialect};
use tributary_lake::datafusion::sql::sqlparser::parser::Parser;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};

use crate::{Error, literal};

/// Words, signs and blanks of a text at most.
pub(crate) const TOKENS_MAX: usize = 50_000;

/// The parts of a dotted name as it stands in a text, back-quotes taken off.
pub(crate) fn name_parts(text: &str) -> Option<Vec<String>> {
    let name = Parser::new(&DatabricksDialect).try_with_sql(text).ok()?.parse_object_name(false).ok()?;
    name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.clone())).collect()
}

/// One query, or an `EXPLAIN` of one.
pub(crate) fn statement(text: &str) -> Result<Statement, Error> {
    one(tokens(text)?)
}

/// One query, or an `EXPLAIN` of one, of these words.
pub(crate) fn one(tokens: Vec<TokenWithSpan>) -> Result<Statement, Error> {
    let statements =
        Parser::new(&DatabricksDialect).with_tokens_with_locations(tokens).parse_statements().map_err(|error| syntax(&error))?;
    let mut statements = statements.into_iter();
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
    let mut parser = Parser::new(&DatabricksDialect).with_tokens_with_locations(tokens(text)?);
    let expression = parser.parse_expr().map_err(|error| syntax(&error))?;
    parser.expect_token(&Token::EOF).map_err(|error| syntax(&error))?;
    Ok(expression)
}

fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, Error> {
    let tokens = words(text)?;
    if tokens.len() > TOKENS_MAX {
        let what = format!("a text of more than {TOKENS_MAX} words and signs");
        return Err(Error::refused(what, tokens[TOKENS_MAX].span));
    }
    Ok(tokens)
}

/// The words, signs and blanks of a text; strings hold what they mean.
pub(crate) fn words(text: &str) -> Result<Vec<TokenWithSpan>, Error> {
    let mut tokens = Tokenizer::new(&Escapes, text).with_unescape(false).tokenize_with_location().map_err(|error| syntax(&error))?;
    join_numbers(&mut tokens);
    for TokenWithSpan { token, .. } in &mut tokens {
        match token {
            Token::SingleQuotedString(text) => *text = meant(text, '\''),
            Token::DoubleQuotedString(text) => *text = meant(text, '"'),
            Token::Word(word) if word.quote_style == Some('`') => word.value = word.value.replace("``", "`"),
            _ => {}
        }
    }
    Ok(tokens)
}

/// Joins a number and the letters behind it that tell its type: to the tokenizer `1S` is a word, and `1e3D` a number and a word.
fn join_numbers(tokens: &mut Vec<TokenWithSpan>) {
    let is_field = |before: Option<&TokenWithSpan>| before.is_some_and(|before| before.token == Token::Period);
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut token in tokens.drain(..) {
        if let Token::Word(word) = &token.token
            && word.quote_style.is_none()
        {
            let before = joined.last().map(|before| (&before.token, before.span.end));
            if literal::has_suffix(&word.value) && !is_field(joined.last()) {
                token.token = Token::Number(word.value.clone(), false);
            } else if let Some((Token::Number(digits, false), end)) = before
                && end == token.span.start
                && literal::is_suffix(&word.value)
            {
                token.token = Token::Number(format!("{digits}{}", word.value), false);
                token.span.start = joined.pop().map_or(token.span.start, |number| number.span.start);
            }
        }
        joined.push(token);
    }
    *tokens = joined;
}

/// Tells words apart as the parser's dialect does, but that a backslash in a string is one sign with what follows it.
#[derive(Debug)]
struct Escapes;

impl Dialect for Escapes {
    fn is_delimited_identifier_start(&self, sign: char) -> bool {
        DatabricksDialect.is_delimited_identifier_start(sign)
    }

    fn is_identifier_start(&self, sign: char) -> bool {
        DatabricksDialect.is_identifier_start(sign)
    }

    fn is_identifier_part(&self, sign: char) -> bool {
        DatabricksDialect.is_identifier_part(sign)
    }

    fn supports_numeric_prefix(&self) -> bool {
        DatabricksDialect.supports_numeric_prefix()
    }

    fn supports_nested_comments(&self) -> bool {
        DatabricksDialect.supports_nested_comments()
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }
}

/// What a string means: a backslash and what follows it are one sign, and so are two of its quotes.
fn meant(written: &str, quote: char) -> String {
    let mut told = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        if sign != '\\' {
            told.push(sign);
            rest = rest.strip_prefix(quote).filter(|_| sign == quote).unwrap_or(rest);
            continue;
        }
        let Some(escaped) = rest.chars().next() else {
            told.push(sign);
            break;
        };
        rest = &rest[escaped.len_utf8()..];
        match escaped {
            'n' => told.push('\n'),
            't' => told.push('\t'),
            'r' => told.push('\r'),
            'b' => told.push('\u{8}'),
            '0' => told.push('\0'),
            'Z' => told.push('\u{1a}'),
            // patterns of LIKE need them
            '%' | '_' => told.extend(['\\', escaped]),
            'u' => match rest.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32) {
                Some(sign) => {
                    told.push(sign);
                    rest = &rest[4..];
                }
                None => told.push('u'),
            },
            other => told.push(other),
        }
    }
    told
}

pub(crate) fn syntax(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    Error::Syntax { reason: text.trim_start_matches("sql parser error: ").to_owned() }
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
            ("\"say \"\"no\"\"\"", "say \"no\""),
        ] {
            let tokens = words(written).unwrap();
            let (Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) = &tokens[0].token else { panic!("{written}") };
            assert_eq!(text, told, "{written}");
        }
        assert!(words(r"'open\'").is_err());
        let Token::Word(name) = &words("`a``b`").unwrap()[0].token else { panic!("a name") };
        assert_eq!(name.value, "a`b");
    }
}
