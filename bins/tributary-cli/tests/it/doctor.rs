//! `tributary doctor` as a person and a program read it.

use serde_json::Value;

use crate::commands::{PIPELINE, Shop};

/// The lines with what differs from machine to machine taken out.
fn steady(shop: &Shop, text: &str) -> String {
    let folder = shop.path("").canonicalize().unwrap().display().to_string();
    let mut lines = Vec::new();
    for line in text.replace(&folder, "FOLDER").lines() {
        lines.push(match line.split_once(" MiB free") {
            Some((head, tail)) => format!("{}N MiB free{tail}\n", head.trim_end_matches(|letter: char| letter.is_ascii_digit())),
            None => format!("{line}\n"),
        });
    }
    lines.concat()
}

fn assert_golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TRIBUTARY_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "look at the difference and run with TRIBUTARY_BLESS=1");
}

#[test]
fn golden_lines_of_a_sound_installation_and_nothing_is_left_behind() {
    let shop = Shop::new();
    shop.write("tributary.toml", "memory_limit = \"64MiB\"\n");
    let said = shop.says(0, &["doctor", "-w", "lake"]);
    assert_golden("doctor-sound.txt", &steady(&shop, &said));
    assert!(!shop.path("lake").exists(), "it took away what it made");
    shop.says(0, &["run", "-w", "lake"]);
    let said = shop.says(0, &["doctor", "-w", "lake"]);
    assert!(said.contains("with 3 tables"), "{said}");
    assert_eq!(std::fs::read_dir(shop.path("lake/main")).unwrap().count(), 3, "schemas and no probe");
}

#[test]
fn golden_lines_of_an_installation_with_everything_wrong() {
    let shop = Shop::new();
    shop.write("pipeline.yml", &PIPELINE.replace("path: orders", "path: nowhere"));
    shop.write("lake", "a file where the warehouse should be");
    let said = shop.says(2, &["doctor", "-w", "lake", "--memory-limit", "1000000GiB"]);
    assert_golden("doctor-broken.txt", &steady(&shop, &said));
    for line in said.lines().filter(|line| line.starts_with("failed")) {
        assert!(line.contains("error[") && line.contains("; next: "), "{line}");
    }
    shop.write("pipeline.yml", &PIPELINE.replace("keys: [id]", "kesy: [id]"));
    let said = shop.says(2, &["doctor"]);
    assert!(said.contains("failed  pipeline") && said.contains("ok      warehouse"), "{said}");
    let said = shop.says(2, &["doctor", "--kafka-bootstrap", "127.0.0.1:1"]);
    assert!(said.contains("failed  pipeline") && said.contains("failed  kafka      broker 127.0.0.1:1"), "{said}");
}

#[test]
fn programs_read_an_object_a_line() {
    let shop = Shop::new();
    let rows = shop.json(&["doctor", "--output", "json"]);
    let checks: Vec<&str> = rows.iter().map(|row| row["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["settings", "pipeline", "warehouse", "catalogue", "clock", "disk", "disk", "files"]);
    assert!(rows.iter().all(|row| row["outcome"] == "ok" && row["code"] == Value::Null), "{rows:?}");
}

#[test]
fn a_broker_and_a_registry_that_do_not_answer_are_said_with_their_codes() {
    let shop = Shop::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kafka = PIPELINE.replace("source: {files: {path: orders, format: jsonl}}", "source: {kafka: {topics: [orders]}}");
    shop.write("pipeline.yml", &kafka);
    let registry = format!("http://{free}");
    let said = shop.says(2, &["doctor", "--kafka-bootstrap", &free.to_string(), "--schema-registry", &registry]);
    let line = said.lines().find(|line| line.contains("broker 127")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.starts_with("failed  kafka") && line.contains(&format!("broker {free}")) && line.contains("error[BR0023]"), "{line}");
    assert!(line.ends_with("; next: tributary help BR0023"), "to run is no way out: {line}");
    let line = said.lines().find(|line| line.contains(&registry)).unwrap_or_else(|| panic!("{said}"));
    assert!(line.starts_with("failed  kafka") && line.contains("error[BR"), "{line}");
}
