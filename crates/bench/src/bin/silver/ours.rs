//! Silver's engine on a lake of its own, in a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tributary_bench::files::bytes_written;
use tributary_bench::orders::{self, Batch, Kinds, Policy};
use tributary_bench::process::{self, Measured};
use tributary_silver_merge::Options;

/// What a run is given beside its lake.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub policy: Policy,
    /// Whether the table has a change feed.
    pub feed: bool,
    /// As of `tributary --memory-limit`.
    pub memory_limit: usize,
    /// One commit for each batch, in one process.
    pub batch_by_batch: bool,
}

/// What a run says at its end.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    inserted: u64,
    updated: u64,
    deleted: u64,
}

/// A run in a process of its own, from start to exit; it must do what the batches say.
pub fn measure(folder: &Path, run: Run, batches: &[Batch]) -> Result<Measured> {
    let bytes_before = bytes_of_lake(folder)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--run").arg(folder).arg(run.policy.word());
    command.arg(run.memory_limit.to_string()).arg(if run.batch_by_batch { "1" } else { "0" });
    let (mut measured, printed) = process::measure(&mut command)?;
    let outcome: Outcome = serde_json::from_str(&printed).with_context(|| format!("a run said `{printed}`"))?;
    let sum = |of: fn(&Kinds) -> u64| batches.iter().map(|batch| of(&batch.kinds())).sum::<u64>();
    let wanted = match run.policy {
        Policy::Current | Policy::Stamped => [sum(|kinds| kinds.inserted), sum(|kinds| kinds.updated), sum(|kinds| kinds.deleted)],
        // an update ends a version and begins one, a delete ends one
        Policy::History => [sum(|kinds| kinds.inserted + kinds.updated), sum(|kinds| kinds.updated + kinds.deleted), 0],
    };
    if [outcome.inserted, outcome.updated, outcome.deleted] != wanted {
        bail!("a run did {outcome:?}; inserted, updated, deleted should be {wanted:?}");
    }
    measured.bytes_written = bytes_of_lake(folder)? - bytes_before;
    if fs::exists(folder.join(orders::SILVER).join("_change_data"))? != run.feed {
        bail!("a change feed was written to a table without, or none to a table with one");
    }
    Ok(measured)
}

/// Of the dataset's table and what silver keeps beside it.
fn bytes_of_lake(lake: &Path) -> Result<u64> {
    let state = lake.join("main/_state");
    let kept = if fs::exists(&state)? { bytes_written(&state)? } else { 0 };
    Ok(bytes_written(&lake.join("main/silver"))? + kept)
}

/// What that process does.
pub async fn run(folder: &Path, run: Run) -> Result<()> {
    let lake = orders::open(folder, run.memory_limit)?;
    let source_versions_max = run.batch_by_batch.then_some(1);
    // as the program deals its limit: half to the queries, half to the engine
    let options = Options { memory_limit: run.memory_limit / 2, source_versions_max, ..Options::default() };
    let report = orders::merge(&lake, run.policy, &options).await?;
    let outcome = Outcome { inserted: report.rows_inserted, updated: report.rows_updated, deleted: report.rows_deleted };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
