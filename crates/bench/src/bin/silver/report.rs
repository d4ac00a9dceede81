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

/// The line of a comparison; how often `one`'s seconds go into `other`'s is what counts.
pub fn compared(label: &str, rows: u64, one: (&str, &Measured), other: (&str, &Measured)) {
    let ratio = other.1.seconds / one.1.seconds;
    println!("{label}: {}; {}; ratio {ratio:.2}", words(one.0, rows, one.1), words(other.0, rows, other.1));
}
