//! The schema evolution grid: every change of a source, under every policy, into every kind of table. What becomes of it is written in
//! `cells.txt`, which is also what `docs/reference/schema-evolution.md` is made of.

mod chain;
mod entry;
mod message;
mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;

use chain::{Cell, Tables};
use entry::{Entry, LAYOUTS, Seen, TABLES, WIRES, parse};

/// A file beside this one.
fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/schema_grid").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn entries() -> Vec<Entry> {
    parse(&text("cells.txt"))
}

/// What is seen and not written, a line each; and how many cells were looked at.
#[derive(Debug, Default)]
struct Findings {
    tried: usize,
    wrong: Vec<String>,
}

impl Findings {
    fn look(&mut self, cell: Cell<'_>, table: &str, expected: &Seen, found: Option<&Seen>) {
        self.tried += 1;
        let none = Seen::default();
        let found = found.unwrap_or(&none);
        if found != expected {
            let Cell { entry, policy, wire, layout } = cell;
            self.wrong.push(format!("{}, {policy}, {wire}, {layout}:\n      {table} {found}\n  not {table} {expected}", entry.name));
        }
    }

    fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.wrong.extend(other.wrong);
    }
}

/// Compares what a chain has come to with what is written.
fn compare(cell: Cell<'_>, tables: &Tables) -> Findings {
    let outcome = cell.entry.outcome(cell.policy, cell.wire, cell.layout);
    let mut findings = Findings::default();
    for (table, expected) in &outcome.tables {
        findings.look(cell, table, expected, tables.get(table));
        if cell.entry.is_basic && table != "bronze" {
            let explicit = of_columns(expected, &cell.entry.shape("old"), table == "history");
            let name = format!("{table}_explicit");
            findings.look(cell, &name, &explicit, tables.get(&name));
        }
        if cell.entry.is_basic && table == "current" {
            findings.look(cell, "current_by_feed", expected, tables.get("current_by_feed"));
        }
    }
    findings
}

/// What a table holds that selects some columns: those of each row. In a history neighbours that differ in none of them but the
/// sequence, whose change opens no version, are one version.
fn of_columns(seen: &Seen, columns: &[(&str, &str)], history: bool) -> Seen {
    let is_named = |column: &str, name: &str| column.split(' ').next() == Some(name);
    let places: Vec<usize> =
        (0..seen.columns.len()).filter(|at| columns.iter().any(|(name, _)| is_named(&seen.columns[*at], name))).collect();
    let kept: Vec<String> = places.iter().map(|at| seen.columns[*at].clone()).collect();
    let sequence = kept.iter().position(|column| is_named(column, "seq")).expect("a sequence");
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for row in &seen.rows {
        let cells: Vec<&str> = row.split('|').collect();
        let row: Vec<&str> = places.iter().map(|at| cells[*at]).chain(cells[seen.columns.len()..].iter().copied()).collect();
        match rows.last_mut().filter(|last| history && is_next(last, &row, sequence)) {
            Some(last) => (last[sequence], *last.last_mut().expect("an end")) = (row[sequence], row[row.len() - 1]),
            None => rows.push(row),
        }
    }
    Seen { columns: kept, rows: rows.into_iter().map(|row| row.join("|")).collect(), remarks: seen.remarks.clone() }
}

/// Whether a version goes on where another of the same content ends.
fn is_next(version: &[&str], next: &[&str], sequence: usize) -> bool {
    let content = version.len() - 2;
    version[content + 1] == next[content] && (0..content).all(|at| at == sequence || version[at] == next[at])
}

fn cells(entries: &[Entry]) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    for entry in entries {
        let (wires, layouts) = match entry.is_basic {
            true => (entry.among("wires", &WIRES[..2]), entry.among("layouts", &LAYOUTS)),
            false => (entry.among("wires", &WIRES[1..2]), entry.among("layouts", &LAYOUTS[..1])),
        };
        for policy in entry.policies() {
            for wire in &wires {
                cells.extend(layouts.iter().map(|layout| Cell { entry, policy, wire, layout }));
            }
        }
    }
    cells
}

async fn run_all(entries: Arc<Vec<Entry>>) -> Findings {
    let count = cells(&entries).len();
    let tasks = (0..count).map(|at| {
        let entries = Arc::clone(&entries);
        tokio::spawn(async move {
            let cell = cells(&entries)[at];
            compare(cell, &cell.run().await)
        })
    });
    let mut findings = Findings::default();
    let mut running = futures::stream::iter(tasks).buffered(4);
    while let Some(found) = running.next().await {
        findings.add(found.expect("a cell runs to its end"));
    }
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_under_every_policy_comes_to_what_is_written() {
    let findings = run_all(Arc::new(entries())).await;
    assert!(findings.wrong.is_empty(), "{} of {} cells differ:\n{}", findings.wrong.len(), findings.tried, findings.wrong.join("\n"));
    println!("{} cells tried", findings.tried);
}

#[test]
fn every_basic_change_is_written_down_for_every_policy_table_and_layout() {
    let entries = entries();
    let basic: Vec<&Entry> = entries.iter().filter(|entry| entry.is_basic).collect();
    let names: Vec<&str> = basic.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["add", "drop", "rename", "widen", "narrow", "reorder", "nested add"]);
    for Cell { entry, policy, wire, layout } in cells(&entries).into_iter().filter(|cell| cell.entry.is_basic) {
        let outcome = entry.outcome(policy, wire, layout);
        assert!(TABLES.iter().all(|table| outcome.tables.contains_key(*table)), "{}, {policy}", entry.name);
    }
    let expected = 7 * 5 * 2 * 2;
    assert_eq!(cells(&entries).into_iter().filter(|cell| cell.entry.is_basic).count(), expected);
}

/// The checker must see an outcome that is not so: a cell altered, a remark left out, a column of another type.
#[tokio::test]
async fn control_an_altered_outcome_is_noticed() {
    let entry = entries().into_iter().find(|entry| entry.name == "add").expect("the first change");
    let cell = Cell { entry: &entry, policy: "quarantine", wire: "json", layout: "plain" };
    let tables = cell.run().await;
    assert_eq!(compare(cell, &tables).wrong, [""; 0]);
    let alter = |change: &dyn Fn(&mut BTreeMap<String, Seen>)| {
        let mut altered = entry.clone();
        altered.outcomes.iter_mut().for_each(|outcome| change(&mut outcome.tables));
        compare(Cell { entry: &altered, ..cell }, &tables).wrong
    };
    let seen =
        |tables: &mut BTreeMap<String, Seen>, table: &str, change: &dyn Fn(&mut Seen)| change(tables.get_mut(table).expect("a table"));
    let row = alter(&|tables| seen(tables, "append", &|seen| seen.rows[0] = seen.rows[0].replace('1', "7")));
    assert!(row.iter().any(|line| line.starts_with("add, quarantine, json, plain:\n      append ")), "{row:?}");
    let remark = alter(&|tables| seen(tables, "bronze", &|seen| seen.remarks.clear()));
    assert!(remark.len() == 1 && remark[0].contains("quarantined unknown_column note"), "{remark:?}");
    let column = alter(&|tables| seen(tables, "history", &|seen| seen.columns[0] = "id long".to_owned()));
    assert!(!column.is_empty(), "{column:?}");
}

#[test]
fn generated_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schema-evolution.md");
    let page = page::page(&text("head.md"), &entries());
    if std::env::var_os("TRIBUTARY_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "{} differs; look at it and run with TRIBUTARY_BLESS=1\n--- actual\n{page}", path.display());
}
