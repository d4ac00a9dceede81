//! What a join of streams reads of the other stream, and what it refuses.

use std::time::Duration;

use tributary_fault::chain;
use tributary_specs::{DatasetReport, GoldSpec, StreamedTable};
use tributary_testkit::Frame;

use crate::stream_questions::{LEFT, RIGHT, Row, frame};
use crate::world::{World, name};

/// Commits of the left stream, an hour after each other.
const COMMITS: i64 = 24;
const ROWS: i64 = 50;

fn rows(commit: i64) -> Frame {
    let rows: Vec<Row> = (0..ROWS).map(|row| (commit * ROWS + row, Some(1), Some(commit * 60 + row))).collect();
    frame(&rows)
}

fn spec(table: &str, query: &str) -> GoldSpec {
    let wait = |stream: &str| StreamedTable::new(name(stream)).with_watermark("at", Duration::from_secs(60));
    GoldSpec::new(name(table), query).with_stream(wait(LEFT)).with_stream(wait(RIGHT))
}

fn read_of<'a>(report: &'a DatasetReport, table: &str) -> &'a tributary_specs::InputRead {
    report.inputs.iter().find(|input| input.table == table).unwrap()
}

/// Every row of the left stream has the key of the new row: only their times tell which can be its partner.
#[tokio::test]
async fn a_join_with_a_bound_in_time_reads_the_files_of_that_time_and_without_it_all() {
    let world = World::new();
    for commit in 0..COMMITS {
        world.append(LEFT, &rows(commit)).await.unwrap();
    }
    world.append(RIGHT, &frame(&[(0, Some(1), Some(3))])).await.unwrap();
    let select = "SELECT a.id AS shown, b.id AS clicked, a.at AS shown_at, b.at AS clicked_at FROM bronze.shown a";
    let bound = "b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES";
    let bounded = [
        spec("silver.inner", &format!("{select} JOIN bronze.clicked b ON a.k = b.k AND {bound}")),
        spec("silver.left_outer", &format!("{select} LEFT JOIN bronze.clicked b ON a.k = b.k AND {bound}")),
    ];
    let unbounded = spec("silver.unbounded", &format!("{select} JOIN bronze.clicked b ON a.k = b.k AND a.id % 2 = b.id % 2"));
    for spec in bounded.iter().chain([&unbounded]) {
        world.run(spec).await.unwrap();
    }
    let next = COMMITS * 60 - 40;
    world.append(RIGHT, &frame(&[(1, Some(1), Some(next))])).await.unwrap();
    let report = world.run(&unbounded).await.unwrap();
    assert_eq!(report.mode, "incremental");
    let all = read_of(&report, LEFT).clone();
    assert!(all.rows_read >= (COMMITS * ROWS) as u64, "{all:?}");
    // the watermark stands still at first, held back by the left stream, which the first run of the outer join has seen
    let report = world.run(&bounded[0]).await.unwrap();
    let read = read_of(&report, LEFT);
    assert_eq!((report.mode.as_str(), report.rows_inserted), ("incremental", 6), "{report:?}");
    assert!(read.rows_read <= 3 * ROWS as u64 && read.bytes_read * 4 < all.bytes_read, "{read:?} of {all:?}");
    let report = world.run(&bounded[1]).await.unwrap();
    assert_eq!(report.mode, "incremental", "{report:?}");
    // the next one of the last hour moves no watermark: what it reads is of its own hour
    world.append(RIGHT, &frame(&[(2, Some(1), Some(next))])).await.unwrap();
    let report = world.run(&bounded[1]).await.unwrap();
    let read = read_of(&report, LEFT);
    assert_eq!((report.mode.as_str(), report.rows_inserted), ("incremental", 6), "{report:?}");
    assert!(read.rows_read <= 4 * ROWS as u64 && read.bytes_read * 3 < all.bytes_read, "{read:?} of {all:?}");
    for spec in &bounded {
        world.run(spec).await.unwrap();
        let whole = GoldSpec { table: name(&format!("{}_whole", spec.table)), ..spec.clone() };
        world.run(&whole).await.unwrap();
        let [made, anew] = [world.rows(&spec.table.to_string()).await.unwrap(), world.rows(&whole.table.to_string()).await.unwrap()];
        assert!(tributary_testkit::FrameDiff::between(made, anew).compute().is_none(), "{}", spec.query);
    }
}

