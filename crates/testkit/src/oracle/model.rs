//! A dataset's declarations, and what its table must hold.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, Kind};
use super::fold::{Fold, Leaves, Step};
use crate::value::Value;

/// Values in the order of the result's columns.
pub type Row = Vec<Value>;

/// What a dataset declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Key columns, in order.
    pub keys: Vec<String>,
    /// Columns of the result, in order, keys among them.
    pub columns: Vec<String>,
    /// Which nulls mean "not written".
    pub ignore_nulls: IgnoreNulls,
    /// Columns whose change opens a version.
    pub tracked: Vec<String>,
    /// Whether null equals null in key columns, instead of being refused.
    pub null_safe_keys: bool,
}

/// Which nulls mean "not written".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IgnoreNulls {
    /// Null is a value.
    #[default]
    Off,
    /// Null in any column is not written.
    All,
    /// Null in these columns is not written.
    Columns(BTreeSet<String>),
}

/// Why the events of a batch are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A key column is null.
    NullKey,
    /// A declared sequence is null.
    NullSequence,
}

impl Model {
    /// A dataset with these keys and columns that tracks every column but its keys.
    pub fn new<S: Into<String> + Clone>(keys: &[S], columns: &[S]) -> Self {
        let names = |names: &[S]| names.iter().cloned().map(Into::into).collect::<Vec<String>>();
        let (keys, columns) = (names(keys), names(columns));
        let tracked = columns.iter().filter(|column| !keys.contains(column)).cloned().collect();
        Self { keys, columns, ignore_nulls: IgnoreNulls::Off, tracked, null_safe_keys: false }
    }

    /// Whether AUTO CDC takes these events.
    ///
    /// # Errors
    /// With what it refuses.
    pub fn check(&self, events: &[Event]) -> Result<(), Refusal> {
        for event in events {
            if event.kind != Kind::Truncate && !self.null_safe_keys && event.key.iter().any(Value::is_null) {
                return Err(Refusal::NullKey);
            }
            if event.sequence.as_ref().is_none_or(Value::is_null) && !(event.is_cut() && event.position.is_some()) {
                return Err(Refusal::NullSequence);
            }
        }
        Ok(())
    }

    /// The current row of every live key, in key order.
    pub fn scd1(&self, events: &[Event]) -> Vec<Row> {
        self.each_key(events, |steps| {
            steps.last().and_then(|step| step.state.as_ref()).map(|leaves| self.row(leaves)).into_iter().collect()
        })
    }

    /// The row of every key that was ever seen alive, behind its columns whether it is deleted: what a table that marks deleted
    /// rows instead of removing them holds.
    pub fn soft_deleted(&self, events: &[Event]) -> Vec<Row> {
        self.each_key(events, |steps| {
            let deleted = steps.last().is_none_or(|step| step.state.is_none());
            let latest = steps.iter().rev().find_map(|step| step.state.as_ref());
            latest.map(|leaves| with(self.row(leaves), [Value::Bool(deleted)])).into_iter().collect()
        })
    }

    /// The history of every key, in key order and time: columns, `__START_AT`, `__END_AT`.
    pub fn scd2(&self, events: &[Event]) -> Vec<Row> {
        self.each_key(events, |steps| self.history(steps))
    }

    /// Each fact's first event in the total order; deletes are not applied.
    pub fn insert_only(&self, events: &[Event]) -> Vec<Row> {
        self.each_key(&upserts(events), |steps| {
            steps.first().and_then(|step| step.state.as_ref()).map(|leaves| self.row(leaves)).into_iter().collect()
        })
    }

    /// Each key's greatest event in the total order; deletes are not applied.
    pub fn last_writer_wins(&self, events: &[Event]) -> Vec<Row> {
        self.scd1(&upserts(events))
    }

    /// Each key's event with the greatest values of `columns`, compared as a tuple; among equals the first in the total order,
    /// since none after it raises them. Deletes are not applied.
    pub fn monotonic_advance(&self, events: &[Event], columns: &[String]) -> Vec<Row> {
        let of = |leaves: &Leaves| columns.iter().map(|column| value_of(leaves, column)).collect::<Vec<_>>();
        self.each_key(&upserts(events), |steps| {
            let states = steps.iter().filter_map(|step| step.state.as_ref());
            let best = states.reduce(|best, other| if of(other) > of(best) { other } else { best });
            best.map(|leaves| self.row(leaves)).into_iter().collect()
        })
    }

