//! Which columns name the rows of a view that may differ. Pure.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::logical_expr::LogicalPlan;

use super::rows::distinct;
use super::shape::{Moved, Reason, shape_of};

/// Columns that name rows, at most.
pub(super) const NAMING_MAX: usize = 3;

/// Whether values of a type are equal exactly where their bytes are, so that they can name rows.
pub(crate) fn can_name_rows(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Decimal128(..)
            | DataType::Utf8
            | DataType::Binary
    )
}

/// The columns of a view that can say which of its rows a change concerns.
///
/// # Errors
/// Why there are none.
pub(crate) fn naming_columns(plan: &LogicalPlan, moved: &Moved<'_>) -> Result<Vec<usize>, Reason> {
    let shape = shape_of(plan, moved)?;
    let sure = |place: &usize| !shape.unsure.contains_key(place) && can_name_rows(plan.schema().field(*place).data_type());
    let told: Vec<usize> = shape.told.iter().copied().filter(sure).collect();
    if told.is_empty() {
        return Err("no column of its result says of which groups or rows a row is made".to_owned());
    }
    let inside = |place: &usize| shape.fence.as_ref().is_none_or(|fence| fence.contains(place));
    let named: Vec<usize> = told.into_iter().filter(inside).collect();
    match named.is_empty() {
        true => Err("which rows it has rests on values that may come out otherwise when they are computed again".to_owned()),
        false => Ok(named),
    }
}

/// Which of these columns to name rows by: those with most different values first, as many as tell the most rows apart.
pub(super) fn most_telling(columns: &[ArrayRef]) -> Result<Vec<usize>, ArrowError> {
    let fields: Vec<Field> =
        columns.iter().enumerate().map(|(at, column)| Field::new(at.to_string(), column.data_type().clone(), true)).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.to_vec())?;
    let rows = std::slice::from_ref(&rows);
    let mut by_values = Vec::new();
    for at in 0..columns.len() {
        by_values.push((distinct(rows, &[at])?, at));
    }
    by_values.sort_by_key(|(values, at)| (std::cmp::Reverse(*values), *at));
    let mut chosen: Vec<usize> = Vec::new();
    let mut told_apart = 0;
    for (_, at) in by_values.into_iter().take(NAMING_MAX) {
        let more = [chosen.clone(), vec![at]].concat();
        let values = distinct(rows, &more)?;
        if values > told_apart {
            (chosen, told_apart) = (more, values);
        }
    }
    Ok(chosen)
}
