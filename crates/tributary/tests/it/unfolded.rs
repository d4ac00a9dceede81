//! Streaming tables whose query makes several rows of one, and views that make columns of rows, from their SQL to their rows.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use tributary::arrow::array::RecordBatch;
use tributary::object_store::memory::InMemory;
use tributary::{Lake, Pipeline, RunOptions, RunReport, SqlOptions, Status};

use crate::shop;

const EVENTS: &str = "CREATE OR REFRESH STREAMING TABLE ev AS SELECT * FROM STREAM read_files('ev', format => 'json', \
                      schema => 'id BIGINT, tags ARRAY<STRING>, a BIGINT, b BIGINT', settleSeconds => 0)";

const TABLES: &str = "
CREATE OR REFRESH STREAMING TABLE tags AS SELECT id, tag FROM STREAM(ev) LATERAL VIEW explode(tags) t AS tag;
CREATE OR REFRESH STREAMING TABLE places AS SELECT id, pos, tag FROM STREAM(ev) LATERAL VIEW OUTER posexplode(tags) t AS pos, tag;
CREATE OR REFRESH STREAMING TABLE alone (CONSTRAINT short EXPECT (length(tag) < 3) ON VIOLATION DROP ROW) AS
  SELECT id, explode(tags) AS tag FROM STREAM(ev) WHERE a > 1;
CREATE OR REFRESH STREAMING TABLE halves AS SELECT id, which, n FROM (SELECT id, a, b FROM STREAM(ev)) UNPIVOT (n FOR which IN (a, b));
CREATE OR REFRESH STREAMING TABLE stacked AS SELECT id, stack(2, 'a', a, 'b', b) AS (which, n) FROM STREAM(ev);
CREATE OR REFRESH STREAMING TABLE beside AS SELECT id, both, c.c FROM STREAM(ev), LATERAL (SELECT a + b AS both),
  LATERAL explode(array(both, id)) AS c(c);
CREATE OR REFRESH MATERIALIZED VIEW wide AS SELECT * FROM (SELECT id, which, n FROM halves)
  PIVOT (sum(n) AS s, count(*) AS c FOR which IN ('a', 'b'));";

fn pipeline(sql: &str) -> Pipeline {
    let options = SqlOptions { name: "unfolded".to_owned(), schema: Some("silver".to_owned()), ..SqlOptions::default() };
    Pipeline::from_sql(&[("ev.sql", EVENTS), ("tables.sql", sql)], &options).unwrap_or_else(|error| panic!("{error}"))
}

async fn run(lake: &Lake, pipeline: &Pipeline, base: &Path, anew: bool) -> RunReport {
    let options = RunOptions { base_data_path: base.to_owned(), full_refresh_all: anew, ..RunOptions::default() };
    let report = lake.run(pipeline, options).await.expect("a report");
    assert!(report.datasets.iter().all(|dataset| dataset.status != Status::Failed), "{report:#?}");
    report
}

async fn rows(lake: &Lake, last: &str) -> Vec<String> {
    let tables = lake.tables().await.expect("tables");
    let name = tables.iter().find(|table| table.name == last).expect("the table").to_string();
    let batches: Vec<RecordBatch> =
        lake.table(&name).await.expect("a table").scan().await.expect("a scan").try_collect().await.expect("rows");
    let mut rows: Vec<String> = batches.iter().flat_map(shop::rows_as_text).collect();
    rows.sort_unstable();
    rows
}

fn put(base: &Path, name: &str, lines: &str) {
    fs::create_dir_all(base.join("ev")).expect("a folder");
    fs::write(base.join("ev").join(name), lines).expect("a file");
}

#[tokio::test]
async fn rows_of_a_stream_are_unfolded_once_each_and_a_full_refresh_comes_to_the_same() {
    let (drops, lake, pipeline) = (tempfile::tempdir().expect("a folder"), shop::open(Arc::new(InMemory::new())), pipeline(TABLES));
    put(drops.path(), "1.json", "{\"id\":1,\"tags\":[\"x\",\"long\"],\"a\":2,\"b\":3}\n{\"id\":2,\"tags\":[],\"a\":4}\n");
    run(&lake, &pipeline, drops.path(), false).await;
    assert_eq!(rows(&lake, "tags").await, ["1|long", "1|x"]);
    put(drops.path(), "2.json", "{\"id\":3,\"tags\":[\"y\"],\"a\":1,\"b\":7}\n{\"id\":4,\"a\":9,\"b\":1}\n");
    run(&lake, &pipeline, drops.path(), false).await;
    let expected: [(&str, &[&str]); 7] = [
        ("tags", &["1|long", "1|x", "3|y"]),
        ("places", &["1|0|x", "1|1|long", "2|∅|∅", "3|0|y", "4|∅|∅"]),
        ("alone", &["1|x"]),
        ("halves", &["1|a|2", "1|b|3", "2|a|4", "3|a|1", "3|b|7", "4|a|9", "4|b|1"]),
        ("stacked", &["1|a|2", "1|b|3", "2|a|4", "2|b|∅", "3|a|1", "3|b|7", "4|a|9", "4|b|1"]),
        ("beside", &["1|5|1", "1|5|5", "2|∅|2", "2|∅|∅", "3|8|3", "3|8|8", "4|10|10", "4|10|4"]),
        ("wide", &["1|2|1|3|1", "2|4|1|∅|∅", "3|1|1|7|1", "4|9|1|1|1"]),
    ];
    for anew in [false, true] {
        run(&lake, &pipeline, drops.path(), anew).await;
        for (table, told) in expected {
            assert_eq!(rows(&lake, table).await, told, "{table}, anew: {anew}");
        }
    }
}

#[tokio::test]
async fn a_table_of_keys_takes_no_row_that_is_unfolded_and_says_what_to_do() {
    let pipeline = pipeline(
        "CREATE OR REFRESH STREAMING TABLE latest;
         CREATE FLOW f AS AUTO CDC INTO latest FROM (SELECT id, a, explode(tags) AS tag FROM STREAM(ev)) KEYS (id, tag) SEQUENCE BY a;",
    );
    let check = pipeline.check_queries().await.expect("a check");
    let [problem] = check.problems.as_slice() else { panic!("{:?}", check.problems) };
    assert!(problem.message().contains("unfold them in a streaming table that this one reads"), "{}", problem.message());
    assert_eq!(problem.place.as_ref().map(|place| place.line), Some(2));
}
