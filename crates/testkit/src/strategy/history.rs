//! Histories a database could emit: snapshot reads, then create, update and delete a key; key changes as delete and create at
//! one position; transactions; now and then a truncate; equal timestamps on purpose; updates that change nothing; rows read
//! again by an incremental snapshot.
//!
//! Statements are generated freely and made legal while they are carried out (an insert of a key that is there is an update,
//! and so on), so that a failing history shrinks statement by statement.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use tributary_specs::{DataType, ReplicaIdentity};

use super::feed::{Change, ChangeKind, Snapshot};
use super::source::{ColumnKind, SourceTable};
use crate::value::Value;

/// A row of a source table by column.
pub type SourceRow = BTreeMap<String, Value>;

/// What happened to a table, in commit order.
#[derive(Clone, PartialEq)]
pub struct History {
    /// The table.
    pub table: SourceTable,
    /// Every change in the order the connector emits them; those of one partition are in that partition's order.
    pub changes: Vec<Change>,
    /// The table's rows afterwards, by key.
    pub rows: BTreeMap<Vec<Value>, SourceRow>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "history of {} ({:?} identity):", self.table.name, self.table.identity)?;
        self.changes.iter().enumerate().try_for_each(|(at, change)| writeln!(f, "  {at}: {change:?}"))
    }
}

impl History {
    /// The partition of every change.
    pub fn partitions(&self) -> Vec<i32> {
        self.changes.iter().map(|change| change.partition).collect()
    }

    /// The rows afterwards, in the order of the table's columns.
    pub fn final_rows(&self) -> Vec<Vec<Value>> {
        let names = self.table.column_names();
        self.rows.values().map(|row| names.iter().map(|name| row[name].clone()).collect()).collect()
    }
}

/// Histories of a table with up to `statements_max` statements after the snapshot, and at least one change.
pub fn source_history(table: SourceTable, statements_max: usize) -> impl Strategy<Value = History> {
    let snapshot = vec((any::<u8>(), vec(0..6u8, table.columns.len())), 0..4);
    (snapshot, vec(statements(&table), 1..=statements_max)).prop_map(move |(snapshot, statements)| {
        let mut source = Source::new(table.clone());
        source.snapshot(&snapshot);
        statements.into_iter().for_each(|statement| source.execute(statement));
        if source.changes.is_empty() {
            source.write(0, &vec![1; table.columns.len()], 0);
        }
        History { table: source.table, changes: source.changes, rows: source.rows }
    })
}

#[derive(Debug, Clone)]
enum Statement {
    /// Insert, or update of the columns in the mask.
    Write {
        key: u8,
        values: Vec<u8>,
        mask: u8,
    },
    Delete {
        key: u8,
    },
    Move {
        from: u8,
        to: u8,
        values: Vec<u8>,
        mask: u8,
    },
    /// An update that changes nothing.
    Touch {
        key: u8,
    },
    Truncate,
    Reread,
    /// The next transaction may have begun before this commit, so that its first places in the log lie before it.
    Commit {
        overlapping: bool,
    },
    /// The stamping clock moves by so many ticks.
    Tick(i8),
}

fn statements(table: &SourceTable) -> BoxedStrategy<Statement> {
    let key = 0..table.keys;
    let values = vec(0..6u8, table.columns.len());
    let rarely = |allowed: bool, weight: u32| if allowed { weight } else { 0 };
    let tick = prop_oneof![3 => Just(0i8), 3 => 1..4i8, u32::from(table.clock_steps_back) => -3..0i8];
    prop_oneof![
        12 => (key.clone(), values.clone(), any::<u8>()).prop_map(|(key, values, mask)| Statement::Write { key, values, mask }),
        4 => key.clone().prop_map(|key| Statement::Delete { key }),
        rarely(table.key_changes, 6) => (key.clone(), key.clone(), values, any::<u8>())
            .prop_map(|(from, to, values, mask)| Statement::Move { from, to, values, mask }),
        2 => key.prop_map(|key| Statement::Touch { key }),
        rarely(table.truncates, 1) => Just(Statement::Truncate),
        rarely(table.rereads, 1) => Just(Statement::Reread),
        4 => any::<bool>().prop_map(|overlapping| Statement::Commit { overlapping }),
        6 => tick.prop_map(Statement::Tick),
    ]
    .boxed()
}

/// 2026-02-01T00:00:00Z in µs.
const EPOCH_US: i128 = 1_769_904_000_000_000;

struct Source {
    table: SourceTable,
    rows: BTreeMap<Vec<Value>, SourceRow>,
    changes: Vec<Change>,
    /// The log's end.
    lsn: u64,
    /// Where the last commit stands, after the first.
    committed: u64,
    transaction: u64,
    /// What the stamping clock shows, in ticks of a second.
    clock: i128,
    /// Ticks of the true clock.
    now: i128,
    /// The last position each partition has seen.
    last: BTreeMap<i32, String>,
}

