//! Streaming tables that remember rows, from their SQL to their rows.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use serde_json::{Value, json};
use tributary::arrow::array::RecordBatch;
use tributary::object_store::memory::InMemory;
use tributary::{Lake, Pipeline, RunOptions, RunReport, SqlOptions, Status};
use tributary_testkit::cases;

use crate::shop;

const EVENTS: &str = "CREATE OR REFRESH STREAMING TABLE ev AS SELECT * FROM STREAM read_files('ev', format => 'json', \
                      schema => 'id BIGINT, store STRING, ts TIMESTAMP')";

fn pipeline(sql: &str) -> Pipeline {
    let options = SqlOptions { name: "streams".to_owned(), schema: Some("silver".to_owned()), ..SqlOptions::default() };
    Pipeline::from_sql(&[("ev.sql", EVENTS), ("tables.sql", sql)], &options).unwrap_or_else(|error| panic!("{error}"))
}

fn drop_file(base: &Path, name: &str, events: &[Value]) {
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    fs::create_dir_all(base.join("ev")).expect("a folder");
    fs::write(base.join("ev").join(name), lines).expect("a file");
}

async fn run(lake: &Lake, pipeline: &Pipeline, base: &Path) -> RunReport {
    lake.run(pipeline, RunOptions { base_data_path: base.to_owned(), ..RunOptions::default() }).await.expect("a report")
}

async fn rows(lake: &Lake, table: &str) -> Vec<String> {
    let table = lake.table(table).await.expect("a table");
    let batches: Vec<RecordBatch> = table.scan().await.expect("a scan").try_collect().await.expect("rows");
    let mut rows: Vec<String> = batches.iter().flat_map(shop::rows_as_text).collect();
    rows.sort_unstable();
    rows
}

/// A table of the lake by its last name.
async fn named(lake: &Lake, last: &str) -> String {
    let tables = lake.tables().await.expect("tables");
    tables.iter().find(|table| table.name == last).expect("the table").to_string()
}

/// GOLD-07 as it is handed, and one more row of a window that was there already.
#[tokio::test]
async fn gold_07_the_last_window_is_there_after_one_run_and_more_rows_replace_it() {
    let case = cases::handed_case("GOLD-07");
    let pipeline = pipeline(case.input["sql"].as_str().expect("SQL"));
    let drops = tempfile::tempdir().expect("a folder");
    let event = |time: &str| json!({"ts": format!("2026-02-01T{time}Z")});
    let events: Vec<Value> =
        case.input["events"].as_array().expect("events").iter().map(|time| event(time.as_str().expect("a time"))).collect();
    drop_file(drops.path(), "1.json", &events);
    let lake = shop::open(Arc::new(InMemory::new()));
    let report = run(&lake, &pipeline, drops.path()).await;
    assert!(report.datasets.iter().all(|dataset| dataset.status == Status::Committed), "{report:#?}");
    let expected = case.expected["any_of"][0]["rows"].as_array().expect("rows").iter();
    let expected: Vec<String> = expected.map(|row| format!("2026-02-01T{}:00Z|{}", row[0].as_str().expect("a minute"), row[1])).collect();
    let windows = named(&lake, "w").await;
    assert_eq!(rows(&lake, &windows).await, expected);

    drop_file(drops.path(), "2.json", &[event("10:01:59"), event("10:00:01")]);
    let report = run(&lake, &pipeline, drops.path()).await;
    let of_windows = report.datasets.iter().find(|dataset| dataset.table == windows).expect("its report");
    assert_eq!((of_windows.mode.as_str(), of_windows.rows_updated, of_windows.rows_inserted), ("incremental", 2, 0), "{of_windows:#?}");
    assert_eq!(rows(&lake, &windows).await, ["2026-02-01T10:00:00Z|3", "2026-02-01T10:01:00Z|2"]);
    assert!(run(&lake, &pipeline, drops.path()).await.nothing_new());
}

/// What one streaming table remembers is a stream of another.
#[tokio::test]
async fn a_join_of_two_streams_is_a_stream_of_the_next_table() {
    let sql = "CREATE STREAMING TABLE pairs AS SELECT a.id AS a, b.id AS b, b.ts FROM STREAM(ev) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS a \
               JOIN STREAM(ev) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS b \
               ON a.store = b.store AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS AND a.id < b.id;\n\
               CREATE STREAMING TABLE after AS SELECT b, ts FROM STREAM(pairs) WHERE b > 2";
    let pipeline = pipeline(sql);
    let drops = tempfile::tempdir().expect("a folder");
    let event = |id: i64, store: &str, second: i64| json!({"id": id, "store": store, "ts": format!("2026-02-01T10:00:{second:02}Z")});
    let lake = shop::open(Arc::new(InMemory::new()));
    drop_file(drops.path(), "1.json", &[event(1, "n", 1), event(2, "n", 9), event(3, "s", 9)]);
    run(&lake, &pipeline, drops.path()).await;
    drop_file(drops.path(), "2.json", &[event(4, "n", 11), event(5, "s", 30), event(6, "s", 15)]);
    let report = run(&lake, &pipeline, drops.path()).await;
    assert!(report.datasets.iter().all(|dataset| dataset.error.is_none()), "{report:#?}");
    let expected = ["1|2|2026-02-01T10:00:09Z", "1|4|2026-02-01T10:00:11Z", "2|4|2026-02-01T10:00:11Z", "3|6|2026-02-01T10:00:15Z"];
    assert_eq!(rows(&lake, &named(&lake, "pairs").await).await, expected);
    let after = named(&lake, "after").await;
    assert_eq!(rows(&lake, &after).await, ["4|2026-02-01T10:00:11Z", "4|2026-02-01T10:00:11Z", "6|2026-02-01T10:00:15Z"]);
}

