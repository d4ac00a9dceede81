//! One change of a source table, and what a silver dataset sees of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use tributary_specs::{Column, DataType, ReplicaIdentity};

use super::history::SourceRow;
use super::source::SourceTable;
use crate::frame::Frame;
use crate::oracle::{Event, Kind};
use crate::value::Value;

/// One change as the source made it; [`bronze_frame`] and [`Change::event`] show of it what a connector sends.
#[derive(Clone, PartialEq)]
pub struct Change {
    /// What it is.
    pub kind: ChangeKind,
    /// The key's values; empty for a truncate.
    pub key: Vec<Value>,
    /// The true old row of an update or delete, whether the connector sends it or not.
    pub before: Option<SourceRow>,
    /// The true new row, unsent columns included.
    pub after: Option<SourceRow>,
    /// Columns of `after` that are not sent.
    pub unavailable: BTreeSet<String>,
    /// On the create half of a key change.
    pub moved_from: Option<Vec<Value>>,
    /// On the delete half of a key change.
    pub moved_to: Option<Vec<Value>>,
    /// Where the last commit before it stands in the log; 0 before the first.
    pub committed: u64,
    /// Where it stands in the log.
    pub lsn: u64,
    /// The position as bronze keeps it: epoch, last commit or the change's own place where that is later, place in the log. A
    /// row of the snapshot comes after every transaction it contains and before every one it does not; a row read again has the
    /// last position of its partition.
    pub position: String,
    /// Its transaction; none for snapshot rows.
    pub transaction: Option<u64>,
    /// Whether a snapshot read it.
    pub snapshot: Snapshot,
    /// The partition of its key.
    pub partition: i32,
    /// Its place in the partition, from 0.
    pub offset: i64,
    /// When the source made it, µs since the epoch.
    pub at_us: i64,
}

/// What a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// A row that was there.
    Read,
    /// A new row.
    Create,
    /// A row's new values.
    Update,
    /// A row is gone.
    Delete,
    /// All rows are gone.
    Truncate,
}

impl ChangeKind {
    /// The word of `_op`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Truncate => "truncate",
        }
    }

    /// Debezium's letter.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Create => "c",
            Self::Update => "u",
            Self::Delete => "d",
            Self::Truncate => "t",
        }
    }
}

/// Whether a snapshot read a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snapshot {
    /// No: a change from the log.
    No,
    /// The snapshot at the start.
    Initial,
    /// A snapshot beside the running log; such a row has no position of its own.
    Incremental,
}

impl Snapshot {
    /// Debezium's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::No => "false",
            Self::Initial => "true",
            Self::Incremental => "incremental",
        }
    }
}

impl Change {
    /// What the oracle is told. `sequence` names the declared sequence column; without one the position is the sequence.
    pub fn event(&self, table: &SourceTable, sequence: Option<&str>) -> Event {
        let declared = |row: Option<&SourceRow>| match sequence {
            Some(column) => row.map(|row| row[column].clone()),
            None => Some(Value::Text(self.position.clone())),
        };
        let (kind, sequence) = match self.kind {
            ChangeKind::Read | ChangeKind::Create | ChangeKind::Update => (Kind::Upsert, declared(self.after.as_ref())),
            ChangeKind::Delete => (Kind::Delete, declared(self.sent_before(table))),
            ChangeKind::Truncate => (Kind::Truncate, declared(None)),
        };
        let row = self.after.clone().filter(|_| kind == Kind::Upsert).unwrap_or_default();
        Event {
            kind,
            key: self.key.clone(),
            sequence,
            position: Some(self.position.clone()),
            row: row.into_iter().filter(|(name, _)| !self.unavailable.contains(name)).collect(),
            unavailable: self.unavailable.clone(),
            moved_from: self.moved_from.clone(),
        }
    }

    /// The before-image, where the connector sends one that can be trusted.
    fn sent_before(&self, table: &SourceTable) -> Option<&SourceRow> {
        self.before.as_ref().filter(|_| table.identity == ReplicaIdentity::Full)
    }

