//! `tributary sample`: input files for a template, of any size, from a seed.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::failure::{Error, Outcome};
use crate::gym::{Gym, GymOptions};
use crate::start;

/// Writes the files and says what to type next. No file is written over another.
pub fn sample(matches: &ArgMatches) -> Outcome {
    let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| PathBuf::from("data/raw"));
    let options = options(matches);
    let io = |source| Error::Io { action: format!("writing sample files into {}", folder.display()), source };
    let names = Gym::of(options).write(&folder).map_err(io)?;
    let mut said = String::new();
    for name in &names {
        let file = folder.join(name);
        said.push_str(&format!("wrote {}  {} bytes\n", file.display(), fs::metadata(&file).map_err(io)?.len()));
    }
    let as_of = options.first_day + chrono::Days::new(u64::from(options.days));
    let place = if folder == Path::new("data/raw") { String::new() } else { format!(" --base-data-path {}", folder.display()) };
    said.push_str(&format!("next: tributary run --pipeline gym{place} --as-of {as_of}\n"));
    start::print(&said)
}

/// The size that a command line asks for.
pub fn options(matches: &ArgMatches) -> GymOptions {
    let usual = GymOptions::default();
    let number = |name: &str, usual: u32| matches.get_one::<u32>(name).copied().unwrap_or(usual);
    GymOptions {
        seed: matches.get_one::<u64>("seed").copied().unwrap_or(usual.seed),
        users: number("users", usual.users),
        days: number("days", usual.days),
        heart_rate_seconds: number("heart_rate_seconds", usual.heart_rate_seconds),
        files: number("files", usual.files),
        first_day: matches.get_one("first_day").copied().unwrap_or(usual.first_day),
    }
}
