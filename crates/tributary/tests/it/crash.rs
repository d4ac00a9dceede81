//! The retail pipeline killed at every store operation, restarted, compared with the run that was never killed; and raced at
//! every commit by a rival. Then each rule is broken on purpose, and the same proof must notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use tributary::object_store::ObjectStore;
use tributary::object_store::memory::InMemory;
use tributary::{OpenOptions, Status};
use tributary_lake::{Commit, Operation, ReadOptions, Reads};
use tributary_testkit::{Control, Controls, FaultyStore, Mode, Rule};

use crate::shop::{self, Drops};

type Content = BTreeMap<String, Vec<String>>;

/// What the proof is run on: the shop, what it comes to when nothing goes wrong, and how lakes are opened.
struct Proof {
    drops: Drops,
    expected: Content,
    points: u64,
    /// Commits to any table, and to `silver.orders`.
    commits: [u64; 2],
    controls: Controls,
    /// Every n-th point.
    step: usize,
}

#[derive(Default)]
struct Tried {
    kills: u64,
    races: u64,
    differences: Vec<String>,
}

impl Proof {
    async fn new(controls: Controls, step: usize) -> Self {
        let drops = Drops::new();
        let whole = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
        let mut proof = Self { drops, expected: Content::new(), points: 0, commits: [0; 2], controls: Controls::none(), step };
        proof.live(whole.clone()).await;
        proof.expected = shop::content(&shop::open(whole.inner())).await;
        proof.points = whole.counts().mutating;
        proof.commits = Rival::ALL.map(|rival| whole.calls().iter().filter(|call| rival.before().matches(call)).count() as u64);
        proof.controls = controls;
        proof
    }

    fn options(&self) -> OpenOptions {
        OpenOptions { controls: self.controls, ..OpenOptions::default() }
    }

    /// Both runs of the shop's life; ends early, with failed datasets in its reports or without one, when the store dies.
    async fn live(&self, store: Arc<dyn ObjectStore>) {
        let lake = shop::open_with(store, self.options());
        for base in self.drops.in_turn() {
            if shop::try_run(&lake, &base).await.is_err() {
                return;
            }
        }
    }

    /// A new process on what is left, run until nothing is new; what differs then from a life without faults.
    async fn settle(&self, store: Arc<dyn ObjectStore>, what: &str) -> Vec<String> {
        let lake = shop::open_with(Arc::clone(&store), self.options());
        let [first, all, after] = self.drops.in_turn();
        for base in [&first, &all, &after, &after] {
            let report = shop::run(&lake, base).await;
            if let Some(failed) = report.datasets.iter().find(|dataset| matches!(dataset.status, Status::Failed | Status::Skipped)) {
                return vec![format!("{what}: then {} {:?}: {:?} {}", failed.table, failed.status, failed.error, failed.reason)];
            }
        }
        if !shop::run(&lake, &after).await.nothing_new() {
            return vec![format!("{what}: then the last run still found something new")];
        }
        let found = shop::content(&shop::open(store)).await;
        let tables = self.expected.iter().filter(|(table, rows)| found.get(*table) != Some(*rows));
        tables
            .map(|(table, rows)| {
                let count = found.get(table).map(Vec::len);
                let missing = rows.iter().find(|row| !found.get(table).is_some_and(|found| found.contains(row)));
                format!("{what}: {table} has {count:?} rows instead of {}, missing {missing:?}", rows.len())
            })
            .collect()
    }

