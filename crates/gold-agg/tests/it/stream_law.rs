//! Streaming tables that remember rows equal what an oracle in memory makes of the rows that came, for random streams in random commits
//! and cuts, runs that are killed anywhere, rows that are deleted, and a table that is made of everything at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use tributary_lake::KeySearch;
use tributary_lake::arrow::array::AsArray;
use tributary_lake::arrow::datatypes::Int64Type;
use tributary_specs::{DatasetReport, GoldSpec, StreamedTable};
use tributary_testkit::{FaultyStore, Frame, FrameDiff, Law, Mode, Tried};

use crate::stream_questions::{DELAY, LEFT, QUESTIONS, Question, RIGHT, Row, columns, frame};
use crate::world::{World, memory, name};

/// What happens, one after the other.
#[derive(Debug, Clone)]
enum Step {
    /// A commit of a stream: of each row its key and its time.
    Append { right: bool, rows: Vec<(Option<u8>, Option<u8>)> },
    /// A commit that takes a row out of a stream.
    Delete { right: bool, row: usize },
    /// A run.
    Run,
    /// A run that is killed at its n-th mutating call.
    Killed { at: u64, mode: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (proptest::option::weighted(0.9, 0..3_u8), proptest::option::weighted(0.9, 0..40_u8));
    let append = (any::<bool>(), vec(row, 1..4)).prop_map(|(right, rows)| Step::Append { right, rows });
    let delete = (any::<bool>(), 0..8_usize).prop_map(|(right, row)| Step::Delete { right, row });
    let killed = (1..5_u64, 0..Mode::ALL.len()).prop_map(|(at, mode)| Step::Killed { at, mode });
    vec(prop_oneof![6 => append, 1 => delete, 5 => Just(Step::Run), 2 => killed], 3..14)
}

fn table(prefix: &str, number: usize, question: &Question) -> GoldSpec {
    let wait = |name: &str| StreamedTable::new(self::name(name)).with_watermark("at", Duration::from_secs(60 * DELAY as u64));
    let spec = GoldSpec::new(name(&format!("silver.{prefix}_{number}")), question.query);
    [LEFT, RIGHT].iter().filter(|table| question.query.contains(*table)).fold(spec, |spec, table| spec.with_stream(wait(table)))
}

async fn run(world: &World, spec: &GoldSpec) -> Result<DatasetReport, tributary_gold_agg::Error> {
    tributary_gold_agg::run(&world.lake, spec, &tributary_gold_agg::Options::default()).await
}

async fn ensure_holds(world: &World, spec: &GoldSpec, question: &Question, streams: &[Stream; 2]) -> Result<()> {
    let expected = Frame::of(&columns(question.columns), &(question.expected)(&streams[0].rows, &streams[1].rows));
    let difference = FrameDiff::between(world.rows(&spec.table.to_string()).await?, expected).compute();
    anyhow::ensure!(difference.is_none(), "{}\n{difference}", question.query);
    Ok(())
}

/// Takes a row out of a stream.
async fn delete(world: &World, name: &str, id: i64) -> Result<u64> {
    let table = world.table(name).await?;
    let search = KeySearch::new(&table, table.files().await?);
    let found = search.all(0..search.files().len()).await?.rows;
    let ids = found.column_by_name("id").context("rows have numbers")?.as_primitive::<Int64Type>();
    let place = ids.values().iter().position(|other| *other == id).context("the row is there")?;
    world.change(name, &BTreeSet::from([place]), &frame(&[]), false).await
}

/// A stream as the oracle knows it.
#[derive(Default)]
struct Stream {
    next: i64,
    rows: Vec<Row>,
    /// The greatest minute that the commits so far brought.
    brought: Option<i64>,
    late: u64,
}

impl Stream {
    fn append(&mut self, rows: &[(Option<u8>, Option<u8>)]) -> Vec<Row> {
        let of_row = |(number, (key, minute)): (i64, &(Option<u8>, Option<u8>))| (number, key.map(i64::from), minute.map(i64::from));
        let new: Vec<Row> = (self.next..).zip(rows).map(of_row).collect();
        self.next += new.len() as i64;
        let minutes = || new.iter().filter_map(|(_, _, minute)| *minute);
        let watermark = self.brought.map(|brought| brought - DELAY);
        self.late += minutes().filter(|minute| watermark.is_some_and(|watermark| *minute < watermark)).count() as u64;
        self.brought = self.brought.max(minutes().max());
        self.rows.extend(&new);
        new
    }
}

/// What a control breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// The position of a stream runs ahead of the rows.
    Position,
    /// The watermark that the table records runs ahead of the rows that waited for it.
    Watermark,
}

