//! What is said of tests: a line each, differences below it, and the sum.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tributary_bundle::{Test, TestFile};
use tributary_config::Output;

use super::compare::{Cells, Difference};
use crate::failure::{Failure, count};

/// Rows that are shown of one kind.
const ROWS_MAX: usize = 10;

/// How a test ended.
#[derive(Debug)]
pub enum End {
    Passed,
    Failed(Vec<Difference>),
    /// The test itself is wrong.
    Unfit(Failure),
}

/// A test and how it ended.
#[derive(Debug)]
pub struct Said {
    pub file: TestFile,
    pub test: Test,
    pub end: End,
    pub millis: u128,
}

/// All of it in the form of `--output`.
pub fn all(said: &[Said], output: Output, took: Duration) -> String {
    let passed = said.iter().filter(|said| matches!(said.end, End::Passed)).count();
    let failed = said.len() - passed;
    if output == Output::Json {
        let tests: Vec<Json> = said.iter().map(as_json).collect();
        return format!("{:#}\n", json!({"tests": tests, "passed": passed, "failed": failed, "millis": took.as_millis()}));
    }
    let mut text: String = said.iter().map(as_text).collect();
    let _ = writeln!(text, "{}, {passed} passed, {failed} failed, {:.1} s", count(said.len(), "test"), took.as_secs_f64());
    text
}

fn as_text(said: &Said) -> String {
    let Said { file, test, end, .. } = said;
    let named = format!("{}: {}", file.dataset, test.name);
    match end {
        End::Passed => format!("ok    {named}\n"),
        End::Failed(differences) => {
            let mut text = format!("FAIL  {named} ({}:{})\n", file.file, test.line);
            differences.iter().for_each(|difference| difference_as_text(&mut text, difference, test.runs.len()));
            text
        }
        End::Unfit(failure) => {
            format!("ERROR {named} ({}:{})\n        {} ({})\n", file.file, test.line, failure.message, failure.code)
        }
    }
}

fn difference_as_text(text: &mut String, difference: &Difference, runs: usize) {
    let run = if runs > 1 { format!("after run {}, ", difference.run) } else { String::new() };
    let what = if difference.what.is_empty() { "other rows than expected" } else { &difference.what };
    let _ = writeln!(text, "        {run}{}: {what}", difference.table);
    for changed in difference.changed.iter().take(ROWS_MAX) {
        let cell = |(column, found, expected): &(String, Option<String>, Option<String>)| {
            format!("{column} is {}, expected {}", value(found), value(expected))
        };
        let key: Vec<String> = changed.key.iter().map(|(column, found)| format!("{column}={}", value(found))).collect();
        let cells: Vec<String> = changed.cells.iter().map(cell).collect();
        let _ = writeln!(text, "        changed     {}: {}", key.join(", "), cells.join("; "));
    }
    more(text, "changed", difference.changed.len());
    for (kind, rows) in [("missing", &difference.missing), ("unexpected", &difference.unexpected)] {
        for row in rows.iter().take(ROWS_MAX) {
            let _ = writeln!(text, "        {kind:<11} {}", row_as_text(&difference.columns, row));
        }
        more(text, kind, rows.len());
    }
}

fn more(text: &mut String, kind: &str, count: usize) {
    if count > ROWS_MAX {
        let _ = writeln!(text, "        {kind:<11} and {} more", count - ROWS_MAX);
    }
}

fn row_as_text(columns: &[String], row: &Cells) -> String {
    columns.iter().zip(row).map(|(column, cell)| format!("{column}={}", value(cell))).collect::<Vec<_>>().join(", ")
}

fn value(cell: &Option<String>) -> &str {
    cell.as_deref().unwrap_or("null")
}

fn as_json(said: &Said) -> Json {
    let Said { file, test, end, millis } = said;
    let mut value = json!({
        "dataset": file.dataset,
        "name": test.name,
        "file": file.file,
        "line": test.line,
        "passed": matches!(end, End::Passed),
        "millis": millis,
    });
    match end {
        End::Passed => {}
        End::Failed(differences) => value["differences"] = differences.iter().map(difference_as_json).collect(),
        End::Unfit(failure) => value["error"] = json!({"code": failure.code, "message": failure.message}),
    }
    value
}

fn difference_as_json(difference: &Difference) -> Json {
    let row = |row: &Cells| -> Json {
        difference.columns.iter().cloned().zip(row.iter().map(|cell| json!(cell))).collect::<serde_json::Map<_, _>>().into()
    };
    let changed = difference.changed.iter().map(|changed| {
        let key: serde_json::Map<String, Json> = changed.key.iter().map(|(column, cell)| (column.clone(), json!(cell))).collect();
        let cells = changed.cells.iter().map(|(column, found, expected)| json!({"column": column, "found": found, "expected": expected}));
        json!({"key": key, "cells": cells.collect::<Vec<_>>()})
    });
    let mut value = json!({
        "table": difference.table,
        "run": difference.run,
        "missing": difference.missing.iter().map(row).collect::<Vec<_>>(),
        "unexpected": difference.unexpected.iter().map(row).collect::<Vec<_>>(),
        "changed": changed.collect::<Vec<_>>(),
    });
    if !difference.what.is_empty() {
        value["what"] = json!(difference.what);
    }
    value
}
