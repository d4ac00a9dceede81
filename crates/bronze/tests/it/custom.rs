//! Record sources that the program brings.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tributary_bronze::{OnGap, Options, PartitionBounds, RecordSource, SourceError, SourceRecord};
use tributary_specs::{SourceFeed, Status};
use tributary_testkit::Rule;

use crate::world::{BAD_INPUT, World, code_of, exit_of, feed};

/// A source in memory: partitions of records, the earliest position it still has, and holes where a record is none.
#[derive(Debug, Default)]
pub struct Memory {
    partitions: Mutex<Vec<(i64, Vec<Option<Value>>)>>,
    unruly: bool,
}

impl Memory {
    pub fn with(partitions: Vec<(i64, Vec<Option<Value>>)>) -> Arc<Self> {
        Arc::new(Self { partitions: Mutex::new(partitions), unruly: false })
    }

    fn set(&self, partitions: Vec<(i64, Vec<Option<Value>>)>) {
        *self.partitions.lock().unwrap() = partitions;
    }
}

#[async_trait]
impl RecordSource for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn partitions(&self) -> Result<Vec<PartitionBounds>, SourceError> {
        let partitions = self.partitions.lock().unwrap();
        let bounds = |(partition, (earliest, records)): (usize, &(i64, Vec<Option<Value>>))| PartitionBounds {
            partition: i32::try_from(partition).unwrap(),
            earliest: *earliest,
            end: i64::try_from(records.len()).unwrap(),
        };
        Ok(partitions.iter().enumerate().map(bounds).collect())
    }

    async fn read(&self, partition: i32, from: i64, until: i64, max: usize) -> Result<Vec<SourceRecord>, SourceError> {
        let partitions = self.partitions.lock().unwrap();
        let (_, records) = &partitions[usize::try_from(partition)?];
        let mut found = Vec::new();
        for position in from..until {
            if let Some(value) = &records[usize::try_from(position)?] {
                found.push(SourceRecord {
                    topic: "m".into(),
                    position,
                    value: Some(value.to_string().into_bytes()),
                    ..SourceRecord::default()
                });
            }
        }
        found.truncate(max);
        if self.unruly {
            found.reverse();
        }
        Ok(found)
    }
}

fn custom() -> SourceFeed {
    feed(json!({
        "name": "a", "table": "bronze.a", "decode": "json", "source": {"custom": "memory"},
        "columns": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }))
}

fn some(ids: std::ops::Range<i64>) -> Vec<Option<Value>> {
    ids.map(|id| Some(json!({"id": id}))).collect()
}

fn options(world: &World, source: &Arc<Memory>) -> Options {
    let mut options = world.options();
    options.sources = vec![source.clone()];
    options.slice_records = 4;
    options
}

async fn ids(world: &World) -> Vec<i64> {
    let mut ids: Vec<_> = world.columns("bronze.a", &["id"]).await.iter().map(|row| row[0].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// B2: the table's position is where reading goes on.
/// B2.
#[tokio::test]
async fn a_source_is_drained_and_read_on_from_the_tables_position() {
    let world = World::new();
    let source = Memory::with(vec![(0, some(0..10)), (0, vec![Some(json!({"id": 100})), None, None, Some(json!({"id": "bad"})), None])]);
    let mut options = options(&world, &source);
    options.max_records_per_trigger = Some(6);
    let report = world.run_with(&[custom()], &options).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.rows_quarantined), (None, 11, 1));
    assert_eq!((report.positions["0"], report.positions["1"]), (10, 5));
    let versions = world.versions().await;
    let report = world.run_with(&[custom()], &options).await.remove(0);
    assert_eq!((report.status, report.rows_in), (Status::NothingNew, 0));
    assert_eq!(world.versions().await, versions);
    source.set(vec![(2, some(0..12)), (0, vec![None; 5])]);
    assert_eq!(world.run_with(&[custom()], &options).await[0].rows_out, 2);
    assert_eq!(ids(&world).await, (0..12).chain([100]).collect::<Vec<_>>());
    let refused = world.columns("quarantine.a", &["partition", "offset", "file"]).await;
    assert_eq!(refused, [json!([1, 3, null])]);
}

