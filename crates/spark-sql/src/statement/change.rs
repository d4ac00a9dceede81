//! `INSERT`, `UPDATE`, `DELETE`, `MERGE`: read into parts that `crate::change` makes a query of.

use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, Ident};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;

use super::Name;
use super::cursor::Cursor;
use crate::change::{Assigned, Assignment, Change, Clause, Does, Insert, Rows, When};
use crate::text::Text;
use crate::{Error, depth, error, uses};

pub(super) fn change(cursor: &mut Cursor<'_>) -> Result<Change, Error> {
    match cursor.word(0).as_deref() {
        Some("INSERT") => insert(cursor),
        Some("UPDATE") => update(cursor),
        Some("DELETE") => delete(cursor),
        _ => merge(cursor),
    }
}

fn insert(cursor: &mut Cursor<'_>) -> Result<Change, Error> {
    cursor.expect(&["INSERT"])?;
    refuse_evolution(cursor)?;
    let overwrite = match () {
        () if cursor.eat(&["OVERWRITE"]) => {
            if cursor.sees(&["DIRECTORY"]) {
                return Err(cursor.refused("INSERT OVERWRITE DIRECTORY", "tables alone are written"));
            }
            let _ = cursor.eat(&["INTO"]);
            true
        }
        () => {
            cursor.expect(&["INTO"])?;
            false
        }
    };
    let _ = cursor.eat(&["TABLE"]);
    refuse_once(cursor)?;
    let target = cursor.name()?;
    if cursor.sees(&["PARTITION"]) {
        return Err(cursor.refused("PARTITION in INSERT", "give the partition columns like any other"));
    }
    if cursor.sees(&["REPLACE"]) {
        return Err(cursor.refused("INSERT … REPLACE", "say DELETE, then INSERT, or MERGE with WHEN NOT MATCHED BY SOURCE"));
    }
    let mut by_name = cursor.eat(&["BY", "NAME"]);
    let is_query = |word: Option<String>| matches!(word.as_deref(), Some("SELECT" | "WITH" | "VALUES" | "FROM" | "TABLE"));
    let lists = matches!(cursor.sign(), Token::LParen) && !is_query(cursor.word(1)) && !matches!(cursor.sign_after(1), Token::LParen);
    let columns = if lists { Some(cursor.names()?) } else { None };
    by_name |= cursor.eat(&["BY", "NAME"]);
    if by_name && columns.is_some() {
        return Err(cursor.refused("BY NAME with a list of columns", "one of them names the columns"));
    }
    let source = Text::of_query(cursor.query()?)?;
    let named = |column: Ident| Name { span: error::position(column.span), parts: vec![column.value] };
    let columns = columns.map(|columns| columns.into_iter().map(named).collect());
    Ok(Change::Insert(Box::new(Insert { target, overwrite, by_name, columns, source })))
}

fn refuse_evolution(cursor: &Cursor<'_>) -> Result<(), Error> {
    match cursor.sees(&["WITH", "SCHEMA", "EVOLUTION"]) {
        true => Err(cursor.refused("WITH SCHEMA EVOLUTION", "say ALTER TABLE … ADD COLUMNS first")),
        false => Ok(()),
    }
}

fn refuse_once(cursor: &Cursor<'_>) -> Result<(), Error> {
    match cursor.sees(&["ONCE"]) {
        true => Err(cursor.refused("INSERT INTO ONCE", "it belongs into CREATE FLOW")),
        false => Ok(()),
    }
}

fn update(cursor: &mut Cursor<'_>) -> Result<Change, Error> {
    cursor.expect(&["UPDATE"])?;
    let target = cursor.name()?;
    let alias = cursor.alias(&["SET"])?;
    cursor.expect(&["SET"])?;
    let assigned = assignments(cursor)?;
    if cursor.sees(&["FROM"]) {
        return Err(cursor.refused("UPDATE … FROM", "say MERGE INTO"));
    }
    let condition = condition(cursor, &["WHERE"])?;
    rows(Rows {
        target,
        alias,
        source: None,
        on: None,
        clauses: vec![Clause { when: When::Matched, condition, does: Does::Update(assigned) }],
    })
}

fn delete(cursor: &mut Cursor<'_>) -> Result<Change, Error> {
    cursor.expect(&["DELETE", "FROM"])?;
    let target = cursor.name()?;
    let alias = cursor.alias(&["WHERE"])?;
    let condition = condition(cursor, &["WHERE"])?;
    rows(Rows { target, alias, source: None, on: None, clauses: vec![Clause { when: When::Matched, condition, does: Does::Delete }] })
}

