//! When a view follows its inputs, when it does not, and what is said of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use futures::TryStreamExt;
use tributary_gold_agg::{Options, RefreshMode, audit, explain, run};
use tributary_lake::object_store::{ObjectStore, ObjectStoreExt};
use tributary_lake::{Commit, CommitOutcome, Operation, Reads, WriterOptions};
use tributary_specs::{Column, DatasetReport, ExpectationAction, GoldSpec, Refresh, TableSpec};
use tributary_testkit::{Frame, Value, assert_frames_eq, frame};

use crate::world::{World, by_region, name, no_orders, orders};

async fn refreshed(world: &World, spec: &GoldSpec) -> Result<DatasetReport> {
    Ok(run(&world.lake, spec, &Options::default()).await?)
}

/// G2: rows of groups that did not change are not touched, and readers of the change feed are told what happened.
#[tokio::test]
async fn only_rows_of_changed_groups_are_written_and_the_change_feed_tells_them() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    refreshed(&world, &by_region()).await?;
    let come = frame!("order_id: long | region: string | amount: long\n 5 | west | 7\n 6 | null | 1");
    world.change("silver.orders", &BTreeSet::from([2]), &come, false).await?;
    let report = refreshed(&world, &by_region()).await?;
    assert_eq!((report.mode.as_str(), report.reason.as_str()), ("incremental", "silver.orders moved from version 1 to 2"));
    assert_eq!((report.rows_inserted, report.rows_updated, report.rows_deleted), (1, 1, 1));
    let expected = frame!(
        "region: string | revenue: long | orders: long
         north          | 14            | 2
         null           | 1             | 2
         west           | 7             | 1"
    );
    assert_frames_eq!(world.rows("gold.revenue").await?, expected);
    let view = world.table("gold.revenue").await?;
    let changes = crate::world::frame_of(view.changes(2, 2).await?).await?;
    assert_frames_eq!(
        changes.select(&["region", "revenue", "_change_type"]),
        frame!(
            "region: string | revenue: long | _change_type: string
             null           | null          | update_preimage
             null           | 1             | update_postimage
             south          | 2             | delete
             west           | 7             | insert"
        )
    );
    Ok(())
}

#[tokio::test]
async fn a_change_that_leaves_the_view_as_it_is_moves_its_positions_and_no_row() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = GoldSpec::new(name("gold.regions"), "SELECT DISTINCT region FROM silver.orders");
    refreshed(&world, &spec).await?;
    world.change("silver.orders", &BTreeSet::from([0]), &no_orders(), false).await?;
    let report = refreshed(&world, &spec).await?;
    assert_eq!((report.mode.as_str(), report.rows_inserted + report.rows_updated + report.rows_deleted), ("incremental", 0));
    assert_eq!(report.positions["silver.orders"], 2);
    assert_eq!(refreshed(&world, &spec).await?.reason, "no input moved");
    Ok(())
}

/// G3
#[tokio::test]
async fn what_does_not_follow_is_refreshed_in_full_for_one_reason_that_is_told() -> Result<()> {
    for (query, reason) in [
        ("SELECT sum(DISTINCT amount) AS n FROM silver.orders", "without GROUP BY a row of it is made of every row of its inputs"),
        (
            "SELECT sum(amount) AS n FROM silver.orders GROUP BY region",
            "no column of its result says of which groups or rows a row is made",
        ),
        ("SELECT order_id FROM silver.orders ORDER BY order_id LIMIT 2", "LIMIT takes rows by the order of all of them"),
        ("SELECT region, count(*) AS n FROM silver.orders GROUP BY ROLLUP (region)", "ROLLUP, CUBE and GROUPING SETS are not followed"),
        (
            "SELECT order_id, row_number() OVER (ORDER BY order_id) AS n FROM silver.orders",
            "a window without PARTITION BY columns is over every row",
        ),
    ] {
        let world = World::new();
        world.append("silver.orders", &orders()).await?;
        let spec = GoldSpec::new(name("gold.view"), query);
        refreshed(&world, &spec).await?;
        world.change("silver.orders", &BTreeSet::from([0]), &no_orders(), false).await?;
        let report = refreshed(&world, &spec).await?;
        assert_eq!(report.reason, format!("silver.orders moved from version 1 to 2; in full, for {reason}"), "{query}");
        assert_eq!(report.mode, "full");
        let strict = GoldSpec { table: name("gold.strict"), ..spec.with_refresh(Refresh::Incremental) };
        let error = run(&world.lake, &strict, &Options::default()).await.unwrap_err().to_string();
        assert!(error.ends_with(reason), "{error}");
        assert!(world.lake.table(&strict.table).await?.is_none(), "nothing is made");
    }
    Ok(())
}

