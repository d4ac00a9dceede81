//! A line an event: for people, or JSON for programs.

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use tributary::{ProgressEvent, ProgressSink, RunReport, Status};

use super::summary;
use crate::start;

/// A line when a dataset has ended.
#[derive(Debug)]
pub struct Text {
    /// Only what brought something: a continuous run finds nothing new most of the time.
    pub only_news: bool,
}

impl ProgressSink for Text {
    fn event(&self, event: &ProgressEvent) {
        if let ProgressEvent::DatasetFinished { report, .. } = event
            && !(self.only_news && report.status == Status::NothingNew)
        {
            say(&format!("{}  {}\n", report.table, summary(report)));
            for note in &report.notes {
                say(&format!("  note: {note}\n"));
            }
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
        let news = matches!(event, ProgressEvent::DatasetFinished { report, .. } if report.status != Status::NothingNew);
        if let Some(mut object) = object(event).filter(|_| news || !self.only_news) {
            object["time"] = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true).into();
            say(&format!("{object}\n"));
        }
    }
}

/// Progress is never a reason for a run to fail.
fn say(line: &str) {
    let _ = start::print(line);
}

fn object(event: &ProgressEvent) -> Option<Value> {
    Some(match event {
        ProgressEvent::PhaseStarted { phase, phases } => json!({ "event": "phase_started", "phase": phase + 1, "phases": phases }),
        ProgressEvent::DatasetStarted { table, layer } => {
            json!({ "event": "dataset_started", "table": table.to_string(), "layer": layer.to_string() })
        }
        // a line a slice would be most of the log; the end of the dataset has the sum
        ProgressEvent::DatasetAdvanced { .. } => return None,
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
        "exit_code": exit_code,
    })
}
