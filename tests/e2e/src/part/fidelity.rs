//! Connectors that lose nothing; drained and continuous; everything is restarted once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::operation;
use crate::check::Outcome;
use crate::layers::Process;
use crate::run::{Drains, PATIENCE, PER_SECOND, Retail, Workloads, settle};
use crate::services::Services;
use crate::workload::Profile;

pub(super) fn run(services: &Services, length: Duration, seed: u64) -> Result<Vec<(&'static str, Outcome)>> {
    let (retail, shop, depot) = Retail::prepare(services, Profile::Fidelity, seed)?;
    let world = &retail.world;
    let (drained, continuous) = (world.layers("drained")?, world.layers("continuous")?);
    let mut processes: Vec<Process> = vec![
        continuous.stream_with("bronze", "continuous-bronze", operation::METRICS)?,
        continuous.stream("silver", "continuous-silver")?,
        continuous.stream("gold", "continuous-gold")?,
    ];
    let workloads = Workloads::start(&retail, shop, depot, PER_SECOND);
    let over = AtomicBool::new(false);
    let mut drains = Drains::new(&drained);
    let mut operated = Outcome::holding();
    thread::scope(|scope| -> Result<()> {
        let now_and_then = scope.spawn(|| drains.until(&over));
        let disturbed = disturb(&retail, &workloads, length, || operation::metrics_at_work(world, &processes[0], &mut operated));
        over.store(true, Ordering::Relaxed);
        now_and_then.join().map_err(|_| anyhow::anyhow!("the drains panicked"))??;
        disturbed
    })?;
    let finished = workloads.finish()?;
    let records = world.delivered()?;
    println!("{} transactions, {} statements, {} records", finished.performed.transactions, finished.performed.statements, records.count());
    drains.all()?;
    let mut of_drained = world.compare(&drained.warehouse, &records, &[])?;
    drains.check(&mut of_drained);
    let of_continuous = settle(world, &continuous.warehouse, &records, &mut processes, PATIENCE)?;
    operation::metrics_at_rest(world, &processes[0], records.count(), &mut operated)?;
    for process in &mut processes {
        process.terminate(Duration::from_secs(10))?;
    }
    operation::doctor(world, &drained, &mut operated)?;
    world.remove_connectors()?;
    Ok(vec![("operation", operated), ("fidelity, drained", of_drained), ("fidelity, continuous", of_continuous)])
}

/// A pause of Debezium in both ways, a restart of the broker and one of Postgres, spread over the time; a look in between.
fn disturb(retail: &Retail<'_>, workloads: &Workloads, length: Duration, look: impl FnOnce() -> Result<()>) -> Result<()> {
    let world = &retail.world;
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
    at(45);
    look()?;
    at(50);
    world.services.tell("kafka", &["restart"])?;
    at(75);
    workloads.restart_postgres(retail)?;
    at(100);
    Ok(())
}
