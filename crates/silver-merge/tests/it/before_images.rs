//! When what an event says its row was stands for the table's row in the change feed. The events here lie about it, so that what is
//! told shows where it was taken from.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use serde_json::{Value as Json, json};
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::{Column, MergePolicy, SilverSpec};
use tributary_testkit::{Controls, Frame, Value};

use crate::model_laws::with_unique_sequence;
use crate::races::compact;
use crate::world::{World, block_on, source, spec};

/// Key, operation, value, sequence, position, and value and sequence before.
type ChangeRow<'a> = (i64, &'a str, &'a str, i64, i64, Option<(&'a str, i64)>);

/// Change events of `id, v, at`, a row a key.
fn events(rows: &[ChangeRow<'_>]) -> Frame {
    let columns = [("id", "long"), ("v", "string"), ("at", "long"), ("_op", "string"), ("_position", "string")]
        .map(|(name, data_type)| Column::new(name, data_type.parse().expect("a type")));
    let before = Column::new("_before", "struct<id:long,v:string,at:long>".parse().expect("a type"));
    let columns: Vec<Column> = columns.into_iter().chain([before]).collect();
    let row = |(id, op, v, at, position, before): &ChangeRow<'_>| {
        let before = before.map_or(Json::Null, |(v, at)| json!({ "id": id, "v": v, "at": at }));
        json!({ "id": id, "v": v, "at": at, "_op": op, "_position": format!("{position:08}"), "_before": before })
    };
    Frame::from_json(&columns, &rows.iter().map(row).collect::<Vec<_>>())
}

fn dataset() -> SilverSpec {
    SilverSpec { sequence_by: vec!["at".to_owned()], ..spec("imaged", &["id"], MergePolicy::ScdType1) }
}

/// Five rows `a` of sequence 1.
fn first() -> Frame {
    events(&[1, 2, 3, 4, 5].map(|id| (id, "create", "a", 1, id, None)))
}

/// Three rows change from what was `lie`, one of them goes.
fn second() -> Frame {
    let update = |id| (id, "update", "b", 2, 10 + id, Some(("lie", 1)));
    events(&[update(1), update(2), (3, "delete", "lie", 1, 13, Some(("lie", 1)))])
}

/// The values that the last version took away, by key.
async fn taken(world: &World) -> Result<Vec<(Value, Value)>> {
    let table = world.table(&dataset().table).await?;
    let batches: Vec<RecordBatch> = table.changes(table.version(), table.version()).await?.try_collect().await?;
    let frame = Frame::new(table.change_schema(), &batches).select(&["id", "v", "_change_type"]);
    let gone = |row: &Vec<Value>| row[2] == "update_preimage".into() || row[2] == "delete".into();
    let mut taken: Vec<(Value, Value)> = frame.rows().into_iter().filter(gone).map(|row| (row[0].clone(), row[1].clone())).collect();
    taken.sort();
    Ok(taken)
}

fn all(value: &str) -> Vec<(Value, Value)> {
    [1i64, 2, 3].map(|id| (id.into(), value.into())).to_vec()
}

async fn run(world: &World, dataset: &SilverSpec, events: &Frame) -> Result<()> {
    world.append(&source("imaged"), events).await?;
    world.run(dataset).await?;
    Ok(())
}

#[test]
fn the_row_before_comes_from_the_event_where_one_sequence_is_one_image_and_else_from_the_table() {
    block_on(async {
        for (declared, told) in [(with_unique_sequence(dataset()), "lie"), (dataset(), "a")] {
            let world = World::new();
            run(&world, &declared, &first()).await?;
            run(&world, &declared, &second()).await?;
            ensure!(taken(&world).await? == all(told), "{told}: {:?}", taken(&world).await?);
            let table = world.rows(&declared.table, &["id", "v"]).await?.len();
            ensure!(table == 4);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_before_image_of_another_moment_or_none_is_not_believed() {
    block_on(async {
        let declared = with_unique_sequence(dataset());
        for before in [Some(("lie", 0)), None] {
            let world = World::new();
            run(&world, &declared, &first()).await?;
            let update = |id| (id, "update", "b", 2, 10 + id, before);
            run(&world, &declared, &events(&[update(1), update(2), update(3)])).await?;
            ensure!(taken(&world).await? == all("a"), "{before:?}: {:?}", taken(&world).await?);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_row_of_which_more_is_known_than_the_row_itself_is_read() {
    block_on(async {
        let (world, declared) = (World::new(), with_unique_sequence(dataset()));
        run(&world, &declared, &first()).await?;
        // It raises the place of the rows and changes nothing of them: retained.
        let same = |id| (id, "update", "a", 1, 5 + id, Some(("a", 1)));
        run(&world, &declared, &events(&[same(1), same(2), same(3)])).await?;
        run(&world, &declared, &second()).await?;
        ensure!(taken(&world).await? == all("a"), "{:?}", taken(&world).await?);
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_in_files_that_others_wrote_or_of_fewer_columns_or_of_another_query_are_read() {
    block_on(async {
        let declared = with_unique_sequence(dataset());
        // A compaction.
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let world = World::on(Arc::clone(&store), Controls::none());
        run(&world, &declared, &first()).await?;
        compact(Arc::clone(&store), &declared.table).await?;
        run(&world, &declared, &second()).await?;
        ensure!(taken(&world).await? == all("a"), "compacted: {:?}", taken(&world).await?);
        // Before the property was declared.
        let world = World::new();
        run(&world, &dataset(), &first()).await?;
        run(&world, &declared, &second()).await?;
        ensure!(taken(&world).await? == all("a"), "undeclared: {:?}", taken(&world).await?);
        // Another query: what was `v` of the source's `v` is now made of it.
        let (world, made) =
            (World::new(), SilverSpec { select: Some("SELECT id, upper(v) AS v, at FROM bronze.imaged".to_owned()), ..declared.clone() });
        run(&world, &declared, &first()).await?;
        run(&world, &made, &second()).await?;
        ensure!(taken(&world).await? == all("a"), "computed: {:?}", taken(&world).await?);
        // A column that came later: its rows from before are null there, whatever the source says today.
        let (world, fewer) = (World::new(), SilverSpec { select: Some("SELECT id, at FROM bronze.imaged".to_owned()), ..declared.clone() });
        run(&world, &fewer, &first()).await?;
        let more = |id: i64, at: i64| (id, "update", "c", at, 20 + id, Some(("lie", at - 1)));
        run(&world, &declared, &events(&[more(4, 2), more(5, 2), (9, "create", "n", 1, 30, None)])).await?;
        run(&world, &declared, &second()).await?;
        ensure!(taken(&world).await? == [1i64, 2, 3].map(|id| (id.into(), Value::Null)).to_vec(), "grown: {:?}", taken(&world).await?);
        Ok(())
    })
    .unwrap();
}
