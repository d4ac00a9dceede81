//! Beside rivals: whatever they do just before our commit, no row of theirs is lost and none comes back.

use std::sync::Arc;

use anyhow::Result;
use tributary_lake::object_store::ObjectStore;
use tributary_maintenance::{Options, Report, Task};
use tributary_testkit::{Control, Controls, FaultyStore, Rule};

use crate::world::{Content, append, at_once, content, done, lake, lake_at, mark, open, spec, store};

/// What a rival does.
#[derive(Debug, Clone, Copy)]
enum Rival {
    /// Appends rows.
    Append,
    /// Marks rows of an input as deleted.
    Mark,
    /// Writes the same files anew.
    Optimize,
}

async fn act(rival: Rival, store: Arc<dyn ObjectStore>) -> Result<()> {
    let lake = lake(store);
    match rival {
        Rival::Append => append(&lake, 900..905).await,
        Rival::Mark => mark(&lake, 0, &[1, 2]).await,
        Rival::Optimize => done(&lake, &Task::Optimize, &at_once()).await.map(drop),
    }
}

/// Optimizes; just before the commit file of its first commit is put, the rival acts. The report, and what the table holds.
async fn raced(rival: Rival, partition_by: &[&str], controls: Controls) -> Result<(Report, Content)> {
    let faulty = FaultyStore::new(store());
    let quiet = lake(faulty.inner());
    quiet.create(&spec(partition_by, &[])).await?;
    for start in 0..4 {
        append(&quiet, start * 9..start * 9 + 9).await?;
    }
    let next = open(&quiet).await?.version() + 1;
    let inner = faulty.inner();
    faulty.before(Rule::delta_commit().on(format!("{next:020}.json")), 1, move |_| async move {
        act(rival, inner).await.unwrap();
    });
    let report = done(&lake_at(Arc::new(faulty.clone()), 1, controls), &Task::Optimize, &at_once()).await?;
    Ok((report, content(&lake(faulty.inner())).await?))
}

/// What the table holds when nobody but the rival was there.
async fn alone(rival: Rival, partition_by: &[&str]) -> Result<Content> {
    let store = store();
    let quiet = lake(store.clone());
    quiet.create(&spec(partition_by, &[])).await?;
    for start in 0..4 {
        append(&quiet, start * 9..start * 9 + 9).await?;
    }
    act(rival, store).await?;
    content(&quiet).await
}

#[tokio::test(flavor = "multi_thread")]
async fn m1_a_rival_loses_nothing_and_brings_back_nothing() -> Result<()> {
    for partition_by in [&[][..], &["note"]] {
        for rival in [Rival::Append, Rival::Mark, Rival::Optimize] {
            let (_, holds) = raced(rival, partition_by, Controls::none()).await?;
            assert_eq!(holds, alone(rival, partition_by).await?, "{rival:?} {partition_by:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_bin_whose_input_a_rival_touched_is_written_in_vain() -> Result<()> {
    let (report, _) = raced(Rival::Mark, &["note"], Controls::none()).await?;
    assert_eq!((report.tables[0].lost_races, report.tables[0].commits), (1, 1), "{report:?}");
    assert_eq!(report.exit_code().code(), 4);
    let (report, _) = raced(Rival::Append, &["note"], Controls::none()).await?;
    assert_eq!((report.tables[0].lost_races, report.tables[0].read.files), (0, 12 + 6), "what came meanwhile is taken too: {report:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rivals_vector_that_is_ignored_is_found_out() -> Result<()> {
    let (_, holds) = raced(Rival::Mark, &[], Controls::none().with(Control::NoReplanAfterConflict)).await?;
    assert_ne!(holds.rows.len(), alone(Rival::Mark, &[]).await?.rows.len(), "rows that the rival took away came back, and nobody noticed");
    Ok(())
}

/// Appenders, a deleter and two optimizers at once: what is there in the end is what was appended and not deleted.
#[tokio::test(flavor = "multi_thread")]
async fn law_a_crowd_beside_maintenance_loses_and_doubles_no_row() -> Result<()> {
    let store = store();
    let quiet = lake(store.clone());
    quiet.create(&spec(&[], &["x"])).await?;
    append(&quiet, 0..20).await?;
    let appender = {
        let store = store.clone();
        async move {
            for start in 1..12 {
                let lake = lake(store.clone());
                while append(&lake, start * 20..start * 20 + 20).await.is_err() {}
                tokio::task::yield_now().await;
            }
        }
    };
    let deleter = {
        let store = store.clone();
        async move {
            let mut deleted = 0;
            for _ in 0..6 {
                deleted += u64::from(mark(&lake(store.clone()), 0, &[0]).await.is_ok());
                tokio::task::yield_now().await;
            }
            deleted
        }
    };
    let optimizer = |minute| {
        let store = store.clone();
        async move {
            for _ in 0..6 {
                let options = Options { vector_share: 0.01, ..at_once() };
                done(&lake_at(store.clone(), minute, Controls::none()), &Task::Auto, &options).await.unwrap();
            }
        }
    };
    let (appender, deleter) = (tokio::spawn(appender), tokio::spawn(deleter));
    let optimizers = [tokio::spawn(optimizer(1)), tokio::spawn(optimizer(2))];
    appender.await?;
    let deleted = deleter.await?;
    for optimizer in optimizers {
        optimizer.await?;
    }
    let rows = content(&lake(store)).await?.rows;
    let mut once = rows.clone();
    once.dedup();
    assert_eq!((rows.len() as u64, once.len()), (240 - deleted, rows.len()));
    Ok(())
}
