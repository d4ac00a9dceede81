//! The toy appender killed at every mutating call: what is in the table afterwards is what is there when nobody is killed.

use std::sync::Arc;

use anyhow::Result;
use object_store::memory::InMemory;
use tributary_testkit::{Control, Controls, CrashReport, FaultyStore, KillPoints, Rule, crash_at};

use crate::toy::{APP, append_until, expected, lake_over, numbers_in, open};

/// Enough commits for a checkpoint among them.
const BATCHES: i64 = 11;

async fn killed(kills: KillPoints, reads: KillPoints, controls: Controls) -> CrashReport {
    crash_at(
        kills,
        reads,
        async || Arc::new(InMemory::new()) as _,
        async |store| append_until(&lake_over(store, controls), BATCHES).await,
        async |store| {
            let table = open(&lake_over(store, Controls::none())).await.unwrap();
            (numbers_in(&table).await.unwrap(), table.progress(APP).await.unwrap())
        },
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_appender_killed_at_any_mutating_call_leaves_each_row_once() {
    let report = killed(KillPoints::All, KillPoints::All, Controls::none()).await;
    assert!(report.holds(), "{report}\n{:#?}", report.differences);
    // A put a file and a put a commit at least, and the checkpoint's.
    assert!(report.points > 2 * BATCHES as u64, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_outside_the_commit_are_found_out_by_the_kills() {
    let report = killed(
        KillPoints::Sampled { points: 12, seed: 7 },
        KillPoints::Sampled { points: 0, seed: 7 },
        Controls::none().with(Control::PositionsOutsideCommit),
    )
    .await;
    assert!(!report.differences.is_empty(), "{report}");
}

/// Just before the first appender's put of version `at`, a second one runs to its end; then the first goes on.
async fn overlapped(at: u64, controls: Controls) -> Result<Vec<i64>> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let rival = store.inner();
    store.before(Rule::delta_commit().on(format!("{at:020}.json")), 1, move |_| async move {
        append_until(&lake_over(rival, controls), BATCHES).await.unwrap();
    });
    append_until(&lake_over(Arc::new(store.clone()), controls), BATCHES).await?;
    numbers_in(&open(&lake_over(store.inner(), Controls::none())).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_appenders_that_overlap_anywhere_append_each_row_once() -> Result<()> {
    for at in 0..=BATCHES as u64 {
        assert_eq!(overlapped(at, Controls::none()).await?, expected(BATCHES), "the second came before version {at}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_is_not_fenced_is_found_out_by_the_overlap() -> Result<()> {
    let mut doubled = 0;
    for at in 1..=BATCHES as u64 {
        doubled += usize::from(overlapped(at, Controls::none().with(Control::FencingOff)).await? != expected(BATCHES));
    }
    assert_eq!(doubled, BATCHES as usize, "an unfenced writer appends the rows of the other again");
    Ok(())
}
