//! What the benchmarks share: contenders in processes of their own, and what processes take of the machine, as the kernel counts it.

pub mod files;
pub mod orders;
pub mod process;
pub mod report;

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

/// As in the programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The most memory a process has had at once, in bytes (`VmHWM`); none once it has ended.
pub fn high_water(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// User and system seconds of the children that have ended, in steps of the kernel's clock (10 ms).
///
/// # Errors
/// When `/proc` does not say.
pub fn children_seconds() -> Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().context("no name in /proc/self/stat")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("no times in /proc/self/stat")?.parse::<f64>()?) };
    Ok((ticks(13)? + ticks(14)?) / TICKS_PER_SECOND)
}

/// Seconds that the threads of this process that have not ended have spent on cores.
///
/// # Errors
/// When `/proc` does not say.
pub fn threads_seconds() -> Result<f64> {
    let mut nanos = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += stat.split_whitespace().next().context("no time in schedstat")?.parse::<u64>()?;
    }
    #[allow(clippy::cast_precision_loss)]
    Ok(nanos as f64 / 1e9)
}

/// What one run of a contender measured: this program again, with `--contender` and these arguments, in a process of its own. It prints
/// its measurements as JSON.
///
/// # Errors
/// When it cannot be started, fails, or prints something else.
pub fn contend<M: DeserializeOwned>(name: &str, arguments: &[&str]) -> Result<M> {
    let output =
        Command::new(std::env::current_exe()?).args(["--contender", name]).args(arguments).output().context("starting a contender")?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The one in the middle, of an even number the upper of the two; no number of none.
pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}
