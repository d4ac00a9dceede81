//! What a run says while it runs and when it has ended.

mod bars;
mod lines;

use std::sync::Arc;

use tributary::{DatasetReport, RunReport, Status};

use crate::failure::Failure;
use crate::logging::Voice;
use crate::run::Sink;
use crate::start;

/// Told of what happens in a run, in this voice. Lines of a continuous run are only those that brought something.
pub fn sink(voice: Voice, continuous: bool) -> Sink {
    match voice {
        Voice::Bars => Arc::new(bars::Bars::new()),
        Voice::Text => Arc::new(lines::Text { only_news: continuous }),
        Voice::Json => Arc::new(lines::Json { only_news: continuous }),
    }
}

/// The last words of a run.
pub fn finish(voice: Voice, report: &RunReport, exit_code: u8) -> Result<(), Failure> {
    let text = match voice {
        Voice::Json => format!("{}\n", lines::finished(report, exit_code)),
        // the cursor stands behind the last line that was drawn
        Voice::Bars => format!("\n{}\n", closing(report)),
        Voice::Text => format!("{}\n", closing(report)),
    };
    start::print(&text).map(drop)
}

fn closing(report: &RunReport) -> String {
    if report.datasets.is_empty() {
        return "no dataset was chosen".to_owned();
    }
    if report.nothing_new() {
        return format!("nothing new in {} datasets", report.datasets.len());
    }
    let count = |status: Status| report.datasets.iter().filter(|dataset| dataset.status == status).count();
    let mut text = format!("{} of {} datasets committed", count(Status::Committed), report.datasets.len());
    for (status, word) in [(Status::NothingNew, "with nothing new"), (Status::Failed, "failed"), (Status::Skipped, "skipped")] {
        if count(status) > 0 {
            text.push_str(&format!(", {} {word}", count(status)));
        }
    }
    if report.cancelled {
        text.push_str(", interrupted");
    }
    format!("{text}, {}", seconds(report.millis))
}

/// A dataset's end in one line.
fn summary(report: &DatasetReport) -> String {
    match report.status {
        Status::NothingNew => "nothing new".to_owned(),
        Status::Skipped => format!("skipped: {}", report.reason),
        Status::Failed => match &report.error {
            Some(error) => format!("failed: {} {}", error.code, error.message),
            None => "failed".to_owned(),
        },
        Status::Committed => {
            let ignored: u64 = report.rows_ignored.values().sum();
            let mut text = format!(
                "version {}: {} in, +{} ~{} -{}",
                report.version_to.unwrap_or_default(),
                report.rows_in,
                report.rows_inserted,
                report.rows_updated,
                report.rows_deleted
            );
            if ignored > 0 {
                text.push_str(&format!(", {ignored} ignored"));
            }
            if report.rows_quarantined > 0 {
                text.push_str(&format!(", {} quarantined", report.rows_quarantined));
            }
            format!("{text}, {}", seconds(report.millis))
        }
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(statuses: &[Status]) -> RunReport {
        let dataset = |status: &Status| DatasetReport { status: *status, ..Default::default() };
        RunReport { datasets: statuses.iter().map(dataset).collect(), millis: 1234, ..Default::default() }
    }

    #[test]
    fn a_run_closes_with_what_became_of_its_datasets() {
        assert_eq!(closing(&report(&[Status::NothingNew, Status::NothingNew])), "nothing new in 2 datasets");
        assert_eq!(
            closing(&report(&[Status::Committed, Status::Failed, Status::Skipped])),
            "1 of 3 datasets committed, 1 failed, 1 skipped, 1.2 s"
        );
    }

    #[test]
    fn a_dataset_ends_with_its_counts() {
        let report = DatasetReport {
            status: Status::Committed,
            rows_in: 10,
            rows_inserted: 7,
            rows_updated: 1,
            rows_quarantined: 2,
            version_to: Some(3),
            millis: 450,
            ..Default::default()
        };
        assert_eq!(summary(&report), "version 3: 10 in, +7 ~1 -0, 2 quarantined, 0.4 s");
    }
}
