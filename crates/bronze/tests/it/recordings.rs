//! Every recording of a real database, through bronze.

use std::collections::BTreeMap;

use serde_json::json;
use tributary_specs::{SourceFeed, Status};
use tributary_testkit::captures;

use crate::world::{World, feed};

/// A feed a source table, named by the last part of its topic.
fn feeds(capture: &captures::Capture) -> Vec<SourceFeed> {
    let decode = if capture.name.contains("unwrap") { "debezium_flattened" } else { "debezium" };
    let topics = capture.records.iter().map(|record| record.topic.as_str()).filter(|topic| topic.split('.').count() == 3);
    let named: BTreeMap<&str, &str> = topics.filter_map(|topic| Some((topic.rsplit('.').next()?, topic))).collect();
    let one = |(name, topic): (&str, &str)| {
        feed(json!({
            "name": name, "table": format!("bronze.{name}"), "decode": decode, "schema_policy": "widen",
            "source": {"files": {"path": "in", "format": "kafka_jsonl", "topics": [topic]}},
        }))
    };
    named.into_iter().map(one).collect()
}

#[tokio::test]
async fn every_record_of_every_recording_is_a_row_or_ignored_by_name_and_none_is_refused() {
    for name in captures::names() {
        let capture = captures::load(&name);
        let world = World::new();
        let path = captures::directory().join(format!("{name}.jsonl"));
        let (file, path) = if path.exists() { ("in/1.jsonl", path) } else { ("in/1.jsonl.gz", path.with_extension("jsonl.gz")) };
        world.drop_file(file, std::fs::read(path).unwrap()).await;
        let feeds = feeds(&capture);
        let reports = world.run(&feeds).await;
        let mut no_feed = 0;
        for (feed, report) in feeds.iter().zip(&reports) {
            assert_eq!((&report.error, report.rows_quarantined), (&None, 0), "{name}: {}", feed.name);
            let mine = |topic: &str| topic.rsplit('.').next() == Some(feed.name.as_str()) && topic.split('.').count() == 3;
            let sent = capture.records.iter().filter(|record| mine(&record.topic)).count() as u64;
            let foreign = report.rows_ignored.get("no_feed").copied().unwrap_or_default();
            assert_eq!(report.rows_in - foreign, sent, "{name}: {}", feed.name);
            assert_eq!(world.rows(&report.table).await.len() as u64, report.rows_out, "{name}: {}", feed.name);
            no_feed += foreign;
        }
        let others = capture.records.iter().filter(|record| record.topic.split('.').count() != 3).count() as u64;
        assert_eq!(no_feed, others, "{name}");
        assert!(world.run(&feeds).await.iter().all(|report| report.status == Status::NothingNew), "{name}");
    }
}
