//! Views whose totals follow by signed deltas: what they tell, what they read, what they leave to changed groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use tributary_gold_agg::{Options, explain, run};
use tributary_lake::object_store::{ObjectStoreExt, path::Path};
use tributary_specs::{Column, DatasetReport, GoldSpec, TableSpec};
use tributary_testkit::{Frame, assert_frames_eq, frame};

use crate::world::{World, by_region, memory, name, no_orders, orders};

async fn refreshed(world: &World, spec: &GoldSpec) -> Result<DatasetReport> {
    Ok(run(&world.lake, spec, &Options::default()).await?)
}

async fn explained(world: &World, spec: &GoldSpec) -> Result<String> {
    let explained = explain(&world.lake, spec, &Options::default()).await?.context("its inputs are there")?;
    explained.means.context("it follows")
}

/// G2: what is counted is told by deltas, and no row of an input is read that did not change.
#[tokio::test]
async fn totals_that_are_counted_follow_without_a_row_of_their_input() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    world.append("silver.regions", &frame!("name: string | country: string\n north | n\n south | s")).await?;
    let query = "SELECT country, count(*) AS orders, count(amount) AS known, sum(amount) AS revenue, avg(amount) AS mean, max(order_id) AS last, \
                 round(sum(amount) / 2, 1) AS half FROM silver.orders LEFT JOIN silver.regions ON region = name GROUP BY country";
    let spec = GoldSpec::new(name("gold.view"), query);
    refreshed(&world, &spec).await?;
    // one goes, one comes in its group; a group is new; null is a group
    let come = frame!("order_id: long | region: string | amount: long\n 9 | north | null\n 8 | null | 5");
    world.change("silver.orders", &BTreeSet::from([0, 2]), &come, false).await?;
    let report = refreshed(&world, &spec).await?;
    assert_eq!((report.mode.as_str(), report.means.as_str()), ("incremental", "signed deltas"));
    assert_eq!(report.inputs[0].rows_read, 0, "{:?}", report.inputs);
    assert_frames_eq!(
        world.rows("gold.view").await?,
        frame!(
            "country: string | orders: long | known: long | revenue: long | mean: double | last: long | half: double
             n               | 2            | 1           | 4             | 4.0          | 9          | 2.0
             null            | 2            | 1           | 5             | 5.0          | 8          | 2.5"
        )
    );
    // what goes was the greatest: its group is computed again
    world.change("silver.orders", &BTreeSet::from([1]), &no_orders(), false).await?;
    let again = refreshed(&world, &spec).await?;
    assert_eq!(again.means, "signed deltas");
    let moved = frame!("name: string | country: string\n west | w");
    world.change("silver.regions", &BTreeSet::new(), &moved, false).await?;
    let why = refreshed(&world, &spec).await?.means;
    assert!(why.starts_with("changed groups, for what moved decides which rows of the other side of an outer join"), "{why}");
    Ok(())
}

#[tokio::test]
async fn what_a_view_lacks_for_deltas_is_told() -> Result<()> {
    for (query, why) in [
        (
            "SELECT region, avg(amount) AS mean FROM silver.orders GROUP BY region",
            "needs sum(orders.amount) and count(orders.amount) as columns of it",
        ),
        ("SELECT region, sum(amount) + 1 AS more FROM silver.orders GROUP BY region", "is not a column of it by itself"),
        ("SELECT region, sum(DISTINCT amount) AS n FROM silver.orders GROUP BY region", "needs to know which values stay"),
        (
            "SELECT region, count(DISTINCT CAST(amount AS DOUBLE)) AS n FROM silver.orders GROUP BY region",
            "counts values of a type that rows are not looked up by",
        ),
        ("SELECT region, sum(CAST(amount AS DOUBLE)) AS n FROM silver.orders GROUP BY region", "adds numbers that are rounded"),
        ("SELECT region, order_id FROM silver.orders", "a row of it is not one group"),
    ] {
        let world = World::new();
        world.append("silver.orders", &orders()).await?;
        let spec = GoldSpec::new(name("gold.view"), query);
        refreshed(&world, &spec).await?;
        world.change("silver.orders", &BTreeSet::from([0]), &no_orders(), false).await?;
        let explained = explain(&world.lake, &spec, &Options::default()).await?.expect("its inputs are there");
        let means = explained.means.unwrap_or_default();
        assert!(means.starts_with("changed groups, for ") && means.contains(why), "{means}");
        let report = refreshed(&world, &spec).await?;
        assert_eq!(report.means, means);
        let read = &report.inputs[0];
        assert_eq!(read.rows_read, 1, "the row that stays beside the one that went");
        assert!(read.bytes_read > 0, "what is looked up is read: {read:?}");
    }
    Ok(())
}

