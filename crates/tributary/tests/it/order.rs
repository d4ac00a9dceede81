//! The order of changes is the source's, however the broker has dealt them.

use std::sync::Arc;

use futures::TryStreamExt;
use serde_json::{Value, json};
use tributary::arrow::array::RecordBatch;
use tributary::object_store::memory::InMemory;
use tributary::{Pipeline, RunOptions};

use crate::shop::{open, rows_as_text};

const PIPELINE: &str = "
name: orders
feeds:
  - name: shop_orders
    table: bronze.orders
    columns: [{ name: id, type: long }, { name: st, type: string }]
    source: { files: { path: in, format: kafka_jsonl } }
silver:
  - table: silver.orders
    sources: [bronze.orders]
    keys: [id]
    policy: scd_type1
";

/// KAFKA-09: partitions were added, so that a key's older change stands in one partition and its newer one in another.
#[tokio::test]
async fn a_key_that_has_moved_to_another_partition_ends_with_its_newest_change() {
    let case = tributary_testkit::cases::handed_case("KAFKA-09");
    let events: Vec<String> = case.input["events"].as_array().expect("events").iter().map(recorded).collect();
    let [older, newer] = events.as_slice() else { panic!("two events") };
    let arrivals = [
        vec![newer.clone(), older.clone()],
        vec![format!("{older}\n{newer}")],
        vec![format!("{newer}\n{older}")],
        vec![older.clone(), newer.clone()],
    ];
    let wanted: Vec<String> = case.expected["silver_rows"].as_array().expect("rows").iter().map(row).collect();
    for arrival in arrivals {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("in")).expect("a folder");
        let lake = open(Arc::new(InMemory::new()));
        let pipeline = Pipeline::from_yaml(&[("orders.yml", PIPELINE)]).expect("the pipeline is valid");
        for (number, batch) in arrival.iter().enumerate() {
            std::fs::write(folder.path().join(format!("in/{number}.jsonl")), format!("{batch}\n")).expect("a drop");
            let options = RunOptions { base_data_path: folder.path().to_owned(), ..RunOptions::default() };
            let report = lake.run(&pipeline, options).await.expect("the run ends with a report");
            assert!(report.datasets.iter().all(|dataset| dataset.error.is_none()), "{report:?}");
        }
        let table = lake.table("silver.orders").await.expect("a table");
        let rows: Vec<RecordBatch> = table.scan().await.expect("a scan").try_collect().await.expect("rows");
        let rows: Vec<String> = rows.iter().flat_map(rows_as_text).collect();
        assert_eq!(rows.iter().map(|row| row.split('|').take(2).collect::<Vec<_>>().join("|")).collect::<Vec<_>>(), wanted, "{arrival:?}");
    }
}

fn recorded(event: &Value) -> String {
    json!({
        "topic": event["topic"], "partition": event["partition"], "offset": event["offset"], "key": event["key"].to_string(),
        "value": event["value"].to_string(), "headers": [], "timestamp": 1_770_112_800_007_i64,
    })
    .to_string()
}

fn row(row: &Value) -> String {
    format!("{}|{}", row["id"], row["st"].as_str().unwrap_or_default())
}
