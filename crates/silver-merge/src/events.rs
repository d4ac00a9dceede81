//! Change events of a slice of keys, column by column.

use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef, RecordBatch, StringArray, StructArray};
use crate::leaves::LeafSet;

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The row of the key is this, as far as it is written.
    Upsert,
    /// The key has no row: an event in the order.
    Delete,
    /// The key's events of an earlier position are gone: not an event in the order.
    Cut,
    /// A delete of every key, known or not: an event in the order.
    Truncate,
    /// A cut of every key, known or not.
    TruncateCut,
    /// Not an event: another key's create half at this position takes its unsent values from this key.
    Link,
}

impl Kind {
    /// The name under which `_state` keeps it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upsert => "upsert",
            Self::Delete => "delete",
            Self::Cut => "cut",
            Self::Truncate => "truncate",
            Self::TruncateCut => "truncate_cut",
            Self::Link => "link",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Upsert, Self::Delete, Self::Cut, Self::Truncate, Self::TruncateCut, Self::Link].into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it concerns every key.
    pub const fn is_global(self) -> bool {
        matches!(self, Self::Truncate | Self::TruncateCut)
    }

    /// Whether it leaves the key without a row where it is the greatest.
    pub const fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Truncate)
    }
}

/// Events, one a row of `rows`.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    /// The target's business columns, in its order and types; null where an event has no payload.
    pub rows: RecordBatch,
    /// What each does.
    pub kinds: Vec<Kind>,
    /// The declared sequence; none where the order is the position.
    pub sequence: Option<ArrayRef>,
    /// The source position; none where the feed has none.
    pub position: Option<StringArray>,
    /// Leaves each event did not write; empty when all wrote all.
    pub unwritten: Vec<LeafSet>,
    /// Of those, the leaves filled from the key the row had before; empty when none are.
    pub carried: Vec<LeafSet>,
    /// The other key of a key change, key columns as fields: before for an upsert, after for anything else.
    pub other_key: Option<StructArray>,
    /// `_state` only: these events replace the visible row as an event of its key.
    pub covers_row: Vec<bool>,
    /// Visible history rows only: `__END_AT`.
    pub ends: Option<ArrayRef>,
}

impl Events {
    /// No events, in the types of `like`.
    pub fn none_like(like: &Self) -> Self {
        Self {
            rows: like.rows.slice(0, 0),
            kinds: Vec::new(),
            sequence: like.sequence.as_ref().map(|array| array.slice(0, 0)),
            position: like.position.as_ref().map(|array| array.slice(0, 0)),
            unwritten: Vec::new(),
            carried: Vec::new(),
            other_key: like.other_key.as_ref().map(|array| array.slice(0, 0)),
            covers_row: Vec::new(),
            ends: None,
        }
    }

    /// Upserts that wrote every leaf: the events visible rows stand for.
    pub fn upserts(rows: RecordBatch, sequence: Option<ArrayRef>, position: Option<StringArray>) -> Self {
        let kinds = vec![Kind::Upsert; rows.num_rows()];
        Self { rows, kinds, sequence, position, unwritten: Vec::new(), carried: Vec::new(), other_key: None, covers_row: Vec::new(), ends: None }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The leaves an event did not write.
    pub fn unwritten(&self, row: usize) -> Option<&LeafSet> {
        self.unwritten.get(row).filter(|set| !set.is_empty())
    }

    /// The leaves an event did not write that were filled from the key before.
    pub fn carried(&self, row: usize) -> Option<&LeafSet> {
        self.carried.get(row).filter(|set| !set.is_empty())
    }

    /// Whether the event is half of a key change.
    pub fn has_other_key(&self, row: usize) -> bool {
        self.other_key.as_ref().is_some_and(|other| other.is_valid(row))
    }

    /// The key columns of the other key.
    pub fn other_key_columns(&self) -> Option<Vec<ArrayRef>> {
        self.other_key.as_ref().map(|other| other.columns().iter().map(Arc::clone).collect())
    }
}
