//! The AC cases of `tests/cases/handed.jsonl`, each as a test of its whole kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_silver_merge::Error;
use tributary_specs::{ColumnSelection, MergePolicy, NullKeys, SilverSpec, TableName};
use tributary_testkit::cases::handed_case;
use tributary_testkit::{Controls, KillPoints, Law, Value, crash_at};

use crate::world::{SCD2, World, block_on, columns_of, dimension, feed_replays_to_the_table, json_frame, names_of, source, spec, target};

fn list(json: &Json) -> Vec<Json> {
    json.as_array().unwrap_or_else(|| panic!("{json} is not a list")).clone()
}

/// Runs of the dataset over batches of `id, name, seq, op` rows, each in a process of its own; the rows after each run.
async fn play(dataset: &SilverSpec, runs: &[Vec<Json>]) -> Result<Vec<Vec<Json>>> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let columns = columns_of(&["id", "name", "seq", "op"].map(str::to_owned), runs.concat().iter());
    let mut after_each = Vec::new();
    for run in runs {
        let world = World::on(Arc::clone(&store), Controls::none());
        world.append(&source("dim"), &json_frame(&columns, run)).await?;
        world.run(dataset).await?;
        feed_replays_to_the_table(&world, &target("dim")).await?;
        after_each.push(rows(&world, dataset).await?);
    }
    Ok(after_each)
}

/// Rows as objects (SCD 1) or lists of name, start and end (SCD 2), in key and time order.
async fn rows(world: &World, dataset: &SilverSpec) -> Result<Vec<Json>> {
    let history = matches!(dataset.policy, MergePolicy::ScdType2 { .. });
    let names: &[&str] = if history { &["id", "__START_AT", "name", "__END_AT"] } else { &["id", "name"] };
    let mut rows = world.rows(&dataset.table, names).await?.rows();
    rows.sort();
    Ok(rows
        .iter()
        .map(|row| row.iter().map(Value::to_json).collect::<Vec<_>>())
        .map(|row| if history { json!([row[2], row[1], row[3]]) } else { json!({ "id": row[0], "name": row[1] }) })
        .collect())
}

fn last(runs: Vec<Vec<Json>>) -> Vec<Json> {
    runs.into_iter().next_back().unwrap_or_default()
}

/// The same events in one batch, and one event a batch, forwards and backwards.
fn batchings(events: &[Json]) -> Vec<Vec<Vec<Json>>> {
    let singles: Vec<Vec<Json>> = events.iter().map(|event| vec![event.clone()]).collect();
    let backwards: Vec<Vec<Json>> = singles.iter().rev().cloned().collect();
    vec![vec![events.to_vec()], singles, backwards]
}

#[test]
fn ac_01_a_deleted_key_stays_deleted_whatever_older_comes_in_whatever_process() {
    let case = handed_case("AC-01");
    let runs: Vec<Vec<Json>> = list(&case.input["runs"]).iter().map(list).collect();
    let after = block_on(play(&dimension(MergePolicy::ScdType1), &runs)).unwrap();
    for (at, expected) in list(&case.expected["target_after_each_run"]).iter().enumerate() {
        // At the tie the stated rule decides: delete over upsert.
        let expected = if expected.is_array() { list(expected) } else { Vec::new() };
        assert_eq!(after[at], expected, "after run {}", at + 1);
    }
}

#[test]
fn ac_01_and_for_a_thousand_keys_also_those_never_seen_alive() {
    let deletes: Vec<Json> = (0..1000).map(|id| json!({ "id": id, "name": null, "seq": 20, "op": "D" })).collect();
    let late: Vec<Json> = (0..1000).map(|id| json!({ "id": id, "name": "late", "seq": id % 20, "op": "U" })).collect();
    let newer: Vec<Json> = (0..1000).filter(|id| id % 3 == 0).map(|id| json!({ "id": id, "name": "new", "seq": 21, "op": "I" })).collect();
    let after = block_on(play(&dimension(MergePolicy::ScdType1), &[deletes, late, newer])).unwrap();
    assert_eq!(after.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 334]);
}