/// One case: the questions that are asked, and what is broken.
struct Play<'a> {
    asked: Vec<(usize, &'a Question)>,
    broken: Broken,
}

impl<'a> Play<'a> {
    fn of(names: &[&str], broken: Broken) -> Self {
        let asked = QUESTIONS.iter().enumerate().filter(|(_, question)| names.is_empty() || names.contains(&question.name));
        Self { asked: asked.collect(), broken }
    }

    async fn play(&self, steps: &[Step], tried: &mut Tried) -> Result<()> {
        let store = memory();
        let world = World::over(Arc::clone(&store));
        let mut streams = [Stream::default(), Stream::default()];
        for name in [LEFT, RIGHT] {
            world.append(name, &frame(&[])).await?;
        }
        let (mut kills, mut counted) = (0, vec![0; QUESTIONS.len()]);
        for step in steps.iter().chain([&Step::Run]) {
            match step {
                Step::Append { right, rows } => {
                    let stream = &mut streams[usize::from(*right)];
                    let name = if *right { RIGHT } else { LEFT };
                    let version = world.append(name, &frame(&stream.append(rows))).await?;
                    self.pass_over(&world, name, version).await?;
                    tried.add("rows", rows.len());
                }
                Step::Delete { right, row } => {
                    let stream = &mut streams[usize::from(*right)];
                    if stream.rows.is_empty() {
                        continue;
                    }
                    let (id, ..) = stream.rows.remove(row % stream.rows.len());
                    delete(&world, if *right { RIGHT } else { LEFT }, id).await?;
                    tried.add("deletes", 1);
                }
                Step::Killed { at, mode } => {
                    for (number, question) in &self.asked {
                        let faulty = Arc::new(FaultyStore::new(Arc::clone(&store)));
                        faulty.kill_at(*at, Mode::ALL[*mode]);
                        let killed = World::over(Arc::clone(&faulty) as _);
                        // it may be through before that call
                        if let Ok(report) = run(&killed, &table("cut", *number, question)).await {
                            counted[*number] += report.rows_late;
                        }
                        kills += usize::from(faulty.killed());
                    }
                }
                Step::Run => {
                    // what a killed process had in memory is gone
                    let world = World::over(Arc::clone(&store));
                    for (number, question) in &self.asked {
                        let spec = table("cut", *number, question);
                        if self.broken == Broken::Watermark {
                            world.pass_watermark(&spec.table, &[LEFT, RIGHT]).await?;
                        }
                        let report = run(&world, &spec).await?;
                        counted[*number] += report.rows_late;
                        tried.add(question.name, usize::from(report.mode == "incremental"));
                        ensure_holds(&world, &spec, question, &streams).await?;
                    }
                }
            }
        }
        tried.add("kills", kills);
        self.whole(&world, &streams, (kills == 0).then_some(counted), tried).await
    }

