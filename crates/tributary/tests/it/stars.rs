//! A star is the columns of the rows, through every door: what the lake keeps beside them is found by its name.

use std::fs;
use std::sync::Arc;

use tributary::object_store::memory::InMemory;
use tributary::{Lake, Pipeline, RunOptions, SqlOptions, Status};

use crate::shop;

const FEEDS: &str = "
CREATE OR REFRESH STREAMING TABLE bronze.orders (id BIGINT, store BIGINT)
  AS SELECT * FROM STREAM read_files('orders', format => 'json', schemaEvolutionMode => 'none', settleSeconds => 0);
CREATE OR REFRESH STREAMING TABLE bronze.stores (store BIGINT, city STRING)
  AS SELECT * FROM STREAM read_files('stores', format => 'json', schemaEvolutionMode => 'none', settleSeconds => 0);
";

/// Definitions of `t` over the feeds, its columns and its one row.
const DEFINED: &[(&str, &str, &str)] = &[
    ("MATERIALIZED VIEW t AS SELECT * FROM bronze.orders", "id store", "1|7"),
    ("MATERIALIZED VIEW t AS SELECT o.* FROM bronze.orders AS o", "id store", "1|7"),
    ("MATERIALIZED VIEW t AS SELECT * FROM bronze.orders JOIN bronze.stores USING (store)", "store id city", "7|1|Graz"),
    ("MATERIALIZED VIEW t AS SELECT * FROM bronze.orders NATURAL JOIN bronze.stores", "store id city", "7|1|Graz"),
    (
        "MATERIALIZED VIEW t AS SELECT o.*, s.city FROM bronze.orders o JOIN bronze.stores s ON o.store = s.store",
        "id store city",
        "1|7|Graz",
    ),
    ("MATERIALIZED VIEW t AS SELECT o.*, s.* EXCEPT (store) FROM bronze.orders o, bronze.stores s", "id store city", "1|7|Graz"),
    ("MATERIALIZED VIEW t AS SELECT * EXCEPT (id) FROM bronze.orders", "store", "7"),
    ("MATERIALIZED VIEW t AS SELECT *, _line AS line FROM bronze.orders", "id store line", "1|7|1"),
    ("MATERIALIZED VIEW t AS WITH o AS (SELECT * FROM bronze.orders) SELECT * FROM o", "id store", "1|7"),
    (
        "MATERIALIZED VIEW t AS SELECT * FROM (SELECT * FROM bronze.orders) JOIN (SELECT * FROM bronze.stores) USING (store)",
        "store id city",
        "7|1|Graz",
    ),
    ("MATERIALIZED VIEW t AS SELECT * FROM (SELECT *, _line FROM bronze.orders) AS o", "id store _line", "1|7|1"),
    ("MATERIALIZED VIEW t AS SELECT count(*) AS n FROM bronze.orders", "n", "1"),
    ("MATERIALIZED VIEW t AS SELECT * FROM bronze.orders UNION SELECT * FROM bronze.orders", "id store", "1|7"),
    ("STREAMING TABLE t AS SELECT * FROM STREAM(bronze.orders)", "id store", "1|7"),
    ("STREAMING TABLE t AS SELECT o.* FROM STREAM(bronze.orders) AS o", "id store", "1|7"),
    ("STREAMING TABLE t AS SELECT * EXCEPT (id) FROM STREAM(bronze.orders)", "store", "7"),
    ("STREAMING TABLE t AS SELECT * FROM STREAM(bronze.orders) JOIN bronze.stores USING (store)", "store id city", "7|1|Graz"),
    ("STREAMING TABLE t AS SELECT *, _line AS line FROM STREAM(bronze.orders)", "id store line", "1|7|1"),
];

async fn ran(definitions: &str) -> Lake {
    let base = tempfile::tempdir().expect("a folder");
    for (folder, row) in [("orders", r#"{"id":1,"store":7}"#), ("stores", r#"{"store":7,"city":"Graz"}"#)] {
        fs::create_dir_all(base.path().join(folder)).expect("a folder");
        fs::write(base.path().join(folder).join("1.json"), format!("{row}\n")).expect("a drop");
    }
    let options = SqlOptions { name: "stars".to_owned(), schema: Some("gold".to_owned()), ..SqlOptions::default() };
    let pipeline = Pipeline::from_sql(&[("feeds.sql", FEEDS), ("t.sql", definitions)], &options)
        .unwrap_or_else(|error| panic!("{definitions}: {error}"));
    let lake = shop::open(Arc::new(InMemory::new()));
    let options = RunOptions { base_data_path: base.path().to_owned(), ..RunOptions::default() };
    let report = lake.run(&pipeline, options).await.expect("a report");
    assert!(report.datasets.iter().all(|dataset| dataset.status == Status::Committed), "{definitions}: {report:#?}");
    lake
}

/// The columns of a query and its rows.
async fn told(lake: &Lake, query: &str) -> (String, String) {
    let frame = tributary::sql::query(lake, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let columns: Vec<String> = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let batches = frame.collect().await.expect("rows");
    (columns.join(" "), batches.iter().flat_map(shop::rows_as_text).collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn a_star_over_feeds_is_their_rows_in_views_and_streaming_tables() {
    for (definition, columns, row) in DEFINED {
        let lake = ran(&format!("CREATE OR REFRESH {definition};")).await;
        let there = lake.tables().await.expect("tables");
        let name = there.iter().find(|name| name.name == "t").expect("the table");
        let held = "SELECT column_name FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position";
        assert_eq!(told(&lake, held).await.1, *columns, "{definition}");
        assert_eq!(told(&lake, &format!("SELECT * FROM {name}")).await, ((*columns).to_owned(), (*row).to_owned()), "{definition}");
    }
}

#[tokio::test]
async fn a_temporary_view_and_a_query_take_stars_alike_and_names_find_the_rest() {
    let lake = ran("CREATE TEMPORARY VIEW o AS SELECT * FROM bronze.orders;
        CREATE OR REFRESH MATERIALIZED VIEW t AS SELECT * FROM o JOIN bronze.stores USING (store);")
    .await;
    for (query, columns, row) in [
        ("SELECT * FROM bronze.orders", "id store", "1|7"),
        ("SELECT * FROM gold.t", "store id city", "7|1|Graz"),
        ("SELECT * FROM bronze.orders o JOIN bronze.stores s ON o.store = s.store", "id store store city", "1|7|7|Graz"),
        ("SELECT *, _line FROM bronze.orders WHERE _file IS NOT NULL", "id store _line", "1|7|1"),
        ("SELECT to_json(struct(*)) AS j FROM bronze.orders", "j", r#"{"id":1,"store":7}"#),
        ("SELECT count(*) AS n, count(DISTINCT *) AS m FROM bronze.orders", "n m", "1|1"),
    ] {
        assert_eq!(told(&lake, query).await, (columns.to_owned(), row.to_owned()), "{query}");
    }
}