impl Source {
    fn new(table: SourceTable) -> Self {
        Self {
            table,
            rows: BTreeMap::new(),
            changes: Vec::new(),
            lsn: 1_000,
            committed: 0,
            transaction: 500,
            clock: 0,
            now: 0,
            last: BTreeMap::new(),
        }
    }

    fn snapshot(&mut self, rows: &[(u8, Vec<u8>)]) {
        for (key, values) in rows {
            let key = self.key(*key);
            let row = self.new_row(&key, values);
            self.rows.insert(key, row);
        }
        for (key, row) in self.rows.clone() {
            self.emit(ChangeKind::Read, &key, |change| {
                change.after = Some(row);
                change.snapshot = Snapshot::Initial;
                change.position = position_text(change.lsn, 0);
                change.transaction = None;
            });
        }
        self.lsn += 8;
        self.committed = self.lsn;
    }

    fn execute(&mut self, statement: Statement) {
        self.now += 1;
        self.clock += i128::from(self.table.clock_counts);
        match statement {
            Statement::Write { key, values, mask } => self.write(key, &values, mask),
            Statement::Delete { key } => {
                let key = self.key(key);
                if let Some(old) = self.rows.remove(&key) {
                    self.advance();
                    self.emit(ChangeKind::Delete, &key, |change| change.before = Some(old));
                }
            }
            Statement::Move { from, to, values, mask } => self.change_key(from, to, &values, mask),
            Statement::Touch { key } => {
                let key = self.key(key);
                if let Some(row) = self.rows.get(&key).cloned() {
                    self.update(&key, row.clone(), row);
                }
            }
            Statement::Truncate => {
                self.rows.clear();
                self.advance();
                self.emit(ChangeKind::Truncate, &[], |_| {});
            }
            Statement::Reread => self.read_again(),
            Statement::Commit { overlapping } => self.commit(overlapping),
            Statement::Tick(ticks) => self.clock = (self.clock + i128::from(ticks)).max(0),
        }
    }

    fn write(&mut self, key: u8, values: &[u8], mask: u8) {
        let key = self.key(key);
        let fresh = self.new_row(&key, values);
        match self.rows.get(&key).cloned() {
            Some(old) => {
                let new = self.masked(&old, fresh, mask);
                self.update(&key, old, new);
            }
            None => {
                self.advance();
                self.rows.insert(key.clone(), fresh.clone());
                self.emit(ChangeKind::Create, &key, |change| change.after = Some(fresh));
            }
        }
    }

    fn update(&mut self, key: &[Value], old: SourceRow, new: SourceRow) {
        self.advance();
        self.rows.insert(key.to_vec(), new.clone());
        let unavailable = self.unsent(&old, &new);
        self.emit(ChangeKind::Update, key, |change| {
            change.before = Some(old);
            change.after = Some(new);
            change.unavailable = unavailable;
        });
    }

    /// Both halves at one position.
    fn change_key(&mut self, from: u8, to: u8, values: &[u8], mask: u8) {
        let (from, to) = (self.key(from), self.key(to));
        if from == to || self.rows.contains_key(&to) {
            return;
        }
        let Some(old) = self.rows.remove(&from) else { return };
        let mut new = self.masked(&old, self.new_row(&to, values), mask);
        new.extend(self.table.key_names().into_iter().zip(to.clone()));
        let unavailable = self.unsent(&old, &new);
        self.rows.insert(to.clone(), new.clone());
        self.advance();
        self.emit(ChangeKind::Delete, &from, |change| {
            change.before = Some(old);
            change.moved_to = Some(to.clone());
        });
        self.emit(ChangeKind::Create, &to, |change| {
            change.after = Some(new);
            change.unavailable = unavailable;
            change.moved_from = Some(from.clone());
        });
    }

    /// An incremental snapshot: the rows as they are, without a position of their own. They take the last one of their
    /// partition; where there is none yet, the row waits for the next time.
    fn read_again(&mut self) {
        self.commit(false);
        for (key, row) in self.rows.clone() {
            let Some(position) = self.last.get(&self.partition(&key)).cloned() else { continue };
            self.emit(ChangeKind::Read, &key, |change| {
                change.after = Some(row);
                change.snapshot = Snapshot::Incremental;
                change.transaction = None;
                change.position = position;
            });
        }
    }

    fn commit(&mut self, overlapping: bool) {
        self.committed = self.committed.max(self.lsn) + 8;
        self.lsn = if overlapping { self.committed - 21 } else { self.committed };
        self.transaction += 1;
    }

