//! What a run took.

use std::fmt;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tributary_bench::{high_water, threads_seconds};

/// Measurements of one contender's run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    pub events: u64,
    /// Rows of the batches.
    pub rows: u64,
    /// Bytes of the values taken in.
    pub bytes: u64,
    /// Wall clock.
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Of the whole process, the events in memory included.
    pub peak_bytes: u64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[allow(clippy::cast_precision_loss)]
        let (events, megabytes) = (self.events as f64, self.bytes as f64 / 1e6);
        write!(
            f,
            "{:.2} s  {:.2} cpu-s  {:>9.0} events/s  {:>6.0} MB/s  {} events  {} rows  {} bytes  peak {} MiB",
            self.seconds,
            self.cpu_seconds,
            events / self.seconds,
            megabytes / self.seconds,
            self.events,
            self.rows,
            self.bytes,
            self.peak_bytes >> 20,
        )
    }
}

/// Runs something and measures it; it returns events, rows and bytes.
pub fn measure(run: impl FnOnce() -> Result<(u64, u64, u64)>) -> Result<Measured> {
    let cpu = threads_seconds()?;
    let start = Instant::now();
    let (events, rows, bytes) = run()?;
    let seconds = start.elapsed().as_secs_f64();
    let peak_bytes = high_water(std::process::id()).context("no peak in /proc")?;
    Ok(Measured { events, rows, bytes, seconds, cpu_seconds: threads_seconds()? - cpu, peak_bytes })
}
