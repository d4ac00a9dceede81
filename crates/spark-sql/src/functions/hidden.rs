//! Functions that only rewritten texts call: of one evaluation of a value, and of counts.

use tributary_lake::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array};
use tributary_lake::arrow::compute::and_kleene;
use tributary_lake::arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::Result;

use super::own::Kind::{Any, Long};
use super::own::{Gives, Own, column, longs};
use super::{Entry, hidden};
use crate::{convert, meaning, pivot};

/// Of no name.
pub(super) const FUNCTIONS: &[Entry] = &[
    hidden(Own::new(meaning::BETWEEN, &[Any, Any, Any], Gives::Boolean, between)),
    hidden(Own::new(pivot::COUNT, &[Long, Long], Gives::Long, count_of_pivot).and_more(Any)),
];

/// `value BETWEEN low AND high`, where the value is told once a row. All three are of one type that has an order.
fn between(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    column::<BooleanArray>(and_kleene(&gt_eq(&arguments[0], &arguments[1])?, &lt_eq(&arguments[0], &arguments[2])?)?)
}

/// A count of the rows of a value, how many rows there are, and the other aggregates beside it: where these are all of a fixed width,
/// the dialect's pivot tells null where there is no row, else the count.
fn count_of_pivot(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let is_fixed = |other: &ArrayRef| other.data_type().is_numeric() || *other.data_type() == DataType::Boolean;
    if !arguments[2..].iter().all(is_fixed) {
        return convert::cast(&arguments[0], &DataType::Int64, false);
    }
    let (counts, seen) = (longs(&arguments[0]), longs(&arguments[1]));
    let told = (0..counts.len()).map(|row| (seen.is_valid(row) && seen.value(row) > 0).then(|| counts.value(row)));
    column(told.collect::<Int64Array>())
}
