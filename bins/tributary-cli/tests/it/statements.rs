//! `tributary sql` with files, the standard input and what a person agrees to.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Exit code, standard output and standard error.
fn sql(folder: &std::path::Path, arguments: &[&str], typed: &str) -> (i32, String, String) {
    program(folder, &[&["sql", "-w", "lake", "-o", "csv"], arguments].concat(), typed)
}

/// The same of any command.
fn program(folder: &std::path::Path, arguments: &[&str], typed: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tributary"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    child.stdin.take().expect("the input").write_all(typed.as_bytes()).expect("what is typed");
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

#[test]
fn files_and_the_standard_input_are_executed_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("setup.sql"), "-- Databricks notebook source\nCREATE CATALOG IF NOT EXISTS prod;\nCREATE SCHEMA prod.shop;\n")
        .expect("a file");
    std::fs::write(
        path.join("rows.sql"),
        "USE CATALOG prod; USE shop;\nCREATE TABLE t (a INT);\n-- COMMAND ----------\nINSERT INTO t VALUES (1), (2)",
    )
    .expect("a file");
    let (code, out, said) = sql(path, &["-f", "setup.sql", "-f", "rows.sql"], "");
    assert_eq!((code, out.as_str()), (0, ""), "{said}");
    assert!(said.contains("table prod.shop.t created\n2 rows inserted\n"), "{said}");

    let (code, out, said) = sql(path, &[], "SELECT sum(a) AS s FROM prod.shop.t;\nSELECT 1 AS one;");
    assert_eq!((code, out.as_str()), (0, "s\n3\none\n1\n"), "{said}");
    let (code, out, _) = sql(path, &["select current_user() as me", "--user", "ann"], "");
    assert_eq!((code, out.as_str()), (0, "me\nann\n"));
    // without a word in the environment it is the user that the program runs as
    if cfg!(target_os = "linux") {
        let (code, out, said) = sql(path, &["select current_user() as me"], "");
        assert!(code == 0 && out.lines().nth(1).is_some_and(|name| !name.is_empty()), "{out}{said}");
    }
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("unread.sql"), "CREATE SCHEMA s;\n\nSELEC 1;").expect("a file");
    let (code, _, said) = sql(path, &["-f", "unread.sql"], "");
    assert_eq!(code, 2);
    assert!(
        said.contains(
            "error[SQ0002]: unread.sql: the statement SELEC is not executed by this release (line 3, column 1): did you mean SELECT?"
        ),
        "{said}"
    );
    assert!(!path.join("lake").exists(), "nothing was executed");

    std::fs::write(path.join("failing.sql"), "CREATE SCHEMA s;\n  CREATE SCHEMA s;\nCREATE SCHEMA t").expect("a file");
    let (code, _, said) = sql(path, &["-f", "failing.sql"], "");
    assert_eq!(code, 2);
    assert!(said.contains("error[TR0109]: failing.sql:2:3: schema `main.s` is there already"), "{said}");
    let (_, out, _) = sql(path, &["SHOW SCHEMAS"], "");
    assert_eq!(out, "databaseName\ns\ninformation_schema\n", "what stood before it is done, what stood after is not");
}

#[test]
fn a_table_is_dropped_and_a_mask_recorded_only_where_a_person_agrees() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let (code, _, said) = sql(path, &["CREATE SCHEMA s; CREATE TABLE s.t (e STRING); CREATE FUNCTION s.f(e STRING) RETURN '*'"], "");
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = sql(path, &["DROP TABLE s.t"], "");
    assert!(code == 2 && said.contains("error[TR0116]"), "{said}");
    let mask = "ALTER TABLE s.t ALTER COLUMN e SET MASK s.f";
    let (code, _, said) = sql(path, &[mask], "");
    assert!(code == 2 && said.contains("error[TR0112]"), "{said}");
    let (code, _, said) = sql(path, &["--accept-unprotected", mask], "");
    assert!(code == 0 && said.contains("NOT ENFORCED"), "{said}");
    let (code, _, said) = sql(path, &["--destroy", "s.t", "DROP TABLE s.t"], "");
    assert!(code == 0 && said.contains("table main.s.t dropped"), "{said}");
}

#[test]
fn a_recorded_mask_stops_the_runs_that_write_its_table_until_a_person_accepts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let pipeline =
        "name: people\nfeeds: []\nexternal: [raw.people]\ngold:\n  - {table: gold.people, query: select email from raw.people}\n";
    std::fs::write(path.join("people.yml"), pipeline).expect("a file");
    let run = |more: &[&str]| {
        program(path, &[&["run", "-p", "people.yml", "-w", "lake", "--log-format", "text", "--report", "report.json"], more].concat(), "")
    };
    let made = "CREATE SCHEMA raw; CREATE TABLE raw.people (email STRING); CREATE FUNCTION raw.hide(e STRING) RETURN '*'";
    let (code, _, said) = sql(path, &[made], "");
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = run(&[]);
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = sql(path, &["--accept-unprotected", "ALTER TABLE gold.people ALTER COLUMN email SET MASK raw.hide"], "");
    assert_eq!(code, 0, "{said}");
    let clause = "MASK main.raw.hide of `email` on `main.gold.people`";
    let (code, _, said) = run(&[]);
    assert!(code == 2 && said.contains("error[TR0010]") && said.contains(clause), "{said}");
    assert!(said.contains("tributary run --accept-unprotected --warehouse lake --pipeline people.yml"), "{said}");
    let (_, out, said) = program(path, &["plan", "-p", "people.yml", "-w", "lake"], "");
    assert!(out.contains("a run needs --accept-unprotected") && out.contains(clause), "{out}{said}");
    let (code, out, said) = run(&["--accept-unprotected"]);
    assert!(code == 0 && out.contains(clause), "{out}{said}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path.join("report.json")).expect("the report")).expect("JSON");
    assert_eq!(report["unprotected"], serde_json::json!([clause]));
}
