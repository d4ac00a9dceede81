//! Histories are legal, deliveries complete, and the oracle is what the source says.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value as Json;
use tributary_testkit::oracle::{Event, Model, Row};
use tributary_testkit::strategy::{
    ChangeKind, DeliveryPlan, History, Snapshot, SourceTable, UNAVAILABLE, bronze_frame, damage, delivery, envelope_forms, envelopes,
    shuffle, source_history,
};
use tributary_testkit::{FrameDiff, Law, Value, example};

const STATEMENTS_MAX: usize = 40;

fn tables() -> impl Strategy<Value = SourceTable> {
    (any::<bool>(), 1..4i32).prop_map(|(full, partitions)| {
        let table = if full { SourceTable::customers() } else { SourceTable::orders() };
        SourceTable { partitions, ..table }
    })
}

fn histories() -> impl Strategy<Value = History> {
    tables().prop_flat_map(|table| source_history(table, STATEMENTS_MAX))
}

fn histories_with_a_jumping_clock() -> impl Strategy<Value = History> {
    tables().prop_flat_map(|table| source_history(SourceTable { clock_steps_back: true, ..table }, STATEMENTS_MAX))
}

fn deliveries() -> impl Strategy<Value = DeliveryPlan> {
    prop_oneof![delivery(), shuffle()]
}

fn model(history: &History) -> Model {
    Model::new(&history.table.key_names(), &history.table.column_names())
}

fn events(history: &History, sequence: Option<&str>) -> Vec<Event> {
    history.changes.iter().map(|change| change.event(&history.table, sequence)).collect()
}

#[test]
fn law_the_row_by_position_and_by_a_good_clock_is_the_row_of_the_source() {
    Law::new("the oracle ends where the source does").holds(&histories(), |history, tried| {
        tried.add("changes", history.changes.len());
        for sequence in [None, Some("updated_at")] {
            let events = events(&history, sequence);
            prop_assert_eq!(model(&history).check(&events), Ok(()));
            prop_assert_eq!(model(&history).scd1(&events), history.final_rows(), "sequence {:?}", sequence);
        }
        Ok(())
    });
}

