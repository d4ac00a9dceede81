//! Tables that go missing, are made again or come back from a copy, below a target that has been planned on them.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use serde_json::json;
use tributary_fault::{ExitCode, Fault};
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::object_store::{ObjectStore, ObjectStoreExt};
use tributary_silver_merge::Error;
use tributary_specs::{Expectation, ExpectationAction, MergePolicy, NullKeys, SilverSpec, Status, TableName};
use tributary_testkit::{Controls, FaultyStore, Frame};

use crate::world::{SCD2, World, block_on, columns_of, dimension, json_frame, names_of, sorted, source, target};

const STATE: &str = "lake/main/_state/dim";
const SOURCE: &str = "lake/main/bronze/dim";

fn event(id: i64, seq: i64, op: &str) -> Frame {
    let rows = [json!({ "id": id, "name": "a", "seq": seq, "op": op })];
    json_frame(&columns_of(&names_of(rows.iter()), rows.iter()), &rows)
}

fn policies() -> [MergePolicy; 2] {
    [MergePolicy::ScdType1, SCD2]
}

/// A source of three versions, consumed to the second: one row, and one delete that only `_state` remembers.
async fn consumed(dataset: &SilverSpec) -> Result<Arc<dyn ObjectStore>> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store), Controls::none());
    world.append(&source("dim"), &event(2, 5, "I")).await?;
    world.run(dataset).await?;
    world.append(&source("dim"), &event(1, 20, "D")).await?;
    world.run(dataset).await?;
    Ok(store)
}

async fn remove(store: &Arc<dyn ObjectStore>, below: &str) -> Result<()> {
    let all: Vec<_> = store.list(None).try_collect().await?;
    for object in all.iter().filter(|object| object.location.as_ref().starts_with(below)) {
        store.delete(&object.location).await?;
    }
    Ok(())
}

/// Takes positions out of a log, as a release that did not know them would have written it.
async fn forget(store: &Arc<dyn ObjectStore>, log: &str, app_id: &str) -> Result<()> {
    let all: Vec<_> = store.list(Some(&log.into())).try_collect().await?;
    for object in all {
        let text = String::from_utf8(store.get(&object.location).await?.bytes().await?.to_vec())?;
        let kept: String = text.lines().filter(|line| !line.contains(app_id)).map(|line| format!("{line}\n")).collect();
        store.put(&object.location, kept.into()).await?;
    }
    Ok(())
}

async fn rows(store: &Arc<dyn ObjectStore>, table: &TableName) -> Result<Vec<Vec<tributary_testkit::Value>>> {
    Ok(sorted(&World::on(Arc::clone(store), Controls::none()).all(table).await?))
}

