//! What changed in an input between two versions.

use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_specs::Column;

use super::rows::{Changed, Gathered, count, gather, netted};
use super::{Stop, too_much};
use crate::query::Input;

/// Changed rows of an input.
pub(crate) struct Feed {
    /// In the columns of the input.
    pub rows: Changed,
    /// Rows of the change feed that were read.
    pub read: u64,
}

/// Reads the change feed of an input behind a version.
///
/// # Errors
/// [`Stop::Full`] when it does not tell all that changed, or more than `bytes_max`.
pub(crate) async fn read(input: &Input, behind: u64, bytes_max: usize) -> Result<Feed, Stop> {
    let table = &input.table;
    if !table.has_change_feed() {
        return Err(Stop::Full(format!("`{}` has no change feed", table.name())));
    }
    let then = table.at_version(behind).await?;
    if let Some(reason) = difference(&table.name().to_string(), then.columns(), table.columns()) {
        return Err(Stop::Full(reason));
    }
    let Gathered::Rows(changes) = gather(table.changes(behind + 1, table.version()).await?, bytes_max).await? else {
        return Err(too_much());
    };
    let width = table.schema().fields().len();
    let Changed { came, gone } = netted(&changes, width)?;
    let of_input = |rows: Vec<RecordBatch>| rows.iter().map(|batch| as_input(input, batch)).collect::<Result<Vec<_>, Stop>>();
    Ok(Feed { rows: Changed { came: of_input(came)?, gone: of_input(gone)? }, read: count(&changes) as u64 })
}

/// The columns of a batch in the order of the engine's table.
fn as_input(input: &Input, batch: &RecordBatch) -> Result<RecordBatch, Stop> {
    let wanted = TableProvider::schema(input.provider().as_ref());
    let schema = batch.schema();
    let places = wanted.fields().iter().map(|field| schema.index_of(field.name())).collect::<Result<Vec<_>, _>>()?;
    Ok(batch.project(&places)?)
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
