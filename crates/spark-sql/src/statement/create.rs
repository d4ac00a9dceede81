//! `CREATE`, `DROP`, `ALTER`, `COMMENT ON`.

use std::collections::BTreeMap;

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;
use tributary_specs::{Check, Column, DataType};

use super::cursor::Cursor;
use super::{Kind, Name, Statement};
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
    /// Clauses that hide data from people (`MASK`, `ROW FILTER`) and where they stand; nothing enforces them.
    pub unprotected: Vec<(String, Option<(u64, u64)>)>,
    /// `AS query`.
    pub query: Option<Text>,
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

pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    if is_of_pipeline(cursor) {
        while !cursor.is_done() {
            cursor.skip();
        }
        return Ok(Statement::Pipeline);
    }
    cursor.expect(&["CREATE"])?;
    let replace = cursor.eat(&["OR", "REPLACE"]);
    let start = cursor.place();
    match cursor.word(0).as_deref() {
        Some("CATALOG") => space(cursor, Kind::Catalogue),
        Some("SCHEMA" | "DATABASE") => space(cursor, Kind::Schema),
        Some("TABLE") if replace => {
            let hint = "it would empty a table that is there: say CREATE TABLE IF NOT EXISTS, or INSERT OVERWRITE";
            Err(Error::Refused { what: "CREATE OR REPLACE TABLE".to_owned(), hint: Some(hint.to_owned()), span: start })
        }
        Some("TABLE") => table(cursor),
        Some("FUNCTION") => function(cursor, replace),
        Some("EXTERNAL") => Err(cursor.refused("CREATE EXTERNAL TABLE", "tables lie below the root of the lake")),
        Some("TEMPORARY" | "TEMP") => Err(cursor.refused("a temporary function or table", "say WITH in the query")),
        _ => Err(cursor.expected("CATALOG, SCHEMA, TABLE, FUNCTION or a dataset of a pipeline")),
    }
}

/// Whether a `CREATE` defines what a pipeline keeps.
fn is_of_pipeline(cursor: &Cursor<'_>) -> bool {
    let mut ahead = 1;
    if cursor.word(ahead).as_deref() == Some("OR") {
        if cursor.word(ahead + 1).as_deref() == Some("REFRESH") {
            return true;
        }
        ahead += 2;
    }
    while matches!(cursor.word(ahead).as_deref(), Some("PRIVATE" | "TEMPORARY" | "TEMP" | "INCREMENTAL")) {
        ahead += 1;
    }
    matches!(cursor.word(ahead).as_deref(), Some("STREAMING" | "MATERIALIZED" | "LIVE" | "VIEW" | "FLOW"))
}

fn if_not_exists(cursor: &mut Cursor<'_>) -> bool {
    cursor.eat(&["IF", "NOT", "EXISTS"])
}

fn space(cursor: &mut Cursor<'_>, kind: Kind) -> Result<Statement, Error> {
    cursor.skip();
    let if_not_exists = if_not_exists(cursor);
    let name = cursor.name()?;
    let mut comment = None;
    loop {
        match () {
            () if cursor.eat(&["COMMENT"]) => comment = Some(cursor.string()?),
            () if cursor.sees(&["MANAGED", "LOCATION"]) || cursor.sees(&["LOCATION"]) => {
                return Err(cursor.refused("LOCATION", "everything lies below the root of the lake"));
            }
            () if cursor.sees(&["DEFAULT", "COLLATION"]) => collation(cursor)?,
            () if cursor.sees(&["WITH"]) => return Err(cursor.refused("properties of a schema", "tables have properties")),
            () => break,
        }
    }
    Ok(Statement::CreateSpace { kind, name, if_not_exists, comment })
}

/// `DEFAULT COLLATION UTF8_BINARY`, which is how texts compare here.
fn collation(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    cursor.expect(&["DEFAULT", "COLLATION"])?;
    let _ = cursor.eat_sign(&Token::Eq);
    if cursor.eat(&["UTF8_BINARY"]) { Ok(()) } else { Err(cursor.refused("this collation", "texts compare as UTF8_BINARY")) }
}

fn table(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["TABLE"])?;
    let if_not_exists = if_not_exists(cursor);
    let mut table = CreateTable {
        name: cursor.name()?,
        if_not_exists,
        columns: Vec::new(),
        partition_by: Vec::new(),
        cluster_by: Vec::new(),
        checks: Vec::new(),
        keys: Vec::new(),
        comment: None,
        properties: BTreeMap::new(),
        unprotected: Vec::new(),
        query: None,
    };
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
        let place = cursor.place();
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
            () if cursor.eat(&["WITH", "ROW", "FILTER"]) => {
                let function = cursor.name()?;
                cursor.expect(&["ON"])?;
                cursor.names()?;
                table.unprotected.push((format!("ROW FILTER {function}"), place));
            }
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