/// A declaration of its source that is wrong would stay in the sums.
#[tokio::test]
async fn a_table_whose_feed_repeats_what_its_source_says_is_followed_by_changed_groups() -> Result<()> {
    let world = World::new();
    let mut stamped = TableSpec::new(name("silver.orders"), Column::all_from_arrow(&orders().schema())?);
    stamped.properties.insert("tributary.sequence.unique".to_owned(), "true".to_owned());
    world.lake.create(&stamped).await?;
    world.change("silver.orders", &BTreeSet::new(), &orders(), false).await?;
    refreshed(&world, &by_region()).await?;
    world.change("silver.orders", &BTreeSet::new(), &orders(), false).await?;
    let means = refreshed(&world, &by_region()).await?.means;
    assert!(means.contains("(tributary.sequence.unique)"), "{means}");
    Ok(())
}

const OPEN: &str = "signed deltas, and changed groups where rows go, for `sum(orders.amount)` may be null then";

/// G2: statistics that count no null stand for a count of what is summed, until a null comes; a condition does so always.
#[tokio::test]
async fn a_sum_that_is_not_counted_follows_while_no_file_of_its_input_has_a_null() -> Result<()> {
    let world = World::new();
    world
        .append("silver.orders", &frame!("order_id: long | region: string | amount: long\n 1 | north | 10\n 2 | north | 4\n 3 | south | 2"))
        .await?;
    let held = GoldSpec::new(
        name("gold.held"),
        "SELECT region, sum(amount) AS revenue, count(*) AS orders FROM (SELECT * FROM silver.orders WHERE amount IS NOT NULL) GROUP BY region",
    );
    refreshed(&world, &by_region()).await?;
    refreshed(&world, &held).await?;
    let steps: [(&[usize], Frame, &str, bool); 4] = [
        (&[0], no_orders(), "signed deltas", false),
        // a null comes: from now on a sum may become null where rows go, and does
        (&[], frame!("order_id: long | region: string | amount: long\n 4 | north | null"), OPEN, false),
        (&[0], no_orders(), OPEN, true),
        // it goes; the count of its file is of rows that are marked, too
        (&[0], frame!("order_id: long | region: string | amount: long\n 5 | south | 1"), OPEN, false),
    ];
    for (at, (gone, come, means, read)) in steps.into_iter().enumerate() {
        world.change("silver.orders", &gone.iter().copied().collect(), &come, false).await?;
        assert_eq!(explained(&world, &by_region()).await?, means, "{at}");
        let report = refreshed(&world, &by_region()).await?;
        assert_eq!((report.means.as_str(), report.inputs[0].rows_read > 0), (means, read), "{at}");
        assert_eq!(refreshed(&world, &held).await?.means, "signed deltas", "{at}");
        if at == 2 {
            let expected = frame!("region: string | revenue: long | orders: long\n south | 2 | 1\n north | null | 1");
            assert_frames_eq!(world.rows("gold.revenue").await?, expected);
            assert_frames_eq!(world.rows("gold.held").await?, frame!("region: string | revenue: long | orders: long\n south | 2 | 1"));
        }
    }
    for view in ["gold.revenue", "gold.held"] {
        assert_frames_eq!(world.rows(view).await?, frame!("region: string | revenue: long | orders: long\n south | 3 | 2"));
    }
    Ok(())
}

