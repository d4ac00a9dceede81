//! B6: a full refresh of a feed, killed at any call, over files, topics and record sources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};
use tributary_bronze::Options;
use tributary_lake::object_store::ObjectStoreExt;
use tributary_lake::object_store::path::Path;
use tributary_lake::{Clock, SystemClock};
use tributary_specs::{Source, SourceFeed, Status};
use tributary_testkit::{Control, Controls, Law, Mode, Rule};

use crate::world::{BAD_INPUT, PARTIAL, World, code_of, exit_of, feed, gzip, json_lines, record, recorded};

/// The same options, with every feed built anew.
pub fn anew(mut options: Options, feeds: &[SourceFeed]) -> Options {
    options.full_refresh = feeds.iter().map(|feed| feed.name.clone()).collect();
    options
}

fn lines(ids: impl IntoIterator<Item = i64>) -> String {
    ids.into_iter().map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

async fn ids(world: &World, table: &str) -> Vec<i64> {
    let mut ids: Vec<_> = world.columns(table, &["id"]).await.iter().map(|row| row[0].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn one_commit_holds_what_the_folder_holds_in_the_types_that_are_declared_now() {
    let world = World::new();
    world.drop_file("in/1.jsonl", lines([1, 2])).await;
    world.drop_file("in/2.jsonl", "{\"id\":3,\"note\":\"x\"}\n{\"id\":4,\"note\":5.5}\n").await;
    let narrow = json_lines("a", "in");
    assert_eq!(world.run_one(&narrow).await.rows_out, 4);
    world.drop_file("in/3.jsonl", lines([5])).await;
    let wide = feed(json!({
        "name": "a", "table": "bronze.a", "decode": "json", "source": {"files": {"path": "in", "format": "jsonl"}},
        "columns": [{"name": "id", "type": "string"}, {"name": "note", "type": "string"}],
    }));
    let mut options = anew(world.options(), std::slice::from_ref(&wide));
    options.max_files_per_trigger = 1;
    let before = world.versions().await["bronze.a"];
    let report = world.run_with(std::slice::from_ref(&wide), &options).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.rows_deleted, report.commits), (None, 5, 4, 1), "{report:?}");
    assert_eq!((report.mode.as_str(), report.reason.as_str()), ("full", "a full refresh was asked for"));
    assert_eq!(world.versions().await["bronze.a"], before + 1, "one commit, whatever a batch may hold");
    let rows = world.columns("bronze.a", &["id"]).await;
    assert_eq!(rows, ["1", "2", "3", "4", "5"].map(|id| json!([id])));
    let report = world.run_with(&[wide], &world.options()).await.remove(0);
    assert_eq!((report.status, report.rows_in), (Status::NothingNew, 0), "{report:?}");
}

#[tokio::test]
async fn files_that_are_gone_are_lost_by_choice_alone_and_are_new_when_they_come_again() {
    for separate_max in [0, 1, 10_000] {
        let world = World::new();
        let feeds = [json_lines("a", "in")];
        let mut options = world.options();
        options.files_as_positions_max = separate_max;
        for (name, id) in [("1", 1), ("2", 2), ("3", 3)] {
            world.drop_file(&format!("in/{name}.jsonl"), lines([id])).await;
        }
        world.run_with(&feeds, &options).await;
        world.data_store.inner().delete(&Path::from("drops/in/2.jsonl")).await.unwrap();
        world.drop_file("in/3.jsonl", lines([3, 4])).await;
        let versions = world.versions().await;
        let mut full = anew(options.clone(), &feeds);
        let report = world.run_with(&feeds, &full).await.remove(0);
        assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0032"), "{report:?}");
        let message = report.error.unwrap().message;
        assert!(message.contains("1 of the 3 files") && message.contains("--full-refresh bronze.a --accept-shorter-history"), "{message}");
        assert_eq!(world.versions().await, versions, "a file that has grown is all there; nothing was written");
        full.accept_shorter_history = true;
        let report = world.run_with(&feeds, &full).await.remove(0);
        assert_eq!((report.error, report.rows_out, report.rows_deleted), (None, 3, 3));
        assert!(report.notes.iter().any(|note| note.contains("1 of the 3 files")), "{:?}", report.notes);
        assert_eq!(ids(&world, "bronze.a").await, [1, 3, 4]);
        world.drop_file("in/2.jsonl", lines([2])).await;
        world.drop_file("in/3.jsonl", lines([3, 4, 5])).await;
        let report = world.run_with(&feeds, &options).await.remove(0);
        assert_eq!((report.error, report.rows_out), (None, 2), "what comes again is new, and a file grows on from where it was");
        assert_eq!(ids(&world, "bronze.a").await, [1, 2, 3, 4, 5]);
    }
}

#[tokio::test]
async fn the_table_lies_from_then_on_as_it_is_declared() {
    let world = World::new();
    let lying = |lies: Value| {
        let mut spec = json!({
            "name": "a", "table": "bronze.a", "decode": "json", "source": {"files": {"path": "in", "format": "jsonl"}},
            "columns": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
        });
        spec.as_object_mut().unwrap().extend(lies.as_object().unwrap().clone());
        [feed(spec)]
    };
    world.drop_file("in/1.jsonl", "{\"id\":1,\"note\":\"x\"}\n{\"id\":2,\"note\":\"y\"}\n").await;
    world.run_with(&lying(json!({})), &world.options()).await;
    let layouts = [json!({"partition_by": ["note"]}), json!({"cluster_by": ["id"]}), json!({"partition_by": ["id"]}), json!({})];
    for (at, lies) in layouts.into_iter().enumerate() {
        let feeds = lying(lies);
        let report = world.run_with(&feeds, &anew(world.options(), &feeds)).await.remove(0);
        assert_eq!(report.error, None);
        let table = world.lake().table(&feeds[0].table).await.unwrap().unwrap();
        assert_eq!((table.lies().partition_by, table.lies().cluster_by), (feeds[0].partition_by.clone(), feeds[0].cluster_by.clone()));
        world.drop_file(&format!("in/more-{at}.jsonl"), format!("{{\"id\":{},\"note\":\"z\"}}\n", at + 3)).await;
        world.run_with(&feeds, &world.options()).await;
        assert_eq!(ids(&world, "bronze.a").await, (1..at as i64 + 4).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn an_empty_folder_empties_the_table_by_choice_and_a_table_that_is_not_there_is_made() {
    let world = World::new();
    let feeds = [json_lines("a", "in")];
    let mut full = anew(world.options(), &feeds);
    world.drop_file("in/1.jsonl", lines([1])).await;
    let report = world.run_with(&feeds, &full).await.remove(0);
    assert_eq!((report.rows_out, report.mode.as_str()), (1, "append"), "there was nothing to replace");
    world.data_store.inner().delete(&Path::from("drops/in/1.jsonl")).await.unwrap();
    world.drop_file("in/empty.jsonl", "").await;
    assert_eq!(code_of(&world.run_with(&feeds, &full).await[0]), "BR0032");
    full.accept_shorter_history = true;
    let report = world.run_with(&feeds, &full).await.remove(0);
    assert_eq!((report.error, report.rows_deleted), (None, 1));
    assert_eq!(ids(&world, "bronze.a").await, Vec::<i64>::new());
}

#[tokio::test]
async fn what_is_in_quarantine_is_not_there_twice_and_what_decodes_now_is_a_row() {
    let world = World::new();
    world.drop_file("in/1.jsonl", "{\"id\":1}\n{\"id\":\"two\"}\n{\"id\":\n").await;
    let feeds = [json_lines("a", "in")];
    assert_eq!(world.run_with(&feeds, &world.options()).await[0].rows_quarantined, 2);
    let open = async |world: &World| world.rows("quarantine.a").await.iter().filter(|row| row["superseded_at"].is_null()).count();
    world.run_with(&feeds, &anew(world.options(), &feeds)).await;
    assert_eq!((open(&world).await, world.rows("quarantine.a").await.len()), (2, 2), "kept once");
    let text = [feed(json!({
        "name": "a", "table": "bronze.a", "decode": "json", "source": {"files": {"path": "in", "format": "jsonl"}},
        "columns": [{"name": "id", "type": "string"}],
    }))];
    let report = world.run_with(&text, &anew(world.options(), &text)).await.remove(0);
    assert_eq!((report.error, report.rows_out), (None, 2));
    assert_eq!((open(&world).await, world.rows("bronze.a").await.len()), (1, 2), "a row takes its record out of quarantine");
}

#[tokio::test]
async fn only_the_feed_that_is_named_is_built_anew_of_those_that_read_the_same_files() {
    let world = World::new();
    let feeds = [recorded("a", "in", &["t"]), recorded("b", "in", &["u"])];
    world.drop_file("in/1.jsonl", [record("t", 0, &json!({"id": 1})), record("u", 0, &json!({"id": 2}))].concat()).await;
    world.run_with(&feeds, &world.options()).await;
    world.drop_file("in/2.jsonl", [record("t", 1, &json!({"id": 3})), record("u", 1, &json!({"id": 4}))].concat()).await;
    let reports = world.run_with(&feeds, &anew(world.options(), &feeds[..1])).await;
    let counts: Vec<_> = reports.iter().map(|report| (report.rows_out, report.rows_deleted)).collect();
    assert_eq!(counts, [(2, 1), (1, 0)]);
    assert_eq!((ids(&world, "bronze.a").await, ids(&world, "bronze.b").await), (vec![1, 3], vec![2, 4]));
}

/// Kills a full refresh at every mutating call: what readers see is what was there or what shall be there, and a plain run brings the
/// latter. What is otherwise.
pub async fn killed_everywhere(
    controls: Controls,
    before: impl AsyncFn() -> World,
    run: impl AsyncFn(&World, bool),
    see: impl AsyncFn(&World) -> Value,
) -> Vec<String> {
    let of = |world: &World| World { controls, ..World::over(world.lake_store.inner(), world.data_store.inner()) };
    let world = before().await;
    let old = see(&world).await;
    run(&of(&world), true).await;
    let new = see(&world).await;
    assert_ne!(old, new, "the refresh can be told");
    let mut differences = Vec::new();
    for call in 1.. {
        let mut reached = false;
        for mode in Mode::ALL {
            let world = before().await;
            let process = of(&world);
            process.lake_store.kill_at(call, mode);
            run(&process, true).await;
            reached |= process.lake_store.killed();
            let seen = see(&world).await;
            if seen != old && seen != new {
                differences.push(format!("killed {mode:?} call {call}: readers see {seen}"));
            }
            run(&of(&world), false).await;
            let seen = see(&world).await;
            if seen != new {
                differences.push(format!("killed {mode:?} call {call}: the next run ends with {seen}"));
            }
        }
        if !reached {
            assert!(call > 2, "{call} calls");
            break;
        }
    }
    differences
}

async fn of_files(controls: Controls) -> Vec<String> {
    let feeds = [json_lines("a", "in")];
    let before = async || {
        let world = World::new();
        world.drop_file("in/1.jsonl", lines(0..5)).await;
        world.drop_file("in/2.jsonl", [lines(5..7), "{\"id\":\"bad\"}\n".to_owned()].concat()).await;
        world.run_with(&feeds, &world.options()).await;
        world.drop_file("in/3.jsonl", lines(7..9)).await;
        world
    };
    let run = async |world: &World, full: bool| {
        let options = if full { anew(world.options(), &feeds) } else { world.options() };
        world.run_with(&feeds, &options).await;
    };
    let see = async |world: &World| {
        let open = world.rows("quarantine.a").await.iter().filter(|row| row["superseded_at"].is_null()).count();
        json!([world.columns("bronze.a", &["id", "_file", "_line"]).await, open])
    };
    killed_everywhere(controls, before, run, see).await
}

/// B6.
#[tokio::test]
async fn a_full_refresh_of_files_killed_at_any_call_happened_whole_or_not_at_all() {
    let differences = of_files(Controls::none()).await;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The control of B6.
#[tokio::test]
async fn positions_outside_the_commit_make_the_crash_test_of_full_refreshes_fail() {
    assert!(!of_files(Controls::none().with(Control::PositionsOutsideCommit)).await.is_empty());
}

/// B6: a run beside a full refresh brings no record twice, and the refresh none that the run has brought.
#[tokio::test]
async fn a_run_beside_a_full_refresh_brings_no_record_twice() {
    let world = World::new();
    let feeds = [json_lines("a", "in")];
    world.drop_file("in/1.jsonl", lines([1])).await;
    world.run_with(&feeds, &world.options()).await;
    world.drop_file("in/2.jsonl", lines([2])).await;
    let beside = World::over(world.lake_store.inner(), world.data_store.inner());
    let others = feeds.clone();
    world.lake_store.before(Rule::delta_commit().on("bronze/a/_delta_log/0"), 1, move |_| async move {
        beside.run_with(&others, &beside.options()).await;
    });
    let report = world.run_with(&feeds, &anew(world.options(), &feeds)).await.remove(0);
    assert_eq!((report.error, report.rows_deleted, report.conflicts), (None, 2, 1));
    assert_eq!(ids(&world, "bronze.a").await, [1, 2]);
}

#[derive(Debug, Clone)]
enum Step {
    /// A file under a name, with so many rows more than it had.
    Grow(u8, i64),
    Remove(u8),
    Run,
    Refresh,
}

fn step() -> impl Strategy<Value = (Step, Option<(u64, Mode)>)> {
    let one = prop_oneof![
        3 => (0..4_u8, 1..4_i64).prop_map(|(file, rows)| Step::Grow(file, rows)),
        1 => (0..4_u8).prop_map(Step::Remove),
        2 => Just(Step::Run),
        2 => Just(Step::Refresh),
    ];
    let mode = prop::sample::select(vec![Mode::Before, Mode::After, Mode::AnswerLost]);
    (one, prop::option::weighted(0.4, (1..7_u64, mode)))
}

/// Runs steps over the files of the model; what is otherwise than promised.
async fn steps(steps: Vec<(Step, Option<(u64, Mode)>)>, controls: Controls) -> Result<(), TestCaseError> {
    let world = World::new();
    let feeds = [json_lines("a", "in")];
    let mut files: BTreeMap<u8, Vec<i64>> = BTreeMap::new();
    let mut next = 0;
    for (step, kill) in steps.into_iter().chain([(Step::Run, None), (Step::Refresh, None), (Step::Run, None)]) {
        let before = ids(&world, "bronze.a").await;
        let process = World { controls, ..World::over(world.lake_store.inner(), world.data_store.inner()) };
        let full = match step {
            Step::Grow(file, rows) => {
                let held = files.entry(file).or_default();
                held.extend(next..next + rows);
                next += rows;
                world.drop_file(&format!("in/{file}.jsonl"), lines(held.clone())).await;
                continue;
            }
            Step::Remove(file) => {
                if files.remove(&file).is_some() {
                    world.data_store.inner().delete(&Path::from(format!("drops/in/{file}.jsonl"))).await.unwrap();
                }
                continue;
            }
            Step::Run => false,
            Step::Refresh => true,
        };
        world.drop_file("in/none.jsonl", "").await;
        if let Some((call, mode)) = kill {
            process.lake_store.kill_at(call, mode);
        }
        let mut options = if full { anew(process.options(), &feeds) } else { process.options() };
        options.accept_shorter_history = true;
        options.files_as_positions_max = 3;
        let report = process.run_with(&feeds, &options).await.remove(0);
        let after = ids(&world, "bronze.a").await;
        let there: BTreeSet<i64> = files.values().flatten().copied().collect();
        let exactly = there.iter().copied().collect::<Vec<_>>();
        prop_assert!(after.windows(2).all(|pair| pair[0] < pair[1]), "a row is there twice: {:?}", after);
        match (full, process.lake_store.killed()) {
            (true, false) => prop_assert_eq!(&after, &exactly, "{:?}", report),
            (true, true) => prop_assert!(after == exactly || after == before, "{:?} of {:?} and {:?}", after, before, exactly),
            (false, false) => prop_assert!(there.iter().all(|id| after.contains(id)) && before.iter().all(|id| after.contains(id))),
            (false, true) => prop_assert!(before.iter().all(|id| after.contains(id))),
        }
    }
    Ok(())
}

fn try_steps(tried: Vec<(Step, Option<(u64, Mode)>)>, controls: Controls) -> Result<(), TestCaseError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(steps(tried, controls))
}

/// B6.
#[test]
fn law_b6_runs_and_full_refreshes_killed_anywhere_hold_each_record_once() {
    Law::new("b6").within(Duration::from_secs(5)).holds(&prop::collection::vec(step(), 1..12), |tried, counted| {
        counted.add("steps", tried.len());
        try_steps(tried, Controls::none())
    });
}

/// The control of the law.
#[test]
fn the_law_of_full_refreshes_is_broken_where_positions_are_outside_the_commit() {
    let controls = Controls::none().with(Control::PositionsOutsideCommit);
    Law::new("b6_control")
        .within(Duration::from_secs(20))
        .is_broken(&prop::collection::vec(step(), 1..12), |tried, _| try_steps(tried, controls));
}

/// A table that mirrors its folder.
fn mirror(path: &str) -> [SourceFeed; 1] {
    [feed(json!({
        "name": "a", "table": "bronze.a", "decode": "json",
        "source": {"files": {"path": path, "format": "jsonl", "mirrors": true}},
        "columns": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }))]
}

#[tokio::test]
async fn a_table_that_mirrors_its_folder_holds_what_the_folder_holds_after_every_run() {
    let world = World::new();
    let feeds = mirror("in");
    let run = async || world.run_with(&feeds, &world.options()).await.remove(0);
    world.drop_file("in/1.jsonl", lines([1])).await;
    world.drop_file("in/2.jsonl", lines([2])).await;
    assert_eq!((run().await.mode.as_str(), ids(&world, "bronze.a").await), ("append", vec![1, 2]));
    world.drop_file("in/3.jsonl", lines([3])).await;
    let report = run().await;
    assert_eq!((report.rows_out, report.rows_deleted, report.mode.as_str()), (1, 0, "append"), "what is merely new is added");
    world.drop_file("in/2.jsonl", lines([2, 4])).await;
    let report = run().await;
    assert_eq!((report.error, report.rows_out, report.rows_deleted, report.commits), (None, 4, 3, 1));
    assert_eq!(report.reason, "files of its folder have changed or gone");
    world.data_store.inner().delete(&Path::from("drops/in/1.jsonl")).await.unwrap();
    assert_eq!(run().await.error, None);
    assert_eq!(ids(&world, "bronze.a").await, [2, 3, 4]);
    let versions = world.versions().await;
    assert_eq!(run().await.status, Status::NothingNew);
    assert_eq!(world.versions().await, versions, "a folder that holds still costs a look");
    world.drop_file("in/2.jsonl", "").await;
    run().await;
    world.drop_file("in/1.jsonl", lines([1])).await;
    run().await;
    assert_eq!(ids(&world, "bronze.a").await, [1, 3]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_whole_leaves_the_table_that_mirrors_it_as_it_is() {
    let world = World::new();
    let feeds = mirror("in");
    let run = async || world.run_with(&feeds, &world.options()).await.remove(0);
    world.drop_file("in/1.jsonl", lines([1])).await;
    world.drop_file("in/2.jsonl.gz", gzip(lines([2]).as_bytes())).await;
    assert_eq!((run().await.error, ids(&world, "bronze.a").await), (None, vec![1, 2]));
    world.drop_file("in/1.jsonl", lines([3])).await;
    world.drop_file("in/2.jsonl.gz", &gzip(lines([5]).as_bytes())[..12]).await;
    world.drop_file("in/4.jsonl", lines([4])).await;
    let versions = world.versions().await;
    let report = run().await;
    assert_eq!((exit_of(&report), report.rows_in), (PARTIAL, 0), "{report:?}");
    assert!(report.notes.iter().any(|note| note.contains("left for the next run")), "{:?}", report.notes);
    assert_eq!((world.versions().await, ids(&world, "bronze.a").await), (versions, vec![1, 2]));
    world.drop_file("in/2.jsonl.gz", gzip(lines([5]).as_bytes())).await;
    assert_eq!((run().await.error, ids(&world, "bronze.a").await), (None, vec![3, 4, 5]));
}

#[tokio::test]
async fn a_changed_file_beside_one_that_has_not_settled_is_not_added_to_what_it_was() {
    let world = World::new();
    let mut feeds = mirror("in");
    if let Source::Files(source) = &mut feeds[0].source {
        source.settle_seconds = 2;
    }
    let run = async || world.run_with(&feeds, &world.options()).await.remove(0);
    world.drop_file("in/1.jsonl", lines([1])).await;
    world.clock.set(SystemClock.now() + TimeDelta::seconds(2));
    assert_eq!((run().await.error, ids(&world, "bronze.a").await), (None, vec![1]));
    world.drop_file("in/1.jsonl", lines([2])).await;
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    world.drop_file("in/2.jsonl", lines([3])).await;
    world.clock.set(SystemClock.now());
    // A run is a second later.
    world.clock.advance(TimeDelta::seconds(1));
    let looked = tributary_bronze::look(&world.lake(), &feeds, &world.options()).await.unwrap().remove(0);
    assert_eq!((looked.mirrors, looked.files.len(), looked.settling), (false, 0, 1), "a plan says so too");
    world.clock.advance(TimeDelta::seconds(-1));
    let report = run().await;
    assert_eq!((report.status, ids(&world, "bronze.a").await), (Status::NothingNew, vec![1]), "{report:?}");
    assert!(report.notes.iter().any(|note| note.contains("left for the next run")), "{:?}", report.notes);
    world.clock.advance(TimeDelta::seconds(2));
    assert_eq!((run().await.error, ids(&world, "bronze.a").await), (None, vec![2, 3]));
}
