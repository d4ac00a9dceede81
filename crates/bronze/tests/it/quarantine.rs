//! The quarantine and bronze between two commits.

use serde_json::json;
use tributary_specs::{SchemaPolicy, Status};
use tributary_testkit::{Rule, ScriptedFault};

use crate::world::{World, record, recorded};

/// The run whose bronze commit is refused leaves the quarantine ahead of bronze.
async fn quarantine_ahead(policy: SchemaPolicy) -> (World, tributary_specs::SourceFeed) {
    let world = World::new();
    let mut feed = recorded("a", "in", &[]);
    feed.schema_policy = policy;
    world.drop_file("in/0.jsonl", record("t", 9, &json!({"id": 0}))).await;
    world.run_one(&feed).await;
    let content =
        [record("t", 0, &json!({"id": 1})), record("t", 1, &json!({"id": 2, "extra": "x"})), record("t", 2, &json!({"id": "bad"}))]
            .concat();
    world.drop_file("in/1.jsonl", content).await;
    world.lake_store.fail(Rule::delta_commit().on("bronze/a/_delta_log/00000000000000000002"), 1, ScriptedFault::Denied);
    let report = world.run(std::slice::from_ref(&feed)).await.remove(0);
    assert_eq!(report.status, Status::Failed);
    (world, feed)
}

#[tokio::test]
async fn what_is_in_quarantine_already_is_not_quarantined_again() {
    let (world, feed) = quarantine_ahead(SchemaPolicy::Quarantine).await;
    assert_eq!(world.rows("quarantine.a").await.len(), 2);
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (1, 2));
    let rows = world.columns("quarantine.a", &["line", "superseded_at"]).await;
    assert_eq!(rows, [json!([2, null]), json!([3, null])]);
}

#[tokio::test]
async fn a_record_that_now_decodes_supersedes_its_quarantine_row() {
    let (world, mut feed) = quarantine_ahead(SchemaPolicy::Quarantine).await;
    feed.schema_policy = SchemaPolicy::Add;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (2, 1));
    assert_eq!(world.columns("bronze.a", &["id", "extra"]).await, [json!([0, null]), json!([1, null]), json!([2, "x"])]);
    let rows = world.rows("quarantine.a").await;
    assert_eq!(rows.len(), 2, "marked, not doubled");
    let superseded: Vec<_> = rows.iter().filter(|row| row["superseded_at"].is_string()).map(|row| row["line"].as_i64()).collect();
    assert_eq!(superseded, [Some(2)]);
}

#[tokio::test]
async fn a_record_that_no_longer_decodes_joins_the_quarantine() {
    let (world, mut feed) = quarantine_ahead(SchemaPolicy::Add).await;
    assert_eq!(world.rows("quarantine.a").await.len(), 1);
    feed.schema_policy = SchemaPolicy::Quarantine;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (1, 2));
    assert_eq!(world.columns("quarantine.a", &["line", "superseded_at"]).await, [json!([2, null]), json!([3, null])]);
}
