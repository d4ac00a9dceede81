//! A change of rows by their keys that loses a race goes on top of the winners only where it would be the same if planned after them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use object_store::memory::InMemory;
use proptest::collection::vec;
use proptest::prelude::*;
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::{Commit, CommitOutcome, DELETION_VECTORS_ON, KeyRange, KeyRanges, KeySearch, Lake, Operation, Reads, RowMarks, Table};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::{Control, Controls, Law};

use crate::shop::{append, batch, collect, committed, written};
use crate::toy::lake_over;

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// A row unless there is one.
    Ensure,
    /// This row, whatever was there.
    Put,
    /// No row.
    Drop,
}

/// One commit of a rival.
#[derive(Debug, Clone)]
enum Step {
    Change(Vec<(i64, Change)>),
    /// Removes a file with all of its rows.
    RemoveFile(usize),
    /// Writes all rows into one file.
    Compact,
}

#[derive(Debug, Clone)]
struct Race {
    files: Vec<BTreeSet<i64>>,
    ours: Vec<(i64, Change)>,
    rival: Vec<Step>,
}

fn races() -> impl Strategy<Value = Race> {
    let change = || (0..40i64, prop_oneof![Just(Change::Ensure), Just(Change::Put), Just(Change::Drop)]);
    let step = prop_oneof![
        4 => vec((0..40i64, Just(Change::Drop)), 1..4).prop_map(Step::Change),
        3 => vec(change(), 1..4).prop_map(Step::Change),
        1 => (0..4usize).prop_map(Step::RemoveFile),
        1 => Just(Step::Compact),
    ];
    (vec(prop::collection::btree_set(0..40i64, 1..12), 1..4), vec(change(), 1..4), vec(step, 1..4)).prop_map(|(files, ours, rival)| Race {
        files,
        ours,
        rival,
    })
}

