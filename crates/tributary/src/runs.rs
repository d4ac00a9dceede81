//! `system.tributary.runs`: a row a dataset that committed, failed or was skipped.

use std::sync::Arc;

use futures::FutureExt;
use tributary_lake::Lake;
use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_specs::{Column, DataType, DatasetReport, Status, TableName, TableSpec};

use crate::{Error, RunReport, expectations, gaps, system};

/// Appends the report's rows, and those of the gaps it passed over. What goes wrong here is logged, never the run's failure.
pub(crate) async fn record(lake: &Lake, report: &RunReport) {
    if let Err(error) = try_record(lake, report).boxed().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "system.tributary.runs was not written");
    }
}

async fn try_record(lake: &Lake, report: &RunReport) -> Result<(), Error> {
    let rows: Vec<&DatasetReport> = report.datasets.iter().filter(|dataset| dataset.status != Status::NothingNew).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let system = system::catalogue(lake)?;
    let catalogue = &lake.options().catalogue;
    system::append(&system, &table_spec(), batch(report, &rows, catalogue)?).await?;
    if rows.iter().any(|dataset| !dataset.gaps.is_empty()) {
        system::append(&system, &gaps::table_spec(), gaps::batch(report, &rows, catalogue)?).await?;
    }
    if rows.iter().any(|dataset| !dataset.rules.is_empty()) {
        system::append(&system, &expectations::table_spec(), expectations::batch(report, &rows, catalogue)?).await?;
    }
    Ok(())
}

/// `tributary.runs` in the catalogue `system`.
pub(crate) fn table_spec() -> TableSpec {
    let text = |name: &str| Column::new(name, DataType::String);
    let long = |name: &str| Column::new(name, DataType::Long);
    let mut columns = vec![text("run_id"), text("pipeline"), Column::new("started_at", DataType::Timestamp)];
    columns.extend([text("catalogue"), text("table"), text("status"), text("mode"), text("reason")]);
    columns.extend(["rows_in", "rows_out", "rows_quarantined", "rows_ignored", "rows_inserted", "rows_updated", "rows_deleted"].map(long));
    columns.extend(["version_from", "version_to"].map(long));
    columns.push(text("positions"));
    columns.extend(["millis", "bytes_written", "peak_memory_bytes", "conflicts"].map(long));
    columns.extend([text("error_code"), text("error")]);
    columns.extend(["commits", "bytes_read", "lag_records", "lag_seconds"].map(long));
    columns.push(Column::new("source_time", DataType::Timestamp));
    columns.extend(["ignored", "quarantined", "expectations", "notes"].map(text));
    let mut spec = TableSpec::new(TableName::new("tributary", "runs"), columns);
    spec.comment = Some("One row for each dataset that a run committed to, failed on or skipped".to_owned());
    spec
}

fn batch(report: &RunReport, rows: &[&DatasetReport], catalogue: &str) -> Result<RecordBatch, Error> {
    let text = |value: &dyn Fn(&DatasetReport) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| value(row)).collect::<StringArray>())
    };
    let long = |value: &dyn Fn(&DatasetReport) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| value(row).and_then(|number| i64::try_from(number).ok())).collect::<Int64Array>())
    };
    let started = TimestampMicrosecondArray::from(vec![report.started_at.timestamp_micros(); rows.len()]).with_timezone("UTC");
    let peak = crate::memory::peak_bytes();
    let json = |value: &dyn Fn(&DatasetReport) -> serde_json::Value| {
        text(&|row| Some(value(row).to_string()).filter(|text| text != "{}" && text != "[]"))
    };
    let source_times = rows.iter().map(|row| row.source_time_ms.and_then(|millis| millis.checked_mul(1000)));
    let source_times = source_times.collect::<TimestampMicrosecondArray>().with_timezone("UTC");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("run_id", text(&|_| Some(report.run_id.clone()))),
        ("pipeline", text(&|_| Some(report.pipeline.clone()))),
        ("started_at", Arc::new(started)),
        ("catalogue", text(&|_| Some(catalogue.to_owned()))),
        ("table", text(&|row| Some(row.table.clone()))),
        ("status", text(&|row| Some(row.status.to_string()))),
        ("mode", text(&|row| Some(row.mode.clone()))),
        ("reason", text(&|row| Some(row.reason.clone()))),
        ("rows_in", long(&|row| Some(row.rows_in))),
        ("rows_out", long(&|row| Some(row.rows_out))),
        ("rows_quarantined", long(&|row| Some(row.rows_quarantined))),
        ("rows_ignored", long(&|row| Some(row.rows_ignored.values().sum()))),
        ("rows_inserted", long(&|row| Some(row.rows_inserted))),
        ("rows_updated", long(&|row| Some(row.rows_updated))),
        ("rows_deleted", long(&|row| Some(row.rows_deleted))),
        ("version_from", long(&|row| row.version_from)),
        ("version_to", long(&|row| row.version_to)),
        ("positions", text(&|row| serde_json::to_string(&row.positions).ok())),
        ("millis", long(&|row| Some(row.millis))),
        ("bytes_written", long(&|row| Some(row.bytes_written))),
        ("peak_memory_bytes", long(&|_| peak)),
        ("conflicts", long(&|row| Some(row.conflicts))),
        ("error_code", text(&|row| row.error.as_ref().map(|error| error.code.clone()))),
        ("error", text(&|row| row.error.as_ref().map(|error| error.message.clone()))),
        ("commits", long(&|row| Some(row.commits))),
        ("bytes_read", long(&|row| Some(row.bytes_read))),
        ("lag_records", long(&|row| row.lag_records)),
        ("lag_seconds", long(&|row| row.lag_seconds)),
        ("source_time", Arc::new(source_times)),
        ("ignored", json(&|row| serde_json::json!(row.rows_ignored))),
        ("quarantined", json(&|row| serde_json::json!(row.quarantined))),
        ("expectations", json(&|row| serde_json::json!(row.expectations))),
        ("notes", json(&|row| serde_json::json!(row.notes))),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(tributary_lake::datafusion::error::DataFusionError::from)
        .map_err(tributary_lake::Error::from)?)
}
