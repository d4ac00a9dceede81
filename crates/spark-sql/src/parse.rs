//! Text to one statement.

use tributary_lake::datafusion::sql::sqlparser::ast::{DescribeAlias, Expr, Spanned, Statement};
use tributary_lake::datafusion::sql::sqlparser::dialect::DatabricksDialect;
use tributary_lake::datafusion::sql::sqlparser::parser::Parser;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};

use crate::Error;

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
    let tokens = Tokenizer::new(&DatabricksDialect, text).tokenize_with_location().map_err(|error| syntax(&error))?;
    if tokens.len() > TOKENS_MAX {
        let what = format!("a text of more than {TOKENS_MAX} words and signs");
        return Err(Error::refused(what, tokens[TOKENS_MAX].span));
    }
    Ok(tokens)
}

pub(crate) fn syntax(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    Error::Syntax { reason: text.trim_start_matches("sql parser error: ").to_owned() }
}
