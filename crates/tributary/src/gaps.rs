//! `system.tributary.gaps`: a row a range of records that a source no longer had and that was passed over by choice.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_specs::{Column, DataType, DatasetReport, PassedGap, TableName, TableSpec};

use crate::{Error, RunReport};

/// `tributary.gaps` in the catalogue `system`.
pub(crate) fn table_spec() -> TableSpec {
    let text = |name: &str| Column::new(name, DataType::String);
    let mut columns = vec![text("run_id"), Column::new("at", DataType::Timestamp), text("catalogue"), text("table"), text("feed")];
    columns.extend([text("topic"), Column::new("partition", DataType::Integer)]);
    columns.extend(["from", "until"].map(|name| Column::new(name, DataType::Long)));
    columns.push(text("choice"));
    let mut spec = TableSpec::new(TableName::new("tributary", "gaps"), columns);
    spec.comment =
        Some("Positions `from` up to `until`, itself left out, that a source no longer had and a run passed over by choice".to_owned());
    spec
}

/// The rows of a report's gaps.
pub(crate) fn batch(report: &RunReport, datasets: &[&DatasetReport], catalogue: &str) -> Result<RecordBatch, Error> {
    let rows: Vec<(&str, &PassedGap)> =
        datasets.iter().flat_map(|dataset| dataset.gaps.iter().map(|gap| (dataset.table.as_str(), gap))).collect();
    let text =
        |value: fn(&PassedGap) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(|(_, gap)| value(gap)).collect::<StringArray>()) };
    let same = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value; rows.len()])) };
    let long =
        |value: fn(&PassedGap) -> i64| -> ArrayRef { Arc::new(rows.iter().map(|(_, gap)| Some(value(gap))).collect::<Int64Array>()) };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("run_id", same(&report.run_id)),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![report.started_at.timestamp_micros(); rows.len()]).with_timezone("UTC"))),
        ("catalogue", same(catalogue)),
        ("table", Arc::new(rows.iter().map(|(table, _)| Some(*table)).collect::<StringArray>())),
        ("feed", text(|gap| Some(&gap.feed))),
        ("topic", text(|gap| gap.topic.as_deref())),
        ("partition", Arc::new(rows.iter().map(|(_, gap)| Some(gap.partition)).collect::<Int32Array>())),
        ("from", long(|gap| gap.from)),
        ("until", long(|gap| gap.until)),
        ("choice", text(|gap| Some(&gap.choice))),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(tributary_lake::datafusion::error::DataFusionError::from)
        .map_err(tributary_lake::Error::from)?)
}
