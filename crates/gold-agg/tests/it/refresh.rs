//! When a view is refreshed and what is then in it.

use std::sync::Arc;

use anyhow::Result;
use tributary_gold_agg::{Build, Options, run};
use tributary_lake::arrow::datatypes::DataType as Arrow;
use tributary_lake::datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use tributary_lake::datafusion::prelude::{col, lit};
use tributary_specs::{Column, DataType, GoldSpec, Refresh, Status};
use tributary_testkit::{Frame, assert_frames_eq, frame};

use crate::world::{World, by_region, name, ten_o_clock, told};

fn orders() -> Frame {
    frame!(
        "order_id: long | region: string | amount: decimal(12,2) | day: date
         1              | north          | 10.50                 | 2026-01-30
         2              | north          | 4.50                  | 2026-01-31
         3              | south          | 2.00                  | 2026-01-31
         4              | null           | null                  | 2026-01-31"
    )
}

/// G3
#[tokio::test]
async fn a_view_is_made_once_and_left_alone_until_an_input_moves() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let first = world.run(&by_region()).await?;
    assert_eq!((first.status, first.reason.as_str(), first.rows_out), (Status::Committed, "first refresh", 3));
    assert_eq!((first.mode.as_str(), first.version_from, first.version_to), ("full", None, Some(1)));
    assert_eq!(first.positions["silver.orders"], 1);
    assert_frames_eq!(
        world.rows("gold.revenue").await?,
        frame!(
            "region: string | revenue: decimal(22,2) | orders: long
             north          | 15.00                  | 2
             south          | 2.00                   | 1
             null           | null                   | 1"
        )
    );

    let again = world.run(&by_region()).await?;
    assert_eq!((again.status, again.reason.as_str(), again.version_to), (Status::NothingNew, "no input moved", Some(1)));
    assert_eq!(world.version("gold.revenue").await?, 1);

    world
        .append(
            "silver.orders",
            &frame!("order_id: long | region: string | amount: decimal(12,2) | day: date\n 5 | west | 7.00 | 2026-02-01"),
        )
        .await?;
    let moved = world.run(&by_region()).await?;
    assert_eq!((moved.status, moved.reason.as_str()), (Status::Committed, "silver.orders moved from version 1 to 2"));
    assert_eq!((moved.mode.as_str(), moved.rows_inserted, moved.rows_deleted, moved.version_to), ("incremental", 1, 0, Some(2)));
    assert_eq!(world.table("gold.revenue").await?.progress("tributary:source:silver.orders").await?, Some(2));
    Ok(())
}

#[tokio::test]
async fn a_view_that_is_asked_for_in_full_lies_from_then_on_as_it_is_declared() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let laid = |partition_by: &[&str], cluster_by: &[&str]| {
        let of = |columns: &[&str]| columns.iter().map(|column| (*column).to_owned()).collect();
        GoldSpec { partition_by: of(partition_by), cluster_by: of(cluster_by), ..by_region() }
    };
    let lies = async || anyhow::Ok(world.table("gold.revenue").await?.lies());
    world.run(&by_region()).await?;
    let rows = world.rows("gold.revenue").await?;
    let mut before = lies().await?;
    for spec in [laid(&[], &["region"]), laid(&["region"], &[]), laid(&[], &["orders"]), by_region()] {
        assert_eq!(world.run(&spec).await?.status, Status::NothingNew);
        assert_eq!(lies().await?, before);
        let report = run(&world.lake, &spec, &Options { full_refresh: true, ..Options::default() }).await?;
        assert_eq!((report.status, report.rows_out, report.rows_deleted), (Status::Committed, 3, 3));
        before = lies().await?;
        assert_eq!((&before.partition_by, &before.cluster_by), (&spec.partition_by, &spec.cluster_by));
        assert_frames_eq!(world.rows("gold.revenue").await?, rows.clone());
        // and what comes then is laid so too
        assert_eq!(world.run(&spec).await?.status, Status::NothingNew);
    }
    Ok(())
}

