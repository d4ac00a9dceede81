//! A kill at any store operation, then a restart: the same rows, the same change feed, the same memory of what was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use proptest::prelude::*;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_silver_merge::Options;
use tributary_specs::{MergePolicy, SilverSpec};
use tributary_testkit::oracle::Row;
use tributary_testkit::strategy::{ChangeKind, SourceTable, delivery, shuffle};
use tributary_testkit::{Controls, CrashReport, FaultyStore, Frame, KillPoints, Law, Mode, crash_at, example};

use crate::model_laws::{Delivered, Order, columns, delivered, tables};
use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted};

/// Reads that fail once each, besides the kills.
const READS_MAX: usize = 30;

/// So little that what the history has comes to several slices of keys; a run takes all versions in one commit then.
const SLICED: usize = 2048;

/// What remains to be delivered after the crash: events that only the memory of earlier ones can place.
const LATE_MAX: usize = 4;

/// A history with everything in it: deletes, a key change with unsent values, keys that come back, and a delivery in a few
/// batches.
pub fn eventful(order: Order, vectors: bool) -> Delivered {
    let table = SourceTable { truncates: false, keys: 4, ..SourceTable::orders() };
    let strategy = delivered(proptest::strategy::Just(table), delivery());
    let is_eventful = |case: &Delivered| {
        let changes = &case.history.changes;
        let deleted = changes.iter().filter(|change| change.kind == ChangeKind::Delete && change.moved_to.is_none()).count();
        let unsent = changes.iter().any(|change| change.moved_from.is_some() && !change.unavailable.is_empty());
        let batches = case.plan.batches(&case.history.partitions()).len();
        deleted >= 2 && unsent && (4..7).contains(&batches) && changes.len() > 14
    };
    let case = (0..50_000).map(|seed| example(&strategy, seed)).find(is_eventful);
    Delivered { order, vectors, feed: true, ..case.expect("an eventful history among the first fifty thousand") }
}

/// The world before the run: every batch but the last is in bronze, a commit each.
async fn bronze(dataset: &SilverSpec, batches: &[Frame]) -> Result<InMemory> {
    let store = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store) as _, Controls::none());
    for batch in batches {
        world.append(&dataset.sources[0], batch).await?;
    }
    Ok(store.fork())
}

/// What readers see after the run, and after late events that need the memory of deletes and losers.
#[derive(Debug, PartialEq)]
pub struct Seen {
    rows: Vec<Row>,
    feed: Result<(), String>,
    after_late_events: Vec<Row>,
}

async fn see(store: Arc<dyn ObjectStore>, dataset: &SilverSpec, late: &Frame, columns: &[&str]) -> Result<Seen> {
    let world = World::on(store, Controls::none());
    let rows = sorted(&world.rows(&dataset.table, columns).await?);
    let feed = feed_replays_to_the_table(&world, &dataset.table).await.map_err(|why| why.to_string());
    world.append(&dataset.sources[0], late).await?;
    world.run(dataset).await?;
    Ok(Seen { rows, feed, after_late_events: sorted(&world.rows(&dataset.table, columns).await?) })
}

/// Kills runs of a dataset over an eventful history; broken rules hold for the run only, never for what looks at its result.
pub async fn proof(policy: MergePolicy, order: Order, vectors: bool, controls: Controls, kills: KillPoints) -> Result<CrashReport> {
    proof_within(Options::default().memory_limit, policy, order, vectors, controls, kills).await.map(|(report, _)| report)
}