/// B4
/// B4.
#[tokio::test]
async fn a_position_the_source_no_longer_has_stops_the_feed_with_the_range_unless_told_otherwise() {
    let world = World::new();
    let source = Memory::with(vec![(0, some(0..3))]);
    let mut options = options(&world, &source);
    world.run_with(&[custom()], &options).await;
    source.set(vec![(5, some(0..8))]);
    let report = world.run_with(&[custom()], &options).await.remove(0);
    assert_eq!((report.status, exit_of(&report), code_of(&report)), (Status::Failed, BAD_INPUT, "BR0012"));
    assert!(report.error.unwrap().message.contains("missing 3 to 5 (next: tributary run --only bronze.a --on-gap earliest)"));
    options.on_gap = OnGap::Earliest;
    let report = world.run_with(&[custom()], &options).await.remove(0);
    assert_eq!((report.rows_out, report.error), (3, None));
    assert!(report.notes[0].contains("positions 3 to 5 are missing"), "{:?}", report.notes);
    assert_eq!(ids(&world).await, [0, 1, 2, 5, 6, 7]);

    source.set(vec![(0, some(0..2))]);
    options.on_gap = OnGap::Stop;
    assert_eq!(code_of(&world.run_with(&[custom()], &options).await[0]), "BR0012");
    options.on_gap = OnGap::Latest;
    let report = world.run_with(&[custom()], &options).await.remove(0);
    assert_eq!((report.rows_out, report.positions["0"]), (0, 2));
    options.on_gap = OnGap::Stop;
    assert_eq!(world.run_with(&[custom()], &options).await[0].status, Status::NothingNew, "the choice is in the table");
}

#[tokio::test]
async fn a_position_another_run_moved_stops_this_one_as_busy() {
    let world = World::new();
    let source = Memory::with(vec![(0, some(0..3))]);
    world.run_with(&[custom()], &options(&world, &source)).await;
    source.set(vec![(0, some(0..6))]);
    let other = World::over(world.lake_store.inner(), world.data_store.inner());
    let others = options(&other, &source);
    world.lake_store.before(Rule::delta_commit().on("bronze/a/_delta_log/0"), 1, move |_| async move {
        assert_eq!(other.run_with(&[custom()], &others).await[0].rows_out, 3);
    });
    let report = world.run_with(&[custom()], &options(&world, &source)).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report), report.rows_out), (Some(75), "BR0015", 0));
    assert_eq!(ids(&world).await, (0..6).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_source_that_breaks_its_promises_or_is_not_there_is_named() {
    let world = World::new();
    let unruly = Arc::new(Memory { partitions: Mutex::new(vec![(0, some(0..3))]), unruly: true });
    let report = world.run_with(&[custom()], &options(&world, &unruly)).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (Some(70), "BR0011"));
    let report = world.run(&[custom()]).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0009"));
}

#[tokio::test]
async fn a_crash_between_quarantine_and_bronze_does_not_quarantine_again() {
    let world = World::new();
    let source = Memory::with(vec![(0, vec![Some(json!({"id": 1})), Some(json!({"id": "bad"}))])]);
    let refused = Rule::delta_commit().on("bronze/a/_delta_log/00000000000000000001");
    world.lake_store.fail(refused, 1, tributary_testkit::ScriptedFault::Denied);
    let report = world.run_with(&[custom()], &options(&world, &source)).await.remove(0);
    assert_eq!(report.status, Status::Failed);
    assert_eq!(world.rows("quarantine.a").await.len(), 1);
    let report = world.run_with(&[custom()], &options(&world, &source)).await.remove(0);
    assert_eq!((report.error, report.rows_out, report.rows_quarantined), (None, 1, 1));
    assert_eq!(world.rows("quarantine.a").await.len(), 1);
}

/// B6: what a source no longer has is lost by choice alone.
#[tokio::test]
async fn a_full_refresh_reads_a_source_from_its_first_record_and_loses_none_unsaid() {
    let world = World::new();
    let source = Memory::with(vec![(0, some(0..10)), (0, some(20..23))]);
    let options = options(&world, &source);
    world.run_with(&[custom()], &options).await;
    let mut full = crate::anew::anew(options.clone(), &[custom()]);
    full.max_records_per_trigger = Some(1);
    let report = world.run_with(&[custom()], &full).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.rows_deleted, report.commits), (None, 13, 13, 1), "{report:?}");
    source.set(vec![(2, some(0..12))]);
    let report = world.run_with(&[custom()], &full).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0032"));
    let message = report.error.unwrap().message;
    assert!(message.contains("partition 0: it holds records from 0 on, and its source begins at 2, and so of 1 more"), "{message}");
    full.accept_shorter_history = true;
    assert_eq!(world.run_with(&[custom()], &full).await[0].rows_out, 10);
    source.set(vec![(2, some(0..13)), (0, some(20..21))]);
    assert_eq!(world.run_with(&[custom()], &options).await[0].rows_out, 2, "a partition that comes again is a new one");
    assert_eq!(ids(&world).await, (2..13).chain([20]).collect::<Vec<_>>());
}
