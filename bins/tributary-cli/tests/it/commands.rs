//! The umbrella binary as a shell sees it: what it prints, what it exits with, what it leaves.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tributary_config::{Inputs, Program};

pub const PIPELINE: &str = "
name: shop
feeds:
  - name: shop_orders
    table: bronze.orders
    decode: json
    source: {files: {path: orders, format: jsonl}}
    columns:
      - {name: id, type: long}
      - {name: status, type: string}
      - {name: seq, type: long}
silver:
  - table: silver.orders
    sources: [bronze.orders]
    keys: [id]
    sequence_by: [seq]
gold:
  - table: gold.by_status
    query: SELECT status, count(*) AS orders FROM silver.orders GROUP BY status
";

/// Changes of a database through every layer.
const CHANGES: &str = "
name: shop
feeds:
  - name: shop_orders
    table: bronze.orders
    source: {files: {path: changes, format: kafka_jsonl}}
    columns: [{name: id, type: long}]
silver:
  - table: silver.orders
    sources: [bronze.orders]
    keys: [id]
gold:
  - table: gold.orders
    query: SELECT count(*) AS orders FROM silver.orders
";

/// A working folder with a pipeline, its file drops and its warehouse.
pub struct Shop {
    folder: tempfile::TempDir,
}

impl Shop {
    pub fn new() -> Self {
        let shop = Self { folder: tempfile::tempdir().unwrap() };
        shop.write("pipeline.yml", PIPELINE);
        shop.write("data/raw/orders/1.jsonl", "{\"id\":1,\"status\":\"new\",\"seq\":1}\n{\"id\":2,\"status\":\"new\",\"seq\":1}\n");
        shop
    }

    /// One whose orders are changes of a database, the first of which has gone through every layer.
    pub fn of_changes() -> Self {
        let shop = Self::new();
        shop.write("pipeline.yml", CHANGES);
        shop.write("data/raw/changes/1.jsonl", &change(0, 1, 1_700_000_000));
        shop.says(0, &["run"]);
        shop
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, folder: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        command.args(arguments).current_dir(self.path(folder)).env_clear();
        command.output().unwrap()
    }

    /// What a command prints when it exits with a code.
    pub fn says(&self, code: i32, arguments: &[&str]) -> String {
        self.says_in("", code, arguments)
    }

