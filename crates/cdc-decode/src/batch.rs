//! The batch under construction: business columns and ours, row by row.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema};
use tributary_specs::{Column as Spec, DataType};

use crate::column::Column;
use crate::system::{self, Change, Provenance};
use crate::table::Table;
use crate::zeros::Zeros;

/// The columns besides the business columns.
#[derive(Debug)]
pub(crate) struct Ours {
    /// `None` for feeds of plain rows.
    pub change: Option<Change>,
    pub provenance: Provenance,
    pub zeros: Zeros,
}

impl Ours {
    pub(crate) fn new(is_change_feed: bool) -> Self {
        Self { change: is_change_feed.then(Change::new), provenance: Provenance::new(), zeros: Zeros::default() }
    }

    /// Makes room for so many rows like those of the last batch.
    pub(crate) fn prepare(&mut self, rows: usize) {
        if let Some(change) = &mut self.change {
            change.prepare(rows);
        }
        self.provenance.prepare(rows);
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        if let Some(change) = &mut self.change {
            change.truncate(rows);
        }
        self.provenance.truncate(rows);
    }
}

/// Every column of the bronze table, in order.
pub(crate) fn columns(table: &Table, is_change_feed: bool) -> Vec<Spec> {
    let mut columns = table.specs.clone();
    if is_change_feed {
        columns.extend(system::change_head());
        if !table.specs.is_empty() {
            columns.push(Spec::new("_before", table.before.data_type().clone()));
        }
        columns.push(system::unavailable_column());
        if let Some(data_type) = key_change_type(table) {
            columns.push(Spec::new("_key_changed_from", data_type.clone()));
            columns.push(Spec::new("_key_changed_to", data_type));
        }
        columns.push(system::source_column());
    } else {
        columns.push(system::position_column());
    }
    columns.extend(system::provenance_columns());
    columns
}

/// The type of a key change; none where no key is known.
fn key_change_type(table: &Table) -> Option<DataType> {
    if let Some((from, _)) = &table.key_changes {
        return Some(from.data_type().clone());
    }
    let fields = table.key_fields();
    (!fields.is_empty()).then_some(DataType::Struct(fields))
}

/// The batch of the rows so far; every column is empty afterwards.
///
/// # Errors
/// What Arrow says when the columns do not fit together, which would be a bug of this crate.
pub(crate) fn finish(table: &mut Table, ours: &mut Ours, rows: usize, ingested_at_us: i64) -> Result<RecordBatch, ArrowError> {
    if rows > 0 {
        table.settle_keys(rows);
    }
    let fields: Vec<Field> = columns(table, ours.change.is_some()).iter().map(Spec::to_arrow).collect();
    let Ours { change, provenance, zeros } = ours;
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    for (_, column) in &mut table.rows {
        arrays.push(column.finish_at(rows, zeros)?);
    }
    match change {
        Some(change) => {
            arrays.push(change.finish_op(zeros)?);
            arrays.push(provenance.finish_position(rows, zeros)?);
            if !table.specs.is_empty() {
                arrays.push(table.before.finish_at(rows, zeros)?);
            } else {
                table.before.truncate(0);
            }
            arrays.push(change.finish_unavailable(rows, zeros)?);
            if let Some((from, to)) = &mut table.key_changes {
                arrays.push(from.finish_at(rows, zeros)?);
                arrays.push(to.finish_at(rows, zeros)?);
            } else if let Some(data_type) = key_change_type(table) {
                // No row has come yet that would tell the keys.
                arrays.push(Column::new(&data_type).finish_at(rows, zeros)?);
                arrays.push(Column::new(&data_type).finish_at(rows, zeros)?);
            }
            arrays.push(change.finish_source(rows, zeros)?);
        }
        None => {
            table.before.truncate(0);
            arrays.push(provenance.finish_position(rows, zeros)?);
        }
    }
    arrays.extend(provenance.finish(rows, ingested_at_us, zeros)?);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}
