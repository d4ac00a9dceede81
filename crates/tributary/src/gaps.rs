//! `system.tributary.gaps`: a row a range of records that a source no longer had and that was passed over by choice.

use serde_json::json;
use tributary_specs::DatasetReport;

use crate::RunReport;
use crate::system::{self, Row, SystemTable};

/// `tributary.gaps` in the catalogue `system`.
pub(crate) const TABLE: SystemTable = SystemTable {
    schema: "tributary",
    name: "gaps",
    comment: "Positions `from` up to `until`, itself left out, that a source no longer had and a run passed over by choice",
    columns: &[
        ("run_id", "string"),
        ("at", "timestamp"),
        ("catalogue", "string"),
        ("table", "string"),
        ("feed", "string"),
        ("topic", "string"),
        ("partition", "int"),
        ("from", "bigint"),
        ("until", "bigint"),
        ("choice", "string"),
    ],
};

/// The rows of a report's gaps.
pub(crate) fn rows(report: &RunReport, datasets: &[&DatasetReport], catalogue: &str) -> Vec<Row> {
    let gaps = datasets.iter().flat_map(|dataset| dataset.gaps.iter().map(|gap| (&dataset.table, gap)));
    let row = |(table, gap): (&String, &tributary_specs::PassedGap)| {
        system::row(json!({
            "run_id": report.run_id,
            "at": report.started_at.timestamp_micros(),
            "catalogue": catalogue,
            "table": table,
            "feed": gap.feed,
            "topic": gap.topic,
            "partition": gap.partition,
            "from": gap.from,
            "until": gap.until,
            "choice": gap.choice,
        }))
    };
    gaps.map(row).collect()
}
