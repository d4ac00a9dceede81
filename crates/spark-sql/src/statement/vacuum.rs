//! `VACUUM`, `RESTORE`.

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;

use super::Statement;
use super::cursor::Cursor;
use crate::{Error, uses};

/// `VACUUM t [FULL | LITE] [RETAIN n HOURS] [DRY RUN]`, the clauses in any order.
pub(super) fn vacuum(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["VACUUM"])?;
    let table = cursor.name()?;
    let (mut lite, mut retain_hours, mut dry_run) = (None, None, false);
    while !cursor.is_done() {
        if lite.is_none() && cursor.eat(&["LITE"]) {
            lite = Some(true);
        } else if lite.is_none() && cursor.eat(&["FULL"]) {
            lite = Some(false);
        } else if retain_hours.is_none() && cursor.eat(&["RETAIN"]) {
            retain_hours = Some(hours(cursor)?);
        } else if !dry_run && cursor.eat(&["DRY", "RUN"]) {
            dry_run = true;
        } else {
            return Err(cursor.expected("LITE, FULL, RETAIN n HOURS or DRY RUN"));
        }
    }
    Ok(Statement::Vacuum { table, lite: lite.unwrap_or_default(), retain_hours, dry_run })
}

fn hours(cursor: &mut Cursor<'_>) -> Result<u64, Error> {
    let Token::Number(digits, false) = cursor.sign() else { return Err(cursor.expected("a whole number of hours")) };
    let Ok(hours) = digits.parse() else { return Err(cursor.expected("a whole number of hours")) };
    cursor.skip();
    cursor.expect(&["HOURS"])?;
    Ok(hours)
}

/// `RESTORE [TABLE] t [TO] VERSION AS OF n`, `… TIMESTAMP AS OF instant`.
pub(super) fn restore(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["RESTORE"])?;
    let _ = cursor.eat(&["TABLE"]);
    let table = cursor.name()?;
    let _ = cursor.eat(&["TO"]);
    let is_version = cursor.eat(&["VERSION", "AS", "OF"]);
    if !is_version {
        cursor.expect(&["TIMESTAMP", "AS", "OF"])?;
    }
    let point = cursor.expression()?;
    let to = if is_version { uses::version(&point)? } else { uses::timestamp(&point)? };
    Ok(Statement::Restore { table, to })
}
