//! Another writer commits just before us: a compaction of the very files we change, or another run of the same dataset.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use proptest::prelude::*;
use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{Commit, CommitOutcome, Operation, ReadOptions, Reads, WriterOptions};
use tributary_specs::{MergePolicy, SilverSpec, TableName};
use tributary_testkit::oracle::Row;
use tributary_testkit::strategy::{SourceTable, delivery};
use tributary_testkit::{Controls, FaultyStore, Frame, Law, Rule, Value};

use crate::model_laws::{Delivered, columns, delivered};
use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted};

/// Who is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// All live rows of the target are written into one file; no row changes.
    Compaction,
    /// Another process runs the dataset to its end.
    Run,
    /// Somebody appends rows of other keys to the target itself: of keys on both sides of all others.
    Appender,
}

/// Keys that nobody else uses.
const APPENDED: [i64; 2] = [-1_000_000, 1_000_000];

/// Appends rows of the target's first column alone.
pub async fn append_to_target(store: Arc<dyn ObjectStore>, name: &TableName, keys: &[i64]) -> Result<()> {
    let table = World::on(store, Controls::none()).table(name).await?;
    let keys = Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
    let rows = RecordBatch::try_from_iter_with_nullable([(table.columns()[0].name.as_str(), keys, true)])?;
    let mut writer = table.writer(WriterOptions::default())?;
    writer.write(&rows).await?;
    let outcome = table.commit(Commit { adds: writer.finish().await?, ..Commit::default() }).await?;
    ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}");
    Ok(())
}

/// What the appended rows look like in these columns.
pub fn appended(columns: &[String], keys: &[i64]) -> Vec<Row> {
    let null = || std::iter::repeat_n(Value::Null, columns.len() - 1);
    keys.iter().map(|key| std::iter::once(Value::from(*key)).chain(null()).collect()).collect()
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
                // The same holds for an appender.
                Rival::Appender => drop(append_to_target(store, &dataset.table, &APPENDED).await),
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
        let came = rival == Rival::Appender && found.iter().any(|row| row[0] == APPENDED[0].into());
        expected.extend(came.then(|| appended(columns, &APPENDED)).into_iter().flatten());
        expected.sort();
        ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
        feed_replays_to_the_table(&world, &dataset.table).await?;
        Ok(conflicts)
    })
}

pub fn races() -> impl Strategy<Value = (Delivered, Rival, u64)> {
    let table = SourceTable { truncates: false, keys: 4, ..SourceTable::orders() };
    (delivered(Just(table), delivery()), prop_oneof![Just(Rival::Compaction), Just(Rival::Run), Just(Rival::Appender)], 2..6u64)
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

/// Two silver runs of one table, compactions of its files and appends to it, all at once and all the time.
async fn crowd(store: Arc<dyn ObjectStore>, dataset: &SilverSpec, batches: &[Frame]) -> Result<usize> {
    let world = World::on(Arc::clone(&store), Controls::none());
    // The target is there before anybody appends to it.
    world.append(&dataset.sources[0], &batches[0]).await?;
    world.run(dataset).await?;
    let others = [Rival::Run, Rival::Run, Rival::Compaction, Rival::Appender];
    let threads: Vec<_> = others
        .into_iter()
        .map(|rival| {
            let (store, dataset, rounds) = (Arc::clone(&store), dataset.clone(), 2 * batches.len());
            std::thread::spawn(move || {
                (0..rounds).map(|round| usize::from(block_on(take_part(rival, round, &store, &dataset)))).sum::<usize>()
            })
        })
        .collect();
    for batch in &batches[1..] {
        world.append(&dataset.sources[0], batch).await?;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let done = threads.into_iter().map(|thread| thread.join().expect("nobody panics")).sum();
    world.run(dataset).await?;
    Ok(done)
}

/// One commit of somebody in the crowd, if it comes to one.
async fn take_part(rival: Rival, round: usize, store: &Arc<dyn ObjectStore>, dataset: &SilverSpec) -> bool {
    match rival {
        Rival::Run => World::on(Arc::clone(store), Controls::none()).run(dataset).await.is_ok(),
        Rival::Compaction => compact(Arc::clone(store), &dataset.table).await.is_ok(),
        Rival::Appender => {
            let key = 2_000_000 + round as i64;
            append_to_target(Arc::clone(store), &dataset.table, &[-key, key]).await.expect("an append goes on top of anything");
            true
        }
    }
}

#[test]
fn law_a_crowd_of_writers_loses_and_doubles_no_row() {
    let cases = (races(), any::<bool>());
    let law = Law::new("two runs, compactions and appends at once").within(std::time::Duration::from_secs(12));
    let tried = law.holds(&cases, |((case, _, _), scd2), tried| {
        let (policy, more): (MergePolicy, &[&str]) = if scd2 { (SCD2, &["__START_AT", "__END_AT"]) } else { (MergePolicy::ScdType1, &[]) };
        let (dataset, model, batches, events) = (case.dataset(policy), case.model(), case.batches(), case.events());
        let (columns, mut expected) = (columns(&model, more), if scd2 { model.scd2(&events) } else { model.scd1(&events) });
        let outcome: Result<usize> = block_on(async {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let commits = crowd(Arc::clone(&store), &dataset, &batches).await?;
            let world = World::on(store, Controls::none());
            let rounds = 2 * batches.len() as i64;
            expected.extend((2_000_000..2_000_000 + rounds).flat_map(|key| appended(&columns, &[-key, key])));
            expected.sort();
            let found = sorted(&world.rows(&dataset.table, &columns.iter().map(String::as_str).collect::<Vec<_>>()).await?);
            ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
            feed_replays_to_the_table(&world, &dataset.table).await?;
            Ok(commits)
        });
        tried.add("commits of the crowd", as_case(outcome)?);
        tried.add("batches", batches.len());
        Ok(())
    });
    assert!(tried.count("commits of the crowd") > 0, "{tried}");
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