    /// What a command exits with, and what it prints.
    pub fn ends(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command("", arguments);
        (status.code().unwrap(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
    }

    /// The same, typed in a folder below.
    pub fn says_in(&self, folder: &str, code: i32, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(folder, arguments);
        let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        format!("{out}{err}")
    }

    pub fn json(&self, arguments: &[&str]) -> Vec<Value> {
        self.says(0, arguments).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    pub fn versions(&self) -> Vec<(String, u64)> {
        let tables = self.json(&["show", "tables", "-o", "json"]);
        tables.iter().map(|table| (table["table"].as_str().unwrap().to_owned(), table["version"].as_u64().unwrap())).collect()
    }
}

#[test]
fn a_run_brings_every_layer_up_to_date_and_a_second_one_writes_nothing() {
    let shop = Shop::new();
    let events = shop.json(&["run"]);
    assert_eq!(events.last().unwrap()["event"], "run_finished");
    let finished: Vec<&Value> = events.iter().filter(|event| event["event"] == "dataset_finished").collect();
    assert_eq!(finished.len(), 3);
    assert!(finished.iter().all(|event| event["report"]["status"] == "committed"), "{finished:?}");
    assert_eq!(shop.says(0, &["sql", "select status, orders from gold.by_status", "-o", "csv"]), "status,orders\nnew,2\n");

    let before = shop.versions();
    assert!(shop.says(0, &["run", "--log-format", "text"]).ends_with("nothing new in 3 datasets\n"));
    shop.says(99, &["run", "--exit-code-if-nothing-new", "99"]);
    assert_eq!(shop.versions(), before);
}

#[test]
fn new_files_move_only_what_reads_them_and_every_version_can_be_read_again() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    shop.write("data/raw/orders/2.jsonl", "{\"id\":2,\"status\":\"paid\",\"seq\":2}\n");
    shop.says(0, &["run"]);
    let first = shop.versions().into_iter().find(|(name, _)| name == "silver.orders").unwrap().1 - 1;
    let csv = |query: &str| shop.says(0, &["sql", query, "-o", "csv"]);
    assert_eq!(csv("select id, status from silver.orders order by id"), "id,status\n1,new\n2,paid\n");
    assert_eq!(csv(&format!("select ID, Status from SILVER.orders version as of {first} order by id")), "id,status\n1,new\n2,new\n");
    assert_eq!(
        csv(&format!("select status, _change_type from table_changes('silver.orders', {0}, {0}) order by _change_type", first + 1)),
        "status,_change_type\npaid,update_postimage\nnew,update_preimage\n"
    );
    let sample = shop.json(&["show", "sample", "silver.orders", "--version", &first.to_string(), "-o", "json"]);
    assert!(sample.iter().all(|row| row["status"] == "new"), "{sample:?}");
    let history = shop.json(&["show", "history", "silver.orders", "-n", "1", "-o", "json"]);
    assert_eq!(history[0]["version"], first + 1);
    assert_eq!(shop.json(&["show", "runs", "-o", "json"]).len(), 6);
}

/// One recorded change of an order, at a second of its source's time.
pub fn change(offset: u64, id: u64, seconds: u64) -> String {
    let source = serde_json::json!({"connector": "postgresql", "name": "shop", "ts_ms": seconds * 1000, "db": "shop", "schema": "public", "table": "orders", "txId": 1, "lsn": offset + 1, "sequence": format!("[null,\"{}\"]", offset + 1)});
    let value = serde_json::json!({"before": null, "after": {"id": id}, "source": source, "op": "c", "ts_ms": seconds * 1000});
    let record = serde_json::json!({"topic": "orders", "partition": 0, "offset": offset, "key": format!("{{\"id\":{id}}}"), "value": value.to_string()});
    format!("{record}\n")
}

#[test]
fn tables_say_how_far_they_are_behind_in_the_time_of_their_source() {
    let shop = Shop::of_changes();
    shop.write("data/raw/changes/2.jsonl", &change(1, 2, 1_700_000_090));
    shop.says(0, &["run", "--layer", "bronze"]);
    let tables = shop.json(&["show", "tables", "-o", "json"]);
    let behind = |name: &str| tables.iter().find(|row| row["table"] == name).unwrap()["behind_seconds"].as_u64();
    assert_eq!(behind("bronze.orders"), Some(0));
    assert_eq!(behind("silver.orders"), Some(90));
    assert_eq!(behind("gold.orders"), Some(90));
    shop.says(0, &["run"]);
    let tables = shop.json(&["show", "tables", "-o", "json"]);
    assert!(tables.iter().filter_map(|row| row["behind_seconds"].as_u64()).all(|behind| behind == 0), "{tables:?}");
}

#[test]
fn system_tables_are_read_by_their_three_names_and_changes_by_instants() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    let csv = |query: &str| shop.says(0, &["sql", query, "-o", "csv"]);
    assert_eq!(csv("select distinct pipeline from SYSTEM.tributary.Runs"), "pipeline\nshop\n");
    let changes = csv("select id, _change_type from table_changes('main.silver.orders', '2001-01-01') order by id");
    assert_eq!(changes, "id,_change_type\n1,insert\n2,insert\n");
    let said = shop.says(2, &["sql", "select * from table_changes('silver.orders', 7)"]);
    assert!(said.contains("error[LK"), "{said}");
}

#[test]
fn a_query_that_fails_while_it_runs_says_why_and_exits_by_its_class() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    let said = shop.says(2, &["sql", "select id / (seq - 1) as x from silver.orders"]);
    assert!(said.contains("error[TR0108]: the query failed: "), "{said}");
    assert!(shop.says(2, &["sql", "select to_char(1, '9')"]).contains("error[SQ0002]: the function `to_char`"));
    let piped = Command::new("sh")
        .args(["-c", "echo 'select 1 as one' | \"$0\" sql - -o csv", env!("CARGO_BIN_EXE_tributary")])
        .current_dir(shop.folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), "one\n1\n");
}

