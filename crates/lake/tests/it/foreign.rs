//! Races against the Delta library as the other writer. Each test is a race that the library itself loses silently, or refuses
//! without need, when it is on our side of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use deltalake::DeltaTable;
use deltalake::datafusion::prelude::{col, lit};
use deltalake::kernel::transaction::CommitProperties;
use deltalake::kernel::{DataType as DeltaType, PrimitiveType, StructField, Transaction};
use deltalake::{DeltaTableBuilder, protocol::SaveMode};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::{Commit, CommitOutcome, Conflict, Error, KeyRange, KeyRanges, Operation, Progress, Reads, Table};
use tributary_testkit::{Control, Controls};
use url::Url;

use crate::toy::{APP, file_of, lake_over, numbers, numbers_in, open, spec};

/// Four files of a hundred rows, made and written by the library.
struct Shared {
    store: Arc<dyn ObjectStore>,
}

impl Shared {
    async fn new() -> Result<Self> {
        let shared = Self { store: Arc::new(InMemory::new()) };
        let long = |name: &str| StructField::new(name, DeltaType::Primitive(PrimitiveType::Long), true);
        let table = shared
            .builder()?
            .build()?
            .create()
            .with_columns([long("n"), long("batch")])
            .with_log_store(shared.builder()?.build()?.log_store())
            .await?;
        let mut table = table;
        for file in 0..4 {
            let rows: Vec<i64> = (file * 100..file * 100 + 100).collect();
            table = table.write([numbers(&rows, file)]).with_save_mode(SaveMode::Append).await?;
        }
        Ok(shared)
    }

    fn builder(&self) -> Result<DeltaTableBuilder> {
        let url = Url::parse("memory:///lake/main/bronze/numbers/")?;
        Ok(DeltaTableBuilder::from_url(url.clone())?.with_storage_backend(Arc::clone(&self.store), url))
    }

    async fn library(&self) -> Result<DeltaTable> {
        Ok(self.builder()?.load().await?)
    }

    async fn ours(&self, controls: Controls) -> Result<Table> {
        open(&lake_over(Arc::clone(&self.store), controls)).await
    }

    async fn optimize(&self) -> Result<()> {
        let (_, metrics) = self.library().await?.optimize().await?;
        assert_eq!((metrics.num_files_removed, metrics.num_files_added), (4, 1), "the race needs a compaction");
        Ok(())
    }
}

fn keys(low: i64, high: i64) -> Reads {
    let range = KeyRange { bounds: Some((ScalarValue::Int64(Some(low)), ScalarValue::Int64(Some(high)))), nulls: false };
    Reads::Keys(KeyRanges(BTreeMap::from([("n".to_owned(), range)])))
}

async fn overwrite(table: &Table, rows: &[i64]) -> Result<Commit> {
    let adds = if rows.is_empty() { Vec::new() } else { file_of(table, rows, 9).await? };
    Ok(Commit { operation: Operation::Overwrite, adds, removes: table.files().await?, reads: Reads::WholeTable, ..Commit::default() })
}

/// The library: 410 rows instead of 10.
#[tokio::test(flavor = "multi_thread")]
async fn an_overwrite_that_lost_to_an_optimize_plans_again() -> Result<()> {
    let ten: Vec<i64> = (1000..1010).collect();
    let shared = Shared::new().await?;
    let stale = shared.ours(Controls::none()).await?;
    let commit = overwrite(&stale, &ten).await?;
    shared.optimize().await?;
    let outcome = stale.commit(commit).await?;
    assert!(matches!(outcome, CommitOutcome::Conflicted(Conflict::FileChanged { .. })), "{outcome:?}");
    let fresh = stale.refresh().await?;
    assert_eq!(numbers_in(&fresh).await?.len(), 400);
    let again = overwrite(&fresh, &ten).await?;
    assert!(matches!(fresh.commit(again).await?, CommitOutcome::Committed { .. }));
    assert_eq!(numbers_in(&fresh.refresh().await?).await?, ten);
    Ok(())
}

/// The library: deletes nothing, 400 rows instead of 0.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_of_everything_that_lost_to_an_optimize_plans_again() -> Result<()> {
    let shared = Shared::new().await?;
    let stale = shared.ours(Controls::none()).await?;
    let commit = overwrite(&stale, &[]).await?;
    shared.optimize().await?;
    assert!(matches!(stale.commit(commit).await?, CommitOutcome::Conflicted(Conflict::FileChanged { .. })));
    let fresh = stale.refresh().await?;
    let again = overwrite(&fresh, &[]).await?;
    assert!(matches!(fresh.commit(again).await?, CommitOutcome::Committed { .. }));
    assert_eq!(numbers_in(&fresh.refresh().await?).await?, Vec::<i64>::new());
    Ok(())
}

