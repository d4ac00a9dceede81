//! Flows, rules and full refreshes as a shell sees them.

use crate::commands::{PIPELINE, Shop};

/// The shop with something more said of its silver table.
fn shop_with(more: &str) -> Shop {
    let shop = Shop::new();
    shop.write("pipeline.yml", &PIPELINE.replace("    sequence_by: [seq]", &format!("    sequence_by: [seq]\n{more}")));
    shop
}

#[test]
fn a_rule_with_fail_stops_its_dataset_before_its_commit_and_exits_3_with_keys_and_no_other_values() {
    let shop = shop_with("    expectations: [{name: known, expression: \"status = 'secret'\", action: fail}]");
    let said = shop.says(3, &["run", "--log-format", "text"]);
    assert!(
        said.contains("SM0009") && said.contains("2 rows of `silver.orders` break `known`") && said.contains("keys: id=1; id=2"),
        "{said}"
    );
    assert!(!said.contains("new"), "a value of a row: {said}");
    let tables: Vec<String> = shop.versions().into_iter().map(|(table, _)| table).collect();
    assert!(tables.contains(&"bronze.orders".to_owned()) && !tables.contains(&"gold.by_status".to_owned()), "{tables:?}");
}

#[test]
fn rules_are_counted_by_run_in_a_system_table() {
    let shop = shop_with(
        "    expectations: [{name: known, expression: \"id > 1\", action: drop}]
    set_expectations: [{name: enough, rule: {row_count: {min: 1}}, action: fail}]",
    );
    shop.says(0, &["run"]);
    let counts =
        shop.json(&["sql", "SELECT rule, action, passed, failed, dropped FROM system.tributary.expectations ORDER BY rule", "-o", "json"]);
    let texts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            r#"{"action":"fail","dropped":0,"failed":0,"passed":1,"rule":"enough"}"#,
            r#"{"action":"drop","dropped":1,"failed":1,"passed":1,"rule":"known"}"#
        ]
    );
}

#[test]
fn a_rule_of_the_whole_table_that_fails_exits_3() {
    let shop = shop_with("    set_expectations: [{name: one_status, rule: {unique: [status]}, action: fail}]");
    let said = shop.says(3, &["run", "--log-format", "text"]);
    assert!(said.contains("SM0022") && said.contains("would break `one_status`: 1 rows would repeat status"), "{said}");
}

#[test]
fn a_full_refresh_builds_tables_anew_and_runs_nothing_else() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    let before = shop.versions();
    shop.says(0, &["run", "--full-refresh", "silver.orders"]);
    let moved: Vec<String> = shop
        .versions()
        .into_iter()
        .filter(|version| !before.contains(version))
        .map(|(table, _)| table)
        .filter(|table| !table.contains("runs"))
        .collect();
    assert!(moved.contains(&"silver.orders".to_owned()) && !moved.contains(&"gold.by_status".to_owned()), "{moved:?}");
    // Other keys are taken only by a full refresh.
    shop.write("pipeline.yml", &PIPELINE.replace("keys: [id]", "keys: [seq]"));
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"new\",\"seq\":1}\n");
    let refused = shop.says(2, &["run", "--log-format", "text"]);
    assert!(refused.contains("tributary run --full-refresh silver.orders"), "{refused}");
    shop.says(0, &["run", "--full-refresh-all"]);
    let rows = shop.json(&["sql", "SELECT seq, count(*) AS n FROM silver.orders GROUP BY seq", "-o", "json"]);
    assert_eq!(rows.iter().map(ToString::to_string).collect::<Vec<_>>(), [r#"{"n":1,"seq":1}"#]);
}

#[test]
fn a_protected_table_is_refused_before_anything_is_touched() {
    let shop = shop_with("    properties: {pipelines.reset.allowed: false}");
    let protected = PIPELINE
        .replace("    decode: json\n", "    decode: json\n    properties: {pipelines.reset.allowed: false}\n")
        .replace("    sequence_by: [seq]", "    sequence_by: [seq]\n    properties: {pipelines.reset.allowed: false}");
    shop.write("pipeline.yml", &protected);
    for table in ["silver.orders", "bronze.orders"] {
        let said = shop.says(2, &["run", "--full-refresh", table, "--log-format", "text"]);
        assert!(said.contains("TR0006"), "{said}");
    }
    assert!(!shop.path("data/lake/main").exists(), "nothing was touched");
    shop.says(0, &["run"]);
    shop.says(0, &["run", "--full-refresh-all"]);
    let history = shop.says(0, &["show", "history", "silver.orders"]);
    assert!(!history.contains("Overwrite"), "{history}");
}

#[test]
fn a_feed_is_refreshed_in_full_with_what_reads_it_and_a_plan_tells_what_may_be_lost() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    let count = |table: &str| {
        let rows = shop.json(&["sql", &format!("SELECT count(*) AS n FROM {table}"), "-o", "json"]);
        rows[0]["n"].as_u64().unwrap()
    };
    let before = count("bronze.orders");
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"new\",\"seq\":1}\n");
    let plan = shop.says(0, &["plan", "--full-refresh", "bronze.orders"]);
    assert!(plan.contains("a full refresh was asked for") && !plan.contains("lose"), "{plan}");
    // What reads the appends of the feed stops at the commit, and says what to do.
    shop.says(0, &["run", "--full-refresh", "bronze.orders"]);
    assert_eq!(count("bronze.orders"), before + 1);
    let said = shop.says(2, &["run", "--log-format", "text"]);
    assert!(said.contains("SM0023") && said.contains("tributary run --full-refresh silver.orders"), "{said}");
    shop.says(0, &["run", "--full-refresh", "silver.orders"]);
    shop.says(0, &["run"]);
    assert_eq!((count("silver.orders"), count("gold.by_status")), (3, 1));
    // Both at once, and a file that is gone is lost by choice alone.
    std::fs::remove_file(shop.path("data/raw/orders/2.jsonl")).unwrap();
    let both = ["--full-refresh", "bronze.orders,silver.orders"];
    let plan = shop.says(0, &[&["plan"], both.as_slice()].concat());
    assert!(plan.contains("rows of 1 file not there any more") && plan.contains("--accept-shorter-history"), "{plan}");
    let said = shop.says(2, &[&["run", "--log-format", "text"], both.as_slice()].concat());
    assert!(said.contains("BR0032") && count("bronze.orders") == before + 1, "{said}");
    shop.says(0, &[&["run", "--accept-shorter-history"], both.as_slice()].concat());
    assert_eq!((count("bronze.orders"), count("silver.orders")), (before, 2));
    shop.says(0, &["run"]);
}

