//! A silver table against the recorded final state of its source.

use std::collections::BTreeMap;

use tributary::arrow::array::RecordBatch;

use super::canonical::{Kind, of_arrow, of_source};
use super::expected::{ExpectedTable, Server};

/// Stands for a column where a whole row is on one side only.
pub const ROW: &str = "(row)";

/// How a silver table differs from its source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Rows of the source.
    pub rows: usize,
    /// Columns that were compared.
    pub columns: usize,
    /// Everything that differs, by column; keys that only one side has stand under the column `(row)`.
    pub differences: BTreeMap<String, Vec<Cell>>,
    /// The same for columns whose loss at the source is known.
    pub known: BTreeMap<String, Vec<Cell>>,
}

/// One value that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The row's key, column by column.
    pub key: String,
    /// At the source; `None` = null or no such row.
    pub source: Option<String>,
    /// In the lake; `None` = null or no such row.
    pub lake: Option<String>,
}

impl Comparison {
    fn note(&mut self, known: &BTreeMap<String, String>, column: &str, cell: Cell) {
        let side = if known.contains_key(column) { &mut self.known } else { &mut self.differences };
        side.entry(column.to_owned()).or_default().push(cell);
    }

    /// Whether nothing differs beyond what is known to be lost at the source.
    pub fn equal(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Compares live rows with the source's, by primary key, or as bags where there is none.
///
/// `known` names columns whose differences are losses of the source's own settings, and how they come about.
pub fn compare(server: Server, expected: &ExpectedTable, batches: &[RecordBatch], known: &BTreeMap<String, String>) -> Comparison {
    let kinds: Vec<(&str, Kind)> =
        expected.columns.iter().map(|column| (column.name.as_str(), Kind::of(server, &column.source_type))).collect();
    let key: Vec<&str> = if expected.primary_key.is_empty() {
        kinds.iter().map(|(name, _)| *name).collect()
    } else {
        expected.primary_key.iter().map(String::as_str).collect()
    };
    let mut rows: BTreeMap<String, Vec<BTreeMap<&str, Option<String>>>> = BTreeMap::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values: BTreeMap<&str, Option<String>> = kinds
                .iter()
                .map(|(name, kind)| (*name, batch.column_by_name(name).and_then(|column| of_arrow(*kind, column, row))))
                .collect();
            rows.entry(key_text(&key, &values)).or_default().push(values);
        }
    }
    let mut comparison = Comparison { rows: expected.rows.len(), columns: kinds.len(), ..Comparison::default() };
    for row in &expected.rows {
        let values: BTreeMap<&str, Option<String>> = kinds
            .iter()
            .map(|(name, kind)| (*name, row.get(*name).cloned().flatten().map(|text| of_source(server, *kind, &text))))
            .collect();
        let key = key_text(&key, &values);
        let found = rows.get_mut(&key).and_then(Vec::pop);
        let Some(found) = found else {
            comparison.differences.entry("(row)".to_owned()).or_default().push(Cell {
                key,
                source: Some("present".to_owned()),
                lake: None,
            });
            continue;
        };
        for (name, _) in &kinds {
            let (source, lake) = (&values[name], &found[name]);
            if source != lake {
                comparison.note(known, name, Cell { key: key.clone(), source: source.clone(), lake: lake.clone() });
            }
        }
    }
    for (key, left) in rows {
        for _ in left {
            comparison.note(known, ROW, Cell { key: key.clone(), source: None, lake: Some("present".to_owned()) });
        }
    }
    comparison
}

fn key_text(key: &[&str], values: &BTreeMap<&str, Option<String>>) -> String {
    let parts = key.iter().map(|name| format!("{name}={}", values.get(name).and_then(Option::as_deref).unwrap_or("null")));
    parts.collect::<Vec<_>>().join(", ")
}