/// The library: 499 rows for 400 keys. The control shows that the race is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_level_change_that_lost_to_an_optimize_plans_again() -> Result<()> {
    for (controls, rows) in [(Controls::none(), 400), (Controls::none().with(Control::NoReplanAfterConflict), 499)] {
        let shared = Shared::new().await?;
        let stale = shared.ours(controls).await?;
        let file =
            stale.files().await?.into_iter().find(|file| file.stats.columns["n"].min == Some(ScalarValue::Int64(Some(100)))).unwrap();
        // Row 150 goes; the other 99 of its file are written again.
        let kept: Vec<i64> = (100..200).filter(|n| *n != 150).collect();
        let commit = Commit {
            operation: Operation::Merge,
            adds: file_of(&stale, &kept, 1).await?,
            removes: vec![file],
            reads: keys(150, 150),
            ..Commit::default()
        };
        shared.optimize().await?;
        let outcome = stale.commit(commit).await?;
        let after = numbers_in(&stale.refresh().await?).await?;
        assert_eq!(after.len(), rows, "{outcome:?}");
    }
    Ok(())
}

/// The library: refuses, though nothing the append means depends on the delete.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_goes_on_top_of_a_delete_and_of_an_optimize() -> Result<()> {
    let shared = Shared::new().await?;
    let stale = shared.ours(Controls::none()).await?;
    let adds = file_of(&stale, &[5000], 9).await?;
    shared.library().await?.delete().with_predicate(col("n").lt(lit(50_i64))).await?;
    shared.library().await?.optimize().await?;
    assert!(matches!(stale.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { .. }));
    let rows = numbers_in(&stale.refresh().await?).await?;
    assert_eq!((rows.len(), rows.first(), rows.last()), (351, Some(&50), Some(&5000)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_keys_that_the_library_appended_plans_again_and_others_do_not_matter() -> Result<()> {
    for (appended, conflicts) in [(155, true), (9000, false)] {
        let shared = Shared::new().await?;
        let stale = shared.ours(Controls::none()).await?;
        let file =
            stale.files().await?.into_iter().find(|file| file.stats.columns["n"].min == Some(ScalarValue::Int64(Some(100)))).unwrap();
        let rows: Vec<i64> = (100..200).collect();
        let commit = Commit {
            operation: Operation::Merge,
            adds: file_of(&stale, &rows, 1).await?,
            removes: vec![file],
            reads: keys(150, 160),
            ..Commit::default()
        };
        shared.library().await?.write([numbers(&[appended], 7)]).with_save_mode(SaveMode::Append).await?;
        let outcome = stale.commit(commit).await?;
        match conflicts {
            true => assert!(matches!(outcome, CommitOutcome::Conflicted(Conflict::RowsAdded { .. })), "{outcome:?}"),
            false => assert!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}"),
        }
    }
    Ok(())
}

/// The library: takes an equal or a lower position from a fresh snapshot.
#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_the_library_moved_fences_us() -> Result<()> {
    let shared = Shared::new().await?;
    let stale = shared.ours(Controls::none()).await?;
    let adds = file_of(&stale, &[5000], 9).await?;
    let properties = CommitProperties::default().with_application_transaction(Transaction::new(APP, 3));
    shared.library().await?.write([numbers(&[6000], 8)]).with_save_mode(SaveMode::Append).with_commit_properties(properties).await?;
    let commit = Commit { adds, progress: vec![Progress { app_id: APP.to_owned(), expected: None, version: 3 }], ..Commit::default() };
    let fenced = CommitOutcome::Fenced { app_id: APP.to_owned(), expected: None, found: Some(3) };
    assert_eq!(stale.commit(commit.clone()).await?, fenced);
    assert_eq!(stale.refresh().await?.commit(commit).await?, fenced);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_the_library_added_makes_an_append_plan_again() -> Result<()> {
    let shared = Shared::new().await?;
    let stale = shared.ours(Controls::none()).await?;
    let adds = file_of(&stale, &[5000], 9).await?;
    let note = StructField::new("note", DeltaType::Primitive(PrimitiveType::String), true);
    shared.library().await?.add_columns().with_fields([note]).await?;
    let outcome = stale.commit(Commit { adds, ..Commit::default() }).await?;
    assert!(matches!(outcome, CommitOutcome::Conflicted(Conflict::Metadata { .. })), "{outcome:?}");
    Ok(())
}

/// The other way round: what we commit is seen by the library's own check.
#[tokio::test(flavor = "multi_thread")]
async fn an_optimize_of_the_library_that_lost_to_us_does_not_undo_our_change() -> Result<()> {
    let shared = Shared::new().await?;
    let library = shared.library().await?;
    let ours = shared.ours(Controls::none()).await?;
    let file = ours.files().await?.into_iter().find(|file| file.stats.columns["n"].min == Some(ScalarValue::Int64(Some(100)))).unwrap();
    let kept: Vec<i64> = (100..200).filter(|n| *n != 150).collect();
    let commit = Commit {
        operation: Operation::Merge,
        adds: file_of(&ours, &kept, 1).await?,
        removes: vec![file],
        reads: keys(150, 150),
        ..Commit::default()
    };
    assert!(matches!(ours.commit(commit).await?, CommitOutcome::Committed { .. }));
    assert!(library.optimize().await.is_err(), "the library's plan is stale");
    assert_eq!(numbers_in(&ours.refresh().await?).await?.len(), 399);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn our_optimize_yields_to_a_change_of_its_inputs_and_not_to_appends() -> Result<()> {
    for touched in [true, false] {
        let shared = Shared::new().await?;
        let stale = shared.ours(Controls::none()).await?;
        let rows = numbers_in(&stale).await?;
        let optimize = Commit {
            operation: Operation::Optimize,
            adds: file_of(&stale, &rows, 1).await?,
            removes: stale.files().await?,
            reads: Reads::Files,
            ..Commit::default()
        };
        match touched {
            true => _ = shared.library().await?.delete().with_predicate(col("n").eq(lit(7_i64))).await?,
            false => _ = shared.library().await?.write([numbers(&[9000], 7)]).with_save_mode(SaveMode::Append).await?,
        }
        let outcome = stale.commit(optimize).await?;
        let after = numbers_in(&stale.refresh().await?).await?.len();
        match touched {
            true => assert!(
                matches!(outcome, CommitOutcome::Conflicted(Conflict::FileChanged { .. })) && after == 399,
                "{outcome:?}, {after} rows"
            ),
            false => assert!(matches!(outcome, CommitOutcome::Committed { .. }) && after == 401, "{outcome:?}, {after} rows"),
        }
    }
    Ok(())
}

/// With compaction beside it an appender neither fails nor loses rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_and_optimizes_side_by_side_lose_nothing() -> Result<()> {
    let shared = Arc::new(Shared::new().await?);
    let appender = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            let mut table = shared.ours(Controls::none()).await?;
            for batch in 0..20 {
                let rows: Vec<i64> = (10_000 + batch * 10..10_010 + batch * 10).collect();
                let adds = file_of(&table, &rows, batch).await?;
                let outcome = table.commit(Commit { adds, ..Commit::default() }).await?;
                anyhow::ensure!(matches!(outcome, CommitOutcome::Committed { .. }), "{outcome:?}");
                table = table.refresh().await?;
            }
            Ok(())
        }
    });
    for _ in 0..3 {
        // The library may lose its race; what matters is what is in the table.
        let _ = shared.library().await?.optimize().await;
        tokio::task::yield_now().await;
    }
    appender.await??;
    assert_eq!(numbers_in(&shared.ours(Controls::none()).await?).await?.len(), 600);
    Ok(())
}