/// G3: a view that is to follow or stop stops where it could not, and goes on where it can.
#[tokio::test]
async fn a_view_that_refuses_to_fall_back_is_left_as_it_was() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = by_region().with_refresh(Refresh::Incremental);
    refreshed(&world, &spec).await?;
    world.change("silver.orders", &BTreeSet::from([0]), &no_orders(), false).await?;
    assert_eq!(refreshed(&world, &spec).await?.mode, "incremental");
    let changed = GoldSpec {
        query: "SELECT region, max(amount) AS revenue, count(*) AS orders FROM silver.orders GROUP BY region".into(),
        ..spec.clone()
    };
    let error = run(&world.lake, &changed, &Options::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "`gold.revenue` asks for incremental refresh and would be refreshed in full, for the definition changed");
    assert_eq!(world.version("gold.revenue").await?, 2);
    run(&world.lake, &changed, &Options { full_refresh: true, ..Options::default() }).await?;
    assert_eq!(world.version("gold.revenue").await?, 3);
    Ok(())
}

#[tokio::test]
async fn an_input_without_a_change_feed_or_with_other_columns_is_read_in_full() -> Result<()> {
    let world = World::new();
    let mut silent = TableSpec::new(name("silver.silent"), Column::all_from_arrow(&orders().schema())?);
    silent.properties.insert("delta.enableChangeDataFeed".to_owned(), "false".to_owned());
    world.lake.create(&silent).await?;
    world.append("silver.silent", &orders()).await?;
    let spec = GoldSpec::new(name("gold.view"), "SELECT order_id, region FROM silver.silent");
    refreshed(&world, &spec).await?;
    world.append("silver.silent", &orders()).await?;
    let report = refreshed(&world, &spec).await?;
    assert!(report.reason.ends_with("in full, for `silver.silent` has no change feed"), "{}", report.reason);
    assert_eq!(world.rows("gold.view").await?.len(), 8);

    world.append("silver.orders", &orders()).await?;
    refreshed(&world, &by_region()).await?;
    let table = world.table("silver.orders").await?;
    let mut columns = table.columns().to_vec();
    columns.push(Column::new("extra", "long".parse()?));
    let mut writer = table.writer(WriterOptions { columns: Some(columns.clone()), ..WriterOptions::default() })?;
    writer.write(orders().batch()).await?;
    let commit = Commit {
        operation: Operation::Write,
        adds: writer.finish().await?,
        schema: Some(columns),
        reads: Reads::WholeTable,
        ..Commit::default()
    };
    assert!(matches!(table.commit(commit).await?, CommitOutcome::Committed { .. }));
    let report = refreshed(&world, &by_region()).await?;
    assert!(report.reason.ends_with("in full, for column `extra` of `silver.orders` is new"), "{}", report.reason);
    Ok(())
}

#[tokio::test]
async fn rules_hold_for_rows_that_are_made_anew_and_dropped_rows_stay_away() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = by_region().with_expectation("known", "region IS NOT NULL", ExpectationAction::Drop);
    refreshed(&world, &spec).await?;
    assert_eq!(world.rows("gold.revenue").await?.len(), 2);
    let come = frame!("order_id: long | region: string | amount: long\n 5 | null | 7\n 6 | south | 1");
    world.change("silver.orders", &BTreeSet::new(), &come, false).await?;
    let report = refreshed(&world, &spec).await?;
    assert_eq!((report.mode.as_str(), report.rows_in, report.rows_out), ("incremental", 2, 1));
    crate::world::assert_counts_add_up(&report);
    assert_eq!(world.rows("gold.revenue").await?.len(), 2);

    let strict = by_region().with_expectation("small", "revenue < 100", ExpectationAction::Fail);
    refreshed(&world, &strict).await?;
    let come = frame!("order_id: long | region: string | amount: long\n 7 | south | 1000");
    world.change("silver.orders", &BTreeSet::new(), &come, false).await?;
    let version = world.version("gold.revenue").await?;
    assert!(run(&world.lake, &strict, &Options::default()).await.unwrap_err().to_string().contains("EXPECTATION_VIOLATION"));
    assert_eq!(world.version("gold.revenue").await?, version);
    Ok(())
}

