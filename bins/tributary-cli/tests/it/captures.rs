//! Every recorded capture: silver, current and history, equals the database's final state. Where the source's own settings
//! lose something on the way, the columns are named here, with the reason, and nothing else may differ.

use std::path::{Path, PathBuf};

use tributary::ExitCode;
use tributary_cli::demo::{DemoArgs, demo};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debezium").join(name)
}

async fn run(capture: &str, known_losses: &[&str]) -> (ExitCode, String) {
    tried(capture, known_losses).await.expect("the demo runs")
}

async fn tried(capture: &str, known_losses: &[&str]) -> Result<(ExitCode, String), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let zipped = if capture == "postgres-big-workload" { ".gz" } else { "" };
    let args = DemoArgs {
        events: Some(fixture(&format!("{capture}.jsonl{zipped}"))),
        expected: Some(fixture(&format!("{capture}.expected.json{zipped}"))),
        known_losses: known_losses.iter().map(|loss| (*loss).to_owned()).collect(),
        folder: Some(folder.path().to_owned()),
        ..DemoArgs::default()
    };
    let mut out = Vec::new();
    let code = demo(&args, &mut out).await?;
    Ok((code, String::from_utf8(out).expect("text")))
}

async fn equals_source(capture: &str, known_losses: &[&str]) {
    let (code, out) = run(capture, known_losses).await;
    assert_eq!(code, ExitCode::Done, "{capture}\n{out}");
    for loss in known_losses {
        let column = loss.split_once('.').expect("table.column").1;
        assert!(out.contains(&format!("  {column}: ")), "{capture}: {loss} is named as lost but nothing of it differs\n{out}");
    }
}

#[tokio::test]
async fn a_known_loss_goes_by_either_name_and_one_that_names_nothing_is_refused() {
    let losses = ["silver.inventory.checked_s", "inventory.loaded_at", "inventory.made_on", "inventory.vintage"];
    let (code, out) = run("mysql-json-default", &losses).await;
    assert!(out.contains("silver.inventory  ") && out.contains("  checked_s: "), "{out}");
    // silver's name stands for that table alone, the source's for its history too
    assert_eq!(code, ExitCode::Failed, "{out}");
    assert!(out.contains("silver.inventory_history [") && out.contains("--known-loss") && out.contains("--feeds"), "{out}");
    let refused = tried("mysql-json-default", &["inventory.checked"]).await.unwrap_err();
    assert!(refused.contains("inventory.checked names no column") && refused.contains("nearest is `inventory.checked_s`"), "{refused}");
}

macro_rules! captures {
    ($($name:ident: $capture:literal, [$($loss:literal),* $(,)?];)*) => {
        $(#[tokio::test]
        async fn $name() {
            equals_source($capture, &[$($loss),*]).await;
        })*
    };
}

// What is lost, and how, is in the captures' own notes (tests/fixtures/debezium/README.md), point by point:
// - 4: a flattened stream drops truncates. 5: a column added with a default, a renamed column and a changed type send no events
//   for the rows there are. 6: the converter puts the default where the source has null. 7: bare JSON has no scale, which changed.
// - 8 to 11: doubles round, connect cuts to milliseconds, ISO texts have no 24:00 and no time beyond a day, zero dates and the
//   year 0000 do not survive.
// - A table without a key has no rows to update: append keeps every image of it.
captures! {
    postgres_json_default: "postgres-json-default",
        ["orders.discount_pct", "orders.sales_channel", "orders.unit_price", "orders.weight_kg"];
    postgres_json_schema: "postgres-json-schema", ["orders.discount_pct", "orders.sales_channel"];
    postgres_json_string_isostring: "postgres-json-string-isostring",
        ["customers.contact_from", "orders.discount_pct", "orders.sales_channel"];
    postgres_json_double_connect: "postgres-json-double-connect",
        ["customers.balance", "customers.contact_from", "customers.last_seen", "orders.discount_pct", "orders.sales_channel"];
    postgres_json_schema_double_connect: "postgres-json-schema-double-connect",
        ["customers.balance", "customers.contact_from", "customers.last_seen", "orders.discount_pct", "orders.sales_channel"];
    postgres_unwrap_rewrite: "postgres-unwrap-rewrite",
        ["order_items.(row)", "orders.discount_pct", "orders.sales_channel", "orders.unit_price"];
    postgres_txmeta_heartbeat: "postgres-txmeta-heartbeat",
        ["orders.discount_pct", "orders.sales_channel", "orders.unit_price", "orders.weight_kg"];
    postgres_incremental_snapshot: "postgres-incremental-snapshot", [];
    postgres_json_default_debezium_3_0: "postgres-json-default-dbz307",
        ["orders.discount_pct", "orders.sales_channel", "orders.unit_price", "orders.weight_kg"];
    postgres_null_default_without_key: "postgres-null-default-nokey",
        [
            "audit_log.(row)", "settings.active", "settings.colour", "settings.level", "settings.ratio", "settings.since",
            "settings.size",
        ];
    postgres_null_kept_without_key: "postgres-null-kept-nokey", ["audit_log.(row)", "settings.level"];
    postgres_big_workload: "postgres-big-workload", [];
    mysql_json_default: "mysql-json-default",
        ["inventory.checked_s", "inventory.loaded_at", "inventory.made_on", "inventory.vintage"];
    mysql_json_schema: "mysql-json-schema",
        [
            "inventory.checked_s", "inventory.loaded_at", "inventory.made_on", "inventory.raw_code", "inventory.reserved",
            "inventory.vintage",
        ];
    mysql_json_string_isostring: "mysql-json-string-isostring",
        ["inventory.checked_s", "inventory.loaded_at", "inventory.made_on", "inventory.span", "inventory.vintage"];
    mysql_unwrap_rewrite: "mysql-unwrap-rewrite",
        ["inventory.checked_s", "inventory.loaded_at", "inventory.made_on", "inventory.vintage", "stock_moves.(row)"];
}

/// One cell of the recorded state altered: the demo says where, with both values, and exits 1.
#[tokio::test]
async fn an_altered_cell_is_found_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = std::fs::read_to_string(fixture("postgres-incremental-snapshot.expected.json")).expect("the recorded state");
    let altered = folder.path().join("altered.json");
    std::fs::write(&altered, expected.replacen("customer 999999", "customer altered", 1)).expect("written");
    let args = DemoArgs {
        events: Some(fixture("postgres-incremental-snapshot.jsonl")),
        expected: Some(altered),
        folder: Some(folder.path().to_owned()),
        ..DemoArgs::default()
    };
    let mut out = Vec::new();
    let code = demo(&args, &mut out).await.expect("the demo runs");
    let out = String::from_utf8(out).expect("text");
    assert_eq!(code, ExitCode::Failed, "{out}");
    assert!(out.contains("silver.customers [id=999999] name: source customer altered, lake customer 999999"), "{out}");
}

/// The main job: ends with one line for each of the three tables.
#[tokio::test]
async fn the_retail_demo_ends_with_three_tables_equal_to_their_sources() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut out = Vec::new();
    let args = DemoArgs { folder: Some(folder.path().to_owned()), ..DemoArgs::default() };
    let code = demo(&args, &mut out).await.expect("the demo runs");
    let out = String::from_utf8(out).expect("text");
    assert_eq!(code, ExitCode::Done, "{out}");
    for line in [
        "silver.orders  4053 rows, 12 columns  equals source",
        "silver.customers  942 rows, 13 columns  equals source",
        "silver.inventory  17 rows, 30 columns  equals source",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
}
