//! What a run did.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tributary_fault::ExitCode;
use tributary_specs::{DatasetReport, Layer, Status};

/// What one run did, dataset by dataset, in the order of the phases.
///
/// ```
/// let report = tributary::RunReport::default();
/// assert!(report.nothing_new());
/// assert_eq!(report.exit_code().code(), 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Unique to this run.
    pub run_id: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// When it began, by the clock of the run.
    pub started_at: DateTime<Utc>,
    /// Wall-clock milliseconds.
    pub millis: u64,
    /// Whether it was cancelled before all datasets had their turn.
    pub cancelled: bool,
    /// The instant that `current_date()` and `current_timestamp()` meant, where it was asked for and was not the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<DateTime<Utc>>,
    /// Masks and row filters of the pipeline that were not enforced, as a person accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unprotected: Vec<String>,
    /// What else of the pipeline's text is read and not executed, each with its place and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
    /// A report a dataset.
    pub datasets: Vec<DatasetReport>,
}

impl RunReport {
    /// Whether no dataset wrote a version and none failed.
    ///
    /// ```
    /// assert!(tributary::RunReport::default().nothing_new());
    /// ```
    pub fn nothing_new(&self) -> bool {
        self.datasets.iter().all(|dataset| dataset.status == Status::NothingNew)
    }

    /// What a process that did this run and nothing else says to its shell.
    ///
    /// ```
    /// assert_eq!(tributary::RunReport::default().exit_code(), tributary::ExitCode::Done);
    /// ```
    pub fn exit_code(&self) -> ExitCode {
        let failures = self.datasets.iter().filter_map(|dataset| dataset.error.as_ref()).map(|error| error.exit_code);
        let worst = ExitCode::worst(failures.filter_map(ExitCode::from_code));
        let left = self.cancelled || self.datasets.iter().any(|dataset| dataset.status == Status::Skipped);
        if left { ExitCode::worst([worst, ExitCode::Partial]) } else { worst }
    }

    /// Reports of one layer's datasets.
    ///
    /// ```
    /// assert_eq!(tributary::RunReport::default().of_schema("gold").count(), 0);
    /// ```
    pub fn of_schema<'a>(&'a self, schema: &'a str) -> impl Iterator<Item = &'a DatasetReport> {
        self.datasets.iter().filter(move |dataset| dataset.table.split('.').next() == Some(schema))
    }
}

pub(crate) fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// A dataset's report and the layer it belongs to, on its way to the report of the run.
pub(crate) struct Finished {
    pub layer: Layer,
    pub report: DatasetReport,
}