#[test]
fn time_before_the_first_commit_is_an_error_and_not_an_answer() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    let said = shop.says(2, &["sql", "select * from silver.orders timestamp as of '2001-01-01'"]);
    assert!(said.contains("error[LK0012]") && said.contains("next: tributary show history silver.orders"), "{said}");
    let said = shop.says(2, &["sql", "select * from silver.orders version as of 99"]);
    assert!(said.contains("error[LK0011]"), "{said}");
}

#[test]
fn bad_lines_are_in_quarantine_and_can_be_read_there() {
    let shop = Shop::new();
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\n{\"id\":4,\"status\":\"new\",\"seq\":1}\n");
    shop.says(0, &["run"]);
    let list = shop.json(&["quarantine", "list", "-o", "json"]);
    assert_eq!((list.len(), &list[0]["name"], &list[0]["open"]), (1, &Value::from("shop_orders"), &Value::from(1)));
    let reason = list[0]["reason"].as_str().unwrap();
    let shown = shop.json(&["quarantine", "show", "shop_orders", "--reason", reason, "-o", "json"]);
    assert_eq!((shown.len(), &shown[0]["line"]), (1, &Value::from(1)));
    assert_eq!(shown[0]["value"], "{\"id\":3,\"status\":", "what came is shown as the text it is");
    assert!(shop.json(&["quarantine", "show", "shop_orders", "--reason", "no such reason", "-o", "json"]).is_empty());
}

#[test]
fn a_row_that_breaks_a_rule_of_its_table_is_for_a_person_to_mend() {
    let shop = Shop::new();
    let checks = "    sequence_by: [seq]\n    checks: [{name: status_known, expression: status <> 'lost'}]";
    shop.write("pipeline.yml", &PIPELINE.replace("    sequence_by: [seq]", checks));
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"lost\",\"seq\":1}\n");
    let said = shop.says(2, &["run", "--only", "bronze.orders,silver.orders", "--log-format", "text", "-w", "lake"]);
    assert!(said.contains("LK0010") && said.contains("(next: tributary ddl silver.orders --warehouse lake)"), "{said}");
}

#[test]
fn a_person_sees_the_place_of_a_bad_line_first_and_of_a_long_one_the_beginning() {
    let shop = Shop::new();
    shop.write("data/raw/orders/2.jsonl", &format!("{{\"id\":3,\"status\":\"{}\n", "long".repeat(500)));
    shop.says(0, &["run"]);
    let said = shop.says(0, &["quarantine", "show", "shop_orders"]);
    let header: Vec<&str> = said.lines().nth(1).unwrap().split('|').map(str::trim).collect();
    assert_eq!(header[1..6], ["topic", "partition", "offset", "file", "line"], "{said}");
    assert!(said.contains("longlo… (2018 letters)"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() < 1000), "{said}");
}

#[test]
fn a_quarantined_record_becomes_a_row_when_the_declaration_holds_it() {
    let shop = Shop::new();
    shop.write(
        "pipeline.yml",
        "name: shop\nfeeds:\n  - {name: stock_codes, table: bronze.codes, decode: json, schema_policy: widen, source: {files: {path: codes, format: jsonl}}, \
         columns: [{name: id, type: long}, {name: code, type: integer}]}\nsilver:\n  - {table: silver.codes, sources: [bronze.codes], \
         select: 'select id, cast(code as string) as code from bronze.codes', keys: [id], sequence_by: [id], policy: scd_type1}\n",
    );
    shop.write("data/raw/codes/1.jsonl", "{\"id\":1,\"code\":7}\n{\"id\":2,\"code\":\"A-7\"}\n");
    shop.says(0, &["run"]);
    let list = shop.json(&["quarantine", "list", "-o", "json"]);
    assert_eq!((&list[0]["reason"], &list[0]["open"]), (&Value::from("wrong_type"), &Value::from(1)));
    let declared =
        std::fs::read_to_string(shop.path("pipeline.yml")).unwrap().replace("{name: code, type: integer}", "{name: code, type: string}");
    shop.write("pipeline.yml", &declared);
    let said = shop.says(0, &["run"]);
    assert!(said.contains("widened code to string"), "{said}");
    let dry = shop.json(&["quarantine", "requeue", "stock_codes", "--dry-run", "-o", "json"]);
    assert_eq!((&dry[0]["outcome"], &dry[0]["records"]), (&Value::from("would become rows"), &Value::from(1)));
    let done = shop.json(&["quarantine", "requeue", "stock_codes", "--reason", "wrong_type", "-o", "json"]);
    assert_eq!((&done[0]["outcome"], &done[0]["records"]), (&Value::from("became rows"), &Value::from(1)));
    assert_eq!(shop.json(&["quarantine", "list", "-o", "json"])[0]["open"], 0);
    shop.says(0, &["run"]);
    let rows = shop.json(&["sql", "select id, code from silver.codes order by id", "-o", "json"]);
    assert_eq!((rows.len(), &rows[0]["code"], &rows[1]["code"]), (2, &Value::from("7"), &Value::from("A-7")));
    for name in ["codes", "silver.codes", "quarantine.codes"] {
        let said = shop.says(2, &["quarantine", "requeue", name]);
        assert!(said.contains("error[CL0018]") && said.contains("tributary help CL0018"), "{said}");
    }
    let said = shop.says(2, &["quarantine", "requeue", "stock_code"]);
    assert!(said.contains("error[TR0002]") && said.contains("did you mean `stock_codes`?"), "{said}");
}

