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
    /// `ALTER COLUMN c SET MASK f [USING COLUMNS (…)]`.
    SetMask {
        /// The column.
        column: String,
        /// The function and what it is given, as it is written.
        function: Name,
        /// What else the function is given.
        using: Vec<String>,
    },
    /// `ALTER COLUMN c DROP MASK`.
    DropMask {
        /// The column.
        column: String,
    },
    /// `SET ROW FILTER f ON (…)`.
    SetRowFilter {
        /// The function.
        function: Name,
        /// What it is given.
        on: Vec<String>,
    },
    /// `DROP ROW FILTER`.
    DropRowFilter,
    /// `ADD COLUMNS (…)`.
    AddColumns(Vec<Column>),
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
            if !(added.checks.is_empty() && added.keys.is_empty() && added.unprotected.is_empty()) {
                return Err(Error::Refused { what: "a constraint of a column that is added".to_owned(), hint: None, span: place });
            }
            Alteration::AddColumns(added.columns)
        }
        () if cursor.eat(&["SET", "ROW", "FILTER"]) => {
            let function = cursor.name()?;
            cursor.expect(&["ON"])?;
            Alteration::SetRowFilter { function, on: using(cursor)? }
        }
        () if cursor.eat(&["DROP", "ROW", "FILTER"]) => Alteration::DropRowFilter,
        () if cursor.eat(&["ALTER", "COLUMN"]) || cursor.eat(&["ALTER"]) => {
            let column = cursor.ident()?.value;
            match () {
                () if cursor.eat(&["SET", "MASK"]) => {
                    let function = cursor.name()?;
                    let using = if cursor.eat(&["USING", "COLUMNS"]) { using(cursor)? } else { Vec::new() };
                    Alteration::SetMask { column, function, using }
                }
                () if cursor.eat(&["DROP", "MASK"]) => Alteration::DropMask { column },
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
pub(super) fn using(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Error> {
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
