//! B6 with a broker: a full refresh reads topics from their first records, and none that the broker has dropped is lost unsaid.

use std::sync::Arc;

use rdkafka::producer::BaseRecord;
use serde_json::{Value, json};
use tributary_bronze::{Consumers, KafkaMode};
use tributary_specs::{SourceFeed, Status};
use tributary_testkit::{Control, Controls};

use crate::anew::{anew, killed_everywhere};
use crate::kafka::{Broker, ids, topics};
use crate::world::{BAD_INPUT, World, code_of, exit_of, feed};

#[tokio::test]
async fn topics_are_read_from_their_start_in_one_commit_and_read_on_from_their_ends() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 2), ("u", 1)]));
    broker.send("t", 0, 0..5);
    broker.send("t", 1, 5..8);
    broker.send("u", 0, 8..10);
    let wide = [topics("a", json!({"topics": ["t", "u"]}))];
    world.run_with(&wide, &broker.options(&world)).await;
    broker.send("t", 0, 10..13);
    // The feed reads one topic less, and its column has another type.
    let texts = |names: &[&str]| {
        [feed(json!({
            "name": "a", "table": "bronze.a", "decode": "json", "source": {"kafka": {"topics": names}},
            "columns": [{"name": "id", "type": "string"}],
        }))]
    };
    let narrow = texts(&["t"]);
    let mut full = anew(broker.options(&world), &narrow);
    full.max_records_per_trigger = Some(2);
    full.slice_records = 2;
    let report = world.run_with(&narrow, &full).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0032"), "{report:?}");
    let message = report.error.unwrap().message;
    assert!(message.contains("topic `u`, partition 0") && message.contains("does not have the partition"), "{message}");
    let versions = world.versions().await;
    full.accept_shorter_history = true;
    let report = world.run_with(&narrow, &full).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.rows_deleted, report.commits), (None, 11, 10, 1), "{report:?}");
    assert_eq!(world.versions().await["bronze.a"], versions["bronze.a"] + 1);
    assert_eq!((report.positions["t/0"], report.positions["t/1"]), (8, 3));
    assert_eq!(world.columns("bronze.a", &["id"]).await.len(), 11);
    let report = world.run_with(&narrow, &broker.options(&world)).await.remove(0);
    assert_eq!((report.status, report.rows_in), (Status::NothingNew, 0));
    // The topic that was left out is read as a new one once it is read again.
    let both = texts(&["t", "u"]);
    broker.send("t", 1, 13..14);
    let report = world.run_with(&both, &broker.options(&world)).await.remove(0);
    assert_eq!((report.error, report.rows_out), (None, 3));
}

#[tokio::test]
async fn records_that_the_broker_has_dropped_are_lost_by_choice_alone() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    broker.send("t", 0, 0..3);
    world.run_with(&feeds, &broker.options(&world)).await;
    broker.overflow("t");
    let versions = world.versions().await;
    let mut full = anew(broker.options(&world), &feeds);
    let report = world.run_with(&feeds, &full).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0032"), "{report:?}");
    let message = report.error.unwrap().message;
    assert!(message.contains("topic `t`, partition 0: it holds records from 0 on, and its source begins at "), "{message}");
    assert_eq!(world.versions().await, versions);
    full.accept_shorter_history = true;
    let report = world.run_with(&feeds, &full).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_deleted), (None, 3));
    assert!(report.notes.iter().any(|note| note.contains("topic `t`, partition 0")), "{:?}", report.notes);
    let kept = usize::try_from(report.rows_out).unwrap();
    assert_eq!(ids(&world, "bronze.a").await, vec![7; kept], "what was there is gone, and what the broker has is there once");
    let report = world.run_with(&feeds, &anew(broker.options(&world), &feeds)).await.remove(0);
    assert_eq!((report.error, usize::try_from(report.rows_out).unwrap()), (None, kept), "nothing more is lost");
}

#[tokio::test]
async fn a_continuous_run_and_a_range_of_offsets_do_not_build_a_table_anew() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    broker.send("t", 0, 0..3);
    world.run_with(&feeds, &broker.options(&world)).await;
    let versions = world.versions().await;
    let mut continuous = anew(broker.options(&world), &feeds);
    continuous.kafka.mode = KafkaMode::Continuous(Arc::new(Consumers::default()));
    let mut ranged = anew(broker.options(&world), &feeds);
    ranged.kafka.starting_offsets.insert(("t".to_owned(), 0), 1);
    for (options, word) in [(continuous, "without --stream"), (ranged, "offsets that were asked for")] {
        let report = world.run_with(&feeds, &options).await.remove(0);
        assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0008"), "{report:?}");
        assert!(report.error.unwrap().message.contains(word));
    }
    assert_eq!(world.versions().await, versions);
}

async fn of_topics(controls: Controls) -> Vec<String> {
    let broker = Broker::new(&[("t", 2), ("u", 1)]);
    let feeds: [SourceFeed; 1] = [topics("a", json!({"topics": ["t"]}))];
    broker.send("t", 0, 0..4);
    broker.send("t", 1, 4..6);
    broker.put(BaseRecord::<str, str>::to("t").partition(0).payload("{\"id\":"));
    broker.flush();
    // What a first drain has read: all but the last records.
    let before = async || {
        let world = World::new();
        let mut options = broker.options(&world);
        options.kafka.ending_offsets = [(("t".to_owned(), 0), 3), (("t".to_owned(), 1), 1)].into();
        world.run_with(&feeds, &options).await;
        world
    };
    let run = async |world: &World, full: bool| {
        let options = if full { anew(broker.options(world), &feeds) } else { broker.options(world) };
        world.run_with(&feeds, &options).await;
    };
    let see = async |world: &World| {
        let open = world.rows("quarantine.a").await.iter().filter(|row| row["superseded_at"].is_null()).count();
        let rows: Vec<Value> = world.columns("bronze.a", &["id", "_topic", "_partition", "_offset"]).await;
        // The quarantine is committed first: what it holds is no row.
        json!([rows, open * usize::from(rows.len() > 4)])
    };
    killed_everywhere(controls, before, run, see).await
}

/// B6.
#[tokio::test]
async fn a_full_refresh_of_topics_killed_at_any_call_happened_whole_or_not_at_all() {
    let differences = of_topics(Controls::none()).await;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The control of B6.
#[tokio::test]
async fn positions_outside_the_commit_make_the_crash_test_of_topics_fail() {
    assert!(!of_topics(Controls::none().with(Control::PositionsOutsideCommit)).await.is_empty());
}