#[test]
fn the_report_says_what_the_shell_saw() {
    let shop = Shop::new();
    shop.says(0, &["run", "--report", "out/report.json"]);
    let report = |name: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(shop.path(name)).unwrap()).unwrap();
    assert_eq!(report("out/report.json")["exit_code"], 0);
    assert_eq!(report("out/report.json")["datasets"].as_array().unwrap().len(), 3);
    shop.write("pipeline.yml", "name: shop\nfeedz: []\n");
    shop.says(2, &["run", "--report", "out/failed.json"]);
    assert_eq!(report("out/failed.json")["exit_code"], 2);
    assert!(report("out/failed.json")["error"]["message"].as_str().unwrap().contains("feedz"));
}

#[test]
fn the_time_of_a_replay_is_the_time_of_silver_and_gold_queries() {
    let shop = Shop::new();
    let pipeline = PIPELINE
        .replace("    keys: [id]", "    keys: [id]\n    select: SELECT id, status, seq, current_date() AS day FROM bronze.orders")
        .replace(
            "SELECT status, count(*) AS orders FROM silver.orders GROUP BY status",
            "SELECT max(day) AS day, current_date() AS today FROM silver.orders",
        );
    shop.write("pipeline.yml", &pipeline);
    shop.says(0, &["run", "--as-of", "2024-05-01"]);
    assert_eq!(shop.says(0, &["sql", "select day, today from gold.by_status", "-o", "csv"]), "day,today\n2024-05-01,2024-05-01\n");
}

#[test]
fn layers_and_single_datasets_run_alone() {
    let shop = Shop::new();
    shop.says(0, &["run", "--layer", "bronze"]);
    assert_eq!(shop.versions().len(), 1);
    shop.says(0, &["run", "--only", "silver.orders"]);
    assert_eq!(shop.versions().len(), 2);
    let said = shop.says(2, &["run", "--only", "silver.order"]);
    assert!(said.contains("CL0003") && said.contains("nearest is `silver.orders`"), "{said}");
}

#[test]
fn one_schema_for_all_layers_needs_names_that_differ() {
    let shop = Shop::new();
    let said = shop.says(2, &["validate", "--db-name", "shop"]);
    assert!(said.contains("CL0002") && said.contains("`bronze.orders` and `silver.orders`"), "{said}");
    shop.write("pipeline.yml", &PIPELINE.replace("bronze.orders", "bronze.orders_bz"));
    shop.says(0, &["run", "--db-name", "shop"]);
    let names: Vec<String> = shop.versions().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["shop.by_status", "shop.orders", "shop.orders_bz"]);
}