#[test]
fn ac_03_a_late_delete_cuts_a_period_open_or_closed() {
    let case = handed_case("AC-03");
    for (input, expected) in [("runs_1", "target_1"), ("runs_2", "target_2"), ("runs_3", "target_3")] {
        let runs: Vec<Vec<Json>> = list(&case.input[input]).iter().map(list).collect();
        let mut cut = batchings(&runs.concat());
        cut.push(runs);
        for runs in cut {
            assert_eq!(last(block_on(play(&dimension(SCD2), &runs)).unwrap()), list(&case.expected[expected]), "{input} as {runs:?}");
        }
    }
}

/// S9
#[test]
fn law_ac_06_ties_have_one_winner_for_every_order_and_batching_and_are_counted() {
    let case = handed_case("AC-06");
    let events = |name: &str| list(&case.input["cases"][name]);
    let current = |runs: &[Vec<Json>]| last(block_on(play(&dimension(MergePolicy::ScdType1), runs)).unwrap());
    let history = |runs: &[Vec<Json>]| last(block_on(play(&dimension(SCD2), runs)).unwrap());
    for runs in batchings(&events("copy")) {
        assert_eq!(current(&runs), [json!({ "id": 1, "name": "a" })]);
        assert_eq!(history(&runs), [json!(["a", 10, null])]);
    }
    for runs in batchings(&events("differ")) {
        assert_eq!(current(&runs), [json!({ "id": 2, "name": "b" })], "the greater payload wins");
        assert_eq!(history(&runs), [json!(["b", 10, null])]);
    }
    for runs in batchings(&events("tie_delete")) {
        assert_eq!(current(&runs), Vec::<Json>::new(), "a delete wins against an upsert");
        assert_eq!(history(&runs), [json!(["a", 5, 10])]);
    }
    let tied = || (1..3i64, 1..4i64, prop_oneof![3 => Just("U"), 1 => Just("D")], "[ab]");
    let cases = (proptest::collection::vec(tied(), 2..8), any::<bool>()).prop_flat_map(|(events, scd2)| {
        let order: Vec<usize> = (0..events.len()).collect();
        (Just(events), Just(order).prop_shuffle(), 1..4usize, Just(scd2))
    });
    Law::new("AC-06: ties in any order").within(Duration::from_secs(6)).holds(&cases, |(events, order, size, scd2), tried| {
        tried.add("events", events.len());
        let row = |event: &(i64, i64, &str, String)| json!({ "id": event.0, "name": event.3, "seq": event.1, "op": event.2 });
        let straight: Vec<Json> = events.iter().map(row).collect();
        let shuffled: Vec<Vec<Json>> =
            order.iter().map(|at| straight[*at].clone()).collect::<Vec<_>>().chunks(size).map(<[Json]>::to_vec).collect();
        let dataset = dimension(if scd2 { SCD2 } else { MergePolicy::ScdType1 });
        let run = |runs: &[Vec<Json>]| block_on(play(&dataset, runs)).map(last).map_err(|why| TestCaseError::fail(format!("{why:#}")));
        prop_assert_eq!(run(std::slice::from_ref(&straight))?, run(&shuffled)?);
        Ok(())
    });
}

#[test]
fn ac_06_a_tie_with_different_content_is_counted_and_a_copy_is_not() {
    block_on(async {
        let world = World::new();
        let events = list(&handed_case("AC-06").input["cases"]["differ"]);
        world.append(&source("dim"), &json_frame(&columns_of(&names_of(events.iter()), events.iter()), &events)).await?;
        let report = world.run(&dimension(MergePolicy::ScdType1)).await?;
        ensure!(report.ties == 1, "{report:?}");
        let world = World::new();
        let events = list(&handed_case("AC-06").input["cases"]["copy"]);
        world.append(&source("dim"), &json_frame(&columns_of(&names_of(events.iter()), events.iter()), &events)).await?;
        let report = world.run(&dimension(MergePolicy::ScdType1)).await?;
        ensure!(report.ties == 0 && report.rows_ignored.get("duplicate") == Some(&1), "{report:?}");
        Ok(())
    })
    .unwrap();
}

