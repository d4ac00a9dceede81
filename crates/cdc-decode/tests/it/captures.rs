//! Every capture, decoded and applied, is the source's final state.

use std::collections::BTreeMap;

use tributary_cdc_decode::{Decoded, Decoder};
use tributary_specs::{Decode, SourceFeed};

use crate::capture::{ALL, Event, events, expected, with_records};
use crate::feeds::{column, declared, feed};
use crate::replay::Replica;

fn is_wrapped(capture: &str) -> bool {
    capture.contains("schema")
}

/// A person's feed for a table of a capture.
pub fn feed_for(capture: &str, table: &str) -> SourceFeed {
    let decode = if capture.contains("unwrap") { Decode::DebeziumFlattened } else { Decode::Debezium };
    let columns = match (is_wrapped(capture), capture.starts_with("mysql"), table) {
        (false, ..) => declared(capture, table),
        // Not even the schema block says that these are unsigned.
        (true, true, "inventory") => vec![column("qty_total decimal(20,0) unsigned")],
        (true, true, "stock_moves") => vec![column("id decimal(20,0) unsigned")],
        (true, ..) => Vec::new(),
    };
    feed(decode, columns)
}

/// The events of one table.
pub fn of_table(all: &[Event], table: &str) -> Vec<Event> {
    all.iter().filter(|event| event.topic.rsplit('.').next() == Some(table) && event.topic.matches('.').count() == 2).cloned().collect()
}

fn decode_in(feed: &SourceFeed, events: &[Event], size: usize) -> Vec<Decoded> {
    let mut decoder = Decoder::new(feed).unwrap();
    events
        .chunks(size.max(1))
        .map(|chunk| {
            let decoded = with_records(chunk, |records| decoder.decode(records, 0));
            let ignored: u64 = decoded.ignored.values().sum();
            assert!(decoded.stop.is_none(), "{:?}", decoded.stop);
            assert_eq!(chunk.len(), decoded.batch.num_rows() + decoded.rejects.len() + usize::try_from(ignored).unwrap());
            decoded
        })
        .collect()
}

/// Columns in which replicas differ, because the source's own settings lost something: part of the captures' names, the
/// table, the columns, how many captures, and what was lost.
const LOST: &[(&str, &str, &[&str], usize, &str)] = &[
    ("mysql", "inventory", &["made_on", "checked_s", "loaded_at"], 4, "zero dates come as null"),
    ("mysql", "inventory", &["vintage"], 4, "the year 0000 comes as 1900"),
    ("mysql-json-schema", "inventory", &["reserved"], 1, "ADD COLUMN … DEFAULT sends no row"),
    ("mysql-json-schema", "inventory", &["raw_code"], 1, "a renamed column sends no row"),
    ("mysql-json-string-isostring", "inventory", &["span"], 1, "times outside a day come as null"),
    ("mysql-json-default", "inventory", &["unit_cost"], 1, "a bare decimal's scale changes unseen"),
    ("mysql-unwrap-rewrite", "inventory", &["unit_cost"], 1, "a bare decimal's scale changes unseen"),
    ("unwrap-rewrite", "stock_moves", &["*"], 1, "flattening drops TRUNCATE"),
    ("unwrap-rewrite", "order_items", &["*"], 1, "flattening drops TRUNCATE"),
    ("postgres", "customers", &["contact_tz"], 9, "the zone of a time is lost"),
    ("postgres", "customers", &["visit_length"], 9, "an interval comes as a number, or as another text of the same length"),
    ("double-connect", "customers", &["balance"], 2, "a double has not that many digits"),
    ("double-connect", "customers", &["last_seen", "contact_from"], 2, "connect's times have milliseconds"),
    ("postgres-json-string-isostring", "customers", &["contact_from"], 1, "isostring turns 24:00 into 00:00"),
    ("postgres", "orders", &["discount_pct", "sales_channel"], 8, "ADD COLUMN … DEFAULT and RENAME send no row"),
    ("postgres-json-default", "orders", &["unit_price"], 2, "a bare decimal's scale changes unseen"),
    ("postgres-txmeta-heartbeat", "orders", &["unit_price"], 1, "a bare decimal's scale changes unseen"),
    ("postgres-unwrap-rewrite", "orders", &["unit_price"], 1, "a bare decimal's scale changes unseen"),
    ("nokey", "settings", &["level"], 2, "ADD COLUMN … DEFAULT sends no row"),
    ("postgres-null-default", "settings", &["active", "colour", "ratio", "since", "size"], 1, "null comes as the column's default"),
];

#[test]
fn every_capture_applied_is_the_final_state_of_its_source() {
    let mut unexplained = Vec::new();
    let mut met: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for capture in ALL {
        let all = events(capture);
        for (table, expected) in expected(capture) {
            let feed = feed_for(capture, &table);
            let decoded = decode_in(&feed, &of_table(&all, &table), 1_000_000);
            let mut replica = Replica::default();
            for part in &decoded {
                assert!(part.rejects.is_empty(), "{capture} {table}: {:?}", part.rejects);
                replica.apply(&part.batch, &expected);
            }
            for (column, difference) in replica.differences(&expected) {
                let reason = LOST.iter().enumerate().find_map(|(at, (part, of, columns, ..))| {
                    let named = columns.iter().find(|name| **name == column)?;
                    (capture.contains(part) && *of == table).then_some((at, *named))
                });
                match reason {
                    Some(reason) => *met.entry(reason).or_default() += 1,
                    None => unexplained.push(format!("{capture} {table}.{column}: {difference}")),
                }
            }
        }
    }
    for (at, (part, table, columns, count, why)) in LOST.iter().enumerate() {
        for column in *columns {
            let found = met.get(&(at, *column)).copied().unwrap_or(0);
            if found != *count {
                unexplained.push(format!("{part} {table}.{column} ({why}): {found} captures differ where {count} should"));
            }
        }
    }
    assert!(unexplained.is_empty(), "differences that nothing explains:\n{}", unexplained.join("\n"));
}
