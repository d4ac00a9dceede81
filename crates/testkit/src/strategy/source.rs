//! What a source table is like.

use tributary_specs::{Column, DataType, ReplicaIdentity};

/// A table of a PostgreSQL source, and what may happen to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTable {
    /// `shop` in the topic `shop.public.orders`.
    pub prefix: String,
    /// The table's name; its schema is `public`.
    pub name: String,
    /// Columns in order, keys among them.
    pub columns: Vec<SourceColumnSpec>,
    /// What before-images hold.
    pub identity: ReplicaIdentity,
    /// Partitions of its topic; a key's events are all in one.
    pub partitions: i32,
    /// How many different keys are used.
    pub keys: u8,
    /// Whether rows change their key.
    pub key_changes: bool,
    /// Whether the table is truncated now and then.
    pub truncates: bool,
    /// Whether an incremental snapshot reads rows again between live events.
    pub rereads: bool,
    /// Whether the clock that stamps rows sometimes goes back.
    pub clock_steps_back: bool,
    /// Whether that clock goes on with every change, so that no two images of a row have one stamp.
    pub clock_counts: bool,
}

/// A column of a source table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumnSpec {
    /// Name, type and nullability.
    pub column: Column,
    /// How it behaves.
    pub kind: ColumnKind,
}

/// How a source column behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Part of the key.
    Key,
    /// Set by statements.
    Plain,
    /// Text kept out of line: not sent when it does not change, unless before-images are full.
    OutOfLine,
    /// Set to the source's clock by every insert and update; the column to declare as sequence.
    Stamp,
}

impl SourceTable {
    /// Orders with out-of-line notes under the default replica identity: deletes carry nothing but the key.
    pub fn orders() -> Self {
        Self {
            prefix: "shop".to_owned(),
            name: "orders".to_owned(),
            columns: vec![
                SourceColumnSpec::new(Column::new("order_id", DataType::Long).not_null(), ColumnKind::Key),
                SourceColumnSpec::new(Column::new("status", DataType::String), ColumnKind::Plain),
                SourceColumnSpec::new(Column::new("amount", DataType::Decimal { precision: 12, scale: 2 }), ColumnKind::Plain),
                SourceColumnSpec::new(Column::new("note", DataType::String), ColumnKind::OutOfLine),
                SourceColumnSpec::new(Column::new("updated_at", DataType::Timestamp).not_null(), ColumnKind::Stamp),
            ],
            identity: ReplicaIdentity::Default,
            partitions: 3,
            keys: 6,
            key_changes: true,
            truncates: true,
            rereads: true,
            clock_steps_back: false,
            clock_counts: false,
        }
    }

    /// Customers under full replica identity, with a composite key: before-images can be trusted.
    pub fn customers() -> Self {
        Self {
            name: "customers".to_owned(),
            columns: vec![
                SourceColumnSpec::new(Column::new("region", DataType::String).not_null(), ColumnKind::Key),
                SourceColumnSpec::new(Column::new("id", DataType::Integer).not_null(), ColumnKind::Key),
                SourceColumnSpec::new(Column::new("name", DataType::String), ColumnKind::Plain),
                SourceColumnSpec::new(Column::new("vip", DataType::Boolean), ColumnKind::Plain),
                SourceColumnSpec::new(Column::new("updated_at", DataType::Timestamp).not_null(), ColumnKind::Stamp),
            ],
            identity: ReplicaIdentity::Full,
            ..Self::orders()
        }
    }

    /// Names of the key columns.
    pub fn key_names(&self) -> Vec<String> {
        self.of_kind(ColumnKind::Key).map(|column| column.name.clone()).collect()
    }

    /// Names of all columns.
    pub fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|spec| spec.column.name.clone()).collect()
    }

    /// Columns of one kind.
    pub fn of_kind(&self, kind: ColumnKind) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |spec| spec.kind == kind).map(|spec| &spec.column)
    }

    /// `shop.public.orders`.
    pub fn topic(&self) -> String {
        format!("{}.public.{}", self.prefix, self.name)
    }
}

impl SourceColumnSpec {
    /// A column that behaves so.
    pub fn new(column: Column, kind: ColumnKind) -> Self {
        Self { column, kind }
    }
}
