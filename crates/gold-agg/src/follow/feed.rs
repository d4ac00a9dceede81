//! What changed in an input between two versions.

use std::collections::BTreeSet;
use std::sync::Arc;

use tributary_lake::Table;
use tributary_lake::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use tributary_lake::arrow::datatypes::{Field, FieldRef, Schema};
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_specs::{Column, SEQUENCE_UNIQUE};

use super::rows::{Changed, Gathered, count, gather, netted};
use super::shape::Reason;
use super::{Stop, too_much};
use crate::query::Input;

/// Changed rows of an input.
pub(crate) struct Feed {
    /// In the columns of the input; those that are not read are null.
    pub rows: Changed,
    /// Rows of the change feed that were read.
    pub read: u64,
    /// Why old rows in it may not be what they were: it repeated what its source says when some of it was written.
    pub repeats: Option<Reason>,
}

/// Why a feed is not taken for what old rows were, where the table repeats in it what its source says.
pub(crate) fn repeats(table: &Table) -> Option<Reason> {
    let repeats = table.properties().get(SEQUENCE_UNIQUE).is_some_and(|value| value == "true");
    repeats.then(|| format!("the change feed of `{}` repeats what its source says that rows were ({SEQUENCE_UNIQUE})", table.name()))
}

/// Reads the change feed of an input behind a version, of these columns of it or of all; rows that differ in others alone are none.
///
/// # Errors
/// [`Stop::Full`] when it does not tell all that changed, or more than `bytes_max`.
pub(crate) async fn read(input: &Input, behind: u64, columns: Option<&BTreeSet<String>>, bytes_max: usize) -> Result<Feed, Stop> {
    let table = &input.table;
    if !table.has_change_feed() {
        return Err(Stop::Full(format!("`{}` has no change feed", table.name())));
    }
    let then = table.at_version(behind).await?;
    if let Some(reason) = difference(&table.name().to_string(), then.columns(), table.columns()) {
        return Err(Stop::Full(reason));
    }
    let columns = read_columns(table, columns);
    let changes = table.changes_of(&columns, behind + 1, table.version()).await?;
    let Gathered::Rows(changes) = gather(changes, bytes_max).await? else {
        return Err(too_much());
    };
    let width = columns.len();
    let Changed { came, gone } = netted(&changes, width)?;
    let of_input = |rows: Vec<RecordBatch>| rows.iter().map(|batch| as_input(input, batch)).collect::<Result<Vec<_>, Stop>>();
    Ok(Feed { rows: Changed { came: of_input(came)?, gone: of_input(gone)? }, read: count(&changes) as u64, repeats: repeats(&then) })
}

/// The columns that are read, one at least: rows without any could not be told apart from none.
fn read_columns(table: &Table, columns: Option<&BTreeSet<String>>) -> BTreeSet<String> {
    let all = || table.columns().iter().map(|column| column.name.clone());
    let wanted: BTreeSet<String> = all().filter(|name| columns.is_none_or(|columns| columns.contains(name))).collect();
    if wanted.is_empty() { all().take(1).collect() } else { wanted }
}

/// A batch in the columns of the engine's table.
fn as_input(input: &Input, batch: &RecordBatch) -> Result<RecordBatch, Stop> {
    let wanted = TableProvider::schema(input.provider().as_ref());
    let column = |field: &FieldRef| match batch.column_by_name(field.name()) {
        Some(column) => (Field::new(field.name(), column.data_type().clone(), true), ArrayRef::clone(column)),
        None => (field.as_ref().clone().with_nullable(true), new_null_array(field.data_type(), batch.num_rows())),
    };
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = wanted.fields().iter().map(column).unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// How the columns of a table are other ones than they were.
fn difference(table: &str, earlier: &[Column], now: &[Column]) -> Option<String> {
    let of = |columns: &[Column], name: &str| columns.iter().find(|column| column.name == name).cloned();
    for column in earlier {
        match of(now, &column.name) {
            None => return Some(format!("column `{}` of `{table}` is gone", column.name)),
            Some(found) if found.data_type != column.data_type => {
                return Some(format!("column `{}` of `{table}` was {} and is {}", column.name, column.data_type, found.data_type));
            }
            Some(_) => {}
        }
    }
    now.iter().find(|column| of(earlier, &column.name).is_none()).map(|column| format!("column `{}` of `{table}` is new", column.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_gone_new_or_of_another_type_are_told() {
        let column = |name: &str, data_type: &str| Column::new(name, data_type.parse().unwrap());
        let (id, text) = (column("id", "long"), column("text", "string"));
        assert_eq!(difference("s.t", &[id.clone(), text.clone()], &[id.clone(), text.clone()]), None);
        let told = |now: &[Column]| difference("s.t", &[id.clone(), text.clone()], now).unwrap();
        assert_eq!(told(std::slice::from_ref(&id)), "column `text` of `s.t` is gone");
        assert_eq!(told(&[id.clone(), column("text", "long")]), "column `text` of `s.t` was string and is long");
        assert_eq!(told(&[id.clone(), text.clone(), column("n", "long")]), "column `n` of `s.t` is new");
    }
}
