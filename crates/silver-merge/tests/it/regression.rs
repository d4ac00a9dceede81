//! What laws found, each as a case of its own.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::MergePolicy;
use tributary_testkit::strategy::{ChangeKind, SourceTable, bronze_frame, source_history};
use tributary_testkit::{Controls, FaultyStore, Mode, Rule, example};

use crate::world::{World, block_on, columns_of, dimension, json_frame, names_of, source, spec, target};

#[test]
fn a_truncate_is_counted_once_however_many_slices_of_keys_there_are() {
    let table = SourceTable { keys: 100, ..SourceTable::orders() };
    let strategy = source_history(table.clone(), 150);
    let history = (0..1000)
        .map(|seed| example(&strategy, seed))
        .find(|history| history.changes.len() > 60 && history.changes.iter().any(|change| change.kind == ChangeKind::Truncate))
        .expect("a long history with a truncate");
    let result: Result<()> = block_on(async {
        for (memory_limit, sliced) in [(64 << 20, false), (4096, true)] {
            let world = World::new();
            world.append(&source("orders"), &bronze_frame(&table, &history.changes, 0)).await?;
            let report = world.run_in_slices(&spec("orders", &["order_id"], MergePolicy::ScdType1), memory_limit).await?;
            ensure!(report.reason.contains("slices of keys") == sliced, "{report:?}");
            let ignored: u64 = report.rows_ignored.values().sum();
            ensure!(report.rows_in == history.changes.len() as u64 && report.rows_out + ignored == report.rows_in, "{report:?}");
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_run_goes_on_from_a_state_that_a_killed_one_left_exactly_as_it_should_be() {
    let event = |name: Option<&str>, seq: i64, op: &str| json!({ "id": 1, "name": name, "seq": seq, "op": op });
    // The delete is remembered in `_state`; the newer row makes that memory needless, so that nothing is left in it.
    let batches = [vec![event(Some("a"), 1, "I"), event(None, 2, "D")], vec![event(Some("b"), 3, "I")]];
    let columns = columns_of(&names_of(batches[0].iter()), batches[0].iter());
    let result: Result<()> = block_on(async {
        let prepared = Arc::new(InMemory::new());
        let before = World::on(Arc::clone(&prepared) as _, Controls::none());
        before.append(&source("dim"), &json_frame(&columns, &batches[0])).await?;
        before.run(&dimension(MergePolicy::ScdType1)).await?;
        before.append(&source("dim"), &json_frame(&columns, &batches[1])).await?;

        let unharmed = FaultyStore::new(Arc::new(prepared.fork()));
        World::on(Arc::new(unharmed.clone()), Controls::none()).run(&dimension(MergePolicy::ScdType1)).await?;
        let commits_state = Rule::delta_commit().on("/_state/dim/");
        let call = unharmed.calls().into_iter().find(|call| commits_state.matches(call)).context("the state is committed")?;

        for mode in [Mode::After, Mode::AnswerLost] {
            let faulty = FaultyStore::new(Arc::new(prepared.fork()));
            faulty.kill_at(call.number, mode);
            ensure!(World::on(Arc::new(faulty.clone()), Controls::none()).run(&dimension(MergePolicy::ScdType1)).await.is_err(), "killed");
            let restarted = World::on(faulty.inner(), Controls::none());
            restarted.run(&dimension(MergePolicy::ScdType1)).await?;
            ensure!(restarted.count(&target("dim")).await? == Some(1));
        }
        Ok(())
    });
    result.unwrap();
}
