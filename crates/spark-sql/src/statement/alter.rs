//! `ALTER`, `DROP` and `COMMENT ON`: what becomes of what is there.

use std::collections::BTreeMap;

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;
use tributary_specs::Column;

use super::cursor::Cursor;
use super::table::{CreateTable, column, properties};
use super::{Kind, Name, Statement};
use crate::Error;

/// What becomes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alteration {
    /// `SET TBLPROPERTIES`.
    SetProperties(BTreeMap<String, String>),
    /// `ALTER COLUMN c SET MASK f [USING COLUMNS (…)]`, `SET ROW FILTER f ON (…)`.
    SetMask(Mask),
    /// `ALTER COLUMN c DROP MASK`, `DROP ROW FILTER`.
    DropMask {
        /// The column; none = the rows.
        column: Option<String>,
    },
    /// `ADD COLUMNS (…)`.
    AddColumns(Vec<Column>),
}

/// A clause that hides data from people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// The column whose values it hides; none = it hides rows.
    pub column: Option<String>,
    /// The function.
    pub function: Name,
    /// What the function is given, of a column besides its value, as it is written.
    pub using: Vec<String>,
}

/// `f [USING COLUMNS (…)]`, behind `MASK`.
pub(super) fn mask(cursor: &mut Cursor<'_>, column: String) -> Result<Mask, Error> {
    let function = cursor.name()?;
    let using = if cursor.eat(&["USING", "COLUMNS"]) { using(cursor)? } else { Vec::new() };
    Ok(Mask { column: Some(column), function, using })
}

/// `f ON (…)`, behind `ROW FILTER`.
pub(super) fn row_filter(cursor: &mut Cursor<'_>) -> Result<Mask, Error> {
    let function = cursor.name()?;
    cursor.expect(&["ON"])?;
    Ok(Mask { column: None, function, using: using(cursor)? })
}

fn kind(cursor: &mut Cursor<'_>) -> Result<Kind, Error> {
    match () {
        () if cursor.eat(&["CATALOG"]) => Ok(Kind::Catalogue),
        () if cursor.eat(&["SCHEMA"]) || cursor.eat(&["DATABASE"]) => Ok(Kind::Schema),
        () if cursor.eat(&["TABLE"]) || cursor.eat(&["STREAMING", "TABLE"]) => Ok(Kind::Table),
        () if cursor.eat(&["MATERIALIZED", "VIEW"]) || cursor.eat(&["VIEW"]) => Ok(Kind::Table),
        () if cursor.eat(&["FUNCTION"]) => Ok(Kind::Function),
        () => Err(cursor.expected("CATALOG, SCHEMA, TABLE or FUNCTION")),
    }
}

pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["DROP"])?;
    let kind = kind(cursor)?;
    let if_exists = cursor.eat(&["IF", "EXISTS"]);
    let name = cursor.name()?;
    if cursor.sees(&["CASCADE"]) || cursor.sees(&["PURGE"]) {
        return Err(cursor.refused(cursor.word(0).unwrap_or_default(), "drop each table by its name"));
    }
    let _ = cursor.eat(&["RESTRICT"]);
    Ok(Statement::Drop { kind, name, if_exists })
}

pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["ALTER"])?;
    if kind(cursor)? != Kind::Table {
        return Err(cursor.refused("ALTER of this", "tables can be altered"));
    }
    let table = cursor.name()?;
    let alteration = match () {
        () if cursor.eat(&["SET", "TBLPROPERTIES"]) => Alteration::SetProperties(properties(cursor)?),
        () if cursor.eat(&["ADD", "COLUMNS"]) || cursor.eat(&["ADD", "COLUMN"]) => {
            let mut added = CreateTable::empty(table.clone(), false);
            let place = cursor.place();
            let bracket = cursor.eat_sign(&Token::LParen);
            loop {
                column(cursor, &mut added)?;
                if !cursor.eat_sign(&Token::Comma) {
                    break;
                }
            }
            if bracket {
                cursor.expect_sign(&Token::RParen)?;
            }
            if !(added.checks.is_empty() && added.keys.is_empty() && added.masks.is_empty()) {
                return Err(Error::Refused { what: "a constraint of a column that is added".to_owned(), hint: None, span: place });
            }
            Alteration::AddColumns(added.columns)
        }
        () if cursor.eat(&["SET", "ROW", "FILTER"]) => Alteration::SetMask(row_filter(cursor)?),
        () if cursor.eat(&["DROP", "ROW", "FILTER"]) => Alteration::DropMask { column: None },
        () if cursor.eat(&["ALTER", "COLUMN"]) || cursor.eat(&["ALTER"]) => {
            let column = cursor.ident()?.value;
            match () {
                () if cursor.eat(&["SET", "MASK"]) => Alteration::SetMask(mask(cursor, column)?),
                () if cursor.eat(&["DROP", "MASK"]) => Alteration::DropMask { column: Some(column) },
                () => {
                    let hint = "columns are added (ADD COLUMNS) and masked (SET MASK); a schema policy of `widen` changes types";
                    return Err(cursor.refused("this change of a column", hint));
                }
            }
        }
        () => {
            let words: Vec<String> = (0..2).map_while(|ahead| cursor.word(ahead)).collect();
            let hint = "SET TBLPROPERTIES, ADD COLUMNS, ALTER COLUMN … SET MASK and SET ROW FILTER are known";
            return Err(cursor.refused(format!("ALTER TABLE … {}", words.join(" ")), hint));
        }
    };
    Ok(Statement::Alter { table, alteration })
}

/// Columns and constants in brackets, as they are written.
fn using(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Error> {
    cursor.expect_sign(&Token::LParen)?;
    let mut given = Vec::new();
    while !matches!(cursor.sign(), Token::RParen) {
        given.push(cursor.expression_text()?);
        if !cursor.eat_sign(&Token::Comma) {
            break;
        }
    }
    cursor.expect_sign(&Token::RParen)?;
    Ok(given)
}

pub(super) fn comment(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["COMMENT", "ON"])?;
    let kind = kind(cursor)?;
    let name = cursor.name()?;
    cursor.expect(&["IS"])?;
    let text = if cursor.eat(&["NULL"]) { None } else { Some(cursor.string()?) };
    Ok(Statement::Comment { kind, name, text })
}
