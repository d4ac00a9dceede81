//! The retail pipeline killed at every store operation, restarted, compared with the run that was never killed.

use std::sync::Arc;

use tributary::object_store::memory::InMemory;
use tributary::{OpenOptions, Status};
use tributary_testkit::{Control, Controls, FaultyStore, Mode};

use crate::shop::{self, Drops};

/// Both runs of the shop's life; ends early, with failed datasets in its reports, when the store dies.
async fn live(store: Arc<FaultyStore>, drops: &Drops, options: OpenOptions) {
    let lake = shop::open_with(store, options);
    shop::run(&lake, &drops.first()).await;
    shop::run(&lake, &drops.all()).await;
}

/// A new process on what the killed one left, run until nothing is new.
async fn restart(store: Arc<FaultyStore>, drops: &Drops, options: OpenOptions) -> Result<(), String> {
    let lake = shop::open_with(store.inner(), options);
    shop::run(&lake, &drops.first()).await;
    for _ in 0..2 {
        let report = shop::run(&lake, &drops.all()).await;
        if let Some(failed) = report.datasets.iter().find(|dataset| matches!(dataset.status, Status::Failed | Status::Skipped)) {
            return Err(format!("{} after the restart: {:?} {:?}", failed.table, failed.status, failed.error));
        }
    }
    let report = shop::run(&lake, &drops.all()).await;
    if report.nothing_new() { Ok(()) } else { Err("the third run after the restart still found something new".to_owned()) }
}

struct Tried {
    points: u64,
    killed: u64,
    differences: Vec<String>,
}

/// Kills at every `step`-th mutating call in every mode.
async fn kill_everywhere(step: u64, options: &dyn Fn() -> OpenOptions) -> Tried {
    let drops = Drops::new();
    let whole = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
    live(Arc::clone(&whole), &drops, options()).await;
    let points = whole.counts().mutating;
    let expected = shop::content(&shop::open(whole.inner())).await;
    let mut tried = Tried { points, killed: 0, differences: Vec::new() };
    for point in (1..=points).step_by(usize::try_from(step).expect("small")) {
        for mode in Mode::ALL {
            let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
            store.kill_at(point, mode);
            live(Arc::clone(&store), &drops, options()).await;
            if !store.killed() {
                continue;
            }
            tried.killed += 1;
            let found = match restart(Arc::clone(&store), &drops, options()).await {
                Ok(()) => shop::content(&shop::open(store.inner())).await,
                Err(problem) => {
                    tried.differences.push(format!("{mode:?} at {point}: {problem}"));
                    continue;
                }
            };
            for (table, rows) in &expected {
                if found.get(table) != Some(rows) {
                    let missing: Vec<&String> = rows.iter().filter(|row| !found.get(table).is_some_and(|found| found.contains(row))).collect();
                    let found = found.get(table).map(Vec::len);
                    tried.differences.push(format!("{mode:?} at {point}: {table} has {found:?} rows, expected {}, missing {missing:#?}", rows.len()));
                }
            }
        }
    }
    tried
}

/// Every n-th point; 1 unless the environment asks for a sample.
fn step() -> u64 {
    std::env::var("TRIBUTARY_CRASH_STEP").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_every_store_operation_changes_nothing() {
    let tried = kill_everywhere(step(), &OpenOptions::default).await;
    assert!(tried.differences.is_empty(), "{} differences, the first: {}", tried.differences.len(), tried.differences[0]);
    assert!(tried.killed >= tried.points / step(), "only {} kills for {} points", tried.killed, tried.points);
    println!("kill points {} of {} in 3 modes, 0 differences", tried.points.div_ceil(step()), tried.points);
}

/// Each broken rule must be noticed by the same proof.
async fn noticed(control: Control) {
    let tried = kill_everywhere(step(), &|| OpenOptions { controls: Controls::none().with(control), ..OpenOptions::default() }).await;
    assert!(!tried.differences.is_empty(), "{control:?} was not noticed at any of {} kill points", tried.points);
    println!("control {control:?}: noticed {} times", tried.differences.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_positions_outside_the_commit_is_noticed() {
    noticed(Control::PositionsOutsideCommit).await;
}
