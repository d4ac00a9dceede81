//! Compaction, purge and checkpoints: what they leave, and M3: that a second run leaves it so.

use anyhow::Result;
use tributary_lake::Commit;
use tributary_maintenance::{Options, Status, Task};
use tributary_testkit::Controls;

use crate::world::{append, at_once, committed, content, done, ids_of, lake, lake_at, mark, open, spec, store};

#[tokio::test(flavor = "multi_thread")]
async fn small_files_become_one_in_the_order_of_their_keys_and_nothing_is_left_to_do() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&[], &[])).await?;
    for ids in [[5, 1], [4, 2], [6, 3]] {
        append(&lake, ids).await?;
    }
    let (before, read_at) = (content(&lake).await?, open(&lake).await?.version());
    let dry = done(&lake, &Task::Optimize, &Options { dry_run: true, ..at_once() }).await?;
    assert_eq!((dry.tables[0].status, dry.tables[0].predicted.files), (Status::Planned, 1));
    assert_eq!(open(&lake).await?.version(), read_at, "a dry run writes nothing");

    let report = done(&lake, &Task::Optimize, &at_once()).await?;
    let said = &report.tables[0];
    assert_eq!((said.status, said.before.files, said.after.files, said.commits), (Status::Done, 3, 1, 1));
    assert_eq!(said.reason, "3 small files");
    let off = said.after.bytes.abs_diff(dry.tables[0].predicted.bytes);
    assert!(off * 10 <= said.after.bytes, "predicted {:?}, became {:?}", dry.tables[0].predicted, said.after);
    assert_eq!(content(&lake).await?, before);

    let table = open(&lake).await?;
    let file = &table.files().await?[0];
    assert_eq!(ids_of(&table, file).await?, [1, 2, 3, 4, 5, 6]);
    assert_eq!(table.form(file).await?.key_columns, ["id"], "keys are still looked up by Bloom filter");
    assert!(table.appended(Some(read_at), table.version()).await.is_ok(), "readers of appends see no change");
    let entry = &table.history(Some(1)).await?[0];
    assert_eq!(entry.operation.as_deref(), Some("OPTIMIZE"));
    assert_eq!(entry.metrics["numRemovedFiles"], "3");

    let again = done(&lake, &Task::Optimize, &at_once()).await?;
    assert_eq!((again.tables[0].status, again.nothing_to_do()), (Status::NothingToDo, true));
    assert_eq!(open(&lake).await?.version(), table.version());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn m3_a_second_run_of_each_task_writes_nothing() -> Result<()> {
    for (task, cluster_by) in [
        (Task::Auto, &[][..]),
        (Task::Optimize, &[]),
        (Task::ZOrder(vec!["x".to_owned(), "id".to_owned()]), &[]),
        (Task::Reorg, &[]),
        (Task::Checkpoint, &[]),
        (Task::Auto, &["x", "id"]),
        (Task::Cluster, &["x", "id"]),
    ] {
        let lake = lake(store());
        lake.create(&spec(&[], cluster_by)).await?;
        for start in 0..12 {
            append(&lake, start * 50..start * 50 + 50).await?;
        }
        mark(&lake, 0, &[0, 3, 4, 5, 9, 11]).await?;
        let before = content(&lake).await?;
        // Groups of few files, so that what they leave meets again.
        let options = Options { group_bytes: 5000, ..at_once() };
        let first = done(&lake, &task, &options).await?;
        assert_eq!(first.tables[0].status, Status::Done, "{task:?}");
        assert_eq!(content(&lake).await?, before, "{task:?}");
        let version = open(&lake).await?.version();
        let second = done(&lake, &task, &options).await?;
        assert_eq!((second.tables[0].status, open(&lake).await?.version()), (Status::NothingToDo, version), "{task:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_keeps_to_itself() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&["note"], &[])).await?;
    append(&lake, 0..30).await?;
    append(&lake, 30..60).await?;
    let before = content(&lake).await?;
    let report = done(&lake, &Task::Auto, &at_once()).await?;
    assert_eq!((report.tables[0].before.files, report.tables[0].after.files), (6, 3));
    assert_eq!(content(&lake).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_marked_as_deleted_go_with_their_vectors_from_their_share_on() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&[], &[])).await?;
    append(&lake, 0..100).await?;
    mark(&lake, 0, &[0, 1, 2, 3]).await?;
    assert!(done(&lake, &Task::Optimize, &at_once()).await?.nothing_to_do(), "4 of 100 are few");
    mark(&lake, 0, &(40..60).collect::<Vec<_>>()).await?;
    let before = content(&lake).await?;
    done(&lake, &Task::Optimize, &at_once()).await?;
    let files = open(&lake).await?.files().await?;
    assert_eq!((files.len(), files[0].stats.rows, files[0].deletion_vector.is_none()), (1, Some(76), true));
    assert_eq!(content(&lake).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_which_no_row_is_left_goes_without_another_in_its_place() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&[], &[])).await?;
    append(&lake, 0..4).await?;
    append(&lake, 4..8).await?;
    mark(&lake, 0, &[0, 1, 2]).await?;
    mark(&lake, 1, &[0, 1, 2]).await?;
    let before = content(&lake).await?;
    done(&lake, &Task::Reorg, &at_once()).await?;
    assert_eq!(content(&lake).await?, before);
    assert!(open(&lake).await?.files().await?.iter().all(|file| file.deletion_vector.is_none()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_rows_somebody_changes_gets_one_commit_a_minute() -> Result<()> {
    let store = store();
    let now = lake(store.clone());
    now.create(&spec(&["note"], &[])).await?;
    append(&now, 0..30).await?;
    append(&now, 30..60).await?;
    mark(&now, 0, &[1]).await?;
    // A bin a group.
    let options = Options { group_bytes: 1, vector_share: 1.0, ..Options::default() };
    let bins = Options { group_bytes: 1 << 20, ..options.clone() };
    let one = done(&now, &Task::Optimize, &Options { group_bytes: 4000, ..options }).await?;
    assert!(one.tables[0].commits <= 1);
    let two = done(&now, &Task::Optimize, &bins).await?;
    if one.tables[0].status == Status::Left {
        assert_eq!(one.exit_code().code(), 4);
        assert_eq!((two.tables[0].status, two.tables[0].commits), (Status::Left, 0), "{two:?}");
        assert!(two.tables[0].left.as_ref().unwrap().contains("somebody changed rows 0 s ago"), "{two:?}");
    }
    let later = lake_at(store, 2, Controls::none());
    let three = done(&later, &Task::Optimize, &bins).await?;
    assert!(matches!(three.tables[0].status, Status::Done | Status::NothingToDo));
    assert_eq!(three.tables[0].after.files, 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_group_is_begun_when_the_time_is_over() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&[], &[])).await?;
    append(&lake, 0..3).await?;
    append(&lake, 3..6).await?;
    let options = Options { time_limit: Some(std::time::Duration::ZERO), ..at_once() };
    let report = done(&lake, &Task::Optimize, &options).await?;
    assert_eq!((report.tables[0].status, report.exit_code().code()), (Status::Left, 4));
    assert_eq!(report.tables[0].left.as_deref(), Some("1 groups of files, because the time is over"));
    assert_eq!(open(&lake).await?.files().await?.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_a_checkpoint_gets_one() -> Result<()> {
    let lake = lake(store());
    let mut declared = spec(&[], &[]);
    declared.properties.insert("delta.checkpointInterval".to_owned(), "1000".to_owned());
    lake.create(&declared).await?;
    let table = open(&lake).await?;
    for at in 0..25 {
        let properties = [("tributary.at".to_owned(), at.to_string())].into();
        committed(&table.refresh().await?, Commit { properties, ..Commit::default() }).await?;
    }
    let report = done(&lake, &Task::Auto, &at_once()).await?;
    assert_eq!((report.tables[0].status, report.tables[0].checkpoint), (Status::Done, true));
    assert_eq!(report.tables[0].reason, "25 commits since the last checkpoint");
    assert!(done(&lake, &Task::Auto, &at_once()).await?.nothing_to_do());
    assert!(!done(&lake, &Task::Checkpoint, &at_once()).await?.tables[0].checkpoint);
    Ok(())
}