async fn with_nulls(null_keys: NullKeys) -> Result<(World, tributary_silver_merge::Result<tributary_specs::DatasetReport>)> {
    let world = World::new();
    let events = list(&handed_case("AC-07").input["events"]);
    let columns = columns_of(&names_of(events.iter()), events.iter());
    let dataset = SilverSpec { null_keys, ..dimension(MergePolicy::ScdType1) };
    // The first event is there already: what is refused must leave it alone.
    world.append(&source("dim"), &json_frame(&columns, &events[..1])).await?;
    world.run(&dataset).await?;
    world.append(&source("dim"), &json_frame(&columns, &events[1..])).await?;
    let outcome = world.run(&dataset).await;
    Ok((world, outcome))
}

/// S8
#[test]
fn ac_07_a_null_key_or_sequence_is_refused_by_name_and_nothing_of_its_batch_is_written() {
    block_on(async {
        let (world, outcome) = with_nulls(NullKeys::Refuse).await?;
        let error = outcome.expect_err("refused");
        ensure!(matches!(&error, Error::NullKey { column, .. } if column == "id"), "{error}");
        ensure!(rows(&world, &dimension(MergePolicy::ScdType1)).await? == [json!({ "id": 1, "name": "a" })]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_07_or_set_aside_row_by_row_where_the_dataset_says_so() {
    block_on(async {
        let (world, outcome) = with_nulls(NullKeys::Quarantine).await?;
        let report = outcome?;
        ensure!(report.rows_quarantined == 3, "{report:?}");
        ensure!(rows(&world, &dimension(MergePolicy::ScdType1)).await? == [json!({ "id": 1, "name": "a" })]);
        ensure!(world.count(&TableName::new("quarantine", "dim")).await? == Some(3));
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_09_conditions_read_columns_that_the_target_does_not_have() {
    let events = list(&handed_case("AC-09").input["events"]);
    for runs in batchings(&events) {
        assert_eq!(last(block_on(play(&dimension(MergePolicy::ScdType1), &runs)).unwrap()), Vec::<Json>::new());
    }
    block_on(async {
        let world = World::new();
        world.append(&source("dim"), &json_frame(&columns_of(&names_of(events.iter()), events.iter()), &events)).await?;
        world.run(&dimension(MergePolicy::ScdType1)).await?;
        let schema = world.table(&target("dim")).await?.schema();
        ensure!(schema.index_of("op").is_err() && schema.index_of("seq").is_err(), "{schema:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_09_a_key_column_that_is_left_out_is_refused_before_anything_is_written() {
    block_on(async {
        let world = World::new();
        let events = list(&handed_case("AC-09").input["events"]);
        world.append(&source("dim"), &json_frame(&columns_of(&names_of(events.iter()), events.iter()), &events)).await?;
        let columns = ColumnSelection::Except(vec!["id".to_owned(), "op".to_owned()]);
        let error = world.run(&SilverSpec { columns, ..dimension(MergePolicy::ScdType1) }).await.expect_err("refused");
        ensure!(error.to_string().contains("id"), "{error}");
        ensure!(world.lake.table(&target("dim")).await?.is_none());
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_11_history_is_not_quietly_rebuilt_from_a_source_that_was_made_again() {
    block_on(async {
        let event =
            |id: i64, seq: i64, op: &str| json!({ "id": id, "name": if op == "D" { None } else { Some("a") }, "seq": seq, "op": op });
        let store = Arc::new(InMemory::new());
        let world = World::on(Arc::clone(&store) as _, Controls::none());
        let all = [event(1, 1, "I"), event(2, 2, "I"), event(2, 3, "D")];
        let columns = columns_of(&names_of(all.iter()), all.iter());
        for one in &all {
            world.append(&source("dim"), &json_frame(&columns, std::slice::from_ref(one))).await?;
        }
        world.run(&dimension(SCD2)).await?;
        let before = rows(&world, &dimension(SCD2)).await?;
        ensure!(before == [json!(["a", 1, null]), json!(["a", 2, 3])], "{before:?}");
        // The source's retention dropped the first two events, and the bronze table was made again with what was left.
        use futures::StreamExt;
        use tributary_lake::object_store::ObjectStoreExt;
        let gone: Vec<_> = store.list(Some(&"lake/main/bronze/dim".into())).collect().await;
        for object in gone {
            store.delete(&object?.location).await?;
        }
        let world = World::on(Arc::clone(&store) as _, Controls::none());
        world.append(&source("dim"), &json_frame(&columns, &all[2..])).await?;
        let error = world.run(&dimension(SCD2)).await.expect_err("a source that went back");
        ensure!(matches!(error, Error::SourceWentBack { .. }), "{error}");
        ensure!(rows(&world, &dimension(SCD2)).await? == before, "history quietly shorter than before");
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_13_a_kill_between_helper_table_and_target_changes_nothing() {
    let case = handed_case("AC-13");
    let events = list(&case.input["events"]);
    let columns = columns_of(&names_of(events.iter()), events.iter());
    for (policy, expected) in [
        (MergePolicy::ScdType1, vec![json!({ "id": 1, "name": "b" })]),
        (SCD2, vec![json!(["a", 10, 20]), json!(["b", 20, null]), json!(["c", 5, 6])]),
    ] {
        let dataset = dimension(policy);
        let report = block_on(async {
            let prepared = Arc::new(InMemory::new());
            let world = World::on(Arc::clone(&prepared) as _, Controls::none());
            world.append(&source("dim"), &json_frame(&columns, &events)).await?;
            let report = crash_at(
                KillPoints::All,
                KillPoints::Sampled { points: 10, seed: 3 },
                async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
                // Run again, twice.
                async |store| {
                    World::on(Arc::clone(&store), Controls::none()).run(&dataset).await?;
                    World::on(store, Controls::none()).run(&dataset).await.map(|_| ())
                },
                async |store| rows(&World::on(store, Controls::none()), &dataset).await.map_err(|why| format!("{why:#}")),
            )
            .await;
            ensure!(
                rows(
                    &{
                        world.run(&dataset).await?;
                        world
                    },
                    &dataset
                )
                .await?
                    == expected
            );
            Ok(report)
        })
        .unwrap();
        assert!(report.holds(), "{report}\n{}", report.differences.join("\n"));
        println!("AC-13: {report}");
    }
}

#[test]
fn ac_15_no_reader_sees_a_delete_marker_and_time_alone_revives_nothing() {
    let case = handed_case("AC-15");
    block_on(async {
        let world = World::new();
        let mut dataset = dimension(MergePolicy::ScdType1);
        dataset.properties = BTreeMap::from([("pipelines.cdc.tombstoneGCThresholdInSeconds".to_owned(), "172800".to_owned())]);
        for (at, run) in list(&case.input["runs"]).iter().enumerate() {
            let events = list(&run["events"]);
            let columns = columns_of(&["id", "name", "seq", "op"].map(str::to_owned), events.iter());
            world.append(&source("dim"), &json_frame(&columns, &events)).await?;
            world.run(&dataset).await?;
            // Markers go by maintenance alone, so the late events of both later runs lose.
            ensure!(world.count(&target("dim")).await? == Some(0), "after run {}", at + 1);
            world.clock.advance(TimeDelta::days(8));
        }
        let state = world.table(&tributary_specs::TableName::new("_state", "dim")).await?;
        let memory = state.properties().get("pipelines.cdc.tombstoneGCThresholdInSeconds").map(String::as_str);
        ensure!(memory == Some("172800"), "maintenance finds how long deletes are remembered: {memory:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_17_a_record_twice_a_copy_in_a_new_file_and_other_content_have_three_answers() {
    let case = handed_case("AC-17");
    let file = |name: &str| list(&case.input["files"][name]);
    let (f1, copy, f2, f3) = (file("f1"), file("f1_copy"), file("f2"), file("f3"));
    for runs in [
        vec![f1.clone(), copy.clone(), f2.clone(), f3.clone()],
        vec![f3.clone(), f2.clone(), copy.clone(), f1.clone()],
        vec![[f2.clone(), f1.clone(), f3.clone()].concat()],
    ] {
        assert_eq!(last(block_on(play(&dimension(SCD2), &runs)).unwrap()), [json!(["a", 10, 11]), json!(["b", 11, null])], "{runs:?}");
    }
    for runs in [vec![f1.clone(), copy.clone(), f2.clone()], vec![f2.clone(), f1.clone()]] {
        assert_eq!(last(block_on(play(&dimension(SCD2), &runs)).unwrap()), [json!(["a", 10, null])], "{runs:?}");
    }
    block_on(async {
        let world = World::new();
        let columns = columns_of(&names_of(f1.iter()), f1.iter());
        for (events, changed) in [(&f1, 1), (&copy, 0)] {
            world.append(&source("dim"), &json_frame(&columns, events)).await?;
            let report = world.run(&dimension(SCD2)).await?;
            ensure!(report.rows_inserted + report.rows_updated + report.rows_deleted == changed, "{report:?}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn ac_17_the_winner_of_a_tie_that_equals_its_neighbour_opens_no_period() {
    // At 11 the content of 10 wins the tie: one period, not two equal ones side by side.
    let event = |name: &str, seq: i64| json!({ "id": 1, "name": name, "seq": seq, "op": "U" });
    let events = [event("b", 10), event("a", 11), event("b", 11)];
    for runs in batchings(&events) {
        assert_eq!(last(block_on(play(&dimension(SCD2), &runs)).unwrap()), [json!(["b", 10, null])], "{runs:?}");
    }
}

#[test]
fn ac_19_an_event_older_than_the_delete_goes_into_closed_history_only() {
    let case = handed_case("AC-19");
    let runs: Vec<Vec<Json>> = list(&case.input["runs"]).iter().map(list).collect();
    let expected = |name: &str| list(&case.expected[name]).iter().map(list).collect::<Vec<_>>();
    assert_eq!(block_on(play(&dimension(MergePolicy::ScdType1), &runs)).unwrap(), expected("scd1_after_each"));
    let after = block_on(play(&dimension(SCD2), &runs)).unwrap();
    assert_eq!(after, expected("scd2_after_each"));
    assert!(after.concat().iter().all(|row| !row[2].is_null()), "no period is open");
}

#[test]
fn ac_20_a_column_that_always_changes_is_a_period_an_event_or_none_as_declared() {
    let event = |seq: i64| json!({ "id": 1, "name": "a", "polled_at": format!("2026-02-03T10:{seq:02}:00Z"), "seq": seq });
    let events: Vec<Json> = (1..=31).map(event).collect();
    let dataset = |track_history| SilverSpec {
        sequence_by: vec!["seq".to_owned()],
        columns: ColumnSelection::Except(vec!["seq".to_owned()]),
        ..spec("dim", &["id"], MergePolicy::ScdType2 { track_history })
    };
    for (track, count) in [(ColumnSelection::All, 31), (ColumnSelection::Except(vec!["polled_at".to_owned()]), 1)] {
        for runs in batchings(&events) {
            block_on(async {
                let world = World::new();
                let columns = columns_of(&names_of(events.iter()), events.iter());
                for run in &runs {
                    world.append(&source("dim"), &json_frame(&columns, run)).await?;
                    world.run(&dataset(track.clone())).await?;
                }
                let rows = world.rows(&target("dim"), &["polled_at", "__START_AT", "__END_AT"]).await?.rows();
                ensure!(rows.len() == count, "{} rows, expected {count}", rows.len());
                if count == 1 {
                    ensure!(rows[0] == [Value::text("2026-02-03T10:31:00Z"), Value::from(1), Value::Null], "{rows:?}");
                }
                Ok(())
            })
            .unwrap();
        }
    }
}
