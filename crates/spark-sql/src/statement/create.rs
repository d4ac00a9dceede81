//! `CREATE`: which of what there is, and catalogues and schemas.

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::function::function;
use super::table::table;
use super::{Kind, Statement};
use crate::Error;

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

pub(super) fn if_not_exists(cursor: &mut Cursor<'_>) -> bool {
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
pub(super) fn collation(cursor: &mut Cursor<'_>) -> Result<(), Error> {
    cursor.expect(&["DEFAULT", "COLLATION"])?;
    let _ = cursor.eat_sign(&Token::Eq);
    if cursor.eat(&["UTF8_BINARY"]) { Ok(()) } else { Err(cursor.refused("this collation", "texts compare as UTF8_BINARY")) }
}
