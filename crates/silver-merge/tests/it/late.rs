//! Rows that come later than the watermark are told by the versions of their source alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use proptest::prelude::*;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{Commit, CommitOutcome, Operation, Reads};
use tributary_silver_merge::Options;
use tributary_specs::{Column, LateRows, MergePolicy, SilverSpec, Watermark};
use tributary_testkit::{Controls, FaultyStore, Frame, FrameDiff, Law, Mode, Tried, Value};

use crate::world::{World, block_on, source, target};

const MINUTE: i64 = 60_000_000;
const DELAY: i64 = 10;

/// A row: its number, and its time in minutes.
type Row = (i64, Option<i64>);

#[derive(Debug, Clone)]
enum Step {
    /// A commit of the source: of each row its time.
    Append(Vec<Option<u8>>),
    /// A run that commits after so many versions at most.
    Run(Option<u64>),
    /// A run that is killed at its n-th mutating call.
    Killed { at: u64, mode: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let append = proptest::collection::vec(proptest::option::weighted(0.9, 0..60_u8), 1..4).prop_map(Step::Append);
    let run = proptest::option::of(1..3_u64).prop_map(Step::Run);
    let killed = (1..5_u64, 0..Mode::ALL.len()).prop_map(|(at, mode)| Step::Killed { at, mode });
    proptest::collection::vec(prop_oneof![5 => append, 2 => run, 1 => killed], 2..16)
}

fn frame(rows: &[Row]) -> Frame {
    let columns = [Column::new("id", "long".parse().unwrap()), Column::new("at", "timestamp".parse().unwrap())];
    let of_row =
        |(id, minute): &Row| vec![Value::Int((*id).into()), minute.map_or(Value::Null, |minute| Value::Int((minute * MINUTE).into()))];
    Frame::of(&columns, &rows.iter().map(of_row).collect::<Vec<_>>())
}

/// The rows of the versions that are in time, and how many are not.
fn in_time(versions: &[Vec<Row>]) -> (Vec<Row>, u64) {
    let (mut highest, mut kept, mut late) = (None::<i64>, Vec::new(), 0);
    for version in versions {
        let watermark = highest.map(|highest| highest - DELAY);
        for (id, minute) in version {
            let is_late = watermark.zip(*minute).is_some_and(|(watermark, minute)| minute < watermark);
            late += u64::from(is_late);
            kept.extend((!is_late).then_some((*id, *minute)));
        }
        highest = highest.max(version.iter().filter_map(|(_, minute)| *minute).max());
    }
    (kept, late)
}

fn table(name: &str, late: LateRows) -> SilverSpec {
    let watermark = Watermark::new("at", Duration::from_secs(60 * DELAY as u64));
    SilverSpec::new(target(name), [source("a")]).with_policy(MergePolicy::Append).with_watermark(watermark, late)
}

async fn ensure_holds(world: &World, spec: &SilverSpec, expected: &[Row]) -> Result<()> {
    let difference = FrameDiff::between(world.all(&spec.table).await?, frame(expected)).compute();
    ensure!(difference.is_none(), "{}\n{difference}", spec.table);
    Ok(())
}

/// `by_batch`, a control: what comes between two runs is taken for one version.
async fn play(steps: &[Step], by_batch: bool, tried: &mut Tried) -> Result<()> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store), Controls::none());
    let cut = table("cut", LateRows::Drop);
    let (mut versions, mut next): (Vec<Vec<Row>>, i64) = (vec![Vec::new()], 0);
    let mut joins = false;
    for step in steps.iter().chain([&Step::Run(None)]) {
        match step {
            Step::Append(minutes) => {
                let rows: Vec<Row> = minutes.iter().zip(next..).map(|(minute, id)| (id, minute.map(i64::from))).collect();
                next += rows.len() as i64;
                world.append(&source("a"), &frame(&rows)).await?;
                tried.add("rows", rows.len());
                match versions.last_mut().filter(|_| joins && by_batch) {
                    Some(last) => last.extend(rows),
                    None => versions.push(rows),
                }
                joins = true;
            }
            Step::Killed { at, mode } => {
                let faulty = Arc::new(FaultyStore::new(Arc::clone(&store)));
                faulty.kill_at(*at, Mode::ALL[*mode]);
                let _ = World::on(Arc::clone(&faulty) as _, Controls::none()).run(&cut).await;
                tried.add("kills", usize::from(faulty.killed()));
            }
            Step::Run(most) => {
                joins = false;
                if world.lake.table(&source("a")).await?.is_none() {
                    continue;
                }
                let options = Options { source_versions_max: *most, ..Options::default() };
                tributary_silver_merge::run(&World::on(Arc::clone(&store), Controls::none()).lake, &cut, &options).await?;
                tried.add("runs", 1);
                ensure_holds(&world, &cut, &in_time(&versions).0).await?;
            }
        }
    }
    let (kept, late) = in_time(&versions);
    tried.add("late rows", usize::try_from(late)?);
    if next == 0 {
        return Ok(());
    }
    // all at once, and the same once more from the start
    let whole = table("whole", LateRows::Drop);
    for full_refresh in [false, true] {
        let options = Options { full_refresh, ..Options::default() };
        let report = tributary_silver_merge::run(&world.lake, &whole, &options).await?;
        ensure!(report.rows_ignored.get("late").copied().unwrap_or_default() == late, "{report:?}");
        ensure!(report.rows_in == report.rows_out + late, "{report:?}");
        ensure_holds(&world, &whole, &kept).await?;
    }
    let applied = table("applied", LateRows::Apply);
    let report = world.run(&applied).await?;
    let told = format!("{late} rows of `bronze.a` came later than its watermark, and were applied");
    ensure!(report.notes.contains(&told) == (late > 0) && report.rows_ignored.is_empty(), "{report:?}");
    ensure_holds(&world, &applied, &versions.concat()).await
}