/// The library reads what only we can write.
#[tokio::test(flavor = "multi_thread")]
async fn the_library_reads_our_tables_and_refuses_to_write_to_them() -> Result<()> {
    let shared = Shared { store: Arc::new(InMemory::new()) };
    let mut spec = spec();
    spec.cluster_by = vec!["n".to_owned()];
    let table = lake_over(Arc::clone(&shared.store), Controls::none()).create(&spec).await?;
    let adds = file_of(&table, &[1, 2, 3], 0).await?;
    assert_eq!(table.commit(Commit { adds, ..Commit::default() }).await?, CommitOutcome::Committed { version: 1 });
    let library = shared.library().await?;
    assert_eq!((library.version(), library.snapshot()?.snapshot().log_data().num_files()), (Some(1), 1));
    assert!(library.write([numbers(&[4], 1)]).with_save_mode(SaveMode::Append).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_live_is_not_removed() -> Result<()> {
    let shared = Shared::new().await?;
    let old = shared.ours(Controls::none()).await?;
    shared.optimize().await?;
    let fresh = old.refresh().await?;
    let commit = Commit {
        operation: Operation::Merge,
        adds: file_of(&fresh, &[1], 1).await?,
        removes: old.files().await?,
        reads: Reads::WholeTable,
        ..Commit::default()
    };
    assert!(matches!(fresh.commit(commit).await, Err(Error::Malformed { .. })), "files of another snapshot");
    Ok(())
}