    fn advance(&mut self) {
        self.lsn += 8;
    }

    fn emit(&mut self, kind: ChangeKind, key: &[Value], fill: impl FnOnce(&mut Change)) {
        let partition = self.partition(key);
        let mut change = Change {
            kind,
            key: key.to_vec(),
            before: None,
            after: None,
            unavailable: BTreeSet::new(),
            moved_from: None,
            moved_to: None,
            committed: self.committed,
            lsn: self.lsn,
            position: position_text(self.committed.max(self.lsn), self.lsn),
            transaction: Some(self.transaction),
            snapshot: Snapshot::No,
            partition,
            offset: self.changes.iter().filter(|change| change.partition == partition).count() as i64,
            at_us: (EPOCH_US + self.now * 1_000_000) as i64,
        };
        fill(&mut change);
        self.last.insert(partition, change.position.clone());
        self.changes.push(change);
    }

    fn partition(&self, key: &[Value]) -> i32 {
        let sum: i128 = key
            .iter()
            .map(|value| match value {
                Value::Int(whole) => *whole,
                Value::Text(text) => text.len() as i128,
                _ => 0,
            })
            .sum();
        (sum.rem_euclid(i128::from(self.table.partitions.max(1)))) as i32
    }

    fn key(&self, n: u8) -> Vec<Value> {
        let n = n % self.table.keys.max(1);
        self.table.of_kind(ColumnKind::Key).enumerate().map(|(at, column)| key_value(&column.data_type, n, at)).collect()
    }

    fn new_row(&self, key: &[Value], values: &[u8]) -> SourceRow {
        let mut keys = key.iter();
        let value = |(spec, n): (&super::source::SourceColumnSpec, &u8)| {
            let value = match spec.kind {
                ColumnKind::Key => keys.next().cloned().unwrap_or_default(),
                ColumnKind::Stamp => Value::Int(EPOCH_US + self.clock * 1_000_000),
                ColumnKind::Plain | ColumnKind::OutOfLine if *n == 0 && spec.column.nullable => Value::Null,
                ColumnKind::Plain => plain_value(&spec.column.data_type, *n),
                ColumnKind::OutOfLine => Value::Text(format!("LONG-{n}")),
            };
            (spec.column.name.clone(), value)
        };
        self.table.columns.iter().zip(values).map(value).collect()
    }

    /// The old row with the masked columns, and the stamp, of the new one.
    fn masked(&self, old: &SourceRow, new: SourceRow, mask: u8) -> SourceRow {
        let taken = |at: usize, kind: ColumnKind| kind == ColumnKind::Stamp || mask & (1 << (at % 8)) != 0;
        let columns = self.table.columns.iter().enumerate().filter(|(_, spec)| spec.kind != ColumnKind::Key);
        let changed = columns.filter(|(at, spec)| taken(*at, spec.kind)).map(|(_, spec)| spec.column.name.clone());
        let mut row = old.clone();
        row.extend(changed.map(|name| {
            let value = new[&name].clone();
            (name, value)
        }));
        row
    }

    /// Out-of-line columns that did not change are not sent, unless before-images are full.
    fn unsent(&self, old: &SourceRow, new: &SourceRow) -> BTreeSet<String> {
        let full = self.table.identity == ReplicaIdentity::Full;
        let unsent = |name: &&String| !full && old[*name] == new[*name] && !new[*name].is_null();
        self.table.of_kind(ColumnKind::OutOfLine).map(|column| &column.name).filter(unsent).cloned().collect()
    }
}

fn position_text(commit: u64, lsn: u64) -> String {
    format!("000000/{commit:020}/{lsn:020}")
}

fn key_value(data_type: &DataType, n: u8, at: usize) -> Value {
    match data_type {
        // Parts of a composite key share values, so that keys differ in one part only.
        DataType::String => Value::text(if n.is_multiple_of(2) { "eu" } else { "us" }),
        _ if at > 0 => Value::Int(i128::from(n / 2) + 1),
        _ => Value::Int(i128::from(n) + 1),
    }
}

fn plain_value(data_type: &DataType, n: u8) -> Value {
    match data_type {
        DataType::Boolean => Value::Bool(n.is_multiple_of(2)),
        DataType::String => Value::Text(format!("v{n}")),
        DataType::Float | DataType::Double => Value::Float(f64::from(n) / 2.0),
        DataType::Decimal { .. } => Value::Int(i128::from(n) * 125 - 250),
        DataType::Timestamp | DataType::TimestampNtz => Value::Int(EPOCH_US + i128::from(n)),
        DataType::Byte | DataType::Short | DataType::Integer | DataType::Long | DataType::Date => Value::Int(i128::from(n)),
        other => panic!("source columns of type {other} are not generated"),
    }
}
