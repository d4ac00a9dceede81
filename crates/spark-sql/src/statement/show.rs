//! `DESCRIBE`, `SHOW`, `USE`.

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Kind, Name, Statement, govern};
use crate::Error;
use crate::text::Text;

/// What is described.
#[derive(Debug, Clone)]
pub enum Described {
    /// The columns of a table.
    Table {
        /// Its name.
        name: Name,
        /// With everything else that is known (`EXTENDED`).
        extended: bool,
    },
    /// One row about a table (`DETAIL`).
    Detail(Name),
    /// Its commits, newest first.
    History(Name),
    /// A schema, a catalogue or a function.
    Other {
        /// Which kind.
        kind: Kind,
        /// Its name.
        name: Name,
    },
    /// The columns of a query.
    Query(Box<Text>),
}

/// What is listed.
#[derive(Debug, Clone)]
pub enum Shown {
    /// `SHOW CATALOGS`.
    Catalogues {
        /// `LIKE`.
        like: Option<String>,
    },
    /// `SHOW SCHEMAS [IN catalogue]`.
    Schemas {
        /// Whose; none = the current one's.
        within: Option<Name>,
        /// `LIKE`.
        like: Option<String>,
    },
    /// `SHOW TABLES [IN schema]`.
    Tables {
        /// Whose; none = the current one's.
        within: Option<Name>,
        /// `LIKE`.
        like: Option<String>,
    },
    /// `SHOW COLUMNS IN table`.
    Columns(Name),
    /// `SHOW TBLPROPERTIES table`.
    Properties {
        /// The table.
        table: Name,
        /// One of them.
        key: Option<String>,
    },
    /// `SHOW PARTITIONS table`.
    Partitions(Name),
    /// `SHOW FUNCTIONS`.
    Functions {
        /// The schema; none = every one.
        within: Option<Name>,
        /// `LIKE`.
        like: Option<String>,
        /// Whether those of the dialect are listed.
        system: bool,
        /// Whether those that people made are.
        user: bool,
    },
    /// `SHOW CREATE TABLE`.
    CreateTable(Name),
}

pub(super) fn describe(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.skip();
    for (words, kind) in
        [(&["CATALOG"], Kind::Catalogue), (&["SCHEMA"], Kind::Schema), (&["DATABASE"], Kind::Schema), (&["FUNCTION"], Kind::Function)]
    {
        if cursor.eat(words) {
            let _ = cursor.eat(&["EXTENDED"]);
            return Ok(Statement::Describe(Described::Other { kind, name: cursor.name()? }));
        }
    }
    if cursor.eat(&["QUERY"]) || cursor.sees(&["SELECT"]) || cursor.sees(&["WITH"]) {
        let query = cursor.query()?;
        return Ok(Statement::Describe(Described::Query(Box::new(Text::of_query(query)?))));
    }
    if cursor.eat(&["DETAIL"]) {
        let _ = cursor.eat(&["TABLE"]);
        return Ok(Statement::Describe(Described::Detail(cursor.name()?)));
    }
    if cursor.eat(&["HISTORY"]) {
        let _ = cursor.eat(&["TABLE"]);
        return Ok(Statement::Describe(Described::History(cursor.name()?)));
    }
    let _ = cursor.eat(&["TABLE"]);
    let extended = cursor.eat(&["EXTENDED"]) || cursor.eat(&["FORMATTED"]);
    let name = cursor.name()?;
    if cursor.sees(&["AS", "JSON"]) {
        return Err(cursor.refused("AS JSON", "say --output json"));
    }
    Ok(Statement::Describe(Described::Table { name, extended }))
}

pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["SHOW"])?;
    let shown = match () {
        () if cursor.eat(&["GRANTS"]) || cursor.eat(&["GRANT"]) => return govern::show_grants(cursor),
        () if cursor.eat(&["CATALOGS"]) => Shown::Catalogues { like: like(cursor)? },
        () if cursor.eat(&["SCHEMAS"]) || cursor.eat(&["DATABASES"]) => Shown::Schemas { within: within(cursor)?, like: like(cursor)? },
        () if cursor.eat(&["TABLES"]) => Shown::Tables { within: within(cursor)?, like: like(cursor)? },
        () if cursor.eat(&["COLUMNS"]) => {
            let table = within(cursor)?.ok_or_else(|| cursor.expected("IN table"))?;
            Shown::Columns(match within(cursor)? {
                Some(schema) => Name { parts: schema.parts.into_iter().chain(table.parts).collect(), span: table.span },
                None => table,
            })
        }
        () if cursor.eat(&["TBLPROPERTIES"]) => {
            let table = cursor.name()?;
            let key = match cursor.eat_sign(&Token::LParen) {
                true => {
                    let key = super::table::property_key(cursor)?;
                    cursor.expect_sign(&Token::RParen)?;
                    Some(key)
                }
                false => None,
            };
            Shown::Properties { table, key }
        }
        () if cursor.eat(&["PARTITIONS"]) => Shown::Partitions(cursor.name()?),
        () if cursor.eat(&["CREATE", "TABLE"]) => Shown::CreateTable(cursor.name()?),
        () => {
            let (system, user) = match () {
                () if cursor.eat(&["USER", "FUNCTIONS"]) => (false, true),
                () if cursor.eat(&["SYSTEM", "FUNCTIONS"]) => (true, false),
                () if cursor.eat(&["ALL", "FUNCTIONS"]) || cursor.eat(&["FUNCTIONS"]) => (true, true),
                () => {
                    let what = "GRANTS, CATALOGS, SCHEMAS, TABLES, COLUMNS, TBLPROPERTIES, PARTITIONS, FUNCTIONS or CREATE TABLE";
                    return Err(cursor.expected(what));
                }
            };
            Shown::Functions { within: within(cursor)?, like: like(cursor)?, system, user }
        }
    };
    Ok(Statement::Show(shown))
}

fn within(cursor: &mut Cursor<'_>) -> Result<Option<Name>, Error> {
    if cursor.eat(&["IN"]) || cursor.eat(&["FROM"]) { cursor.name().map(Some) } else { Ok(None) }
}

/// `LIKE 'pattern'`, or the pattern alone.
fn like(cursor: &mut Cursor<'_>) -> Result<Option<String>, Error> {
    if cursor.eat(&["LIKE"]) {
        return cursor.string().map(Some);
    }
    if cursor.is_done() { Ok(None) } else { cursor.string().map(Some) }
}

pub(super) fn use_of(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["USE"])?;
    if cursor.eat(&["CATALOG"]) {
        return Ok(Statement::UseCatalogue(cursor.name()?));
    }
    let _ = cursor.eat(&["SCHEMA"]) || cursor.eat(&["DATABASE"]);
    Ok(Statement::UseSchema(cursor.name()?))
}
