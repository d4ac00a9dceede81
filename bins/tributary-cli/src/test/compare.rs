//! Rows that a table has beside those that are expected of it.
//!
//! A table is a bag of rows: order says nothing, twice is not once. Columns that no expected row names are not looked at. Floats are the
//! same when nine digits of them are.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use tributary::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use tributary::arrow::compute::cast;
use tributary::arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use tributary::{GivenRow, Lake, rows_as};

use crate::failure::{Error, Failure};
use crate::output;

/// What is otherwise than it was expected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    pub table: String,
    /// After which run, from 1.
    pub run: usize,
    /// What went wrong with the run itself; empty = nothing.
    pub what: String,
    /// Names of the columns looked at.
    pub columns: Vec<String>,
    pub missing: Vec<Cells>,
    pub unexpected: Vec<Cells>,
    pub changed: Vec<Changed>,
}

/// The values of a row as texts; none is null.
pub type Cells = Vec<Option<String>>;

/// A row that is there with other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Its key, by column.
    pub key: Vec<(String, Option<String>)>,
    /// Columns with what they hold and what was expected.
    pub cells: Vec<(String, Option<String>, Option<String>)>,
}

/// A row as it is shown and as it is compared.
#[derive(Debug, Clone)]
struct Row {
    shown: Cells,
    same: Cells,
}

/// The difference of a table from the rows expected of it; none where there is none.
pub async fn compare(lake: &Lake, table: &str, expected: &[GivenRow], keys: &[String]) -> Result<Option<Difference>, Failure> {
    let found = match lake.table(table).await {
        Ok(found) => found,
        Err(tributary::Error::NoTable { .. }) if expected.is_empty() => return Ok(None),
        Err(tributary::Error::NoTable { .. }) => {
            return Ok(Some(Difference { table: table.to_owned(), what: "the table was not made".to_owned(), ..Difference::default() }));
        }
        Err(error) => return Err(error.into()),
    };
    let schema = nullable(&found.schema());
    let wanted = rows_as(table, &schema, expected)?;
    let named = |field: &Field| expected.iter().any(|row| row.keys().any(|name| name.eq_ignore_ascii_case(field.name())));
    let at: Vec<usize> = (0..schema.fields().len()).filter(|at| expected.is_empty() || named(schema.field(*at))).collect();
    let columns: Vec<String> = at.iter().map(|at| schema.field(*at).name().clone()).collect();
    let batches: Vec<RecordBatch> =
        found.scan().await?.try_collect().await.map_err(tributary::arrow::error::ArrowError::from).map_err(Error::Rows)?;
    let mut actual = Vec::new();
    for batch in &batches {
        actual.extend(rows(batch, &at)?);
    }
    let difference = Difference { table: table.to_owned(), columns, ..Difference::default() };
    Ok(apart(difference, rows(&wanted, &at)?, actual, keys))
}

/// The same columns, each of which may be null: rows that are expected need not name all.
fn nullable(schema: &SchemaRef) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>()))
}

fn rows(batch: &RecordBatch, columns: &[usize]) -> Result<Vec<Row>, Failure> {
    let mut rows = vec![Row { shown: Vec::new(), same: Vec::new() }; batch.num_rows()];
    for column in columns.iter().map(|at| batch.column(*at)) {
        let shown = output::texts(column)?;
        let rounded = rounded(column)?;
        for (at, row) in rows.iter_mut().enumerate() {
            let text = shown.is_valid(at).then(|| shown.value(at).to_owned());
            row.same.push(rounded.as_ref().map_or(text.clone(), |rounded| rounded[at].clone()));
            row.shown.push(text);
        }
    }
    Ok(rows)
}

/// Nine digits of each float; none for a column of other values.
fn rounded(column: &ArrayRef) -> Result<Option<Vec<Option<String>>>, Failure> {
    if !matches!(column.data_type(), DataType::Float32 | DataType::Float64) {
        return Ok(None);
    }
    let floats = cast(column, &DataType::Float64).map_err(Error::Rows)?;
    // no zero is less than another
    Ok(Some(floats.as_primitive::<Float64Type>().iter().map(|value| value.map(|value| format!("{:.8e}", value + 0.0))).collect()))
}

