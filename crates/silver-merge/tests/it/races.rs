//! Another writer commits just before us: a compaction of the very files we change, or another run of the same dataset.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use proptest::prelude::*;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{Commit, CommitOutcome, Operation, ReadOptions, Reads, WriterOptions};
use tributary_specs::{MergePolicy, SilverSpec, TableName};
use tributary_testkit::oracle::Row;
use tributary_testkit::strategy::{SourceTable, delivery};
use tributary_testkit::{Controls, FaultyStore, Frame, Law, Rule};

use crate::model_laws::{Delivered, columns, delivered};
use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted};

/// Who is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// All live rows of the target are written into one file; no row changes.
    Compaction,
    /// Another process runs the dataset to its end.
    Run,
}

/// Writes the table's live rows into one new file, as an optimizer would.
pub async fn compact(store: Arc<dyn ObjectStore>, name: &TableName) -> Result<()> {
    let world = World::on(store, Controls::none());
    let table = world.table(name).await?;
    let files = table.files().await?;
    let batches: Vec<RecordBatch> = table.read(ReadOptions::default()).await?.try_collect().await?;
    let mut writer = table.writer(WriterOptions::default())?;
    for batch in &batches {
        writer.write(batch).await?;
    }
    let commit =
        Commit { operation: Operation::Optimize, adds: writer.finish().await?, removes: files, reads: Reads::Files, ..Commit::default() };
    let outcome = table.commit(commit).await?;
    ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}");
    Ok(())
}

/// The path of a table's log, as every store call names it.
fn log_of(name: &TableName) -> String {
    format!("/{}/{}/_delta_log", name.schema, name.name)
}

/// The rival's whole work, as another process would do it: on a thread and a runtime of its own.
fn commit_first(rival: Rival, store: Arc<dyn ObjectStore>, dataset: SilverSpec) {
    let work = move || {
        block_on(async {
            match rival {
                // Before the first commit there is no table to compact.
                Rival::Compaction => drop(compact(store, &dataset.table).await),
                Rival::Run => drop(World::on(store, Controls::none()).run(&dataset).await.expect("the rival's run")),
            }
        });
    };
    std::thread::spawn(work).join().expect("the rival's thread");
}

/// Delivers a history; before the n-th commit of the target the rival commits. What is there in the end must be as if nobody
/// else had been there.
pub fn lose_a_race(
    controls: Controls,
    dataset: &SilverSpec,
    batches: &[Frame],
    rival: Rival,
    n: u64,
    columns: &[String],
    mut expected: Vec<Row>,
) -> Result<u64> {
    block_on(async {
        let faulty = FaultyStore::new(Arc::new(InMemory::new()));
        let world = World::on(Arc::new(faulty.clone()), controls);
        let (inner, rivals_dataset) = (faulty.inner(), dataset.clone());
        let staged = Rule::delta_commit().on(log_of(&dataset.table));
        faulty.before(staged, n, move |_| async move { commit_first(rival, inner, rivals_dataset) });
        let mut conflicts = 0;
        for batch in batches {
            world.append(&dataset.sources[0], batch).await?;
            conflicts += world.run(dataset).await?.conflicts;
        }
        let found = sorted(&world.rows(&dataset.table, &columns.iter().map(String::as_str).collect::<Vec<_>>()).await?);
        expected.sort();
        ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
        feed_replays_to_the_table(&world, &dataset.table).await?;
        Ok(conflicts)
    })
}

pub fn races() -> impl Strategy<Value = (Delivered, Rival, u64)> {
    let table = SourceTable { truncates: false, keys: 4, ..SourceTable::orders() };
    (delivered(Just(table), delivery()), prop_oneof![Just(Rival::Compaction), Just(Rival::Run)], 2..6u64)
}

fn as_case<T>(outcome: Result<T>) -> Result<T, TestCaseError> {
    outcome.map_err(|why| TestCaseError::fail(format!("{why:#}")))
}

#[test]
fn law_a_lost_race_changes_nothing_of_the_result() {
    let cases = (races(), any::<bool>());
    let law = Law::new("a rival commits first").within(std::time::Duration::from_secs(12));
    let tried = law.holds(&cases, |((case, rival, n), scd2), tried| {
        let (policy, more): (MergePolicy, &[&str]) = if scd2 { (SCD2, &["__START_AT", "__END_AT"]) } else { (MergePolicy::ScdType1, &[]) };
        let (model, batches, events) = (case.model(), case.batches(), case.events());
        let expected = if scd2 { model.scd2(&events) } else { model.scd1(&events) };
        tried.add("batches", batches.len());
        let race = lose_a_race(Controls::none(), &case.dataset(policy), &batches, rival, n, &columns(&model, more), expected);
        tried.add("races planned again", as_case(race)? as usize);
        Ok(())
    });
    assert!(tried.count("races planned again") > 0, "no race was lost: {tried}");
}

#[test]
fn law_rows_are_appended_once_whoever_is_first() {
    let law = Law::new("a rival appends first").within(std::time::Duration::from_secs(6));
    law.holds(&races(), |(case, _, n), tried| {
        let mut dataset = case.dataset(MergePolicy::Append);
        (dataset.keys, dataset.sequence_by) = (Vec::new(), Vec::new());
        let batches = case.batches();
        tried.add("batches", batches.len());
        let expected = case.model().append(&case.stream());
        let race = lose_a_race(Controls::none(), &dataset, &batches, Rival::Run, n - 1, &columns(&case.model(), &[]), expected);
        as_case(race).map(|_| ())
    });
}
