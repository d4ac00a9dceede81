//! `tributary test` and `tributary validate --portability`.

use serde_json::{Value, json};

use crate::commands::Shop;

const FEED: &str = "CREATE STREAMING TABLE bronze.orders (id BIGINT, status STRING, amount DOUBLE, seq BIGINT)
AS SELECT * FROM STREAM read_files('orders', format => 'json');
";
const ORDERS: &str = "CREATE STREAMING TABLE silver.orders (CONSTRAINT known EXPECT (status IN ('new', 'paid')) ON VIOLATION FAIL UPDATE);
CREATE FLOW orders AS AUTO CDC INTO silver.orders FROM STREAM(bronze.orders) KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 1;
CREATE MATERIALIZED VIEW gold.spent AS SELECT status, sum(amount) AS spent FROM silver.orders GROUP BY status;
";
const TESTS: &str = "dataset: silver.orders
tests:
  - name: the latest wins
    given: {bronze.orders: [{id: 1, status: new, seq: 1}, {id: 1, status: paid, seq: 2}, {id: 2, status: new, seq: 1}]}
    expect: [{id: 2, status: new}, {id: 1, status: paid}]
  - name: a status nobody knows stops it
    given: {bronze.orders: [{id: 1, status: lost, seq: 1}]}
    fails: SM0009
";

fn shop() -> Shop {
    let shop = Shop::new();
    std::fs::remove_file(shop.path("pipeline.yml")).unwrap();
    shop.write("sql/bronze.sql", FEED);
    shop.write("sql/orders.sql", ORDERS);
    shop.write("sql/tests/orders.yml", TESTS);
    shop
}

#[test]
fn the_datasets_of_this_repository_pass_their_tests() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let said = Shop::new().says(0, &["test", root.join("dlt_pipelines").to_str().unwrap()]);
    for dataset in
        ["silver.orders", "silver.customers", "silver.inventory", "gold.daily_revenue", "gold.low_stock", "gold.customer_activity"]
    {
        assert!(said.contains(&format!("ok    {dataset}: ")), "{said}");
    }
    assert!(said.contains(", 0 failed, "), "{said}");
}

#[test]
fn tests_of_sql_without_a_bundle_are_found_beside_it_and_counted() {
    let shop = shop();
    shop.write("sql/tests/spent.yml", "dataset: gold.spent\ntests:\n  - name: nine digits of a float count\n    given: {silver.orders: [{id: 1, status: new, amount: 0.1}, {id: 2, status: new, amount: 0.2}]}\n    expect: [{status: new, spent: 0.3}]\n");
    let said = shop.says(0, &["test", "sql"]);
    assert!(said.contains("ok    silver.orders: the latest wins\n") && said.contains("3 tests, 3 passed, 0 failed, "), "{said}");
    assert!(!shop.path("data/lake").exists());
}

#[test]
fn a_test_that_fails_shows_what_changed_by_key_and_exits_1() {
    let shop = shop();
    shop.write(
        "sql/tests/orders.yml",
        "dataset: silver.orders
tests:
  - name: wrong
    given: {bronze.orders: [{id: 1, status: new, seq: 1}, {id: 3, status: new, seq: 1}]}
    expect: [{id: 1, status: paid}, {id: 2, status: null}]
  - name: fails otherwise
    given: {bronze.orders: [{id: 1, status: new, seq: 1}]}
    fails: SM0009
",
    );
    let said = shop.says(1, &["test", "sql"]);
    let expected = "FAIL  silver.orders: wrong (sql/tests/orders.yml:3)
        silver.orders: other rows than expected
        changed     id=1: status is new, expected paid
        missing     id=2, status=null
        unexpected  id=3, status=new
FAIL  silver.orders: fails otherwise (sql/tests/orders.yml:6)
        silver.orders: it did not fail with SM0009
2 tests, 0 passed, 2 failed, ";
    assert!(said.starts_with(expected), "{said}");
    let json: Value = serde_json::from_str(&shop.says(1, &["test", "sql", "--output", "json"])).unwrap();
    assert_eq!((&json["passed"], &json["failed"]), (&json!(0), &json!(2)));
    assert_eq!(
        json["tests"][0]["differences"][0]["changed"],
        json!([{"key": {"id": "1"}, "cells": [{"column": "status", "found": "new", "expected": "paid"}]}])
    );
}