fn rows(ids: &[i64], by: &str) -> arrow::array::RecordBatch {
    let notes: StringArray = ids.iter().map(|_| Some(by)).collect();
    batch(vec![("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef), ("note", Arc::new(notes))])
}

/// The rows of a table, each key once.
async fn notes(table: &Table) -> Result<BTreeMap<i64, String>> {
    let rows = collect(table.read(tributary_lake::ReadOptions::default()).await?).await?;
    let (ids, notes) = (rows.column(0).as_primitive::<Int64Type>(), rows.column(1).as_string::<i32>());
    let found: BTreeMap<i64, String> = ids.values().iter().copied().zip(notes.iter().flatten().map(str::to_owned)).collect();
    ensure!(found.len() == rows.num_rows(), "a key has two rows: {ids:?}");
    Ok(found)
}

/// The rows after changes.
fn changed(mut notes: BTreeMap<i64, String>, changes: &BTreeMap<i64, Change>, by: &str) -> BTreeMap<i64, String> {
    for (id, change) in changes {
        match change {
            Change::Ensure => _ = notes.entry(*id).or_insert_with(|| by.to_owned()),
            Change::Put => _ = notes.insert(*id, by.to_owned()),
            Change::Drop => _ = notes.remove(id),
        }
    }
    notes
}

/// The commit that makes changes; none when they change nothing.
async fn plan(table: &Table, changes: &BTreeMap<i64, Change>, by: &str) -> Result<Option<Commit>> {
    let search = KeySearch::new(table, table.files().await?);
    let found = search.all(0..search.files().len()).await?;
    let ids = found.rows.column(0).as_primitive::<Int64Type>();
    let (mut gone, mut rests_on, mut new) = (BTreeMap::<usize, Vec<u64>>::new(), BTreeSet::new(), Vec::new());
    for (id, change) in changes {
        let place = ids.values().iter().position(|found| found == id).map(|row| found.places[row]);
        match (change, place) {
            (Change::Ensure, Some((file, _))) => _ = rests_on.insert(file),
            (Change::Put | Change::Drop, Some((file, row))) => gone.entry(file).or_default().push(row),
            (_, None) => {}
        }
        if *change == Change::Put || (*change == Change::Ensure && place.is_none()) {
            new.push(*id);
        }
    }
    if gone.is_empty() && new.is_empty() {
        return Ok(None);
    }
    let file = |number: &usize| search.files()[*number].clone();
    let rests_on = rests_on.iter().filter(|number| !gone.contains_key(number)).map(file).collect();
    let marks = gone.iter().map(|(number, rows)| {
        let mut rows = rows.clone();
        rows.sort_unstable();
        RowMarks { file: file(number), rows }
    });
    let bound = |id: Option<&i64>| ScalarValue::Int64(id.copied());
    let range = KeyRange { bounds: Some((bound(changes.keys().next()), bound(changes.keys().next_back()))), nulls: false };
    Ok(Some(Commit {
        operation: Operation::Merge,
        marks: marks.collect(),
        adds: if new.is_empty() { Vec::new() } else { written(table, &[rows(&new, by)]).await? },
        rests_on,
        reads: Reads::Keys(KeyRanges(BTreeMap::from([("id".to_owned(), range)]))),
        ..Commit::default()
    }))
}

impl Step {
    async fn take(&self, table: &Table) -> Result<Option<Commit>> {
        let files = table.files().await?;
        Ok(match self {
            Self::Change(changes) => plan(table, &changes.iter().copied().collect(), "rival").await?,
            Self::RemoveFile(number) => files.get(number % files.len().max(1)).map(|file| Commit {
                operation: Operation::Merge,
                removes: vec![file.clone()],
                reads: Reads::Files,
                ..Commit::default()
            }),
            Self::Compact if files.is_empty() => None,
            Self::Compact => {
                let rows = collect(table.read(tributary_lake::ReadOptions::default()).await?).await?;
                let adds = written(table, &[rows]).await?;
                Some(Commit { operation: Operation::Optimize, removes: files, adds, reads: Reads::Files, ..Commit::default() })
            }
        })
    }

    /// Whether it takes away rows and does nothing else.
    fn only_drops(&self) -> bool {
        matches!(self, Self::Change(changes) if changes.iter().all(|(_, change)| *change == Change::Drop))
    }
}

async fn table_of(lake: &Lake, files: &[BTreeSet<i64>]) -> Result<Table> {
    let columns = vec![Column::new("id", DataType::Long), Column::new("note", DataType::String)];
    let mut spec = TableSpec { row_changes: true, ..TableSpec::new(TableName::new("silver", "raced"), columns) };
    spec.properties.insert(DELETION_VECTORS_ON.to_owned(), "true".to_owned());
    let mut table = lake.create(&spec).await?;
    let mut seen = BTreeSet::new();
    for ids in files {
        let new: Vec<i64> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        if !new.is_empty() {
            table = append(&table, &[rows(&new, "first")]).await?;
        }
    }
    Ok(table)
}

/// Whether we were planned again; none when there was nothing to plan.
async fn race(race: &Race, controls: Controls) -> Result<Option<bool>> {
    let store = Arc::new(InMemory::new());
    let lake = lake_over(store, controls);
    let planned_on = table_of(&lake, &race.files).await?;
    let ours: BTreeMap<i64, Change> = race.ours.iter().copied().collect();
    let Some(commit) = plan(&planned_on, &ours, "ours").await? else { return Ok(None) };
    let mut table = planned_on.clone();
    for step in &race.rival {
        if let Some(commit) = step.take(&table).await? {
            table = committed(&table, commit).await?;
        }
    }
    let expected = changed(notes(&table).await?, &ours, "ours");
    let again = match planned_on.commit(commit).await? {
        CommitOutcome::Committed { .. } => false,
        CommitOutcome::Conflicted(_) => {
            if let Some(commit) = plan(&table, &ours, "ours").await? {
                committed(&table, commit).await?;
            }
            true
        }
        CommitOutcome::Fenced { .. } => bail!("nobody has a position"),
    };
    let found = notes(&table.refresh().await?).await?;
    ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
    Ok(Some(again))
}

fn blocked<T>(future: impl Future<Output = Result<T>>) -> Result<T, TestCaseError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(future).map_err(|why| TestCaseError::fail(format!("{why:#}")))
}

#[test]
fn law_a_change_that_goes_on_top_of_the_winners_is_what_it_would_be_after_them() {
    let tried = Law::new("changes of rows that lose a race").within(Duration::from_secs(10)).holds(&races(), |case, tried| {
        match blocked(race(&case, Controls::none()))? {
            Some(true) => tried.add("planned again", 1),
            Some(false) => {
                tried.add("gone on top", 1);
                tried.add("gone on top of rows taken away", usize::from(case.rival.iter().all(Step::only_drops)));
            }
            None => {}
        }
        Ok(())
    });
    for what in ["planned again", "gone on top", "gone on top of rows taken away"] {
        assert!(tried.count(what) > 0, "{what}: {tried}");
    }
}

#[test]
fn the_law_of_lost_races_fails_when_nobody_plans_again() {
    Law::new("changes of rows that never plan again").within(Duration::from_secs(60)).is_broken(&races(), |case, tried| {
        tried.add("races", 1);
        blocked(race(&case, Controls::none().with(Control::NoReplanAfterConflict))).map(drop)
    });
}
