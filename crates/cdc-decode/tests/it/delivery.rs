//! The rows do not depend on how records are cut into batches, nor on restarts between them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tributary_cdc_decode::{BeforeImages, Decoder, LastRow, Resume};
use tributary_testkit::Law;

use crate::capture::{Event, events, with_records};
use crate::captures::{feed_for, of_table};
use crate::message::{cells, rows};

type Rows = Vec<BTreeMap<String, String>>;

/// Captures and tables whose columns keep their types, so that a row looks the same in every batch.
const TABLES: [(&str, &str); 7] = [
    ("postgres-incremental-snapshot", "customers"),
    ("postgres-incremental-snapshot", "orders"),
    ("postgres-json-default", "customers"),
    ("postgres-json-schema", "customers"),
    ("postgres-unwrap-rewrite", "order_items"),
    ("mysql-json-default", "stock_moves"),
    ("postgres-null-kept-nokey", "settings"),
];

/// Decodes in batches that end at the cuts; at every second cut by a decoder of its own that is told what the table holds.
fn decode(capture: &str, table: &str, events: &[Event], cuts: &[usize], restart: bool) -> Rows {
    let feed = feed_for(capture, table);
    let mut decoder = Decoder::new(&feed).unwrap();
    let mut partitions: BTreeMap<(String, i32), LastRow> = BTreeMap::new();
    let mut before_images: Option<BeforeImages> = None;
    let mut all = Rows::new();
    let mut start = 0;
    for (number, cut) in cuts.iter().copied().chain([events.len()]).enumerate() {
        let chunk = &events[start.min(cut)..cut];
        start = cut.max(start);
        let decoded = with_records(chunk, |records| decoder.decode(records, 0));
        assert!(decoded.stop.is_none() && decoded.rejects.is_empty(), "{:?} {:?}", decoded.stop, decoded.rejects);
        let source = cells(&decoded.batch, "_source");
        for (row, source) in rows(&decoded.batch).into_iter().zip(source) {
            let part =
                |name: &str| source.split(&format!("{name}: ")).nth(1).and_then(|rest| rest.split([',', '}']).next()).map(str::to_owned);
            let last =
                LastRow { position: row["_position"].clone(), server: part("server").filter(|server| server != "∅"), source_ts_us: None };
            partitions.insert((row["_topic"].clone(), row["_partition"].parse().unwrap()), last);
            if matches!(row["_op"].as_str(), "update" | "delete") {
                let shown = BeforeImages { position: row["_position"].clone(), complete: row.contains_key("_before") };
                match &mut before_images {
                    Some(known) if known.position > shown.position => {}
                    Some(known) if known.position == shown.position => known.complete &= shown.complete,
                    known => *known = Some(shown),
                }
            }
            all.push(row);
        }
        if restart && number % 2 == 1 && !all.is_empty() {
            let columns = decoder.columns();
            decoder = Decoder::new(&feed).unwrap();
            decoder.resume(Resume { columns, partitions: partitions.clone(), before_images: before_images.clone() });
        }
    }
    all
}

#[test]
fn law_rows_do_not_depend_on_cuts_and_restarts() {
    let all: Vec<(&str, &str, Vec<Event>)> =
        TABLES.iter().map(|(capture, table)| (*capture, *table, of_table(&events(capture), table))).collect();
    let whole: Vec<Rows> = all.iter().map(|(capture, table, events)| decode(capture, table, events, &[], false)).collect();
    let strategy = (0..TABLES.len(), prop::collection::vec(any::<prop::sample::Index>(), 0..8), any::<bool>());
    Law::new("cuts").holds(&strategy, |(at, cuts, restart), tried| {
        let (capture, table, events) = &all[at];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(events.len() + 1)).collect();
        cuts.sort_unstable();
        let rows = decode(capture, table, events, &cuts, restart);
        tried.add("rows", rows.len());
        for (row, expected) in rows.iter().zip(&whole[at]) {
            let differs = |(name, cell): &(&String, &String)| expected.get(*name) != Some(*cell);
            let cells: Vec<_> = row.iter().filter(differs).map(|(name, cell)| (name, cell, expected.get(name))).collect();
            prop_assert_eq!(row.len(), expected.len(), "{} {}", capture, table);
            prop_assert!(cells.is_empty(), "{} {} {:?}", capture, table, cells);
        }
        prop_assert_eq!(rows.len(), whole[at].len());
        Ok(())
    });
}
