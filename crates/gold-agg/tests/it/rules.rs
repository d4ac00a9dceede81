//! Expectations: warn, drop, quarantine, fail.

use anyhow::Result;
use tributary_fault::{ExitCode, Fault};
use tributary_gold_agg::{Error, Options, run};
use tributary_specs::{ExpectationAction, GoldSpec, Status};
use tributary_testkit::{Frame, assert_frames_eq, frame};

use crate::world::{World, assert_counts_add_up, name};

fn rows() -> Frame {
    frame!("id: long | amount: long\n 1 | 5\n 2 | -1\n 3 | null\n 4 | -9\n 5 | 1")
}

fn view() -> GoldSpec {
    GoldSpec::new(name("gold.view"), "SELECT id, amount FROM silver.t")
}

#[tokio::test]
async fn a_warning_is_counted_and_its_rows_kept() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &rows()).await?;
    let report = world.run(&view().with_expectation("positive", "AMOUNT > 0", ExpectationAction::Warn)).await?;
    assert_eq!((report.expectations["positive"], report.rows_out), (3, 5));
    Ok(())
}

#[tokio::test]
async fn dropped_rows_are_counted_by_rule_and_null_is_a_failure() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &rows()).await?;
    let spec = view().with_expectation("positive", "amount > 0", ExpectationAction::Drop).with_expectation(
        "low id",
        "id < 5",
        ExpectationAction::Drop,
    );
    let report = world.run(&spec).await?;
    assert_eq!((report.rows_in, report.rows_out), (5, 1));
    assert_eq!((report.rows_ignored["expectation positive"], report.rows_ignored["expectation low id"]), (3, 1));
    assert_frames_eq!(world.rows("gold.view").await?, frame!("id: long | amount: long\n 1 | 5"));
    Ok(())
}

#[tokio::test]
async fn quarantined_rows_are_kept_with_rule_run_and_versions_and_leave_when_they_are_mended() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &rows()).await?;
    let spec = view().with_expectation("positive", "amount > 0", ExpectationAction::Quarantine);
    let options = Options { run_id: "run 1".into(), ..Options::default() };
    let report = run(&world.lake, &spec, &options).await?;
    assert_counts_add_up(&report);
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 3));
    assert_frames_eq!(
        world.rows("quarantine.view").await?,
        frame!(
            r#"row: struct<id:long,amount:long> | rule: string | run: string | source_versions: map<string,long> | quarantined_at: timestamp
               {"id": 2, "amount": -1}          | positive     | run 1       | [["silver.t", 1]]                 | 2026-02-01T10:00:00Z
               {"id": 3, "amount": null}        | positive     | run 1       | [["silver.t", 1]]                 | 2026-02-01T10:00:00Z
               {"id": 4, "amount": -9}          | positive     | run 1       | [["silver.t", 1]]                 | 2026-02-01T10:00:00Z"#
        )
    );
    assert_eq!(world.table("quarantine.view").await?.progress("tributary:source:silver.t").await?, Some(1));

    world.replace("silver.t", &frame!("id: long | amount: long\n 1 | 5\n 2 | 1")).await?;
    let report = run(&world.lake, &spec, &options).await?;
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 0));
    assert_eq!(world.rows("quarantine.view").await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_view_without_bad_rows_makes_no_quarantine() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &frame!("id: long | amount: long\n 1 | 5")).await?;
    world.run(&view().with_expectation("positive", "amount > 0", ExpectationAction::Quarantine)).await?;
    assert!(world.lake.table(&name("quarantine.view")).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_failing_rule_stops_the_view_before_its_commit() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &frame!("id: long | amount: long\n 1 | 5")).await?;
    let spec = view().with_expectation("positive", "amount > 0", ExpectationAction::Fail).with_expectation(
        "known",
        "amount IS NOT NULL",
        ExpectationAction::Quarantine,
    );
    world.run(&spec).await?;
    world.append("silver.t", &rows()).await?;
    let error = world.run(&spec).await.unwrap_err();
    assert!(matches!(&error, Error::Expectation { rows: 3, expectation, .. } if expectation == "positive"), "{error}");
    assert_eq!(ExitCode::of(error.class()), ExitCode::Expectation);
    assert_eq!((world.version("gold.view").await?, world.rows("gold.view").await?.len()), (1, 1));
    world.replace("silver.t", &frame!("id: long | amount: long\n 7 | 5")).await?;
    assert_eq!(world.run(&spec).await?.status, Status::Committed);
    Ok(())
}
