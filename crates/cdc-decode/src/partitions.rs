//! Rows that no partition of a Delta table can hold: an empty text in a partition column, which readers take for null.

use crate::column::Column;
use crate::decoder::Decoder;
use crate::words::same;

/// The table's partition columns, and where they stand as far as they have been met.
#[derive(Debug, Default)]
pub(crate) struct Partitions(Vec<(String, Option<usize>)>);

impl Partitions {
    pub(crate) fn new(columns: &[String]) -> Self {
        Self(columns.iter().map(|name| (name.clone(), None)).collect())
    }
}

impl Decoder {
    /// Why the row just read cannot be one of the table's. A delete loses such a value unless it is of the key: it finds its row without.
    pub(crate) fn without_partition(&mut self, row: usize) -> Option<String> {
        for (name, place) in &mut self.partitions.0 {
            *place = place.or_else(|| self.table.find(name));
            let Some((_, column)) = place.and_then(|place| self.table.rows.get_mut(place)) else { continue };
            if !column.is_empty_text(row) {
                continue;
            }
            let is_key = self.table.keys.iter().flatten().any(|key| same(key.as_bytes(), name.as_bytes()));
            let is_delete = self.ours.change.as_ref().is_some_and(|change| change.is_delete(row));
            if is_key || !is_delete {
                return Some(format!("column {name}: an empty text, which Delta cannot tell from null in a partition column"));
            }
            forget(column, row);
        }
        None
    }
}

fn forget(column: &mut Column, row: usize) {
    column.truncate(row);
    column.push_null();
}
