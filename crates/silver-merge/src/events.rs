//! Change events of a slice of keys, column by column.

use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StructArray, UInt32Array, new_null_array};
use crate::arrow::compute::{concat, concat_batches, take, take_record_batch};
use crate::arrow::datatypes::DataType;
use crate::arrow::error::ArrowError;
use crate::leaves::LeafSet;
use crate::shape::Shape;

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
    /// Each kind, in the order of their declaration.
    pub const ALL: [Self; 6] = [Self::Upsert, Self::Delete, Self::Cut, Self::Truncate, Self::TruncateCut, Self::Link];

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
        Self::ALL.into_iter().find(|kind| kind.name() == name)
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
    /// What change events say their rows were before, in the target's columns, the sequence behind them (see [`crate::before_images`]).
    pub before: Option<StructArray>,
    /// `_state` only: these events replace the visible row as an event of its key.
    pub covers_row: Vec<bool>,
    /// Visible history rows only: `__END_AT`.
    pub ends: Option<ArrayRef>,
}

impl Events {
    /// Upserts that wrote every leaf: the events visible rows stand for.
    pub fn upserts(rows: RecordBatch, sequence: Option<ArrayRef>, position: Option<StringArray>) -> Self {
        let kinds = vec![Kind::Upsert; rows.num_rows()];
        Self {
            rows,
            kinds,
            sequence,
            position,
            unwritten: Vec::new(),
            carried: Vec::new(),
            other_key: None,
            before: None,
            covers_row: Vec::new(),
            ends: None,
        }
    }

    /// Joins events of one shape, in the order given.
    ///
    /// # Errors
    /// When their columns differ.
    pub fn concat(shape: &Shape, parts: Vec<Self>) -> Result<Self, ArrowError> {
        let rows = concat_batches(&shape.schema, parts.iter().map(|part| &part.rows))?;
        let join = |arrays: Vec<Option<ArrayRef>>, data_type: Option<DataType>| -> Result<Option<ArrayRef>, ArrowError> {
            let Some(data_type) = arrays.iter().flatten().map(|array| array.data_type().clone()).next().or(data_type) else {
                return Ok(None);
            };
            let filled: Vec<ArrayRef> = arrays
                .into_iter()
                .zip(&parts)
                .map(|(array, part)| array.unwrap_or_else(|| new_null_array(&data_type, part.len())))
                .collect();
            if filled.is_empty() {
                return Ok(Some(new_null_array(&data_type, 0)));
            }
            concat(&filled.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map(Some)
        };
        let sets = |of: fn(&Self) -> &Vec<LeafSet>| {
            if parts.iter().all(|part| of(part).is_empty()) {
                return Vec::new();
            }
            parts.iter().flat_map(|part| (0..part.len()).map(move |row| of(part).get(row).cloned().unwrap_or_default())).collect()
        };
        let positions = parts.iter().map(|part| part.position.clone().map(|array| Arc::new(array) as ArrayRef)).collect();
        let other_keys = parts.iter().map(|part| part.other_key.clone().map(|array| Arc::new(array) as ArrayRef)).collect();
        let before = parts.iter().map(|part| part.before.clone().map(|array| Arc::new(array) as ArrayRef)).collect();
        let covers = parts.iter().flat_map(|part| (0..part.len()).map(|row| part.covers_row.get(row).copied().unwrap_or(false)));
        Ok(Self {
            rows,
            kinds: parts.iter().flat_map(|part| part.kinds.iter().copied()).collect(),
            sequence: join(parts.iter().map(|part| part.sequence.clone()).collect(), None)?,
            position: join(positions, shape.positions.then_some(DataType::Utf8))?.map(|array| array.as_string::<i32>().clone()),
            unwritten: sets(|part| &part.unwritten),
            carried: sets(|part| &part.carried),
            other_key: join(other_keys, None)?.map(|array| array.as_struct().clone()),
            before: join(before, None)?.map(|array| array.as_struct().clone()),
            covers_row: covers.collect(),
            ends: None,
        })
    }

    /// The events at these rows.
    ///
    /// # Errors
    /// When a row is out of bounds.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self, ArrowError> {
        let array = |array: &Option<ArrayRef>| array.as_ref().map(|array| take(array, rows, None)).transpose();
        let sets = |sets: &Vec<LeafSet>| match sets.is_empty() {
            true => Vec::new(),
            false => rows.values().iter().map(|row| sets[*row as usize].clone()).collect(),
        };
        Ok(Self {
            rows: take_record_batch(&self.rows, rows)?,
            kinds: rows.values().iter().map(|row| self.kinds[*row as usize]).collect(),
            sequence: array(&self.sequence)?,
            position: self
                .position
                .as_ref()
                .map(|array| take(array, rows, None))
                .transpose()?
                .map(|array| array.as_string::<i32>().clone()),
            unwritten: sets(&self.unwritten),
            carried: sets(&self.carried),
            other_key: self.other_key.as_ref().map(|array| take(array, rows, None)).transpose()?.map(|array| array.as_struct().clone()),
            before: self.before.as_ref().map(|array| take(array, rows, None)).transpose()?.map(|array| array.as_struct().clone()),
            covers_row: match self.covers_row.is_empty() {
                true => Vec::new(),
                false => rows.values().iter().map(|row| self.covers_row[*row as usize]).collect(),
            },
            ends: array(&self.ends)?,
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let array = |array: &Option<ArrayRef>| array.as_ref().map_or(0, |array| array.get_array_memory_size());
        let sets = (self.unwritten.len() + self.carried.len()) * 32;
        self.rows.get_array_memory_size()
            + array(&self.sequence)
            + self.position.as_ref().map_or(0, Array::get_array_memory_size)
            + self.before.as_ref().map_or(0, Array::get_array_memory_size)
            + sets
            + self.len()
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
