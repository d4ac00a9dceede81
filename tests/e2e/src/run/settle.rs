//! Waiting until continuous processes have caught up.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::World;
use crate::check::Outcome;
use crate::layers::Process;
use crate::records::Records;

/// Compares until all holds or the time is up; a process that has ended meanwhile ends it. The last outcome.
pub fn settle(world: &World<'_>, warehouse: &Path, records: &Records, processes: &mut [Process], limit: Duration) -> Result<Outcome> {
    let begin = Instant::now();
    loop {
        // a table may not be there yet: that, too, is a difference
        let outcome = world.compare(warehouse, records, &[]);
        // a doubled record stays one
        let decided = outcome.as_ref().is_ok_and(|outcome| outcome.holds || outcome.counts.duplicated > 0);
        if decided || begin.elapsed() > limit {
            return outcome;
        }
        for process in processes.iter_mut() {
            if let Some(status) = process.ended()? {
                anyhow::bail!("{} ended by itself with {status}\n{}", process.name, process.last_words());
            }
        }
        std::thread::sleep(Duration::from_secs(2));
    }
}
