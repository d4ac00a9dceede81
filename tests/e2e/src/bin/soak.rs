//! `soak [MINUTES] [SEED] [--without RULE]`: two runs of silver in a loop and one that goes on, two appenders and an optimizer on
//! the same tables, killed and stopped at random while changes come; then the comparison.
//!
//! It is also three of those processes: `soak appender|foreign-appender|optimizer WAREHOUSE FOLDER`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tributary_e2e::program;
use tributary_e2e::soak::journal::Journal;
use tributary_e2e::soak::{Soak, Soaked, appender, optimizer};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let held = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [role @ ("appender" | "foreign-appender" | "optimizer"), warehouse, folder] => {
            take_part(role, Path::new(warehouse), Path::new(folder))
        }
        _ => all(&arguments),
    };
    match held {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?.block_on(future)
}

fn take_part(role: &str, warehouse: &Path, folder: &Path) -> Result<bool> {
    let journal = Journal::of(folder, role);
    block_on(async {
        match role {
            "optimizer" => optimizer::run(warehouse, &journal).await,
            _ => appender::run(warehouse, &journal, role == "foreign-appender").await,
        }
    })?;
    Ok(true)
}

fn all(arguments: &[String]) -> Result<bool> {
    let without = arguments.iter().position(|argument| argument == "--without").and_then(|at| arguments.get(at + 1));
    let numbers: Vec<&String> = arguments.iter().take_while(|argument| !argument.starts_with("--")).collect();
    let minutes: f64 = program::number(numbers.first().copied(), "MINUTES", 3.0)?;
    let seed: u64 = program::number(numbers.get(1).copied(), "SEED", 1)?;
    let length = Duration::try_from_secs_f64(minutes * 60.0).context("MINUTES is a length of time")?;
    let folder = std::env::temp_dir().join(format!("tributary-soak-{}", std::process::id()));
    let soak = Soak::new(&folder, seed, without.map(String::as_str))?;
    let Soaked { changes, tally, optimized: [optimized, vectors, lost_races], appended: [appended, foreign], kills, pauses, found } =
        block_on(soak.run(length, seed)).inspect_err(|_| println!("everything is kept in {}", folder.display()))?;

    found.lines.iter().chain(&found.feeds).for_each(|line| println!("{line}"));
    tally.failed.iter().for_each(|failed| println!("failed: {failed}"));
    println!("{kills} kills, {pauses} pauses; seed {seed}");
    println!(
        "{appended} rows appended by others, {foreign} by delta-rs; {optimized} optimizations ({vectors} of deletion vectors), {lost_races} that lost a race"
    );
    println!("at most {} races lost in one run of one table, {} runs gave way to another", tally.conflicts_max, tally.gave_way);
    let tried = [
        changes as u64,
        tally.runs,
        tally.conflicts,
        kills.into(),
        pauses.into(),
        appended as u64,
        foreign as u64,
        optimized as u64,
        vectors as u64,
    ];
    let tried = tried.iter().all(|count| *count > 0);
    if !tried {
        println!("too little happened to prove anything: give it more time");
    }
    let holds =
        tried && tally.failed.is_empty() && tally.retries_are_bounded() && found.feeds.is_empty() && found.lost + found.doubled == 0;
    if holds {
        std::fs::remove_dir_all(&folder).context("removing the lake")?;
    } else {
        println!("everything is kept in {}", folder.display());
    }
    println!(
        "soak: {minutes} min, {changes} changes, {} runs, {} conflicts, failed runs {}, lost {}, doubled {} of {} rows",
        tally.runs,
        tally.conflicts + lost_races as u64,
        tally.failed.len(),
        found.lost,
        found.doubled,
        found.rows
    );
    Ok(holds)
}
