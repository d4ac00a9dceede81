//! A full refresh may lay a table out otherwise, and make it one of rows that change, or of rows that are only added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use tributary_lake::arrow::array::{AsArray, RecordBatch};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{ReadOptions, TableLayout};
use tributary_silver_merge::{Error, Options};
use tributary_specs::{DatasetReport, MergePolicy, SilverSpec};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Controls, Frame, KillPoints, crash_at, frame};

use crate::world::{SCD2, World, block_on, sorted, source, spec, target};

/// Partition columns, then clustering columns.
type Lies = (&'static [&'static str], &'static [&'static str]);

const LAYOUTS: [Lies; 5] = [(&[], &[]), (&["city"], &[]), (&["shop", "city"], &[]), (&[], &["id"]), (&[], &["shop"])];

fn dataset(policy: &MergePolicy, (partition_by, cluster_by): Lies) -> SilverSpec {
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let keyed = *policy != MergePolicy::Append;
    SilverSpec {
        keys: named(if keyed { &["id"] } else { &[] }),
        sequence_by: named(if keyed { &["seq"] } else { &[] }),
        partition_by: named(partition_by),
        cluster_by: named(cluster_by),
        ..spec("a", &[], policy.clone())
    }
}

fn first() -> Frame {
    frame!(
        "id: long | city: string | shop: long | seq: long
        1 | Oslo | 1 | 1
        2 | Bern | 1 | 1
        3 | null | 2 | 1
        1 | Bern | 2 | 2"
    )
}

fn second() -> Frame {
    frame!("id: long | city: string | shop: long | seq: long\n 2 | Oslo | 3 | 2\n 4 | Rome | 1 | 1")
}

async fn refresh_in_full(world: &World, spec: &SilverSpec) -> tributary_silver_merge::Result<DatasetReport> {
    tributary_silver_merge::run(&world.lake, spec, &Options { full_refresh: true, ..Options::default() }).await
}

async fn all(world: &World) -> Result<Vec<Row>> {
    let columns = world.table(&target("a")).await?.columns().iter().map(|column| column.name.clone()).collect::<BTreeSet<_>>();
    Ok(sorted(&world.rows(&target("a"), &columns.iter().map(String::as_str).collect::<Vec<_>>()).await?))
}

/// The rows of a table that was never another.
async fn made_so(dataset: &SilverSpec, parts: &[Frame]) -> Result<Vec<Row>> {
    let world = World::new();
    for rows in parts {
        world.append(&source("a"), rows).await?;
        world.run(dataset).await?;
    }
    all(&world).await
}

async fn is_as_declared(world: &World, dataset: &SilverSpec) -> Result<()> {
    let table = world.table(&target("a")).await?;
    let declared = TableLayout { partition_by: dataset.partition_by.clone(), cluster_by: dataset.cluster_by.clone() };
    ensure!(table.lies() == declared, "{:?} and not {declared:?}", table.lies());
    for file in table.files().await? {
        let parted: BTreeSet<&String> = file.partition_values.keys().collect();
        ensure!(parted == dataset.partition_by.iter().collect(), "{}: {parted:?}", file.path);
    }
    let changes = table.properties().get("tributary.rowChanges").is_some_and(|value| value == "true");
    ensure!(changes == (dataset.policy != MergePolicy::Append));
    let spec = tributary_silver_merge::table_spec(&world.lake, dataset, &Options::default()).await?;
    let spec = spec.ok_or_else(|| anyhow::anyhow!("its source is there"))?;
    let differences = world.lake.difference(&spec).await?;
    ensure!(differences.is_empty(), "{differences:?}");
    Ok(())
}

/// The change feed comes to the table: what a full refresh takes away and brings again too.
async fn feed_comes_to_the_table(world: &World) -> Result<()> {
    let table = world.table(&target("a")).await?;
    let batches: Vec<RecordBatch> = table.changes(0, table.version()).await?.try_collect().await?;
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    for batch in batches {
        let kinds = batch.column_by_name("_change_type").unwrap().as_string::<i32>().clone();
        let business = batch.project(&(0..batch.num_columns() - 3).collect::<Vec<_>>())?;
        for row in 0..batch.num_rows() {
            let sign = if ["insert", "update_postimage"].contains(&kinds.value(row)) { 1 } else { -1 };
            let row = business.slice(row, 1);
            *rows.entry(format!("{:?}", Frame::new(row.schema(), &[row]).rows())).or_default() += sign;
        }
    }
    rows.retain(|_, count| *count != 0);
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    let batches: Vec<RecordBatch> = table.read(ReadOptions::default()).await?.try_collect().await?;
    for batch in batches {
        (0..batch.num_rows()).for_each(|row| {
            let row = batch.slice(row, 1);
            *expected.entry(format!("{:?}", Frame::new(row.schema(), &[row]).rows())).or_default() += 1;
        });
    }
    ensure!(rows == expected, "the feed comes to {rows:?}\nthe table is {expected:?}");
    Ok(())
}

