//! M1: each task killed at every call that changes the store, and each read failing once: the table is what it was, the next run ends.

use std::sync::Arc;

use anyhow::Result;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_maintenance::{Options, Status, Task};
use tributary_testkit::{Control, Controls, CrashReport, KillPoints, crash_at};

use crate::world::{Content, append, at_once, content, done, lake, lake_at, mark, open, spec, store};

/// Files of equally many rows, some of them marked as deleted, in two partitions' worth of groups.
async fn made(partition_by: &[&str], cluster_by: &[&str]) -> Arc<InMemory> {
    let store = store();
    let lake = lake(store.clone());
    lake.create(&spec(partition_by, cluster_by)).await.unwrap();
    for start in 0..6 {
        append(&lake, start * 12..start * 12 + 12).await.unwrap();
    }
    mark(&lake, 1, &[0, 2]).await.unwrap();
    store
}

/// Rows, positions and domains, and how many files lie as they should.
async fn seen(store: Arc<dyn ObjectStore>) -> (Content, usize) {
    let lake = lake(store);
    (content(&lake).await.unwrap(), open(&lake).await.unwrap().files().await.unwrap().len())
}

async fn run(store: Arc<dyn ObjectStore>, task: &Task, controls: Controls) -> Result<()> {
    let options = Options { group_bytes: 8000, ..at_once() };
    let report = done(&lake_at(store, 1, controls), task, &options).await?;
    anyhow::ensure!(matches!(report.tables[0].status, Status::Done | Status::NothingToDo), "{report:?}");
    Ok(())
}

async fn killed(task: Task, partition_by: &[&str], cluster_by: &[&str], controls: Controls) -> CrashReport {
    let before = seen(made(partition_by, cluster_by).await).await.0;
    let report = crash_at(
        KillPoints::All,
        KillPoints::All,
        async || made(partition_by, cluster_by).await as _,
        async |store| run(store, &task, controls).await,
        seen,
    )
    .await;
    let store = made(partition_by, cluster_by).await;
    run(store.clone(), &task, controls).await.unwrap();
    let after = seen(store).await.0;
    let mut report = report;
    if after != before {
        report.differences.push(format!("{task:?} changes what the table holds: {after:?}\ninstead of {before:?}"));
    }
    report
}

fn zorder() -> Task {
    Task::ZOrder(vec!["x".to_owned(), "id".to_owned()])
}

#[tokio::test(flavor = "multi_thread")]
async fn m1_each_task_killed_at_any_mutating_call_changes_no_row_position_or_domain() {
    for (task, partition_by, cluster_by) in [
        (Task::Optimize, &[][..], &[][..]),
        (Task::Auto, &["note"], &[]),
        (Task::Cluster, &[], &["x", "id"]),
        (zorder(), &[], &[]),
        (Task::Reorg, &[], &[]),
        (Task::Checkpoint, &[], &[]),
    ] {
        let report = killed(task.clone(), partition_by, cluster_by, Controls::none()).await;
        assert!(report.holds(), "{task:?}: {report}\n{:#?}", report.differences);
        println!("{task:?}: {report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_forgotten_is_found_out() {
    for (task, cluster_by) in [(Task::Optimize, &[][..]), (Task::Cluster, &["x"]), (zorder(), &[])] {
        let store = made(&[], cluster_by).await;
        let before = seen(store.clone()).await.0;
        let ran = run(store.clone(), &task, Controls::none().with(Control::InputForgotten)).await;
        assert!(ran.is_err() || seen(store).await.0 != before, "{task:?}: nobody noticed");
    }
    // Equally many rows in each: no count gives it away, the rows do.
    let store = store();
    let even = lake(store.clone());
    even.create(&spec(&[], &[])).await.unwrap();
    for start in 0..3 {
        append(&even, start * 5..start * 5 + 5).await.unwrap();
    }
    let before = seen(store.clone()).await.0;
    run(store.clone(), &Task::Optimize, Controls::none().with(Control::InputForgotten)).await.unwrap();
    assert_ne!(seen(store).await.0, before);
}
