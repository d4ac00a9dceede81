//! A process and what it took.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{children_seconds, high_water};
use anyhow::{Context, Result, anyhow, bail};

/// What one run took.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub seconds: f64,
    /// User and system time of the process and its threads.
    pub cpu_seconds: f64,
    pub peak_bytes: u64,
    /// Bytes of new files.
    pub bytes_written: u64,
}

/// Runs the command to its end, which must be a good one; returns what it took and what it printed.
pub fn measure(command: &mut Command) -> Result<(Measured, String)> {
    let before = children_seconds()?;
    let started = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().with_context(|| format!("starting {command:?}"))?;
    let mut output = child.stdout.take().context("a child without output")?;
    let printed = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let mut peak_bytes = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // grows only, so the last look before the end is the peak to within one interval
        peak_bytes = peak_bytes.max(high_water(child.id()).unwrap_or(0));
        thread::sleep(Duration::from_millis(2));
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    let printed = printed.join().map_err(|_| anyhow!("reading the output of {command:?} panicked"))??;
    Ok((Measured { seconds, cpu_seconds: children_seconds()? - before, peak_bytes, bytes_written: 0 }, printed))
}

/// Bytes that this process has asked of its files (`rchar`).
///
/// # Errors
/// When `/proc` does not say.
pub fn bytes_read() -> Result<u64> {
    let counters = std::fs::read_to_string("/proc/self/io")?;
    let line = counters.lines().find_map(|line| line.strip_prefix("rchar: ")).context("no rchar in /proc/self/io")?;
    Ok(line.parse()?)
}

/// Where `tests/services/install.sh` puts what benchmarks measure beside.
///
/// # Errors
/// Without a home.
pub fn services() -> Result<PathBuf> {
    match std::env::var_os("SERVICES_DIR") {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Ok(PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache/tributary-services")),
    }
}
