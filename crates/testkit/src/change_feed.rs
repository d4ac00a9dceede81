//! What a change feed comes to.

use std::collections::{BTreeMap, BTreeSet};

use crate::frame::Frame;
use crate::oracle::Row;
use crate::value::Value;

/// The rows that changes come to, sorted, version by version: rows that go must be there, rows that come are added. `changes` has
/// `width` columns of the table, then `_change_type` and `_commit_version`.
///
/// # Errors
/// When a row that goes is not there, or a change changes nothing.
pub fn replay(changes: &Frame, width: usize) -> Result<Vec<Row>, String> {
    let mut versions: BTreeMap<Value, Vec<(String, Row)>> = BTreeMap::new();
    for mut row in changes.rows() {
        let (Value::Text(change), version) = (row[width].clone(), row[width + 1].clone()) else {
            return Err("a change without its type".to_owned());
        };
        row.truncate(width);
        versions.entry(version).or_default().push((change, row));
    }
    let mut rows: BTreeMap<Row, usize> = BTreeMap::new();
    for (version, changes) in versions {
        let of = |wanted: &'static [&'static str]| {
            changes.iter().filter(move |(change, _)| wanted.contains(&change.as_str())).map(|(_, row)| row)
        };
        for row in of(&["delete", "update_preimage"]) {
            let count = rows.get_mut(row).ok_or_else(|| format!("version {version:?} takes away a row that is not there: {row:?}"))?;
            *count -= 1;
            if *count == 0 {
                rows.remove(row);
            }
        }
        let before: BTreeSet<&Row> = of(&["update_preimage"]).collect();
        for row in of(&["update_postimage"]) {
            if before.contains(&row) {
                return Err(format!("version {version:?} changes a row into itself: {row:?}"));
            }
        }
        of(&["insert", "update_postimage"]).for_each(|row| *rows.entry(row.clone()).or_default() += 1);
    }
    Ok(rows.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, count)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;

    #[test]
    fn changes_come_to_rows_and_a_row_that_goes_must_be_there() {
        let good = frame!(
            r#"
            id: long | name: string | _change_type: string | _commit_version: long
            1        | a            | insert               | 0
            2        | b            | insert               | 0
            1        | c            | update_postimage     | 1
            1        | a            | update_preimage      | 1
            2        | b            | delete               | 2
        "#
        );
        assert_eq!(replay(&good, 2), Ok(vec![vec![1.into(), Value::text("c")]]));
        let lost = frame!(
            r#"
            id: long | _change_type: string | _commit_version: long
            1        | delete               | 0
            1        | insert               | 0
        "#
        );
        assert!(replay(&lost, 1).unwrap_err().contains("not there"));
    }
}
