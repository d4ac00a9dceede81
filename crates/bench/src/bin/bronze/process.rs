//! A process and what it took.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tributary_bench::{children_seconds, high_water};

/// What a process took for the events of the topic.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub seconds: f64,
    /// User and system time of the process and its threads.
    pub cpu_seconds: f64,
    pub peak_bytes: u64,
}

impl Measured {
    /// What is printed of a process that went through so many rows and bytes.
    pub fn over(&self, rows: u64, bytes: u64) -> String {
        format!(
            "{:.2} s  {:.2} cpu-s  {:>8.0} rows/s  {:>5.0} MB/s  {rows} rows  {bytes} bytes  peak {} MiB",
            self.seconds,
            self.cpu_seconds,
            rows as f64 / self.seconds,
            bytes as f64 / 1e6 / self.seconds,
            self.peak_bytes >> 20,
        )
    }
}

/// A program built beside this one.
pub fn beside(program: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(program);
    if !path.is_file() {
        bail!("no {}: `just bench bronze` builds it", path.display());
    }
    Ok(path)
}

/// The one in the middle.
pub fn median(measured: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = measured.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the command to its end; it must succeed.
pub fn measure(command: &mut Command) -> Result<Measured> {
    measure_with(command, |_| Ok(()))
}

/// The same, with something done beside the process, whose id it is given; a failure there ends the process.
pub fn measure_with(command: &mut Command, beside: impl FnOnce(u32) -> Result<()> + Send) -> Result<Measured> {
    let before = children_seconds()?;
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().with_context(|| format!("starting {command:?}"))?;
    let id = child.id();
    let (status, peak_bytes, done) = thread::scope(|scope| {
        let done = scope.spawn(move || beside(id).inspect_err(|_| terminate(id)));
        let mut peak_bytes = 0;
        let status = loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error),
            }
            // grows only, so the last look before the end is the peak to within one interval
            peak_bytes = peak_bytes.max(high_water(id).unwrap_or(0));
            thread::sleep(Duration::from_millis(1));
        };
        (status, peak_bytes, done.join())
    });
    let seconds = started.elapsed().as_secs_f64();
    done.map_err(|_| anyhow!("what was done beside {command:?} panicked"))??;
    let status = status?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(Measured { seconds, cpu_seconds: children_seconds()? - before, peak_bytes })
}

/// Asks a process to end.
pub fn terminate(id: u32) {
    // one that has ended already cannot be asked
    let _ = Command::new("kill").args(["-s", "TERM", &id.to_string()]).status();
}
