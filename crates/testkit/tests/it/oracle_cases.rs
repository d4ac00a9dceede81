//! The oracle agrees with every worked history.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value as Json;
use tributary_testkit::cases::{self, ScdCase};
use tributary_testkit::oracle::{Event, Kind, Model, Refusal, Row};
use tributary_testkit::{Law, Value};

fn run(case: &ScdCase, scd2: bool) -> Result<Vec<Row>, String> {
    let model = case.model(scd2);
    let mut taken: Vec<Event> = Vec::new();
    for batch in case.batches() {
        let batch: Vec<Event> = batch.into_iter().map(|row| case.event(row, scd2)).collect();
        if scd2 && batch.iter().any(|event| event.kind == Kind::Truncate) {
            return Err("TRUNCATE_REQUIRES_SCD1".to_owned());
        }
        model.check(&batch).map_err(|refusal| match refusal {
            Refusal::NullKey => "NULL_KEY".to_owned(),
            Refusal::NullSequence => "NULL_SEQUENCE".to_owned(),
        })?;
        taken.extend(batch);
    }
    Ok(if scd2 { model.scd2(&taken) } else { model.scd1(&taken) })
}

#[test]
fn every_worked_history_has_its_result_for_both_types() {
    let cases = cases::scd();
    assert_eq!(cases.len(), 32);
    for case in &cases {
        for scd2 in [false, true] {
            let what = format!("{} type {}", case.name, if scd2 { 2 } else { 1 });
            match (run(case, scd2), case.expected(scd2)) {
                (Ok(mut rows), Some(mut expected)) => {
                    rows.sort();
                    expected.sort();
                    assert_eq!(rows, expected, "{what}");
                }
                (Err(error), None) => assert_eq!(Some(error.as_str()), case.expected_error(scd2), "{what}"),
                (found, expected) => panic!("{what}: {found:?} instead of {expected:?}"),
            }
        }
    }
}

#[test]
fn every_handed_case_is_read_and_none_is_dropped() {
    assert_eq!(cases::handed().len(), 94);
    assert_eq!(cases::handed_case("AC-01").severity, "critical");
}

fn row(name: &str) -> BTreeMap<String, Value> {
    [("id".to_owned(), Value::from(1)), ("name".to_owned(), Value::from(name))].into()
}

fn model() -> Model {
    Model::new(&["id"], &["id", "name"])
}

fn placed(event: Event, position: &str) -> Event {
    Event { position: Some(position.to_owned()), ..event }
}

fn upsert(name: &str, sequence: i64, position: &str) -> Event {
    placed(Event::upsert(vec![Value::from(1)], Value::from(sequence), row(name)), position)
}

fn cut(position: &str) -> Event {
    Event { sequence: None, ..placed(Event::delete(vec![Value::from(1)], Value::Null), position) }
}

fn shown(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| serde_json::to_string(&row.iter().map(Value::to_json).collect::<Json>()).expect("JSON")).collect()
}

#[test]
fn a_cut_takes_what_is_earlier_in_the_source_whatever_its_sequence() {
    let events = [upsert("a", 100, "1"), cut("2"), upsert("b", 50, "3")];
    assert_eq!(shown(&model().scd1(&events)), [r#"[1,"b"]"#]);
    assert_eq!(shown(&model().scd2(&events)), [r#"[1,"b",50,null]"#], "a live row has an open period");
    assert_eq!(shown(&model().soft_deleted(&events[..2])), [r#"[1,"a",true]"#]);
    assert!(model().scd1(&[upsert("a", 100, "1"), cut("2")]).is_empty());
}

#[test]
fn the_loser_behind_a_cut_comes_back_when_the_cut_takes_the_winner() {
    let before = [upsert("winner", 100, "1"), upsert("loser", 50, "3")];
    assert_eq!(shown(&model().scd1(&before)), [r#"[1,"winner"]"#]);
    let after = [before[0].clone(), before[1].clone(), cut("2")];
    assert_eq!(shown(&model().scd1(&after)), [r#"[1,"loser"]"#]);
}

#[test]
fn a_cut_closes_history_at_the_sequence_of_what_it_cuts_off() {
    let events = [upsert("a", 10, "1"), upsert("b", 20, "2"), cut("3"), upsert("c", 30, "4")];
    assert_eq!(shown(&model().scd2(&events)), [r#"[1,"a",10,20]"#, r#"[1,"c",30,null]"#]);
}

#[test]
fn a_state_that_lasts_for_no_sequence_joins_no_and_parts_no_neighbours() {
    let events = [upsert("a", 1, "1"), upsert("b", 2, "2"), upsert("a", 2, "3")];
    assert_eq!(shown(&model().scd2(&events)), [r#"[1,"a",1,null]"#]);
}

#[test]
fn a_truncate_is_a_cut_of_every_key_seen_or_not() {
    let truncate = Event { kind: Kind::Truncate, key: Vec::new(), ..cut("5") };
    assert!(model().scd1(&[upsert("a", 1, "3"), truncate.clone()]).is_empty());
    assert!(model().scd1(&[truncate.clone(), upsert("late", 9, "4")]).is_empty());
    assert_eq!(shown(&model().scd1(&[truncate, upsert("new", 1, "6")])), [r#"[1,"new"]"#]);
}

fn moved(from: i64, to: i64, name: &str, position: &str) -> [Event; 2] {
    let old = placed(Event::delete(vec![Value::from(from)], Value::from(position)), position);
    let mut row = row(name);
    row.insert("id".to_owned(), Value::from(to));
    row.insert("body".to_owned(), Value::from("__debezium_unavailable_value"));
    let new = Event {
        unavailable: ["body".to_owned()].into(),
        moved_from: Some(vec![Value::from(from)]),
        ..placed(Event::upsert(vec![Value::from(to)], Value::from(position), row), position)
    };
    [old, new]
}

#[test]
fn a_chain_of_key_changes_carries_what_was_not_sent_in_any_order_of_arrival() {
    let model = Model::new(&["id"], &["id", "name", "body"]);
    let mut first = row("x");
    first.insert("body".to_owned(), Value::from("LONG"));
    let create = placed(Event::upsert(vec![Value::from(1)], Value::from("1"), first), "1");
    let [d1, c2] = moved(1, 2, "y", "2");
    let [d2, c3] = moved(2, 3, "z", "3");
    let events = vec![create, d1, c2, d2, c3];
    let law = Law::new("a chain of key changes in any order");
    law.holds(&Just(events).prop_shuffle(), |events, _| {
        prop_assert_eq!(shown(&model.scd1(&events)), [r#"[3,"z","LONG"]"#]);
        Ok(())
    });
}

#[test]
fn merge_policies_take_the_first_the_last_and_what_advances() {
    let events = [upsert("b", 2, "2"), upsert("a", 1, "1"), upsert("c", 3, "3"), Event::delete(vec![Value::from(1)], Value::from(9))];
    assert_eq!(shown(&model().insert_only(&events)), [r#"[1,"a"]"#]);
    assert_eq!(shown(&model().last_writer_wins(&events)), [r#"[1,"c"]"#]);
    assert_eq!(shown(&model().append(&events)).len(), 3);
    let names = ["name".to_owned()];
    let events = [upsert("m", 1, "1"), upsert("z", 2, "2"), upsert("k", 3, "3"), upsert("z", 4, "4")];
    assert_eq!(shown(&model().monotonic_advance(&events, &names)), [r#"[1,"z"]"#]);
}
