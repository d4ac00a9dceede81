//! `system.tributary.expectations`: a row a rule of a dataset, flow by flow, that a run held rows to.

use serde_json::json;
use tributary_specs::{DatasetReport, RuleCount};

use crate::RunReport;
use crate::system::{self, Row, SystemTable};

/// `tributary.expectations` in the catalogue `system`.
pub(crate) const TABLE: SystemTable = SystemTable {
    schema: "tributary",
    name: "expectations",
    comment: "Rows that met and that broke each rule, by run and flow; 1 and 0 for a rule of a whole table",
    columns: &[
        ("run_id", "string"),
        ("started_at", "timestamp"),
        ("pipeline", "string"),
        ("catalogue", "string"),
        ("table", "string"),
        ("flow", "string"),
        ("rule", "string"),
        ("action", "string"),
        ("passed", "bigint"),
        ("failed", "bigint"),
        ("dropped", "bigint"),
    ],
};

/// The rows of a report's rules.
pub(crate) fn rows(report: &RunReport, datasets: &[&DatasetReport], catalogue: &str) -> Vec<Row> {
    let rules = datasets.iter().flat_map(|dataset| dataset.rules.iter().map(|rule| (&dataset.table, rule)));
    let row = |(table, rule): (&String, &RuleCount)| {
        system::row(json!({
            "run_id": report.run_id,
            "started_at": report.started_at.timestamp_micros(),
            "pipeline": report.pipeline,
            "catalogue": catalogue,
            "table": table,
            "flow": rule.flow,
            "rule": rule.rule,
            "action": rule.action,
            "passed": rule.passed,
            "failed": rule.failed,
            "dropped": rule.dropped,
        }))
    };
    rules.map(row).collect()
}
