//! Rounds of continuous runs: processes that share a group.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tributary_bronze::{Consumers, KafkaMode, Options, ProgressSink, Seen};
use tributary_specs::{DatasetReport, SourceFeed, Status};
use tributary_testkit::Rule;

use crate::kafka::{Broker, ids, topics};
use crate::world::World;

/// One process of a group.
struct Process {
    world: World,
    options: Options,
}

impl Process {
    fn new(lake: &World, broker: &Broker) -> Self {
        let world = World { clock: Arc::clone(&lake.clock), ..World::over(lake.lake_store.inner(), lake.data_store.inner()) };
        let mut options = broker.options(&world);
        options.kafka.mode = KafkaMode::Continuous(Arc::new(Consumers::default()));
        options.kafka.properties.extend(
            [("session.timeout.ms", "3000"), ("heartbeat.interval.ms", "200")].map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        Self { world, options }
    }

    async fn round(&self, feeds: &[SourceFeed]) -> DatasetReport {
        self.world.run_with(feeds, &self.options).await.remove(0)
    }
}

/// Lets the processes have rounds, one after the other, until the table holds these many rows.
async fn until_rows(processes: &[&Process], feeds: &[SourceFeed], rows: usize) -> Vec<u64> {
    let mut taken = vec![0; processes.len()];
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        for (process, taken) in processes.iter().zip(&mut taken) {
            let report = process.round(feeds).await;
            assert_eq!(report.error, None);
            *taken += report.rows_out;
        }
        if ids(&processes[0].world, "bronze.a").await.len() >= rows {
            return taken;
        }
        assert!(Instant::now() < deadline, "after 60 s {taken:?} of {rows}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Lets a process have rounds until the table holds as many rows as there are ids, which must be these.
async fn until_table_holds(process: &Process, feeds: &[SourceFeed], expected: Range<i64>) {
    until_rows(&[process], feeds, expected.clone().count()).await;
    assert_eq!(ids(&process.world, "bronze.a").await, expected.collect::<Vec<_>>());
}

fn feeds() -> [SourceFeed; 1] {
    [topics("a", json!({"topics": ["t"]}))]
}

#[tokio::test]
async fn a_round_takes_what_is_there_and_one_without_news_writes_nothing() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 2)]));
    let process = Process::new(&world, &broker);
    broker.send("t", 0, 0..20);
    until_rows(&[&process], &feeds(), 20).await;
    let versions = world.versions().await;
    for _ in 0..3 {
        assert_eq!(process.round(&feeds()).await.status, Status::NothingNew);
    }
    assert_eq!(world.versions().await, versions);
    broker.send("t", 1, 20..25);
    let report = process.round(&feeds()).await;
    assert_eq!((report.rows_out, report.lag_records), (5, Some(0)), "what is there when a round begins is in the table when it ends");
    assert_eq!(ids(&world, "bronze.a").await, (0..25).collect::<Vec<_>>());
}

