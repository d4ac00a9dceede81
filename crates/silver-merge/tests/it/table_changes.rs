//! Streams of a change feed (`table_changes`): every change from a version on is a row, once, whatever is killed in between.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::object_store::memory::InMemory;
use tributary_silver_merge::Options;
use tributary_specs::{Column, DataType, MergePolicy, SilverSpec, Status, StreamRead};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Control, Controls, FaultyStore, Frame, Law, Mode, Tried};

use crate::world::{World, block_on, json_frame, sorted, source, spec, target};

/// The table whose changes are read.
fn people() -> SilverSpec {
    SilverSpec { sequence_by: vec!["seq".to_owned()], ..spec("a", &["id"], MergePolicy::ScdType1) }
}

/// Its changes, a row each.
fn log(from: u64, to: Option<u64>) -> SilverSpec {
    let select = "SELECT id, name, _change_type AS kind, _commit_version AS version FROM silver.a";
    SilverSpec {
        sources: vec![target("a")],
        select: Some(select.to_owned()),
        stream: StreamRead::Changes { from, to },
        ..spec("log", &[], MergePolicy::Append)
    }
}

fn rows(ids: &[i64], seq: i64) -> Frame {
    let columns = [Column::new("id", DataType::Long), Column::new("name", DataType::String), Column::new("seq", DataType::Long)];
    json_frame(&columns, &ids.iter().map(|id| json!({"id": id, "name": format!("{id} at {seq}"), "seq": seq})).collect::<Vec<_>>())
}

/// What the feed says of the versions that there are.
async fn changes(world: &World, from: u64, to: Option<u64>) -> Result<Vec<Row>> {
    let table = world.table(&target("a")).await?;
    let to = to.map_or(table.version(), |to| to.min(table.version()));
    if from > to {
        return Ok(Vec::new());
    }
    let batches: Vec<RecordBatch> = table.changes(from, to).await?.try_collect().await?;
    let schema = table.change_schema();
    let places: Vec<usize> = ["id", "name", "_change_type", "_commit_version"].iter().map(|name| schema.index_of(name).unwrap()).collect();
    let batches: Vec<RecordBatch> = batches.iter().map(|batch| batch.project(&places)).collect::<Result<_, _>>()?;
    let mut rows = Frame::new(Arc::new(schema.project(&places)?), &batches).rows();
    rows.sort();
    Ok(rows)
}

async fn logged(world: &World) -> Result<Vec<Row>> {
    match world.count(&target("log")).await? {
        None => Ok(Vec::new()),
        Some(_) => Ok(sorted(&world.rows(&target("log"), &["id", "name", "kind", "version"]).await?)),
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Rows come to the source, and the table takes them up.
    Grow(Vec<i64>),
    /// The log takes up so many versions a commit, and may be killed.
    Log(u64, Option<(u64, Mode)>),
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop::sample::select(vec![Mode::Before, Mode::After, Mode::AnswerLost]);
    prop_oneof![
        vec(0..6_i64, 1..4).prop_map(Step::Grow),
        (1..4_u64, prop::option::of((1..6_u64, mode))).prop_map(|(most, kill)| Step::Log(most, kill)),
    ]
}

type Case = (Vec<Step>, u64, Option<u64>);

fn cases() -> impl Strategy<Value = Case> {
    (vec(step(), 2..10), 0..4_u64, prop::option::of(0..5_u64)).prop_map(|(steps, from, more)| (steps, from, more.map(|more| from + more)))
}

async fn play((steps, from, to): Case, controls: Controls, tried: &mut Tried) -> Result<()> {
    let store = FaultyStore::new(Arc::new(InMemory::new()));
    let world = World::on(store.inner(), Controls::none());
    let dataset = log(from, to);
    let mut seq = 0;
    let first = Step::Grow(vec![0, 1]);
    for step in std::iter::once(first).chain(steps).chain([Step::Log(100, None)]) {
        match step {
            Step::Grow(mut ids) => {
                seq += 1;
                ids.sort_unstable();
                ids.dedup();
                world.append(&source("a"), &rows(&ids, seq)).await?;
                world.run(&people()).await?;
            }
            Step::Log(most, kill) => {
                let faulty = FaultyStore::new(store.inner());
                if let Some((call, mode)) = kill {
                    faulty.kill_at(call, mode);
                }
                let process = World::on(Arc::new(faulty.clone()), controls);
                let options = Options { source_versions_max: Some(most), ..Options::default() };
                let run = tributary_silver_merge::run(&process.lake, &dataset, &options).await;
                tried.add("runs", 1);
                if faulty.killed() {
                    tried.add("kills", 1);
                    continue;
                }
                run?;
                let (found, expected) = (logged(&world).await?, changes(&world, from, to).await?);
                ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
                tried.add("changes", expected.len());
            }
        }
    }
    Ok(())
}

#[test]
fn law_every_change_from_a_version_on_is_a_row_once() {
    let tried = Law::new("changes of a table").within(Duration::from_secs(6)).holds(&cases(), |case, tried| {
        block_on(play(case, Controls::none(), tried)).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
    assert!(tried.count("changes") > 20 && tried.count("kills") > 2, "{tried}");
}

/// The control of the law.
#[test]
fn law_of_changes_fails_where_positions_are_outside_the_commit() {
    let broken = Controls::none().with(Control::PositionsOutsideCommit);
    Law::new("changes with positions apart")
        .within(Duration::from_secs(60))
        .is_broken(&cases(), |case, tried| block_on(play(case, broken, tried)).map_err(|why| TestCaseError::fail(format!("{why:#}"))));
}

#[test]
fn a_version_that_is_not_there_yet_is_waited_for_and_a_full_refresh_begins_at_the_first_again() {
    block_on(async {
        let world = World::new();
        world.append(&source("a"), &rows(&[1, 2], 1)).await?;
        world.run(&people()).await?;
        let latest = world.version(&target("a")).await?;
        let dataset = log(latest + 1, Some(latest + 1));
        ensure!(world.run(&dataset).await?.status == Status::NothingNew);
        for seq in 2..4 {
            world.append(&source("a"), &rows(&[2], seq)).await?;
            world.run(&people()).await?;
            world.run(&dataset).await?;
        }
        let expected = changes(&world, latest + 1, Some(latest + 1)).await?;
        ensure!(expected.len() == 2 && logged(&world).await? == expected, "an update is two changes");
        ensure!(world.run(&dataset).await?.status == Status::NothingNew, "the range has ended");
        let all = log(0, None);
        let options = Options { full_refresh: true, ..Options::default() };
        tributary_silver_merge::run(&world.lake, &all, &options).await?;
        ensure!(logged(&world).await? == changes(&world, 0, None).await?);
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn where_rows_change_the_changes_are_applied() {
    block_on(async {
        let world = World::new();
        for seq in 1..4 {
            world.append(&source("a"), &rows(&[1, 1 + seq], seq)).await?;
            world.run(&people()).await?;
        }
        let copy = SilverSpec {
            sources: vec![target("a")],
            stream: StreamRead::Changes { from: 0, to: None },
            sequence_by: vec!["_commit_version".to_owned()],
            ..spec("copy", &["id"], MergePolicy::ScdType1)
        };
        world.run(&copy).await?;
        let of = async |name: &str| world.rows(&target(name), &["id", "name"]).await.map(|rows| sorted(&rows));
        ensure!(of("copy").await? == of("a").await?);
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}
