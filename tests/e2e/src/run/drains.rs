//! Runs of the binaries that take what is there and end, and sums of what bronze reported of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::PATIENCE;
use crate::check::Outcome;
use crate::layers::{LAYERS, Layers};

/// Drains of one warehouse. The sums are those of the reports of bronze.
#[derive(Debug)]
pub struct Drains<'a> {
    layers: &'a Layers,
    runs: u64,
    failed: u64,
    rows_in: u64,
    rows_out: u64,
    quarantined: u64,
    ignored: u64,
}

impl<'a> Drains<'a> {
    /// None yet.
    pub const fn new(layers: &'a Layers) -> Self {
        Self { layers, runs: 0, failed: 0, rows_in: 0, rows_out: 0, quarantined: 0, ignored: 0 }
    }

    /// One run of each layer; a run may fail for a while when its broker is away. Whether anything was new.
    pub fn once(&mut self) -> Result<bool> {
        let mut new = false;
        for layer in LAYERS {
            let (code, report) = self.layers.drain(layer)?;
            if layer == "bronze" {
                self.add(code, &report);
            }
            match code {
                0 => new = true,
                99 => {}
                // the broker is away
                1 if layer == "bronze" => new = true,
                // nothing is there to read before bronze has run for the first time
                _ if layer != "bronze" && !self.layers.warehouse.join("main/bronze").is_dir() => {}
                other => bail!("a drain of {layer} ended with {other}: {:#}", report["datasets"]),
            }
        }
        Ok(new)
    }

    /// Runs until nothing is new, which must come at once after everything has been delivered.
    pub fn all(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.once()? {
            ensure!(begin.elapsed() < PATIENCE, "drains still find something new after {} s", PATIENCE.as_secs());
        }
        Ok(())
    }

    /// Runs now and then until told that it is over.
    pub fn until(&mut self, over: &AtomicBool) -> Result<()> {
        while !over.load(Ordering::Relaxed) {
            self.once()?;
            thread::sleep(Duration::from_secs(3));
        }
        Ok(())
    }

    fn add(&mut self, code: i32, report: &Value) {
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        self.runs += 1;
        self.failed += u64::from(!matches!(code, 0 | 99));
        for dataset in report["datasets"].as_array().into_iter().flatten() {
            self.rows_in += count(&dataset["rows_in"]);
            self.rows_out += count(&dataset["rows_out"]);
            self.quarantined += count(&dataset["rows_quarantined"]);
            self.ignored += dataset["rows_ignored"].as_object().into_iter().flatten().map(|(_, value)| count(value)).sum::<u64>();
        }
    }

    /// What the reports say must be what is there. A run that failed may have committed what its report does not count.
    pub fn check(&self, outcome: &mut Outcome) {
        let counts = outcome.counts;
        outcome.details.push(format!(
            "{} drains, {} failed: {} records in, {} rows, {} quarantined, {} ignored",
            self.runs, self.failed, self.rows_in, self.rows_out, self.quarantined, self.ignored
        ));
        let equal = self.rows_in == counts.records && self.ignored == counts.tombstones && self.quarantined == counts.quarantined;
        if self.rows_in != self.rows_out + self.quarantined + self.ignored || (self.failed == 0 && !equal) {
            outcome.fail("the reports do not add up to the topics' records".to_owned());
        }
    }
}
