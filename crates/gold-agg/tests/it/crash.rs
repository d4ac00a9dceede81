//! A refresh killed at every mutating call and run again ends as one that was never killed.

use std::sync::Arc;

use anyhow::Result;
use tributary_lake::object_store::ObjectStore;
use tributary_specs::{ExpectationAction, GoldSpec, Refresh};
use tributary_testkit::{KillPoints, crash, frame};

use crate::world::{World, memory, name};

fn followed() -> GoldSpec {
    GoldSpec::new(
        name("gold.total"),
        "SELECT region, sum(amount) AS total, count(DISTINCT amount) AS kinds, count(*) AS n FROM silver.t GROUP BY region",
    )
}

/// Refreshed in full, for its quarantine is.
fn view() -> GoldSpec {
    followed().with_expectation("known", "region IS NOT NULL", ExpectationAction::Quarantine)
}

/// An input with two versions and a view made from the first.
async fn before(view: &GoldSpec) -> Result<Arc<dyn ObjectStore>> {
    let store = memory();
    let world = World::over(Arc::clone(&store));
    world.append("silver.t", &frame!("region: string | amount: long\n n | 1\n null | 2")).await?;
    world.run(view).await?;
    world.append("silver.t", &frame!("region: string | amount: long\n n | 4\n s | 8\n null | 16")).await?;
    Ok(store)
}

async fn seen(store: Arc<dyn ObjectStore>) -> Result<(Vec<String>, Option<i64>)> {
    let world = World::over(store);
    let mut rows = Vec::new();
    for table in ["gold.total", "quarantine.total"] {
        if world.lake.table(&name(table)).await?.is_none() {
            continue;
        }
        let frame = world.rows(table).await?;
        rows.extend(frame.rows().iter().map(|row| format!("{table} {row:?}")));
    }
    rows.sort();
    Ok((rows, world.table("gold.total").await?.progress("tributary:source:silver.t").await?))
}

/// G4 under a kill at every mutating call.
#[tokio::test]
async fn a_refresh_killed_at_any_mutating_call_ends_as_if_it_never_was() {
    let report = crash(
        KillPoints::All,
        async || before(&view()).await.unwrap(),
        async |store| World::over(store).run(&view()).await.map(drop),
        async |store| seen(store).await.unwrap(),
    )
    .await;
    assert!(report.holds(), "{report}\n{:#?}", report.differences);
    // A file and a commit, for the view and for its quarantine.
    assert!(report.points >= 4, "{report}");
    println!("{report}");
}

/// The same of a view that follows its input.
#[tokio::test]
async fn a_view_that_follows_killed_at_any_mutating_call_ends_as_if_it_never_was() {
    let report = crash(
        KillPoints::All,
        async || before(&followed().with_refresh(Refresh::Incremental)).await.unwrap(),
        async |store| World::over(store).run(&followed().with_refresh(Refresh::Incremental)).await.map(drop),
        async |store| seen(store).await.unwrap(),
    )
    .await;
    assert!(report.holds(), "{report}\n{:#?}", report.differences);
    // New rows, the change feed, the commit.
    assert!(report.points >= 3, "{report}");
    println!("{report}");
}
