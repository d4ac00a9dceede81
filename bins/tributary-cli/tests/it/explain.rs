//! `explain` as a shell sees it.

use serde_json::Value;

use crate::commands::Shop;

/// G3: the mode is told before a refresh, and is what the refresh then does.
#[test]
fn a_view_is_explained_refreshed_so_and_held_to_its_query() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    let said = shop.says(0, &["explain", "gold.by_status"]);
    assert!(said.starts_with("gold.by_status: nothing, no input moved"), "{said}");

    shop.write("data/raw/orders/2.jsonl", "{\"id\":2,\"status\":\"paid\",\"seq\":2}\n");
    shop.says(0, &["run", "--layer", "bronze"]);
    shop.says(0, &["run", "--layer", "silver"]);
    let said = shop.says(0, &["explain", "gold.by_status"]);
    assert!(said.starts_with("gold.by_status: incremental, silver.orders moved from version"), "{said}");
    let rows = shop.says(0, &["explain", "GOLD.by_status", "--output", "json"]);
    let row: Value = serde_json::from_str(rows.lines().next().unwrap_or_default()).unwrap();
    assert_eq!((row["mode"].as_str(), row["input"].as_str()), (Some("incremental"), Some("silver.orders")), "{rows}");

    shop.says(0, &["run", "--report", "report.json"]);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(shop.path("report.json")).unwrap()).unwrap();
    let datasets = report["datasets"].as_array().unwrap();
    let view = datasets.iter().find(|dataset| dataset["table"] == "gold.by_status").unwrap();
    assert_eq!(view["mode"], "incremental", "{view}");
    assert_eq!(view["inputs"][0]["table"], "silver.orders", "{view}");
    let said = shop.says(0, &["explain", "gold.by_status", "--audit", "10"]);
    assert!(said.ends_with("no difference\n"), "{said}");

    let said = shop.says(2, &["explain", "gold.by_state"]);
    assert!(said.contains("gold.by_status"), "{said}");
}
