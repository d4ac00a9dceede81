//! Positions that the broker no longer has.

use serde_json::json;
use tributary_bronze::OnGap;
use tributary_specs::{PassedGap, Status};

use crate::kafka::{Broker, ids, topics};
use crate::world::{BAD_INPUT, World, code_of, exit_of};

/// B4: a topic made again with fewer records, as a new broker has it.
#[tokio::test]
async fn a_topic_made_again_stops_the_feed_with_the_range_unless_told_otherwise() {
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    for (choice, word, at, expected) in [(OnGap::Earliest, "earliest", 0, 6 + 2), (OnGap::Latest, "latest", 2, 6)] {
        let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
        broker.send("t", 0, 0..6);
        world.run_with(&feeds, &broker.options(&world)).await;
        let remade = Broker::new(&[("t", 1)]);
        remade.send("t", 0, 100..102);
        let mut options = remade.options(&world);
        let report = world.run_with(&feeds, &options).await.remove(0);
        assert_eq!((report.status, exit_of(&report), code_of(&report)), (Status::Failed, BAD_INPUT, "BR0012"));
        let message = report.error.unwrap().message;
        assert!(message.contains("topic `t`, partition 0") && message.contains("missing 2 to 6 (next: "), "{message}");
        options.on_gap = choice;
        let report = world.run_with(&feeds, &options).await.remove(0);
        assert_eq!(report.error, None);
        let gap = PassedGap { feed: "a".into(), topic: Some("t".into()), partition: 0, from: 2, until: 6, choice: word.into() };
        assert_eq!(report.gaps, [gap], "the choice is in the report");
        assert_eq!(ids(&world, "bronze.a").await.len(), expected, "went on at {at}");
        options.on_gap = OnGap::Stop;
        let report = world.run_with(&feeds, &options).await.remove(0);
        assert_eq!((report.status, report.gaps), (Status::NothingNew, vec![]), "the choice is in the table");
    }
}

/// B4: a partition that has lost its first records.
#[tokio::test]
async fn records_deleted_before_they_were_read_are_a_gap_too() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    broker.send("t", 0, 0..3);
    world.run_with(&feeds, &broker.options(&world)).await;
    broker.overflow("t");
    let report = world.run_with(&feeds, &broker.options(&world)).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (BAD_INPUT, "BR0012"), "{report:?}");
    assert!(report.error.unwrap().message.contains("missing 3 to "));
    let mut options = broker.options(&world);
    options.on_gap = OnGap::Earliest;
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!((report.error.clone(), report.positions["t/0"]), (None, 23));
    assert_eq!((report.gaps[0].from, report.gaps[0].until), (3, 23 - i64::try_from(report.rows_out).unwrap()));
}
