//! `e2e [SECONDS] [SEED] [PART..]`: a workload through real databases, Debezium, broker, bronze, silver and gold, part after part
//! (all unless said); then everything is compared. Exits 0 only if nothing is lost, doubled or different.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tributary_e2e::check::Outcome;
use tributary_e2e::part::Part;
use tributary_e2e::program;
use tributary_e2e::services::Services;

fn main() -> ExitCode {
    program::end("e2e", all)
}

fn all(services: &Services) -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = program::number(arguments.first(), "SECONDS", 45)?;
    let seed = program::number(arguments.get(1), "SEED", 1)?;
    let named: Vec<Part> = arguments.iter().skip(2).map(|name| Part::named(name)).collect::<Result<_>>()?;
    let parts = if named.is_empty() { Part::ALL.to_vec() } else { named };

    let begin = Instant::now();
    let mut outcomes: Vec<(&str, Outcome)> = Vec::new();
    for part in parts {
        let found = part.run(services, Duration::from_secs(seconds), seed).with_context(|| part.name())?;
        println!("{} after {} s", part.name(), begin.elapsed().as_secs());
        // the first part has the promised lines: they come last
        outcomes.splice(0..0, found);
    }
    println!("seed {seed}\n");
    for (name, outcome) in &outcomes {
        println!("{name}");
        outcome.details.iter().for_each(|detail| println!("  {detail}"));
        outcome.lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(outcomes.iter().all(|(_, outcome)| outcome.holds))
}
