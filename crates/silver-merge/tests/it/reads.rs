//! How often the source is read: once, however many slices of keys its new rows need.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;
use tributary_lake::object_store::memory::InMemory;
use tributary_silver_merge::Options;
use tributary_specs::{Column, DataType, DatasetReport, Deletes, MergePolicy, SilverSpec};
use tributary_testkit::{Controls, FaultyStore, Frame, Rule};

use crate::world::{SCD2, World, block_on, json_frame, sorted, source, spec};

/// Bytes of a value, so that few rows come to many slices.
const WIDE: usize = 60;

/// Rows of `[1, count]`, each with a delete marker now and then; one commit of several files.
fn rows(count: usize) -> Frame {
    let columns = [("id", DataType::Long), ("v", DataType::String), ("op", DataType::String), ("at", DataType::Long)];
    let columns = columns.map(|(name, data_type)| Column::new(name, data_type));
    // neighbours of the file are not neighbours of the key
    let id = |row: usize| (row * 7919) % count;
    let row = |row: usize| json!({ "id": id(row), "v": format!("{row:0WIDE$}"), "op": if row.is_multiple_of(97) { "D" } else { "U" }, "at": row });
    json_frame(&columns, &(0..count).map(row).collect::<Vec<_>>())
}

fn dataset(policy: MergePolicy) -> SilverSpec {
    SilverSpec {
        sequence_by: vec!["at".to_owned()],
        deletes: Deletes { apply_as_delete_when: Some("op = 'D'".to_owned()), ..Deletes::default() },
        ..spec("one", &["id"], policy)
    }
}

/// What a run with this limit read of its source: by its report, and by calls of the store for data files of the source.
struct Took {
    slices: usize,
    report: DatasetReport,
    calls: usize,
    table: Vec<tributary_testkit::oracle::Row>,
}

fn slices(report: &DatasetReport) -> usize {
    let count = report.reason.split(" in ").nth(1).and_then(|text| text.split(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or(1)
}

async fn took(prepared: &InMemory, dataset: &SilverSpec, memory_limit: usize, runs: usize) -> Result<Took> {
    let store = FaultyStore::new(Arc::new(prepared.fork()));
    let mut report = DatasetReport::default();
    for at in 0..runs {
        let world = World::on(Arc::new(store.clone()), Controls::none());
        let options = Options { memory_limit, full_refresh: at > 0, ..Options::default() };
        report = tributary_silver_merge::run(&world.lake, dataset, &options).await?;
    }
    let of_source = Rule::reads().on("bronze/one/");
    let calls = store.calls().iter().filter(|call| of_source.matches(call) && call.path.as_ref().ends_with(".parquet")).count();
    let world = World::on(store.inner(), Controls::none());
    Ok(Took { slices: slices(&report), report, calls, table: sorted(&world.all(&dataset.table).await?) })
}

async fn prepared(count: usize) -> Result<InMemory> {
    let store = Arc::new(InMemory::new());
    World::on(Arc::clone(&store) as _, Controls::none()).append(&source("one"), &rows(count)).await?;
    Ok(store.fork())
}

#[test]
fn a_version_is_read_once_whatever_the_number_of_slices() {
    block_on(async {
        for policy in [MergePolicy::InsertOnly { exact: false }, MergePolicy::ScdType1, SCD2] {
            let (count, dataset) = (4000, dataset(policy));
            let store = prepared(count).await?;
            let whole = took(&store, &dataset, 512 << 20, 1).await?;
            ensure!(whole.slices == 1 && whole.calls > 0, "{} slices, {} calls", whole.slices, whole.calls);
            let mut before = 1;
            for limit in [400_000, 100_000, 25_000] {
                let some = took(&store, &dataset, limit, 1).await?;
                ensure!(some.slices > 2 * before, "{} slices within {limit} bytes, {before} within more", some.slices);
                before = some.slices;
                let read: u64 = some.report.inputs.iter().map(|input| input.rows_read).sum();
                ensure!(read == count as u64, "{read} rows read of {count} in {} slices", some.slices);
                ensure!(
                    some.calls == whole.calls,
                    "{} reads of files of the source in {} slices, {} in one",
                    some.calls,
                    some.slices,
                    whole.calls
                );
                ensure!(some.table == whole.table, "{} slices come to something else", some.slices);
            }
            // The control: who reads twice is found out by both counts.
            let twice = took(&store, &dataset, 100_000, 2).await?;
            ensure!(twice.calls >= 2 * whole.calls, "{} reads of files in two runs, {} in one", twice.calls, whole.calls);
        }
        Ok(())
    })
    .unwrap();
}

/// Work that follows the rows: twice as many come to twice as many slices, and to twice as much that is read.
#[test]
fn what_is_read_grows_as_the_rows_do() {
    block_on(async {
        let dataset = dataset(MergePolicy::InsertOnly { exact: false });
        let mut before = None;
        for count in [1000, 2000, 4000] {
            let took = took(&prepared(count).await?, &dataset, 50_000, 1).await?;
            let read: u64 = took.report.inputs.iter().map(|input| input.rows_read).sum();
            ensure!(read == count as u64, "{read} rows read of {count}");
            ensure!(before.is_none_or(|before| took.slices > before), "{} slices of {count} rows", took.slices);
            before = Some(took.slices);
        }
        Ok(())
    })
    .unwrap();
}
