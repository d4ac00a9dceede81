//! Lines on standard output, each ending in a ratio; single repetitions go to standard error.

use crate::process::Measured;

/// Of several repetitions the median of each number.
pub fn median(all: &[Measured]) -> Measured {
    Measured {
        seconds: middle(all, |one| one.seconds),
        cpu_seconds: middle(all, |one| one.cpu_seconds),
        peak_bytes: middle(all, |one| one.peak_bytes as f64) as u64,
        bytes_written: middle(all, |one| one.bytes_written as f64) as u64,
    }
}

fn middle(all: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = all.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a run took, for so many changes.
pub fn words(name: &str, rows: u64, took: &Measured) -> String {
    format!(
        "{name} {:.3} s {:.2} cpu-s {rows} rows {} bytes peak {} MiB",
        took.seconds,
        took.cpu_seconds,
        took.bytes_written,
        took.peak_bytes >> 20
    )
}

/// One repetition.
pub fn repetition(label: &str, number: usize, name: &str, rows: u64, took: &Measured) {
    eprintln!("  {label}: {number}  {}", words(name, rows, took));
}

/// What a ratio should be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Nobody said.
    Free,
}

impl Target {
    fn words(self, ratio: f64) -> String {
        let verdict = |met: bool| if met { "met" } else { "missed" };
        match self {
            Self::AtLeast(least) => format!("target at least {least:.2} {}", verdict(ratio >= least)),
            Self::AtMost(most) => format!("target at most {most:.2} {}", verdict(ratio <= most)),
            Self::Free => "no target".to_owned(),
        }
    }
}

/// A line: what was measured, what it should come to, and the ratio it comes to.
pub fn line(label: &str, measured: &str, target: Target, ratio: f64) {
    println!("{label}: {measured}; {}; ratio {ratio:.2}", target.words(ratio));
}

/// The line of a comparison; how often `one`'s seconds go into `other`'s is what counts. On a machine with other work on it the same
/// of processor seconds says more.
pub fn compared(label: &str, rows: u64, one: (&str, &Measured), other: (&str, &Measured), target: Target) {
    let of_cpu = other.1.cpu_seconds / one.1.cpu_seconds;
    let measured = format!("{}; {}; {of_cpu:.2} times the cpu-s", words(one.0, rows, one.1), words(other.0, rows, other.1));
    line(label, &measured, target, other.1.seconds / one.1.seconds);
}

/// The line of a time that is allowed; the part of it that was taken is what counts.
pub fn within(label: &str, rows: u64, took: &Measured, seconds: f64) {
    let measured = format!("{}; allowed {seconds:.3} s", words("ours", rows, took));
    line(label, &measured, Target::AtMost(1.0), took.seconds / seconds);
}

/// The line of the memory that is allowed; the part of it that was taken is what counts.
pub fn in_memory(label: &str, rows: u64, took: &Measured, mebibytes: u64) {
    let measured = format!("{}; allowed {mebibytes} MiB", words("ours", rows, took));
    line(label, &measured, Target::AtMost(1.0), took.peak_bytes as f64 / (mebibytes << 20) as f64);
}
