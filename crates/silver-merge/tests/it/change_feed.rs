//! The change feed of silver comes to the table; what changes nothing is not in it.

use anyhow::{Result, ensure};
use serde_json::json;
use tributary_specs::{ColumnSelection, MergePolicy};

use crate::world::{
    SCD2, World, block_on, columns_of, dimension, feed_replays_to_the_table, json_frame, names_of, replayed, source, target,
};

/// Five batches: inserts alone, then updates, deletes and inserts together, then what changes nothing.
fn batches() -> Vec<Vec<serde_json::Value>> {
    let row = |id: i64, name: Option<&str>, seq: i64, op: &str| json!({ "id": id, "name": name, "seq": seq, "op": op });
    vec![
        (1..=20).map(|id| row(id, Some("a"), 1, "I")).collect(),
        vec![row(1, Some("b"), 2, "U"), row(2, None, 2, "D"), row(21, Some("a"), 2, "I"), row(22, Some("a"), 2, "I")],
        vec![row(1, Some("c"), 3, "U"), row(1, Some("d"), 4, "U"), row(23, Some("x"), 3, "I"), row(23, None, 4, "D")],
        vec![row(3, Some("a"), 2, "U"), row(3, Some("a"), 3, "U"), row(2, Some("late"), 1, "U")],
        vec![row(3, Some("z"), 2, "U"), row(2, Some("again"), 9, "I")],
    ]
}

async fn play(policy: MergePolicy) -> Result<World> {
    let world = World::new();
    let all: Vec<serde_json::Value> = batches().concat();
    let columns = columns_of(&names_of(all.iter()), all.iter());
    for batch in batches() {
        world.append(&source("dim"), &json_frame(&columns, &batch)).await?;
        world.run(&dimension(policy.clone())).await?;
        feed_replays_to_the_table(&world, &target("dim")).await?;
    }
    Ok(world)
}

#[test]
fn the_feed_comes_to_the_table_after_every_batch_for_both_types() {
    for policy in [MergePolicy::ScdType1, SCD2] {
        block_on(play(policy)).unwrap();
    }
}

/// S7: what changes nothing is neither rewritten nor told.
#[test]
fn a_commit_with_updates_holds_its_inserts_too_and_what_changes_nothing_is_not_there() {
    block_on(async {
        let world = play(MergePolicy::ScdType1).await?;
        let table = world.table(&target("dim")).await?;
        let mut changes_of_no_op_batch = None;
        for version in 1..=table.version() {
            let batches: Vec<tributary_lake::arrow::array::RecordBatch> =
                futures::TryStreamExt::try_collect(table.changes(version, version).await?).await?;
            let changes: usize = batches.iter().map(|batch| batch.num_rows()).sum();
            if changes == 0 {
                changes_of_no_op_batch = Some(version);
            }
        }
        ensure!(changes_of_no_op_batch.is_some(), "the fourth batch changes no row and must emit nothing");
        ensure!(replayed(&world, &target("dim")).await?.len() == 22, "20 rows, one gone and come back, two more");
        Ok(())
    })
    .unwrap();
}

/// S7: and its place is remembered.
#[test]
fn a_late_event_between_a_row_and_what_raised_its_place_still_loses() {
    // Event 3 leaves the row as it is but raises its place; the late event 2 must not win against it.
    block_on(async {
        let world = play(MergePolicy::ScdType1).await?;
        let rows = world.rows(&target("dim"), &["id", "name"]).await?.rows();
        let row = rows.iter().find(|row| row[0] == 3.into());
        ensure!(row.is_some_and(|row| row[1] == "a".into()), "{row:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn history_without_the_noise_column_emits_only_what_it_shows() {
    block_on(async {
        let world = World::new();
        let policy = MergePolicy::ScdType2 { track_history: ColumnSelection::Except(vec!["polled".to_owned()]) };
        for seq in 1..=4 {
            let row = json!({ "id": 1, "name": "a", "polled": seq, "seq": seq, "op": "U" });
            let columns = columns_of(&names_of([&row].into_iter()), [&row].into_iter());
            world.append(&source("dim"), &json_frame(&columns, &[row])).await?;
            world.run(&dimension(policy.clone())).await?;
            feed_replays_to_the_table(&world, &target("dim")).await?;
        }
        ensure!(world.count(&target("dim")).await? == Some(1));
        Ok(())
    })
    .unwrap();
}