#[tokio::test]
async fn commits_of_an_input_that_change_no_row_are_passed_over() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    world.append("silver.orders", &orders()).await?;
    world.run(&by_region()).await?;
    let version = world.optimize("silver.orders").await?;
    assert_eq!(version, 3);
    let report = world.run(&by_region()).await?;
    assert_eq!(report.status, Status::NothingNew);
    assert_eq!(report.positions["silver.orders"], 2);
    Ok(())
}

/// G4
#[tokio::test]
async fn a_refresh_is_one_commit_that_reader_of_the_change_feed_can_follow() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    world.run(&by_region()).await?;
    world
        .replace(
            "silver.orders",
            &frame!("order_id: long | region: string | amount: decimal(12,2) | day: date\n 9 | east | 1.00 | 2026-02-01"),
        )
        .await?;
    world.run(&by_region()).await?;
    let history = world.table("gold.revenue").await?.history(None).await?;
    let operations: Vec<_> = history.iter().rev().map(|entry| entry.operation.clone().unwrap_or_default()).collect();
    assert_eq!(operations.len(), 3, "{operations:?}");
    assert_eq!(operations[1..], ["WRITE", "MERGE"]);
    assert_eq!((history[0].files_added, history[0].files_removed), (1, 1));
    Ok(())
}

#[tokio::test]
async fn an_empty_result_is_a_refresh_too() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = GoldSpec::new(name("gold.none"), "SELECT order_id FROM silver.orders WHERE amount > 1000");
    assert_eq!(world.run(&spec).await?.status, Status::Committed);
    assert_eq!(world.rows("gold.none").await?.len(), 0);
    assert_eq!(world.run(&spec).await?.status, Status::NothingNew);
    Ok(())
}

#[tokio::test]
async fn a_changed_definition_refreshes_and_adds_columns_behind() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    world.run(&by_region()).await?;
    let spec = GoldSpec::new(
        name("gold.revenue"),
        "SELECT max(day) AS last_day, region, sum(amount) AS revenue FROM silver.orders GROUP BY region",
    );
    let report = world.run(&spec).await?;
    assert_eq!(report.reason, "the definition changed");
    assert_frames_eq!(
        world.rows("gold.revenue").await?,
        frame!(
            "region: string | revenue: decimal(22,2) | orders: long | last_day: date
             north          | 15.00                  | null         | 2026-01-31
             south          | 2.00                   | null         | 2026-01-31
             null           | null                   | null         | 2026-01-31"
        )
    );
    assert_eq!(world.run(&spec).await?.status, Status::NothingNew);
    Ok(())
}

#[tokio::test]
async fn a_view_that_asks_for_full_refresh_needs_no_reason_for_it() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let report = run(&world.lake, &by_region().with_refresh(Refresh::Full), &Options::default()).await?;
    assert_eq!(report.reason, "first refresh");
    Ok(())
}

#[tokio::test]
async fn inputs_are_read_at_the_versions_that_are_recorded() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let old = world.table("silver.orders").await?;
    world.run(&by_region()).await?;
    let view = world.table("gold.revenue").await?;
    let recorded = view.progress("tributary:source:silver.orders").await?;
    assert_eq!(recorded, Some(i64::try_from(old.version())?));
    Ok(())
}

#[tokio::test]
async fn a_query_that_asks_for_the_time_is_refreshed_at_every_run_and_time_is_the_clocks() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = GoldSpec::new(
        name("gold.today"),
        "SELECT order_id, current_date() AS today, now() AS at FROM silver.orders WHERE day < current_date() LIMIT 1",
    );
    world.run(&spec).await?;
    let expected = frame!("today: date | at: timestamp\n 2026-02-01 | 2026-02-01T10:00:00Z");
    assert_frames_eq!(world.rows("gold.today").await?.select(&["today", "at"]), expected);
    let report = world.run(&spec).await?;
    assert_eq!((report.status, report.reason.as_str()), (Status::Committed, "the query asks for the time"));
    let options = Options { as_of: Some(ten_o_clock() + chrono::TimeDelta::days(1)), ..Options::default() };
    run(&world.lake, &spec, &options).await?;
    let expected = frame!("today: date | at: timestamp\n 2026-02-02 | 2026-02-02T10:00:00Z");
    assert_frames_eq!(world.rows("gold.today").await?.select(&["today", "at"]), expected);
    Ok(())
}

