//! Rows whose records became rows of the table after all: they are marked and stay.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use futures::TryStreamExt;
use tributary_lake::arrow::array::{BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_lake::arrow::compute::{filter_record_batch, kernels::zip::zip};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{Commit, CommitOutcome, DataFile, Operation, Reads, Table, WriterOptions};

use super::places::{PLACE_COLUMNS, Place, Places};
use super::{Mark, Spot};
use crate::{Error, Result};

const CHANGE_TYPE: &str = "_change_type";

/// Marks the open rows of these places as superseded, in one commit that rewrites the files that hold them; none when no file does.
pub(crate) async fn supersede(table: &Table, spots: &BTreeSet<Spot>, now_us: i64) -> Result<Option<CommitOutcome>> {
    supersede_where(table, &|place| place.spots().any(|spot| spots.contains(&spot)), now_us).await
}

/// The same of these very records.
pub(crate) async fn supersede_records(table: &Table, records: &HashSet<Mark>, now_us: i64) -> Result<Option<CommitOutcome>> {
    supersede_where(table, &|place| place.mark().is_some_and(|mark| records.contains(&mark)), now_us).await
}

/// Whether a place is one of those that are meant.
type Named<'n> = &'n (dyn Fn(Place<'_>) -> bool + Sync);

async fn supersede_where(table: &Table, named: Named<'_>, now_us: i64) -> Result<Option<CommitOutcome>> {
    let failed = |source| Error::lake(table.name(), "marking superseded quarantine rows", source);
    let mut writer = table.writer(WriterOptions::default()).map_err(failed)?;
    let mut changes = table.change_writer();
    let mut removes = Vec::new();
    for file in table.files().await.map_err(failed)? {
        if !concerned(table, &file, named).await? {
            continue;
        }
        let mut stream = table.read_file(&file, None).await.map_err(failed)?;
        while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
            let meant = meant(table, &batch, named)?;
            let after = superseded(&batch, &meant, now_us).map_err(|source| failed(source.into()))?;
            writer.write(&after).await.map_err(failed)?;
            for (rows, change) in [(&batch, "update_preimage"), (&after, "update_postimage")] {
                let rows = filter_record_batch(rows, &meant)
                    .and_then(|rows| with_change(&rows, change))
                    .map_err(|source| failed(source.into()))?;
                if rows.num_rows() > 0 {
                    changes.write(&rows).await.map_err(failed)?;
                }
            }
        }
        removes.push(file);
    }
    if removes.is_empty() {
        return Ok(None);
    }
    let adds = writer.finish().await.map_err(failed)?;
    let changes = changes.finish().await.map_err(failed)?;
    let commit = Commit { operation: Operation::Merge, adds, removes, changes, reads: Reads::Files, ..Commit::default() };
    table.commit(commit).await.map(Some).map_err(failed)
}

/// Whether a file holds an open row of one of the places.
async fn concerned(table: &Table, file: &DataFile, named: Named<'_>) -> Result<bool> {
    let failed = |source| Error::lake(table.name(), "reading the quarantine", source);
    let columns = PLACE_COLUMNS.map(str::to_owned);
    let mut stream = table.read_file(file, Some(&columns)).await.map_err(failed)?;
    while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
        if meant(table, &batch, named)?.true_count() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which rows of a batch are open and meant.
fn meant(table: &Table, batch: &RecordBatch, named: Named<'_>) -> Result<BooleanArray> {
    let places = Places::of(batch).ok_or_else(|| super::not_ours(table))?;
    Ok((0..batch.num_rows()).map(|row| Some(places.at(row).is_some_and(named))).collect())
}

fn superseded(batch: &RecordBatch, meant: &BooleanArray, now_us: i64) -> Result<RecordBatch, ArrowError> {
    let index = batch.schema().index_of("superseded_at")?;
    let now = TimestampMicrosecondArray::from_value(now_us, batch.num_rows()).with_timezone("UTC");
    let mut columns = batch.columns().to_vec();
    columns[index] = zip(meant, &now, batch.column(index))?;
    RecordBatch::try_new(batch.schema(), columns)
}

fn with_change(batch: &RecordBatch, change: &str) -> Result<RecordBatch, ArrowError> {
    let mut fields = batch.schema().fields().to_vec();
    fields.push(Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, false)));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![change; batch.num_rows()])));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