/// KAFKA-01, KAFKA-11. B1.
#[tokio::test]
async fn a_process_joins_and_another_leaves_and_each_record_lands_once() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 4)]));
    let first = Process::new(&world, &broker);
    (0..4).for_each(|partition| broker.send("t", partition, i64::from(partition) * 1000..i64::from(partition) * 1000 + 300));
    until_rows(&[&first], &feeds(), 1200).await;
    let second = Process::new(&world, &broker);
    let deadline = Instant::now() + Duration::from_secs(60);
    // Until the group has given the second some of the partitions.
    let mut sent = 300;
    loop {
        (0..4)
            .for_each(|partition| broker.send("t", partition, i64::from(partition) * 1000 + sent..i64::from(partition) * 1000 + sent + 10));
        sent += 10;
        first.round(&feeds()).await;
        if second.round(&feeds()).await.rows_out > 0 {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    let taken = until_rows(&[&first, &second], &feeds(), usize::try_from(4 * sent).unwrap()).await;
    drop(first);
    (0..4).for_each(|partition| broker.send("t", partition, i64::from(partition) * 1000 + sent..i64::from(partition) * 1000 + sent + 10));
    until_rows(&[&second], &feeds(), usize::try_from(4 * sent + 40).unwrap()).await;
    let expected: Vec<i64> = (0..4).flat_map(|partition| partition * 1000..partition * 1000 + sent + 10).collect();
    assert_eq!(ids(&world, "bronze.a").await, expected, "{taken:?}");
}

/// A process that was stopped while the group moved on finds its commit fenced, and goes on from the table.
#[tokio::test]
async fn a_fenced_commit_is_given_up_and_reading_goes_on_from_the_tables_position() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let process = Process::new(&world, &broker);
    broker.send("t", 0, 0..3);
    until_rows(&[&process], &feeds(), 3).await;
    broker.send("t", 0, 3..6);
    let other = World::over(world.lake_store.inner(), world.data_store.inner());
    let drain = broker.options(&other);
    process.world.lake_store.before(Rule::delta_commit().on("bronze/a/_delta_log/0"), 1, move |_| async move {
        assert_eq!(other.run_with(&feeds(), &drain).await[0].rows_out, 3);
    });
    let report = process.round(&feeds()).await;
    assert_eq!((report.error, report.rows_out, report.conflicts), (None, 0, 1));
    broker.send("t", 0, 6..8);
    until_table_holds(&process, &feeds(), 0..8).await;
}

#[tokio::test]
async fn a_broker_that_goes_away_is_said_and_waited_for() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let mut process = Process::new(&world, &broker);
    process.options.kafka.patience = Duration::from_millis(1200);
    broker.send("t", 0, 0..3);
    until_rows(&[&process], &feeds(), 3).await;
    broker.cluster.broker_down(1).unwrap();
    let report = process.round(&feeds()).await;
    assert_eq!((report.error.clone(), report.status), (None, Status::NothingNew));
    assert!(report.notes.iter().any(|note| note.contains("going on trying")), "{:?}", report.notes);
    broker.cluster.broker_up(1).unwrap();
    broker.send("t", 0, 3..5);
    until_table_holds(&process, &feeds(), 0..5).await;
}

#[tokio::test]
async fn a_topic_that_appears_later_is_taken_up_by_a_later_round() {
    let (world, broker) = (World::new(), Broker::new(&[("t.a", 1)]));
    let process = Process::new(&world, &broker);
    let feeds = [topics("a", json!({"topics": ["t.*"]}))];
    broker.send("t.a", 0, 0..3);
    until_rows(&[&process], &feeds, 3).await;
    broker.add_topic("t.b", 2);
    broker.send("t.b", 1, 3..6);
    until_table_holds(&process, &feeds, 0..6).await;
}

/// Ends the run as soon as something was read.
#[derive(Debug)]
struct EndAtFirstRecords(CancellationToken);

impl ProgressSink for EndAtFirstRecords {
    fn seen(&self, _: Seen<'_>) {
        self.0.cancel();
    }
}

#[tokio::test]
async fn a_round_that_is_told_to_end_commits_what_it_has_read_and_the_next_run_goes_on_behind_it() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let mut process = Process::new(&world, &broker);
    broker.send("t", 0, 0..500);
    process.options.slice_records = 10;
    process.options.progress = Arc::new(EndAtFirstRecords(process.options.cancel.clone()));
    let report = loop {
        let report = process.round(&feeds()).await;
        if report.rows_in > 0 {
            break report;
        }
    };
    assert_eq!((report.error, report.status), (None, Status::Committed));
    let taken = ids(&world, "bronze.a").await.len();
    assert!(taken > 0 && taken < 500 && u64::try_from(taken).unwrap() == report.rows_out, "{taken}");
    drop(process);
    let process = Process::new(&world, &broker);
    until_table_holds(&process, &feeds(), 0..500).await;
}