    /// Every upsert as a row, in the order given.
    pub fn append(&self, events: &[Event]) -> Vec<Row> {
        events.iter().filter(|event| event.kind == Kind::Upsert).map(|event| self.row(&self.written(event))).collect()
    }

    fn each_key(&self, events: &[Event], rows: impl Fn(&[Step]) -> Vec<Row>) -> Vec<Row> {
        let keys: BTreeSet<&Vec<Value>> = events.iter().filter(|event| event.kind != Kind::Truncate).map(|event| &event.key).collect();
        let fold = Fold::new(self, events);
        keys.into_iter().flat_map(|key| rows(&fold.steps(key))).collect()
    }

    /// Steps of one sequence are one, the last; runs of equal tracked columns are one row with the last one's values.
    fn history(&self, steps: &[Step]) -> Vec<Row> {
        let mut rows: Vec<(Row, Value, Option<Value>)> = Vec::new();
        let shown = steps.chunk_by(|a, b| a.sequence == b.sequence).filter_map(<[Step]>::last);
        for Step { sequence, state } in shown {
            let open = rows.last_mut().filter(|(_, _, end)| end.is_none());
            match (state.as_ref().map(|leaves| self.row(leaves)), open) {
                (Some(row), Some(open)) if self.tracked_part(&row) == self.tracked_part(&open.0) => open.0 = row,
                (row, open) => {
                    if let Some(open) = open {
                        open.2 = Some(sequence.clone());
                    }
                    rows.extend(row.map(|row| (row, sequence.clone(), None)));
                }
            }
        }
        rows.into_iter().map(|(row, start, end)| with(row, [start, end.unwrap_or_default()])).collect()
    }

    fn tracked_part<'r>(&self, row: &'r Row) -> Vec<&'r Value> {
        self.columns.iter().zip(row).filter(|(column, _)| self.tracked.contains(column)).map(|(_, value)| value).collect()
    }

    /// The leaves an event wrote itself.
    pub(super) fn written(&self, event: &Event) -> Leaves {
        let mut leaves = Leaves::new();
        for column in self.columns.iter().filter(|column| !event.unavailable.contains(*column)) {
            let value = event.row.get(column).cloned().unwrap_or_default();
            if self.ignores_nulls_of(column) {
                not_null_leaves(&mut vec![column.clone()], value, &mut leaves);
            } else {
                leaves.insert(vec![column.clone()], value);
            }
        }
        leaves
    }

    fn ignores_nulls_of(&self, column: &String) -> bool {
        !self.keys.contains(column)
            && match &self.ignore_nulls {
                IgnoreNulls::Off => false,
                IgnoreNulls::All => true,
                IgnoreNulls::Columns(columns) => columns.contains(column),
            }
    }

    fn row(&self, leaves: &Leaves) -> Row {
        self.columns.iter().map(|column| value_of(leaves, column)).collect()
    }
}

fn upserts(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.kind == Kind::Upsert).cloned().collect()
}

fn with<const N: usize>(mut row: Row, more: [Value; N]) -> Row {
    row.extend(more);
    row
}

/// Structs are taken apart; nulls, and structs of nulls, write nothing.
fn not_null_leaves(path: &mut Vec<String>, value: Value, leaves: &mut Leaves) {
    match value {
        Value::Null => {}
        Value::Struct(fields) => {
            for (name, value) in fields {
                path.push(name);
                not_null_leaves(path, value, leaves);
                path.pop();
            }
        }
        value => {
            leaves.insert(path.clone(), value);
        }
    }
}

fn value_of(leaves: &Leaves, column: &str) -> Value {
    let below: BTreeMap<&[String], &Value> =
        leaves.iter().filter(|(path, _)| path[0] == column).map(|(path, value)| (&path[1..], value)).collect();
    assemble(&below)
}

fn assemble(leaves: &BTreeMap<&[String], &Value>) -> Value {
    if let Some(value) = leaves.get(&[] as &[String]) {
        return (*value).clone();
    }
    let mut fields: BTreeMap<&String, BTreeMap<&[String], &Value>> = BTreeMap::new();
    for (path, value) in leaves {
        fields.entry(&path[0]).or_default().insert(&path[1..], value);
    }
    if fields.is_empty() {
        return Value::Null;
    }
    Value::Struct(fields.iter().map(|(name, below)| ((*name).clone(), assemble(below))).collect())
}
