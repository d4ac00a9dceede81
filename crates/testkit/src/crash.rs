//! Does a stop at any step change the result?

use std::fmt;
use std::sync::Arc;

use object_store::ObjectStore;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::store::{FaultyStore, Mode};

/// At which calls a run meets a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillPoints {
    /// At every one.
    All,
    /// At this many, drawn by the seed.
    Sampled {
        /// How many at most.
        points: usize,
        /// Draws them.
        seed: u64,
    },
}

/// What a crash proof tried and found.
#[derive(Debug, Clone, Default)]
pub struct CrashReport {
    /// Mutating calls of the run that was never killed.
    pub mutating_calls: u64,
    /// Of these, how many were kill points.
    pub points: u64,
    /// Killed runs: points times modes.
    pub kills: u64,
    /// Reads of the run that was never killed.
    pub reads: u64,
    /// Of these, how many failed once each, in runs of their own.
    pub read_faults: u64,
    /// Every run that ended otherwise than the one that was never killed, with its kill point.
    pub differences: Vec<String>,
}

impl CrashReport {
    /// Whether something was tried and nothing was found.
    pub fn holds(&self) -> bool {
        self.kills > 0 && self.differences.is_empty()
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "read faults {} of {}; kill points {} of {} in {} modes, {} differences",
            self.read_faults,
            self.reads,
            self.points,
            self.mutating_calls,
            Mode::ALL.len(),
            self.differences.len()
        )
    }
}

/// [`crash_at`] with the same points for kills and for read faults.
pub async fn crash<T, E>(
    points: KillPoints,
    store: impl AsyncFn() -> Arc<dyn ObjectStore>,
    run: impl AsyncFn(Arc<dyn ObjectStore>) -> Result<(), E>,
    see: impl AsyncFn(Arc<dyn ObjectStore>) -> T,
) -> CrashReport
where
    T: PartialEq + fmt::Debug,
    E: fmt::Debug,
{
    crash_at(points, points, store, run, see).await
}

/// Kills a run at its mutating calls, restarts it on what is left, and compares what readers then see.
///
/// `store` makes the world before the run (the same every time). `run` is the whole work with fresh process state on a store;
/// it must end when the store refuses everything, and must be safe to repeat. `see` reads what matters afterwards. Runs are
/// killed in all three [`Mode`]s at each of the `kills`; besides, each of the `reads` fails once in a run of its own. After a
/// fault the run is started again, at most three times, until it ends well.
pub async fn crash_at<T, E>(
    kills: KillPoints,
    reads: KillPoints,
    store: impl AsyncFn() -> Arc<dyn ObjectStore>,
    run: impl AsyncFn(Arc<dyn ObjectStore>) -> Result<(), E>,
    see: impl AsyncFn(Arc<dyn ObjectStore>) -> T,
) -> CrashReport
where
    T: PartialEq + fmt::Debug,
    E: fmt::Debug,
{
    let unharmed = FaultyStore::new(store().await);
    run(Arc::new(unharmed.clone())).await.expect("the run that is never killed ends well");
    let expected = see(unharmed.inner()).await;
    let calls = unharmed.counts();
    let mut report = CrashReport { mutating_calls: calls.mutating, reads: calls.reads, ..CrashReport::default() };

    for point in chosen(kills, calls.mutating) {
        report.points += 1;
        for mode in Mode::ALL {
            report.kills += 1;
            let faulty = FaultyStore::new(store().await);
            faulty.kill_at(point, mode);
            let _ = run(Arc::new(faulty.clone())).await;
            let killed = if faulty.killed() { String::new() } else { " (never reached)".to_owned() };
            let at = format!("killed {mode:?} mutating call {point}{killed}");
            report.differences.extend(restart_and_compare(&at, &faulty, &run, &see, &expected).await);
        }
    }
    for read in chosen(reads, calls.reads) {
        report.read_faults += 1;
        let faulty = FaultyStore::new(store().await);
        faulty.fail_read_at(read);
        let _ = run(Arc::new(faulty.clone())).await;
        report.differences.extend(restart_and_compare(&format!("read {read} failed once"), &faulty, &run, &see, &expected).await);
    }
    report
}

async fn restart_and_compare<T, E>(
    at: &str,
    faulty: &FaultyStore,
    run: &impl AsyncFn(Arc<dyn ObjectStore>) -> Result<(), E>,
    see: &impl AsyncFn(Arc<dyn ObjectStore>) -> T,
    expected: &T,
) -> Option<String>
where
    T: PartialEq + fmt::Debug,
    E: fmt::Debug,
{
    const RESTARTS_MAX: usize = 3;
    let mut failure = None;
    for _ in 0..RESTARTS_MAX {
        match run(faulty.inner()).await {
            Ok(()) => {
                let seen = see(faulty.inner()).await;
                return (seen != *expected).then(|| format!("{at}: {seen:?}\ninstead of {expected:?}"));
            }
            Err(error) => failure = Some(error),
        }
    }
    Some(format!("{at}: the restarted run fails: {failure:?}"))
}

/// Which of `1..=calls` are taken, in order.
fn chosen(points: KillPoints, calls: u64) -> Vec<u64> {
    let all: Vec<u64> = (1..=calls).collect();
    match points {
        KillPoints::All => all,
        KillPoints::Sampled { points, seed } => {
            let mut some: Vec<u64> = all.choose_multiple(&mut StdRng::seed_from_u64(seed), points).copied().collect();
            some.sort_unstable();
            some
        }
    }
}

/// One kill point among this many calls, drawn by a seed: for simulations.
pub fn random_kill_point(calls: u64, seed: u64) -> (u64, Mode) {
    let mut rng = StdRng::seed_from_u64(seed);
    (rng.random_range(1..=calls.max(1)), *Mode::ALL.choose(&mut rng).unwrap_or(&Mode::Before))
}
