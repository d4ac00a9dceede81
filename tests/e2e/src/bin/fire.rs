//! `fire [MINUTES] [SEED] [--unfenced]`: three bronze processes on one group, silver and gold, all continuous, killed, paused and
//! restarted at random while a workload runs and the broker is bounced; then the comparison of `e2e`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tributary_e2e::fire::{Fire, Survived};
use tributary_e2e::run::{Workloads, World, settle};
use tributary_e2e::services::Services;
use tributary_e2e::workload::Profile;

/// Transactions a second in each database.
const PER_SECOND: u32 = 25;
/// How long the processes may take to catch up in the end.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    match all() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fire failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Result<bool> {
    let (flags, numbers): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let unfenced = flags.iter().any(|flag| flag == "--unfenced");
    let minutes: f64 = numbers.first().map_or(Ok(3.0), |text| text.parse().context("MINUTES is a number"))?;
    let seed: u64 = numbers.get(1).map_or(Ok(1), |text| text.parse().context("SEED is a whole number"))?;

    let services = Services::up()?;
    let (world, shop, depot) = World::prepare(&services, Profile::Fidelity, seed)?;
    let mut layers = world.layers("fire")?;
    if unfenced {
        layers.bronze = "unfenced".to_owned();
    }
    let mut fire = Fire::light(&world, &layers, seed)?;
    let workloads = Workloads::start(&world, shop, depot, PER_SECOND);
    fire.burn(Duration::try_from_secs_f64(minutes * 60.0).context("MINUTES is a length of time")?)?;
    let finished = workloads.finish()?;
    fire.quench()?;
    let records = world.delivered()?;
    let outcome = settle(&world, &layers.warehouse, &records, &mut fire.processes, PATIENCE)?;
    let Survived { kills, pauses, rebalances, broker_restarts, overlaps, exits } = fire.survived()?;
    for process in &mut fire.processes {
        process.terminate(Duration::from_secs(10))?;
    }
    println!("{} transactions, {} statements; seed {seed}", finished.performed.transactions, finished.performed.statements);
    outcome.details.iter().for_each(|detail| println!("  {detail}"));
    println!("  {overlaps} drains beside the group, {exits} processes gave up by themselves and were started again");
    outcome.lines.iter().for_each(|line| println!("{line}"));
    println!("survived {kills} kills, {pauses} pauses, {rebalances} rebalances, {broker_restarts} broker restarts");
    world.remove_connectors()?;
    let tried = [kills, pauses, rebalances, broker_restarts].iter().all(|count| *count > 0);
    if !tried {
        println!("too little happened to prove anything: give it more time");
    }
    Ok(outcome.holds && tried)
}
