//! G1 and G2: a view that follows its inputs equals one that is refreshed in full, for random queries over random changes in random
//! cuts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::{Column, DatasetReport, GoldSpec, Refresh, Status};
use tributary_testkit::{Frame, FrameDiff, Law, Value};

use crate::changes::Told;
use crate::queries::{Query, distinct, query, sums, uncounted};
use crate::world::{World, name};

/// Cases of the law, and runs that follow in which each operator must be.
const CASES: u64 = 1_000;
const RUNS_OF_OPERATOR_MIN: u64 = 30;
const OPERATORS: [&str; 31] = [
    "projection",
    "filter",
    "inner join",
    "left join",
    "right join",
    "full join",
    "semi join",
    "anti join",
    "not in",
    "mark join",
    "self join",
    "union",
    "group by",
    "all rows",
    "sum",
    "filtered count",
    "count",
    "avg",
    "min",
    "max",
    "count distinct",
    "stddev",
    "variance",
    "first by order",
    "last by order",
    "percentile",
    "having",
    "distinct",
    "window",
    "with",
    "nested aggregate",
];

const TABLES: [(&str, &[(&str, &str)]); 3] = [
    (
        "silver.orders",
        &[("id", "long"), ("customer", "long"), ("status", "string"), ("amount", "long"), ("price", "double"), ("day", "long")],
    ),
    ("silver.customers", &[("id", "long"), ("region", "string"), ("tier", "long")]),
    ("silver.items", &[("order_id", "long"), ("sku", "string"), ("qty", "long")]),
];

/// One commit: rows that go, by number, and rows that come, made of small numbers.
#[derive(Debug, Clone)]
struct Change {
    table: usize,
    gone: BTreeSet<usize>,
    come: Vec<[u8; 5]>,
}

#[derive(Debug, Clone)]
struct Case {
    /// What says the query.
    bytes: Vec<u8>,
    /// Whether every order has an amount.
    filled: bool,
    /// Changes between two runs.
    batches: Vec<Vec<Change>>,
}

fn whole(number: u8) -> Value {
    if number == 0 { Value::Null } else { Value::Int(i128::from(number) - 3) }
}

fn word(number: u8, words: &[&str]) -> Value {
    words.get(usize::from(number)).map_or(Value::Null, |word| Value::text(*word))
}

fn row(table: usize, id: i64, [a, b, c, d, e]: [u8; 5], filled: bool) -> Vec<Value> {
    match table {
        0 => vec![
            Value::Int(id.into()),
            whole(a % 7),
            word(b % 4, &["new", "paid", "sent"]),
            whole(if filled { c % 8 + 1 } else { c % 9 }),
            if d % 6 == 0 { Value::Null } else { Value::Float(f64::from(d % 6) * 0.1) },
            whole(e % 5),
        ],
        1 => vec![Value::Int(i128::from(a % 5)), word(b % 4, &["north", "south", "east"]), whole(c % 6)],
        _ => vec![Value::Int(i128::from(a % 12)), word(b % 4, &["x", "y", "z"]), whole(c % 7)],
    }
}

fn frame(table: usize, first: i64, rows: &[[u8; 5]], filled: bool) -> Frame {
    let columns: Vec<Column> = TABLES[table].1.iter().map(|(name, data_type)| Column::new(*name, data_type.parse().unwrap())).collect();
    let rows: Vec<_> = rows.iter().zip(first..).map(|(numbers, id)| row(table, id, *numbers, filled)).collect();
    Frame::of(&columns, &rows)
}

fn changes() -> impl Strategy<Value = Change> {
    // most queries read orders
    (0..4_usize, btree_set(0..14_usize, 0..4), vec(any::<[u8; 5]>(), 0..4)).prop_map(|(table, gone, come)| Change {
        table: table % TABLES.len(),
        gone,
        come,
    })
}

fn cases() -> impl Strategy<Value = Case> {
    (vec(any::<u8>(), 24), any::<bool>(), vec(vec(changes(), 1..4), 1..3)).prop_map(|(bytes, filled, batches)| Case {
        bytes,
        filled,
        batches,
    })
}

/// How many rows each table has in the beginning.
const BEGUN: [u8; 3] = [9, 5, 8];

async fn begun(filled: bool) -> Result<InMemory> {
    let store = Arc::new(InMemory::new());
    let world = World::over(Arc::clone(&store) as _);
    for (table, rows) in BEGUN.into_iter().enumerate() {
        let rows: Vec<[u8; 5]> = (0..rows).map(|n| [n, n.wrapping_mul(3), n.wrapping_mul(5) + 1, n + 2, n / 2]).collect();
        world.append(TABLES[table].0, &frame(table, 0, &rows, filled)).await?;
    }
    Ok(store.fork())
}

