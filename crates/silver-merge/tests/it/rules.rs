//! Expectations, null keys, and the rows they set aside.

use std::sync::Arc;

use anyhow::{Result, ensure};
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_silver_merge::{Error, Options};
use tributary_specs::{Expectation, ExpectationAction, MergePolicy, NullKeys, SilverSpec, TableName};
use tributary_testkit::{Controls, FaultyStore, Frame, KillPoints, assert_frames_eq, crash_at, frame};

use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted, source, spec, target};

fn readings() -> Frame {
    frame!(
        "id: long | v: long | at: long | _op: string | _position: string | _unavailable: array<string> | _line: long
        1 | 5    | 1 | create | 000000/01 | null    | 1
        2 | -5   | 1 | create | 000000/02 | null    | 2
        3 | null | 1 | create | 000000/03 | null    | 3
        1 | null | 2 | update | 000000/04 | [\"v\"] | 4
        null | 1 | 2 | create | 000000/05 | null    | 5
        4 | 1 | null | create | 000000/06 | null    | 6
        1 | null | null | delete | 000000/07 | null | 7"
    )
}

fn dataset(action: ExpectationAction) -> SilverSpec {
    SilverSpec {
        sequence_by: vec!["at".to_owned()],
        expectations: vec![Expectation { name: "not negative".to_owned(), expression: "v >= 0".to_owned(), action }],
        null_keys: NullKeys::Quarantine,
        ..spec("readings", &["id"], MergePolicy::ScdType1)
    }
}

fn quarantine() -> TableName {
    TableName::new("quarantine", "readings")
}

#[test]
fn a_rule_fails_on_null_but_says_nothing_of_a_value_that_was_not_sent_nor_of_a_delete() {
    block_on(async {
        let expected = [
            (ExpectationAction::Warn, "id: long\n 2\n 3", 2, 0),
            (ExpectationAction::Drop, "id: long", 2, 2),
            (ExpectationAction::Quarantine, "id: long", 4, 0),
        ];
        for (action, rows, quarantined, ignored) in expected {
            let world = World::new();
            world.append(&source("readings"), &readings()).await?;
            let report = world.run(&dataset(action)).await?;
            assert_frames_eq!(world.rows(&target("readings"), &["id"]).await?, frame!(rows));
            let quarantined = if action == ExpectationAction::Quarantine { quarantined } else { 2 };
            ensure!(report.rows_quarantined == quarantined, "{action:?} {report:?}");
            ensure!(report.rows_ignored.get("expectation").copied().unwrap_or_default() == ignored, "{action:?} {report:?}");
            ensure!(report.expectations.get("not negative") == Some(&2), "{action:?} {report:?}");
            ensure!(report.rows_in == report.rows_out + report.rows_quarantined + report.rows_ignored.values().sum::<u64>(), "{report:?}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_rule_that_must_hold_stops_the_dataset_with_nothing_written() {
    block_on(async {
        for policy in [MergePolicy::ScdType1, SCD2, MergePolicy::Append] {
            let world = World::new();
            world.append(&source("readings"), &readings()).await?;
            let dataset = SilverSpec { policy: policy.clone(), ..dataset(ExpectationAction::Fail) };
            match world.run(&dataset).await {
                Err(Error::Expectation { rows: 2, expectation, position, .. }) => {
                    ensure!(expectation == "not negative" && position == "position 000000/02", "{position}");
                }
                other => anyhow::bail!("{other:?}"),
            }
            let written = match world.lake.table(&target("readings")).await? {
                Some(table) => table.version(),
                None => 0,
            };
            ensure!(written == 0 && world.lake.table(&quarantine()).await?.is_none(), "{policy:?}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_is_set_aside_keeps_its_row_its_rule_and_its_place() {
    block_on(async {
        let world = World::new();
        world.append(&source("readings"), &readings()).await?;
        let options = Options { run_id: "run 7".to_owned(), ..Options::default() };
        tributary_silver_merge::run(&world.lake, &dataset(ExpectationAction::Quarantine), &options).await?;
        let columns = ["rule", "row", "source", "source_version", "position", "line", "run"];
        assert_frames_eq!(
            world.rows(&quarantine(), &columns).await?,
            frame!(
                "rule: string | row: struct<id:long,v:long,at:long> | source: string | source_version: long | position: string | line: long | run: string
                not negative  | {\"id\": 2, \"v\": -5, \"at\": 1}     | bronze.readings | 1 | 000000/02 | 2 | run 7
                not negative  | {\"id\": 3, \"v\": null, \"at\": 1}   | bronze.readings | 1 | 000000/03 | 3 | run 7
                NULL_KEY      | {\"id\": null, \"v\": 1, \"at\": 2}   | bronze.readings | 1 | 000000/05 | 5 | run 7
                NULL_SEQUENCE | {\"id\": 4, \"v\": 1, \"at\": null}   | bronze.readings | 1 | 000000/06 | 6 | run 7"
            )
        );
        // New columns of the dataset are new fields of the rows set aside.
        world.append(&source("readings"), &frame!("id: long | v: long | at: long | unit: string | _op: string | _position: string\n 5 | -1 | 3 | cm | create | 000000/09")).await?;
        world.run(&dataset(ExpectationAction::Quarantine)).await?;
        ensure!(world.count(&quarantine()).await? == Some(5));
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_that_no_partition_can_hold_are_set_aside_and_the_others_go_on() {
    block_on(async {
        for policy in
            [MergePolicy::Append, MergePolicy::ScdType1, SCD2, MergePolicy::LastWriterWins, MergePolicy::InsertOnly { exact: false }]
        {
            for vectors in [true, false] {
                let world = World::new();
                let first = frame!(
                    "id: long | site: string | day: date | v: long | _op: string | _position: string
                     1 | north | 2026-01-01 | 1 | create | 000000/01
                     2 | \"\"  | 2026-01-01 | 2 | create | 000000/02
                     3 | null  | 2026-01-01 | 3 | create | 000000/03"
                );
                world.append(&source("sites"), &first).await?;
                let dataset = SilverSpec {
                    partition_by: vec!["site".to_owned()],
                    properties: crate::world::vectors(vectors),
                    ..spec("sites", if policy == MergePolicy::Append { &[] } else { &["id"] }, policy.clone())
                };
                world.run(&dataset).await?;
                // an update to no site, the row's delete, one of a row that was set aside, and a row like the others
                let second = frame!(
                    "id: long | site: string | day: date | v: long | _op: string | _position: string
                     1 | \"\"  | 2026-01-02 | 4 | update | 000000/04
                     1 | \"\"  | null | null | delete | 000000/05
                     2 | \"\"  | null | null | delete | 000000/06
                     4 | south | 2026-01-02 | 5 | create | 000000/07"
                );
                world.append(&source("sites"), &second).await?;
                let report = world.run(&dataset).await?;
                ensure!(report.rows_quarantined == 1, "{report:?}");
                let aside = world.rows(&TableName::new("quarantine", "sites"), &["rule", "position"]).await?;
                assert_frames_eq!(aside, frame!("rule: string | position: string\n NO_PARTITION | 000000/02\n NO_PARTITION | 000000/04"));
                let left = sorted(&world.rows(&target("sites"), &["id"]).await?).len();
                // a history keeps the version that was closed, and what only adds keeps what was deleted
                let expected = if policy == MergePolicy::ScdType1 { 2 } else { 3 };
                ensure!(left == expected, "{policy:?}: {left} rows");
                if policy != MergePolicy::Append {
                    feed_replays_to_the_table(&world, &target("sites")).await?;
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

/// Everything the target and its quarantine hold.
async fn see(store: Arc<dyn ObjectStore>) -> Result<(Vec<Vec<tributary_testkit::Value>>, Vec<Vec<tributary_testkit::Value>>)> {
    let world = World::on(store, Controls::none());
    let mut rows = world.rows(&target("readings"), &["id", "v"]).await?.rows();
    let mut aside = world.rows(&quarantine(), &["rule", "position"]).await?.rows();
    rows.sort();
    aside.sort();
    Ok((rows, aside))
}

#[test]
fn a_kill_anywhere_sets_every_row_aside_once() {
    let report = block_on(async {
        let prepared = {
            let store = Arc::new(InMemory::new());
            let world = World::on(Arc::clone(&store) as _, Controls::none());
            world.append(&source("readings"), &readings()).await?;
            world.append(&source("readings"), &frame!("id: long | v: long | at: long | _op: string | _position: string\n 5 | -1 | 3 | create | 000000/09\n 6 | 1 | 3 | create | 000000/10")).await?;
            store.fork()
        };
        let report = crash_at(
            KillPoints::All,
            KillPoints::Sampled { points: 10, seed: 1 },
            async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
            async |store| World::on(store, Controls::none()).run_version_by_version(&dataset(ExpectationAction::Quarantine)).await.map(|_| ()),
            async |store| see(store).await.map_err(|why| format!("{why:?}")),
        )
        .await;
        Ok::<_, anyhow::Error>(report)
    })
    .unwrap();
    assert!(report.holds(), "{}\n{}", report.differences.len(), report.differences.join("\n\n"));
}

#[test]
fn a_cancelled_run_leaves_the_table_as_it_was_and_the_next_goes_on() {
    block_on(async {
        let store = FaultyStore::new(Arc::new(InMemory::new()));
        let world = World::on(Arc::new(store), Controls::none());
        world.append(&source("readings"), &readings()).await?;
        let options = Options::default();
        options.cancel.cancel();
        let dataset = dataset(ExpectationAction::Drop);
        let error = tributary_silver_merge::run(&world.lake, &dataset, &options).await.expect_err("it was cancelled");
        ensure!(matches!(error, Error::Cancelled { .. }), "{error}");
        ensure!(world.lake.table(&target("readings")).await?.is_none());
        world.run(&dataset).await?;
        ensure!(world.count(&target("readings")).await? == Some(0));
        Ok(())
    })
    .unwrap();
}
