//! What is deleted of a log: never so much that a table cannot be opened, or somebody cannot go on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tributary_lake::object_store::ObjectStoreExt;
use tributary_lake::{Commit, Error as LakeError, Lake, Operation};
use tributary_maintenance::{CleanLogOptions, CleanLogReport, Error, Readers, Status, clean_log};
use tributary_testkit::{Controls, FaultyStore, Mode};

use crate::house::{House, changes_after, reader, rows_at};
use crate::world::{append, committed, content, name, open, spec};

fn at_once() -> CleanLogOptions {
    let retain = Some(Duration::ZERO);
    CleanLogOptions { retain, accept_unsafe_retention: true, longest_write: Duration::ZERO, ..CleanLogOptions::default() }
}

async fn cleaned(lake: &Lake, options: &CleanLogOptions) -> tributary_maintenance::Result<CleanLogReport> {
    clean_log(lake, &Readers::of(lake).await?, &name(), options).await
}

/// A table with so many commits of a row each behind its first, a checkpoint every ten, all of them an hour old.
async fn committed_often(commits: i64) -> Result<House> {
    let house = House::new();
    let lake = house.lake();
    lake.create(&spec(&[], &[])).await?;
    for id in 0..commits {
        append(&lake, [id]).await?;
    }
    house.hours_pass(1);
    Ok(house)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_version_opens_and_one_outside_the_retention_is_not_available() -> Result<()> {
    let house = committed_often(50).await?;
    let report = cleaned(&house.lake(), &at_once()).await?;
    assert_eq!((report.status, report.cut), (Status::Done, Some(50)), "{report:?}");
    let lake = house.lake();
    assert_eq!(content(&lake).await?.rows.len(), 50);
    assert_eq!(rows_at(&lake, 50).await?.len(), 50);
    for version in [0, 1, 10, 45, 49] {
        let error = open(&lake).await?.at_version(version).await.unwrap_err();
        assert!(matches!(error, LakeError::NoVersion { earliest: 50, latest: 50, .. }), "{version}: {error}");
    }
    assert!(house.log().await.iter().all(|name| name.starts_with("00000000000000000050.") || name == "_last_checkpoint"));
    append(&lake, [50]).await?;
    assert_eq!(content(&house.lake()).await?.rows.len(), 51);
    assert_eq!(cleaned(&house.lake(), &at_once()).await?.status, Status::NothingToDo);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpoint_nothing_goes() -> Result<()> {
    let house = committed_often(9).await?;
    let before = house.log().await;
    assert_eq!(cleaned(&house.lake(), &at_once()).await?.status, Status::NothingToDo);
    assert_eq!(house.log().await, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_a_write_and_the_retention_each_bound_the_cut() -> Result<()> {
    let house = committed_often(35).await?;
    let lake = house.lake();
    let refused = cleaned(&lake, &CleanLogOptions { accept_unsafe_retention: false, ..at_once() }).await.unwrap_err();
    assert!(matches!(refused, Error::UnsafeRetention { verb: "clean-log", .. }), "{refused}");
    let writing = cleaned(&lake, &CleanLogOptions { longest_write: Duration::from_secs(7200), ..at_once() }).await?;
    assert_eq!(writing.status, Status::NothingToDo, "{writing:?}");
    reader(&lake, "revenue", 25).await?;
    let changes = changes_after(&lake, 25).await?;
    let planned = cleaned(&lake, &CleanLogOptions { dry_run: true, ..at_once() }).await?;
    assert_eq!((planned.status, planned.cut), (Status::Planned, Some(20)), "{planned:?}");
    let report = cleaned(&lake, &at_once()).await?;
    assert_eq!((report.cut, report.deleted), (planned.cut, planned.deleted));
    assert_eq!(report.held_by, Some(("gold.revenue".to_owned(), 25)));
    assert_eq!(rows_at(&house.lake(), 25).await?.len(), 25);
    assert_eq!(changes_after(&house.lake(), 25).await?, changes);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn m2_a_clean_up_killed_at_any_call_leaves_each_version_whole_or_not_available() -> Result<()> {
    let unharmed = committed_often(22).await?;
    let faulty = FaultyStore::new(unharmed.store.clone());
    cleaned(&unharmed.lake_over(Arc::new(faulty.clone()), Controls::none()), &at_once()).await?;
    let (calls, left) = (faulty.counts().mutating, unharmed.log().await);
    assert!(calls > 20, "{calls}");
    for point in 1..=calls {
        for mode in Mode::ALL {
            let house = committed_often(22).await?;
            let faulty = FaultyStore::new(house.store.clone());
            faulty.kill_at(point, mode);
            let _ = cleaned(&house.lake_over(Arc::new(faulty), Controls::none()), &at_once()).await;
            let lake = house.lake();
            assert_eq!(content(&lake).await?.rows.len(), 22, "killed {mode:?} call {point}");
            for version in 0..22 {
                match open(&lake).await?.at_version(version).await {
                    Ok(_) => assert_eq!(rows_at(&lake, version).await?.len() as u64, version, "killed {mode:?} call {point}"),
                    Err(LakeError::NoVersion { .. }) => {}
                    Err(error) => panic!("killed {mode:?} call {point}: version {version}: {error}"),
                }
            }
            cleaned(&house.lake(), &at_once()).await?;
            assert_eq!(house.log().await, left, "killed {mode:?} call {point}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_checksums_compacted_commits_and_sidecars_before_the_cut_go_and_others_stay() -> Result<()> {
    let house = committed_often(33).await?;
    let version = |version: u64| format!("_delta_log/{version:020}");
    let sidecar = |name: &str| format!("{{\"sidecar\":{{\"path\":\"{name}\",\"sizeInBytes\":1,\"modificationTime\":1}}}}\n");
    let going = [
        format!("{}.crc", version(3)),
        format!("{}.checkpoint.0000000001.0000000002.parquet", version(5)),
        format!("{}.{:020}.compacted.json", version(2), 4),
        format!("{}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", version(6)),
        "_delta_log/_sidecars/old.parquet".to_owned(),
    ];
    let staying = [
        format!("{}.crc", version(27)),
        format!("{}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a12.json", version(25)),
        "_delta_log/_sidecars/used.parquet".to_owned(),
        "_delta_log/_staged_commits/00000000000000000003.a.json".to_owned(),
    ];
    for path in going.iter().chain(&staying) {
        house.put(path).await;
    }
    for (path, name) in [(&going[3], "old.parquet"), (&staying[1], "used.parquet")] {
        house.store.put(&House::place(path), sidecar(name).into()).await?;
    }
    house.hours_pass(1);
    reader(&house.lake(), "revenue", 24).await?;
    house.put("_delta_log/_sidecars/young.parquet").await;
    let options = CleanLogOptions { longest_write: Duration::from_secs(1800), ..at_once() };
    assert_eq!(cleaned(&house.lake(), &options).await?.cut, Some(20));
    let log = house.log().await;
    let is_there = |path: &String| log.iter().any(|name| path.ends_with(name.as_str()));
    assert!(going.iter().all(|path| !is_there(path)), "{log:?}");
    assert!(staying.iter().all(is_there) && is_there(&"_delta_log/_sidecars/young.parquet".to_owned()), "{log:?}");
    assert_eq!(content(&house.lake()).await?.rows.len(), 33);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_names_what_goes_goes_first_and_a_checkpoint_that_cannot_be_read_is_no_cut() -> Result<()> {
    let house = committed_often(23).await?;
    house.store.put(&House::place("_delta_log/_last_checkpoint"), "{\"version\":10,\"size\":12}".into()).await?;
    assert_eq!(cleaned(&house.lake(), &at_once()).await?.cut, Some(20));
    assert_eq!(content(&house.lake()).await?.rows.len(), 23);
    let house = committed_often(23).await?;
    let before = house.log().await;
    house.store.put(&House::place("_delta_log/00000000000000000020.checkpoint.parquet"), "half".into()).await?;
    cleaned(&house.lake(), &at_once()).await.unwrap_err();
    assert_eq!(house.log().await, before, "nothing went");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_planned_before_the_clean_up_lands_behind_the_latest() -> Result<()> {
    let house = committed_often(12).await?;
    let writer = open(&house.lake()).await?;
    for id in 12..32 {
        append(&house.lake(), [id]).await?;
    }
    let day = CleanLogOptions { longest_write: Duration::from_secs(86_400), ..at_once() };
    cleaned(&house.lake(), &day).await?;
    let mut rows = writer.writer(tributary_lake::WriterOptions::default())?;
    rows.write(&crate::world::rows([99])).await?;
    let adds = rows.finish().await?;
    committed(&writer, Commit { operation: Operation::Write, adds, ..Commit::default() }).await?;
    assert_eq!(content(&house.lake()).await?.rows.len(), 33);
    Ok(())
}
