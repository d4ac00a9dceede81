//! Every worked history, for both types: as it arrives, in one batch, one event a batch, and shuffled.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use proptest::prelude::*;
use serde_json::Value as Json;
use tributary_silver_merge::Error;
use tributary_specs::{Column, ColumnSelection, Deletes, IgnoreNullUpdates, MergePolicy, SilverSpec};
use tributary_testkit::cases::{self, ScdCase};
use tributary_testkit::{Law, Tried};

use crate::world::{World, block_on, columns_of, feed_replays_to_the_table, json_frame, sorted, spec, target};

type SourceRow = BTreeMap<String, Json>;

fn dataset(case: &ScdCase, scd2: bool) -> SilverSpec {
    let options = case.options_of(scd2);
    let selection = |only: &Option<Vec<String>>, except: &Option<Vec<String>>| match (only, except) {
        (Some(columns), _) => ColumnSelection::Only(columns.clone()),
        (None, Some(columns)) => ColumnSelection::Except(columns.clone()),
        (None, None) => ColumnSelection::All,
    };
    let policy = match scd2 {
        true => MergePolicy::ScdType2 { track_history: selection(&options.track_history, &options.track_history_except) },
        false => MergePolicy::ScdType1,
    };
    let keys: Vec<&str> = case.keys.iter().map(String::as_str).collect();
    SilverSpec {
        sequence_by: case.sequence_by.columns(),
        deletes: Deletes {
            apply_as_delete_when: options.apply_as_delete_when.clone(),
            apply_as_truncate_when: options.apply_as_truncate_when.clone(),
            ..Deletes::default()
        },
        columns: selection(&options.columns, &options.columns_except),
        ignore_null_updates: if options.ignore_null_updates { IgnoreNullUpdates::All } else { IgnoreNullUpdates::Off },
        ..spec("case", &keys, policy)
    }
}

/// Source columns as the events of these batches have them, typed over all events.
fn source_columns(case: &ScdCase, batch: &[&SourceRow]) -> Vec<Column> {
    let all: Vec<Json> = case.events.iter().map(object).collect();
    let names: Vec<String> = case.source_columns().into_iter().filter(|name| batch.iter().any(|row| row.contains_key(name))).collect();
    columns_of(&names, all.iter())
}

fn object(row: &SourceRow) -> Json {
    Json::Object(row.iter().filter(|(name, _)| *name != "_batch").map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Runs a case cut into these batches and compares with what is expected.
async fn check(case: &ScdCase, scd2: bool, batches: &[Vec<&SourceRow>]) -> Result<()> {
    let world = World::new();
    let dataset = dataset(case, scd2);
    let mut failure = None;
    for batch in batches {
        let rows: Vec<Json> = batch.iter().map(|row| object(row)).collect();
        world.append(&dataset.sources[0], &json_frame(&source_columns(case, batch), &rows)).await?;
        let before = world.lake.table(&dataset.table).await?.map(|table| table.version());
        if let Err(error) = world.run(&dataset).await {
            let after = world.lake.table(&dataset.table).await?.map(|table| table.version());
            ensure!(before == after || before.is_none(), "a refused batch wrote something");
            failure = Some(error);
            break;
        }
    }
    let Some(expected) = case.expected(scd2) else {
        let Some(error) = failure else { anyhow::bail!("it should end with {:?}", case.expected_error(scd2)) };
        return expect_error(&error, case.expected_error(scd2).unwrap_or_default());
    };
    if let Some(error) = failure {
        return Err(anyhow::Error::new(error));
    }
    let mut columns = case.model(scd2).columns;
    if scd2 {
        columns.extend(["__START_AT".to_owned(), "__END_AT".to_owned()]);
    }
    let found = sorted(&world.rows(&target("case"), &columns.iter().map(String::as_str).collect::<Vec<_>>()).await?);
    let mut expected = expected;
    expected.sort();
    ensure!(found == expected, "found {found:?}\nexpected {expected:?}");
    let schema = world.table(&target("case")).await?.schema();
    let extra: Vec<&String> =
        schema.fields().iter().map(|field| field.name()).filter(|name| !columns.contains(name) && !name.starts_with("__")).collect();
    ensure!(extra.is_empty(), "columns nobody asked for: {extra:?}");
    feed_replays_to_the_table(&world, &target("case")).await
}

fn expect_error(error: &Error, named: &str) -> Result<()> {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    ensure!(text.contains(named), "{text}\nshould name {named}");
    Ok(())
}

fn all_cases() -> Vec<(ScdCase, bool)> {
    cases::scd().into_iter().flat_map(|case| [(case.clone(), false), (case, true)]).collect()
}

fn check_all(how: &str, cut: impl Fn(&ScdCase) -> Vec<Vec<&SourceRow>>) {
    let cases = all_cases();
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|(case, scd2)| {
            let outcome = block_on(check(case, *scd2, &cut(case)));
            outcome.err().map(|why| format!("{} type {}: {why:#}", case.name, if *scd2 { 2 } else { 1 }))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} fail\n{}", failures.len(), cases.len(), failures.join("\n\n"));
    println!("worked histories {how}: {} runs, 0 differences", cases.len());
}

#[test]
fn every_worked_history_as_it_arrives() {
    check_all("as they arrive", ScdCase::batches);
}

#[test]
fn every_worked_history_in_one_batch() {
    check_all("in one batch", |case| vec![case.events.iter().collect()]);
}

#[test]
fn every_worked_history_one_event_a_batch() {
    check_all("one event a batch", |case| case.events.iter().map(|event| vec![event]).collect());
}

#[test]
fn law_every_worked_history_in_any_order_cut_anywhere() {
    // Refused ones depend on what had been taken before the refusal; their atomicity is shown above.
    let cases: Vec<(ScdCase, bool)> = all_cases().into_iter().filter(|(case, scd2)| case.expected(*scd2).is_some()).collect();
    let strategy = proptest::sample::select(cases).prop_flat_map(|(case, scd2)| {
        let order: Vec<usize> = (0..case.events.len()).collect();
        (Just(case), Just(scd2), Just(order).prop_shuffle(), proptest::collection::vec(1..4usize, 1..4))
    });
    let law = Law::new("worked histories shuffled and cut anywhere").within(std::time::Duration::from_secs(10));
    law.holds(&strategy, |(case, scd2, order, sizes), tried: &mut Tried| {
        let events: Vec<&SourceRow> = order.iter().map(|at| &case.events[*at]).collect();
        let batches = cut(&events, &sizes);
        tried.add("batches", batches.len());
        block_on(check(&case, scd2, &batches)).map_err(|why| TestCaseError::fail(format!("{}: {why:#}", case.name)))
    });
}

fn cut<'a>(events: &[&'a SourceRow], sizes: &[usize]) -> Vec<Vec<&'a SourceRow>> {
    let mut rest = events;
    let mut batches = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (batch, after) = rest.split_at((*size).min(rest.len()));
        batches.push(batch.to_vec());
        rest = after;
    }
    batches
}
