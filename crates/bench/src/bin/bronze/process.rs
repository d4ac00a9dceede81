//! A process and what it took.

use std::fmt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::events::Loaded;

/// What a process took for the events of the topic.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub seconds: f64,
    /// User and system time of the process and its threads.
    pub cpu_seconds: f64,
    pub peak_bytes: u64,
    loaded: Loaded,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loaded { events, bytes } = self.loaded;
        write!(
            f,
            "{:.2} s  {:.2} cpu-s  {:>8.0} events/s  {:>5.0} MB/s  {events} rows  {bytes} bytes  peak {} MiB",
            self.seconds,
            self.cpu_seconds,
            events as f64 / self.seconds,
            bytes as f64 / 1e6 / self.seconds,
            self.peak_bytes >> 20,
        )
    }
}

/// Runs the command to its end; it must succeed.
pub fn measure(command: &mut Command, loaded: Loaded) -> Result<Measured> {
    let before = children_seconds()?;
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().with_context(|| format!("starting {command:?}"))?;
    let mut peak_bytes = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // grows only, so the last look before the end is the peak to within one interval
        peak_bytes = peak_bytes.max(high_water(child.id()).unwrap_or(0));
        sleep(Duration::from_millis(5));
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(Measured { seconds, cpu_seconds: children_seconds()? - before, peak_bytes, loaded })
}

/// `VmHWM` of a process.
fn high_water(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// User and system seconds of the children that have ended, in steps of the kernel's clock (10 ms).
fn children_seconds() -> Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().context("no name in /proc/self/stat")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("no times in /proc/self/stat")?.parse::<f64>()?) };
    Ok((ticks(13)? + ticks(14)?) / TICKS_PER_SECOND)
}
