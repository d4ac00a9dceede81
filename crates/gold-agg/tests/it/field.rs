//! Problems that views of other systems have had.

use std::sync::Arc;

use anyhow::Result;
use futures::TryStreamExt;
use tributary_fault::{ExitCode, Fault};
use tributary_gold_agg::{Error, Options, audit};
use tributary_lake::object_store::{ObjectStore, ObjectStoreExt};
use tributary_specs::{Column, DataType, GoldSpec, Status, TableSpec};
use tributary_testkit::{Frame, FrameDiff, assert_frames_eq, frame};

use crate::world::{World, name};

#[tokio::test]
async fn least_and_greatest_follow_deletes_and_a_group_without_rows_is_gone() -> Result<()> {
    let world = World::new();
    let spec = GoldSpec::new(name("gold.g"), "SELECT k, min(v) AS mn, max(v) AS mx, count(*) AS n FROM silver.t GROUP BY k");
    for (rows, expected) in [
        ("k: long | v: long\n 1 | 3\n 1 | 9\n 1 | 9\n 2 | 4", "k: long | mn: long | mx: long | n: long\n 1 | 3 | 9 | 3\n 2 | 4 | 4 | 1"),
        ("k: long | v: long\n 1 | 3\n 1 | 9\n 2 | 4", "k: long | mn: long | mx: long | n: long\n 1 | 3 | 9 | 2\n 2 | 4 | 4 | 1"),
        ("k: long | v: long\n 1 | 3\n 2 | 4", "k: long | mn: long | mx: long | n: long\n 1 | 3 | 3 | 1\n 2 | 4 | 4 | 1"),
        ("k: long | v: long\n 1 | 3", "k: long | mn: long | mx: long | n: long\n 1 | 3 | 3 | 1"),
    ] {
        world.replace("silver.t", &Frame::parse(rows)).await?;
        world.run(&spec).await?;
        assert_frames_eq!(world.rows("gold.g").await?, Frame::parse(expected));
    }
    Ok(())
}

#[tokio::test]
async fn both_sides_of_a_join_may_change_in_one_run() -> Result<()> {
    let world = World::new();
    world.append("silver.cust", &frame!("id: long | region: string\n 1 | N\n 2 | S")).await?;
    world.append("silver.orders", &frame!("id: long | cust: long | amt: long\n 10 | 1 | 5\n 11 | 2 | 7")).await?;
    let query =
        "SELECT c.region, sum(o.amt) AS s, count(*) AS n FROM silver.orders o JOIN silver.cust c ON o.cust = c.id GROUP BY c.region";
    let spec = GoldSpec::new(name("gold.g"), query);
    world.run(&spec).await?;
    world.replace("silver.cust", &frame!("id: long | region: string\n 1 | S\n 2 | W")).await?;
    world.replace("silver.orders", &frame!("id: long | cust: long | amt: long\n 10 | 1 | 6\n 12 | 2 | 4")).await?;
    let report = world.run(&spec).await?;
    assert_eq!(report.reason, "silver.orders moved from version 1 to 2, silver.cust moved from version 1 to 2");
    assert_frames_eq!(world.rows("gold.g").await?, frame!("region: string | s: long | n: long\n S | 6 | 1\n W | 4 | 1"));
    Ok(())
}

#[tokio::test]
async fn the_null_group_is_one_row_and_a_sum_of_nulls_is_null() -> Result<()> {
    let world = World::new();
    let spec = GoldSpec::new(name("gold.g"), "SELECT region, sum(amt) AS s, avg(amt) AS a, count(amt) AS n FROM silver.t GROUP BY region");
    world.append("silver.t", &frame!("region: string | amt: long\n null | 4\n N | null")).await?;
    world.run(&spec).await?;
    assert_frames_eq!(
        world.rows("gold.g").await?,
        frame!("region: string | s: long | a: double | n: long\n null | 4 | 4.0 | 1\n N | null | null | 0")
    );
    world.append("silver.t", &frame!("region: string | amt: long\n null | 6\n N | 2")).await?;
    world.run(&spec).await?;
    assert_frames_eq!(
        world.rows("gold.g").await?,
        frame!("region: string | s: long | a: double | n: long\n null | 10 | 5.0 | 2\n N | 2 | 2.0 | 1")
    );
    Ok(())
}

#[tokio::test]
async fn averages_and_deviations_do_not_depend_on_how_rows_came() -> Result<()> {
    let world = World::new();
    let spec = GoldSpec::new(name("gold.g"), "SELECT k, avg(v) AS a, round(avg(v), 2) AS r, stddev_pop(v) AS sd FROM silver.t GROUP BY k");
    let rows = ["k: string | v: double\n A | 1\n A | 1\n A | 1", "k: string | v: double\n A | 5", "k: string | v: double\n A | 2.5"];
    let expected = ["A | 1.0 | 1.0 | 0.0", "A | 2.0 | 2.0 | 1.7320508", "A | 2.1 | 2.1 | 1.5620499"];
    for (rows, expected) in rows.into_iter().zip(expected) {
        world.append("silver.t", &Frame::parse(rows)).await?;
        world.run(&spec).await?;
        let expected = Frame::parse(&format!("k: string | a: double | r: double | sd: double\n {expected}"));
        let difference = FrameDiff::between(world.rows("gold.g").await?, expected);
        difference.tolerating("a", 1e-6).tolerating("r", 1e-6).tolerating("sd", 1e-6).assert();
    }
    Ok(())
}