#[test]
fn settings_come_from_the_file_and_are_printed_with_their_origin() {
    let shop = Shop::new();
    shop.write("tributary.toml", "warehouse = \"elsewhere\"\n");
    shop.write(".env", "TRIBUTARY_STREAM=false\n");
    let printed = shop.says(0, &["run", "--print-config"]);
    assert!(printed.contains("warehouse = \"elsewhere\"") && printed.contains("# tributary.toml line 1"), "{printed}");
    assert!(printed.contains("# .env line 1"), "{printed}");
    assert!(!shop.path("elsewhere").exists());
    let checked = shop.says(0, &["run", "--check"]);
    assert!(checked.contains("are sound") && !shop.path("elsewhere").exists(), "{checked}");
    shop.write("tributary.toml", "warehuose = \"elsewhere\"\n");
    let said = shop.says(2, &["run"]);
    assert!(said.contains("error[CF0001]") && said.contains("nearest is \"warehouse\""), "{said}");
}

#[test]
fn validate_touches_nothing_and_names_every_mistake() {
    let shop = Shop::new();
    let said = shop.says(0, &["validate"]);
    assert!(said.contains("pipeline `shop` is sound: 1 feeds, 1 silver, 1 gold") && !said.contains("null"), "{said}");
    assert!(!shop.path("data/lake").exists());
    shop.write("pipeline.yml", &PIPELINE.replace("keys: [id]", "kesy: [id]"));
    assert!(shop.says(2, &["validate"]).contains("kesy"));
}

#[test]
fn validate_plans_every_query_and_rule_over_the_declared_columns_and_says_all_mistakes_with_their_lines() {
    let shop = Shop::new();
    let wrong = PIPELINE
        .replace(
            "    sequence_by: [seq]\n",
            "    sequence_by: [seq]\n    expectations:\n      - {name: known, expression: stauts <> ''}\n      - {name: sane, expression: id > 0}\n      \
             - {name: dated, expression: date_format(seq) = '1'}\n",
        )
        .replace("SELECT status,", "SELECT sttaus,");
    let wrong = format!("{wrong}  - table: gold.of_nothing\n    query: SELECT count(sku) AS skus FROM bronze.orders\n");
    let wrong = wrong.replace("decode: json", "decode: json\n    schema_policy: freeze");
    shop.write("pipeline.yml", &wrong);
    let said = shop.says(2, &["validate"]);
    let line = |text: &str| wrong.lines().position(|line| line.contains(text)).unwrap() + 1;
    for (code, at, part, word) in [
        ("SQ0004", line("stauts"), "silver[0].expectations[0].expression", "did you mean `status`?"),
        ("SQ0002", line("date_format"), "silver[0].expectations[2].expression", "`date_format`"),
        ("SQ0004", line("sttaus"), "gold[0].query", "did you mean `status`?"),
        ("SQ0004", line("count(sku)"), "gold[1].query", "`sku`"),
    ] {
        let found = said.lines().find(|said| said.contains(part)).unwrap_or_else(|| panic!("{part}\n{said}"));
        assert!(found.contains(&format!("error[{code}]: pipeline.yml:{at}:")) && found.contains(word), "{found}");
    }
    assert_eq!(said.matches("error[").count(), 4, "{said}");
    assert!(!shop.path("data").join("lake").exists());
    let said = shop.says(2, &["validate", "--db-name", "shop", "-p", "pipeline.yml"]);
    assert!(said.contains("CL0002"), "{said}");
}

#[test]
fn validate_notes_what_only_the_first_records_can_tell() {
    let shop = Shop::new();
    let columns = PIPELINE.find("    columns:").unwrap()..PIPELINE.find("silver:").unwrap();
    shop.write("pipeline.yml", &PIPELINE.replace(&PIPELINE[columns], ""));
    let rows = shop.json(&["validate", "-o", "json"]);
    let note = |table: &str| rows.iter().find(|row| row["table"] == table).unwrap()["notes"].as_str().unwrap_or_default().to_owned();
    assert_eq!(note("bronze.orders"), "");
    for table in ["silver.orders", "gold.by_status"] {
        assert_eq!(note(table), "not planned before its first run: the columns of `bronze.orders` are not declared");
    }
    let undeclared = PIPELINE.replace("SELECT status,", "SELECT channel AS status,");
    shop.write("pipeline.yml", &undeclared.replace("    keys: [id]\n", "    keys: [id]\n    partition_by: [channel]\n"));
    let rows = shop.json(&["validate", "-o", "json"]);
    let note = |table: &str| rows.iter().find(|row| row["table"] == table).unwrap()["notes"].as_str().unwrap_or_default().to_owned();
    assert_eq!((note("silver.orders"), note("gold.by_status").contains("no feed declares `channel`")), (String::new(), true));
}

