//! `fire [MINUTES] [SEED] [--unfenced]`: three bronze processes on one group, silver and gold, all continuous, killed, paused and
//! restarted at random while a workload runs and the broker is bounced; then the comparison of `e2e`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tributary_e2e::fire::{Fire, Survived};
use tributary_e2e::program;
use tributary_e2e::run::{PATIENCE, PER_SECOND, Retail, Workloads, settle};
use tributary_e2e::services::Services;
use tributary_e2e::workload::Profile;

fn main() -> ExitCode {
    program::end("fire", all)
}

fn all(services: &Services) -> Result<bool> {
    let (flags, numbers): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let unfenced = flags.iter().any(|flag| flag == "--unfenced");
    let minutes: f64 = program::number(numbers.first(), "MINUTES", 3.0)?;
    let seed: u64 = program::number(numbers.get(1), "SEED", 1)?;

    let (retail, shop, depot) = Retail::prepare(services, Profile::Fidelity, seed)?;
    let world = &retail.world;
    let mut layers = world.layers("fire")?;
    if unfenced {
        layers.without("bronze", "fencing");
    }
    let mut fire = Fire::light(world, &layers, seed)?;
    let workloads = Workloads::start(&retail, shop, depot, PER_SECOND);
    fire.burn(Duration::try_from_secs_f64(minutes * 60.0).context("MINUTES is a length of time")?)?;
    let finished = workloads.finish()?;
    fire.quench()?;
    let records = world.delivered()?;
    let outcome = settle(world, &layers.warehouse, &records, &mut fire.crew.processes, PATIENCE)?;
    let Survived { kills, pauses, rebalances, broker_restarts, overlaps, exits } = fire.survived()?;
    for process in &mut fire.crew.processes {
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
