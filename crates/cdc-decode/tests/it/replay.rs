//! A small replica: applies decoded changes in their order and compares with the source's final state.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StructArray};

use crate::canon::{Canon, actual, expected};
use crate::capture::Expected;

type Row = BTreeMap<String, Canon>;

/// The replica of one table.
#[derive(Default)]
pub struct Replica {
    rows: BTreeMap<Vec<Canon>, Row>,
    /// Rows that a key change has taken away, by their old key, until its other half comes.
    moving: BTreeMap<Vec<Canon>, Row>,
    /// Rows of a table without key.
    bag: Vec<Row>,
}

impl Replica {
    /// Applies the rows of a batch.
    pub fn apply(&mut self, batch: &RecordBatch, table: &Expected) {
        let types: BTreeMap<&str, &str> = table.columns.iter().map(|column| (column.name.as_str(), column.sql_type.as_str())).collect();
        let ops = batch.column_by_name("_op").unwrap().as_string::<i32>();
        let unavailable = batch.column_by_name("_unavailable").unwrap().as_list::<i32>();
        // They are not there where no key is known.
        let [from, to] = ["_key_changed_from", "_key_changed_to"].map(|name| batch.column_by_name(name).map(|column| column.as_struct()));
        let before = batch.column_by_name("_before").unwrap().as_struct();
        for at in 0..batch.num_rows() {
            if table.primary_key.is_empty() && matches!(ops.value(at), "update" | "delete") {
                assert!(before.is_valid(at), "a table without key sends full before-images");
                let old: Row = types
                    .iter()
                    .map(|(name, sql_type)| {
                        ((*name).to_owned(), before.column_by_name(name).and_then(|column| actual(sql_type, column, at)))
                    })
                    .collect();
                let place = self.bag.iter().position(|row| *row == old).unwrap();
                self.bag.remove(place);
            }
            let mut row: Row = types
                .iter()
                .map(|(name, sql_type)| {
                    let value = batch.column_by_name(name).and_then(|column| actual(sql_type, column, at));
                    ((*name).to_owned(), value)
                })
                .collect();
            let key: Vec<Canon> = table.primary_key.iter().map(|name| row[name].clone()).collect();
            match ops.value(at) {
                "truncate" => {
                    self.rows.clear();
                    self.bag.clear();
                }
                "delete" if table.primary_key.is_empty() => {}
                "delete" => {
                    let old = self.rows.remove(&key);
                    if let (true, Some(old)) = (to.is_some_and(|to| to.is_valid(at)), old) {
                        self.moving.insert(key, old);
                    }
                }
                _ if table.primary_key.is_empty() => self.bag.push(row),
                _ => {
                    let old_key = from.filter(|from| from.is_valid(at)).map(|from| key_of(from, at, table, &types));
                    let old = match &old_key {
                        Some(old_key) => self.moving.get(old_key).or_else(|| self.rows.get(old_key)),
                        None => self.rows.get(&key),
                    };
                    if unavailable.is_valid(at) {
                        let names = unavailable.value(at);
                        for name in names.as_string::<i32>().iter().flatten() {
                            let kept = old.and_then(|old| old.get(name).cloned()).unwrap_or(Some("NEVER SEEN".to_owned()));
                            row.insert(name.to_owned(), kept);
                        }
                    }
                    self.rows.insert(key, row);
                }
            }
        }
    }

    /// The columns in which the replica differs from the source, with the first difference; panics where the keys differ.
    pub fn differences(&self, table: &Expected) -> BTreeMap<String, String> {
        let wanted: Vec<Row> = table
            .rows
            .iter()
            .map(|row| {
                table.columns.iter().map(|column| (column.name.clone(), expected(&column.sql_type, row[&column.name].as_deref()))).collect()
            })
            .collect();
        let mut differences = BTreeMap::new();
        if table.primary_key.is_empty() {
            let sorted = |rows: &[Row]| {
                let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                rows.sort();
                rows
            };
            let kept = sorted(&self.bag);
            assert_eq!(kept, sorted(&wanted));
            return differences;
        }
        let keys = |rows: &[Row]| {
            rows.iter().map(|row| table.primary_key.iter().map(|name| row[name].clone()).collect::<Vec<_>>()).collect::<BTreeSet<_>>()
        };
        let (mine, theirs) = (self.rows.keys().cloned().collect::<BTreeSet<_>>(), keys(&wanted));
        assert!(theirs.is_subset(&mine), "missing {:?}", theirs.difference(&mine).collect::<Vec<_>>());
        let extra = mine.difference(&theirs).count();
        if extra > 0 {
            differences.insert("*".to_owned(), format!("{extra} rows that the source does not have"));
        }
        assert_eq!(wanted.len(), table.row_count);
        for row in &wanted {
            let key: Vec<Canon> = table.primary_key.iter().map(|name| row[name].clone()).collect();
            let mine = &self.rows[&key];
            for (name, value) in row {
                if mine[name] != *value {
                    let shown = |value: &Canon| format!("{value:?}").chars().take(60).collect::<String>();
                    differences
                        .entry(name.clone())
                        .or_insert_with(|| format!("key {key:?}: source {}, replica {}", shown(value), shown(&mine[name])));
                }
            }
        }
        differences
    }
}

fn key_of(from: &StructArray, at: usize, table: &Expected, types: &BTreeMap<&str, &str>) -> Vec<Canon> {
    table.primary_key.iter().map(|name| actual(types[name.as_str()], from.column_by_name(name).unwrap(), at)).collect()
}
