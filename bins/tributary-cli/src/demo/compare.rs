//! A silver table against the recorded final state of its source.

use std::collections::BTreeMap;

use tributary::arrow::array::RecordBatch;

use super::canonical::{Kind, of_arrow, of_source};
use super::expected::{ExpectedTable, Server};

/// Stands for a column where a whole row is on one side only.
pub const ROW: &str = "(row)";

/// What is said of a whole row on the side that has it.
const PRESENT: &str = "present";

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

impl Cell {
    /// What differs, for people: the values of a column, or which side alone has a row.
    pub fn said(&self, column: &str) -> String {
        let side = |value: &Option<String>| value.as_deref().unwrap_or("null").to_owned();
        match (column, &self.source) {
            (ROW, Some(_)) => format!("[{}] is only at the source", self.key),
            (ROW, None) => format!("[{}] is only in the lake", self.key),
            _ => format!("[{}] {column}: source {}, lake {}", self.key, side(&self.source), side(&self.lake)),
        }
    }
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
            comparison.differences.entry(ROW.to_owned()).or_default().push(Cell { key, source: Some(PRESENT.to_owned()), lake: None });
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
            comparison.note(known, ROW, Cell { key: key.clone(), source: None, lake: Some(PRESENT.to_owned()) });
        }
    }
    comparison
}

fn key_text(key: &[&str], values: &BTreeMap<&str, Option<String>>) -> String {
    let parts = key.iter().map(|name| format!("{name}={}", values.get(name).and_then(Option::as_deref).unwrap_or("null")));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_one_side_has_is_said_to_be_there_and_a_value_with_both_sides() {
        let cell = |source: Option<&str>, lake: Option<&str>| Cell {
            key: "id=1".into(),
            source: source.map(str::to_owned),
            lake: lake.map(str::to_owned),
        };
        assert_eq!(cell(Some(PRESENT), None).said(ROW), "[id=1] is only at the source");
        assert_eq!(cell(None, Some(PRESENT)).said(ROW), "[id=1] is only in the lake");
        assert_eq!(cell(Some("a"), None).said("name"), "[id=1] name: source a, lake null");
    }
}
