//! Handed cases of streams, held to streaming tables that remember rows.

use std::collections::BTreeSet;

use tributary_specs::{Column, GoldSpec, Status, StreamedTable};
use tributary_testkit::{Frame, Value, cases};

use crate::world::{World, name};

/// A streaming table that keeps the rows of `bronze.t`, each once.
fn copy() -> GoldSpec {
    GoldSpec::new(name("silver.copy"), "SELECT DISTINCT id, v FROM bronze.t").with_stream(StreamedTable::new(name("bronze.t")))
}

fn rows(ids: std::ops::Range<i64>) -> Frame {
    let columns = ["id", "v"].map(|name| Column::new(name, "long".parse().unwrap()));
    Frame::of(&columns, &ids.map(|id| vec![Value::Int(id.into()), Value::Int(7)]).collect::<Vec<_>>())
}

#[tokio::test]
async fn stream_01_a_row_deleted_in_the_source_goes_and_no_other_comes_twice() {
    assert_eq!(cases::handed_case("STREAM-01").expected["any_of"][1]["silver_count"], 99);
    let world = World::new();
    world.append("bronze.t", &rows(0..100)).await.unwrap();
    world.run(&copy()).await.unwrap();
    assert_eq!(world.rows("silver.copy").await.unwrap().len(), 100);
    world.change("bronze.t", &BTreeSet::from([3]), &rows(0..0), false).await.unwrap();
    let report = world.run(&copy()).await.unwrap();
    assert_eq!((report.mode.as_str(), report.rows_inserted, report.rows_updated, report.rows_deleted), ("incremental", 0, 0, 1));
    assert_eq!(world.rows("silver.copy").await.unwrap().len(), 99);
}

#[tokio::test]
async fn stream_03_compaction_of_the_source_brings_nothing() {
    assert_eq!(cases::handed_case("STREAM-03").expected["second_drain_rows"], 0);
    let world = World::new();
    for append in 0..20 {
        world.append("bronze.t", &rows(append * 5..append * 5 + 5)).await.unwrap();
    }
    world.run(&copy()).await.unwrap();
    assert_eq!(world.rows("silver.copy").await.unwrap().len(), 100);
    world.optimize("bronze.t").await.unwrap();
    let report = world.run(&copy()).await.unwrap();
    assert_eq!((report.status, report.rows_inserted), (Status::NothingNew, 0), "{report:?}");
    world.append("bronze.t", &rows(100..101)).await.unwrap();
    let report = world.run(&copy()).await.unwrap();
    assert_eq!((report.mode.as_str(), report.rows_inserted), ("incremental", 1), "{report:?}");
}
