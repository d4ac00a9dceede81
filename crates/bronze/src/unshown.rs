//! New columns of a decoded batch of which no row has a value. Pure.

use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use tributary_lake::arrow::datatypes::{Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_specs::Column;

/// The images before changes, a field a business column.
const BEFORE: &str = "_before";

/// The names of those of `added` that no row shows, neither after a change nor before one.
pub(crate) fn columns(batch: &RecordBatch, added: &[Column]) -> Vec<String> {
    let before = batch.column_by_name(BEFORE).and_then(|before| before.as_struct_opt());
    let has_values = |values: &ArrayRef| values.null_count() < values.len();
    let is_shown = |name: &str| {
        // a column that is no column of the batch is a field of one
        batch.column_by_name(name).is_none_or(has_values) || before.and_then(|before| before.column_by_name(name)).is_some_and(has_values)
    };
    added.iter().map(|new| new.name.clone()).filter(|name| !is_shown(name)).collect()
}

/// The batch without these columns.
pub(crate) fn without(batch: &RecordBatch, names: &[&str]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let (mut fields, mut columns): (Vec<Arc<Field>>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if names.contains(&field.name().as_str()) {
            continue;
        }
        match column.as_struct_opt().filter(|_| field.name() == BEFORE) {
            Some(before) => {
                let kept = before.fields().iter().zip(before.columns()).filter(|(field, _)| !names.contains(&field.name().as_str()));
                let (inner, arrays): (Vec<Arc<Field>>, Vec<ArrayRef>) =
                    kept.map(|(field, array)| (Arc::clone(field), Arc::clone(array))).unzip();
                let kept = StructArray::try_new_with_length(inner.into(), arrays, before.nulls().cloned(), before.len())?;
                fields.push(Arc::new(field.as_ref().clone().with_data_type(kept.data_type().clone())));
                columns.push(Arc::new(kept));
            }
            None => {
                fields.push(Arc::clone(field));
                columns.push(Arc::clone(column));
            }
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
