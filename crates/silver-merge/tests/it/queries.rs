//! Datasets whose rows come out of a query: filters, expressions, lookups, and what rides along unseen.

use std::sync::Arc;

use anyhow::{Result, ensure};
use tributary_lake::arrow::array::{RecordBatch, new_null_array};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema};
use tributary_lake::datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use tributary_lake::datafusion::prelude::{col, lit};
use tributary_silver_merge::{Error, Options};
use tributary_specs::{Decode, Deletes, Expectation, ExpectationAction, MergePolicy, SilverSpec, TableName};
use tributary_testkit::{Frame, assert_frames_eq, frame};

use crate::world::{SCD2, World, block_on, source, spec, target};

/// Change events as bronze holds them: two orders, one of which is changed without its long text, moved to another key, deleted.
fn orders() -> Frame {
    frame!(
        "Id: long | Title: string | Body: string | _op: string | _position: string | _unavailable: array<string> | _key_changed_from: struct<Id:long> | _key_changed_to: struct<Id:long>
        1 | a  | long | create | 000000/01 | null     | null      | null
        2 | b  | text | create | 000000/02 | null     | null      | null
        1 | a2 | null | update | 000000/03 | [\"Body\"] | null      | null
        1 | null | null | delete | 000000/04 | null   | null      | {\"Id\": 9}
        9 | a2 | null | create | 000000/04 | [\"Body\"] | {\"Id\": 1} | null
        2 | null | null | delete | 000000/05 | null   | null      | null"
    )
}

fn over_orders(select: &str) -> SilverSpec {
    SilverSpec { select: Some(select.to_owned()), ..spec("orders", &["order_id"], MergePolicy::ScdType1) }
}

async fn world_with_orders() -> Result<World> {
    let world = World::new();
    // One event a batch: what an event does must not depend on what comes with it.
    for at in 0..orders().len() {
        world.append(&source("orders"), &Frame::new(orders().schema(), &[orders().batch().slice(at, 1)])).await?;
    }
    Ok(world)
}

/// Rows with every column that the table of a feed has besides.
fn as_a_feed_has_them(rows: &Frame) -> Frame {
    let (schema, batch) = (rows.schema(), rows.batch());
    let missing = Decode::Debezium.metadata_columns().iter().filter(|name| schema.column_with_name(name).is_none());
    let missing: Vec<Field> = missing.map(|name| Field::new(*name, DataType::Utf8, true)).collect();
    let nulls = missing.iter().map(|field| new_null_array(field.data_type(), batch.num_rows()));
    let columns = batch.columns().iter().cloned().chain(nulls).collect();
    let fields: Vec<_> = schema.fields().iter().cloned().chain(missing.iter().cloned().map(Arc::new)).collect();
    let schema = Arc::new(Schema::new(fields));
    Frame::new(Arc::clone(&schema), &[RecordBatch::try_new(schema, columns).expect("columns of one length")])
}

fn failure(outcome: tributary_silver_merge::Result<tributary_specs::DatasetReport>) -> String {
    let error = outcome.expect_err("it must fail");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[test]
fn what_a_change_is_rides_through_a_query_that_selects_none_of_it() {
    block_on(async {
        // Names in any case; a derived column of an unsent one is unsent too; the key is renamed.
        let select = "SELECT ID AS order_id, upper(title) AS title, BODY AS body, length(body) AS size FROM Bronze.Orders WHERE id < 100";
        for policy in [MergePolicy::ScdType1, SCD2] {
            let world = world_with_orders().await?;
            let dataset = SilverSpec { policy: policy.clone(), ..over_orders(select) };
            let report = world.run_version_by_version(&dataset).await?;
            ensure!(report.rows_in == 6, "{report:?}");
            let mut rows = world.all(&target("orders")).await?;
            if policy == SCD2 {
                let open: Vec<_> =
                    rows.rows().into_iter().filter(|row| row.last().is_some_and(tributary_testkit::Value::is_null)).collect();
                rows = Frame::from_rows(rows.schema(), &open);
            }
            let rows = rows.select(&["order_id", "title", "body", "size"]);
            assert_frames_eq!(rows, frame!("order_id: long | title: string | body: string | size: integer\n 9 | A2 | long | 4"));
        }
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_star_brings_the_business_columns_and_a_named_technical_column_stays() {
    block_on(async {
        for select in [
            "SELECT * FROM bronze.orders",
            "SELECT o.* FROM bronze.orders AS o",
            "SELECT * EXCEPT (_position) FROM bronze.orders",
            "WITH all_of_them AS (SELECT * FROM bronze.orders) SELECT * FROM all_of_them",
            "SELECT * FROM (SELECT * FROM bronze.orders) AS o WHERE id < 100",
        ] {
            let world = World::new();
            world.append(&source("orders"), &as_a_feed_has_them(&orders())).await?;
            world.run(&SilverSpec { keys: vec!["Id".to_owned()], ..over_orders(select) }).await?;
            let rows = world.all(&target("orders")).await?;
            assert_frames_eq!(rows, frame!("Id: long | Title: string | Body: string | __position: string\n 9 | a2 | long | 000000/04"));
        }

        let world = world_with_orders().await?;
        world.run(&over_orders("SELECT id AS order_id, _op AS op FROM bronze.orders")).await?;
        assert_frames_eq!(world.rows(&target("orders"), &["order_id", "op"]).await?, frame!("order_id: long | op: string\n 9 | create"));
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_lookup_adds_columns_and_one_that_multiplies_rows_is_refused_by_name() {
    block_on(async {
        let world = World::new();
        world.append(&source("orders"), &frame!("id: long | store: long | at: long\n 1 | 7 | 1\n 2 | 8 | 1")).await?;
        world.append(&TableName::new("silver", "stores"), &frame!("store: long | city: string\n 7 | Graz")).await?;
        let select = "WITH o AS (SELECT * FROM bronze.orders) SELECT o.id, s.city FROM o LEFT JOIN silver.stores AS s ON o.store = s.store";
        let dataset = SilverSpec {
            sources: vec![source("orders"), TableName::new("silver", "stores")],
            select: Some(select.to_owned()),
            // The query does not select it; the source row has it.
            sequence_by: vec!["at".to_owned()],
            ..spec("orders", &["id"], MergePolicy::ScdType1)
        };
        world.run(&dataset).await?;
        let rows = world.all(&target("orders")).await?;
        assert_frames_eq!(rows, frame!("id: long | city: string | __sequence: long\n 1 | Graz | 1\n 2 | null | 1"));

        world.append(&TableName::new("silver", "stores"), &frame!("store: long | city: string\n 7 | Linz")).await?;
        world.append(&source("orders"), &frame!("id: long | store: long | at: long\n 3 | 7 | 2")).await?;
        let version = world.version(&target("orders")).await?;
        let error = failure(world.run(&dataset).await);
        ensure!(error.contains("2 rows for 1 rows of `bronze.orders`"), "{error}");
        ensure!(world.version(&target("orders")).await? == version);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_query_that_is_not_one_row_out_for_one_in_is_refused_before_anything_is_written() {
    block_on(async {
        let world = world_with_orders().await?;
        let refused = [
            ("SELECT id AS order_id, count(*) AS n FROM bronze.orders GROUP BY id", "Aggregate"),
            ("SELECT DISTINCT id AS order_id FROM bronze.orders", "Distinct"),
            ("SELECT id AS order_id FROM bronze.orders LIMIT 3", "Limit"),
            ("SELECT id AS order_id, row_number() OVER (ORDER BY id) AS n FROM bronze.orders", "Window"),
            ("SELECT a.id AS order_id FROM bronze.orders a JOIN bronze.orders b ON a.id = b.id", "twice"),
            ("SELECT id AS order_id FROM bronze.orders UNION ALL SELECT id FROM bronze.orders", "Union"),
            ("SELECT 1 AS order_id", "does not read its first source"),
            ("SELECT id AS order_id FROM bronze.orders VERSION AS OF 0", "VERSION AS OF"),
            ("SELECT id AS order_id, id AS Order_ID FROM bronze.orders", "twice"),
            ("SELECT id AS order_id, title AS __title FROM bronze.orders", "two underscores"),
            ("SELECT title FROM bronze.orders", "`order_id`, which the query does not yield"),
            ("SELECT id AS order_id, nothing FROM bronze.orders", "nothing"),
            ("DROP TABLE bronze.orders", "only queries are"),
        ];
        for (select, why) in refused {
            let error = failure(world.run(&over_orders(select)).await);
            ensure!(error.contains(why) && error.contains("silver.orders"), "{select}: {error}");
        }
        ensure!(world.lake.table(&target("orders")).await?.is_none());
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_built_in_code_and_functions_brought_along_are_as_good_as_sql() {
    block_on(async {
        let world = world_with_orders().await?;
        let shout = |args: &[ColumnarValue]| -> tributary_lake::datafusion::error::Result<ColumnarValue> {
            use tributary_lake::arrow::array::{ArrayRef, AsArray, StringArray};
            let text = args[0].clone().into_array(1)?;
            let loud: StringArray = text.as_string::<i32>().iter().map(|text| text.map(|text| format!("{text}!"))).collect();
            Ok(ColumnarValue::Array(Arc::new(loud) as ArrayRef))
        };
        let text = tributary_lake::arrow::datatypes::DataType::Utf8;
        let function = create_udf("shout", vec![text.clone()], text, Volatility::Immutable, Arc::new(shout));
        let build: tributary_silver_merge::Build = Arc::new(|_, mut inputs| {
            Box::pin(async move {
                let orders = inputs.remove("bronze.orders").expect("the first source");
                orders.filter(col("\"Id\"").lt(lit(100)))?.select(vec![col("\"Id\"").alias("order_id"), col("\"Body\"").alias("body")])
            })
        });
        let dataset = spec("orders", &["order_id"], MergePolicy::ScdType1);
        let options = Options { build: Some(build), ..Options::default() };
        tributary_silver_merge::run(&world.lake, &dataset, &options).await?;
        assert_frames_eq!(world.rows(&target("orders"), &["order_id", "body"]).await?, frame!("order_id: long | body: string\n 9 | long"));

        let world = world_with_orders().await?;
        let dataset = over_orders("SELECT id AS order_id, SHOUT(title) AS title FROM bronze.orders");
        let options = Options { functions: vec![Arc::new(function)], ..Options::default() };
        tributary_silver_merge::run(&world.lake, &dataset, &options).await?;
        assert_frames_eq!(world.rows(&target("orders"), &["order_id", "title"]).await?, frame!("order_id: long | title: string\n 9 | a2!"));
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_missing_lookup_is_an_error_and_a_source_that_is_not_there_yet_is_nothing_new() {
    block_on(async {
        let world = World::new();
        let dataset = over_orders("SELECT id AS order_id FROM bronze.orders");
        let report = world.run(&dataset).await?;
        ensure!(report.status == tributary_specs::Status::NothingNew && report.reason.contains("bronze.orders"), "{report:?}");
        ensure!(world.lake.tables().await?.is_empty());
        let world = world_with_orders().await?;
        let dataset = SilverSpec { sources: vec![source("orders"), source("stores")], ..dataset };
        ensure!(matches!(world.run(&dataset).await, Err(Error::NoSource { source_table, .. }) if *source_table == source("stores")));
        Ok(())
    })
    .unwrap();
}

/// Values of rows are secrets: whatever fails on a row, in a select, a rule, a condition or the sequence, says which dataset and why,
/// and not what stood there.
#[test]
fn no_error_on_a_row_tells_what_stands_in_it() {
    block_on(async {
        let plain = || spec("people", &["id"], MergePolicy::ScdType1);
        let at = |text: &str| vec![text.to_owned()];
        let rule =
            |expression: &str| Expectation { name: "rule".to_owned(), expression: expression.to_owned(), action: ExpectationAction::Warn };
        let select = |text: &str| SilverSpec { select: Some(text.to_owned()), sequence_by: at("at"), ..plain() };
        let datasets = [
            select("SELECT id, CAST(name AS INT) AS name, at FROM bronze.people"),
            select("SELECT id, CAST(born AS DATE) AS born, at FROM bronze.people"),
            select("SELECT id, at, big * 2 AS big FROM bronze.people"),
            select("SELECT id, at, CAST(big AS DECIMAL(4, 2)) AS big FROM bronze.people"),
            select("SELECT id, at, CAST(big AS INT) AS big FROM bronze.people"),
            SilverSpec { sequence_by: at("CAST(name AS BIGINT)"), ..plain() },
            SilverSpec { sequence_by: at("at"), expectations: vec![rule("CAST(name AS INT) > 0")], ..plain() },
            SilverSpec {
                sequence_by: at("at"),
                deletes: Deletes { apply_as_delete_when: Some("CAST(name AS BOOLEAN)".to_owned()), ..Deletes::default() },
                ..plain()
            },
        ];
        for dataset in datasets {
            let world = World::new();
            let rows =
                frame!("id: long | name: string | born: string | big: long | at: long\n 1 | s3cret | 19-hidden | 9100000000000000777 | 1");
            world.append(&source("people"), &rows).await?;
            let error = failure(world.run(&dataset).await);
            ensure!(error.contains("silver.people"), "{error}");
            for value in ["s3cret", "hidden", "9100000000000000777", "777"] {
                ensure!(!error.contains(value), "{dataset:?}: {error}");
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_select_yields_becomes_the_nearest_delta_type() {
    block_on(async {
        let world = World::new();
        world.append(&source("people"), &frame!("id: long | name: string | price: decimal(12,2) | at: long\n 1 | Ada | 10.50 | 1")).await?;
        let select =
            "SELECT id, at, price * 1.5 AS more, price / 4 AS quarter, round(price / 4, 1) AS rounded, length(name) AS size FROM bronze.people";
        let dataset = SilverSpec {
            select: Some(select.to_owned()),
            sequence_by: vec!["at".to_owned()],
            ..spec("people", &["id"], MergePolicy::ScdType1)
        };
        world.run(&dataset).await?;
        let table = world.table(&target("people")).await?;
        let types: Vec<String> = table.columns().iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
        ensure!(
            types == ["id long", "at long", "more decimal(15,3)", "quarter decimal(16,6)", "rounded decimal(12,1)", "size integer"],
            "{types:?}"
        );
        assert_frames_eq!(
            world.rows(&target("people"), &["quarter", "rounded"]).await?,
            frame!("quarter: decimal(16,6) | rounded: decimal(12,1)\n 2.625000 | 2.6")
        );
        Ok(())
    })
    .unwrap();
}
