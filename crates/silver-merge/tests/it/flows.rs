//! S10: several flows into one table: each reads its own source at its own pace, once, whatever is killed in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{Commit, Operation, Reads};
use tributary_silver_merge::{Error, Options};
use tributary_specs::{
    Column, DataType, DatasetReport, Deletes, Expectation, ExpectationAction, Flow, MergePolicy, SetExpectation, SetRule, SilverSpec,
    Status, StreamRead,
};
use tributary_testkit::oracle::Row;
use tributary_testkit::{Control, Controls, Frame, KillPoints, Law, Tried, Value, crash_at, frame};

use crate::world::{SCD2, World, block_on, json_frame, sorted, source, spec, target};

/// Sources that flows read; a flow is named by its place, and may share its source.
const SOURCES: [&str; 2] = ["a", "b"];

fn numbers(from: i64, count: i64) -> Frame {
    let rows: Vec<_> = (from..from + count).map(|id| json!({ "id": id })).collect();
    json_frame(&[Column::new("id", DataType::Long)], &rows)
}

/// A flow of a table to which rows are added.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    source: usize,
    once: bool,
    /// Where it is put among the flows that are there already.
    place: usize,
}

/// Flows as they stand in a file, by their names.
type Flows = Vec<(String, Drawn)>;

fn called(flows: &[Drawn]) -> Flows {
    flows.iter().enumerate().map(|(at, drawn)| (format!("f{at}"), *drawn)).collect()
}

/// The dataset with these flows; each row says which flow brought it.
fn appending(flows: &[(String, Drawn)]) -> SilverSpec {
    let flow = |(name, drawn): &(String, Drawn)| Flow {
        name: name.clone(),
        sources: vec![source(SOURCES[drawn.source])],
        select: Some(format!("SELECT id, '{name}' AS flow FROM bronze.{}", SOURCES[drawn.source])),
        once: drawn.once,
        ..Flow::default()
    };
    let mut flows = flows.iter().map(flow);
    let first = flows.next().unwrap();
    SilverSpec {
        sources: first.sources,
        select: first.select,
        once: first.once,
        flow: Some(first.name),
        flows: flows.collect(),
        ..spec("all", &[], MergePolicy::Append)
    }
}

/// What happens to a table.
#[derive(Debug, Clone)]
enum Step {
    Arrive { source: usize, rows: i64 },
    Run { version_by_version: bool },
    AddFlow,
    Reorder { by: usize },
    RefreshInFull,
}

#[derive(Debug, Clone)]
struct History {
    flows: Vec<Drawn>,
    /// Which of them is called as the table, if any is.
    default: usize,
    steps: Vec<Step>,
}

impl History {
    fn name(&self, flow: usize) -> String {
        if flow == self.default { "all".to_owned() } else { format!("f{flow}") }
    }

    /// Puts the next flow among those in the file.
    fn add(&self, file: &mut Flows) {
        if let Some(drawn) = self.flows.get(file.len()) {
            file.insert(drawn.place % (file.len() + 1), (self.name(file.len()), *drawn));
        }
    }
}

fn histories() -> impl Strategy<Value = History> {
    let flow = (0..SOURCES.len(), prop::bool::weighted(0.25), 0..5_usize);
    let flow = flow.prop_map(|(source, once, place)| Drawn { source, once, place });
    let step = prop_oneof![
        4 => (0..SOURCES.len(), 1..4_i64).prop_map(|(source, rows)| Step::Arrive { source, rows }),
        4 => any::<bool>().prop_map(|version_by_version| Step::Run { version_by_version }),
        2 => Just(Step::AddFlow),
        2 => (1..4_usize).prop_map(|by| Step::Reorder { by }),
        1 => Just(Step::RefreshInFull),
    ];
    (vec(flow, 2..5), 0..5_usize, vec(step, 3..14)).prop_map(|(flows, default, steps)| History { flows, default, steps })
}

/// How many rows of its source each flow has brought; none = it has not run.
#[derive(Debug, Default)]
struct Model {
    there: [i64; 2],
    brought: BTreeMap<String, i64>,
}