/// Nulls of an outer join are in no file.
#[tokio::test]
async fn a_sum_over_what_an_outer_join_left_out_is_not_told_by_statistics() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &frame!("order_id: long | region: string | amount: long\n 1 | north | 10\n 2 | west | 4")).await?;
    world.append("silver.rates", &frame!("name: string | rate: long\n north | 3")).await?;
    let query = "SELECT amount > 0 AS sold, sum(rate) AS rates, count(*) AS orders FROM silver.orders LEFT JOIN silver.rates ON region = name \
                 GROUP BY amount > 0";
    let spec = GoldSpec::new(name("gold.view"), query);
    refreshed(&world, &spec).await?;
    world.change("silver.orders", &BTreeSet::from([0]), &no_orders(), false).await?;
    let means = refreshed(&world, &spec).await?.means;
    assert!(means.contains("changed groups where rows go, for `sum(rates.rate)` may be null then"), "{means}");
    assert_frames_eq!(world.rows("gold.view").await?, frame!("sold: boolean | rates: long | orders: long\n true | null | 1"));
    Ok(())
}

/// G2: distinct counts look up the values whose rows came or went, and no other row.
#[tokio::test]
async fn a_distinct_count_looks_up_the_values_that_came_or_went() -> Result<()> {
    let world = World::new();
    let begun = frame!(
        "order_id: long | region: string | amount: long
         1              | north          | 10
         2              | north          | 10
         3              | north          | 4
         4              | south          | 10
         5              | south          | null
         6              | null           | 7
         7              | west           | 1"
    );
    world.append("silver.orders", &begun).await?;
    let by_region = "SELECT region, count(DISTINCT amount) AS kinds, count(DISTINCT amount) FILTER (WHERE order_id > 2) AS late, \
                     count(*) AS orders FROM silver.orders GROUP BY region";
    let by_half =
        "SELECT order_id % 2 AS half, count(DISTINCT amount) AS kinds, count(*) AS orders FROM silver.orders GROUP BY order_id % 2";
    let of_all = "SELECT count(DISTINCT region) AS regions, count(DISTINCT amount) AS kinds FROM silver.orders";
    let specs = [("regions", by_region), ("halves", by_half), ("all", of_all)]
        .map(|(table, query)| GoldSpec::new(name(&format!("gold.{table}")), query));
    for spec in &specs {
        refreshed(&world, spec).await?;
    }
    // north keeps one 10 and loses its 4; null gains a value that it has; west goes; east comes
    let come = frame!("order_id: long | region: string | amount: long\n 8 | null | 7\n 9 | east | 2\n 10 | south | 3");
    world.change("silver.orders", &BTreeSet::from([0, 2, 6]), &come, false).await?;
    let mut read = Vec::new();
    for spec in &specs {
        assert_eq!(explained(&world, spec).await?, "signed deltas");
        let report = refreshed(&world, spec).await?;
        assert_eq!((report.mode.as_str(), report.means.as_str()), ("incremental", "signed deltas"), "{}", spec.query);
        read.push(report.inputs[0].rows_read);
    }
    // (north, 10), (null, 7), (east, 2), (south, 3), once for each of both counts
    assert!(read[0] <= 10, "{read:?}");
    let expected = frame!(
        "region: string | kinds: long | late: long | orders: long
         north          | 1           | 0          | 1
         south          | 2           | 2          | 3
         null           | 1           | 1          | 2
         east           | 1           | 1          | 1"
    );
    assert_frames_eq!(world.rows("gold.regions").await?, expected);
    let expected = frame!("half: long | kinds: long | orders: long\n 0 | 3 | 5\n 1 | 1 | 2");
    assert_frames_eq!(world.rows("gold.halves").await?, expected);
    assert_frames_eq!(world.rows("gold.all").await?, frame!("regions: long | kinds: long\n 3 | 4"));
    Ok(())
}

