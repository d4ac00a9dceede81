//! What a check of a table's files finds, and what a repair takes out of the log.

use anyhow::Result;
use tributary_lake::object_store::ObjectStoreExt;
use tributary_maintenance::{Defect, Error, FsckOptions, Status, fsck};
use tributary_testkit::{Controls, FaultyStore, Mode};

use crate::house::House;
use crate::world::{append, content, mark, name, open, spec};

/// Four files: one gone, one without its vector, one cut short, one as it should be.
async fn broken() -> Result<House> {
    let house = House::new();
    let lake = house.lake();
    lake.create(&spec(&[], &[])).await?;
    for start in [0, 1000, 2000, 3000] {
        append(&lake, start..start + 500).await?;
    }
    mark(&lake, 1, &(0..200).map(|at| at * 2).collect::<Vec<_>>()).await?;
    let mut files = open(&lake).await?.files().await?;
    assert_eq!(fsck(&house.lake(), &name(), FsckOptions::default()).await?.status, Status::NothingToDo);
    files.sort_by(|one, other| one.stats.columns["id"].min.partial_cmp(&other.stats.columns["id"].min).unwrap());
    house.delete(&files[0].path).await;
    let vector = house.files().await.into_iter().find(|path| path.starts_with("deletion_vector_")).expect("there is one");
    house.delete(&vector).await;
    house.store.put(&House::place(&files[2].path), "short".into()).await?;
    Ok(house)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_has_another_size_is_found_and_nothing_changes() -> Result<()> {
    let house = broken().await?;
    let version = open(&house.lake()).await?.version();
    let report = fsck(&house.lake(), &name(), FsckOptions::default()).await?;
    assert_eq!((report.status, report.checked.files, report.findings.len()), (Status::Left, 4, 3));
    let count = |is: fn(&Defect) -> bool| report.findings.iter().filter(|finding| is(&finding.defect)).count();
    assert_eq!(count(|defect| *defect == Defect::Missing), 1);
    assert_eq!(count(|defect| matches!(defect, Defect::VectorMissing { .. })), 1);
    assert_eq!(count(|defect| matches!(defect, Defect::Size { found: 5, .. })), 1);
    assert_eq!(open(&house.lake()).await?.version(), version);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_loses_exactly_what_was_accepted() -> Result<()> {
    let house = broken().await?;
    for accept_lost_files in [None, Some(1), Some(3)] {
        let refused = fsck(&house.lake(), &name(), FsckOptions { repair: true, accept_lost_files }).await.unwrap_err();
        assert!(matches!(refused, Error::RepairLoses { files: 2, rows: Some(800), .. }), "{refused}");
    }
    let options = FsckOptions { repair: true, accept_lost_files: Some(2) };
    let report = fsck(&house.lake(), &name(), options).await?;
    assert_eq!((report.status, report.lost_files, report.lost_rows), (Status::Done, 2, Some(800)));
    let left = fsck(&house.lake(), &name(), options).await?;
    assert_eq!((left.status, left.findings.len(), left.version), (Status::Left, 1, None), "a size is no loss");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_killed_at_any_call_is_done_or_not() -> Result<()> {
    let options = FsckOptions { repair: true, accept_lost_files: Some(1) };
    let made = async || -> Result<House> {
        let house = House::new();
        let lake = house.lake();
        lake.create(&spec(&[], &[])).await?;
        append(&lake, 0..5).await?;
        let path = open(&lake).await?.files().await?[0].path.clone();
        append(&lake, 5..9).await?;
        house.delete(&path).await;
        Ok(house)
    };
    let unharmed = made().await?;
    let faulty = FaultyStore::new(unharmed.store.clone());
    fsck(&unharmed.lake_over(std::sync::Arc::new(faulty.clone()), Controls::none()), &name(), options).await?;
    let expected = content(&unharmed.lake()).await?;
    assert_eq!(expected.rows.len(), 4);
    for point in 1..=faulty.counts().mutating {
        for mode in Mode::ALL {
            let house = made().await?;
            let faulty = FaultyStore::new(house.store.clone());
            faulty.kill_at(point, mode);
            let _ = fsck(&house.lake_over(std::sync::Arc::new(faulty), Controls::none()), &name(), options).await;
            fsck(&house.lake(), &name(), options).await?;
            assert_eq!(content(&house.lake()).await?, expected, "killed {mode:?} call {point}");
        }
    }
    Ok(())
}