#[tokio::test]
async fn rows_that_no_view_made_are_not_replaced() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &frame!("id: long\n 1")).await?;
    world.append("gold.theirs", &frame!("id: long\n 7")).await?;
    let error = world.run(&GoldSpec::new(name("gold.theirs"), "SELECT id FROM silver.t")).await.unwrap_err();
    assert!(matches!(error, Error::NotAView { .. }), "{error}");
    assert_frames_eq!(world.rows("gold.theirs").await?, frame!("id: long\n 7"));

    world.lake.create(&TableSpec::new(name("gold.ours"), vec![Column::new("id", DataType::Long)])).await?;
    let report = world.run(&GoldSpec::new(name("gold.ours"), "SELECT id FROM silver.t")).await?;
    assert_eq!((report.status, report.version_from), (Status::Committed, Some(0)));
    Ok(())
}

#[tokio::test]
async fn a_null_in_a_column_declared_not_null_stops_the_view_and_asks_for_a_person() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &frame!("id: long\n 1\n null")).await?;
    let spec = GoldSpec::new(name("gold.g"), "SELECT id FROM silver.t").with_schema([Column::new("id", DataType::Long).not_null()]);
    let error = world.run(&spec).await.unwrap_err();
    assert_eq!(ExitCode::of(error.class()), ExitCode::BadInput, "{error:?}");
    assert_eq!(world.rows("gold.g").await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_sum_that_grows_too_large_stops_the_view_and_names_the_column() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &frame!("region: string | amount: long\n N | 9223372036854775807\n N | 1\n S | 2")).await?;
    for query in ["SELECT region, sum(amount) AS total FROM silver.t GROUP BY region", "SELECT sum(amount) AS total FROM silver.t"] {
        let error = world.run(&GoldSpec::new(name("gold.g"), query)).await.unwrap_err();
        assert_eq!(ExitCode::of(error.class()), ExitCode::BadInput, "{error:?}");
        let said = error.to_string();
        assert!(said.contains("amount") && said.contains("too large") && !said.contains("922"), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn an_input_made_again_is_read_anew_with_fewer_as_many_and_more_versions() -> Result<()> {
    for versions in 1..=3 {
        let (store, spec) = viewed_twice().await?;
        remove(&store, "lake/main/silver").await?;
        let world = World::over(Arc::clone(&store));
        for _ in 0..versions {
            world.append("silver.t", &frame!("id: long\n 9")).await?;
        }
        assert_eq!(audit(&world.lake, &spec, &Options::default(), 10).await?, None, "the versions that it records were of another table");
        let report = world.run(&spec).await?;
        assert_eq!((report.reason.as_str(), report.rows_out), ("silver.t was made again", versions), "{versions} versions");
        assert_eq!(world.rows("gold.g").await?.len() as u64, versions);
        assert_eq!(world.run(&spec).await?.status, Status::NothingNew);
    }
    Ok(())
}

#[tokio::test]
async fn an_input_that_is_an_older_copy_of_itself_stops_the_view() -> Result<()> {
    let (store, spec) = viewed_twice().await?;
    remove(&store, "lake/main/silver/t/_delta_log/00000000000000000002.json").await?;
    let world = World::over(store);
    let error = world.run(&spec).await.unwrap_err();
    assert!(matches!(error, Error::SourceWentBack { position: 2, latest: 1, .. }), "{error}");
    assert_eq!(world.rows("gold.g").await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_view_that_does_not_name_its_input_yet_does_so_with_its_next_commit() -> Result<()> {
    let (store, spec) = viewed_twice().await?;
    let world = World::over(Arc::clone(&store));
    let id = "tributary:source-id:silver.t";
    assert!(world.table("gold.g").await?.progress(id).await?.is_some());
    forget(&store, "lake/main/gold/g/_delta_log", id).await?;
    let world = World::over(Arc::clone(&store));
    assert_eq!(world.table("gold.g").await?.progress(id).await?, None);
    assert_eq!(world.run(&spec).await?.status, Status::NothingNew);
    world.append("silver.t", &frame!("id: long\n 3")).await?;
    world.run(&spec).await?;
    assert_eq!(world.table("gold.g").await?.progress(id).await?, Some(world.table("silver.t").await?.identity()));
    Ok(())
}

/// A view over an input at version 2, with a row each version.
async fn viewed_twice() -> Result<(Arc<dyn ObjectStore>, GoldSpec)> {
    let store = crate::world::memory();
    let world = World::over(Arc::clone(&store));
    world.append("silver.t", &frame!("id: long\n 1")).await?;
    world.append("silver.t", &frame!("id: long\n 2")).await?;
    let spec = GoldSpec::new(name("gold.g"), "SELECT id FROM silver.t");
    world.run(&spec).await?;
    Ok((store, spec))
}

async fn remove(store: &Arc<dyn ObjectStore>, path: &str) -> Result<()> {
    let all: Vec<_> = store.list(None).try_collect().await?;
    for object in all.iter().filter(|object| object.location.as_ref().starts_with(path)) {
        store.delete(&object.location).await?;
    }
    Ok(())
}

/// Takes a position out of a log, as a release that did not know it would have written it.
async fn forget(store: &Arc<dyn ObjectStore>, log: &str, app_id: &str) -> Result<()> {
    let all: Vec<_> = store.list(Some(&log.into())).try_collect().await?;
    for object in all {
        let text = String::from_utf8(store.get(&object.location).await?.bytes().await?.to_vec())?;
        let kept: String = text.lines().filter(|line| !line.contains(app_id)).map(|line| format!("{line}\n")).collect();
        store.put(&object.location, kept.into()).await?;
    }
    Ok(())
}