/// `NOT IN` follows while no null is in play; one decides of every row.
#[tokio::test]
async fn not_in_follows_until_a_null_comes_to_its_subquery() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    world.append("silver.stopped", &frame!("id: long\n 2")).await?;
    let spec = GoldSpec::new(name("gold.view"), "SELECT order_id FROM silver.orders WHERE amount NOT IN (SELECT id FROM silver.stopped)");
    refreshed(&world, &spec).await?;
    assert_frames_eq!(world.rows("gold.view").await?, frame!("order_id: long\n 1\n 2"));
    for (gone, come, mode, rows) in [
        // an empty subquery keeps the order of no amount, too
        (vec![0], frame!("id: long"), "incremental", frame!("order_id: long\n 1\n 2\n 3\n 4")),
        (vec![], frame!("id: long\n 10"), "incremental", frame!("order_id: long\n 2\n 3")),
        (vec![], frame!("id: long\n null"), "full", frame!("order_id: long")),
        (vec![0], frame!("id: long\n 4"), "incremental", frame!("order_id: long")),
    ] {
        world.change("silver.stopped", &gone.into_iter().collect(), &come, false).await?;
        assert_eq!(refreshed(&world, &spec).await?.mode, mode);
        assert_frames_eq!(world.rows("gold.view").await?, rows);
    }
    Ok(())
}

/// Rows of a view that follows are marked, not copied, unless its declaration forbids it.
#[tokio::test]
async fn the_table_of_a_view_that_follows_has_deletion_vectors() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let forbidden = GoldSpec {
        table: name("gold.plain"),
        properties: [("delta.enableDeletionVectors".to_owned(), "false".to_owned())].into(),
        ..by_region()
    };
    let limited = GoldSpec::new(name("gold.first"), "SELECT order_id FROM silver.orders ORDER BY order_id LIMIT 1");
    for (spec, expected) in [(by_region(), Some("true")), (forbidden, Some("false")), (limited, None)] {
        refreshed(&world, &spec).await?;
        let table = world.table(&spec.table.to_string()).await?;
        assert_eq!(table.properties().get("delta.enableDeletionVectors").map(String::as_str), expected, "{}", spec.table);
    }
    Ok(())
}

#[tokio::test]
async fn a_column_that_is_grouped_by_twice_is_one_and_what_is_computed_behind_it_is_not_taken_for_it() -> Result<()> {
    for (total, means) in
        [("sum(amount)", "signed deltas"), ("stddev(amount)", "changed groups, for `stddev(orders.amount)` does not follow")]
    {
        let world = World::new();
        world.append("silver.orders", &orders()).await?;
        let query = format!("SELECT {total} AS t, region FROM silver.orders GROUP BY region, region");
        refreshed(&world, &GoldSpec::new(name("gold.view"), &query)).await?;
        let come = frame!("order_id: long | region: string | amount: long\n 5 | north | 10");
        world.change("silver.orders", &BTreeSet::new(), &come, false).await?;
        let report = refreshed(&world, &GoldSpec::new(name("gold.view"), &query)).await?;
        assert!(report.means.starts_with(means), "{}", report.means);
        assert_eq!((report.rows_updated, report.rows_inserted, report.rows_deleted), (1, 0, 0));
    }
    Ok(())
}

#[tokio::test]
async fn a_view_in_partitions_follows_by_the_column_that_it_is_partitioned_by() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = GoldSpec { partition_by: vec!["region".into()], ..by_region() };
    refreshed(&world, &spec).await?;
    let come = frame!("order_id: long | region: string | amount: long\n 5 | west | 7\n 6 | null | 1\n 7 | north | 1");
    world.change("silver.orders", &BTreeSet::from([2]), &come, false).await?;
    let report = refreshed(&world, &spec).await?;
    assert_eq!((report.rows_inserted, report.rows_updated, report.rows_deleted), (1, 2, 1), "{}", report.reason);
    let expected = frame!("region: string | revenue: long | orders: long\n north | 15 | 3\n null | 1 | 2\n west | 7 | 1");
    assert_frames_eq!(world.rows("gold.revenue").await?, expected);
    Ok(())
}

