//! Everything known of the keys of a slice: visible rows, retained events and the batch, under one numbering and one order.
//!
//! The total order (S9): declared sequence, then source position, then delete over upsert, then the payload, column by column
//! with null lowest. It is the same for every arrival order, because nothing of the arrival is in it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::arrow::array::{Array, ArrayRef};
use crate::arrow::array::{DynComparator, make_comparator};
use crate::arrow::compute::SortOptions;
use crate::arrow::error::ArrowError;
use crate::arrow::row::{Row, RowConverter, Rows, SortField};
use crate::events::{Events, Kind};
use crate::leaves::{LeafSet, leaf_array};
use crate::shape::{Order, Shape};

/// An event of a slice, numbered through: visible rows, then retained events, then the batch.
pub(crate) type Id = u32;

/// The batch numbers.
pub(crate) const VISIBLE: usize = 0;
/// Retained events.
pub(crate) const STATE: usize = 1;
/// Events of this batch.
pub(crate) const INCOMING: usize = 2;

/// Where a value stands: a row of one of the three batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub batch: u8,
    pub row: u32,
}

/// See the module.
pub(crate) struct Known<'a> {
    pub shape: &'a Shape,
    batches: [&'a Events; 3],
    bases: [u32; 4],
    keys: [Rows; 3],
    other_keys: [Option<Rows>; 3],
    points: Option<[Rows; 3]>,
    ends: Option<Rows>,
    leaves: Vec<[ArrayRef; 3]>,
    compare: Vec<Vec<DynComparator>>,
    carry: HashMap<(Id, usize), Option<Place>>,
}

impl<'a> Known<'a> {
    /// Numbers and encodes the events of a slice.
    ///
    /// # Errors
    /// When the three do not have the shape's columns, or a key or sequence has a type without an order.
    pub fn new(shape: &'a Shape, visible: &'a Events, state: &'a Events, incoming: &'a Events) -> Result<Self, ArrowError> {
        let batches = [visible, state, incoming];
        let mut bases = [0; 4];
        for (at, events) in batches.iter().enumerate() {
            bases[at + 1] = bases[at] + u32::try_from(events.len()).map_err(|_| ArrowError::OffsetOverflowError(events.len()))?;
        }
        let key_fields = shape.keys.iter().map(|key| SortField::new(shape.schema.field(*key).data_type().clone())).collect();
        let key_converter = RowConverter::new(key_fields)?;
        let keys = each(&batches, |events| {
            let columns: Vec<ArrayRef> = shape.keys.iter().map(|key| Arc::clone(events.rows.column(*key))).collect();
            key_converter.convert_columns(&columns)
        })?;
        let other_keys =
            each(&batches, |events| events.other_key_columns().map(|columns| key_converter.convert_columns(&columns)).transpose())?;
        let (points, ends) = points(shape, &batches)?;
        let mut leaves = Vec::with_capacity(shape.leaves.len());
        let mut compare = Vec::with_capacity(shape.leaves.len());
        for leaf in shape.leaves.iter() {
            let arrays = each(&batches, |events| leaf_array(events.rows.column(leaf.column), &leaf.path))?;
            let pairs = arrays.iter().flat_map(|left| arrays.iter().map(move |right| (left, right)));
            compare.push(pairs.map(|(left, right)| make_comparator(left, right, SortOptions::default())).collect::<Result<_, _>>()?);
            leaves.push(arrays);
        }
        Ok(Self { shape, batches, bases, keys, other_keys, points, ends, leaves, compare, carry: HashMap::new() })
    }

    /// Every event.
    pub fn ids(&self) -> std::ops::Range<Id> {
        0..self.bases[3]
    }

    /// The events of one batch.
    pub fn ids_of(&self, batch: usize) -> std::ops::Range<Id> {
        self.bases[batch]..self.bases[batch + 1]
    }

    /// Where an event stands.
    pub fn place(&self, id: Id) -> Place {
        let batch = if id < self.bases[1] {
            VISIBLE
        } else if id < self.bases[2] {
            STATE
        } else {
            INCOMING
        };
        Place { batch: batch as u8, row: id - self.bases[batch] }
    }

    /// Which batch an event is of, and its row there.
    pub fn split(&self, id: Id) -> (usize, usize) {
        let place = self.place(id);
        (usize::from(place.batch), place.row as usize)
    }

