//! What a lake keeps of its tables: opening one again reads what came since, and finds what everybody else finds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use proptest::collection::vec;
use proptest::prelude::*;
use tributary_lake::{Commit, DELETION_VECTORS_ON, LakeOptions, Operation, Progress, Reads, RowMarks, Table};
use tributary_specs::{Column, DataType, TableSpec};
use tributary_testkit::{Call, Controls, FaultyStore, Law};

use crate::shop::committed;
use crate::toy::{APP, file_of, lake_over, lake_with, numbers_in, open, spec};

fn changing() -> TableSpec {
    TableSpec { row_changes: true, properties: BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "true".to_owned())]), ..spec() }
}

async fn append(table: &Table, rows: &[i64]) -> Result<Table> {
    let adds = file_of(table, rows, 0).await?;
    committed(table, Commit { adds, ..Commit::default() }).await
}

/// The last part of every path read since.
fn read_since(store: &FaultyStore, before: usize) -> Vec<String> {
    let reads = store.calls().split_off(before).into_iter().filter(|call: &Call| !call.verb.mutates());
    reads.map(|call| call.path.filename().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_opened_again_is_one_question_and_a_listing_and_each_new_commit_one_request() -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let lake = lake_over(Arc::new(store.clone()), Controls::none());
    let mut table = lake.create(&changing()).await?;
    for rows in [[1, 2], [3, 4], [5, 6]] {
        table = append(&table, &rows).await?;
    }
    assert_eq!(table.files().await?.len(), 3);
    let before = store.calls().len();
    let again = open(&lake).await?;
    assert_eq!((again.version(), again.files().await?.len()), (3, 3));
    assert_eq!(read_since(&store, before), ["00000000000000000003.json", "_delta_log"]);
    // Somebody else's commits.
    let other = lake_over(store.inner(), Controls::none());
    append(&append(&open(&other).await?, &[7]).await?, &[8]).await?;
    let before = store.calls().len();
    let again = open(&lake).await?;
    assert_eq!((again.version(), again.files().await?.len()), (5, 5));
    let read = read_since(&store, before);
    let expected = ["00000000000000000003.json", "_delta_log", "00000000000000000004.json", "00000000000000000005.json"];
    assert_eq!(
        {
            let mut read = read.clone();
            read.sort_unstable();
            read
        },
        {
            let mut expected = expected;
            expected.sort_unstable();
            expected
        }
    );
    assert_eq!(numbers_in(&again).await?, [1, 2, 3, 4, 5, 6, 7, 8]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_made_again_is_not_taken_for_the_one_that_was_kept() -> Result<()> {
    for commits in 1..5 {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let lake = lake_over(Arc::clone(&store), Controls::none());
        let mut table = lake.create(&spec()).await?;
        for row in 0..3 {
            table = append(&table, &[row]).await?;
        }
        let first = open(&lake).await?.identity();
        let below: Vec<Path> = store.list(Some(&"lake".into())).map_ok(|meta| meta.location).try_collect().await?;
        for path in below {
            store.delete(&path).await?;
        }
        assert!(lake.table(&spec().name).await?.is_none());
        let other = lake_with(Arc::clone(&store), LakeOptions::default());
        let mut made = other.create(&spec()).await?;
        for row in 0..commits {
            made = append(&made, &[100 + row]).await?;
        }
        let again = open(&lake).await?;
        assert_ne!(again.identity(), first);
        assert_eq!((again.version(), numbers_in(&again).await?), (commits as u64, (100..100 + commits).collect()));
    }
    Ok(())
}

/// What happens between two looks at a table.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<i64>),
    Mark(usize),
    Remove(usize),
    Compact,
    Grow,
    Domain(u8),
    Position(i64),
    /// Whether the kept files are asked for, too.
    Look(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => vec(0..50i64, 1..4).prop_map(Step::Append),
        3 => (0..9usize).prop_map(Step::Mark),
        1 => (0..9usize).prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => Just(Step::Grow),
        1 => (0..4u8).prop_map(Step::Domain),
        1 => (0..9i64).prop_map(Step::Position),
        6 => any::<bool>().prop_map(Step::Look),
    ];
    vec(step, 1..30)
}

impl Step {
    async fn commit(&self, table: &Table, at: usize) -> Result<Option<Commit>> {
        let files = table.files().await?;
        let merge = || Commit { operation: Operation::Merge, reads: Reads::Files, ..Commit::default() };
        Ok(match self {
            Self::Append(rows) => Some(Commit { adds: file_of(table, rows, at as i64).await?, ..Commit::default() }),
            Self::Mark(number) => files.get(*number).and_then(|file| {
                let live = file.live_rows().filter(|live| *live > 0 && file.deletion_vector.is_none())?;
                Some(Commit { marks: vec![RowMarks { file: file.clone(), rows: vec![live - 1] }], ..merge() })
            }),
            Self::Remove(number) => files.get(*number).map(|file| Commit { removes: vec![file.clone()], ..merge() }),
            Self::Compact if files.is_empty() => None,
            Self::Compact => {
                let rows = numbers_in(table).await?;
                let adds = if rows.is_empty() { Vec::new() } else { file_of(table, &rows, 0).await? };
                Some(Commit { operation: Operation::Optimize, removes: files, adds, reads: Reads::Files, ..Commit::default() })
            }
            Self::Grow => {
                let mut columns = table.columns().to_vec();
                columns.push(Column::new(format!("more{at}"), DataType::Long));
                Some(Commit { schema: Some(columns), ..Commit::default() })
            }
            Self::Domain(value) => {
                let configuration = (*value > 0).then(|| format!("{{\"v\":{value}}}"));
                Some(Commit { domains: BTreeMap::from([("tributary.ledger".to_owned(), configuration)]), ..Commit::default() })
            }
            Self::Position(version) => {
                let expected = table.progress(APP).await?;
                let version = expected.unwrap_or_default() + version;
                Some(Commit { progress: vec![Progress { app_id: APP.to_owned(), expected, version }], ..Commit::default() })
            }
            Self::Look(_) => None,
        })
    }
}

async fn same(kept: &Table, anew: &Table, files: bool) -> Result<()> {
    ensure!(kept.version() == anew.version(), "version {} and {}", kept.version(), anew.version());
    ensure!(kept.columns() == anew.columns() && kept.properties() == anew.properties() && kept.features() == anew.features());
    ensure!(kept.progress_with_prefix("").await? == anew.progress_with_prefix("").await?);
    ensure!(kept.domain("tributary.ledger").await? == anew.domain("tributary.ledger").await?);
    if files {
        let by_path = |mut files: Vec<tributary_lake::DataFile>| {
            files.sort_by(|a, b| a.path.cmp(&b.path));
            files
        };
        let (kept, anew) = (by_path(kept.files().await?), by_path(anew.files().await?));
        ensure!(kept == anew, "kept {kept:?}\nanew {anew:?}");
    }
    Ok(())
}

async fn play(steps: Vec<Step>) -> Result<(usize, usize)> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let writer = lake_over(Arc::clone(&store), Controls::none());
    let mut table = writer.create(&changing()).await?;
    let keeps = lake_over(Arc::clone(&store), Controls::none());
    let (mut looks, mut commits) = (0, 0);
    for (at, step) in steps.iter().chain([&Step::Look(true)]).enumerate() {
        if let Some(commit) = step.commit(&table, at).await? {
            table = committed(&table, commit).await?;
            commits += 1;
        }
        if let Step::Look(files) = step {
            looks += 1;
            same(&open(&keeps).await?, &open(&lake_over(Arc::clone(&store), Controls::none())).await?, *files).await?;
        }
    }
    Ok((looks, commits))
}

#[test]
fn law_a_snapshot_that_followed_its_commits_is_the_one_that_is_read_anew() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    Law::new("snapshots that follow").within(Duration::from_secs(8)).holds(&steps(), |steps, tried| {
        let (looks, commits) = runtime.block_on(play(steps)).map_err(|why| TestCaseError::fail(format!("{why:#}")))?;
        tried.add("looks", looks);
        tried.add("commits", commits);
        Ok(())
    });
}