#[tokio::test]
async fn an_outer_join_whose_rows_would_wait_for_ever_is_refused_with_its_place() {
    let world = World::new();
    for stream in [LEFT, RIGHT] {
        world.append(stream, &frame(&[(0, Some(1), Some(3))])).await.unwrap();
    }
    let of = |on: &str| format!("SELECT a.id\nFROM bronze.shown a\nLEFT JOIN bronze.clicked b ON {on}");
    for (query, told) in [
        (of("a.k = b.k"), "say in ON that `at` of the other stream is at most a time of the row"),
        (of("a.k = b.k AND b.at >= a.at"), "(line 3, column 11)"),
        (of("a.k = b.k AND b.at < a.at + INTERVAL 1 MONTH"), ""),
        (of("a.k = b.k AND date_trunc('hour', b.at) <= a.at"), "no bound in time"),
        (of("a.k = b.k AND b.at <= TIMESTAMP '2026-01-01'"), "no bound in time"),
        (of("a.k = b.k AND b.at + INTERVAL 1 MONTH < a.at"), "no bound in time"),
        (
            "SELECT a.id FROM bronze.shown a FULL JOIN bronze.clicked b ON a.k = b.k AND b.at < a.at".to_owned(),
            "this FULL JOIN of two streams is not executed",
        ),
        (
            "SELECT a.k FROM bronze.shown a LEFT JOIN (SELECT k, max(at) AS at FROM bronze.clicked GROUP BY k) b ON a.k = b.k AND b.at < a.at"
                .to_owned(),
            "no bound in time",
        ),
    ] {
        let found = world.run(&spec("silver.t", &query)).await;
        match told {
            "" => drop(found.unwrap_or_else(|error| panic!("{query}: {}", chain(&error)))),
            told => {
                let found = found.err().unwrap_or_else(|| panic!("{query} is executed"));
                assert!(chain(&found).contains(told), "{query}: {}", chain(&found));
            }
        }
    }
    let unwatched = GoldSpec::new(name("silver.u"), of("a.k = b.k AND b.at <= a.at"))
        .with_stream(StreamedTable::new(name(LEFT)).with_watermark("at", Duration::from_secs(60)))
        .with_stream(StreamedTable::new(name(RIGHT)));
    let told = chain(&world.run(&unwatched).await.unwrap_err());
    assert!(told.contains("`bronze.clicked` has no watermark to wait for"), "{told}");
    let wrong = |column: &str| {
        GoldSpec::new(name("silver.u"), "SELECT k, count(*) AS n FROM bronze.shown GROUP BY k")
            .with_stream(StreamedTable::new(name(LEFT)).with_watermark(column, Duration::from_secs(60)))
    };
    for (column, told) in [("att", "did you mean `at`?"), ("id", "a watermark is of timestamps")] {
        let found = chain(&world.run(&wrong(column)).await.unwrap_err());
        assert!(found.contains(told), "{found}");
    }
}

/// Rows that come to a stream late enough change what was there alone, and a new delay makes the table anew.
#[tokio::test]
async fn a_late_partner_takes_the_place_of_a_row_without_one_and_another_delay_is_another_table() {
    let world = World::new();
    let query = "SELECT a.id AS shown, b.id AS clicked FROM bronze.shown a LEFT JOIN bronze.clicked b ON a.k = b.k AND b.at = a.at";
    world.append(LEFT, &frame(&[(0, Some(1), Some(3)), (1, Some(1), Some(30))])).await.unwrap();
    world.append(RIGHT, &frame(&[(0, Some(2), Some(20))])).await.unwrap();
    let waits = spec("silver.t", query);
    assert_eq!(world.run(&waits).await.unwrap().rows_out, 1);
    world.append(RIGHT, &frame(&[(1, Some(1), Some(3))])).await.unwrap();
    let report = world.run(&waits).await.unwrap();
    assert_eq!((report.mode.as_str(), report.rows_late, report.rows_inserted + report.rows_updated), ("incremental", 1, 1), "{report:?}");
    assert!(report.notes.contains(&"1 rows of `bronze.clicked` came later than its watermark, and were applied".to_owned()), "{report:?}");
    let patient = |stream: &str| StreamedTable::new(name(stream)).with_watermark("at", Duration::from_secs(6000));
    let longer = GoldSpec { streams: vec![patient(LEFT), patient(RIGHT)], ..waits };
    let report = world.run(&longer).await.unwrap();
    assert_eq!((report.mode.as_str(), report.reason.as_str()), ("full", "the definition changed"), "{report:?}");
}