#[test]
fn ac_11_a_source_made_again_with_fewer_as_many_or_more_versions_is_refused() {
    block_on(async {
        for policy in policies() {
            for versions in 1..=4 {
                let dataset = dimension(policy.clone());
                let store = consumed(&dataset).await?;
                let before = rows(&store, &dataset.table).await?;
                remove(&store, SOURCE).await?;
                let world = World::on(Arc::clone(&store), Controls::none());
                for version in 0..versions {
                    world.append(&source("dim"), &event(7 + version, 30, "I")).await?;
                }
                let error = world.run(&dataset).await.expect_err("another source");
                ensure!(matches!(error, Error::SourceWentBack { made_again: true, position: 2, .. }), "{versions}: {error}");
                ensure!((error.code().0, ExitCode::of(error.class())) == ("SM0013", ExitCode::BadInput), "{error}");
                let text = error.to_string();
                ensure!(
                    text.contains("made again") && text.contains("bring the one consumed back") && text.contains("`_state.dim`"),
                    "{text}"
                );
                ensure!(error.next_command().as_deref() == Some("tributary show history bronze.dim"), "{:?}", error.next_command());
                ensure!(rows(&store, &dataset.table).await? == before, "{versions}: written all the same");
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_source_that_was_consumed_and_is_gone_is_refused_by_name() {
    block_on(async {
        let dataset = dimension(SCD2);
        let store = consumed(&dataset).await?;
        remove(&store, SOURCE).await?;
        let error = World::on(store, Controls::none()).run(&dataset).await.expect_err("no source");
        ensure!(matches!(error, Error::NoSource { .. }), "{error}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_target_that_is_built_anew_takes_the_new_source_and_its_rejected_rows() {
    block_on(async {
        let rule = Expectation { name: "small".to_owned(), expression: "id < 100".to_owned(), action: ExpectationAction::Quarantine };
        let dataset = SilverSpec { expectations: vec![rule], null_keys: NullKeys::Quarantine, ..dimension(MergePolicy::ScdType1) };
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let world = World::on(Arc::clone(&store), Controls::none());
        for id in [1, 101, 102] {
            world.append(&source("dim"), &event(id, 5, "I")).await?;
        }
        world.run(&dataset).await?;
        for folder in [SOURCE, STATE, "lake/main/silver/dim"] {
            remove(&store, folder).await?;
        }
        let world = World::on(Arc::clone(&store), Controls::none());
        world.append(&source("dim"), &event(2, 5, "I")).await?;
        world.append(&source("dim"), &event(103, 5, "I")).await?;
        let report = world.run(&dataset).await?;
        ensure!((report.rows_in, report.rows_quarantined) == (2, 1), "{report:?}");
        ensure!(world.count(&TableName::new("quarantine", "dim")).await? == Some(3), "the rejected row of the new source is not there");
        world.append(&source("dim"), &event(104, 5, "I")).await?;
        world.run(&dataset).await?;
        ensure!(world.count(&TableName::new("quarantine", "dim")).await? == Some(4), "the next one is not");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_state_that_is_gone_or_another_or_older_stops_the_run_before_anything_is_planned() {
    block_on(async {
        for policy in policies() {
            for loss in ["gone", "made again", "went back"] {
                let dataset = dimension(policy.clone());
                let store = consumed(&dataset).await?;
                let world = World::on(Arc::clone(&store), Controls::none());
                // A delete more, so that the state is at its second version of rows.
                world.append(&source("dim"), &event(3, 20, "D")).await?;
                world.run(&dataset).await?;
                let before = rows(&store, &dataset.table).await?;
                let state = TableName::new("_state", "dim");
                let version = world.version(&state).await?;
                match loss {
                    "gone" => remove(&store, STATE).await?,
                    "went back" => remove(&store, &format!("{STATE}/_delta_log/{version:020}.json")).await?,
                    _ => {
                        let other = consumed(&dataset).await?;
                        remove(&store, STATE).await?;
                        let copied: Vec<_> = other.list(Some(&STATE.into())).try_collect().await?;
                        for object in copied {
                            store.put(&object.location, other.get(&object.location).await?.bytes().await?.into()).await?;
                        }
                    }
                }
                let world = World::on(Arc::clone(&store), Controls::none());
                // Older than its delete: without the memory it would come back.
                world.append(&source("dim"), &event(1, 15, "U")).await?;
                let error = world.run(&dataset).await.expect_err("no memory of the delete");
                ensure!((error.code().0, ExitCode::of(error.class())) == ("SM0020", ExitCode::BadInput), "{error}");
                let text = error.to_string();
                let lost = if loss == "gone" { "is gone" } else { loss };
                ensure!(text.contains(lost) && text.contains("`_state.dim`") && text.contains("bring it back"), "{loss}: {text}");
                ensure!(rows(&store, &dataset.table).await? == before, "{loss}: written all the same");
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_target_that_names_no_tables_yet_does_so_with_its_next_commit() {
    block_on(async {
        for policy in policies() {
            let dataset = dimension(policy);
            let store = consumed(&dataset).await?;
            let ids = ["tributary:source-id:bronze.dim", "tributary:state-id:silver.dim"];
            let log = format!("lake/main/silver/{}/_delta_log", target("dim").name);
            for id in ids {
                forget(&store, &log, id).await?;
            }
            let world = World::on(Arc::clone(&store), Controls::none());
            for id in ids {
                ensure!(world.table(&dataset.table).await?.progress(id).await?.is_none(), "{id}");
            }
            ensure!(world.run(&dataset).await?.status == Status::NothingNew);
            world.append(&source("dim"), &event(2, 9, "U")).await?;
            world.run(&dataset).await?;
            for (id, table) in ids.into_iter().zip([source("dim"), TableName::new("_state", "dim")]) {
                let named = world.table(&dataset.table).await?.progress(id).await?;
                ensure!(named == Some(world.table(&table).await?.identity()), "{id}: {named:?}");
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_target_that_needs_an_unknown_feature_is_refused_before_its_source_is_read() {
    block_on(async {
        for policy in [MergePolicy::ScdType1, MergePolicy::Append] {
            let mut dataset = dimension(policy.clone());
            if policy == MergePolicy::Append {
                (dataset.keys, dataset.sequence_by) = (Vec::new(), Vec::new());
                dataset.deletes.apply_as_delete_when = None;
            }
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let world = World::on(Arc::clone(&store), Controls::none());
            world.append(&source("dim"), &event(1, 1, "I")).await?;
            world.run(&dataset).await?;
            world.append(&source("dim"), &event(2, 2, "I")).await?;
            let first = "lake/main/silver/dim/_delta_log/00000000000000000000.json".into();
            let text = String::from_utf8(store.get(&first).await?.bytes().await?.to_vec())?;
            store.put(&first, text.replace("\"writerFeatures\":[", "\"writerFeatures\":[\"quantumRows\",").into()).await?;
            let files = async || Ok::<_, anyhow::Error>(store.list(None).try_collect::<Vec<_>>().await?.len());
            let before = files().await?;
            let faulty = FaultyStore::new(Arc::clone(&store));
            let error = World::on(Arc::new(faulty.clone()), Controls::none()).run(&dataset).await.expect_err("an unknown feature");
            ensure!(error.code().0 == "LK0005" && error.next_command().is_some(), "{error}");
            ensure!(files().await? == before, "files were written in vain");
            let reads = faulty.calls();
            ensure!(!reads.iter().any(|call| call.path.as_ref().ends_with(".parquet")), "the source was read: {reads:?}");
        }
        Ok(())
    })
    .unwrap();
}
