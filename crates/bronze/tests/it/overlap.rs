//! B1 when runs overlap, and files cut and ordered at random.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tributary_lake::object_store::memory::InMemory;
use tributary_testkit::{Control, Controls, Law, Rule};

use crate::world::{World, gzip, json_lines, record, recorded};

fn ids(rows: &[serde_json::Value]) -> Vec<i64> {
    let mut ids: Vec<_> = rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

async fn overlapped(controls: Controls, table: &str, commit: u64) -> (World, u64) {
    let world = World { controls, ..World::new() };
    let feeds = [recorded("a", "in", &["t"])];
    for file in 0..4 {
        let bad = record("t", 100 + file, &json!({"id": "bad"}));
        world.drop_file(&format!("in/{file}.jsonl"), [record("t", file, &json!({"id": file})), bad].concat()).await;
    }
    let other = World::over(world.lake_store.inner(), world.data_store.inner());
    let others = feeds.clone();
    let just_before = Rule::delta_commit().on(format!("{table}/_delta_log/0"));
    world.lake_store.before(just_before, commit, move |_| async move {
        let report = other.run(&others).await.remove(0);
        assert_eq!(report.error, None);
    });
    let report = world.run(&feeds).await.remove(0);
    assert_eq!(report.error, None, "the run that lost finds nothing left");
    (world, report.conflicts)
}

/// B1: overlapping runs.
#[tokio::test]
async fn two_runs_at_once_take_each_record_once_wherever_they_meet() {
    let mut met = 0;
    for table in ["bronze/a", "quarantine/a"] {
        for commit in 1..=2 {
            let (world, conflicts) = overlapped(Controls::none(), table, commit).await;
            assert_eq!(ids(&world.columns("bronze.a", &["id"]).await), [0, 1, 2, 3], "{table} commit {commit}");
            assert_eq!(world.rows("quarantine.a").await.len(), 4, "{table} commit {commit}");
            met += conflicts;
        }
    }
    assert!(met >= 2, "the runs met {met} times");
}

#[tokio::test]
async fn without_fencing_two_runs_at_once_take_records_twice() {
    let (world, _) = overlapped(Controls::none().with(Control::FencingOff), "bronze/a", 2).await;
    assert!(world.rows("bronze.a").await.len() > 4);
}

/// Records cut into files at random, some packed; files appear in any order over several runs, some twice, some grown.
#[derive(Debug, Clone)]
struct Cuts {
    files: Vec<(Vec<i64>, bool)>,
    /// Which files are there before each run.
    order: Vec<usize>,
    runs: Vec<usize>,
    max_files: usize,
    slice_records: usize,
}

fn cuts() -> impl Strategy<Value = Cuts> {
    (prop::collection::vec((1_usize..6, any::<bool>()), 1..7), 1_usize..4, 1_usize..5).prop_flat_map(|(sizes, max_files, slice_records)| {
        let mut next = 0;
        let files: Vec<_> = sizes
            .into_iter()
            .map(|(size, packed)| {
                let ids = (next..next + i64::try_from(size).unwrap_or(0)).collect();
                next += i64::try_from(size).unwrap_or(0);
                (ids, packed)
            })
            .collect();
        let order = Just((0..files.len()).collect::<Vec<_>>()).prop_shuffle();
        let runs = prop::collection::vec(1_usize..4, files.len());
        (Just(files), order, runs).prop_map(move |(files, order, runs)| Cuts { files, order, runs, max_files, slice_records })
    })
}

async fn land(cuts: &Cuts) -> (Vec<i64>, i64) {
    let world = World::over(Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    let feed = json_lines("a", "in");
    let mut options = world.options();
    (options.max_files_per_trigger, options.slice_records) = (cuts.max_files, cuts.slice_records);
    let (mut waiting, mut runs) = (cuts.order.iter(), cuts.runs.iter());
    let mut left = cuts.order.len();
    while left > 0 {
        for file in waiting.by_ref().take(*runs.next().unwrap_or(&1)) {
            let (ids, packed) = &cuts.files[*file];
            let content: String = ids.iter().map(|id| format!("{{\"id\":{id}}}\n")).collect();
            // Half of the file first: the rest is appended before the next run.
            let half: String = ids.iter().take(ids.len() / 2).map(|id| format!("{{\"id\":{id}}}\n")).collect();
            if *packed {
                world.drop_file(&format!("in/{file}.gz"), gzip(content.as_bytes())).await;
            } else if !half.is_empty() {
                world.drop_file(&format!("in/{file}.jsonl"), half).await;
                assert_eq!(world.run_with(std::slice::from_ref(&feed), &options).await[0].error, None);
                world.drop_file(&format!("in/{file}.jsonl"), content).await;
            } else {
                world.drop_file(&format!("in/{file}.jsonl"), content).await;
            }
            left -= 1;
        }
        assert_eq!(world.run_with(std::slice::from_ref(&feed), &options).await[0].error, None);
    }
    let expected = cuts.files.iter().map(|(ids, _)| i64::try_from(ids.len()).unwrap_or(0)).sum();
    (ids(&world.columns("bronze.a", &["id"]).await), expected)
}

/// B1: however files come.
#[test]
fn each_record_lands_once_however_files_are_cut_ordered_and_grown() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tried = Law::new("each record lands once").holds(&cuts(), |cuts, tried| {
        let (landed, expected) = runtime.block_on(land(&cuts));
        tried.add("files", cuts.files.len());
        prop_assert_eq!(landed, (0..expected).collect::<Vec<_>>());
        Ok(())
    });
    assert!(tried.count("files") > 0);
}
