//! `e2e [SECONDS]`: a workload through real databases, Debezium, broker, bronze, silver and gold, drained and continuous, with
//! restarts in the middle; then everything is compared. Exits 0 only if nothing is lost, doubled or different.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tributary_e2e::check::{Outcome, predictions};
use tributary_e2e::layers::{LAYERS, Layers, Process};
use tributary_e2e::run::{Workloads, World, settle};
use tributary_e2e::services::Services;
use tributary_e2e::workload::Profile;

/// Transactions a second in each database.
const PER_SECOND: u32 = 25;
/// How long continuous processes may take to catch up, and drains to end.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    match all() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("e2e failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Result<bool> {
    let seconds = std::env::args().nth(1).map_or(Ok(45), |text| text.parse().context("SECONDS is a number"))?;
    let seed = std::env::args().nth(2).map_or(Ok(1), |text| text.parse().context("SEED is a number"))?;
    let begin = Instant::now();
    let services = Services::up()?;
    println!("services up after {} s", begin.elapsed().as_secs());
    let fidelity = fidelity(&services, Duration::from_secs(seconds), seed).context("fidelity")?;
    println!("fidelity after {} s", begin.elapsed().as_secs());
    let hostile = hostile(&services, Duration::from_secs(seconds / 3), seed).context("hostile")?;
    println!("hostile after {} s; seed {seed}\n", begin.elapsed().as_secs());
    show("hostile, drained", &hostile);
    for (name, outcome) in &fidelity {
        show(name, outcome);
    }
    Ok(hostile.holds && fidelity.iter().all(|(_, outcome)| outcome.holds))
}

fn show(name: &str, outcome: &Outcome) {
    println!("{name}");
    outcome.details.iter().for_each(|detail| println!("  {detail}"));
    outcome.lines.iter().for_each(|line| println!("{line}"));
}

/// Connectors that lose nothing; both ways of running; everything is restarted once.
fn fidelity(services: &Services, length: Duration, seed: u64) -> Result<Vec<(&'static str, Outcome)>> {
    let (world, shop, depot) = World::prepare(services, Profile::Fidelity, seed)?;
    let (drained, continuous) = (world.layers("drained")?, world.layers("continuous")?);
    let mut processes: Vec<Process> =
        LAYERS.iter().map(|layer| continuous.stream(layer, &format!("continuous-{layer}"))).collect::<Result<_>>()?;
    let workloads = Workloads::start(&world, shop, depot, PER_SECOND);
    let over = AtomicBool::new(false);
    let mut counted = thread::scope(|scope| -> Result<Counted> {
        let drains = scope.spawn(|| drain_now_and_then(&drained, &over));
        let disturbed = disturb(&world, &workloads, length);
        over.store(true, Ordering::Relaxed);
        let counted = drains.join().map_err(|_| anyhow::anyhow!("the drains panicked"))??;
        disturbed.map(|()| counted)
    })?;
    let finished = workloads.finish()?;
    let records = world.delivered()?;
    println!("{} transactions, {} statements, {} records", finished.performed.transactions, finished.performed.statements, records.count());
    drain_all(&drained, &mut counted)?;
    let mut drained_outcome = world.compare(&drained.warehouse, &records, &[])?;
    counted.check(&mut drained_outcome);
    settle(&world, &continuous.warehouse, &records, &mut processes, PATIENCE)?;
    for process in &mut processes {
        process.terminate(Duration::from_secs(10))?;
    }
    let continuous_outcome = world.compare(&continuous.warehouse, &records, &[])?;
    world.remove_connectors()?;
    Ok(vec![("fidelity, drained", drained_outcome), ("fidelity, continuous", continuous_outcome)])
}

/// Connectors as people run them: what differs must be what the findings predict.
fn hostile(services: &Services, length: Duration, seed: u64) -> Result<Outcome> {
    let (world, shop, depot) = World::prepare(services, Profile::Hostile, seed)?;
    let drained = world.layers("drained")?;
    let workloads = Workloads::start(&world, shop, depot, PER_SECOND);
    let mut counted = Counted::default();
    thread::sleep(length / 2);
    // a worker that dies sends again what it had not noted down yet
    services.tell("connect", &["kill"])?;
    services.tell("connect", &["start"])?;
    drain_once(&drained, &mut counted)?;
    thread::sleep(length / 2);
    let finished = workloads.finish()?;
    let records = world.delivered()?;
    drain_all(&drained, &mut counted)?;
    let mut outcome = world.compare(&drained.warehouse, &records, &predictions(&finished.truncated))?;
    counted.check(&mut outcome);
    world.remove_connectors()?;
    Ok(outcome)
}

