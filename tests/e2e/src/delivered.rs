//! Waiting until Debezium has delivered everything that the databases have committed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::connect::Connect;
use crate::records::Records;

/// Reads the topics until every partition shows a marker row and nothing more comes; starts failed connectors again.
pub fn wait(records: &mut Records, connect: &Connect, connectors: &[&str], limit: Duration) -> Result<u32> {
    let begin = Instant::now();
    let mut revived = 0;
    let mut last = 0;
    loop {
        if let Err(error) = records.read_on() {
            // a broker that was just bounced may not answer yet
            ensure!(begin.elapsed() < limit, "the topics cannot be read: {error:#}");
            std::thread::sleep(Duration::from_secs(2));
            continue;
        }
        let count = records.count();
        if records.all_marked() && count == last {
            return Ok(revived);
        }
        last = count;
        for connector in connectors {
            if let Some(why) = connect.revive(connector)? {
                println!("connector {connector} had failed and was started again: {why}");
                revived += 1;
            }
        }
        ensure!(begin.elapsed() < limit, "after {} s the topics do not show the last rows yet ({count} records)", limit.as_secs());
        std::thread::sleep(Duration::from_secs(2));
    }
}
