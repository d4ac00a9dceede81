//! The table of outcomes as text, and as values.
//!
//! ```text
//! change add
//!   says     The source gets a column.
//!   old      id int, seq long, region string, name string, qty int
//!   new      id int, seq long, region string, name string, qty int, note string
//!   batch    old: 1|1|eu|ann|10; 2|2|us|bob|20
//!   batch    new: 3|3|eu|cy|30|x
//!
//!   outcome  freeze
//!     bronze   id integer, …: 1|1|eu|ann|10; …; stops CD0003 note
//! ```
//!
//! A batch is what one run of bronze and silver finds, in a shape of the entry. An outcome is of the policies it names (`*` = all), and of
//! the wires and layouts it names, if it names any; the first that fits counts. What it says of a table is what every run has left of it:
//! columns, rows, and remarks on them.

use std::collections::BTreeMap;
use std::fmt;

/// The policies of a feed, in the order of the page.
pub const POLICIES: [&str; 5] = ["freeze", "add", "widen", "rescue", "quarantine"];
/// The tables of a chain whose outcomes are written down.
pub const TABLES: [&str; 4] = ["bronze", "append", "current", "history"];
/// How messages are written.
pub const WIRES: [&str; 3] = ["debezium", "json", "csv"];
/// Whether tables have a partition column.
pub const LAYOUTS: [&str; 2] = ["plain", "partitioned"];

/// One change of a source, and what becomes of it.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub name: String,
    /// Whether it is one of the seven changes that every policy, table and layout is tried with.
    pub is_basic: bool,
    /// Everything but batches and outcomes, by name: `says`, `old`, `new`, `wires`, …
    options: BTreeMap<String, String>,
    pub batches: Vec<Batch>,
    pub outcomes: Vec<Outcome>,
}

/// Messages of one shape.
#[derive(Debug, Clone)]
pub struct Batch {
    pub shape: String,
    pub rows: Vec<String>,
}

/// What becomes of the tables of a chain.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Policies, wires and layouts it is of.
    of: Vec<String>,
    pub tables: BTreeMap<String, Seen>,
}

/// What is seen of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Business columns with their types.
    pub columns: Vec<String>,
    pub rows: Vec<String>,
    /// `stops CD0003 note`, `quarantined unknown_column note`, `rewritten`, …
    pub remarks: Vec<String>,
}

impl Entry {
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub fn says(&self) -> &str {
        self.option("says").expect("every change says what it is")
    }

    /// Columns and their types in a shape.
    pub fn shape(&self, shape: &str) -> Vec<(&str, &str)> {
        let text = self.option(shape).unwrap_or_else(|| panic!("{}: shape {shape} is declared", self.name));
        split(text, ',').map(|column| column.split_once(' ').expect("name and type")).collect()
    }

    /// The words of an option, else all there are.
    pub fn among<'a>(&'a self, option: &str, all: &[&'a str]) -> Vec<&'a str> {
        self.option(option).map_or_else(|| all.to_vec(), |text| text.split(' ').collect())
    }

    pub fn policies(&self) -> Vec<&str> {
        self.among("policies", &POLICIES)
    }

    /// What is to become of the tables.
    pub fn outcome(&self, policy: &str, wire: &str, layout: &str) -> &Outcome {
        let fits = |outcome: &&Outcome| {
            let names = |among: &[&str]| outcome.of.iter().any(|word| among.contains(&word.as_str()));
            (names(&[policy, "*"])) && (!names(&WIRES) || names(&[wire])) && (!names(&LAYOUTS) || names(&[layout]))
        };
        self.outcomes.iter().find(fits).unwrap_or_else(|| panic!("{}: no outcome is written for {policy} {wire} {layout}", self.name))
    }
}

/// Parts of a text, trimmed; separators within brackets or quotes do not count.
pub fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut depth, mut quoted) = (0, false);
    text.split(move |letter| {
        match letter {
            '"' => quoted = !quoted,
            '(' | '<' | '{' | '[' if !quoted => depth += 1,
            ')' | '>' | '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        letter == separator && depth == 0 && !quoted
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

/// Every entry of a text.
pub fn parse(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
        if let "change" | "special" = word {
            entries.push(Entry { name: rest.to_owned(), is_basic: word == "change", ..Entry::default() });
            continue;
        }
        let entry = entries.last_mut().expect("a change comes first");
        match word {
            "outcome" => entry.outcomes.push(Outcome { of: rest.split(' ').map(str::to_owned).collect(), tables: BTreeMap::new() }),
            "batch" => {
                let (shape, rows) = rest.split_once(':').expect("a shape and rows");
                entry.batches.push(Batch { shape: shape.to_owned(), rows: split(rows, ';').map(str::to_owned).collect() });
            }
            table if TABLES.contains(&table) => {
                let outcome = entry.outcomes.last_mut().expect("an outcome comes first");
                outcome.tables.insert(table.to_owned(), seen(rest));
            }
            option => {
                entry.options.insert(option.to_owned(), rest.to_owned());
            }
        }
    }
    entries
}

/// `columns: rows; remarks`: what has a `|` is a row.
fn seen(text: &str) -> Seen {
    if text == "none" {
        return Seen::default();
    }
    let (columns, rest) = text.split_once(": ").unwrap_or((text, ""));
    let (rows, remarks) = split(rest, ';').map(str::to_owned).partition(|part| part.contains('|'));
    Seen { columns: split(columns, ',').map(str::to_owned).collect(), rows, remarks }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.columns.is_empty() && self.remarks.is_empty() {
            return f.write_str("none");
        }
        let rest: Vec<&str> = self.rows.iter().chain(&self.remarks).map(String::as_str).collect();
        write!(f, "{}: {}", self.columns.join(", "), rest.join("; "))
    }
}
