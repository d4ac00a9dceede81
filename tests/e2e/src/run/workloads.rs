//! Both databases at work, each from a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow};

use crate::session::{Database, Session};
use crate::workload::{Depot, Performed, Shop, Workload, perform};

use super::Retail;

type Worker = JoinHandle<Result<(Box<dyn Workload>, Performed)>>;

/// Running workloads.
#[derive(Debug)]
pub struct Workloads {
    stop: Arc<AtomicBool>,
    /// Held during each transaction in Postgres: who holds it may restart the server.
    shop_gate: Arc<Mutex<()>>,
    workers: Vec<(Database, Worker)>,
}

/// What the workloads did.
#[derive(Debug, Clone, Default)]
pub struct Finished {
    /// In both databases.
    pub performed: Performed,
    /// Rows that truncates took, as `table: key`.
    pub truncated: Vec<String>,
}

impl Workloads {
    /// Starts them, at so many transactions a second in each database.
    pub fn start(retail: &Retail<'_>, shop: Shop, depot: Depot, per_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let shop_gate = Arc::new(Mutex::new(()));
        let start = |database: &Database, mut workload: Box<dyn Workload>, gate: Arc<Mutex<()>>| {
            let (target, stop) = (database.clone(), Arc::clone(&stop));
            let worker = std::thread::spawn(move || {
                let performed = perform(&target, workload.as_mut(), per_second, &gate, &stop)?;
                Ok((workload, performed))
            });
            (database.clone(), worker)
        };
        let workers = vec![
            start(&retail.shop, Box::new(shop), Arc::clone(&shop_gate)),
            start(&retail.depot, Box::new(depot), Arc::new(Mutex::new(()))),
        ];
        Self { stop, shop_gate, workers }
    }

    /// Ends them, and writes the marker rows behind all they did.
    pub fn finish(self) -> Result<Finished> {
        self.stop.store(true, Ordering::Relaxed);
        let mut finished = Finished::default();
        for (database, worker) in self.workers {
            let (workload, performed) = worker.join().map_err(|_| anyhow!("a workload panicked"))?.context("a workload")?;
            finished.performed.transactions += performed.transactions;
            finished.performed.statements += performed.statements;
            finished.truncated.extend_from_slice(workload.truncated());
            database.execute_all(workload.markers().iter().map(String::as_str))?;
        }
        Ok(finished)
    }

    /// Restarts Postgres between two transactions of the workload, while another one is open that will therefore leave nothing.
    pub fn restart_postgres(&self, retail: &Retail<'_>) -> Result<()> {
        let _held = self.shop_gate.lock().map_err(|_| anyhow!("the workload failed"))?;
        let mut open = Session::open(&retail.shop)?;
        open.execute("begin")?;
        open.execute("update orders set notes = 'lost in a restart', qty = -7")?;
        retail.world.services.tell("postgres", &["restart"])
    }
}