#[test]
fn a_backfill_of_a_topic_that_no_feed_reads_is_refused_before_any_broker_is_asked() {
    let shop = Shop::new();
    shop.write("pipeline.yml", &PIPELINE.replace("source: {files: {path: orders, format: jsonl}}", "source: {kafka: {topics: [orders]}}"));
    let asked = ["--kafka-bootstrap", "127.0.0.1:9", "--starting-offsets", "order:0=5", "--ending-offsets", "orders:0=9,orders:1=7"];
    let said = shop.says(2, &[&["run", "--layer", "bronze"][..], &asked].concat());
    assert!(said.contains("BR0031") && said.contains("topic `order`"), "{said}");
    let said = shop.says(2, &["run", "--starting-offsets", "orders=5"]);
    assert!(said.contains("CF0002") && said.contains("topic:partition=offset"), "{said}");
}

#[test]
fn setup_makes_tables_once_and_lists_differences() {
    let shop = Shop::new();
    let made = shop.json(&["setup", "-o", "json"]);
    assert!(made.iter().all(|row| row["outcome"] == "created"), "{made:?}");
    let again = shop.json(&["setup", "-o", "json"]);
    assert!(again.iter().all(|row| row["outcome"] == "as declared"), "{again:?}");
    shop.write("pipeline.yml", &PIPELINE.replace("{name: status, type: string}", "{name: status, type: long}"));
    let said = shop.says(2, &["setup"]);
    assert!(said.contains("status") && said.contains("differs"), "{said}");
    shop.write("pipeline.yml", PIPELINE);
    shop.says(0, &["run"]);
    assert_eq!(shop.says(0, &["sql", "select count(*) as n from silver.orders", "-o", "csv"]), "n\n2\n");
}

#[test]
fn ddl_is_the_same_before_and_after_the_first_run() {
    let shop = Shop::new();
    let before = shop.says(0, &["ddl", "bronze.orders"]);
    assert!(before.contains("CREATE TABLE `main`.`bronze`.`orders` (\n  `id` BIGINT"), "{before}");
    shop.says(0, &["run"]);
    let after = shop.says(0, &["ddl", "bronze.orders"]);
    let columns = |text: &str| text.split("USING DELTA").next().unwrap().to_owned();
    assert_eq!(columns(&before), columns(&after));
    assert!(shop.says(2, &["ddl", "silver.nothing"]).contains("error["));
    let silver = Shop::new().says(0, &["ddl", "silver.orders"]);
    assert!(silver.contains("CREATE TABLE `main`.`silver`.`orders` (\n  `id` BIGINT"), "what it reads is declared: {silver}");
}

#[test]
fn a_command_that_reads_makes_no_lake() {
    let shop = Shop::new();
    for arguments in [&["show", "tables"][..], &["sql", "select 1"], &["quarantine", "list"]] {
        let said = shop.says(2, arguments);
        assert!(said.contains("error[CL0012]") && said.contains("data/lake"), "{said}");
    }
    assert!(!shop.path("data/lake").exists());
}

#[test]
fn errors_name_the_thing_a_next_command_and_a_page() {
    let shop = Shop::new();
    let said = shop.says(2, &["run", "--log-format", "text", "--pipeline", "no.yml"]);
    assert!(said.starts_with("error[CL0001]: the pipeline file no.yml cannot be read: "), "{said}");
    assert!(said.contains("\n  next: ") && said.contains("\n  page: tributary help CL0001\n"), "{said}");
    let said = shop.says(2, &["run", "--pipeline", "no.yml"]);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["code"], "CL0001");
    shop.says(0, &["run", "--warehouse", "elsewhere/lake"]);
    let said = shop.says(2, &["sql", "--warehouse", "elsewhere/lake", "select * from silver.none"]);
    assert!(said.contains("\n  next: tributary show tables --warehouse elsewhere/lake\n"), "{said}");
    shop.says(2, &["run", "--no-such-flag"]);
    shop.says(2, &[]);
}

