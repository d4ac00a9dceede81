//! An earlier version comes back: rows, schema, properties, positions; or nothing happens, and the reason is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tributary_lake::{Commit, CommitOutcome, Error as LakeError, Lake, Operation, Reads};
use tributary_maintenance::{
    CleanLogOptions, Error, Positions, Readers, RestoreOptions, RestoreReport, RestoreTo, Status, VacuumMode, VacuumOptions, clean_log,
    restore,
};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::{Controls, FaultyStore, Mode, Rule};

use crate::house::{House, rows_at};
use crate::world::{APP, append, committed, content, mark, name, open, spec};

async fn back(lake: &Lake, version: u64) -> tributary_maintenance::Result<RestoreReport> {
    restore(lake, &name(), RestoreTo::Version(version), &RestoreOptions::default()).await
}

fn bronze() -> TableName {
    TableName::new("bronze", "orders")
}

/// The orders, and the table whose versions their positions count.
async fn made() -> Result<House> {
    let house = House::new();
    let lake = house.lake();
    let source = lake.create(&TableSpec::new(bronze(), vec![Column::new("n", DataType::Long)])).await?;
    let mut source = source;
    for _ in 0..3 {
        committed(&source, Commit { properties: BTreeMap::from([("n".to_owned(), source.version().to_string())]), ..Commit::default() })
            .await?;
        source = source.refresh().await?;
    }
    lake.create(&spec(&[], &[])).await?;
    append(&lake, 0..300).await?;
    Ok(house)
}

