//! A line a dataset that moves while it runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tributary::{Clock as _, DatasetReport, ProgressEvent, ProgressSink, Status, SystemClock};

use super::advance::Advance;
use super::{stopped, summary, waits};

/// Draws on the standard error, a line a dataset; a continuous run moves the same lines again.
pub struct Bars {
    lines: MultiProgress,
    by_table: Mutex<HashMap<String, ProgressBar>>,
}

impl Bars {
    pub fn new() -> Self {
        Self { lines: MultiProgress::new(), by_table: Mutex::new(HashMap::new()) }
    }

    fn start(&self, table: &str, layer: &str) {
        let line = self.line(table);
        line.reset();
        restyle(&line, "{spinner} {prefix:<32} {elapsed:>5} {wide_msg}");
        line.set_message(layer.to_owned());
        line.enable_steady_tick(Duration::from_millis(120));
    }

    fn advance(&self, table: &str, advance: &Advance) {
        let line = self.line(table);
        line.set_message(advance.text(line.elapsed(), SystemClock.now()));
    }

    /// A line of its own above the moving ones.
    fn say(&self, text: &str) {
        let _ = self.lines.println(text);
    }

    fn finish(&self, report: &DatasetReport) {
        let mark = match report.status {
            Status::Committed => '✔',
            Status::NothingNew => '·',
            Status::Skipped => '–',
            Status::Failed => '✘',
        };
        let line = self.line(&report.table);
        line.disable_steady_tick();
        restyle(&line, &format!("{mark} {{prefix:<32}} {{wide_msg}}"));
        line.finish_with_message(summary(report));
        for note in &report.notes {
            self.say(&format!("  note: {}: {note}", report.table));
        }
    }

    fn line(&self, table: &str) -> ProgressBar {
        let mut by_table = self.by_table.lock().unwrap_or_else(PoisonError::into_inner);
        let line =
            by_table.entry(table.to_owned()).or_insert_with(|| self.lines.add(ProgressBar::new_spinner()).with_prefix(table.to_owned()));
        line.clone()
    }
}

fn restyle(line: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        line.set_style(style);
    }
}

impl ProgressSink for Bars {
    fn event(&self, event: &ProgressEvent) {
        match event {
            ProgressEvent::PhaseStarted { .. } | ProgressEvent::LagChanged { .. } => {}
            ProgressEvent::DatasetStarted { table, layer } => self.start(&table.to_string(), &layer.to_string()),
            ProgressEvent::DatasetAdvanced { table, layer: _, records, bytes, extent, source_time_ms, lag_records: _ } => {
                let advance = Advance { records: *records, bytes: *bytes, extent: *extent, source_time_ms: *source_time_ms };
                self.advance(&table.to_string(), &advance);
            }
            ProgressEvent::DatasetWaits { table, failures, after, .. } => self.say(&waits(table, *failures, *after)),
            ProgressEvent::DatasetStopped { table, because_of, .. } => self.say(&stopped(table, because_of)),
            ProgressEvent::DatasetFinished { report, .. } => self.finish(report),
        }
    }
}

impl fmt::Debug for Bars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bars").finish_non_exhaustive()
    }
}
