//! Streaming tables that remember rows equal what an oracle in memory makes of the rows that came, for random streams in random commits
//! and cuts, runs that are killed anywhere, and a table that is made of everything at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use proptest::collection::vec;
use proptest::prelude::*;
use tributary_specs::{Column, DatasetReport, GoldSpec, StreamedTable};
use tributary_testkit::{FaultyStore, Frame, FrameDiff, Law, Mode, Tried, Value};

use crate::world::{World, memory, name};

const MINUTE: i64 = 60_000_000;
const LEFT: &str = "bronze.shown";
const RIGHT: &str = "bronze.clicked";

/// A row of a stream: its number, its key and its time in minutes.
type Row = (i64, Option<i64>, Option<i64>);

/// What happens, one after the other.
#[derive(Debug, Clone)]
enum Step {
    /// A commit of a stream: of each row its key and its time.
    Append { right: bool, rows: Vec<(Option<u8>, Option<u8>)> },
    /// A run.
    Run,
    /// A run that is killed at its n-th mutating call.
    Killed { at: u64, mode: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (proptest::option::weighted(0.9, 0..3_u8), proptest::option::weighted(0.9, 0..40_u8));
    let append = (any::<bool>(), vec(row, 1..4)).prop_map(|(right, rows)| Step::Append { right, rows });
    let killed = (1..5_u64, 0..Mode::ALL.len()).prop_map(|(at, mode)| Step::Killed { at, mode });
    vec(prop_oneof![5 => append, 2 => Just(Step::Run), 2 => killed], 2..14)
}

/// A streaming table and what it must hold.
struct Question {
    query: &'static str,
    expected: fn(&[Row], &[Row]) -> Vec<Vec<Value>>,
    columns: &'static [(&'static str, &'static str)],
}

fn number(value: Option<i64>) -> Value {
    value.map_or(Value::Null, |value| Value::Int(value.into()))
}

fn at(minute: i64) -> Value {
    Value::Int(i128::from(minute * MINUTE))
}

fn joined(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    let mut out = Vec::new();
    for (a, key, shown) in left {
        for (b, other, clicked) in right {
            let within = shown.zip(*clicked).is_some_and(|(shown, clicked)| (shown..=shown + 5).contains(&clicked));
            if key.is_some() && key == other && within {
                out.push(vec![number(Some(*a)), number(Some(*b)), number(*key), at(shown.unwrap_or_default())]);
            }
        }
    }
    out
}

fn by_key(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<Option<i64>, (i64, Option<i64>)> = BTreeMap::new();
    for (_, key, minute) in left {
        let group = groups.entry(*key).or_default();
        group.0 += 1;
        group.1 = group.1.max(*minute);
    }
    groups.into_iter().map(|(key, (rows, last))| vec![number(key), number(Some(rows)), last.map_or(Value::Null, at)]).collect()
}

fn distinct(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    let keys: std::collections::BTreeSet<Option<i64>> = left.iter().chain(right).map(|(_, key, _)| *key).collect();
    keys.into_iter().map(|key| vec![number(key)]).collect()
}

/// Rows by key and window, of these lengths in minutes: how many there are in each.
fn windows(rows: &[Row], length: i64, slide: i64) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<(Option<i64>, i64), i64> = BTreeMap::new();
    for (_, key, minute) in rows {
        let Some(minute) = minute else { continue };
        for start in (-length..=*minute).filter(|start| start % slide == 0 && start + length > *minute) {
            *groups.entry((*key, start)).or_default() += 1;
        }
    }
    groups.into_iter().map(|((key, start), rows)| vec![number(key), at(start), at(start + length), number(Some(rows))]).collect()
}

fn tumbling(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    windows(left, 5, 5)
}

fn hopping(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    windows(left, 7, 5)
}

fn sessions(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    let mut by_key: BTreeMap<Option<i64>, Vec<i64>> = BTreeMap::new();
    left.iter()
        .filter_map(|(_, key, minute)| Some((key, (*minute)?)))
        .for_each(|(key, minute)| by_key.entry(*key).or_default().push(minute));
    let mut out = Vec::new();
    for (key, mut minutes) in by_key {
        minutes.sort_unstable();
        for session in minutes.chunk_by(|before, after| after - before <= 4) {
            let (first, last) = (session[0], session[session.len() - 1]);
            out.push(vec![number(key), at(first), at(last + 4), number(Some(session.len() as i64))]);
        }
    }
    out
}

const WINDOWED: &[(&str, &str)] = &[("k", "long"), ("since", "timestamp"), ("until", "timestamp"), ("n", "long")];

const QUESTIONS: &[Question] = &[
    Question {
        query: "SELECT a.id AS shown, b.id AS clicked, a.k, a.at FROM bronze.shown a JOIN bronze.clicked b \
                ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES",
        expected: joined,
        columns: &[("shown", "long"), ("clicked", "long"), ("k", "long"), ("at", "timestamp")],
    },
    Question {
        query: "SELECT k, count(*) AS n, max(at) AS last FROM bronze.shown GROUP BY k",
        expected: by_key,
        columns: &[("k", "long"), ("n", "long"), ("last", "timestamp")],
    },
    Question {
        query: "SELECT DISTINCT k FROM (SELECT k FROM bronze.shown UNION ALL SELECT k FROM bronze.clicked) AS both",
        expected: distinct,
        columns: &[("k", "long")],
    },
    Question {
        query: "SELECT k, window.start AS since, window.end AS until, count(*) AS n FROM bronze.shown GROUP BY k, window(at, '5 minutes')",
        expected: tumbling,
        columns: WINDOWED,
    },
    Question {
        query: "SELECT k, window(at, '7 minutes', '5 minutes').start AS since, window.end AS until, count(*) AS n FROM bronze.shown \
                GROUP BY k, window(at, '7 minutes', '5 minutes')",
        expected: hopping,
        columns: WINDOWED,
    },
    Question {
        query: "SELECT k, session_window.start AS since, session_window.end AS until, count(*) AS n FROM bronze.shown \
                GROUP BY session_window(at, '4 minutes'), k",
        expected: sessions,
        columns: WINDOWED,
    },
];