#[test]
fn law_history_has_one_open_period_for_each_live_row_and_no_overlap() {
    Law::new("S3 of the oracle").holds(&histories_with_a_jumping_clock(), |history, tried| {
        tried.add("changes", history.changes.len());
        for sequence in [None, Some("updated_at")] {
            let model = model(&history);
            let events = events(&history, sequence);
            let (current, periods) = (model.scd1(&events), model.scd2(&events));
            let width = model.columns.len();
            let open: Vec<Row> = periods.iter().filter(|row| row[width + 1].is_null()).map(|row| row[..width].to_vec()).collect();
            prop_assert_eq!(&open, &current);
            let mut of_key: BTreeMap<Vec<Value>, Vec<&Row>> = BTreeMap::new();
            for row in &periods {
                of_key.entry(row[..model.keys.len()].to_vec()).or_default().push(row);
            }
            for periods in of_key.values() {
                for period in periods {
                    prop_assert!(period[width + 1].is_null() || period[width] < period[width + 1], "a period has a width: {:?}", period);
                }
                for pair in periods.windows(2) {
                    prop_assert!(!pair[0][width + 1].is_null() && pair[0][width + 1] <= pair[1][width], "{:?} then {:?}", pair[0], pair[1]);
                    let touch = pair[0][width + 1] == pair[1][width];
                    prop_assert!(!touch || pair[0][..width] != pair[1][..width], "equal neighbours are one");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn law_the_oracle_looks_at_no_order_of_arrival_and_no_repeat() {
    Law::new("the oracle is a function of a set").holds(&(histories_with_a_jumping_clock(), deliveries()), |(history, plan), tried| {
        let events = events(&history, Some("updated_at"));
        let delivered: Vec<Event> = plan.batches(&history.partitions()).concat().into_iter().map(|at| events[at].clone()).collect();
        tried.add("deliveries", delivered.len());
        let model = model(&history);
        prop_assert_eq!(model.scd1(&delivered), model.scd1(&events));
        prop_assert_eq!(model.scd2(&delivered), model.scd2(&events));
        prop_assert_eq!(model.soft_deleted(&delivered), model.soft_deleted(&events));
        Ok(())
    });
}

#[test]
fn law_every_delivery_is_complete_and_keeps_a_partitions_order_between_restarts() {
    Law::new("deliveries are complete").holds(&(histories(), delivery(), shuffle()), |(history, by_partition, shuffled), tried| {
        let partitions = history.partitions();
        let all: BTreeSet<usize> = (0..partitions.len()).collect();
        for plan in [&by_partition, &shuffled] {
            let batches = plan.batches(&partitions);
            tried.add("batches", batches.len());
            prop_assert_eq!(&batches.concat().into_iter().collect::<BTreeSet<_>>(), &all);
            prop_assert!(batches.iter().all(|batch| !batch.is_empty()));
        }
        let stream = by_partition.batches(&partitions).concat();
        for partition in partitions.iter().collect::<BTreeSet<_>>() {
            let of: Vec<usize> = stream.iter().copied().filter(|at| partitions[*at] == *partition).collect();
            let queue: Vec<usize> = all.iter().copied().filter(|at| partitions[*at] == *partition).collect();
            let place = |at: &usize| queue.iter().position(|other| other == at).unwrap_or_default();
            prop_assert!(of.windows(2).all(|pair| place(&pair[1]) <= place(&pair[0]) + 1), "nothing is skipped");
        }
        Ok(())
    });
}

#[test]
fn histories_hold_what_they_are_generated_for() {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..400 {
        let history = example(&histories(), seed);
        let mut count = |what, n: usize| *found.entry(what).or_default() += n;
        let changes = &history.changes;
        count("truncates", changes.iter().filter(|change| change.kind == ChangeKind::Truncate).count());
        count("snapshot rows", changes.iter().filter(|change| change.snapshot == Snapshot::Initial).count());
        count("rows read again", changes.iter().filter(|change| change.snapshot == Snapshot::Incremental).count());
        count("unsent values", changes.iter().filter(|change| !change.unavailable.is_empty()).count());
        count(
            "key changes with unsent values",
            changes.iter().filter(|change| change.moved_from.is_some() && !change.unavailable.is_empty()).count(),
        );
        let sources: BTreeSet<_> = changes.iter().filter_map(|change| change.moved_from.as_ref()).collect();
        count("chains", changes.iter().filter(|change| change.moved_from.is_some() && sources.contains(&change.key)).count());
        count("no-op updates", changes.iter().filter(|change| change.kind == ChangeKind::Update && change.before == change.after).count());
        let stamps = |pair: &[&Event]| pair[0].key == pair[1].key && pair[0].sequence == pair[1].sequence && pair[0].sequence.is_some();
        let events = events(&history, Some("updated_at"));
        let mut by_key: Vec<&Event> = events.iter().collect();
        by_key.sort_by(|a, b| (&a.key, &a.position).cmp(&(&b.key, &b.position)));
        count("equal stamps of one key", by_key.windows(2).filter(|pair| stamps(pair)).count());
        count("cuts", events.iter().filter(|event| event.is_cut()).count());
        count(
            "trusted deletes",
            changes.iter().zip(&events).filter(|(change, event)| change.kind == ChangeKind::Delete && !event.is_cut()).count(),
        );
        let mut deleted = BTreeSet::new();
        for change in changes {
            match change.kind {
                ChangeKind::Delete => drop(deleted.insert(change.key.clone())),
                ChangeKind::Create if deleted.contains(&change.key) => count("keys that come back", 1),
                _ => {}
            }
        }
        let halves = changes.windows(2).filter(|pair| pair[0].moved_to.is_some() && pair[0].partition != pair[1].partition).count();
        count("key changes over two partitions", halves);
    }
    println!("{found:?}");
    assert!(found.len() == 12 && found.values().all(|n| *n >= 20), "{found:?}");
}

#[test]
fn law_records_say_what_a_connector_would_say_and_no_more() {
    Law::new("records of histories").holds(&(histories(), envelope_forms()), |(history, form), tried| {
        let records = envelopes(&history, form);
        tried.add("records", records.len());
        let shown: Vec<usize> = records.iter().filter_map(|record| record.change).collect();
        prop_assert_eq!(shown, (0..history.changes.len()).collect::<Vec<_>>());
        let mut offsets: BTreeMap<(&str, i32), i64> = BTreeMap::new();
        for record in &records {
            let next = offsets.entry((&record.topic, record.partition)).or_default();
            prop_assert_eq!(record.offset, *next);
            *next += 1;
            let Some(change) = record.change.map(|at| &history.changes[at]) else { continue };
            let value: Json = serde_json::from_str(record.value.as_deref().unwrap_or("null")).expect("JSON");
            let payload = if form.wrapped { &value["payload"] } else { &value };
            prop_assert_eq!(payload["op"].as_str(), Some(change.kind.letter()));
            prop_assert_eq!(record.key.is_none(), change.kind == ChangeKind::Truncate);
            for name in history.table.column_names() {
                let unsent = payload["after"][&name].as_str() == Some(UNAVAILABLE);
                prop_assert_eq!(unsent, change.unavailable.contains(&name));
            }
            if change.kind == ChangeKind::Delete && history.table.name == "orders" {
                prop_assert!(payload["before"]["note"].is_null());
                prop_assert_eq!(payload["before"]["updated_at"].as_str(), Some("1970-01-01T00:00:00.000000Z"));
            }
        }
        Ok(())
    });
}

#[test]
fn golden_records_of_a_small_history() {
    let table = SourceTable { rereads: false, ..SourceTable::orders() };
    let history = example(&source_history(table, 12), 20);
    let mut text = format!("{history:?}\n");
    for wrapped in [false, true] {
        let mut form = example(&envelope_forms(), 1);
        (form.wrapped, form.tombstones, form.precise_decimals, form.heartbeats, form.unknown_fields) = (wrapped, true, true, true, wrapped);
        for record in envelopes(&history, form).iter().take(if wrapped { 1 } else { 40 }) {
            text.push_str(&format!(
                "{} {} {} {}\n  {}\n  {:?}\n",
                record.topic,
                record.partition,
                record.offset,
                record.key.as_deref().unwrap_or("null"),
                record.value.as_deref().unwrap_or("null"),
                record.headers
            ));
        }
    }
    text.push_str(&format!("\n{}\n", bronze_frame(&history.table, &history.changes, 0)));
    tributary_testkit::assert_golden!("tests/golden/records.txt", text);
}

#[test]
fn law_bronze_rows_keep_nothing_the_connector_did_not_send() {
    Law::new("bronze rows of histories").holds(&histories(), |history, tried| {
        let frame = bronze_frame(&history.table, &history.changes, 5);
        tried.add("rows", frame.len());
        let note = history.table.column_names().iter().position(|name| name == "note");
        for (row, change) in frame.rows().iter().zip(&history.changes) {
            if let Some(note) = note.filter(|_| change.unavailable.contains("note")) {
                prop_assert!(row[note].is_null());
            }
        }
        prop_assert!(FrameDiff::between(&frame, bronze_frame(&history.table, &history.changes, 5)).in_order().compute().is_none());
        Ok(())
    });
}

#[test]
fn law_damage_does_harm_and_never_more_than_bytes_can_bear() {
    let bytes = br#"{"before":null,"after":{"id":1,"name":"x"},"op":"c"}"#.to_vec();
    let original = bytes.clone();
    Law::new("damage").holds(&damage(bytes), move |damaged, tried| {
        tried.add("damaged", usize::from(damaged != original));
        tried.add("still JSON", usize::from(serde_json::from_slice::<Json>(&damaged).is_ok()));
        prop_assert!(damaged.len() < 100_000);
        Ok(())
    });
}
