//! What a run says while it runs and when it has ended.

mod advance;
mod bars;
mod lines;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tributary::{DatasetReport, ProgressEvent, ProgressSink, RunReport, Status, TableName};

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

/// Tells two sinks, one after the other.
pub fn both(first: Sink, second: Sink) -> Sink {
    Arc::new(Both(first, second))
}

#[derive(Debug)]
struct Both(Sink, Sink);

impl ProgressSink for Both {
    fn event(&self, event: &ProgressEvent) {
        self.0.event(event);
        self.1.event(event);
    }
}

/// Says where metrics are served.
pub fn listening(voice: Voice, address: SocketAddr) {
    match voice {
        Voice::Json => lines::say_json(serde_json::json!({ "event": "metrics_served", "address": address.to_string() })),
        Voice::Bars | Voice::Text => eprintln!("metrics at http://{address}/metrics, health at http://{address}/health"),
    }
}

/// A line: the object for programs, the text for people.
pub fn say(voice: Voice, object: serde_json::Value, text: &str) {
    match voice {
        Voice::Json => lines::say_json(object),
        Voice::Bars | Voice::Text => lines::say(&format!("{text}\n")),
    }
}

/// That a dataset is tried again.
fn waits(table: &TableName, failures: u32, after: Duration) -> String {
    let times = if failures > 1 { format!(", after {failures} failures in a row") } else { String::new() };
    format!("{table}  is tried again in {} s{times}", after.as_secs_f64().ceil())
}

/// That a dataset is not run any more.
fn stopped(table: &TableName, because_of: &TableName) -> String {
    let why = if table == because_of { "a person must mend it".to_owned() } else { format!("it reads `{because_of}`") };
    format!("{table}  is stopped: {why}; the others go on")
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
    let mut text = sums(report);
    for line in not_done(report) {
        text.push_str(&format!("\n{line}"));
    }
    text
}

/// What the pipeline says and a run does not do, a line each.
pub fn not_done(report: &RunReport) -> impl Iterator<Item = String> {
    let unprotected = report.unprotected.iter().map(|clause| format!("not protected: {clause}"));
    unprotected.chain(report.not_applied.iter().map(|clause| format!("not applied: {clause}")))
}

fn sums(report: &RunReport) -> String {
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
            if let Some(lag) = report.lag_seconds.filter(|lag| *lag > 0) {
                text.push_str(&format!(", {lag} s behind its source"));
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
