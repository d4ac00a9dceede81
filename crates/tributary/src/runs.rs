//! `system.tributary.runs`: a row a dataset that committed, failed or was skipped.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, Operation, Reads, Table};
use tributary_specs::{Column, DataType, DatasetReport, Status, TableName, TableSpec};

use crate::{Error, RunReport, gaps};

/// Appends the report's rows, and those of the gaps it passed over. Called at the end of a run; what goes wrong here is a note, never the run's failure.
pub(crate) async fn record(lake: &Lake, report: &RunReport) -> Result<(), Error> {
    let rows: Vec<&DatasetReport> = report.datasets.iter().filter(|dataset| dataset.status != Status::NothingNew).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let system = Lake::open(lake.stores().clone(), LakeOptions { catalogue: "system".to_owned(), ..lake.options().clone() })?;
    let catalogue = &lake.options().catalogue;
    let table = system.create(&table_spec()).await?;
    append(&table, batch(report, &rows, catalogue, table.schema())?).await?;
    if rows.iter().any(|dataset| !dataset.gaps.is_empty()) {
        let table = system.create(&gaps::table_spec()).await?;
        append(&table, gaps::batch(report, &rows, catalogue, table.schema())?).await?;
    }
    Ok(())
}

async fn append(table: &Table, rows: RecordBatch) -> Result<(), Error> {
    let mut writer = table.writer(Default::default())?;
    writer.write(&rows).await?;
    let commit = Commit { operation: Operation::Write, adds: writer.finish().await?, reads: Reads::BlindAppend, ..Commit::default() };
    let _: CommitOutcome = table.commit(commit).await?;
    Ok(())
}

/// `tributary.runs` in the catalogue `system`.
fn table_spec() -> TableSpec {
    let text = |name: &str| Column::new(name, DataType::String);
    let long = |name: &str| Column::new(name, DataType::Long);
    let mut columns = vec![text("run_id"), text("pipeline"), Column::new("started_at", DataType::Timestamp)];
    columns.extend([text("catalogue"), text("table"), text("status"), text("mode"), text("reason")]);
    columns.extend(["rows_in", "rows_out", "rows_quarantined", "rows_ignored", "rows_inserted", "rows_updated", "rows_deleted"].map(long));
    columns.extend(["version_from", "version_to"].map(long));
    columns.push(text("positions"));
    columns.extend(["millis", "bytes_written", "peak_memory_bytes", "conflicts"].map(long));
    columns.extend([text("error_code"), text("error")]);
    let mut spec = TableSpec::new(TableName::new("tributary", "runs"), columns);
    spec.comment = Some("One row for each dataset that a run committed to, failed on or skipped".to_owned());
    spec
}

fn batch(
    report: &RunReport,
    rows: &[&DatasetReport],
    catalogue: &str,
    schema: tributary_lake::arrow::datatypes::SchemaRef,
) -> Result<RecordBatch, Error> {
    let text = |value: &dyn Fn(&DatasetReport) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| value(row)).collect::<StringArray>())
    };
    let long = |value: &dyn Fn(&DatasetReport) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| value(row).and_then(|number| i64::try_from(number).ok())).collect::<Int64Array>())
    };
    let started = TimestampMicrosecondArray::from(vec![report.started_at.timestamp_micros(); rows.len()]).with_timezone("UTC");
    let peak = crate::memory::peak_bytes();
    let columns: Vec<ArrayRef> = vec![
        text(&|_| Some(report.run_id.clone())),
        text(&|_| Some(report.pipeline.clone())),
        Arc::new(started),
        text(&|_| Some(catalogue.to_owned())),
        text(&|row| Some(row.table.clone())),
        text(&|row| Some(status(row.status).to_owned())),
        text(&|row| Some(row.mode.clone())),
        text(&|row| Some(row.reason.clone())),
        long(&|row| Some(row.rows_in)),
        long(&|row| Some(row.rows_out)),
        long(&|row| Some(row.rows_quarantined)),
        long(&|row| Some(row.rows_ignored.values().sum())),
        long(&|row| Some(row.rows_inserted)),
        long(&|row| Some(row.rows_updated)),
        long(&|row| Some(row.rows_deleted)),
        long(&|row| row.version_from),
        long(&|row| row.version_to),
        text(&|row| serde_json::to_string(&row.positions).ok()),
        long(&|row| Some(row.millis)),
        long(&|row| Some(row.bytes_written)),
        long(&|_| peak),
        long(&|row| Some(row.conflicts)),
        text(&|row| row.error.as_ref().map(|error| error.code.clone())),
        text(&|row| row.error.as_ref().map(|error| error.message.clone())),
    ];
    Ok(RecordBatch::try_new(schema, columns)
        .map_err(tributary_lake::datafusion::error::DataFusionError::from)
        .map_err(tributary_lake::Error::from)?)
}

const fn status(status: Status) -> &'static str {
    match status {
        Status::NothingNew => "nothing_new",
        Status::Committed => "committed",
        Status::Failed => "failed",
        Status::Skipped => "skipped",
    }
}