/// Readers that go by the groups lose no delete: an update is of one group.
#[tokio::test]
async fn a_group_that_went_and_one_that_came_are_no_update_in_the_change_feed() -> Result<()> {
    let world = World::new();
    let columns = "id: long | a: long | b: long | c: long | d: long | x: long";
    let rows = |rows: &str| tributary_testkit::Frame::parse(&format!("{columns}\n{rows}"));
    world.append("silver.t", &rows("1 | 1 | 1 | 1 | 0 | 5\n 2 | 2 | 2 | 2 | 0 | 5\n 3 | 3 | 3 | 3 | 0 | 5")).await?;
    let query = "SELECT a, b, c, d, count(x) AS known, sum(x) AS total, count(*) AS n FROM silver.t GROUP BY a, b, c, d";
    let spec = GoldSpec::new(name("gold.view"), query);
    refreshed(&world, &spec).await?;
    let come = rows("4 | 1 | 1 | 1 | 1 | 5\n 5 | 2 | 2 | 2 | 0 | 1\n 6 | 3 | 3 | 3 | 0 | 1");
    world.change("silver.t", &BTreeSet::from([0]), &come, false).await?;
    let report = refreshed(&world, &spec).await?;
    assert_eq!(report.means, "signed deltas");
    assert_eq!((report.rows_inserted, report.rows_updated, report.rows_deleted), (1, 2, 1));
    Ok(())
}

/// What was written under a declaration that is gone since is no more certain than it was.
#[tokio::test]
async fn a_feed_that_repeated_what_its_source_says_is_not_taken_for_the_rows_once_it_says_so_no_more() -> Result<()> {
    let store = memory();
    let world = World::over(Arc::clone(&store));
    let mut stamped = TableSpec::new(name("silver.orders"), Column::all_from_arrow(&orders().schema())?);
    stamped.properties.insert("tributary.sequence.unique".to_owned(), "true".to_owned());
    world.lake.create(&stamped).await?;
    world.change("silver.orders", &BTreeSet::new(), &orders(), false).await?;
    refreshed(&world, &by_region()).await?;
    world.change("silver.orders", &BTreeSet::new(), &orders(), false).await?;
    let log = |version: u64| Path::from(format!("lake/main/silver/orders/_delta_log/{version:020}.json"));
    let made = store.get(&log(0)).await?.bytes().await?;
    let metadata = std::str::from_utf8(&made)?.lines().find(|line| line.contains("\"metaData\"")).context("it is made")?;
    let mut metadata: serde_json::Value = serde_json::from_str(metadata)?;
    metadata["metaData"]["configuration"].as_object_mut().context("properties")?.remove("tributary.sequence.unique");
    let last = store.get(&log(world.version("silver.orders").await?)).await?.bytes().await?;
    let info = std::str::from_utf8(&last)?.lines().find(|line| line.contains("\"commitInfo\"")).context("it says when")?;
    let next = world.version("silver.orders").await? + 1;
    store.put(&log(next), format!("{info}\n{metadata}\n").into()).await?;
    let world = World::over(store);
    assert_eq!(world.version("silver.orders").await?, next);
    let report = refreshed(&world, &by_region()).await?;
    assert!(report.means.contains("(tributary.sequence.unique)"), "{}", report.means);
    Ok(())
}

/// G2: a change of columns that a view does not name is none to it.
#[tokio::test]
async fn rows_that_differ_in_columns_that_a_view_does_not_name_change_nothing() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let counted =
        GoldSpec::new(name("gold.counted"), "SELECT region, count(*) AS orders, max(order_id) AS last FROM silver.orders GROUP BY region");
    let star = GoldSpec::new(name("gold.star"), "SELECT * FROM silver.orders UNION ALL SELECT * FROM silver.orders WHERE amount > 5");
    refreshed(&world, &counted).await?;
    refreshed(&world, &star).await?;
    // the greatest of a group, with another amount
    let come = frame!("order_id: long | region: string | amount: long\n 2 | north | 9");
    world.change("silver.orders", &BTreeSet::from([1]), &come, false).await?;
    let report = refreshed(&world, &counted).await?;
    assert_eq!((report.means.as_str(), report.inputs[0].rows_read, report.rows_updated), ("signed deltas", 0, 0));
    assert_eq!(report.inputs[0].changes_read, 2);
    refreshed(&world, &star).await?;
    let expected = frame!(
        "order_id: long | region: string | amount: long
         1              | north          | 10
         1              | north          | 10
         2              | north          | 9
         2              | north          | 9
         3              | south          | 2
         4              | null           | null"
    );
    assert_frames_eq!(world.rows("gold.star").await?, expected);
    Ok(())
}
