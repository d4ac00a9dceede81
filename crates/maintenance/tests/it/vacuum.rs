//! What a vacuum deletes, what it keeps and for whom, and what a kill leaves.

use std::time::Duration;

use anyhow::Result;
use tributary_lake::object_store::ObjectStoreExt;
use tributary_lake::{Commit, Operation, Reads};
use tributary_maintenance::{Error, Needs, Options, Reader, Status, Task, VacuumMode, VacuumOptions};
use tributary_testkit::{Controls, FaultyStore, Mode};

use crate::house::{House, changes_after, reader, rows_at, update};
use crate::world::{append, committed, content, done, mark, open, spec};

fn of(mode: VacuumMode) -> VacuumOptions {
    VacuumOptions { mode, ..VacuumOptions::default() }
}

fn at_once(mode: VacuumMode) -> VacuumOptions {
    VacuumOptions { retain: Some(Duration::ZERO), accept_unsafe_retention: true, ..of(mode) }
}

/// A table with old files of every kind: a rewritten data file, a superseded deletion vector, a change-feed file. All is older than
/// `hours`, but for the last commit.
async fn aged(hours: i64) -> Result<House> {
    let house = House::new();
    let lake = house.lake();
    lake.create(&spec(&["note"], &[])).await?;
    append(&lake, 0..300).await?;
    mark(&lake, 0, &(0..50).map(|at| at * 2).collect::<Vec<_>>()).await?;
    update(&lake).await?;
    house.hours_pass(hours);
    append(&lake, 1000..1003).await?;
    Ok(house)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_versions_past_the_retention_go_and_a_dry_run_says_which() -> Result<()> {
    for mode in [VacuumMode::Full, VacuumMode::Lite] {
        let house = aged(8 * 24).await?;
        let lake = house.lake();
        let (before, content_before) = (house.files().await, content(&lake).await?);
        let planned = house.vacuum(&lake, &VacuumOptions { dry_run: true, ..of(mode) }).await?;
        assert_eq!((planned.status, house.files().await == before), (Status::Planned, true));
        let report = house.vacuum(&lake, &of(mode)).await?;
        assert_eq!((report.status, &report.files), (Status::Done, &planned.files));
        assert!(report.files.iter().any(|file| file.path.starts_with("_change_data/")), "{report:?}");
        assert!(report.files.iter().any(|file| file.path.starts_with("part-")), "{report:?}");
        let gone: Vec<String> = before.into_iter().filter(|path| !report.files.iter().any(|file| file.path == *path)).collect();
        assert_eq!(house.files().await, gone);
        assert_eq!(content(&house.lake()).await?, content_before);
        assert_eq!(house.vacuum(&lake, &of(mode)).await?.status, Status::NothingToDo);
        let history = open(&house.lake()).await?.history(Some(2)).await?;
        let operations: Vec<_> = history.iter().map(|commit| commit.operation.as_deref().unwrap_or_default()).collect();
        assert_eq!(operations, ["VACUUM END", "VACUUM START"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_retention_needs_stays_and_every_version_of_it_is_read() -> Result<()> {
    let house = aged(6 * 24).await?;
    let lake = house.lake();
    let report = house.vacuum(&lake, &of(VacuumMode::Full)).await?;
    assert_eq!((report.status, report.files.len()), (Status::NothingToDo, 0));
    for version in 1..=open(&lake).await?.version() {
        rows_at(&lake, version).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_go_when_no_write_can_be_under_way_and_hidden_ones_and_other_tables_stay() -> Result<()> {
    let house = aged(1).await?;
    let kept = ["_tmp/a.parquet", ".hidden", "metadata/v1.json", "sub/t/_delta_log/0.json", "sub/t/a.parquet", "note=1/_tmp/b"];
    let orphans = ["orphan.parquet", "note=note 1/or%20phan.parquet", "_change_data/orphan.parquet", "deletion_vector_orphan.bin"];
    for path in kept.iter().chain(&orphans) {
        house.put(path).await;
    }
    house.hours_pass(23);
    house.put("young.parquet").await;
    let lake = house.lake();
    let early = house.vacuum(&lake, &VacuumOptions { dry_run: true, ..at_once(VacuumMode::Full) }).await?;
    assert!(!early.files.iter().any(|file| file.path.contains("orphan")), "a write may take a day: {early:?}");
    assert_eq!(early.young.files as usize, orphans.len() + 1);
    house.hours_pass(1);
    house.vacuum(&lake, &at_once(VacuumMode::Full)).await?;
    let files = house.files().await;
    assert!(orphans.iter().all(|path| !files.iter().any(|file| file == path)), "{files:?}");
    assert!(kept.iter().chain(&["young.parquet"]).all(|path| files.iter().any(|file| file == path)), "{files:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_holds_what_it_needs_and_is_named_and_a_declared_one_too() -> Result<()> {
    for mode in [VacuumMode::Full, VacuumMode::Lite] {
        let house = aged(8 * 24).await?;
        let lake = house.lake();
        reader(&lake, "revenue", 1).await?;
        let (rows, changes) = (rows_at(&lake, 1).await?, changes_after(&lake, 1).await?);
        let report = house.vacuum(&lake, &of(mode)).await?;
        let held = report.held_by.clone().expect("it is held");
        assert_eq!((held.reader.as_str(), held.version, report.files.len()), ("gold.revenue", 1, 0), "{report:?}");
        assert_eq!((rows_at(&house.lake(), 1).await?, changes_after(&house.lake(), 1).await?), (rows, changes));
        let ignoring = VacuumOptions { ignore_readers: vec!["gold.revenue".to_owned()], ..of(mode) };
        let spark = Reader { name: "spark".to_owned(), needs: Needs::Version(1), declared: true };
        let declared = house.vacuum(&lake, &VacuumOptions { outside: vec![spark], ..ignoring.clone() }).await?;
        assert_eq!(declared.held_by.map(|held| held.reader).as_deref(), Some("spark"));
        assert!(!house.vacuum(&lake, &ignoring).await?.files.is_empty());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_retention_than_the_tables_own_is_refused_until_it_is_accepted() -> Result<()> {
    let house = aged(2).await?;
    let lake = house.lake();
    let short = VacuumOptions { retain: Some(Duration::from_secs(3600)), ..VacuumOptions::default() };
    let refused = house.vacuum(&lake, &short).await.unwrap_err();
    assert!(matches!(refused, Error::UnsafeRetention { asked: 3600, safe: 604_800, .. }), "{refused}");
    let before = content(&lake).await?;
    let report = house.vacuum(&lake, &VacuumOptions { accept_unsafe_retention: true, ..short }).await?;
    assert!(!report.files.is_empty());
    assert_eq!(content(&house.lake()).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_vectors_and_optimize_then_vacuum_leave_the_live_rows() -> Result<()> {
    let house = House::new();
    let lake = house.lake();
    lake.create(&spec(&[], &[])).await?;
    append(&lake, 0..1000).await?;
    append(&lake, 1000..1010).await?;
    mark(&lake, 0, &(0..400).map(|at| at * 2).collect::<Vec<_>>()).await?;
    let live = content(&lake).await?;
    assert_eq!(live.rows.len(), 610);
    assert!(house.files().await.iter().any(|path| path.starts_with("deletion_vector_")));
    house.hours_pass(1);
    assert_eq!(house.vacuum(&lake, &at_once(VacuumMode::Full)).await?.status, Status::NothingToDo, "the vector is live");
    assert_eq!(content(&house.lake()).await?, live);
    done(&lake, &Task::Reorg, &Options { yield_to: Duration::ZERO, ..Options::default() }).await?;
    house.hours_pass(1);
    let report = house.vacuum(&lake, &at_once(VacuumMode::Full)).await?;
    assert!(report.files.iter().any(|file| file.path.starts_with("deletion_vector_")), "{report:?}");
    assert_eq!(content(&house.lake()).await?, live);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_others_name_by_url_or_spell_otherwise_stay() -> Result<()> {
    let house = House::new();
    let lake = house.lake();
    lake.create(&spec(&[], &[])).await?;
    append(&lake, 0..3).await?;
    let table = open(&lake).await?;
    // The same bytes under three names that another writer gives.
    let live = table.files().await?.remove(0);
    let bytes = house.store.get(&House::place(&live.path)).await?.bytes().await?;
    let spelled = [
        ("x y.parquet", "memory:///lake/main/silver/orders/x%20y.parquet"),
        ("d/é.parquet", "d/%C3%A9.parquet"),
        ("p%25.parquet", "p%2525.parquet"),
    ];
    let mut lines = String::from("{\"commitInfo\":{\"operation\":\"WRITE\",\"inCommitTimestamp\":1769940001000}}\n");
    for (path, spelled) in spelled {
        house.store.put(&House::place(path), bytes.clone().into()).await?;
        lines += &format!(
            "{{\"add\":{{\"path\":\"{spelled}\",\"partitionValues\":{{}},\"size\":{},\"modificationTime\":1,\"dataChange\":true}}}}\n",
            bytes.len()
        );
    }
    let next = format!("_delta_log/{:020}.json", table.version() + 1);
    house.store.put(&House::place(&next), lines.into()).await?;
    house.hours_pass(24 * 30);
    let lake = house.lake();
    let before = content(&lake).await?;
    assert_eq!(before.rows.len(), 12);
    assert_eq!(house.vacuum(&lake, &VacuumOptions { longest_write: Duration::ZERO, ..at_once(VacuumMode::Full) }).await?.files, []);
    assert_eq!(content(&house.lake()).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_file_is_written_and_not_committed_commits_it_after_the_vacuum() -> Result<()> {
    let house = aged(8 * 24).await?;
    let lake = house.lake();
    let table = open(&lake).await?;
    let mut writer = table.writer(tributary_lake::WriterOptions::default())?;
    writer.write(&crate::world::rows(5000..5003)).await?;
    let adds = writer.finish().await?;
    house.hours_pass(20);
    assert_eq!(house.vacuum(&house.lake(), &at_once(VacuumMode::Full)).await?.status, Status::Done);
    committed(&table, Commit { adds, ..Commit::default() }).await?;
    assert!(content(&house.lake()).await?.rows.iter().any(|row| row.starts_with("5002")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn m2_a_vacuum_killed_at_any_call_leaves_the_table_as_it_was_and_the_next_one_ends_it() -> Result<()> {
    for mode in [VacuumMode::Full, VacuumMode::Lite] {
        let house = aged(8 * 24).await?;
        let (expected, version) = (content(&house.lake()).await?, open(&house.lake()).await?.version());
        let unharmed = FaultyStore::new(house.store.clone());
        house.vacuum(&house.lake_over(std::sync::Arc::new(unharmed.clone()), Controls::none()), &of(mode)).await?;
        let (calls, left) = (unharmed.counts(), house.files().await);
        assert!(calls.mutating >= 4, "{calls:?}");
        let points = (1..=calls.mutating).flat_map(|point| Mode::ALL.map(|mode| (Some(point), Some(mode), None)));
        let reads = (1..=calls.reads).map(|read| (None, None, Some(read)));
        for (point, kill, read) in points.chain(reads) {
            let house = aged(8 * 24).await?;
            let faulty = FaultyStore::new(house.store.clone());
            if let (Some(point), Some(kill)) = (point, kill) {
                faulty.kill_at(point, kill);
            }
            read.into_iter().for_each(|read| faulty.fail_read_at(read));
            let _ = house.vacuum(&house.lake_over(std::sync::Arc::new(faulty.clone()), Controls::none()), &of(mode)).await;
            assert_eq!(content(&house.lake()).await?, expected, "killed {kill:?} call {point:?}, read {read:?}");
            rows_at(&house.lake(), version).await?;
            house.vacuum(&house.lake(), &of(mode)).await?;
            assert_eq!(house.files().await.len(), left.len(), "killed {kill:?} call {point:?}, read {read:?}");
            assert_eq!(content(&house.lake()).await?, expected);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_only_says_something_fails_no_writer() -> Result<()> {
    let house = aged(8 * 24).await?;
    let writer = open(&house.lake()).await?;
    let files = writer.files().await?;
    house.vacuum(&house.lake(), &of(VacuumMode::Full)).await?;
    let removes = vec![files[0].clone()];
    committed(&writer, Commit { operation: Operation::Delete, removes, reads: Reads::WholeTable, ..Commit::default() }).await
}
