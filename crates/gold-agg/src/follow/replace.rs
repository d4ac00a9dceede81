//! Old rows of a view and new ones: what differs. Pure.
//!
//! A view is a bag: equal rows are told apart by nothing, and each counts. A new row that is equal to an old one leaves it where it
//! is; of those left over, an old and a new one that agree in the naming columns are an update.

use std::collections::{HashMap, HashSet};

use tributary_lake::arrow::array::{ArrayRef, RecordBatch};
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::arrow::error::ArrowError;

use super::rows::converter;

/// Rows that differ, by number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// An old row, and the new one in its place.
    pub updated: Vec<(u32, u32)>,
    pub inserted: Vec<u32>,
    pub deleted: Vec<u32>,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        self.updated.is_empty() && self.inserted.is_empty() && self.deleted.is_empty()
    }

    /// Old rows that go.
    pub fn gone(&self) -> impl Iterator<Item = u32> {
        self.updated.iter().map(|(old, _)| *old).chain(self.deleted.iter().copied())
    }

    /// New rows that come.
    pub fn come(&self) -> impl Iterator<Item = u32> {
        self.updated.iter().map(|(_, new)| *new).chain(self.inserted.iter().copied())
    }
}

/// Columns of a batch by name, in the order of the names.
///
/// # Errors
/// When one is not there.
pub(crate) fn columns_by_name(batch: &RecordBatch, names: &[String]) -> Result<Vec<ArrayRef>, ArrowError> {
    let schema: SchemaRef = batch.schema();
    names.iter().map(|name| Ok(ArrayRef::clone(batch.column(schema.index_of(name)?)))).collect()
}

/// What differs between rows in these columns; `naming` are some of them, and where there are none, all rows have one name.
pub(crate) fn difference(old: &RecordBatch, new: &RecordBatch, columns: &[String], naming: &[String]) -> Result<Difference, ArrowError> {
    let (mut gone, mut come) = left_over(&columns_by_name(old, columns)?, &columns_by_name(new, columns)?)?;
    if naming.is_empty() {
        let updated: Vec<(u32, u32)> = gone.iter().copied().zip(come.iter().copied()).collect();
        let (gone, come) = (gone.split_off(updated.len()), come.split_off(updated.len()));
        return Ok(Difference { updated, inserted: come, deleted: gone });
    }
    let (old_names, new_names) = (columns_by_name(old, naming)?, columns_by_name(new, naming)?);
    let Some(converter) = converter(&old_names) else {
        return Ok(Difference { updated: Vec::new(), inserted: come, deleted: gone });
    };
    let (old_names, new_names) = (converter.convert_columns(&old_names)?, converter.convert_columns(&new_names)?);
    let mut by_name: HashMap<&[u8], Vec<u32>> = HashMap::new();
    gone.iter().rev().for_each(|row| by_name.entry(old_names.row(*row as usize).data()).or_default().push(*row));
    let mut updated = Vec::new();
    come.retain(|row| match by_name.get_mut(new_names.row(*row as usize).data()).and_then(Vec::pop) {
        Some(old) => {
            updated.push((old, *row));
            false
        }
        None => true,
    });
    let replaced: HashSet<u32> = updated.iter().map(|(old, _)| *old).collect();
    gone.retain(|row| !replaced.contains(row));
    Ok(Difference { updated, inserted: come, deleted: gone })
}

/// Rows of each side that have no equal one on the other.
fn left_over(old: &[ArrayRef], new: &[ArrayRef]) -> Result<(Vec<u32>, Vec<u32>), ArrowError> {
    let rows = |columns: &[ArrayRef]| 0..columns.first().map_or(0, |column| column.len()) as u32;
    let Some(converter) = converter(old) else { return Ok((rows(old).collect(), rows(new).collect())) };
    let (old_rows, new_rows) = (converter.convert_columns(old)?, converter.convert_columns(new)?);
    let mut equal: HashMap<&[u8], Vec<u32>> = HashMap::new();
    rows(old).for_each(|row| equal.entry(old_rows.row(row as usize).data()).or_default().push(row));
    let come: Vec<u32> = rows(new).filter(|row| equal.get_mut(new_rows.row(*row as usize).data()).and_then(Vec::pop).is_none()).collect();
    let mut gone: Vec<u32> = equal.into_values().flatten().collect();
    gone.sort_unstable();
    Ok((gone, come))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_lake::arrow::array::Int64Array;

    use super::*;

    fn rows(rows: &[(i64, i64)]) -> RecordBatch {
        let column = |of: fn(&(i64, i64)) -> i64| Arc::new(rows.iter().map(of).collect::<Int64Array>()) as ArrayRef;
        RecordBatch::try_from_iter([("key", column(|row| row.0)), ("n", column(|row| row.1))]).unwrap()
    }

    fn between(old: &[(i64, i64)], new: &[(i64, i64)]) -> Difference {
        difference(&rows(old), &rows(new), &["key".to_owned(), "n".to_owned()], &["key".to_owned()]).unwrap()
    }

    #[test]
    fn equal_rows_stay_as_often_as_they_are_there() {
        assert!(between(&[(1, 1), (1, 1), (2, 2)], &[(2, 2), (1, 1), (1, 1)]).is_empty());
        assert_eq!(between(&[(1, 1), (1, 1)], &[(1, 1)]).deleted.len(), 1);
        assert_eq!(between(&[(1, 1)], &[(1, 1), (1, 1), (1, 1)]).inserted.len(), 2);
        assert!(between(&[], &[]).is_empty());
    }

    #[test]
    fn rows_of_one_name_are_updates_and_what_is_left_comes_or_goes() {
        assert_eq!(
            between(&[(1, 1), (2, 2)], &[(1, 5), (3, 3)]),
            Difference { updated: vec![(0, 0)], inserted: vec![1], deleted: vec![1] }
        );
        assert_eq!(between(&[(1, 1), (1, 2), (1, 3)], &[(1, 2), (1, 4)]).updated.len(), 1);
        let nameless = difference(&rows(&[(1, 1)]), &rows(&[(2, 5)]), &["key".to_owned(), "n".to_owned()], &[]).unwrap();
        assert_eq!(nameless, Difference { updated: vec![(0, 0)], ..Difference::default() });
    }
}