    /// Everything at once; `counted`: late rows that runs counted, where none of their reports is lost.
    async fn whole(&self, world: &World, streams: &[Stream; 2], counted: Option<Vec<u64>>, tried: &mut Tried) -> Result<()> {
        for (number, question) in &self.asked {
            let spec = table("whole", *number, question);
            let report = run(world, &spec).await?;
            ensure_holds(world, &spec, question, streams).await?;
            let reads = |name: &str, stream: &Stream| if question.query.contains(name) { stream.late } else { 0 };
            let late = reads(LEFT, &streams[0]) + reads(RIGHT, &streams[1]);
            anyhow::ensure!(report.rows_late == late, "{}: {late} rows are late: {report:?}", question.query);
            let counted = counted.as_ref().map_or(late, |counted| counted[*number]);
            anyhow::ensure!(counted == late, "{}: {late} rows are late, and {counted} were counted", question.query);
            tried.add("late rows", usize::try_from(late)?);
        }
        Ok(())
    }

    async fn pass_over(&self, world: &World, source: &str, version: u64) -> Result<()> {
        for (number, question) in self.asked.iter().filter(|_| self.broken == Broken::Position) {
            world.pass_over(&table("cut", *number, question).table, source, version).await?;
        }
        Ok(())
    }

    fn holds(&self, steps: &[Step], tried: &mut Tried) -> Result<(), TestCaseError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let played = runtime.block_on(self.play(steps, tried));
        prop_assert!(played.is_ok(), "{:#}", played.unwrap_err());
        Ok(())
    }
}

const OUTER: &[&str] = &["left joins", "left joins before a time", "right joins", "full joins", "counts of left joins"];
const FIRST: &[&str] = &["first rows", "first rows by QUALIFY"];
const RUNS_MIN: u64 = 30;

#[test]
fn law_a_streaming_table_equals_its_query() {
    let others: Vec<&str> =
        QUESTIONS.iter().map(|question| question.name).filter(|name| !OUTER.contains(name) && !FIRST.contains(name)).collect();
    let law = Law::new("a streaming table equals its query").within(Duration::from_secs(5)).at_least(12);
    let play = Play::of(&others, Broken::Nothing);
    let tried = law.holds(&steps(), |steps, tried| play.holds(&steps, tried));
    let runs = others.iter().map(|name| tried.count(name)).sum::<u64>();
    assert!(runs > 0 && tried.count("kills") > 0 && tried.count("deletes") > 0 && tried.count("late rows") > 0, "{tried}");
}

#[test]
fn law_outer_joins_and_first_rows_of_streams_equal_their_query() {
    let law = Law::new("outer joins and first rows of streams").within(Duration::from_secs(5)).at_least(70);
    let asked = [OUTER, FIRST].concat();
    let play = Play::of(&asked, Broken::Nothing);
    let tried = law.holds(&steps(), |steps, tried| play.holds(&steps, tried));
    for name in asked {
        assert!(tried.count(name) >= RUNS_MIN, "too few incremental runs of {name}: {tried}");
    }
    assert!(tried.count("kills") > 0 && tried.count("deletes") > 0, "{tried}");
}

/// The control: a position is taken for read, and its rows are not there.
#[test]
fn control_a_position_ahead_of_the_rows_breaks_the_law_of_streaming_tables() {
    for names in [&[], FIRST, &["left joins"], &["right joins"], &["full joins"], &["counts of left joins"]] {
        let law = Law::new("a streaming table equals its query, a position runs ahead").within(Duration::from_secs(60));
        let play = Play::of(names, Broken::Position);
        law.is_broken(&steps(), |steps, tried| play.holds(&steps, tried));
    }
}

/// The control: rows that waited for the watermark are passed over.
#[test]
fn control_a_watermark_ahead_of_the_rows_breaks_the_law_of_outer_joins() {
    for name in OUTER {
        let law = Law::new("outer joins of streams, the recorded watermark runs ahead").within(Duration::from_secs(60));
        let play = Play::of(&[name], Broken::Watermark);
        law.is_broken(&steps(), |steps, tried| play.holds(&steps, tried));
    }
}