#[tokio::test]
async fn a_view_of_one_partition_of_its_input_takes_up_no_row_of_another_that_has_the_same_name() -> Result<()> {
    let world = World::new();
    let mut in_partitions = TableSpec::new(name("silver.orders"), Column::all_from_arrow(&orders().schema())?);
    in_partitions.partition_by = vec!["region".to_owned()];
    world.lake.create(&in_partitions).await?;
    let begun = frame!("order_id: long | region: string | amount: long\n 1 | north | 10\n 1 | south | 99");
    world.change("silver.orders", &BTreeSet::new(), &begun, false).await?;
    let spec = GoldSpec::new(name("gold.north"), "SELECT order_id, amount FROM silver.orders WHERE region = 'north'");
    refreshed(&world, &spec).await?;
    let come = frame!("order_id: long | region: string | amount: long\n 1 | north | 5");
    world.change("silver.orders", &BTreeSet::new(), &come, false).await?;
    assert_eq!(refreshed(&world, &spec).await?.mode, "incremental");
    assert_frames_eq!(world.rows("gold.north").await?, frame!("order_id: long | amount: long\n 1 | 10\n 1 | 5"));
    Ok(())
}

#[tokio::test]
async fn changes_that_do_not_fit_into_memory_are_read_in_full() -> Result<()> {
    let world = World::with(crate::world::memory(), 8 << 20);
    world.append("silver.orders", &orders()).await?;
    refreshed(&world, &by_region()).await?;
    let rows: Vec<Vec<tributary_testkit::Value>> =
        (0..60_000).map(|id| vec![Value::Int(id), Value::text("north"), Value::Int(1)]).collect();
    let many = Frame::of(&Column::all_from_arrow(&orders().schema())?, &rows);
    world.change("silver.orders", &BTreeSet::new(), &many, false).await?;
    let report = refreshed(&world, &by_region()).await?;
    assert!(report.reason.ends_with("what changed does not fit into the memory that may be used"), "{}", report.reason);
    Ok(())
}

/// What a refresh would do and read is told before, and what it did and read after it.
#[tokio::test]
async fn a_refresh_is_explained_before_and_reported_after_it() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let explained = || async { anyhow::Ok(explain(&world.lake, &by_region(), &Options::default()).await?.expect("its inputs are there")) };
    let first = explained().await?;
    assert_eq!((first.mode, first.in_full_for.as_deref()), (RefreshMode::Full, Some("first refresh")));
    let report = refreshed(&world, &by_region()).await?;
    assert_eq!((report.inputs[0].rows_read, report.inputs[0].changes_read), (4, 0));
    assert_eq!(explained().await?.mode, RefreshMode::Nothing);

    let come = frame!("order_id: long | region: string | amount: long\n 5 | west | 7");
    world.change("silver.orders", &BTreeSet::from([2]), &come, false).await?;
    let next = explained().await?;
    assert_eq!((next.mode, next.in_full_for, next.rows), (RefreshMode::Incremental, None, Some(3)));
    let cost = &next.inputs[0];
    assert_eq!((cost.version_from, cost.version_to, cost.rows), (Some(1), 2, 4));
    assert!(cost.changes_bytes > 0 && cost.bytes > 0 && cost.changes_rows > 0, "{cost:?}");
    let report = refreshed(&world, &by_region()).await?;
    let read = &report.inputs[0];
    assert_eq!((read.version_from, read.version_to, read.changes_read), (Some(1), 2, 2));
    assert_eq!(read.changes_estimated, cost.changes_rows);
    let means = "signed deltas, and changed groups where rows go, for `sum(orders.amount)` may be null then";
    assert_eq!((report.means.as_str(), next.means.as_deref()), (means, Some(means)), "{read:?}");
    assert_eq!(read.rows_read, 0, "the group that lost its row says that no row is left");

    let other = GoldSpec { query: "SELECT region, count(*) AS orders FROM silver.orders GROUP BY region".into(), ..by_region() };
    let refused = explain(&world.lake, &other.clone().with_refresh(Refresh::Incremental), &Options::default()).await?.expect("inputs");
    assert_eq!((refused.mode, refused.in_full_for.as_deref()), (RefreshMode::Refused, Some("the definition changed")));
    Ok(())
}