#[test]
fn a_test_that_is_wrong_or_is_not_there_exits_2() {
    let shop = shop();
    let said = shop.says(2, &["test", "data"]);
    assert!(said.contains("error[CL0040]: no tests at data\n"), "{said}");
    shop.says(2, &["test", "nowhere"]);
    for (tests, says) in [
        (
            "dataset: silver.orders\ntests:\n  - {name: a, given: {bronze.orders: [{idd: 1}]}, expect: []}\n",
            "there is no column \"idd\"; did you mean \"id\"?",
        ),
        (
            "dataset: silver.orders\ntests:\n  - {name: a, given: {bronze.orders: [{id: x}]}, expect: []}\n",
            "rows of `bronze.orders`: row 1: ",
        ),
        ("dataset: silver.orders\ntests:\n  - {name: a, expect: [{stat: x}]}\n", "there is no column \"stat\""),
        (
            "dataset: silver.order\ntests:\n  - {name: a, expect: []}\n",
            "error[CL0041]: sql/tests/orders.yml is about silver.order, which no pipeline",
        ),
        ("dataset: silver.orders\ntest: []\n", "orders.yml:2:1: there is no key \"test\" in the root; did you mean \"tests\"?"),
    ] {
        shop.write("sql/tests/orders.yml", tests);
        let said = shop.says(2, &["test", "sql"]);
        assert!(said.contains(says), "{says} is not in {said}");
    }
    shop.write("sql/tests/orders.yml", TESTS);
    shop.write("sql/orders.sql", "CREATE STREAMING TABLE silver.orders AS\n");
    assert!(shop.says(2, &["test", "sql"]).contains("sql/orders.sql:"));
}

#[test]
fn everything_wrong_with_files_of_tests_comes_in_one_go() {
    let shop = shop();
    shop.write("sql/tests/a.yml", "dataset: silver.orders\ntest: []\n");
    shop.write("sql/tests/b.yml", "dataset: silver.nowhere\ntests: [{name: a, expect: []}]\n");
    shop.write("sql/tests/c.yml", "dataset: gold.nothing\ntests: [{name: a, expect: []}]\n");
    let columns = "columns: {bronze.orders: {id: bigit, seq: lnog}}\n";
    shop.write("sql/tests/d.yml", &format!("dataset: silver.orders\n{columns}tests: [{{name: a, expect: []}}]\n"));
    shop.write("broken/broken.sql", "CREATE STREAMING TABLE silver.x AS\n");
    shop.write("broken/tests/e.yml", "dataset: silver.x\ntests: [{name: a, expect: []}]\n");
    shop.write("broken/tests/f.yml", "dataset: silver.x\ntests: [{name: a, expect: []}]\n");
    let said = shop.says(2, &["test", "sql", "broken"]);
    for mistake in [
        "a.yml:2:1:",
        "b.yml is about silver.nowhere",
        "c.yml is about gold.nothing",
        "columns.bronze.orders.id",
        "columns.bronze.orders.seq",
    ] {
        assert_eq!(said.matches(mistake).count(), 1, "{mistake} is not once in {said}");
    }
    assert_eq!(said.matches("broken.sql:").count(), 1, "{said}");
    assert!(!said.contains("passed"), "{said}");
}

#[test]
fn what_is_otherwise_elsewhere_is_listed_with_its_place() {
    let shop = shop();
    let said = shop.says(0, &["validate", "sql", "--portability"]);
    assert!(
        said.contains("sql/orders.sql:1:50: Spark 4.3: CONSTRAINT … EXPECT of silver.orders is not there: pipelines have no rules there"),
        "{said}"
    );
    assert!(said.contains("sql/bronze.sql:2:25: Spark 4.3: read_files of bronze.orders is not there: "), "{said}");
    assert!(
        said.contains("sql/orders.sql:2:78: Databricks: AUTO CDC over a change feed without APPLY AS DELETE WHEN is otherwise: "),
        "{said}"
    );
    assert!(said.contains("\nSpark 4.3: 2 not there, "), "{said}");
    let json: Value = serde_json::from_str(&shop.says(0, &["validate", "sql", "--portability", "-o", "json"])).unwrap();
    let of = |rule: &str| json["portability"].as_array().unwrap().iter().filter(|told| told["rule"] == rule).count();
    assert_eq!((of("expect"), of("implicit_deletes")), (1, 2));
    assert!(serde_json::from_str::<Value>(&shop.says(0, &["validate", "sql", "-o", "json"])).unwrap().get("portability").is_none());
}