impl Model {
    fn run(&mut self, flows: &Flows) {
        for (name, flow) in flows {
            if !flow.once || !self.brought.contains_key(name) {
                self.brought.insert(name.clone(), self.there[flow.source]);
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let of = |(flow, brought): (&String, &i64)| (0..*brought).map(|id| json!({ "id": id, "flow": flow })).collect::<Vec<_>>();
        let columns = [Column::new("id", DataType::Long), Column::new("flow", DataType::String)];
        sorted(&json_frame(&columns, &self.brought.iter().flat_map(of).collect::<Vec<_>>()))
    }
}

async fn play(history: &History, controls: Controls, tried: &mut Tried) -> Result<()> {
    let world = World::with(controls);
    let (mut model, mut file) = (Model::default(), Flows::new());
    history.add(&mut file);
    for (name, there) in SOURCES.iter().zip(&mut model.there) {
        world.append(&source(name), &numbers(0, 1)).await?;
        *there = 1;
    }
    let last = [Step::Run { version_by_version: false }];
    for step in history.steps.iter().chain(&last) {
        match step {
            Step::Arrive { source: at, rows } => {
                world.append(&source(SOURCES[*at]), &numbers(model.there[*at], *rows)).await?;
                model.there[*at] += rows;
            }
            Step::Run { version_by_version } => {
                let versions = version_by_version.then_some(1);
                let options = Options { source_versions_max: versions, ..Options::default() };
                tributary_silver_merge::run(&world.lake, &appending(&file), &options).await?;
                model.run(&file);
                tried.add("runs", 1);
            }
            Step::AddFlow => {
                let last = file.last().map(|(name, _)| name.clone());
                let before = file.len();
                history.add(&mut file);
                let put_before = file.len() > before && file.last().map(|(name, _)| name.clone()) == last;
                tried.add("other orders", usize::from(put_before));
            }
            Step::Reorder { by } => {
                let by = by % file.len();
                file.rotate_left(by);
                tried.add("other orders", usize::from(by > 0));
            }
            Step::RefreshInFull => {
                refresh_in_full(&world, &appending(&file)).await?;
                model.brought.clear();
                model.run(&file);
                tried.add("full refreshes", 1);
            }
        }
        if !model.brought.is_empty() {
            let (found, expected) = (sorted(&world.rows(&target("all"), &["id", "flow"]).await?), model.rows());
            ensure!(found == expected, "after {step:?}: found {found:?}, expected {expected:?}");
        }
    }
    Ok(())
}

async fn refresh_in_full(world: &World, spec: &SilverSpec) -> tributary_silver_merge::Result<DatasetReport> {
    tributary_silver_merge::run(&world.lake, spec, &Options { full_refresh: true, ..Options::default() }).await
}

#[test]
fn law_each_flow_brings_each_row_of_its_source_once() {
    let tried = Law::new("flows into one table").within(Duration::from_secs(8)).holds(&histories(), |history, tried| {
        block_on(play(&history, Controls::none(), tried)).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
    assert!(tried.count("runs") > 20 && tried.count("full refreshes") > 2 && tried.count("other orders") > 2, "{tried}");
}

#[test]
fn law_of_flows_fails_when_flows_share_one_position() {
    let law = Law::new("flows with one position").within(Duration::from_secs(120));
    let broken = Controls::none().with(Control::FlowsShareOnePosition);
    let failure = law.is_broken(&histories(), |history, tried| {
        block_on(play(&history, broken, tried)).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
    assert!(failure.contains("found ["), "a wrong table, not an error: {failure}");
}

/// Changes of a few keys, dealt to two sources; each has a sequence of its own.
fn changes() -> impl Strategy<Value = Vec<(usize, i64, bool)>> {
    vec((0..SOURCES.len(), 0..3_i64, prop::bool::weighted(0.3)), 1..16)
}

fn merging(policy: MergePolicy, name: &str, of: &[&str]) -> SilverSpec {
    let deletes = Deletes { apply_as_delete_when: Some("op = 'D'".to_owned()), ..Deletes::default() };
    let flow = |name: &&str| Flow {
        name: (*name).to_owned(),
        sources: vec![source(name)],
        apply_as_delete_when: Some("op = 'D'".to_owned()),
        ..Flow::default()
    };
    SilverSpec {
        table: target(name),
        sources: vec![source(of[0])],
        flows: of[1..].iter().map(flow).collect(),
        sequence_by: vec!["seq".to_owned()],
        deletes,
        columns: tributary_specs::ColumnSelection::Except(vec!["op".to_owned(), "seq".to_owned()]),
        ..spec(name, &["id"], policy)
    }
}

#[test]
fn law_changes_of_several_flows_make_what_one_flow_over_all_of_them_makes() {
    let cases = (changes(), vec(1..4_usize, 1..8), any::<bool>());
    Law::new("changes of several flows").holds(&cases, |(changes, cuts, history), tried| {
        tried.add("changes", changes.len());
        let policy = if history { SCD2 } else { MergePolicy::ScdType1 };
        block_on(compare_with_one_flow(&changes, &cuts, &policy)).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
}

async fn compare_with_one_flow(changes: &[(usize, i64, bool)], cuts: &[usize], policy: &MergePolicy) -> Result<()> {
    let world = World::new();
    let columns: Vec<Column> = [("id", DataType::Long), ("name", DataType::String), ("seq", DataType::Long), ("op", DataType::String)]
        .map(|(name, of)| Column::new(name, of))
        .into();
    // Later changes have lower sequences now and then: what is late must not win.
    let row = |(at, (_, id, delete)): (usize, &(usize, i64, bool))| {
        let seq = (at as i64 * 7) % 31;
        json!({ "id": id, "name": (!delete).then(|| format!("n{at}")), "seq": seq, "op": if *delete { "D" } else { "U" } })
    };
    let rows: Vec<_> = changes.iter().enumerate().map(row).collect();
    let (several, one) = (merging(policy.clone(), "several", &SOURCES), merging(policy.clone(), "one", &["all"]));
    world.append(&source("all"), &json_frame(&columns, &rows)).await?;
    world.run(&one).await?;
    let (mut begin, mut cuts) = (0, cuts.iter().cycle());
    while begin < rows.len() {
        let end = rows.len().min(begin + cuts.next().copied().unwrap_or(1));
        for (at, name) in SOURCES.iter().enumerate() {
            let of_source: Vec<_> = (begin..end).filter(|row| changes[*row].0 == at).map(|row| rows[row].clone()).collect();
            if !of_source.is_empty() {
                world.append(&source(name), &json_frame(&columns, &of_source)).await?;
            }
        }
        world.run(&several).await?;
        begin = end;
    }
    let shown: &[&str] = if *policy == SCD2 { &["id", "name", "__START_AT", "__END_AT"] } else { &["id", "name"] };
    if world.count(&target("several")).await?.is_some() || world.count(&target("one")).await? != Some(0) {
        let (found, expected) = (sorted(&world.rows(&target("several"), shown).await?), sorted(&world.rows(&target("one"), shown).await?));
        ensure!(found == expected, "found {found:?}, expected {expected:?}");
    }
    if world.count(&source(SOURCES[0])).await?.is_none() {
        return Ok(());
    }
    refresh_in_full(&world, &several).await?;
    let (again, expected) = (sorted(&world.rows(&target("several"), shown).await?), sorted(&world.rows(&target("one"), shown).await?));
    ensure!(again == expected, "after a full refresh: found {again:?}, expected {expected:?}");
    Ok(())
}

/// Flows that share a source, one over another, and one that runs once.
const FOUR: [Drawn; 4] = [drawn(0, false), drawn(1, false), drawn(0, false), drawn(1, true)];

const fn drawn(source: usize, once: bool) -> Drawn {
    Drawn { source, once, place: 0 }
}

async fn crash(options: Options, controls: Controls) -> tributary_testkit::CrashReport {
    let store = Arc::new(InMemory::new());
    let world = World::on(Arc::clone(&store) as _, Controls::none());
    for name in SOURCES {
        world.append(&source(name), &numbers(0, 3)).await.unwrap();
    }
    // The table is there with one flow; three come to it, and rows to both sources.
    world.run(&appending(&called(&FOUR[..1]))).await.unwrap();
    for name in SOURCES {
        world.append(&source(name), &numbers(3, 2)).await.unwrap();
    }
    let prepared = store.fork();
    let dataset = appending(&called(&FOUR));
    crash_at(
        KillPoints::All,
        KillPoints::Sampled { points: 20, seed: 1 },
        async || Arc::new(prepared.fork()) as Arc<dyn ObjectStore>,
        async |store| tributary_silver_merge::run(&World::on(store, controls).lake, &dataset, &options).await.map(|_| ()),
        async |store| see(store, &dataset).await.map_err(|why| format!("{why:#}")),
    )
    .await
}

/// The rows after a run that was not killed; no reader ever finds the table empty.
async fn see(store: Arc<dyn ObjectStore>, dataset: &SilverSpec) -> Result<Vec<Row>> {
    let world = World::on(store, Controls::none());
    ensure!(world.count(&dataset.table).await?.is_some_and(|rows| rows > 0), "a reader finds the table empty");
    world.run(dataset).await?;
    world.run(dataset).await?;
    Ok(sorted(&world.rows(&dataset.table, &["id", "flow"]).await?))
}

#[test]
fn flows_that_are_added_are_killed_anywhere_and_bring_each_row_once() {
    let report = block_on(crash(Options::default(), Controls::none()));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[test]
fn a_full_refresh_is_killed_anywhere_and_no_reader_finds_the_table_empty() {
    let report = block_on(crash(Options { full_refresh: true, ..Options::default() }, Controls::none()));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[test]
fn a_flow_that_runs_once_runs_again_only_after_a_full_refresh() {
    block_on(async {
        let world = World::new();
        world.append(&source("a"), &numbers(0, 2)).await?;
        let dataset = appending(&called(&[drawn(0, true)]));
        ensure!(world.run(&dataset).await?.rows_in == 2);
        world.append(&source("a"), &numbers(2, 3)).await?;
        let again = world.run(&dataset).await?;
        ensure!(again.status == Status::NothingNew && again.reason.contains("it has run once"), "{again:?}");
        let report = refresh_in_full(&world, &dataset).await?;
        ensure!((report.mode.as_str(), report.rows_in, report.rows_deleted) == ("full", 5, 2), "{report:?}");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

/// Under its old name, a position may be of a flow that is called otherwise; a table made by a flow called as the table is the same.
#[test]
fn a_position_kept_by_the_source_goes_to_the_only_flow_over_it_and_to_none_of_several() {
    let of = |names: &[&str]| appending(&names.iter().map(|name| ((*name).to_owned(), drawn(0, false))).collect::<Flows>());
    let count = async |world: &World, name: &str| -> Result<usize> {
        let rows = world.rows(&target("all"), &["id", "flow"]).await?;
        Ok(sorted(&rows).iter().filter(|row| row[1] == Value::Text(name.to_owned())).count())
    };
    block_on(async {
        let world = World::new();
        world.append(&source("a"), &numbers(0, 2)).await?;
        world.run(&of(&["all"])).await?;
        world.append(&source("a"), &numbers(2, 3)).await?;
        let version = world.version(&target("all")).await?;
        let error = world.run(&of(&["y", "x"])).await.expect_err("nothing tells whose position it is");
        ensure!(matches!(&error, Error::FlowUnknown { flows, .. } if flows == &["y", "x"]), "{error:?}");
        ensure!(world.version(&target("all")).await? == version, "nothing was committed");

        let report = world.run(&of(&["x"])).await?;
        ensure!(report.rows_in == 3 && report.positions.keys().eq(["bronze.a"]), "{report:?}");
        let report = world.run(&of(&["y", "all", "x"])).await?;
        ensure!(report.rows_in == 10, "what comes later begins at the start: {report:?}");
        ensure!((count(&world, "all").await?, count(&world, "x").await?, count(&world, "y").await?) == (2 + 5, 3, 5));
        ensure!(world.run(&of(&["x", "y", "all"])).await?.status == Status::NothingNew);

        let world = World::new();
        world.append(&source("a"), &numbers(0, 2)).await?;
        world.run(&of(&["all"])).await?;
        refresh_in_full(&world, &of(&["y", "x"])).await?;
        ensure!((count(&world, "all").await?, count(&world, "x").await?, count(&world, "y").await?) == (0, 2, 2), "made anew");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

/// Takes a row of a source away, as another engine would.
async fn take_away(world: &World, name: &str) -> Result<u64> {
    let table = world.table(&source(name)).await?;
    let removes = vec![table.files().await?.remove(0)];
    let commit = Commit { operation: Operation::Overwrite, removes, reads: Reads::WholeTable, ..Commit::default() };
    match table.commit(commit).await? {
        tributary_lake::CommitOutcome::Committed { version } => Ok(version),
        other => anyhow::bail!("{other:?}"),
    }
}

#[test]
fn a_source_whose_rows_are_taken_away_stops_the_stream_and_is_passed_over_where_that_is_meant() {
    block_on(async {
        let world = World::new();
        let dataset = spec("a", &[], MergePolicy::Append);
        world.append(&source("a"), &numbers(0, 2)).await?;
        world.run(&dataset).await?;
        let version = take_away(&world, "a").await?;
        world.append(&source("a"), &numbers(2, 1)).await?;
        let error = world.run(&dataset).await.expect_err("the stream stops");
        ensure!(matches!(&error, Error::SourceChanged { version: found, .. } if *found == version), "{error:?}");
        ensure!(error.to_string().contains("skipChangeCommits"), "{error}");
        let skipping = SilverSpec { stream: StreamRead::SkipChangeCommits, ..dataset.clone() };
        let report = world.run(&skipping).await?;
        ensure!(report.rows_in == 1 && report.notes.iter().any(|note| note.starts_with("1 commits of `bronze.a`")), "{report:?}");
        // What was read of the source is gone from it: a shorter history is made only where that is meant.
        let before = world.version(&target("a")).await?;
        let error = refresh_in_full(&world, &dataset).await.expect_err("it would be shorter");
        ensure!(matches!(error, Error::HistoryShorter { .. }) && world.version(&target("a")).await? == before, "{error:?}");
        let options = Options { full_refresh: true, accept_shorter_history: true, ..Options::default() };
        let report = tributary_silver_merge::run(&world.lake, &dataset, &options).await?;
        ensure!((report.rows_in, world.count(&target("a")).await?) == (1, Some(1)), "{report:?}");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_full_refresh_takes_other_keys_types_and_columns() {
    block_on(async {
        let world = World::new();
        let rows = frame!(
            "id: long | name: string | extra: string | seq: long
            1 | 5 | x | 1
            2 | 6 | y | 2"
        );
        world.append(&source("a"), &rows).await?;
        let before = SilverSpec { sequence_by: vec!["seq".to_owned()], ..spec("a", &["id"], MergePolicy::ScdType1) };
        world.run(&before).await?;
        let select = "SELECT CAST(name AS BIGINT) AS name, id, seq FROM bronze.a";
        let after = SilverSpec { keys: vec!["name".to_owned()], select: Some(select.to_owned()), ..before };
        let error = world.run(&after).await;
        ensure!(error.is_ok_and(|report| report.status == Status::NothingNew), "nothing is new yet");
        world.append(&source("a"), &rows).await?;
        ensure!(world.run(&after).await.is_err(), "keys and a type differ");
        refresh_in_full(&world, &after).await?;
        let table = world.table(&target("a")).await?;
        let columns: Vec<String> = table.columns().iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
        ensure!(columns == ["name long", "id long", "seq long"], "{columns:?}");
        ensure!(sorted(&world.rows(&target("a"), &["name", "id"]).await?).len() == 2);
        world.run(&after).await?;
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_rule_of_the_whole_table_is_looked_at_before_the_commit() {
    block_on(async {
        let world = World::new();
        world
            .append(&source("a"), &frame!("id: long | at: timestamp\n1 | 2026-02-01T09:00:00Z\n1 | 2026-02-01T08:00:00Z\n2 | null"))
            .await?;
        let rule = |name: &str, rule, action| SetExpectation { name: name.to_owned(), rule, action };
        let unique = |action| rule("one", SetRule::Unique(vec!["id".to_owned()]), action);
        let fresh = |age| rule("fresh", SetRule::Freshness { column: "at".to_owned(), max_age_seconds: age }, ExpectationAction::Warn);
        let many = |min| rule("many", SetRule::RowCount { min: Some(min), max: None }, ExpectationAction::Fail);
        let with = |rules| SilverSpec { set_expectations: rules, ..spec("a", &[], MergePolicy::Append) };

        let error = world.run(&with(vec![unique(ExpectationAction::Fail)])).await.expect_err("id 1 stands twice");
        ensure!(matches!(&error, Error::SetExpectation { keys, .. } if keys == &["id=1"]), "{error:?}");
        ensure!(world.count(&target("a")).await? == Some(0), "nothing was committed");
        let error = world.run(&with(vec![many(4)])).await.expect_err("three are not four");
        ensure!(error.to_string().contains("it would have 3 rows, at least 4 are expected"), "{error}");

        let report = world.run(&with(vec![unique(ExpectationAction::Warn), fresh(3599), many(3)])).await?;
        let counts: Vec<_> = report.rules.iter().map(|count| (count.rule.as_str(), count.passed, count.failed)).collect();
        ensure!(counts == [("one", 0, 1), ("fresh", 0, 1), ("many", 1, 0)], "{counts:?}");
        world.append(&source("a"), &frame!("id: long | at: timestamp\n3 | null")).await?;
        let report = world.run(&with(vec![fresh(3600)])).await?;
        ensure!(report.rules[0].passed == 1, "{report:?}");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn rules_are_counted_row_by_row_and_fail_names_keys() {
    block_on(async {
        let world = World::new();
        let rows: Vec<_> =
            (0..14).map(|id| json!({ "id": id, "amt": if id == 0 { Some(5) } else if id < 13 { Some(-1) } else { None } })).collect();
        let columns = [Column::new("id", DataType::Long), Column::new("amt", DataType::Long)];
        world.append(&source("a"), &json_frame(&columns, &rows)).await?;
        let rule = |name: &str, expression: &str, action| Expectation { name: name.to_owned(), expression: expression.to_owned(), action };
        let with = |rules| SilverSpec { expectations: rules, keys: vec!["id".to_owned()], ..spec("a", &["id"], MergePolicy::Append) };
        let error = world.run(&with(vec![rule("pos", "amt > 0", ExpectationAction::Fail)])).await.expect_err("13 rows break it");
        let Error::Expectation { rows, keys, .. } = &error else { anyhow::bail!("{error:?}") };
        ensure!((*rows, keys.len(), keys[0].as_str()) == (13, 10, "id=1"), "{error}");

        let report = world
            .run(&with(vec![
                rule("pos", "amt > 0", ExpectationAction::Drop),
                rule("there", "amt IS NOT NULL", ExpectationAction::Drop),
                rule("small", "id < 5", ExpectationAction::Warn),
            ]))
            .await?;
        let counts: Vec<_> = report.rules.iter().map(|count| (count.passed, count.failed, count.dropped)).collect();
        ensure!(counts == [(1, 13, 13), (13, 1, 0), (5, 9, 0)], "{counts:?}");
        ensure!((report.rows_in, report.rows_out, report.rows_ignored["expectation"]) == (14, 1, 13), "{report:?}");
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}
