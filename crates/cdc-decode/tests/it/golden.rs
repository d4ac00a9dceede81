//! What each capture becomes, table by table, for a person to read when it changes.

use std::collections::BTreeMap;
use std::fmt::Write;

use tributary_cdc_decode::Decoder;

use crate::capture::{ALL, events, expected};
use crate::captures::{feed_for, of_table};
use crate::message::{cells, decode_with};

#[test]
fn golden_captures() {
    for capture in ALL {
        let all = events(capture);
        let mut text = String::new();
        for table in expected(capture).keys() {
            let mut decoder = Decoder::new(&feed_for(capture, table)).unwrap();
            let events = of_table(&all, table);
            let decoded = decode_with(&mut decoder, &events);
            let mut ops: BTreeMap<String, usize> = BTreeMap::new();
            for op in cells(&decoded.batch, "_op") {
                *ops.entry(op).or_default() += 1;
            }
            let positions = cells(&decoded.batch, "_position");
            let count = |column: &str| cells(&decoded.batch, column).iter().filter(|cell| *cell != "∅").count();
            writeln!(text, "{table}: {} events, {} rows", events.len(), decoded.batch.num_rows()).unwrap();
            for column in decoder.columns().iter().take_while(|column| column.name != "_op") {
                writeln!(text, "  {} {}, {} values", column.name, column.data_type, count(&column.name)).unwrap();
            }
            writeln!(text, "  operations {ops:?}").unwrap();
            writeln!(
                text,
                "  ignored {:?}, rejected {}, duplicate keys {}",
                decoded.ignored,
                decoded.rejects.len(),
                decoded.duplicate_keys
            )
            .unwrap();
            for column in ["_before", "_unavailable", "_key_changed_from", "_key_changed_to", "_rescued_data"] {
                writeln!(text, "  {column} {}", count(column)).unwrap();
            }
            writeln!(text, "  first {}\n  last  {}", positions[0], positions[positions.len() - 1]).unwrap();
            for (note, times) in &decoded.notes {
                writeln!(text, "  note {times} × {note}").unwrap();
            }
        }
        tributary_testkit::assert_golden!(format!("tests/golden/{capture}.txt"), text);
    }
}
