//! `system.tributary.expectations`: a row a rule of a dataset, flow by flow, that a run held rows to.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_specs::{Column, DataType, DatasetReport, RuleCount, TableName, TableSpec};

use crate::{Error, RunReport};

/// `tributary.expectations` in the catalogue `system`.
pub(crate) fn table_spec() -> TableSpec {
    let text = |name: &str| Column::new(name, DataType::String);
    let mut columns = vec![text("run_id"), Column::new("started_at", DataType::Timestamp), text("pipeline"), text("catalogue")];
    columns.extend(["table", "flow", "rule", "action"].map(text));
    columns.extend(["passed", "failed", "dropped"].map(|name| Column::new(name, DataType::Long)));
    let mut spec = TableSpec::new(TableName::new("tributary", "expectations"), columns);
    spec.comment = Some("Rows that met and that broke each rule, by run and flow; 1 and 0 for a rule of a whole table".to_owned());
    spec
}

/// The rows of a report's rules.
pub(crate) fn batch(report: &RunReport, datasets: &[&DatasetReport], catalogue: &str) -> Result<RecordBatch, Error> {
    let rows: Vec<(&str, &RuleCount)> =
        datasets.iter().flat_map(|dataset| dataset.rules.iter().map(|count| (dataset.table.as_str(), count))).collect();
    let text =
        |value: fn(&RuleCount) -> &str| -> ArrayRef { Arc::new(rows.iter().map(|(_, count)| Some(value(count))).collect::<StringArray>()) };
    let same = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value; rows.len()])) };
    let long = |value: fn(&RuleCount) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|(_, count)| i64::try_from(value(count)).ok()).collect::<Int64Array>())
    };
    let started = TimestampMicrosecondArray::from(vec![report.started_at.timestamp_micros(); rows.len()]).with_timezone("UTC");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("run_id", same(&report.run_id)),
        ("started_at", Arc::new(started)),
        ("pipeline", same(&report.pipeline)),
        ("catalogue", same(catalogue)),
        ("table", Arc::new(rows.iter().map(|(table, _)| Some(*table)).collect::<StringArray>())),
        ("flow", text(|count| &count.flow)),
        ("rule", text(|count| &count.rule)),
        ("action", text(|count| &count.action)),
        ("passed", long(|count| count.passed)),
        ("failed", long(|count| count.failed)),
        ("dropped", long(|count| count.dropped)),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(tributary_lake::datafusion::error::DataFusionError::from)
        .map_err(tributary_lake::Error::from)?)
}
