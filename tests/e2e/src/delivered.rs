//! Waiting until Debezium has delivered everything that the databases have committed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::connect::Connect;
use crate::records::Records;

/// How often connectors that failed are started again, as a person on duty would, before it is held that they fail for good.
const RESTARTS_MAX: u32 = 5;

/// Reads the topics until every partition shows a marker row and nothing more comes; starts failed connectors again and says how
/// often. Gives up when nothing has come for `limit`.
pub fn wait(records: &mut Records, connect: &Connect, connectors: &[String], limit: Duration) -> Result<u32> {
    let mut moved = Instant::now();
    let mut restarts = 0;
    let mut last = 0;
    loop {
        if let Err(error) = records.read_on() {
            // a broker that was just bounced may not answer yet
            ensure!(moved.elapsed() < limit, "the topics cannot be read: {error:#}");
            std::thread::sleep(Duration::from_secs(2));
            continue;
        }
        let count = records.count();
        if records.all_marked() && count == last {
            return Ok(restarts);
        }
        if count != last {
            moved = Instant::now();
        }
        last = count;
        for connector in connectors {
            if let Some(why) = connect.revive(connector)? {
                ensure!(restarts < RESTARTS_MAX, "connector {connector} fails for good: {why}");
                println!("connector {connector} had failed and was started again: {why}");
                restarts += 1;
            }
        }
        ensure!(
            moved.elapsed() < limit,
            "nothing has come for {} s and the topics do not show the last rows ({count} records)",
            limit.as_secs()
        );
        std::thread::sleep(Duration::from_secs(2));
    }
}
