//! Connectors as people run them, their worker killed twice: what differs must be what the findings predict.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::check::{Outcome, of_hostile};
use crate::run::{Drains, PER_SECOND, Retail, Workloads};
use crate::services::Services;
use crate::workload::Profile;

pub(super) fn run(services: &Services, length: Duration, seed: u64) -> Result<Outcome> {
    let (retail, shop, depot) = Retail::prepare(services, Profile::Hostile, seed)?;
    let world = &retail.world;
    let drained = world.layers("drained")?;
    let workloads = Workloads::start(&retail, shop, depot, PER_SECOND);
    let mut drains = Drains::new(&drained);
    for _ in 0..2 {
        thread::sleep(length / 3);
        // Killed before, MariaDB's connector takes its snapshot again, and fails in it for good: a row has the year 0000 by now.
        world.wait_for_stream()?;
        // a worker that dies sends again what it had not noted down yet
        services.tell("connect", &["kill"])?;
        services.tell("connect", &["start"])?;
        drains.once()?;
    }
    thread::sleep(length / 3);
    let finished = workloads.finish()?;
    let records = world.delivered()?;
    drains.all()?;
    let mut outcome = world.compare(&drained.warehouse, &records, &of_hostile(&finished.truncated))?;
    drains.check(&mut outcome);
    world.remove_connectors()?;
    Ok(outcome)
}
