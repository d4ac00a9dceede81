//! A program that was built without Kafka.

use serde_json::json;

use crate::world::{BAD_INPUT, World, code_of, exit_of, feed, json_lines};

#[tokio::test]
async fn a_feed_of_topics_says_that_the_program_lacks_kafka_and_the_others_run() {
    let world = World::new();
    let topics = feed(json!({"name": "a", "table": "bronze.a", "decode": "json", "source": {"kafka": {"topics": ["t"]}}}));
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    let reports = world.run(&[topics.clone(), json_lines("b", "in")]).await;
    assert_eq!((exit_of(&reports[0]), code_of(&reports[0])), (BAD_INPUT, "BR0019"), "{:?}", reports[0]);
    assert_eq!((&reports[1].error, reports[1].rows_out), (&None, 1));
    let found = tributary_bronze::kafka_check(&world.lake(), &[topics], &world.options()).await;
    assert!(matches!(found.as_slice(), [finding] if finding.outcome.is_err()), "{found:?}");
}
