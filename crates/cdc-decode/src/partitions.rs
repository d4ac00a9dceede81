//! Rows that no partition of a Delta table can hold, for its values are texts in the log: an empty one, which readers take for null,
//! bytes that are no text, and times of more or fewer digits than years from 1 to 9999 have.

use std::ops::RangeInclusive;

use crate::column::Column;
use crate::decoder::Decoder;
use crate::scalar::Scalar;
use crate::time::{DAY, days};
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
            let Some(refusal) = refusal(column, row) else { continue };
            let is_key = self.table.keys.iter().flatten().any(|key| same(key.as_bytes(), name.as_bytes()));
            let is_delete = self.ours.change.as_ref().is_some_and(|change| change.is_delete(row));
            if is_key || !is_delete {
                return Some(format!("column {name}: {refusal}"));
            }
            forget(column, row);
        }
        None
    }
}

/// Why the value of a row cannot be a partition's.
fn refusal(column: &Column, row: usize) -> Option<&'static str> {
    let is_near = |day: i64| YEARS_1_TO_9999.contains(&day);
    let is_kept = match (row < column.len()).then(|| column.get(row))?? {
        Scalar::Text([]) | Scalar::Bytes([]) => return Some("an empty text, which Delta cannot tell from null in a partition column"),
        Scalar::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => {
            return Some("bytes that are not UTF-8, which no partition can have");
        }
        Scalar::Date(day) => is_near(i64::from(day)),
        Scalar::Instant(micros) | Scalar::WallClock(micros) => is_near(micros.div_euclid(DAY)),
        _ => true,
    };
    (!is_kept).then_some("a time outside the years 1 to 9999, which no partition can have")
}

/// In days since 1970-01-01.
const YEARS_1_TO_9999: RangeInclusive<i64> = days(1, 1, 1)..=days(9999, 12, 31);

fn forget(column: &mut Column, row: usize) {
    column.truncate(row);
    column.push_null();
}
