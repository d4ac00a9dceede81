//! What the fold has to know about a table; nothing of it changes while a batch is planned.

use crate::arrow::datatypes::SchemaRef;
use crate::leaves::Leaves;

/// A target table as the fold sees it.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Business columns in table order.
    pub schema: SchemaRef,
    /// Indexes of the key columns.
    pub keys: Vec<usize>,
    /// The parts an event may write or leave.
    pub leaves: Leaves,
    /// What becomes of the events of a key.
    pub form: Form,
    /// Whether events carry a declared sequence; else the position is the order.
    pub sequence: bool,
    /// Whether events carry a source position.
    pub positions: bool,
}

impl Shape {
    /// Whether a delete may come that has no place in the order, so that losers of a later position must be kept.
    pub fn cuts(&self) -> bool {
        self.sequence && self.positions
    }

    /// The key columns.
    pub fn key_names(&self) -> impl Iterator<Item = &String> {
        self.keys.iter().map(|key| self.schema.field(*key).name())
    }
}

/// What becomes of the events of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// At most one row: the greatest event's.
    Current {
        /// Which event is the greatest.
        order: Order,
        /// A removed row stays, marked in a column behind the business columns.
        soft_delete: bool,
        /// A row that is there is never replaced.
        keep_existing: bool,
    },
    /// A row for each run of events that are equal in the tracked leaves.
    History {
        /// Leaves whose change opens a row.
        tracked: Vec<usize>,
    },
}

/// An order of the events of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Order {
    /// Columns compared before anything else.
    pub lead: Vec<usize>,
    /// Whether the first in the total order is the greatest.
    pub earliest: bool,
}