    /// Kills at every point in every mode; then lets rivals be first at every commit. Stops at the first difference when a rule
    /// is broken.
    async fn run(&self) -> Tried {
        let mut tried = Tried::default();
        let enough = |tried: &Tried| self.controls != Controls::none() && !tried.differences.is_empty();
        let undisturbed: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        self.live(Arc::clone(&undisturbed)).await;
        tried.differences.extend(self.settle(undisturbed, "undisturbed").await);
        for (rival, commits) in Rival::ALL.into_iter().zip(self.commits) {
            for commit in (1..=commits).step_by(self.step) {
                if enough(&tried) {
                    return tried;
                }
                let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
                let inner = store.inner();
                let (options, drops) = (self.options(), self.drops.in_turn());
                store.before(rival.before(), commit, move |_| async move {
                    match rival {
                        Rival::Run => {
                            let lake = shop::open_with(inner, options);
                            for base in &drops {
                                shop::run(&lake, base).await;
                            }
                        }
                        Rival::Rewrite => rewrite_orders(inner).await,
                    }
                });
                self.live(store.clone()).await;
                tried.races += 1;
                tried.differences.extend(self.settle(store.inner(), &format!("{rival:?} before commit {commit}")).await);
            }
        }
        for point in (1..=self.points).step_by(self.step) {
            for mode in Mode::ALL {
                if enough(&tried) {
                    return tried;
                }
                let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new())));
                store.kill_at(point, mode);
                self.live(store.clone()).await;
                if store.killed() {
                    tried.kills += 1;
                    tried.differences.extend(self.settle(store.inner(), &format!("{mode:?} at {point}")).await);
                }
            }
        }
        tried
    }
}

/// Who is first at a commit.
#[derive(Debug, Clone, Copy)]
enum Rival {
    /// The same pipeline in another process, to its end.
    Run,
    /// Someone who rewrites the files of `silver.orders` without changing a row.
    Rewrite,
}

impl Rival {
    const ALL: [Self; 2] = [Self::Run, Self::Rewrite];

    /// The commits it is first at.
    fn before(self) -> Rule {
        match self {
            Self::Run => Rule::delta_commit(),
            Self::Rewrite => Rule::delta_commit().on("silver/orders/"),
        }
    }
}

async fn rewrite_orders(store: Arc<dyn ObjectStore>) {
    let lake = shop::open(store);
    let Ok(orders) = lake.table("silver.orders").await else { return };
    let orders = orders.into_inner();
    let rows: Vec<_> = orders.read(ReadOptions::default()).await.expect("a scan").try_collect().await.expect("rows");
    let mut writer = orders.writer(Default::default()).expect("a writer");
    for batch in &rows {
        writer.write(batch).await.expect("written");
    }
    let removes = orders.files().await.expect("files");
    if removes.is_empty() {
        return;
    }
    let commit = Commit {
        operation: Operation::Optimize,
        adds: writer.finish().await.expect("files"),
        removes,
        reads: Reads::Files,
        ..Commit::default()
    };
    let _ = orders.commit(commit).await.expect("an outcome");
}

/// Every n-th point; 1 unless the environment asks for a sample.
fn step() -> usize {
    std::env::var("TRIBUTARY_CRASH_STEP").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// B1, B2, S1: wherever the process dies, whoever is first, the tables are those of a life without faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_every_store_operation_changes_nothing() {
    let proof = Proof::new(Controls::none(), step()).await;
    let tried = proof.run().await;
    assert!(tried.differences.is_empty(), "{} differences, the first: {}", tried.differences.len(), tried.differences[0]);
    let points = proof.points.div_ceil(proof.step as u64);
    assert_eq!(tried.kills, points * 3, "not every kill happened");
    println!(
        "races {} of {}, 0 differences",
        tried.races,
        proof.commits.map(|commits| commits.div_ceil(proof.step as u64)).iter().sum::<u64>()
    );
    println!("kill points {points} of {} in 3 modes, 0 differences", proof.points);
}

/// Each broken rule must be noticed by the same proof.
async fn noticed(control: Control) {
    let tried = Proof::new(Controls::none().with(control), 1).await.run().await;
    assert!(!tried.differences.is_empty(), "{control:?} was not noticed by {} kills and {} races", tried.kills, tried.races);
    println!("control {control:?}: noticed after {} kills and {} races: {}", tried.kills, tried.races, tried.differences[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_positions_outside_the_commit_is_noticed() {
    noticed(Control::PositionsOutsideCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_fencing_off_is_noticed() {
    noticed(Control::FencingOff).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_delete_memory_off_is_noticed() {
    noticed(Control::DeleteMemoryOff).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_no_replan_after_a_conflict_is_noticed() {
    noticed(Control::NoReplanAfterConflict).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_inserts_left_out_of_the_change_feed_is_noticed() {
    noticed(Control::InsertsLeftOutOfChangeFeed).await;
}