#[tokio::test]
async fn functions_registered_in_rust_are_usable_in_the_query() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let length = create_udf(
        "letters",
        vec![Arrow::Utf8],
        Arrow::Int64,
        Volatility::Immutable,
        Arc::new(|arguments: &[ColumnarValue]| {
            let texts = ColumnarValue::values_to_arrays(arguments)?;
            let texts = tributary_lake::arrow::array::AsArray::as_string::<i32>(&texts[0]).clone();
            let lengths: tributary_lake::arrow::array::Int64Array = texts.iter().map(|text| text.map(|text| text.len() as i64)).collect();
            Ok(ColumnarValue::Array(Arc::new(lengths)))
        }),
    );
    let spec = GoldSpec::new(name("gold.letters"), "SELECT DISTINCT letters(region) AS n FROM silver.orders");
    let options = Options { functions: vec![Arc::new(length)], ..Options::default() };
    run(&world.lake, &spec, &options).await?;
    assert_frames_eq!(world.rows("gold.letters").await?, frame!("n: long\n 5\n null"));
    Ok(())
}

#[tokio::test]
async fn a_view_can_be_built_in_code() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let build: Build = Arc::new(|_context, mut inputs| {
        Box::pin(async move {
            let orders = inputs.remove("silver.orders").expect("the input");
            orders.filter(col("amount").gt(lit(4)))?.select(vec![col("order_id")])
        })
    });
    let spec = GoldSpec::new(name("gold.large"), "large, first edition").with_sources([name("silver.orders")]);
    let options = Options { build: Some(build), ..Options::default() };
    run(&world.lake, &spec, &options).await?;
    assert_frames_eq!(world.rows("gold.large").await?, frame!("order_id: long\n 1\n 2"));
    assert_eq!(run(&world.lake, &spec, &options).await?.status, Status::NothingNew);
    let spec = GoldSpec { query: "large, second edition".into(), ..spec };
    assert_eq!(told(run(&world.lake, &spec, &options).await?).reason, "the definition changed");
    Ok(())
}

#[tokio::test]
async fn code_that_uses_the_session_sees_the_inputs_by_name() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let build: Build = Arc::new(|context, _inputs| Box::pin(async move { context.sql("SELECT count(*) AS n FROM silver.orders").await }));
    let spec = GoldSpec::new(name("gold.n"), "n").with_sources([name("silver.orders")]);
    run(&world.lake, &spec, &Options { build: Some(build), ..Options::default() }).await?;
    assert_frames_eq!(world.rows("gold.n").await?, frame!("n: long\n 4"));
    Ok(())
}

#[tokio::test]
async fn result_types_become_the_nearest_delta_types_and_nothing_wraps() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = GoldSpec::new(
        name("gold.types"),
        "SELECT order_id, row_number() OVER (ORDER BY order_id) AS place, CAST(day AS TIMESTAMP) AS at, upper(region) AS region FROM silver.orders",
    );
    world.run(&spec).await?;
    let columns = world.table("gold.types").await?.columns().to_vec();
    let types: Vec<String> = columns.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
    assert_eq!(types, ["order_id long", "place integer", "at timestamp", "region string"]);
    assert_eq!(world.rows("gold.types").await?.len(), 4);
    Ok(())
}