    /// The business columns as bronze has them.
    fn business(&self, table: &SourceTable) -> BTreeMap<String, Value> {
        let sent = |row: &SourceRow| {
            row.iter().filter(|(name, _)| !self.unavailable.contains(*name)).map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let key = || table.key_names().into_iter().zip(self.key.iter().cloned()).collect();
        match self.kind {
            ChangeKind::Read | ChangeKind::Create | ChangeKind::Update => self.after.as_ref().map(sent).unwrap_or_default(),
            ChangeKind::Delete => self.sent_before(table).cloned().unwrap_or_else(key),
            ChangeKind::Truncate => BTreeMap::new(),
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
        write!(f, "{} ({}) p{} at {}/{}", self.kind.word(), list(&self.key), self.partition, self.committed, self.lsn)?;
        if let Some(after) = &self.after {
            let cells = after
                .iter()
                .map(|(name, value)| if self.unavailable.contains(name) { format!("{name}=unsent") } else { format!("{name}={value}") });
            write!(f, " {}", cells.collect::<Vec<_>>().join(" "))?;
        }
        if let Some(from) = &self.moved_from {
            write!(f, " moved from ({})", list(from))?;
        }
        if let Some(to) = &self.moved_to {
            write!(f, " moved to ({})", list(to))?;
        }
        if self.snapshot != Snapshot::No {
            write!(f, " snapshot {}", self.snapshot.word())?;
        }
        Ok(())
    }
}

/// The columns of the bronze change table of a source table, in order.
pub fn bronze_columns(table: &SourceTable) -> Vec<Column> {
    let nullable = |column: &Column| Column::new(&column.name, column.data_type.clone());
    let business: Vec<Column> = table.columns.iter().map(|spec| nullable(&spec.column)).collect();
    let keys = table.of_kind(super::source::ColumnKind::Key).map(nullable).collect::<Vec<_>>();
    let text = |name: &str| Column::new(name, DataType::String);
    let source = ["connector", "database", "schema", "table", "snapshot"].map(text).into_iter();
    let source = source.chain([Column::new("ts", DataType::Timestamp), text("tx_id"), text("server")]).collect();
    let mut columns = business.clone();
    columns.extend([
        text("_op").not_null(),
        text("_position"),
        Column::new("_before", DataType::Struct(business)),
        Column::new("_unavailable", DataType::Array(Box::new(DataType::String))),
        Column::new("_key_changed_from", DataType::Struct(keys.clone())),
        Column::new("_key_changed_to", DataType::Struct(keys)),
        Column::new("_source", DataType::Struct(source)),
        text("_topic"),
        Column::new("_partition", DataType::Integer),
        Column::new("_offset", DataType::Long),
        text("_file"),
        Column::new("_line", DataType::Long),
        Column::new("_event_time", DataType::Timestamp),
        Column::new("_ingested_at", DataType::Timestamp),
        text("_rescued_data"),
    ]);
    columns
}

/// The bronze rows of changes, as decoding what the connector sent gives them.
pub fn bronze_frame<'a>(table: &SourceTable, changes: impl IntoIterator<Item = &'a Change>, ingested_at_us: i64) -> Frame {
    let schema: SchemaRef = Arc::new(Schema::new(bronze_columns(table).iter().map(Column::to_arrow).collect::<Vec<_>>()));
    let rows: Vec<Vec<Value>> = changes.into_iter().map(|change| bronze_row(table, change, ingested_at_us)).collect();
    Frame::from_rows(schema, &rows)
}

fn bronze_row(table: &SourceTable, change: &Change, ingested_at_us: i64) -> Vec<Value> {
    let business = change.business(table);
    let structure = |row: &SourceRow| Value::Struct(row.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
    let key_structure = |key: &Vec<Value>| Value::Struct(table.key_names().into_iter().zip(key.iter().cloned()).collect());
    let optional = |value: Option<Value>| value.unwrap_or_default();
    let unavailable = Value::List(change.unavailable.iter().map(Value::text).collect());
    let source = Value::Struct(vec![
        ("connector".to_owned(), "postgresql".into()),
        ("database".to_owned(), table.prefix.as_str().into()),
        ("schema".to_owned(), "public".into()),
        ("table".to_owned(), table.name.as_str().into()),
        ("snapshot".to_owned(), change.snapshot.word().into()),
        ("ts".to_owned(), change.at_us.into()),
        ("tx_id".to_owned(), change.transaction.map(|id| id.to_string()).as_deref().into()),
        ("server".to_owned(), Value::Null),
    ]);
    let mut row: Vec<Value> = table.column_names().iter().map(|name| business.get(name).cloned().unwrap_or_default()).collect();
    row.extend([
        change.kind.word().into(),
        Value::Text(change.position.clone()),
        optional(change.sent_before(table).map(structure)),
        if change.unavailable.is_empty() { Value::Null } else { unavailable },
        optional(change.moved_from.as_ref().map(key_structure)),
        optional(change.moved_to.as_ref().map(key_structure)),
        source,
        Value::Text(table.topic()),
        Value::Int(change.partition.into()),
        change.offset.into(),
        Value::Null,
        Value::Null,
        change.at_us.into(),
        ingested_at_us.into(),
        Value::Null,
    ]);
    row
}