fn merge(cursor: &mut Cursor<'_>) -> Result<Change, Error> {
    cursor.expect(&["MERGE"])?;
    refuse_evolution(cursor)?;
    cursor.expect(&["INTO"])?;
    let target = cursor.name()?;
    let alias = cursor.alias(&["USING"])?;
    cursor.expect(&["USING"])?;
    let source = Some(cursor.factor()?);
    cursor.expect(&["ON"])?;
    let on = Some(cursor.expression()?);
    let mut clauses = Vec::new();
    while cursor.sees(&["WHEN"]) {
        clauses.push(clause(cursor)?);
    }
    if clauses.is_empty() {
        return Err(cursor.expected("WHEN MATCHED, WHEN NOT MATCHED or WHEN NOT MATCHED BY SOURCE"));
    }
    for when in [When::Matched, When::NotMatched, When::NotMatchedBySource] {
        let mut of = clauses.iter().filter(|clause| clause.when == when).rev();
        of.next();
        if of.any(|clause| clause.condition.is_none()) {
            let what = format!("a clause after {} without a condition", when.words());
            return Err(cursor.refused(what, "only the last of a kind may be without"));
        }
    }
    rows(Rows { target, alias, source, on, clauses })
}

fn clause(cursor: &mut Cursor<'_>) -> Result<Clause, Error> {
    cursor.expect(&["WHEN"])?;
    let when = match () {
        () if cursor.eat(&["MATCHED"]) => When::Matched,
        () if cursor.eat(&["NOT", "MATCHED", "BY", "SOURCE"]) => When::NotMatchedBySource,
        () if cursor.eat(&["NOT", "MATCHED", "BY", "TARGET"]) || cursor.eat(&["NOT", "MATCHED"]) => When::NotMatched,
        () => return Err(cursor.expected("MATCHED, NOT MATCHED or NOT MATCHED BY SOURCE")),
    };
    let condition = condition(cursor, &["AND"])?;
    cursor.expect(&["THEN"])?;
    let does = match when {
        When::NotMatched => {
            cursor.expect(&["INSERT"])?;
            match cursor.eat_sign(&Token::Mul) {
                true => Does::Insert(Assigned::Star),
                false => {
                    let columns = cursor.names()?;
                    cursor.expect(&["VALUES"])?;
                    cursor.expect_sign(&Token::LParen)?;
                    let mut values = vec![cursor.expression()?];
                    while cursor.eat_sign(&Token::Comma) {
                        values.push(cursor.expression()?);
                    }
                    if values.len() != columns.len() {
                        let what = format!("INSERT of {} values into {} columns", values.len(), columns.len());
                        return Err(cursor.refused(what, "give each column its value"));
                    }
                    cursor.expect_sign(&Token::RParen)?;
                    Does::Insert(Assigned::Columns(
                        columns.into_iter().zip(values).map(|(column, value)| Assignment { parts: vec![column], value }).collect(),
                    ))
                }
            }
        }
        When::Matched | When::NotMatchedBySource => match () {
            () if cursor.eat(&["DELETE"]) => Does::Delete,
            () if cursor.eat(&["UPDATE", "SET"]) => {
                if when == When::Matched && cursor.eat_sign(&Token::Mul) {
                    Does::Update(Assigned::Star)
                } else {
                    Does::Update(assignments(cursor)?)
                }
            }
            () => return Err(cursor.expected("UPDATE SET or DELETE")),
        },
    };
    Ok(Clause { when, condition, does })
}

fn condition(cursor: &mut Cursor<'_>, words: &[&str]) -> Result<Option<Expr>, Error> {
    if cursor.eat(words) { cursor.expression().map(Some) } else { Ok(None) }
}

/// `column = value, …`; a column may stand behind the table's name or alias.
fn assignments(cursor: &mut Cursor<'_>) -> Result<Assigned, Error> {
    let mut assigned: Vec<Assignment> = Vec::new();
    loop {
        let mut parts = vec![cursor.ident()?];
        while cursor.eat_sign(&Token::Period) {
            parts.push(cursor.ident()?);
        }
        cursor.expect_sign(&Token::Eq)?;
        let value = cursor.expression()?;
        assigned.push(Assignment { parts, value });
        if !cursor.eat_sign(&Token::Comma) {
            return Ok(Assigned::Columns(assigned));
        }
    }
}

fn rows(rows: Rows) -> Result<Change, Error> {
    let (rows, levels) = depth::measured(rows)?;
    Ok(Change::of_rows(uses::collect(&rows)?, levels, rows))
}
