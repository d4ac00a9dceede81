//! `system.tributary.runs`: a row a dataset that committed, failed or was skipped.

use futures::FutureExt;
use serde_json::{Value, json};
use tributary_lake::Lake;
use tributary_specs::{DatasetReport, Status};

use crate::system::{self, Row, SystemTable};
use crate::{Error, RunReport, expectations, gaps};

/// `tributary.runs` in the catalogue `system`.
pub(crate) const TABLE: SystemTable = SystemTable {
    schema: "tributary",
    name: "runs",
    comment: "One row for each dataset that a run committed to, failed on or skipped",
    columns: &[
        ("run_id", "string"),
        ("pipeline", "string"),
        ("started_at", "timestamp"),
        ("catalogue", "string"),
        ("table", "string"),
        ("status", "string"),
        ("mode", "string"),
        ("reason", "string"),
        ("rows_in", "bigint"),
        ("rows_out", "bigint"),
        ("rows_quarantined", "bigint"),
        ("rows_ignored", "bigint"),
        ("rows_inserted", "bigint"),
        ("rows_updated", "bigint"),
        ("rows_deleted", "bigint"),
        ("version_from", "bigint"),
        ("version_to", "bigint"),
        ("positions", "string"),
        ("millis", "bigint"),
        ("bytes_written", "bigint"),
        ("peak_memory_bytes", "bigint"),
        ("conflicts", "bigint"),
        ("error_code", "string"),
        ("error", "string"),
        ("commits", "bigint"),
        ("bytes_read", "bigint"),
        ("lag_records", "bigint"),
        ("lag_seconds", "bigint"),
        ("source_time", "timestamp"),
        ("ignored", "string"),
        ("quarantined", "string"),
        ("expectations", "string"),
        ("notes", "string"),
        ("rows_late", "bigint"),
    ],
};

/// Appends the report's rows, and those of the gaps it passed over and of its rules. What goes wrong here is logged, never the run's
/// failure.
pub(crate) async fn record(lake: &Lake, report: &RunReport) {
    if let Err(error) = try_record(lake, report).boxed().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "system.tributary.runs was not written");
    }
}

async fn try_record(lake: &Lake, report: &RunReport) -> Result<(), Error> {
    let datasets: Vec<&DatasetReport> = report.datasets.iter().filter(|dataset| dataset.status != Status::NothingNew).collect();
    if datasets.is_empty() {
        return Ok(());
    }
    let system = system::catalogue(lake)?;
    let catalogue = &lake.options().catalogue;
    let peak = crate::memory::peak_bytes();
    let runs: Vec<Row> = datasets.iter().map(|dataset| row(report, dataset, catalogue, peak)).collect();
    system::append_rows(&system, &TABLE.spec(), &runs).await?;
    system::append_rows(&system, &gaps::TABLE.spec(), &gaps::rows(report, &datasets, catalogue)).await?;
    system::append_rows(&system, &expectations::TABLE.spec(), &expectations::rows(report, &datasets, catalogue)).await
}

fn row(report: &RunReport, dataset: &DatasetReport, catalogue: &str, peak_memory_bytes: Option<u64>) -> Row {
    let error = dataset.error.as_ref();
    system::row(json!({
        "run_id": report.run_id,
        "pipeline": report.pipeline,
        "started_at": report.started_at.timestamp_micros(),
        "catalogue": catalogue,
        "table": dataset.table,
        "status": dataset.status.to_string(),
        "mode": dataset.mode,
        "reason": dataset.reason,
        "rows_in": dataset.rows_in,
        "rows_out": dataset.rows_out,
        "rows_quarantined": dataset.rows_quarantined,
        "rows_ignored": dataset.rows_ignored.values().sum::<u64>(),
        "rows_inserted": dataset.rows_inserted,
        "rows_updated": dataset.rows_updated,
        "rows_deleted": dataset.rows_deleted,
        "version_from": dataset.version_from,
        "version_to": dataset.version_to,
        "positions": json!(dataset.positions).to_string(),
        "millis": dataset.millis,
        "bytes_written": dataset.bytes_written,
        "peak_memory_bytes": peak_memory_bytes,
        "conflicts": dataset.conflicts,
        "error_code": error.map(|error| &error.code),
        "error": error.map(|error| &error.message),
        "commits": dataset.commits,
        "bytes_read": dataset.bytes_read,
        "lag_records": dataset.lag_records,
        "lag_seconds": dataset.lag_seconds,
        "source_time": dataset.source_time_ms.and_then(|millis| millis.checked_mul(1000)),
        "ignored": text(json!(dataset.rows_ignored)),
        "quarantined": text(json!(dataset.quarantined)),
        "expectations": text(json!(dataset.expectations)),
        "notes": text(json!(dataset.notes)),
        "rows_late": dataset.rows_late,
    }))
}

/// Several values in one text; none where there are none.
fn text(values: Value) -> Option<String> {
    Some(values.to_string()).filter(|text| text != "{}" && text != "[]")
}