/// G3
#[tokio::test]
async fn a_query_of_narrower_numbers_goes_on_writing_the_wider_ones_of_its_view_and_of_its_declaration() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let view = |query: &str| GoldSpec::new(name("gold.numbers"), query);
    world.run(&view("SELECT order_id, 1L AS one, coalesce(amount, 0L) AS paid, array(1L) AS list FROM silver.orders")).await?;
    let narrower = view("SELECT order_id, 2 AS one, coalesce(amount, 0) AS paid, array(1, 2) AS list FROM silver.orders");
    world.run(&narrower).await?;
    let types = |table: &tributary_lake::Table| -> Vec<String> {
        table.columns().iter().map(|column| format!("{} {}", column.name, column.data_type)).collect()
    };
    let kept = ["order_id long", "one long", "paid decimal(22,2)", "list array<long>"];
    assert_eq!(types(&world.table("gold.numbers").await?), kept);
    assert_eq!(world.rows("gold.numbers").await?.len(), 4);
    // a wider query than the view is refused as ever, and a full refresh takes what the query says
    let wider = world.run(&view("SELECT order_id, 2.5 AS one FROM silver.orders")).await.unwrap_err();
    assert!(wider.to_string().contains("column \"one\" is decimal(2,1) in the query and long in the table"), "{wider}");
    run(&world.lake, &narrower, &Options { full_refresh: true, ..Options::default() }).await?;
    let made = ["order_id long", "one integer", "paid decimal(12,2)", "list array<integer>"];
    assert_eq!(types(&world.table("gold.numbers").await?), made);

    let declared = GoldSpec::new(name("gold.declared"), "SELECT order_id, 1 AS one FROM silver.orders")
        .with_schema([Column::new("order_id", DataType::Long), Column::new("one", DataType::Long)]);
    world.run(&declared).await?;
    assert_eq!(types(&world.table("gold.declared").await?), ["order_id long", "one long"]);
    Ok(())
}

#[tokio::test]
async fn the_declared_schema_decides_nullability_comments_and_filled_in_columns() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let mut day = Column::new("day", DataType::Date).not_null();
    day.comment = Some("day of the order".into());
    let mut year = Column::new("source", DataType::String);
    year.default = Some("'shop'".into());
    let spec = GoldSpec::new(name("gold.days"), "SELECT day, count(*) AS orders FROM silver.orders GROUP BY day").with_schema([
        day.clone(),
        Column::new("orders", DataType::Long),
        year,
    ]);
    world.run(&spec).await?;
    assert_eq!(world.table("gold.days").await?.columns()[0], day);
    assert_frames_eq!(
        world.rows("gold.days").await?,
        frame!("day: date! | orders: long | source: string\n 2026-01-30 | 1 | shop\n 2026-01-31 | 3 | shop")
    );
    Ok(())
}

#[tokio::test]
async fn a_partitioned_view_has_its_rows_in_their_partitions() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &orders()).await?;
    let spec = GoldSpec { partition_by: vec!["region".into()], ..by_region() };
    world.run(&spec).await?;
    assert_eq!(world.table("gold.revenue").await?.files().await?.len(), 3);
    assert_eq!(world.rows("gold.revenue").await?.len(), 3);
    Ok(())
}

/// Two sides that do not fit into memory together: the hash join fails, the sort-merge join spills.
#[tokio::test]
async fn a_join_that_does_not_fit_in_memory_is_planned_again_with_sort_merge_joins() -> Result<()> {
    let world = World::with(crate::world::memory(), 24 << 20);
    let rows = |from: i64| {
        let ids: tributary_lake::arrow::array::Int64Array = (from..from + 200_000).collect();
        let texts: tributary_lake::arrow::array::StringArray = (0..200_000).map(|at| Some(format!("{at:0>100}"))).collect();
        let batch = tributary_lake::arrow::array::RecordBatch::try_from_iter([("id", Arc::new(ids) as _), ("text", Arc::new(texts) as _)]);
        Frame::from(batch.unwrap())
    };
    world.append("silver.a", &rows(0)).await?;
    world.append("silver.b", &rows(100_000)).await?;
    let spec = GoldSpec::new(
        name("gold.both"),
        "SELECT count(*) AS n, max(a.text) AS a, max(b.text) AS b FROM silver.a JOIN silver.b ON a.id = b.id",
    );
    let report = world.run(&spec).await?;
    assert!(report.notes.iter().any(|note| note.contains("sort-merge")), "{:?}", report.notes);
    assert_frames_eq!(world.rows("gold.both").await?.select(&["n"]), frame!("n: long\n 100000"));
    Ok(())
}
