//! `CREATE TABLE`.

use std::collections::BTreeMap;

use tributary_lake::datafusion::sql::sqlparser::ast::Ident;
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;
use tributary_specs::{COLUMN_OPTIONS, Check, Column};

use super::alter::{Mask, mask, row_filter};
use super::create::{collation, if_not_exists};
use super::cursor::Cursor;
use super::data_type::data_type;
use super::{Name, Statement};
use crate::Error;
use crate::text::Text;

/// `CREATE TABLE`.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Its name.
    pub name: Name,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Columns as declared; empty where the query tells them.
    pub columns: Vec<Column>,
    /// `PARTITIONED BY`.
    pub partition_by: Vec<String>,
    /// `CLUSTER BY`.
    pub cluster_by: Vec<String>,
    /// `CHECK`.
    pub checks: Vec<Check>,
    /// `PRIMARY KEY`, `FOREIGN KEY`: for people and tools, nothing enforces them.
    pub keys: Vec<Key>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `TBLPROPERTIES`.
    pub properties: BTreeMap<String, String>,
    /// Clauses that hide data from people (`MASK`, `ROW FILTER`); nothing enforces them.
    pub masks: Vec<Mask>,
    /// `AS query`.
    pub query: Option<Text>,
}

impl CreateTable {
    /// One that nothing but its name is known of.
    pub(super) fn empty(name: Name, if_not_exists: bool) -> Self {
        Self {
            name,
            if_not_exists,
            columns: Vec::new(),
            partition_by: Vec::new(),
            cluster_by: Vec::new(),
            checks: Vec::new(),
            keys: Vec::new(),
            comment: None,
            properties: BTreeMap::new(),
            masks: Vec::new(),
            query: None,
        }
    }
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
    /// The table that a foreign key points to.
    pub references: Option<Name>,
}

pub(super) fn table(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["TABLE"])?;
    let if_not_exists = if_not_exists(cursor);
    let mut table = CreateTable::empty(cursor.name()?, if_not_exists);
    if cursor.eat_sign(&Token::LParen) {
        loop {
            item(cursor, &mut table)?;
            if !cursor.eat_sign(&Token::Comma) {
                break;
            }
        }
        cursor.expect_sign(&Token::RParen)?;
    }
    loop {
        match () {
            () if cursor.eat(&["USING"]) => {
                if !cursor.eat(&["DELTA"]) {
                    return Err(cursor.refused("another format than DELTA", "every table is a Delta table"));
                }
            }
            () if cursor.eat(&["PARTITIONED", "BY"]) => partitions(cursor, &mut table)?,
            () if cursor.eat(&["CLUSTER", "BY"]) => {
                if !(cursor.eat(&["AUTO"]) || cursor.eat(&["NONE"])) {
                    table.cluster_by = values(cursor.names()?);
                }
            }
            () if cursor.eat(&["COMMENT"]) => table.comment = Some(cursor.string()?),
            () if cursor.eat(&["TBLPROPERTIES"]) => table.properties.append(&mut properties(cursor)?),
            () if cursor.sees(&["DEFAULT", "COLLATION"]) => collation(cursor)?,
            () if cursor.eat(&["WITH", "ROW", "FILTER"]) => table.masks.push(row_filter(cursor)?),
            () if cursor.sees(&["LOCATION"]) || cursor.sees(&["OPTIONS"]) || cursor.sees(&["ROW"]) || cursor.sees(&["STORED"]) => {
                return Err(cursor.refused(cursor.word(0).unwrap_or_default(), "every table is a Delta table below the root of the lake"));
            }
            () if cursor.sees(&["LIKE"]) || cursor.sees(&["CLONE"]) || cursor.sees(&["SHALLOW"]) || cursor.sees(&["DEEP"]) => {
                return Err(cursor.refused("a copy of a table", "say AS SELECT * FROM it"));
            }
            () if cursor.eat(&["AS"]) => {
                table.query = Some(Text::of_query(cursor.query()?)?);
                break;
            }
            () if cursor.sees(&["SELECT"]) || cursor.sees(&["WITH"]) => {
                table.query = Some(Text::of_query(cursor.query()?)?);
                break;
            }
            () => break,
        }
    }
    match (&table.query, table.columns.is_empty()) {
        (Some(_), false) => Err(cursor.refused("columns beside AS", "the query names them: cast and rename there")),
        (None, true) => Err(cursor.expected("columns in brackets, or AS and a query")),
        _ => Ok(Statement::CreateTable(Box::new(table))),
    }
}