/// The same, where a slice of keys holds so many bytes; with it, how many runs took several slices for a commit.
async fn proof_within(
    memory_limit: usize,
    policy: MergePolicy,
    order: Order,
    vectors: bool,
    controls: Controls,
    kills: KillPoints,
) -> Result<(CrashReport, usize)> {
    let case = eventful(order, vectors);
    let mut dataset = case.dataset(policy.clone());
    let mut columns: Vec<String> = case.model().columns;
    match policy {
        MergePolicy::ScdType2 { .. } => columns.extend(["__START_AT".to_owned(), "__END_AT".to_owned()]),
        MergePolicy::Append => (dataset.keys, dataset.sequence_by) = (Vec::new(), Vec::new()),
        _ => {}
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let batches = case.batches();
    let late = late(&case);
    let prepared = bronze(&dataset, &batches).await?;
    let versions = if memory_limit == SLICED { None } else { Some(1) };
    let options = Options { source_versions_max: versions, memory_limit, ..Options::default() };
    let sliced = AtomicUsize::new(0);
    let report = crash_at(
        kills,
        KillPoints::Sampled { points: READS_MAX, seed: 1 },
        async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
        async |store| {
            let report = tributary_silver_merge::run(&World::on(store, controls).lake, &dataset, &options).await?;
            sliced.fetch_add(usize::from(report.reason.contains("slices of keys")), Ordering::Relaxed);
            Ok::<_, tributary_silver_merge::Error>(())
        },
        async |store| see(store, &dataset, &late, &columns).await.map_err(|why| format!("{why:#}")),
    )
    .await;
    Ok((report, sliced.into_inner()))
}

/// Upserts of the history again, as a restart of the connector would send them: all are older than what is there.
fn late(case: &Delivered) -> Frame {
    let upserts = case.history.changes.iter().filter(|change| change.after.is_some()).take(LATE_MAX);
    tributary_testkit::strategy::bronze_frame(&case.history.table, upserts, 0)
}

/// A run that is killed at its n-th mutating call.
#[derive(Debug, Clone, Copy)]
struct Kill {
    at: u64,
    mode: Mode,
    /// Whether somebody starts it again before more arrives.
    restarted: bool,
}

fn kills() -> impl Strategy<Value = Vec<Vec<Kill>>> {
    let kill = (1..9u64, proptest::sample::select(Mode::ALL.to_vec()), proptest::bool::weighted(0.5));
    let kill = kill.prop_map(|(at, mode, restarted)| Kill { at, mode, restarted });
    proptest::collection::vec(proptest::collection::vec(kill, 0..3), 1..8)
}

#[test]
fn law_kills_again_and_again_while_more_arrives_change_nothing() {
    let cases = (delivered(tables(), prop_oneof![delivery(), shuffle()]), kills(), proptest::bool::ANY);
    Law::new("kills while more arrives").within(Duration::from_secs(15)).holds(&cases, |(case, kills, scd2), tried| {
        let (policy, more): (MergePolicy, &[&str]) = if scd2 { (SCD2, &["__START_AT", "__END_AT"]) } else { (MergePolicy::ScdType1, &[]) };
        let (dataset, model, events) = (case.dataset(policy), case.model(), case.events());
        let mut expected = if scd2 { model.scd2(&events) } else { model.scd1(&events) };
        expected.sort();
        let outcome: Result<()> = block_on(async {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            for (batch, kills) in case.batches().iter().zip(kills.iter().cycle()) {
                World::on(Arc::clone(&store), Controls::none()).append(&dataset.sources[0], batch).await?;
                tried.add("batches", 1);
                for kill in kills {
                    let faulty = FaultyStore::new(Arc::clone(&store));
                    faulty.kill_at(kill.at, kill.mode);
                    let _ = World::on(Arc::new(faulty.clone()), Controls::none()).run_in_slices(&dataset, case.memory_limit).await;
                    tried.add("kills", usize::from(faulty.killed()));
                    if kill.restarted {
                        World::on(Arc::clone(&store), Controls::none()).run(&dataset).await?;
                    }
                }
            }
            let world = World::on(store, Controls::none());
            world.run(&dataset).await?;
            let columns = columns(&model, more);
            let found = sorted(&world.rows(&dataset.table, &columns.iter().map(String::as_str).collect::<Vec<_>>()).await?);
            anyhow::ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
            feed_replays_to_the_table(&world, &dataset.table).await
        });
        outcome.map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
}

fn holds(what: &str, policy: MergePolicy, order: Order, vectors: bool) {
    let report = block_on(proof(policy, order, vectors, Controls::none(), KillPoints::All)).unwrap();
    assert!(report.holds(), "{what}: {}\n{}", report.differences.len(), report.differences.join("\n\n"));
    println!("silver {what}: {report}");
}

#[test]
fn a_kill_anywhere_leaves_current_rows_as_they_would_have_been() {
    holds("current rows by position", MergePolicy::ScdType1, Order::Position, true);
    holds("current rows by a stamp, with cuts", MergePolicy::ScdType1, Order::Stamp, true);
    holds("current rows by a stamp, files rewritten", MergePolicy::ScdType1, Order::Stamp, false);
}

#[test]
fn a_kill_anywhere_leaves_history_as_it_would_have_been() {
    holds("history by position", SCD2, Order::Position, true);
    holds("history by a stamp, with cuts", SCD2, Order::Stamp, true);
    holds("history by position, files rewritten", SCD2, Order::Position, false);
}

#[test]
fn a_kill_between_slices_of_keys_leaves_what_one_slice_would_have() {
    for (policy, vectors) in [(MergePolicy::ScdType1, true), (MergePolicy::ScdType1, false), (SCD2, true)] {
        let what = format!("{policy:?} in slices");
        let proof = proof_within(SLICED, policy, Order::Stamp, vectors, Controls::none(), KillPoints::All);
        let (report, sliced) = block_on(proof).unwrap();
        assert!(report.holds(), "{what}: {}\n{}", report.differences.len(), report.differences.join("\n\n"));
        assert!(sliced > 1, "no run took several slices");
        println!("silver {what}: {report}");
    }
}

#[test]
fn a_kill_anywhere_appends_every_row_once() {
    holds("appended rows", MergePolicy::Append, Order::Position, true);
}