/// What is left of both when equal rows are taken out, aligned by key where the key is looked at.
fn apart(mut difference: Difference, expected: Vec<Row>, actual: Vec<Row>, keys: &[String]) -> Option<Difference> {
    let mut left: BTreeMap<Cells, Vec<Row>> = BTreeMap::new();
    for row in actual {
        left.entry(row.same.clone()).or_default().push(row);
    }
    let missing: Vec<Row> = expected.into_iter().filter(|row| left.get_mut(&row.same).and_then(Vec::pop).is_none()).collect();
    let mut unexpected: Vec<Row> = left.into_values().flatten().collect();
    let place = |key: &String| difference.columns.iter().position(|column| column.eq_ignore_ascii_case(key));
    let places: Option<Vec<usize>> = keys.iter().map(place).collect();
    let places = places.filter(|places| !places.is_empty());
    for row in missing {
        let same_key = |other: &Row| places.as_ref().is_some_and(|places| places.iter().all(|at| other.same[*at] == row.same[*at]));
        match unexpected.iter().position(same_key) {
            Some(at) => {
                let found = unexpected.remove(at);
                let cells = (0..row.same.len()).filter(|at| row.same[*at] != found.same[*at]);
                let cells = cells.map(|at| (difference.columns[at].clone(), found.shown[at].clone(), row.shown[at].clone())).collect();
                let key = places.iter().flatten().map(|at| (difference.columns[*at].clone(), row.shown[*at].clone())).collect();
                difference.changed.push(Changed { key, cells });
            }
            None => difference.missing.push(row.shown),
        }
    }
    difference.unexpected = unexpected.into_iter().map(|row| row.shown).collect();
    let same = difference.missing.is_empty() && difference.unexpected.is_empty() && difference.changed.is_empty();
    (!same).then_some(difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        let cells: Cells = cells.iter().map(|cell| Some((*cell).to_owned())).collect();
        Row { shown: cells.clone(), same: cells }
    }

    fn difference(expected: &[&[&str]], actual: &[&[&str]], keys: &[&str]) -> Option<Difference> {
        let columns = vec!["id".to_owned(), "status".to_owned()];
        let all = |rows: &[&[&str]]| rows.iter().map(|cells| row(cells)).collect();
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        apart(Difference { columns, ..Difference::default() }, all(expected), all(actual), &keys)
    }

    #[test]
    fn a_bag_equals_itself_in_any_order_and_counts_duplicates() {
        let rows: &[&[&str]] = &[&["1", "new"], &["2", "paid"], &["1", "new"]];
        assert_eq!(difference(rows, &[rows[1], rows[0], rows[2]], &[]), None);
        assert_eq!(difference(rows, &rows[..2], &[]).unwrap().missing.len(), 1);
        assert_eq!(difference(&rows[..2], rows, &["id"]).unwrap().unexpected.len(), 1);
    }

    #[test]
    fn rows_of_one_key_are_told_as_one_that_changed() {
        let found = difference(&[&["1", "paid"], &["2", "new"]], &[&["1", "new"], &["3", "new"]], &["ID"]).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let changed = Changed { key: vec![("id".to_owned(), text("1"))], cells: vec![("status".to_owned(), text("new"), text("paid"))] };
        assert_eq!(found.changed, [changed]);
        assert_eq!((found.missing, found.unexpected), (vec![vec![text("2"), text("new")]], vec![vec![text("3"), text("new")]]));
        let without_key = difference(&[&["1", "paid"]], &[&["1", "new"]], &["other"]).unwrap();
        assert_eq!((without_key.missing.len(), without_key.unexpected.len(), without_key.changed.len()), (1, 1, 0));
    }
}
