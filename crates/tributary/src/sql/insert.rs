//! `INSERT INTO` and `INSERT OVERWRITE`.
//!
//! Rows go into the table's own types: what does not fit stops the statement, as in Spark's ANSI mode. Columns that are not given take
//! their default, are computed, or are null.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use tributary_fault::nearest;
use tributary_lake::datafusion::logical_expr::Expr;
use tributary_lake::datafusion::prelude::{DataFrame, ident};
use tributary_lake::{Commit, CommitOutcome, NewFile, Operation, Reads, Table, WriterOptions};
use tributary_spark_sql::{Insert, Name, Tables, expression, type_name};
use tributary_specs::Column;

use super::session::Planner;
use super::{Error, TextError as Text};

/// One attempt; rows written, and the outcome of the commit, none where there was nothing to do.
pub(crate) async fn attempt(
    table: &Table,
    mut insert: Insert,
    tables: &Tables,
    planner: &Planner,
) -> Result<(u64, Option<CommitOutcome>), Error> {
    table.ensure_writable()?;
    let overwrite = insert.overwrite;
    let listed = insert.columns.as_deref().map(|names| named(table, names)).transpose()?;
    let given: Vec<&Column> = listed.clone().unwrap_or_else(|| table.columns().iter().collect());
    let defaults: Vec<Option<String>> = given.iter().map(|column| column.default.clone()).collect();
    insert.put_defaults(&defaults)?;
    let rows = planner.rows(insert.source, tables).await?;
    let (adds, count) = write(table, fitted(table, rows, listed, insert.by_name)?).await?;
    let removes = if overwrite { table.files().await? } else { Vec::new() };
    if adds.is_empty() && removes.is_empty() {
        return Ok((0, None));
    }
    let commit = Commit {
        operation: if overwrite { Operation::Overwrite } else { Operation::Write },
        reads: if overwrite { Reads::WholeTable } else { Reads::BlindAppend },
        adds,
        removes,
        metrics: BTreeMap::from([("numOutputRows".to_owned(), count.to_string())]),
        ..Commit::default()
    };
    Ok((count, Some(table.commit(commit).await?)))
}

/// Writes rows into files, in no commit yet; how many they are.
pub(super) async fn write(table: &Table, rows: DataFrame) -> Result<(Vec<NewFile>, u64), Error> {
    let mut rows = rows.execute_stream().await.map_err(Error::run)?;
    let mut writer = table.writer(WriterOptions::default())?;
    let mut count = 0;
    while let Some(batch) = rows.try_next().await.map_err(Error::run)? {
        count += batch.num_rows() as u64;
        writer.write(&batch).await?;
    }
    Ok((writer.finish().await?, count))
}

/// The columns that a list names.
fn named<'t>(table: &'t Table, names: &[Name]) -> Result<Vec<&'t Column>, Error> {
    let mut columns: Vec<&Column> = Vec::new();
    for name in names {
        let written = name.to_string();
        let column = column(table, &written).ok_or_else(|| Text::NoColumn {
            column: written.clone(),
            suggestion: nearest(&written, table.columns().iter().map(|column| column.name.as_str())).map(str::to_owned),
            span: name.span,
        })?;
        if columns.iter().any(|known| known.name == column.name) {
            return Err(misfit(table, format!("column `{}` is named twice", column.name)));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn column<'t>(table: &'t Table, name: &str) -> Option<&'t Column> {
    table.columns().iter().find(|column| column.name.eq_ignore_ascii_case(name))
}

fn misfit(table: &Table, reason: String) -> Error {
    Error::Columns { table: table.name().to_string(), reason }
}

/// The rows under the names and in the types of the table's columns.
fn fitted(table: &Table, frame: DataFrame, listed: Option<Vec<&Column>>, by_name: bool) -> Result<DataFrame, Error> {
    let brings: Vec<String> = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let targets: Vec<&Column> = match (listed, by_name) {
        (Some(listed), _) => listed,
        (None, true) => {
            let of = |name: &String| {
                column(table, name).ok_or_else(|| {
                    let near = nearest(name, table.columns().iter().map(|column| column.name.as_str()));
                    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                    misfit(table, format!("it has no column `{name}`{near}"))
                })
            };
            brings.iter().map(of).collect::<Result<_, _>>()?
        }
        (None, false) => {
            let all: Vec<&Column> = table.columns().iter().collect();
            let plain: Vec<&Column> = all.iter().copied().filter(|column| column.generated.is_none()).collect();
            if brings.len() == plain.len() { plain } else { all }
        }
    };
    if targets.len() != brings.len() {
        return Err(misfit(table, format!("{} columns are given for {}", brings.len(), targets.len())));
    }
    let columns: Vec<Expr> =
        frame.schema().columns().into_iter().enumerate().map(|(at, column)| Expr::Column(column).alias(given(at))).collect();
    let frame = frame.select(columns).map_err(Error::run)?;
    let state = frame.clone().into_parts().0;
    let mut fitted = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        let has = frame.schema().field(at).data_type();
        let value = match *has == target.data_type.to_arrow() {
            true => ident(given(at)),
            false => {
                let text = format!("CAST(`{}` AS {})", given(at), type_name(&target.data_type));
                expression(&state, &text, None, frame.schema(), &[])
                    .map_err(|error| misfit(table, format!("column `{}` cannot be made of what is given: {error}", target.name)))?
            }
        };
        fitted.push(value.alias(&target.name));
    }
    frame.select(fitted).map_err(Error::run)
}

/// A name for what is given at a place.
fn given(at: usize) -> String {
    format!("given {at}")
}