async fn becomes(before: &SilverSpec, after: &SilverSpec) -> Result<()> {
    let world = World::new();
    world.append(&source("a"), &first()).await?;
    world.run(before).await?;
    let version = world.version(&target("a")).await?;
    let report = refresh_in_full(&world, after).await?;
    ensure!(report.rows_deleted > 0 && world.version(&target("a")).await? > version, "{report:?}");
    is_as_declared(&world, after).await?;
    ensure!(all(&world).await? == made_so(after, &[first()]).await?);
    // Runs, and readers of its changes, go on from there; and back it may go too.
    world.append(&source("a"), &second()).await?;
    world.run(after).await?;
    ensure!(all(&world).await? == made_so(after, &[first(), second()]).await?);
    feed_comes_to_the_table(&world).await?;
    refresh_in_full(&world, before).await?;
    is_as_declared(&world, before).await?;
    ensure!(all(&world).await? == made_so(before, &[first(), second()]).await?);
    feed_comes_to_the_table(&world).await
}

#[test]
fn a_table_of_any_layout_and_kind_becomes_one_of_any_other() {
    let policies = [MergePolicy::Append, MergePolicy::ScdType1, SCD2];
    for (at, lies) in LAYOUTS.into_iter().enumerate() {
        for (policy, other) in [(0, 0), (1, 1), (0, 1), (2, 0), (1, 2)] {
            for next in (at..LAYOUTS.len()).filter(|next| *next != at || policy != other) {
                let (before, after) = (dataset(&policies[policy], lies), dataset(&policies[other], LAYOUTS[next]));
                block_on(becomes(&before, &after))
                    .map_err(|why| format!("{lies:?} {policy} to {:?} {other}: {why:#}", LAYOUTS[next]))
                    .unwrap();
            }
        }
    }
}

#[test]
fn a_plain_run_leaves_the_layout_and_a_layout_that_cannot_be_leaves_the_table() {
    block_on(async {
        let world = World::new();
        world.append(&source("a"), &first()).await?;
        world.run(&dataset(&MergePolicy::ScdType1, LAYOUTS[1])).await?;
        world.append(&source("a"), &second()).await?;
        world.run(&dataset(&MergePolicy::ScdType1, LAYOUTS[3])).await?;
        is_as_declared(&world, &dataset(&MergePolicy::ScdType1, LAYOUTS[1])).await?;
        let version = world.version(&target("a")).await?;
        let wrong: [Lies; 3] = [(&["nowhere"], &[]), (&["city"], &["id"]), (&["id", "city", "shop", "seq"], &[])];
        for lies in wrong {
            let error = refresh_in_full(&world, &dataset(&MergePolicy::ScdType1, lies)).await.expect_err("it cannot lie so");
            ensure!(matches!(error, Error::Lake { .. } | Error::Spec { .. }), "{error:?}");
            ensure!(world.version(&target("a")).await? == version, "{lies:?}");
        }
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_full_refresh_to_another_layout_and_kind_is_killed_anywhere_and_happened_whole_or_not_at_all() {
    let report = block_on(async {
        let store = Arc::new(InMemory::new());
        let world = World::on(Arc::clone(&store) as _, Controls::none());
        world.append(&source("a"), &first()).await.unwrap();
        world.run(&dataset(&MergePolicy::Append, LAYOUTS[1])).await.unwrap();
        let old = all(&world).await.unwrap();
        world.append(&source("a"), &second()).await.unwrap();
        let (prepared, after) = (store.fork(), dataset(&MergePolicy::ScdType1, LAYOUTS[3]));
        let new = made_so(&after, &[first(), second()]).await.unwrap();
        crash_at(
            KillPoints::All,
            KillPoints::Sampled { points: 20, seed: 1 },
            async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
            async |store| {
                let world = World::on(store, Controls::none());
                // What a killed run has left, as a reader finds it.
                if let Ok(seen) = all(&world).await {
                    assert!(seen == old || seen == new, "{seen:?}");
                }
                refresh_in_full(&world, &after).await.map(|_| ())
            },
            async |store| all(&World::on(store, Controls::none())).await.unwrap(),
        )
        .await
    });
    println!("{report}");
    assert!(report.holds(), "{report}");
}