/// Rows marked, a file more, a column and a property more, another position.
async fn changed(lake: &Lake) -> Result<()> {
    mark(lake, 0, &(0..90).map(|at| at * 3).collect::<Vec<_>>()).await?;
    append(lake, 300..303).await?;
    let table = open(lake).await?;
    let mut columns = table.columns().to_vec();
    columns.push(Column::new("more", DataType::String));
    let properties = BTreeMap::from([("owner".to_owned(), "us".to_owned())]);
    committed(
        &table,
        Commit { schema: Some(columns), properties, operation: Operation::Alter, reads: Reads::WholeTable, ..Commit::default() },
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_schema_properties_domains_and_positions_come_back_in_one_commit() -> Result<()> {
    let house = made().await?;
    let lake = house.lake();
    let (then, expected) = (open(&lake).await?, content(&lake).await?);
    changed(&lake).await?;
    let (features, latest) = (open(&lake).await?.features(), open(&lake).await?.version());
    let dry = RestoreOptions { dry_run: true, ..RestoreOptions::default() };
    let planned = restore(&lake, &name(), RestoreTo::Version(1), &dry).await?;
    assert_eq!((planned.status, open(&lake).await?.version()), (Status::Planned, latest));
    let report = back(&lake, 1).await?;
    assert_eq!((report.status, report.version, report.from, report.to), (Status::Done, Some(latest + 1), latest, 1));
    assert_eq!((report.restored, report.removed), (planned.restored, planned.removed));
    assert_eq!(report.positions.iter().map(|moved| (moved.app_id.as_str(), moved.from, moved.to)).collect::<Vec<_>>(), [(APP, 2, 1)]);
    let lake = house.lake();
    assert_eq!(content(&lake).await?, expected);
    let now = open(&lake).await?;
    assert_eq!((now.columns(), now.properties(), now.identity()), (then.columns(), then.properties(), then.identity()));
    assert!(features.iter().all(|feature| now.features().contains(feature)), "the protocol is not lowered");
    assert_eq!(now.history(Some(1)).await?[0].operation.as_deref(), Some("RESTORE"));
    assert_eq!(back(&lake, 1).await?.status, Status::NothingToDo);
    assert_eq!(back(&lake, latest).await?.status, Status::Done, "and forth");
    assert_eq!(rows_at(&lake, latest + 2).await?, rows_at(&lake, latest).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_found_by_its_time_and_one_that_is_not_there_is_not_available() -> Result<()> {
    let house = made().await?;
    let lake = house.lake();
    let expected = content(&lake).await?;
    house.hours_pass(2);
    append(&lake, 300..303).await?;
    let hour_ago = lake.clock().now() - chrono::TimeDelta::hours(1);
    restore(&lake, &name(), RestoreTo::Timestamp(hour_ago), &RestoreOptions::default()).await?;
    assert_eq!(content(&lake).await?, expected);
    let Error::Lake { source, .. } = back(&lake, 99).await.unwrap_err() else { panic!("another error") };
    assert!(matches!(*source, LakeError::NoVersion { version: 99, .. }), "{source}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_gone_are_named_and_nothing_happens() -> Result<()> {
    let house = made().await?;
    let lake = house.lake();
    let path = open(&lake).await?.files().await?[0].path.clone();
    let table = open(&lake).await?;
    committed(
        &table,
        Commit { operation: Operation::Delete, removes: table.files().await?, reads: Reads::WholeTable, ..Commit::default() },
    )
    .await?;
    house.delete(&path).await;
    let version = open(&lake).await?.version();
    let error = back(&lake, 1).await.unwrap_err();
    assert!(matches!(&error, Error::FilesGone { version: 1, count: 1, files, .. } if *files == [path.clone()]), "{error}");
    assert_eq!(open(&lake).await?.version(), version);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_go_back_only_as_far_as_their_source_can_be_read_again_or_are_kept() -> Result<()> {
    let house = made().await?;
    let lake = house.lake();
    changed(&lake).await?;
    let expected = rows_at(&lake, 1).await?;
    let source = lake.table(&bronze()).await?.expect("it is there");
    source.checkpoint().await?;
    house.hours_pass(24 * 40);
    let options = CleanLogOptions { ignore_readers: vec![name().to_string()], ..CleanLogOptions::default() };
    clean_log(&lake, &Readers::of(&lake).await?, &bronze(), &options).await?;
    let lake = house.lake();
    let error = back(&lake, 1).await.unwrap_err();
    assert!(matches!(&error, Error::PositionGone { version: 1, earliest: Some(3), .. }), "{error}");
    let keep = RestoreOptions { positions: Positions::Keep, ..RestoreOptions::default() };
    let report = restore(&lake, &name(), RestoreTo::Version(1), &keep).await?;
    assert_eq!((report.status, report.positions.len()), (Status::Done, 0));
    assert_eq!(rows_at(&lake, report.version.unwrap_or_default()).await?, expected);
    assert_eq!(content(&lake).await?.position, Some(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_consumed_first_since_is_to_be_read_from_its_beginning() -> Result<()> {
    let house = made().await?;
    let lake = house.lake();
    changed(&lake).await?;
    let report = back(&lake, 0).await?;
    assert_eq!(report.positions.iter().map(|moved| (moved.from, moved.to)).collect::<Vec<_>>(), [(2, -1)]);
    assert_eq!((content(&lake).await?.rows.len(), content(&lake).await?.position), (0, Some(-1)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_killed_at_any_call_is_done_or_not_and_the_next_one_does_it() -> Result<()> {
    let unharmed = made().await?;
    let old_content = content(&unharmed.lake()).await?;
    changed(&unharmed.lake()).await?;
    let new_content = content(&unharmed.lake()).await?;
    let faulty = FaultyStore::new(unharmed.store.clone());
    back(&unharmed.lake_over(Arc::new(faulty.clone()), Controls::none()), 1).await?;
    let calls = faulty.counts();
    let points = (1..=calls.mutating).flat_map(|point| Mode::ALL.map(|mode| (Some((point, mode)), None)));
    for (kill, read) in points.chain((1..=calls.reads).map(|read| (None, Some(read)))) {
        let house = made().await?;
        changed(&house.lake()).await?;
        let faulty = FaultyStore::new(house.store.clone());
        kill.into_iter().for_each(|(point, mode)| faulty.kill_at(point, mode));
        read.into_iter().for_each(|read| faulty.fail_read_at(read));
        let _ = back(&house.lake_over(Arc::new(faulty), Controls::none()), 1).await;
        let found = content(&house.lake()).await?;
        assert!(found == old_content || found == new_content, "{kill:?} {read:?}: {found:?}");
        back(&house.lake(), 1).await?;
        assert_eq!(content(&house.lake()).await?, old_content, "{kill:?} {read:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_commit_meanwhile_is_gone_back_behind_too() -> Result<()> {
    let house = made().await?;
    let expected = content(&house.lake()).await?;
    changed(&house.lake()).await?;
    let version = open(&house.lake()).await?.version();
    let store = FaultyStore::new(house.store.clone());
    let rival = house.clone();
    store.before(Rule::delta_commit().on(format!("{:020}.json", version + 1)), 1, move |_| async move {
        append(&rival.lake(), 900..903).await.unwrap();
    });
    let report = back(&house.lake_over(Arc::new(store), Controls::none()), 1).await?;
    assert_eq!(report.version, Some(version + 2));
    assert_eq!(content(&house.lake()).await?, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vacuum_that_begins_in_between_is_waited_for() -> Result<()> {
    let house = made().await?;
    let lake = house.lake();
    changed(&lake).await?;
    // Every row of version 1 is in files that a vacuum without retention deletes.
    let table = open(&lake).await?;
    let removes = table.files().await?;
    committed(&table, Commit { operation: Operation::Delete, removes, reads: Reads::WholeTable, ..Commit::default() }).await?;
    house.hours_pass(1);
    let version = open(&lake).await?.version();
    let store = FaultyStore::new(house.store.clone());
    let rival = house.clone();
    store.before(Rule::delta_commit().on(format!("{:020}.json", version + 1)), 1, move |_| async move {
        let table = open(&rival.lake()).await.unwrap();
        committed(&table, Commit { operation: Operation::VacuumStart, ..Commit::default() }).await.unwrap();
    });
    let error = back(&house.lake_over(Arc::new(store), Controls::none()), 1).await.unwrap_err();
    assert!(matches!(error, Error::VacuumUnderWay { .. }), "{error}");
    let vacuum =
        VacuumOptions { mode: VacuumMode::Full, retain: Some(Duration::ZERO), accept_unsafe_retention: true, ..VacuumOptions::default() };
    assert_eq!(house.vacuum(&lake, &vacuum).await?.status, Status::Done);
    assert!(matches!(back(&house.lake(), 1).await.unwrap_err(), Error::FilesGone { .. }));
    Ok(())
}

/// What another engine's restore to version 1 leaves: the rows of then, and the positions of now.
async fn restored_by_others(house: &House) -> Result<()> {
    let lake = house.lake();
    let table = open(&lake).await?;
    let then = table.at_version(1).await?;
    let Some(commit) = table.plan_restore(&then).await? else { anyhow::bail!("there is nothing to restore") };
    let outcome = table.restore(&then, commit).await?;
    anyhow::ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_by_others_is_recognised_until_it_is_answered_for() -> Result<()> {
    for positions in [Positions::Back, Positions::Keep] {
        let house = made().await?;
        let expected = content(&house.lake()).await?;
        changed(&house.lake()).await?;
        assert_eq!(open(&house.lake()).await?.restored_by_others().await?, None);
        restored_by_others(&house).await?;
        let table = open(&house.lake()).await?;
        assert_eq!(table.restored_by_others().await?, Some(table.version()));
        // Maintenance answers for nothing.
        let properties = BTreeMap::from([("owner".to_owned(), "them".to_owned())]);
        committed(&table, Commit { properties, operation: Operation::Alter, ..Commit::default() }).await?;
        assert_eq!(open(&house.lake()).await?.restored_by_others().await?, Some(table.version()));
        let options = RestoreOptions { positions, ..RestoreOptions::default() };
        let report = restore(&house.lake(), &name(), RestoreTo::Version(table.version()), &options).await?;
        assert_eq!(report.status, Status::Done);
        let back = restore(&house.lake(), &name(), RestoreTo::Version(1), &options).await?;
        let now = content(&house.lake()).await?;
        assert_eq!(now.rows, expected.rows, "{back:?}");
        assert_eq!(now.position, if positions == Positions::Back { Some(1) } else { Some(2) });
        assert_eq!(open(&house.lake()).await?.restored_by_others().await?, None);
    }
    Ok(())
}
