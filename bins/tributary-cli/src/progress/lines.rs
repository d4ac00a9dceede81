//! A line an event: for people, or JSON for programs.

use chrono::SecondsFormat;
use serde_json::{Value, json};
use tributary::{Clock as _, ProgressEvent, ProgressSink, RunReport, Status, SystemClock};

use super::{stopped, summary, waits};
use crate::start;

/// A line when a dataset has ended.
#[derive(Debug)]
pub struct Text {
    /// Only what brought something: a continuous run finds nothing new most of the time.
    pub only_news: bool,
}

impl ProgressSink for Text {
    fn event(&self, event: &ProgressEvent) {
        match event {
            ProgressEvent::DatasetFinished { report, .. } if !(self.only_news && report.status == Status::NothingNew) => {
                say(&format!("{}  {}\n", report.table, summary(report)));
                for note in &report.notes {
                    say(&format!("  note: {note}\n"));
                }
            }
            ProgressEvent::DatasetWaits { table, failures, after, .. } => say(&format!("{}\n", waits(table, *failures, *after))),
            ProgressEvent::DatasetStopped { table, because_of, .. } => say(&format!("{}\n", stopped(table, because_of))),
            ProgressEvent::DatasetFinished { .. }
            | ProgressEvent::PhaseStarted { .. }
            | ProgressEvent::DatasetStarted { .. }
            | ProgressEvent::DatasetAdvanced { .. }
            | ProgressEvent::LagChanged { .. } => {}
        }
    }
}

/// A JSON object for every event.
#[derive(Debug)]
pub struct Json {
    /// As [`Text::only_news`].
    pub only_news: bool,
}

impl ProgressSink for Json {
    fn event(&self, event: &ProgressEvent) {
        let news = match event {
            ProgressEvent::DatasetFinished { report, .. } => report.status != Status::NothingNew,
            ProgressEvent::DatasetWaits { .. } | ProgressEvent::DatasetStopped { .. } => true,
            ProgressEvent::PhaseStarted { .. }
            | ProgressEvent::DatasetStarted { .. }
            | ProgressEvent::DatasetAdvanced { .. }
            | ProgressEvent::LagChanged { .. } => false,
        };
        if let Some(object) = object(event).filter(|_| news || !self.only_news) {
            say_json(object);
        }
    }
}

/// An object with the time it is said.
pub fn say_json(mut object: Value) {
    object["time"] = SystemClock.now().to_rfc3339_opts(SecondsFormat::Millis, true).into();
    say(&format!("{object}\n"));
}

/// Progress is never a reason for a run to fail.
pub fn say(line: &str) {
    let _ = start::print(line);
}

fn object(event: &ProgressEvent) -> Option<Value> {
    Some(match event {
        ProgressEvent::PhaseStarted { phase, phases } => json!({ "event": "phase_started", "phase": phase + 1, "phases": phases }),
        ProgressEvent::DatasetStarted { table, layer } => {
            json!({ "event": "dataset_started", "table": table.to_string(), "layer": layer.to_string() })
        }
        // a line a slice would be most of the log; the end of the dataset has the sum
        ProgressEvent::DatasetAdvanced { .. } | ProgressEvent::LagChanged { .. } => return None,
        ProgressEvent::DatasetWaits { table, layer, failures, after } => json!({
            "event": "dataset_waits",
            "table": table.to_string(),
            "layer": layer.to_string(),
            "failures": failures,
            "seconds": after.as_secs_f64(),
        }),
        ProgressEvent::DatasetStopped { table, layer, because_of } => json!({
            "event": "dataset_stopped",
            "table": table.to_string(),
            "layer": layer.to_string(),
            "because_of": because_of.to_string(),
        }),
        ProgressEvent::DatasetFinished { layer, report } => {
            json!({ "event": "dataset_finished", "layer": layer.to_string(), "report": report })
        }
    })
}

/// The last line of a run.
pub fn finished(report: &RunReport, exit_code: u8) -> Value {
    json!({
        "event": "run_finished",
        "run_id": report.run_id,
        "pipeline": report.pipeline,
        "datasets": report.datasets.len(),
        "nothing_new": report.nothing_new(),
        "cancelled": report.cancelled,
        "millis": report.millis,
        "unprotected": report.unprotected,
        "not_applied": report.not_applied,
        "exit_code": exit_code,
    })
}
