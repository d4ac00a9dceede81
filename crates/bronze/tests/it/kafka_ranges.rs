//! Backfills: partitions of topics read from an offset to an offset.

use std::sync::Arc;

use serde_json::json;
use tributary_bronze::{Consumers, KafkaMode, Options};
use tributary_specs::{DatasetReport, SourceFeed, Status};

use crate::kafka::{Broker, ids, topics};
use crate::world::{BAD_INPUT, World, code_of, exit_of};

/// Two partitions of ten records each, and the feed that reads them.
fn ten_each() -> (World, Broker, [SourceFeed; 1]) {
    let (world, broker) = (World::new(), Broker::new(&[("t", 2)]));
    broker.send("t", 0, 0..10);
    broker.send("t", 1, 100..110);
    (world, broker, [topics("a", json!({"topics": ["t"]}))])
}

fn from(options: &Options, topic: &str, partition: i32, offset: i64) -> Options {
    let mut options = options.clone();
    options.kafka.starting_offsets.insert((topic.to_owned(), partition), offset);
    options
}

fn until(options: &Options, partition: i32, offset: i64) -> Options {
    let mut options = options.clone();
    options.kafka.ending_offsets.insert(("t".to_owned(), partition), offset);
    options
}

fn refused(report: &DatasetReport, word: &str) {
    assert_eq!((report.status, exit_of(report), code_of(report)), (Status::Failed, BAD_INPUT, "BR0031"), "{report:?}");
    let message = &report.error.as_ref().unwrap().message;
    assert!(message.contains("topic `t`") && message.contains(word), "{message}");
}

/// B1, B2.
#[tokio::test]
async fn a_range_is_read_once_may_be_repeated_and_the_next_run_goes_on_from_its_end() {
    let (world, broker, feeds) = ten_each();
    let options = broker.options(&world);
    let asked = until(&from(&options, "t", 0, 3), 0, 7);
    let mut first = asked.clone();
    first.max_records_per_trigger = Some(1);
    first.slice_records = 1;
    let report = world.run_with(&feeds, &first).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.positions["t/0"]), (None, 4, 7));
    assert_eq!(ids(&world, "bronze.a").await, [3, 4, 5, 6], "and nothing of the other partition");
    let report = world.run_with(&feeds, &asked).await.remove(0);
    assert_eq!((report.status, report.rows_in), (Status::NothingNew, 0));
    assert!(report.notes.iter().any(|note| note.contains("stands at 7 already")), "{:?}", report.notes);
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out), (None, 13));
    assert_eq!(ids(&world, "bronze.a").await, (3..10).chain(100..110).collect::<Vec<_>>());
}

/// B1: a run that ended within the range, as a killed one does, is gone on with.
#[tokio::test]
async fn what_a_table_has_of_a_range_is_not_read_again() {
    let (world, broker, feeds) = ten_each();
    let options = broker.options(&world);
    world.run_with(&feeds, &until(&options, 0, 5)).await;
    let report = world.run_with(&feeds, &until(&from(&options, "t", 0, 2), 0, 8)).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out), (None, 3));
    assert_eq!(ids(&world, "bronze.a").await, (0..8).collect::<Vec<_>>());
}

/// B1, B4.
#[tokio::test]
async fn a_range_that_would_go_back_or_pass_over_records_is_refused() {
    let (world, broker, feeds) = ten_each();
    let options = broker.options(&world);
    world.run_with(&feeds, &until(&options, 0, 5)).await;
    let versions = world.versions().await;
    refused(&world.run_with(&feeds, &until(&from(&options, "t", 0, 1), 0, 4)).await[0], "never goes back");
    refused(&world.run_with(&feeds, &from(&options, "t", 0, 6)).await[0], "between that and 6 would never be read");
    refused(&world.run_with(&feeds, &until(&from(&options, "t", 1, 6), 1, 5)).await[0], "is past its ending offset 5");
    assert_eq!(world.versions().await, versions);
}

#[tokio::test]
async fn partitions_and_topics_that_are_not_there_are_refused_and_so_is_a_range_without_an_end_to_the_run() {
    let (world, broker, feeds) = ten_each();
    let options = broker.options(&world);
    refused(&world.run_with(&feeds, &from(&options, "t", 2, 0)).await[0], "partition 2");
    let report = world.run_with(&feeds, &from(&options, "u", 0, 0)).await.remove(0);
    assert!(report.error.as_ref().unwrap().message.contains("topic `u`"), "{report:?}");
    let mut continuous = from(&options, "t", 0, 0);
    continuous.kafka.mode = KafkaMode::Continuous(Arc::new(Consumers::default()));
    let report = world.run_with(&feeds, &continuous).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0031"));
    assert!(report.error.unwrap().message.contains("only a run that ends"));
}

/// B4.
#[tokio::test]
async fn a_range_that_the_broker_does_not_have_yet_is_read_as_far_as_it_goes_and_that_is_said() {
    let (world, broker, feeds) = ten_each();
    let options = broker.options(&world);
    let report = world.run_with(&feeds, &until(&options, 0, 25)).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out), (None, 10));
    assert!(report.notes.iter().any(|note| note.contains("it ends at 10 so far; 25 was asked for")), "{:?}", report.notes);
    let report = world.run_with(&feeds, &from(&options, "t", 1, 25)).await.remove(0);
    assert_eq!(code_of(&report), "BR0012", "what lies between the end and the start is missing");
}

#[tokio::test]
async fn a_feed_that_begins_at_the_end_takes_a_range_all_the_same() {
    let (world, broker, _) = ten_each();
    let feeds = [topics("a", json!({"topics": ["t"], "starting": "latest"}))];
    let report = world.run_with(&feeds, &until(&from(&broker.options(&world), "t", 1, 4), 1, 6)).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out), (None, 2));
    assert_eq!(ids(&world, "bronze.a").await, [104, 105]);
}
