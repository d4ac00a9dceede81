//! What the oracle is told.

use std::collections::{BTreeMap, BTreeSet};

use crate::value::Value;

/// One change event, as a silver dataset sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// What it does.
    pub kind: Kind,
    /// Values of the key columns, in the model's order; empty for a truncate.
    pub key: Vec<Value>,
    /// The declared sequence; of a feed without one, the position as text. `None` on a delete or truncate makes it a cut.
    pub sequence: Option<Value>,
    /// The source position, order-preserving text; `None` where the feed has none.
    pub position: Option<String>,
    /// The row after the event, by column; a column that is not there is null.
    pub row: BTreeMap<String, Value>,
    /// Columns the source did not send because they did not change.
    pub unavailable: BTreeSet<String>,
    /// The key the row had before, on the create half of a key change.
    pub moved_from: Option<Vec<Value>>,
}

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The key's row is this.
    Upsert,
    /// The key has no row.
    Delete,
    /// No key has a row.
    Truncate,
}

impl Event {
    /// An upsert of a row with a declared sequence and nothing else.
    pub fn upsert(key: Vec<Value>, sequence: Value, row: BTreeMap<String, Value>) -> Self {
        Self { kind: Kind::Upsert, key, sequence: Some(sequence), position: None, row, unavailable: BTreeSet::new(), moved_from: None }
    }

    /// A delete with a declared sequence.
    pub fn delete(key: Vec<Value>, sequence: Value) -> Self {
        Self { kind: Kind::Delete, row: BTreeMap::new(), ..Self::upsert(key, sequence, BTreeMap::new()) }
    }

    /// Whether it has no place in the order and cuts by position.
    pub fn is_cut(&self) -> bool {
        self.kind != Kind::Upsert && self.sequence.is_none()
    }
}