    /// The events of a batch number.
    pub fn batch(&self, batch: usize) -> &'a Events {
        self.batches[batch]
    }

    /// What an event does.
    pub fn kind(&self, id: Id) -> Kind {
        let (batch, row) = self.split(id);
        self.batches[batch].kinds[row]
    }

    /// Its source position.
    pub fn position(&self, id: Id) -> Option<&'a str> {
        let (batch, row) = self.split(id);
        self.batches[batch].position.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row))
    }

    /// Its key, encoded.
    pub fn key(&self, id: Id) -> Row<'_> {
        let (batch, row) = self.split(id);
        self.keys[batch].row(row)
    }

    /// The other key of a key change, encoded as [`Self::key`].
    pub fn other_key(&self, id: Id) -> Option<Row<'_>> {
        let (batch, row) = self.split(id);
        if !self.batches[batch].has_other_key(row) {
            return None;
        }
        self.other_keys[batch].as_ref().map(|rows| rows.row(row))
    }

    /// Whether an event wrote a leaf, or had it filled from the key before.
    pub fn wrote(&self, id: Id, leaf: usize) -> bool {
        let (batch, row) = self.split(id);
        let events = self.batches[batch];
        match events.unwritten(row) {
            Some(unwritten) if unwritten.contains(leaf) => self.is_carried(id, leaf),
            _ => true,
        }
    }

    /// Whether an event itself wrote a leaf, whatever is or will be filled from the key before.
    pub fn itself_wrote(&self, id: Id, leaf: usize) -> bool {
        self.unwritten(id).is_none_or(|unwritten| !unwritten.contains(leaf))
    }

    /// Whether an event wrote a leaf, or may have it filled from the key before.
    pub fn may_write(&self, id: Id, leaf: usize) -> bool {
        self.other_key(id).is_some() || self.itself_wrote(id, leaf)
    }

    /// Whether the event itself wrote every leaf.
    pub fn is_whole(&self, id: Id) -> bool {
        let (batch, row) = self.split(id);
        self.batches[batch].unwritten(row).is_none()
    }

    /// Leaves the event itself did not write.
    pub fn unwritten(&self, id: Id) -> Option<&'a LeafSet> {
        let (batch, row) = self.split(id);
        self.batches[batch].unwritten(row)
    }

    /// Where the value of a leaf that the event [wrote](Self::wrote) stands.
    pub fn value_place(&self, id: Id, leaf: usize) -> Place {
        self.carry.get(&(id, leaf)).copied().flatten().unwrap_or_else(|| self.place(id))
    }

    /// Fills a leaf an event did not write from the key before; none = that key had no value.
    pub fn set_carry(&mut self, id: Id, leaf: usize, place: Option<Place>) {
        self.carry.insert((id, leaf), place);
    }

    /// Whether the leaf was filled, in this plan or an earlier one.
    pub fn is_carried(&self, id: Id, leaf: usize) -> bool {
        let (batch, row) = self.split(id);
        let stored = || self.batches[batch].carried(row).is_some_and(|carried| carried.contains(leaf));
        self.carry.get(&(id, leaf)).map_or_else(stored, Option::is_some)
    }

    /// Whether this plan filled the leaf with something else than what is stored.
    pub fn has_new_carry(&self, id: Id, leaf: usize) -> bool {
        let (batch, row) = self.split(id);
        let stored = self.batches[batch].carried(row).is_some_and(|carried| carried.contains(leaf));
        match self.carry.get(&(id, leaf)) {
            Some(Some(place)) => !stored || self.compare_leaf(leaf, *place, self.place(id)).is_ne(),
            Some(None) => stored,
            None => false,
        }
    }

    /// The values of a leaf, by batch.
    pub fn leaf_arrays(&self, leaf: usize) -> &[ArrayRef; 3] {
        &self.leaves[leaf]
    }

    /// Compares a leaf's values, null lowest.
    pub fn compare_leaf(&self, leaf: usize, a: Place, b: Place) -> Ordering {
        self.compare[leaf][usize::from(a.batch) * 3 + usize::from(b.batch)](a.row as usize, b.row as usize)
    }

    /// Compares the order values `__START_AT` and `__END_AT` hold: the declared sequence, else the position.
    pub fn compare_point(&self, a: Place, b: Place) -> Ordering {
        match &self.points {
            Some(rows) => rows[usize::from(a.batch)].row(a.row as usize).cmp(&rows[usize::from(b.batch)].row(b.row as usize)),
            None => self.position_at(a).cmp(&self.position_at(b)),
        }
    }

    /// Whether a visible history row ends at this point; none = it is open.
    pub fn ends_at(&self, row: usize, end: Option<Place>) -> bool {
        let open = self.batches[VISIBLE].ends.as_ref().is_none_or(|ends| ends.is_null(row));
        match (end, &self.points, &self.ends) {
            (None, _, _) => open,
            (Some(end), Some(points), Some(ends)) => !open && ends.row(row) == points[usize::from(end.batch)].row(end.row as usize),
            (Some(_), _, _) => false,
        }
    }

    /// The values of points: the declared sequence, else the position, by batch.
    pub fn point_arrays(&self) -> Option<[ArrayRef; 3]> {
        let of = |events: &Events| match &events.sequence {
            Some(sequence) if self.shape.sequence => Some(Arc::clone(sequence)),
            _ => events.position.clone().map(|position| Arc::new(position) as ArrayRef),
        };
        Some([of(self.batches[VISIBLE])?, of(self.batches[STATE])?, of(self.batches[INCOMING])?])
    }

    fn position_at(&self, place: Place) -> Option<&'a str> {
        let row = place.row as usize;
        self.batches[usize::from(place.batch)].position.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row))
    }

    /// Compares the declared sequences of two events; equal where there is none.
    pub fn compare_sequence(&self, a: Id, b: Id) -> Ordering {
        if self.shape.sequence { self.compare_point(self.place(a), self.place(b)) } else { Ordering::Equal }
    }

    /// The total order, S9.
    pub fn compare(&self, a: Id, b: Id) -> Ordering {
        self.compare_sequence(a, b)
            .then_with(|| self.position(a).cmp(&self.position(b)))
            .then_with(|| self.kind(a).removes().cmp(&self.kind(b).removes()))
            .then_with(|| self.compare_content(a, b))
    }

    /// The order in which the last event is the greatest.
    pub fn compare_in(&self, order: &Order, a: Id, b: Id) -> Ordering {
        let lead = order.lead.iter().flat_map(|column| self.shape.leaves.of_column(*column));
        let lead = lead.fold(Ordering::Equal, |found, leaf| found.then_with(|| self.compare_leaf(leaf, self.place(a), self.place(b))));
        lead.then_with(|| if order.earliest { self.compare(b, a) } else { self.compare(a, b) })
    }

    /// Compares what two upserts wrote; equal for anything else.
    fn compare_content(&self, a: Id, b: Id) -> Ordering {
        if self.kind(a) != Kind::Upsert || self.kind(b) != Kind::Upsert {
            return Ordering::Equal;
        }
        for leaf in 0..self.shape.leaves.len() {
            let (wrote_left, wrote_right) = (self.itself_wrote(a, leaf), self.itself_wrote(b, leaf));
            let mut found = wrote_left.cmp(&wrote_right);
            if wrote_left && wrote_right {
                found = self.compare_leaf(leaf, self.place(a), self.place(b));
            }
            if found.is_ne() {
                return found;
            }
        }
        Ordering::Equal
    }
}

