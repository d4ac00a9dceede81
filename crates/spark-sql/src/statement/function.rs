//! `CREATE FUNCTION`.

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;
use tributary_specs::DataType;

use super::create::if_not_exists;
use super::cursor::Cursor;
use super::data_type::data_type;
use super::{Name, Statement};
use crate::Error;

/// `CREATE FUNCTION … RETURN expr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateFunction {
    /// Its name.
    pub name: Name,
    /// `OR REPLACE`.
    pub replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// The type of the result; none = that of the body.
    pub returns: Option<DataType>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// The expression.
    pub body: String,
    /// Where it begins.
    pub body_span: Option<(u64, u64)>,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

pub(super) fn function(cursor: &mut Cursor<'_>, replace: bool) -> Result<Statement, Error> {
    cursor.expect(&["FUNCTION"])?;
    let if_not_exists = if_not_exists(cursor);
    let name = cursor.name()?;
    cursor.expect_sign(&Token::LParen)?;
    let mut parameters = Vec::new();
    if !matches!(cursor.sign(), Token::RParen) {
        loop {
            let name = cursor.ident()?.value;
            let data_type = data_type(cursor, &["DEFAULT", "COMMENT"])?;
            if cursor.sees(&["DEFAULT"]) {
                return Err(cursor.refused("DEFAULT of a parameter", "give every argument"));
            }
            if cursor.eat(&["COMMENT"]) {
                cursor.string()?;
            }
            parameters.push(Parameter { name, data_type });
            if !cursor.eat_sign(&Token::Comma) {
                break;
            }
        }
    }
    cursor.expect_sign(&Token::RParen)?;
    let (mut returns, mut comment) = (None, None);
    loop {
        match () {
            () if cursor.sees(&["RETURNS", "TABLE"]) => {
                return Err(cursor.refused("a function that returns a table", "a view is a query with a name"));
            }
            () if cursor.eat(&["RETURNS"]) => {
                returns = Some(data_type(cursor, &["RETURN", "COMMENT", "LANGUAGE", "DETERMINISTIC", "NOT", "CONTAINS", "READS", "AS"])?);
            }
            () if cursor.eat(&["COMMENT"]) => comment = Some(cursor.string()?),
            () if cursor.eat(&["LANGUAGE"]) => {
                if !cursor.eat(&["SQL"]) {
                    return Err(cursor.refused("a function in another language than SQL", "say RETURN and an expression"));
                }
            }
            () if cursor.eat(&["NOT", "DETERMINISTIC"]) || cursor.eat(&["DETERMINISTIC"]) => {}
            () if cursor.eat(&["CONTAINS", "SQL"]) || cursor.eat(&["READS", "SQL", "DATA"]) => {}
            () => break,
        }
    }
    cursor.expect(&["RETURN"])?;
    let body_span = cursor.place();
    if cursor.sees(&["SELECT"]) || cursor.sees(&["WITH"]) {
        return Err(cursor.refused("a function that returns a query", "say RETURN and an expression"));
    }
    let body = cursor.expression_text()?;
    Ok(Statement::CreateFunction(CreateFunction { name, replace, if_not_exists, parameters, returns, comment, body, body_span }))
}