/// What the law has met, over all its cases.
#[derive(Debug, Default)]
struct Met {
    cases: u64,
    runs: u64,
    incremental: u64,
    /// Of those, the ones by signed deltas, and in how many of them each operator was.
    deltas: u64,
    by_deltas: BTreeMap<&'static str, u64>,
    /// In runs that followed.
    operators: BTreeMap<&'static str, u64>,
    reasons: BTreeMap<String, u64>,
    /// Why not by signed deltas.
    groups: BTreeMap<String, u64>,
}

impl Met {
    fn take_in(&mut self, query: &Query, report: &DatasetReport) {
        if report.status != Status::Committed {
            return;
        }
        self.runs += 1;
        if report.mode != "incremental" {
            let reason = report.reason.split("in full, for ").last().unwrap_or_default();
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
            return;
        }
        self.incremental += 1;
        let (all_told, by_deltas) = (report.means == "signed deltas", report.means.starts_with("signed deltas"));
        self.deltas += u64::from(by_deltas);
        if let Some(why) = report.means.strip_prefix("changed groups, for ") {
            *self.groups.entry(why.split('`').next_back().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let operators: BTreeSet<&str> = query.operators.iter().copied().collect();
        for operator in &operators {
            *self.operators.entry(operator).or_default() += 1;
            // a sum that is not counted is told by the deltas alone only where no value is null
            if by_deltas && (all_told || *operator != "uncounted sum") {
                *self.by_deltas.entry(operator).or_default() += 1;
            }
        }
    }

    /// Whether deltas told often enough of an operator.
    fn told_by_deltas(&self, operator: &str) -> bool {
        self.by_deltas.get(operator).is_some_and(|times| *times >= RUNS_OF_OPERATOR_MIN)
    }

    fn with(mut self, other: Self) -> Self {
        self.cases += other.cases;
        self.runs += other.runs;
        self.incremental += other.incremental;
        self.deltas += other.deltas;
        let counts = [(&mut self.reasons, other.reasons), (&mut self.groups, other.groups)];
        for (counts, more) in counts {
            more.into_iter().for_each(|(what, times)| *counts.entry(what).or_default() += times);
        }
        for (counts, more) in [(&mut self.operators, other.operators), (&mut self.by_deltas, other.by_deltas)] {
            more.into_iter().for_each(|(what, times)| *counts.entry(what).or_default() += times);
        }
        self
    }
}

async fn play(store: &InMemory, case: &Case, query: &Query, told: Told, met: &RefCell<Met>) -> Result<()> {
    let world = World::over(Arc::new(store.fork()));
    let mut next = BEGUN.map(i64::from);
    let followed = GoldSpec::new(name("gold.followed"), &query.text);
    world.run(&followed).await.map_err(|error| anyhow::anyhow!("{}: {}", query.text, tributary_fault::chain(&error)))?;
    let mut reason = String::new();
    for (at, batch) in case.batches.iter().enumerate() {
        for Change { table, gone, come } in batch {
            let first = next[*table];
            next[*table] += i64::try_from(come.len())?;
            let come = frame(*table, first, come, case.filled && told != Told::NoNulls);
            world.change_told(TABLES[*table].0, gone, &come, told).await?;
        }
        let report = tributary_gold_agg::run(&world.lake, &followed, &tributary_gold_agg::Options::default()).await?;
        met.borrow_mut().take_in(query, &report);
        reason = format!("{reason}\nrun {at}: {} by {}: {}", report.mode, report.means, report.reason);
    }
    let full = GoldSpec::new(name("gold.full"), &query.text).with_refresh(Refresh::Full);
    world.run(&full).await?;
    let difference = FrameDiff::between(world.rows("gold.followed").await?, world.rows("gold.full").await?);
    let difference = query.rounded.iter().fold(difference, |difference, column| difference.tolerating(column, 1e-9)).compute();
    anyhow::ensure!(difference.is_none(), "{}{reason}\n{difference}", query.text);
    met.borrow_mut().cases += 1;
    Ok(())
}

/// Tries case after case of a law, each from the same beginning.
struct Trial {
    runtime: tokio::runtime::Runtime,
    store: InMemory,
    /// Where every order has an amount.
    filled: InMemory,
    met: RefCell<Met>,
}

impl Trial {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let [store, filled] = [false, true].map(|filled| runtime.block_on(begun(filled)).unwrap());
        Self { runtime, store, filled, met: RefCell::default() }
    }

    fn holds(&self, case: &Case, query: &Query, told: Told) -> Result<(), TestCaseError> {
        let store = if case.filled || told == Told::NoNulls { &self.filled } else { &self.store };
        let played = self.runtime.block_on(play(store, case, query, told, &self.met));
        played.map_err(|error| TestCaseError::fail(format!("{error:#}")))
    }
}

#[test]
fn law_g1_an_incremental_view_equals_a_full_one() {
    let part = |law: &Law| {
        let trial = Trial::new();
        law.holds(&cases(), |case, _| trial.holds(&case, &query(&case.bytes), Told::Each));
        trial.met.into_inner()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let laws = Law::new("G1 incremental").within(Duration::ZERO).at_least(CASES).split(cores);
    let met = std::thread::scope(|scope| {
        let parts: Vec<_> = laws.iter().map(|law| scope.spawn(|| part(law))).collect();
        let of_part = |part: std::thread::ScopedJoinHandle<'_, Met>| part.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
        parts.into_iter().map(of_part).fold(Met::default(), Met::with)
    });
    println!("{met:#?}");
    assert!(met.cases >= CASES, "{met:#?}");
    assert!(met.incremental * 10 >= met.runs * 8, "{met:#?}");
    assert!(met.deltas >= 100, "{met:#?}");
    for operator in OPERATORS {
        assert!(met.operators.get(operator).is_some_and(|times| *times >= RUNS_OF_OPERATOR_MIN), "{operator}: {met:#?}");
    }
    assert!(met.told_by_deltas("count distinct"), "{met:#?}");
    let Met { cases, runs, incremental, deltas, .. } = met;
    println!("law G1: {cases} cases, {runs} runs, {incremental} incremental, {deltas} of them by signed deltas");
}

/// G1 of totals that say less than a count: each is told by deltas often enough.
#[test]
fn law_g1_holds_for_sums_that_are_not_counted_and_for_distinct_counts() {
    for (query, operator) in [(uncounted(), "uncounted sum"), (distinct(), "count distinct")] {
        let trial = Trial::new();
        let law = Law::new("G1 incremental, of less than a count").within(Duration::ZERO).at_least(4 * RUNS_OF_OPERATOR_MIN);
        law.holds(&cases(), |case, _| trial.holds(&case, &query, Told::Each));
        let met = trial.met.borrow();
        assert!(met.told_by_deltas(operator), "{operator}: {met:#?}");
    }
}

/// The control: a changed group that the inputs do not tell of is missed.
#[test]
fn control_a_missed_change_breaks_law_g1() {
    let trial = Trial::new();
    let law = Law::new("G1 incremental, a change is missed").within(Duration::from_secs(60));
    law.is_broken(&cases(), |case, _| trial.holds(&case, &query(&case.bytes), Told::Another));
}

/// The control of signed deltas: the groups are told in which rows went, and their amounts are not. Groups that are computed again
/// would be right.
#[test]
fn control_sums_that_nothing_is_taken_from_break_law_g1() {
    let trial = Trial::new();
    let law = Law::new("G1 incremental, amounts that go are not told").within(Duration::from_secs(60));
    let why = law.is_broken(&cases(), |case, _| trial.holds(&case, &sums(), Told::NoAmounts));
    assert!(why.contains("frames differ"), "{why}");
    let met = trial.met.borrow();
    assert!(met.deltas > 0 && met.deltas == met.incremental, "{met:#?}");
}

/// The control of sums that are not counted: statistics say that no amount is null, and some are.
#[test]
fn control_statistics_that_hide_nulls_break_law_g1() {
    let trial = Trial::new();
    let law = Law::new("G1 incremental, nulls are hidden").within(Duration::from_secs(60));
    let why = law.is_broken(&cases(), |case, _| trial.holds(&case, &uncounted(), Told::NoNulls));
    assert!(why.contains("frames differ"), "{why}");
    let met = trial.met.borrow();
    assert!(met.by_deltas.get("uncounted sum").is_some_and(|times| *times > 0), "{met:#?}");
}

/// The control of distinct counts: which values went is not told.
#[test]
fn control_values_whose_going_is_not_told_break_law_g1() {
    let trial = Trial::new();
    let law = Law::new("G1 incremental, values that go are not told").within(Duration::from_secs(60));
    let why = law.is_broken(&cases(), |case, _| trial.holds(&case, &distinct(), Told::NoAmounts));
    assert!(why.contains("frames differ"), "{why}");
    let met = trial.met.borrow();
    assert!(met.deltas > 0, "{met:#?}");
}