fn each<T>(batches: &[&Events; 3], make: impl Fn(&Events) -> Result<T, ArrowError>) -> Result<[T; 3], ArrowError> {
    Ok([make(batches[VISIBLE])?, make(batches[STATE])?, make(batches[INCOMING])?])
}

/// The declared sequences and the ends of visible history rows, encoded so that bytes compare as values do.
fn points(shape: &Shape, batches: &[&Events; 3]) -> Result<(Option<[Rows; 3]>, Option<Rows>), ArrowError> {
    let arrays = if shape.sequence {
        each(batches, |events| events.sequence.clone().ok_or_else(|| missing("sequence")))?
    } else if batches[VISIBLE].ends.is_some() {
        each(batches, |events| Ok(Arc::new(events.position.clone().ok_or_else(|| missing("position"))?) as ArrayRef))?
    } else {
        return Ok((None, None));
    };
    let converter = RowConverter::new(vec![SortField::new(arrays[INCOMING].data_type().clone())])?;
    let rows = |array: &ArrayRef| converter.convert_columns(&[Arc::clone(array)]);
    let ends = batches[VISIBLE].ends.as_ref().map(rows).transpose()?;
    Ok((Some([rows(&arrays[VISIBLE])?, rows(&arrays[STATE])?, rows(&arrays[INCOMING])?]), ends))
}

fn missing(what: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("events without their {what}"))
}