fn columns(of: &[(&str, &str)]) -> Vec<Column> {
    of.iter().map(|(name, data_type)| Column::new(*name, data_type.parse().unwrap())).collect()
}

fn frame(rows: &[Row]) -> Frame {
    let of_row = |(id, key, minute): &Row| vec![number(Some(*id)), number(*key), minute.map_or(Value::Null, at)];
    Frame::of(&columns(&[("id", "long"), ("k", "long"), ("at", "timestamp")]), &rows.iter().map(of_row).collect::<Vec<_>>())
}

fn table(prefix: &str, number: usize, question: &Question) -> GoldSpec {
    let wait = |name: &str| StreamedTable::new(self::name(name)).with_watermark("at", Duration::from_secs(600));
    let spec = GoldSpec::new(name(&format!("silver.{prefix}_{number}")), question.query);
    [LEFT, RIGHT].iter().filter(|table| question.query.contains(*table)).fold(spec, |spec, table| spec.with_stream(wait(table)))
}

async fn run(world: &World, spec: &GoldSpec) -> Result<DatasetReport, tributary_gold_agg::Error> {
    tributary_gold_agg::run(&world.lake, spec, &tributary_gold_agg::Options::default()).await
}

async fn ensure_holds(world: &World, spec: &GoldSpec, question: &Question, streams: &[Vec<Row>; 2]) -> Result<()> {
    let expected = Frame::of(&columns(question.columns), &(question.expected)(&streams[0], &streams[1]));
    let difference = FrameDiff::between(world.rows(&spec.table.to_string()).await?, expected).compute();
    anyhow::ensure!(difference.is_none(), "{}\n{difference}", question.query);
    Ok(())
}

/// `ahead`, a control: the position of the first stream runs ahead of the rows.
async fn play(steps: &[Step], ahead: bool, tried: &mut Tried) -> Result<()> {
    let store = memory();
    let world = World::over(Arc::clone(&store));
    let mut streams: [Vec<Row>; 2] = [Vec::new(), Vec::new()];
    for name in [LEFT, RIGHT] {
        world.append(name, &frame(&[])).await?;
    }
    let mut kills = 0;
    for step in steps.iter().chain([&Step::Run]) {
        match step {
            Step::Append { right, rows } => {
                let stream = &mut streams[usize::from(*right)];
                let first = stream.len();
                let row = |(number, (key, minute)): (usize, &(Option<u8>, Option<u8>))| {
                    ((first + number) as i64, key.map(i64::from), minute.map(i64::from))
                };
                stream.extend(rows.iter().enumerate().map(row));
                let name = if *right { RIGHT } else { LEFT };
                let version = world.append(name, &frame(&stream[first..])).await?;
                for (number, question) in QUESTIONS.iter().enumerate().filter(|_| ahead) {
                    world.pass_over(&table("cut", number, question).table, name, version).await?;
                }
                tried.add("rows", rows.len());
            }
            Step::Killed { at, mode } => {
                for (number, question) in QUESTIONS.iter().enumerate() {
                    let faulty = Arc::new(FaultyStore::new(Arc::clone(&store)));
                    faulty.kill_at(*at, Mode::ALL[*mode]);
                    let killed = World::over(Arc::clone(&faulty) as _);
                    let _ = run(&killed, &table("cut", number, question)).await;
                    kills += usize::from(faulty.killed());
                }
            }
            Step::Run => {
                // what a killed process had in memory is gone
                let world = World::over(Arc::clone(&store));
                for (number, question) in QUESTIONS.iter().enumerate() {
                    let spec = table("cut", number, question);
                    let report = run(&world, &spec).await?;
                    tried.add("runs", 1);
                    tried.add("incremental runs", usize::from(report.mode == "incremental"));
                    ensure_holds(&world, &spec, question, &streams).await?;
                }
            }
        }
    }
    tried.add("kills", kills);
    for (number, question) in QUESTIONS.iter().enumerate() {
        let spec = table("whole", number, question);
        run(&world, &spec).await?;
        ensure_holds(&world, &spec, question, &streams).await?;
    }
    Ok(())
}

fn holds(steps: &[Step], ahead: bool, tried: &mut Tried) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let played = runtime.block_on(play(steps, ahead, tried));
    prop_assert!(played.is_ok(), "{:#}", played.unwrap_err());
    Ok(())
}

#[test]
fn law_a_streaming_table_equals_its_query() {
    let law = Law::new("a streaming table equals its query").within(Duration::from_secs(5));
    let tried = law.holds(&steps(), |steps, tried| holds(&steps, false, tried));
    assert!(tried.count("incremental runs") > 0 && tried.count("kills") > 0, "{tried}");
}

/// The control: a position is taken for read, and its rows are not there.
#[test]
fn control_a_position_ahead_of_the_rows_breaks_the_law_of_streaming_tables() {
    let law = Law::new("a streaming table equals its query, a position runs ahead").within(Duration::from_secs(60));
    law.is_broken(&steps(), |steps, tried| holds(&steps, true, tried));
}
