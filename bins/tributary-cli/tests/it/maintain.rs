//! `tributary maintain` as a shell sees it.

use serde_json::Value;
use tributary_config::Inputs;

use crate::commands::Shop;

/// A shop whose orders came in four runs.
fn grown() -> Shop {
    let shop = Shop::new();
    for drop in 1..=4 {
        let lines: Vec<String> =
            (0..50).map(|row| format!("{{\"id\":{},\"status\":\"s{}\",\"seq\":{drop}}}", row * drop, row % 3)).collect();
        shop.write(&format!("data/raw/orders/{drop}.jsonl"), &(lines.join("\n") + "\n"));
        shop.says(0, &["run"]);
    }
    shop
}

fn files_of(shop: &Shop, table: &str) -> u64 {
    let tables = shop.json(&["show", "tables", "-o", "json"]);
    tables.iter().find(|row| row["table"] == table).unwrap()["files"].as_u64().unwrap()
}

const ROWS: &[&str] = &["sql", "select count(*), sum(id), count(distinct status) from silver.orders", "-o", "csv"];

#[test]
fn a_lake_is_maintained_by_itself_as_its_dry_run_says_and_the_second_time_there_is_nothing_to_do() {
    let shop = grown();
    let (rows, versions) = (shop.says(0, ROWS), shop.versions());
    assert!(files_of(&shop, "bronze.orders") >= 4);
    let dry: Value = serde_json::from_str(&shop.says(0, &["maintain", "--auto", "--dry-run", "-o", "json"])).unwrap();
    assert_eq!(shop.versions(), versions, "a dry run writes nothing");
    let said = shop.says(0, &["maintain", "--auto", "--yield-to", "0", "--report", "report.json"]);
    assert!(said.contains("bronze.orders: 4 small files: 4 files, ") && said.contains(" expected"), "{said}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(shop.path("report.json")).unwrap()).unwrap();
    assert_eq!((&report["exit_code"], &report["nothing_to_do"]), (&0.into(), &false.into()));
    for (dry, done) in dry["tables"].as_array().unwrap().iter().zip(report["tables"].as_array().unwrap()) {
        let (predicted, after) = (&dry["predicted"], &done["after"]);
        assert_eq!(predicted["files"], after["files"], "{dry} {done}");
        let (predicted, after) = (predicted["bytes"].as_u64().unwrap(), after["bytes"].as_u64().unwrap());
        assert!(predicted.abs_diff(after) * 10 <= after, "{dry} {done}");
    }
    assert_eq!(files_of(&shop, "bronze.orders"), 1);
    assert_eq!(shop.says(0, ROWS), rows);
    assert_eq!(shop.says(0, &["maintain", "--auto", "--yield-to", "0"]), "nothing to do\n");
    assert_eq!(shop.says(0, &["run"]).matches("failed").count(), 0, "runs go on");
}

#[test]
fn a_task_is_done_to_the_tables_that_are_named_and_mistakes_are_told_with_what_to_do_next() {
    let shop = grown();
    let said = shop.says(0, &["maintain", "optimize", "BRONZE.orders", "--yield-to", "0"]);
    assert!(said.starts_with("bronze.orders: 4 small files: "), "{said}");
    assert!(shop.says(0, &["maintain", "zorder", "gold.by_status", "--by", "status,orders", "--yield-to", "0"]).contains("gold.by_status"));
    assert!(shop.says(2, &["maintain", "cluster", "bronze.orders"]).contains("error[MT0001]: `bronze.orders` has no clustering columns"));
    assert!(shop.says(2, &["maintain", "zorder", "bronze.orders", "--by", "nothing"]).contains("error[MT0003]"));
    assert!(shop.says(2, &["maintain", "optimize", "bronze.order"]).contains("does not exist"));
    shop.says(2, &["maintain"]);
    shop.says(2, &["maintain", "--dry-run"]);
    assert!(shop.says(4, &["maintain", "optimize", "silver.orders", "--time-limit", "0"]).contains("the time is over"));
}

#[test]
fn the_binary_of_maintenance_does_what_the_command_does() {
    let shop = grown();
    let warehouse = format!("--warehouse={}", shop.path("data/lake").display());
    let arguments = ["tributary-maintain", "optimize", "bronze.orders", &warehouse, "--yield-to=0"].map(Into::into).to_vec();
    let inputs = Inputs { arguments, folder: shop.path(""), ..Inputs::default() };
    assert_eq!(tributary_cli::maintenance(&inputs), 0);
    assert_eq!(files_of(&shop, "bronze.orders"), 1);
}