fn values(names: Vec<Ident>) -> Vec<String> {
    names.into_iter().map(|name| name.value).collect()
}

/// `PARTITIONED BY (a, b)`; a column may be declared here with its type.
fn partitions(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<(), Error> {
    cursor.expect_sign(&Token::LParen)?;
    loop {
        if matches!(cursor.sign_after(1), Token::LParen) {
            return Err(cursor.refused("PARTITIONED BY an expression", "declare a generated column and name it"));
        }
        let typed = !matches!(cursor.sign_after(1), Token::Comma | Token::RParen);
        match typed {
            true => {
                item(cursor, table)?;
                table.partition_by.extend(table.columns.last().map(|column| column.name.clone()));
            }
            false => table.partition_by.push(cursor.ident()?.value),
        }
        if !cursor.eat_sign(&Token::Comma) {
            return cursor.expect_sign(&Token::RParen);
        }
    }
}

/// A column or a constraint.
fn item(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<(), Error> {
    let names_constraint =
        cursor.sees(&["CONSTRAINT"]) && matches!(cursor.word(2).as_deref(), Some("PRIMARY" | "FOREIGN" | "CHECK" | "UNIQUE" | "EXPECT"));
    let name = match names_constraint {
        true => {
            cursor.skip();
            Some(cursor.ident()?.value)
        }
        false => None,
    };
    match () {
        () if cursor.sees(&["EXPECT"]) => Err(cursor.refused("EXPECT", "rules belong to streaming tables; say CHECK here")),
        () if cursor.sees(&["UNIQUE"]) && name.is_some() => Err(cursor.refused("UNIQUE", "nothing would hold it")),
        () if cursor.sees(&["CHECK"]) && matches!(cursor.sign_after(1), Token::LParen) => {
            let check = check(cursor, name, table.checks.len())?;
            table.checks.push(check);
            Ok(())
        }
        () if cursor.eat(&["PRIMARY", "KEY"]) => {
            let mut columns = Vec::new();
            cursor.expect_sign(&Token::LParen)?;
            loop {
                columns.push(cursor.ident()?.value);
                let _ = cursor.eat(&["TIMESERIES"]);
                if !cursor.eat_sign(&Token::Comma) {
                    break;
                }
            }
            cursor.expect_sign(&Token::RParen)?;
            key_options(cursor)?;
            table.keys.push(Key { name, columns, references: None });
            Ok(())
        }
        () if cursor.eat(&["FOREIGN", "KEY"]) => {
            let columns = values(cursor.names()?);
            table.keys.push(Key { name, columns, references: Some(references(cursor)?) });
            Ok(())
        }
        () => column(cursor, table),
    }
}

fn check(cursor: &mut Cursor<'_>, name: Option<String>, others: usize) -> Result<Check, Error> {
    cursor.expect(&["CHECK"])?;
    cursor.expect_sign(&Token::LParen)?;
    let expression = cursor.expression_text()?;
    cursor.expect_sign(&Token::RParen)?;
    let _ = cursor.eat(&["ENFORCED"]);
    if cursor.sees(&["NOT", "ENFORCED"]) {
        return Err(cursor.refused("CHECK … NOT ENFORCED", "a check is enforced"));
    }
    Ok(Check { name: name.unwrap_or_else(|| format!("check_{}", others + 1)), expression })
}

/// `REFERENCES table [(…)]` and what is said of the key.
fn references(cursor: &mut Cursor<'_>) -> Result<Name, Error> {
    cursor.expect(&["REFERENCES"])?;
    let name = cursor.name()?;
    if matches!(cursor.sign(), Token::LParen) {
        cursor.names()?;
    }
    key_options(cursor)?;
    Ok(name)
}

fn key_options(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    while cursor.eat(&["NOT", "ENFORCED"]) || cursor.eat(&["RELY"]) || cursor.eat(&["NORELY"]) || cursor.eat(&["DEFERRABLE"]) {}
    while cursor.eat(&["INITIALLY", "DEFERRED"]) || cursor.eat(&["MATCH", "FULL"]) {}
    if cursor.sees(&["ENFORCED"]) {
        return Err(cursor.refused("a key that is ENFORCED", "nothing would hold it; merge by key instead"));
    }
    Ok(())
}

pub(super) fn column(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<(), Error> {
    let name = cursor.ident()?.value;
    let mut column = Column::new(name, data_type(cursor, COLUMN_OPTIONS)?);
    loop {
        match () {
            () if cursor.eat(&["NOT", "NULL"]) => column.nullable = false,
            () if cursor.eat(&["NULL"]) => {}
            () if cursor.eat(&["COMMENT"]) => column.comment = Some(cursor.string()?),
            () if cursor.eat(&["DEFAULT"]) => column.default = Some(cursor.expression_text()?),
            () if cursor.eat(&["GENERATED"]) => {
                let _ = cursor.eat(&["ALWAYS"]) || cursor.eat(&["BY", "DEFAULT"]);
                cursor.expect(&["AS"])?;
                if cursor.sees(&["IDENTITY"]) {
                    return Err(cursor.refused("IDENTITY", "numbers that two writers hand out at once would not be unique"));
                }
                cursor.expect_sign(&Token::LParen)?;
                column.generated = Some(cursor.expression_text()?);
                cursor.expect_sign(&Token::RParen)?;
            }
            () if cursor.eat(&["PRIMARY", "KEY"]) => {
                key_options(cursor)?;
                table.keys.push(Key { name: None, columns: vec![column.name.clone()], references: None });
            }
            () if cursor.sees(&["FOREIGN", "KEY"]) || cursor.sees(&["REFERENCES"]) => {
                let _ = cursor.eat(&["FOREIGN", "KEY"]);
                table.keys.push(Key { name: None, columns: vec![column.name.clone()], references: Some(references(cursor)?) });
            }
            () if cursor.eat(&["MASK"]) => table.masks.push(mask(cursor, column.name.clone())?),
            () if cursor.sees(&["CHECK"]) => {
                let check = check(cursor, None, table.checks.len())?;
                table.checks.push(check);
            }
            () if cursor.eat(&["COLLATE"]) => {
                if !cursor.eat(&["UTF8_BINARY"]) {
                    return Err(cursor.refused("this collation", "texts compare as UTF8_BINARY"));
                }
            }
            () if cursor.sees(&["UNIQUE"]) => return Err(cursor.refused("UNIQUE", "nothing would hold it")),
            () => break,
        }
    }
    table.columns.push(column);
    Ok(())
}

/// The key of a property: a text, or words with dots.
pub(super) fn property_key(cursor: &mut Cursor<'_>) -> Result<String, Error> {
    if matches!(cursor.sign(), Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)) {
        return cursor.string();
    }
    let mut key = cursor.ident()?.value;
    while cursor.eat_sign(&Token::Period) {
        key.push('.');
        key.push_str(&cursor.ident()?.value);
    }
    Ok(key)
}

pub(super) fn properties(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, String>, Error> {
    let mut properties = BTreeMap::new();
    cursor.expect_sign(&Token::LParen)?;
    loop {
        let key = property_key(cursor)?;
        let _ = cursor.eat_sign(&Token::Eq);
        let value = match cursor.sign().clone() {
            Token::Number(digits, _) => {
                cursor.skip();
                digits
            }
            Token::Word(word) if word.quote_style.is_none() => {
                cursor.skip();
                word.value
            }
            _ => cursor.string()?,
        };
        properties.insert(key, value);
        if !cursor.eat_sign(&Token::Comma) {
            break;
        }
    }
    cursor.expect_sign(&Token::RParen)?;
    Ok(properties)
}