const JOINED: &str = "CREATE STREAMING TABLE met AS SELECT a.id AS a, b.id AS b FROM STREAM(ev) WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS a \
                      LEFT JOIN STREAM(ev) WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS b \
                      ON a.store = b.store AND a.id < b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS;\n\
                      CREATE STREAMING TABLE earliest TBLPROPERTIES ('tributary.late' = 'drop') AS SELECT main.silver.ev.* \
                      FROM STREAM(main.silver.ev) WATERMARK ts DELAY OF INTERVAL 5 SECONDS \
                      QUALIFY row_number() OVER (PARTITION BY silver.ev.store ORDER BY main.silver.ev.ts) = 1";

/// Rows without a partner come once the watermark has passed them, first rows stay what they are, and late rows are counted, in the report
/// and in the system's table.
#[tokio::test]
async fn rows_without_a_partner_first_rows_and_late_ones_come_as_the_watermark_says() {
    let pipeline = pipeline(JOINED);
    assert!(pipeline.check_queries().await.expect("planned").problems.is_empty());
    let drops = tempfile::tempdir().expect("a folder");
    let event = |id: i64, store: &str, second: i64| json!({"id": id, "store": store, "ts": format!("2026-02-01T10:00:{second:02}Z")});
    let lake = shop::open(Arc::new(InMemory::new()));
    drop_file(drops.path(), "1.json", &[event(1, "n", 1), event(2, "n", 9), event(3, "s", 9)]);
    let report = run(&lake, &pipeline, drops.path()).await;
    assert!(report.datasets.iter().all(|dataset| dataset.error.is_none()), "{report:#?}");
    assert_eq!(rows(&lake, "silver.met").await, ["1|2"]);
    drop_file(drops.path(), "2.json", &[event(4, "w", 30), event(5, "s", 30)]);
    run(&lake, &pipeline, drops.path()).await;
    assert_eq!(rows(&lake, "silver.met").await, ["1|2", "2|∅", "3|∅"]);
    drop_file(drops.path(), "3.json", &[event(6, "n", 10), event(7, "s", 40), event(8, "w", 8)]);
    let report = run(&lake, &pipeline, drops.path()).await;
    let late = |last: &str| report.datasets.iter().find(|dataset| dataset.table == format!("silver.{last}")).expect("a report").rows_late;
    assert_eq!((late("met"), late("earliest_ev_in_time")), (2, 2), "{report:#?}");
    let met = ["1|2", "1|6", "2|6", "3|∅", "5|7", "6|∅", "8|∅"];
    assert_eq!(rows(&lake, "silver.met").await, met);
    let first: Vec<String> =
        rows(&lake, "silver.earliest").await.iter().map(|row| row.split('|').next().expect("a number").to_owned()).collect();
    assert_eq!(first, ["1", "3", "4"]);
    let runs = "SELECT `table`, sum(rows_late) AS late FROM system.tributary.runs GROUP BY `table` HAVING sum(rows_late) > 0";
    let runs = tributary::sql::query(&lake, runs).await.expect("a query").collect().await.expect("rows");
    let counted: Vec<String> = runs.iter().flat_map(shop::rows_as_text).collect();
    let counted: std::collections::BTreeSet<&str> = counted.iter().map(String::as_str).collect();
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), ["silver.earliest_ev_in_time|2", "silver.met|2"]);
}

/// What waits for ever is told by `validate`, with its file and line.
#[tokio::test]
async fn an_outer_join_of_streams_without_a_bound_in_time_is_told_before_it_runs() {
    let sql = "CREATE STREAMING TABLE met AS SELECT a.id AS a, b.id AS b FROM STREAM(ev) WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS a\n\
               LEFT JOIN STREAM(ev) WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS b ON a.id = b.id";
    let problems = pipeline(sql).check_queries().await.expect("planned").problems;
    let [problem] = problems.as_slice() else { panic!("{problems:#?}") };
    let place = problem.place.as_ref().expect("its place");
    assert_eq!((place.file.as_str(), place.line), ("tables.sql", 2), "{problem:#?}");
    assert!(problem.message().contains("no bound in time"), "{}", problem.message());
}
