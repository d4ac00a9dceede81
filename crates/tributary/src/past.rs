//! What past runs did, as `system.tributary.runs` keeps it.

use std::collections::BTreeMap;

use chrono::DateTime;
use futures::TryStreamExt;
use tributary_lake::ReadOptions;
use tributary_lake::arrow::array::{Array, AsArray, RecordBatch};
use tributary_lake::arrow::datatypes::{Int64Type, TimestampMicrosecondType};

use crate::{Error, Lake, NodeRun, runs, system};

/// The last run that said anything of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastRun {
    pub run: NodeRun,
    pub bytes_read: Option<u64>,
}

const COLUMNS: [&str; 10] =
    ["started_at", "run_id", "catalogue", "table", "status", "rows_in", "rows_out", "bytes_read", "version_to", "millis"];

/// Of each table of the lake's catalogue the last run, by `schema.table`; none where nothing was kept yet.
pub(crate) async fn last_runs(lake: &Lake) -> Result<BTreeMap<String, LastRun>, Error> {
    let system = system::catalogue(lake.inner())?;
    let mut last = BTreeMap::new();
    let Some(table) = system.table(&runs::TABLE.table_name()).await? else { return Ok(last) };
    let there = COLUMNS.iter().filter(|name| table.columns().iter().any(|column| column.name == **name));
    let columns = there.map(|name| (*name).to_owned()).collect();
    let mut rows = table.read(ReadOptions { columns: Some(columns), ..ReadOptions::default() }).await?;
    let read = |error| Error::Lake(tributary_lake::Error::from(error));
    while let Some(batch) = rows.try_next().await.map_err(read)? {
        take(&batch, &lake.inner().options().catalogue, &mut last);
    }
    Ok(last)
}

fn take(batch: &RecordBatch, catalogue: &str, last: &mut BTreeMap<String, LastRun>) {
    let text = |name: &str, row: usize| {
        let column = batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let number = |name: &str, row: usize| {
        let column = batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
        column.is_valid(row).then(|| u64::try_from(column.value(row)).ok())?
    };
    let instant = |row: usize| {
        let column = batch.column_by_name("started_at")?.as_primitive_opt::<TimestampMicrosecondType>()?;
        column.is_valid(row).then(|| DateTime::from_timestamp_micros(column.value(row)))?
    };
    for row in (0..batch.num_rows()).filter(|row| text("catalogue", *row).as_deref() == Some(catalogue)) {
        let (Some(table), started_at) = (text("table", row), instant(row).unwrap_or_default()) else { continue };
        if last.get(&table).is_some_and(|known| known.run.started_at > started_at) {
            continue;
        }
        let run = NodeRun {
            run_id: text("run_id", row).unwrap_or_default(),
            started_at,
            status: text("status", row).unwrap_or_default(),
            rows_in: number("rows_in", row),
            rows_out: number("rows_out", row),
            version: number("version_to", row),
            millis: number("millis", row),
        };
        last.insert(table, LastRun { run, bytes_read: number("bytes_read", row) });
    }
}
