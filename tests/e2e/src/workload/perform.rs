//! Transactions into a database, at a pace, until told to stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::{Ending, LEAST, Transaction, Workload};
use crate::session::{Database, Refused, Session};

/// What was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Performed {
    /// Transactions, rolled back ones included.
    pub transactions: u64,
    /// Their statements.
    pub statements: u64,
}

/// Runs transactions until `stop`, [`LEAST`] at least, so many a second. `gate` is held during a transaction: who holds it may restart the server.
pub fn perform(
    database: &Database,
    workload: &mut dyn Workload,
    per_second: u32,
    gate: &Mutex<()>,
    stop: &AtomicBool,
) -> Result<Performed> {
    let mut done = Performed::default();
    let mut session = Session::open(database)?;
    let pace = Duration::from_secs(1) / per_second.max(1);
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) || done.transactions < LEAST {
        let transaction = workload.next();
        let held = gate.lock().ok().context("another part of the run failed")?;
        if let Err(refused) = run(&mut session, &transaction) {
            if !refused.gone {
                return Err(refused.into());
            }
            // the server was restarted between two transactions: the session is new, the transaction the same
            session = Session::open(database)?;
            run(&mut session, &transaction)?;
        }
        drop(held);
        done.transactions += 1;
        done.statements += transaction.statements.len() as u64;
        due += pace;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due = due.max(Instant::now() - Duration::from_secs(1));
    }
    Ok(done)
}

fn run(session: &mut Session, transaction: &Transaction) -> Result<(), Refused> {
    let (begin, end) = match transaction.ending {
        Ending::Commit => (Some("begin"), Some("commit")),
        Ending::Rollback => (Some("begin"), Some("rollback")),
        Ending::Each => (None, None),
    };
    begin
        .into_iter()
        .chain(transaction.statements.iter().map(String::as_str))
        .chain(end)
        .try_for_each(|statement| session.execute(statement))
}
