//! The values a row shows, and where each of them stands.

use std::cmp::Ordering;

use crate::events::Kind;
use crate::known::{Id, Known, Place};
use crate::leaves::LeafSet;

/// Where the values of a row stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload {
    /// All in one event, which wrote every leaf itself.
    Whole(Id),
    /// A leaf each; none = no event wrote it.
    Parts(Box<[Option<Place>]>),
}

impl Payload {
    /// Where the value of a leaf stands; none = null.
    pub fn place(&self, known: &Known<'_>, leaf: usize) -> Option<Place> {
        match self {
            Self::Whole(id) => Some(known.place(*id)),
            Self::Parts(parts) => parts[leaf],
        }
    }

    /// The leaves nobody wrote.
    pub fn unknown(&self) -> LeafSet {
        match self {
            Self::Whole(_) => LeafSet::default(),
            Self::Parts(parts) => parts.iter().enumerate().filter(|(_, place)| place.is_none()).map(|(leaf, _)| leaf).collect(),
        }
    }

    /// Whether two rows show the same in these leaves; null equals null.
    pub fn equals(&self, known: &Known<'_>, other: &Self, mut leaves: impl Iterator<Item = usize>) -> bool {
        leaves.all(|leaf| same(known, leaf, self.place(known, leaf), other.place(known, leaf)))
    }

    /// The values the greatest of `descending` shows: each leaf as the greatest event that wrote it has it. What a delete
    /// leaves is null, and nothing from before it shows.
    pub fn of(known: &Known<'_>, descending: impl Iterator<Item = Id>) -> Self {
        let mut descending = descending.take_while(|id| !known.kind(*id).removes()).peekable();
        if let Some(id) = descending.next_if(|id| known.is_whole(*id)) {
            return Self::Whole(id);
        }
        let count = known.shape.leaves.len();
        let mut parts: Vec<Option<Place>> = vec![None; count];
        let mut missing = LeafSet::all(count);
        for id in descending {
            for leaf in missing.clone().iter().filter(|leaf| known.wrote(id, *leaf)) {
                parts[leaf] = Some(known.value_place(id, leaf));
                missing.remove(leaf);
            }
            if missing.is_empty() {
                break;
            }
        }
        Self::Parts(parts.into_boxed_slice())
    }
}

fn same(known: &Known<'_>, leaf: usize, a: Option<Place>, b: Option<Place>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => known.compare_leaf(leaf, a, b) == Ordering::Equal,
        (Some(place), None) | (None, Some(place)) => is_null(known, leaf, place),
        (None, None) => true,
    }
}

fn is_null(known: &Known<'_>, leaf: usize, place: Place) -> bool {
    use crate::arrow::array::Array;
    known.leaf_arrays(leaf)[usize::from(place.batch)].is_null(place.row as usize)
}

/// What makes an event needless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A greater event.
    AnyEvent,
    /// A greater upsert.
    Upserts,
}

/// The events of `descending` that can still decide something when more arrive.
///
/// An event is dropped when, for its row's existence and for every leaf it wrote or may have filled, a greater event wrote the
/// same itself (what was filled in may be taken back); and, where cuts may come, one whose position is not earlier, so that no
/// cut takes it and leaves this one.
pub(crate) fn undominated(known: &Known<'_>, descending: impl Iterator<Item = Id>, cuts: bool, by: By) -> Vec<Id> {
    let mut descending = descending.peekable();
    let writes_all = |id: &Id| if known.kind(*id).removes() { by == By::AnyEvent } else { known.is_whole(*id) };
    if let Some(greatest) = descending.next_if(|id| !cuts && writes_all(id)) {
        return vec![greatest];
    }
    let count = known.shape.leaves.len();
    let mut kept = Vec::new();
    // The greatest position among the greater events that wrote it: of the row's existence, and of each leaf once events differ.
    let mut existence: Option<Option<&str>> = None;
    let mut written: Vec<Option<Option<&str>>> = vec![None; count];
    for id in descending {
        let position = known.position(id);
        let open = |by: &Option<Option<&str>>| by.is_none_or(|by| cuts && by < position);
        let removes = known.kind(id).removes();
        let wrote = |leaf: usize| removes || known.itself_wrote(id, leaf);
        if open(&existence) || (0..count).any(|leaf| (removes || known.may_write(id, leaf)) && open(&written[leaf])) {
            kept.push(id);
        }
        if removes && by == By::Upserts {
            continue;
        }
        existence = existence.max(Some(position));
        written.iter_mut().enumerate().filter(|(leaf, _)| wrote(*leaf)).for_each(|(_, by)| *by = (*by).max(Some(position)));
        if !cuts && written.iter().all(Option::is_some) {
            break;
        }
    }
    kept
}

/// The events of `descending` that a cut at `position` leaves.
pub(crate) fn survive<'a>(
    known: &'a Known<'_>,
    descending: impl Iterator<Item = Id> + 'a,
    cut: Option<&'a str>,
) -> impl Iterator<Item = Id> + 'a {
    descending.filter(move |id| cut.is_none_or(|cut| known.position(*id) >= Some(cut)))
}

/// Whether the event is an upsert.
pub(crate) fn is_upsert(known: &Known<'_>, id: Id) -> bool {
    known.kind(id) == Kind::Upsert
}
