//! Two runs at once.

use std::sync::Arc;

use anyhow::Result;
use futures::FutureExt;
use tributary_specs::{ExpectationAction, GoldSpec, Status};
use tributary_testkit::{FaultyStore, Rule, assert_frames_eq, frame};

use crate::world::{World, memory, name};

fn view() -> GoldSpec {
    GoldSpec::new(name("gold.total"), "SELECT sum(amount) AS total FROM silver.t").with_expectation(
        "small",
        "total < 1000",
        ExpectationAction::Quarantine,
    )
}

/// Just before the first run's commit the input moves and a rival refreshes the view.
#[tokio::test]
async fn a_run_that_lost_its_race_plans_again_and_ends_at_the_newest_inputs() -> Result<()> {
    let store = FaultyStore::new(memory());
    let world = World::over(Arc::new(store.clone()));
    world.append("silver.t", &frame!("amount: long\n 1")).await?;
    world.run(&view()).await?;
    world.append("silver.t", &frame!("amount: long\n 2")).await?;
    let rival = store.inner();
    store.before(Rule::delta_commit().on("gold/total"), 1, move |_| {
        tokio::spawn(async move {
            let rival = World::over(rival);
            rival.append("silver.t", &frame!("amount: long\n 4")).await.unwrap();
            rival.run(&view()).await.unwrap();
        })
        .map(std::result::Result::unwrap)
    });
    let report = world.run(&view()).await?;
    assert_eq!(report.conflicts, 1);
    assert_eq!((report.status, report.reason.as_str()), (Status::NothingNew, "no input moved"));
    assert_frames_eq!(world.rows("gold.total").await?, frame!("total: long\n 7"));
    Ok(())
}

/// The rival only moves the input: the first run's view is right for the version it records, and the next run goes on.
#[tokio::test]
async fn an_input_that_moves_meanwhile_is_taken_up_by_the_next_run() -> Result<()> {
    let store = FaultyStore::new(memory());
    let world = World::over(Arc::new(store.clone()));
    world.append("silver.t", &frame!("amount: long\n 1")).await?;
    let rival = store.inner();
    store.before(Rule::delta_commit().on("gold/total"), 2, move |_| {
        tokio::spawn(async move {
            World::over(rival).append("silver.t", &frame!("amount: long\n 4")).await.unwrap();
        })
        .map(std::result::Result::unwrap)
    });
    let report = world.run(&view()).await?;
    assert_eq!(report.positions["silver.t"], 1);
    assert_frames_eq!(world.rows("gold.total").await?, frame!("total: long\n 1"));
    let report = world.run(&view()).await?;
    assert_eq!(report.reason, "silver.t moved from version 1 to 2");
    assert_frames_eq!(world.rows("gold.total").await?, frame!("total: long\n 5"));
    Ok(())
}
