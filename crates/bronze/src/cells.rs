//! One value of a column.

use tributary_lake::arrow::array::ArrayAccessor;

/// The value of a row; none where it is null.
pub(crate) fn cell<A: ArrayAccessor>(array: A, row: usize) -> Option<A::Item> {
    array.is_valid(row).then(|| array.value(row))
}