/// A pause of Debezium in both ways, a restart of the broker and one of Postgres, spread over the time.
fn disturb(world: &World<'_>, workloads: &Workloads, length: Duration) -> Result<()> {
    let begin = Instant::now();
    let at = |percent: u32| thread::sleep((length * percent / 100).saturating_sub(begin.elapsed()));
    at(15);
    world.connectors.iter().try_for_each(|connector| world.connect.tell(connector, "pause"))?;
    thread::sleep(Duration::from_secs(2));
    world.connectors.iter().try_for_each(|connector| world.connect.tell(connector, "resume"))?;
    at(30);
    world.services.tell("connect", &["pause"])?;
    thread::sleep(Duration::from_secs(4));
    world.services.tell("connect", &["resume"])?;
    at(50);
    world.services.tell("kafka", &["restart"])?;
    at(75);
    workloads.restart_postgres(world)?;
    at(100);
    Ok(())
}

/// Sums of the reports of bronze runs.
#[derive(Debug, Default)]
struct Counted {
    runs: u64,
    failed: u64,
    rows_in: u64,
    rows_out: u64,
    quarantined: u64,
    ignored: u64,
}

impl Counted {
    fn add(&mut self, report: &serde_json::Value) {
        for dataset in report["datasets"].as_array().into_iter().flatten() {
            let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
            self.rows_in += count(&dataset["rows_in"]);
            self.rows_out += count(&dataset["rows_out"]);
            self.quarantined += count(&dataset["rows_quarantined"]);
            self.ignored += dataset["rows_ignored"].as_object().into_iter().flatten().map(|(_, value)| count(value)).sum::<u64>();
        }
    }

    /// What the reports say must be what is there. A run that failed may have committed what its report does not count.
    fn check(&self, outcome: &mut Outcome) {
        let counts = outcome.counts;
        outcome.details.push(format!(
            "{} drains, {} failed: {} records in, {} rows, {} quarantined, {} ignored",
            self.runs, self.failed, self.rows_in, self.rows_out, self.quarantined, self.ignored
        ));
        let equal = self.rows_in == counts.records && self.ignored == counts.tombstones && self.quarantined == counts.quarantined;
        if self.rows_in != self.rows_out + self.quarantined + self.ignored || (self.failed == 0 && !equal) {
            outcome.holds = false;
            outcome.details.push("the reports do not add up to the topics' records".to_owned());
        }
    }
}

fn drain_now_and_then(layers: &Layers, over: &AtomicBool) -> Result<Counted> {
    let mut counted = Counted::default();
    while !over.load(Ordering::Relaxed) {
        drain_once(layers, &mut counted)?;
        thread::sleep(Duration::from_secs(3));
    }
    Ok(counted)
}

/// One run of each layer; a run may fail for a while when its broker is away. Whether anything was new.
fn drain_once(layers: &Layers, counted: &mut Counted) -> Result<bool> {
    let mut new = false;
    for layer in LAYERS {
        let (code, report) = layers.drain(layer)?;
        if layer == "bronze" {
            counted.runs += 1;
            counted.failed += u64::from(!matches!(code, 0 | 99));
            counted.add(&report);
        }
        match code {
            0 => new = true,
            99 => {}
            // the broker is away
            1 if layer == "bronze" => new = true,
            // nothing is there to read before bronze has run for the first time
            _ if layer != "bronze" && !layers.warehouse.join("main/bronze").is_dir() => {}
            other => bail!("a drain of {layer} ended with {other}: {:#}", report["datasets"]),
        }
    }
    Ok(new)
}

/// Runs until nothing is new, which must come at once after everything has been delivered.
fn drain_all(layers: &Layers, counted: &mut Counted) -> Result<()> {
    let begin = Instant::now();
    while drain_once(layers, counted)? {
        ensure!(begin.elapsed() < PATIENCE, "drains still find something new after {} s", PATIENCE.as_secs());
    }
    Ok(())
}