fn values(names: Vec<tributary_lake::datafusion::sql::sqlparser::ast::Ident>) -> Vec<String> {
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
            cursor.expect(&["REFERENCES"])?;
            let references = Some(cursor.name()?);
            if matches!(cursor.sign(), Token::LParen) {
                cursor.names()?;
            }
            key_options(cursor)?;
            table.keys.push(Key { name, columns, references });
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

fn key_options(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    while cursor.eat(&["NOT", "ENFORCED"]) || cursor.eat(&["RELY"]) || cursor.eat(&["NORELY"]) || cursor.eat(&["DEFERRABLE"]) {}
    while cursor.eat(&["INITIALLY", "DEFERRED"]) || cursor.eat(&["MATCH", "FULL"]) {}
    if cursor.sees(&["ENFORCED"]) {
        return Err(cursor.refused("a key that is ENFORCED", "nothing would hold it; merge by key instead"));
    }
    Ok(())
}

/// Words that end a type.
const OPTIONS: &[&str] = &[
    "NOT",
    "NULL",
    "COMMENT",
    "DEFAULT",
    "GENERATED",
    "PRIMARY",
    "FOREIGN",
    "REFERENCES",
    "MASK",
    "CONSTRAINT",
    "CHECK",
    "COLLATE",
    "UNIQUE",
];

fn column(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<(), Error> {
    let name = cursor.ident()?.value;
    let mut column = Column::new(name, data_type(cursor, OPTIONS)?);
    loop {
        let place = cursor.place();
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
                cursor.expect(&["REFERENCES"])?;
                let references = Some(cursor.name()?);
                if matches!(cursor.sign(), Token::LParen) {
                    cursor.names()?;
                }
                key_options(cursor)?;
                table.keys.push(Key { name: None, columns: vec![column.name.clone()], references });
            }
            () if cursor.eat(&["MASK"]) => {
                let function = cursor.name()?;
                if cursor.eat(&["USING", "COLUMNS"]) {
                    using(cursor)?;
                }
                table.unprotected.push((format!("MASK {function} of `{}`", column.name), place));
            }
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

/// A type, up to a comma, a closing bracket or one of these words.
fn data_type(cursor: &mut Cursor<'_>, until: &[&str]) -> Result<DataType, Error> {
    let span = cursor.place();
    let mark = cursor.mark();
    let (mut angles, mut brackets) = (0usize, 0usize);
    loop {
        match cursor.sign() {
            Token::EOF => break,
            Token::Lt => angles += 1,
            Token::Gt => angles = angles.saturating_sub(1),
            Token::ShiftRight => angles = angles.saturating_sub(2),
            Token::LParen => brackets += 1,
            Token::RParen if brackets == 0 => break,
            Token::RParen => brackets -= 1,
            Token::Comma if angles == 0 && brackets == 0 => break,
            _ if angles == 0 && brackets == 0 && cursor.word(0).is_some_and(|word| until.contains(&word.as_str())) => break,
            _ => {}
        }
        cursor.skip();
    }
    let written = if mark == cursor.mark() { String::new() } else { cursor.text_from(mark) };
    if written.is_empty() {
        return Err(cursor.expected("a type"));
    }
    type_of(&written).map_err(|reason| Error::Refused { what: format!("the type {written}"), hint: Some(reason), span })
}

fn type_of(written: &str) -> Result<DataType, String> {
    let lower = written.to_lowercase();
    let (word, rest) = lower.split_once('(').unwrap_or((&lower, ""));
    match word.trim() {
        "decimal" | "dec" | "numeric" if rest.is_empty() => Ok(DataType::Decimal { precision: 10, scale: 0 }),
        "varchar" | "char" | "character" if rest.ends_with(')') => Err("texts have any length: say STRING".to_owned()),
        _ => written.parse().map_err(|error: tributary_specs::Error| error.to_string()),
    }
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

fn properties(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, String>, Error> {
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

fn function(cursor: &mut Cursor<'_>, replace: bool) -> Result<Statement, Error> {
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
            let mut added = CreateTable {
                name: table.clone(),
                if_not_exists: false,
                columns: Vec::new(),
                partition_by: Vec::new(),
                cluster_by: Vec::new(),
                checks: Vec::new(),
                keys: Vec::new(),
                comment: None,
                properties: BTreeMap::new(),
                unprotected: Vec::new(),
                query: None,
            };
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