fn holds(steps: &[Step], by_batch: bool, tried: &mut Tried) -> Result<(), TestCaseError> {
    let played = block_on(play(steps, by_batch, tried));
    prop_assert!(played.is_ok(), "{:#}", played.unwrap_err());
    Ok(())
}

#[test]
fn law_late_rows_are_those_of_the_versions_and_of_no_batch() {
    let tried = Law::new("late rows").within(Duration::from_secs(4)).holds(&steps(), |steps, tried| holds(&steps, false, tried));
    assert!(tried.count("late rows") > 0, "{tried}");
}

/// The control: lateness by what a run takes up.
#[test]
fn control_lateness_by_batch_breaks_the_law_of_late_rows() {
    let law = Law::new("late rows, by batch").within(Duration::from_secs(60));
    law.is_broken(&steps(), |steps, tried| holds(&steps, true, tried));
}

/// What a table that began anew has not read is no measure of what comes: neither times of rows that are gone, nor none at all.
#[tokio::test]
async fn a_full_refresh_over_no_rows_forgets_the_watermark() {
    let (world, spec) = (World::new(), table("t", LateRows::Drop));
    let (noon, morning) = (12 * 60, 10 * 60);
    world.append(&source("a"), &frame(&[(1, Some(noon))])).await.unwrap();
    world.run(&spec).await.unwrap();
    let bronze = world.table(&source("a")).await.unwrap();
    let removes = bronze.files().await.unwrap();
    let emptied = Commit { operation: Operation::Overwrite, removes, reads: Reads::WholeTable, ..Commit::default() };
    assert!(matches!(bronze.commit(emptied).await.unwrap(), CommitOutcome::Committed { .. }));
    let anew = Options { full_refresh: true, accept_shorter_history: true, ..Options::default() };
    tributary_silver_merge::run(&world.lake, &spec, &anew).await.unwrap();
    ensure_holds(&world, &spec, &[]).await.unwrap();
    world.append(&source("a"), &frame(&[(2, Some(morning))])).await.unwrap();
    world.run(&spec).await.unwrap();
    ensure_holds(&world, &spec, &[(2, Some(morning))]).await.unwrap();
    // and it goes on from there
    world.append(&source("a"), &frame(&[(3, Some(morning - DELAY - 1)), (4, Some(morning - DELAY))])).await.unwrap();
    world.run(&spec).await.unwrap();
    ensure_holds(&world, &spec, &[(2, Some(morning)), (4, Some(morning - DELAY))]).await.unwrap();
}

#[tokio::test]
async fn a_watermark_is_over_a_column_of_timestamps_that_the_source_has() {
    let world = World::new();
    world.append(&source("a"), &frame(&[(1, Some(1))])).await.unwrap();
    for (column, told) in [("att", "att"), ("id", "a watermark is of timestamps")] {
        let watermark = Watermark::new(column, Duration::from_secs(1));
        let spec = table("t", LateRows::Apply).with_watermark(watermark, LateRows::Apply);
        let error = world.run(&spec).await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
