//! A batch that does not fit into memory goes in slices of its keys, and comes to the same.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use proptest::prelude::*;
use tributary_lake::arrow::array::{AsArray, RecordBatch};
use tributary_lake::arrow::datatypes::Int64Type;
use tributary_silver_merge::Options;
use tributary_specs::{MergePolicy, SilverSpec, TableName};
use tributary_testkit::strategy::{SourceTable, delivery};
use tributary_testkit::{Frame, Law, frame};

use crate::model_laws::{Delivered, columns, delivered};
use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted, source, spec};

/// So little that most batches need several slices.
const LITTLE: usize = 20_000;

/// How many batches went in several slices.
async fn in_slices(case: &Delivered, scd2: bool) -> Result<usize> {
    let (policy, more): (MergePolicy, &[&str]) = if scd2 { (SCD2, &["__START_AT", "__END_AT"]) } else { (MergePolicy::ScdType1, &[]) };
    let (dataset, model, events) = (case.dataset(policy), case.model(), case.events());
    let mut expected = if scd2 { model.scd2(&events) } else { model.scd1(&events) };
    let world = World::new();
    let mut in_slices = 0;
    for batch in case.batches() {
        world.append(&dataset.sources[0], &batch).await?;
        let options = Options { memory_limit: LITTLE, ..Options::default() };
        let report = tributary_silver_merge::run(&world.lake, &dataset, &options).await?;
        let ignored: u64 = report.rows_ignored.values().sum();
        ensure!(report.rows_in == report.rows_out + report.rows_quarantined + ignored, "the counts do not add up: {report:?}");
        in_slices += usize::from(report.reason.contains("slices of keys"));
    }
    let names = columns(&model, more);
    let found = sorted(&world.rows(&dataset.table, &names.iter().map(String::as_str).collect::<Vec<_>>()).await?);
    expected.sort();
    ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
    feed_replays_to_the_table(&world, &dataset.table).await?;
    Ok(in_slices)
}

#[test]
fn law_slices_come_to_what_one_plan_would() {
    let tables =
        any::<bool>().prop_map(|full| SourceTable { keys: 12, ..if full { SourceTable::customers() } else { SourceTable::orders() } });
    let tried = Law::new("slices of keys").within(Duration::from_secs(12)).holds(
        &(delivered(tables, delivery()), any::<bool>()),
        |(case, scd2), tried| {
            tried.add("changes", case.history.changes.len());
            tried.add("batches in slices", block_on(in_slices(&case, scd2)).map_err(|why| TestCaseError::fail(format!("{why:?}")))?);
            Ok(())
        },
    );
    assert!(tried.count("batches in slices") > 0, "nothing was sliced: {tried}");
}

#[test]
fn what_one_key_holds_is_taken_as_it_is() {
    block_on(async {
        let world = World::new();
        world.append(&source("one"), &frame!("id: long | v: long | at: long\n 1 | 1 | 1\n 1 | 2 | 2\n 1 | 3 | 3")).await?;
        let dataset = SilverSpec { sequence_by: vec!["at".to_owned()], ..spec("one", &["id"], SCD2) };
        let options = Options { memory_limit: 3, ..Options::default() };
        tributary_silver_merge::run(&world.lake, &dataset, &options).await?;
        ensure!(world.count(&dataset.table).await? == Some(3));
        Ok(())
    })
    .unwrap();
}

/// Rows are written in the order of their keys, from slice to slice too.
async fn rows_ascend_in_every_file(world: &World, name: &TableName) -> Result<()> {
    let table = world.table(name).await?;
    for file in table.files().await? {
        let batches: Vec<RecordBatch> = table.read_file(&file, Some(&["id".to_owned()])).await?.try_collect().await?;
        let ids: Vec<i64> = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        ensure!(ids.is_sorted(), "{ids:?}");
    }
    Ok(())
}

/// A batch that needs several slices takes several, and one commit takes them all.
#[test]
fn a_batch_beyond_the_limit_takes_more_than_one_slice_and_one_commit() {
    block_on(async {
        for policy in [MergePolicy::ScdType1, SCD2] {
            let rows = |from: usize| (from..from + 400).map(|id| format!("\n {id} | {} | {from}", "x".repeat(40))).collect::<String>();
            let dataset = SilverSpec { sequence_by: vec!["at".to_owned()], ..spec("many", &["id"], policy) };
            let (small, large) = (World::new(), World::new());
            let mut slices = Vec::new();
            for from in [0, 200] {
                let batch = Frame::parse(&format!("id: long | v: string | at: long{}", rows(from)));
                for world in [&small, &large] {
                    world.append(&source("many"), &batch).await?;
                }
                large.run(&dataset).await?;
                let before = small.lake.table(&dataset.table).await?.map(|table| table.version());
                let report = small.run_in_slices(&dataset, LITTLE).await?;
                let count = report.reason.split(" in ").nth(1).and_then(|text| text.split(' ').next());
                slices.push(count.and_then(|count| count.parse::<usize>().ok()).unwrap_or(1));
                let after = small.version(&dataset.table).await?;
                ensure!(before.is_none_or(|before| after == before + 1), "one commit: {before:?} to {after}");
                rows_ascend_in_every_file(&small, &dataset.table).await?;
            }
            ensure!(slices.iter().all(|slices| *slices > 1), "slices taken: {slices:?}");
            ensure!(
                sorted(&small.all(&dataset.table).await?) == sorted(&large.all(&dataset.table).await?),
                "the slices come to something else"
            );
        }
        Ok(())
    })
    .unwrap();
}