#[test]
fn help_pages_completions_and_versions_are_printed() {
    let shop = Shop::new();
    assert!(shop.says(0, &["--help"]).contains("Examples:"));
    assert!(shop.says(0, &["help", "run"]).contains("--starting-version"));
    assert!(shop.says(0, &["help", "run"]).contains("Usage: tributary run [OPTIONS]"));
    assert!(shop.says(0, &["run", "--help"]).contains("TRIBUTARY_WAREHOUSE"));
    assert!(shop.says(0, &["completions", "bash"]).contains("tributary"));
    assert!(shop.says(0, &["--version"]).starts_with("tributary "));
    assert!(shop.says(2, &["help", "rnu"]).contains("nearest is `run`"));
}

#[test]
fn every_code_has_its_page() {
    let shop = Shop::new();
    for code in ["CF0001", "CL0001", "SQ0002", "LK0003"] {
        assert!(shop.says(0, &["help", code]).contains(code), "{code}");
        assert!(shop.says(0, &["help", &code.to_lowercase()]).contains(code), "{code}");
    }
}

#[test]
fn each_layers_own_binary_runs_its_layer_after_the_other() {
    let shop = Shop::new();
    for (tables, program) in (1..).zip([Program::Bronze, Program::Silver, Program::Gold]) {
        let flag = |name: &str, path: &str| format!("--{name}={}", shop.path(path).display());
        let arguments = [
            program.command().to_owned(),
            flag("pipeline", "pipeline.yml"),
            flag("base-data-path", "data/raw"),
            flag("warehouse", "data/lake"),
        ];
        let inputs = Inputs { arguments: arguments.map(Into::into).to_vec(), folder: shop.path(""), ..Inputs::default() };
        assert_eq!(tributary_cli::layer(program, &inputs), 0);
        assert_eq!(shop.versions().len(), tables);
    }
    assert_eq!(shop.says(0, &["sql", "select * from gold.by_status", "-o", "csv"]), "status,orders\nnew,2\n");
}

#[test]
fn a_layers_own_binary_runs_a_folder_of_sql_with_its_parameters() {
    let shop = Shop::new();
    shop.write(
        "sql/visits.sql",
        "CREATE STREAMING TABLE bronze.visits (page STRING) AS SELECT * FROM STREAM read_files('${drops}', format => 'json');",
    );
    shop.write("data/raw/seen/1.jsonl", "{\"page\":\"a\"}\n{\"page\":\"b\"}\n");
    let flag = |name: &str, path: &str| format!("--{name}={}", shop.path(path).display());
    let run = |more: &[&str]| {
        let flags = [flag("pipeline", "sql"), flag("base-data-path", "data/raw"), flag("warehouse", "data/lake")];
        let arguments = std::iter::once("tributary-bronze".to_owned()).chain(flags).chain(more.iter().map(|text| (*text).to_owned()));
        let inputs = Inputs { arguments: arguments.map(Into::into).collect(), folder: shop.path(""), ..Inputs::default() };
        tributary_cli::layer(Program::Bronze, &inputs)
    };
    assert_eq!((run(&[]), run(&["--conf", "drops=seen"])), (2, 0));
    assert_eq!(shop.says(0, &["sql", "select count(*) as visits from bronze.visits", "-o", "csv"]), "visits\n2\n");
}

#[cfg(unix)]
#[test]
fn a_continuous_run_takes_what_comes_says_only_that_and_ends_well_when_it_is_told_to() {
    let shop = Shop::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
    command.args(["run", "--stream", "--processing-time", "50ms"]).current_dir(shop.folder.path()).env_clear();
    let mut run = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines =
        std::io::BufReader::new(run.stdout.take().unwrap()).lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut until_the_view_is_made = || {
        for event in lines.by_ref() {
            assert_eq!((&event["event"], &event["report"]["status"]), (&"dataset_finished".into(), &"committed".into()), "{event}");
            if event["report"]["table"] == "gold.by_status" {
                return;
            }
        }
    };
    until_the_view_is_made();
    shop.write("data/raw/orders/2.jsonl", "{\"id\":3,\"status\":\"new\",\"seq\":1}\n");
    until_the_view_is_made();
    Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    assert_eq!(lines.last().unwrap()["event"], "run_finished");
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(shop.says(0, &["sql", "select orders from gold.by_status", "-o", "csv"]), "orders\n3\n");
}
