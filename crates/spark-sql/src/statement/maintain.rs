//! `OPTIMIZE`, `REORG`.

use super::Statement;
use super::cursor::Cursor;
use crate::Error;

/// `OPTIMIZE [TABLE] t [ZORDER BY (columns)]`.
pub(super) fn optimize(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["OPTIMIZE"])?;
    let _ = cursor.eat(&["TABLE"]);
    let table = cursor.name()?;
    for (word, hint) in [
        ("WHERE", "every partition is looked at, and what needs nothing is left: leave it out"),
        ("FULL", "files by former clustering columns are sorted little by little: leave it out"),
    ] {
        if cursor.sees(&[word]) {
            return Err(cursor.refused(format!("OPTIMIZE … {word}"), hint));
        }
    }
    let zorder_by = match cursor.eat(&["ZORDER", "BY"]) {
        true => cursor.names()?.into_iter().map(|column| column.value).collect(),
        false => Vec::new(),
    };
    Ok(Statement::Optimize { table, zorder_by })
}

/// `REORG TABLE t APPLY (PURGE)`.
pub(super) fn reorg(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["REORG", "TABLE"])?;
    let table = cursor.name()?;
    cursor.expect(&["APPLY"])?;
    match cursor.names()?.as_slice() {
        [what] if what.value.eq_ignore_ascii_case("PURGE") => Ok(Statement::Reorg(table)),
        _ => Err(cursor.refused("REORG TABLE … APPLY of something else than PURGE", "say REORG TABLE t APPLY (PURGE)")),
    }
}