#[test]
fn flows_into_one_table_are_added_one_after_the_other() {
    let shop = Shop::new();
    let flows = |flows: &str| {
        let silver = format!("  - table: silver.all\n    sources: [bronze.orders]\n    policy: append\n{flows}");
        shop.write("pipeline.yml", &PIPELINE.replace("gold:\n", &format!("{silver}gold:\n")));
        shop.says(0, &["run"]);
        let rows = shop.json(&["sql", "SELECT count(*) AS n FROM silver.all", "-o", "json"]);
        rows[0]["n"].as_u64().unwrap()
    };
    assert_eq!(flows(""), 2);
    let once =
        "    flows:\n      - {name: archive, sources: [silver.orders], select: 'SELECT id, status, seq FROM silver.orders', once: true}\n";
    assert_eq!(flows(once), 4);
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"new\",\"seq\":1}\n");
    assert_eq!(flows(once), 5, "what runs once does not run again");
}

/// Types the next command of what a command says, and so on, until one goes through; none is told twice.
fn follow(shop: &Shop, first: &str) -> Vec<String> {
    let mut typed = vec![first.to_owned()];
    loop {
        let words: Vec<&str> = typed.last().unwrap().split(' ').skip(1).collect();
        let (code, said) = shop.ends(&words);
        if code == 0 {
            return typed.split_off(1);
        }
        let said = said.replace("\"next\":\"", "next: ");
        let next = said.split_once("next: ").unwrap_or_else(|| panic!("{said}")).1;
        let next = next.split(['\n', ')', '"']).next().unwrap().to_owned();
        assert!(!typed.contains(&next), "in a circle: {typed:?}, {next}");
        typed.push(next);
    }
}

const READER: &str = "
name: reader
external: [raw.events]
silver:
  - table: silver.events
    sources: [raw.events]
    keys: [id]
    sequence_by: [seq]
    properties: {pipelines.reset.allowed: ALLOWED}
";

#[test]
fn what_is_said_next_of_a_stream_whose_source_was_changed_leads_out_protected_or_not() {
    for allowed in [true, false] {
        let shop = Shop::new();
        shop.write("pipeline.yml", &READER.replace("ALLOWED", &allowed.to_string()));
        shop.says(0, &["sql", "CREATE SCHEMA raw; CREATE TABLE raw.events (id BIGINT, seq BIGINT)"]);
        shop.says(0, &["sql", "INSERT INTO raw.events VALUES (1, 1), (2, 1)"]);
        shop.says(0, &["run"]);
        shop.says(0, &["sql", "DELETE FROM raw.events WHERE id = 1; INSERT INTO raw.events VALUES (3, 1)"]);
        let rows = || shop.says(0, &["sql", "SELECT id FROM silver.events ORDER BY id", "-o", "csv"]);
        let failed = shop.says(2, &["run", "--log-format", "text"]);
        assert!(failed.contains("SM0023"), "{failed}");
        let ways = follow(&shop, "tributary run");
        match allowed {
            true => assert_eq!(
                (ways.join("; "), rows().as_str()),
                (
                    "tributary run --full-refresh silver.events; tributary run --full-refresh silver.events --accept-shorter-history"
                        .to_owned(),
                    "id\n2\n3\n"
                )
            ),
            false => assert_eq!(
                (ways.join("; "), rows().as_str()),
                ("tributary run --only silver.events --skip-change-commits".to_owned(), "id\n1\n2\n3\n")
            ),
        }
        shop.says(0, &["run"]);
        if !allowed {
            shop.says(0, &["sql", "DELETE FROM raw.events WHERE id = 2; INSERT INTO raw.events VALUES (4, 1)"]);
            let ways = follow(&shop, "tributary run --full-refresh silver.events");
            assert_eq!(ways, ["tributary run --only silver.events", "tributary run --only silver.events --skip-change-commits"]);
            shop.write("pipeline.yml", &READER.replace("ALLOWED", "false").replace("keys: [id]", "keys: [seq]"));
            let said = shop.says(2, &["run", "--log-format", "text"]);
            assert!(said.contains("SM0011") && said.contains("tributary plan --only silver.events"), "{said}");
            assert!(shop.says(2, &["plan", "--only", "silver.events"]).contains("keys: [\"id\"] -> [\"seq\"]"));
        }
    }
}