/// An audit passes what is right and names what is not.
#[tokio::test]
async fn an_audit_finds_rows_that_somebody_else_changed_and_nothing_else() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let audited = async || audit(&world.lake, &by_region(), &Options::default(), 100).await;
    assert_eq!(audited().await?, None, "it was not made yet");
    refreshed(&world, &by_region()).await?;
    let come = frame!("order_id: long | region: string | amount: long\n 5 | west | 7");
    world.change("silver.orders", &BTreeSet::from([2]), &come, false).await?;
    // at the versions that it records, though its input has moved
    let before = audited().await?.expect("it is made");
    assert_eq!((before.groups, before.rows, before.named_by.as_slice()), (3, 3, ["region".to_owned()].as_slice()));
    refreshed(&world, &by_region()).await?;
    assert_eq!(audited().await?.expect("it is made").groups, 3);
    assert_eq!(audit(&world.lake, &by_region(), &Options::default(), 2).await?.expect("it is made").groups, 2);

    let forged = frame!("region: string | revenue: long | orders: long\n east | 1 | 1");
    world.change("gold.revenue", &BTreeSet::new(), &forged, false).await?;
    let error = audited().await.unwrap_err();
    assert_eq!(error.to_string(), "`gold.revenue` differs from its query: 1 rows of 4 groups that were computed again");
    world.change("gold.revenue", &BTreeSet::from([0]), &frame!("region: string | revenue: long | orders: long"), false).await?;
    assert!(audited().await.unwrap_err().to_string().contains("2 rows of 4 groups"));
    Ok(())
}

/// Takes every file away below a folder of the store that `gone` says.
async fn take_away(store: &Arc<dyn ObjectStore>, folder: &str, gone: impl Fn(&str) -> bool) -> Result<usize> {
    let files: Vec<_> = store.list(Some(&folder.into())).try_collect().await?;
    let mut taken = 0;
    for file in files.iter().filter(|file| gone(file.location.filename().unwrap_or_default())) {
        store.delete(&file.location).await?;
        taken += 1;
    }
    Ok(taken)
}

/// What the log or the files of an input no longer tell is read from the input itself, and said.
#[tokio::test]
async fn an_input_whose_history_or_removed_files_are_gone_is_read_in_full() -> Result<()> {
    let store = crate::world::memory();
    let world = World::over(Arc::clone(&store));
    world.append("silver.orders", &orders()).await?;
    refreshed(&world, &by_region()).await?;
    let old: Vec<String> = world.table("silver.orders").await?.files().await?.into_iter().map(|file| file.path).collect();
    world.replace("silver.orders", &frame!("order_id: long | region: string | amount: long\n 9 | east | 3")).await?;
    assert_eq!(take_away(&store, "lake/main/silver/orders", |name| old.iter().any(|path| path == name)).await?, 1);
    let world = World::over(Arc::clone(&store));
    let report = refreshed(&world, &by_region()).await?;
    assert!(report.reason.contains("in full, for "), "{}", report.reason);
    let expected = frame!("region: string | revenue: long | orders: long\n east | 3 | 1");
    assert_frames_eq!(world.rows("gold.revenue").await?, expected);

    for id in 10..24 {
        let one = Frame::of(&Column::all_from_arrow(&orders().schema())?, &[vec![Value::Int(id), Value::text("west"), Value::Int(1)]]);
        world.append("silver.orders", &one).await?;
    }
    let is_old = |name: &str| name.ends_with(".json") && name.split('.').next().and_then(|n| n.parse().ok()).is_some_and(|n: u64| n < 8);
    assert!(take_away(&store, "lake/main/silver/orders/_delta_log", is_old).await? > 5);
    let world = World::over(Arc::clone(&store));
    let told = explain(&world.lake, &by_region(), &Options::default()).await?.expect("its inputs are there");
    assert_eq!(told.mode, RefreshMode::Full, "{told:?}");
    let report = refreshed(&world, &by_region()).await?;
    assert!(report.reason.contains("in full, for the history of `silver.orders` no longer reaches back to version"), "{}", report.reason);
    let expected = frame!("region: string | revenue: long | orders: long\n east | 3 | 1\n west | 14 | 14");
    assert_frames_eq!(world.rows("gold.revenue").await?, expected);
    Ok(())
}
