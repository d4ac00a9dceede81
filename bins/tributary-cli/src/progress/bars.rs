//! A line a dataset that moves while it runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use tributary::{ProgressEvent, ProgressSink, Status};

use super::summary;

/// Draws on the standard error; a line that has ended stays.
pub struct Bars {
    lines: MultiProgress,
    running: Mutex<HashMap<String, ProgressBar>>,
}

impl Bars {
    pub fn new() -> Self {
        Self { lines: MultiProgress::new(), running: Mutex::new(HashMap::new()) }
    }

    fn start(&self, table: String, layer: &str) {
        let style = ProgressStyle::with_template("{spinner} {prefix:<32} {elapsed:>5} {wide_msg}");
        let line = self.lines.add(ProgressBar::new_spinner());
        if let Ok(style) = style {
            line.set_style(style);
        }
        line.set_prefix(table.clone());
        line.set_message(layer.to_owned());
        line.enable_steady_tick(Duration::from_millis(120));
        if let Ok(mut running) = self.running.lock() {
            running.insert(table, line);
        }
    }

    fn advance(&self, table: &str, records: u64, bytes: u64) {
        let running = self.running.lock().ok();
        if let Some(line) = running.as_ref().and_then(|running| running.get(table)) {
            let seconds = line.elapsed().as_secs_f64().max(0.001);
            let rate = records as f64 / seconds;
            line.set_message(format!("{} records, {}, {rate:.0}/s", HumanCount(records), HumanBytes(bytes)));
        }
    }

    fn finish(&self, table: &str, mark: &str, text: String) {
        let line = self.running.lock().ok().and_then(|mut running| running.remove(table));
        let line = line.unwrap_or_else(|| self.lines.add(ProgressBar::new_spinner()));
        if let Ok(style) = ProgressStyle::with_template(&format!("{mark} {{prefix:<32}} {{wide_msg}}")) {
            line.set_style(style);
        }
        line.set_prefix(table.to_owned());
        line.finish_with_message(text);
    }
}

impl ProgressSink for Bars {
    fn event(&self, event: &ProgressEvent) {
        match event {
            ProgressEvent::PhaseStarted { .. } => {}
            ProgressEvent::DatasetStarted { table, layer } => self.start(table.to_string(), &layer.to_string()),
            ProgressEvent::DatasetAdvanced { table, records, bytes } => self.advance(&table.to_string(), *records, *bytes),
            ProgressEvent::DatasetFinished { report, .. } => {
                let mark = match report.status {
                    Status::Committed => "✔",
                    Status::NothingNew => "·",
                    Status::Skipped => "–",
                    Status::Failed => "✘",
                };
                self.finish(&report.table, mark, summary(report));
                for note in &report.notes {
                    let _ = self.lines.println(format!("  note: {}: {note}", report.table));
                }
            }
        }
    }
}

impl fmt::Debug for Bars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bars").finish_non_exhaustive()
    }
}
