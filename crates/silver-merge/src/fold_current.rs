//! The one row of a key: what its events come to, and which of them must be kept because more may arrive.

use crate::events::Kind;
use crate::known::{Id, Known};
use crate::payload::{By, Payload, is_upsert, survive, undominated};
use crate::shape::Order;

/// What the events of a key come to.
#[derive(Debug, Default)]
pub(crate) struct CurrentFold {
    /// The row, or none.
    pub row: Option<CurrentRow>,
    /// Events and cuts that may still decide something, events greatest first.
    pub kept: Vec<Id>,
}

/// The row of a key.
#[derive(Debug)]
pub(crate) struct CurrentRow {
    /// Its values.
    pub payload: Payload,
    /// The event whose sequence is the row's.
    pub sequence_of: Id,
    /// The event, or cut, whose position is the row's.
    pub position_of: Id,
    /// It was removed, and stays as a mark.
    pub removed: bool,
}

/// Folds the events of a key, ascending in the form's order; `cuts` are its own and every key's, ascending.
pub(crate) fn fold_current(known: &Known<'_>, ascending: &[Id], cuts: &[Id], order: &Order, soft_delete: bool) -> CurrentFold {
    let cut = cuts.last().copied();
    let cut_at = cut.and_then(|cut| known.position(cut));
    // The first fact is a row by itself: what comes after it adds nothing.
    let count = if order.earliest && order.lead.is_empty() { 1 } else { usize::MAX };
    let alive = || survive(known, ascending.iter().rev().copied(), cut_at).take(count);
    let winner = alive().next();
    let row = match winner {
        Some(id) if is_upsert(known, id) => {
            Some(CurrentRow { payload: Payload::of(known, alive()), sequence_of: id, position_of: id, removed: false })
        }
        _ if soft_delete => removed_row(known, ascending, cuts, winner.or(cut)),
        _ => None,
    };
    if soft_delete {
        return CurrentFold { row, kept: kept_for_marks(known, ascending, cuts) };
    }
    let kept = undominated(known, alive(), known.shape.cuts(), By::AnyEvent).into_iter().chain(cut).collect();
    CurrentFold { row, kept }
}

/// The events that can be the last a removed row was, ascending; and from which cut on.
///
/// Of the parts between two cuts it is the last that has an upsert: the one with the upsert of the greatest position.
fn last_alive<'a>(known: &'a Known<'_>, ascending: &'a [Id], cuts: &'a [Id]) -> (Option<&'a str>, Option<&'a str>) {
    let upserts = ascending.iter().filter(|id| is_upsert(known, **id));
    let Some(latest) = upserts.map(|id| known.position(*id)).max() else { return (None, None) };
    let after = cuts.partition_point(|cut| known.position(*cut) <= latest);
    let at = |cut: Option<&Id>| cut.and_then(|cut| known.position(*cut));
    (at(after.checked_sub(1).and_then(|before| cuts.get(before))), at(cuts.get(after)))
}

/// A removed row shows what it was last, whatever removed it.
fn removed_row(known: &Known<'_>, ascending: &[Id], cuts: &[Id], by: Option<Id>) -> Option<CurrentRow> {
    let (from, to) = last_alive(known, ascending, cuts);
    let part = survive(known, ascending.iter().rev().copied(), from).filter(|id| to.is_none_or(|to| known.position(*id) < Some(to)));
    let shown: Vec<Id> = part.skip_while(|id| !is_upsert(known, *id)).collect();
    let greatest = *shown.first()?;
    let by = by.unwrap_or(greatest);
    let sequence_of = if matches!(known.kind(by), Kind::Delete | Kind::Truncate) { by } else { greatest };
    Some(CurrentRow { payload: Payload::of(known, shown.into_iter()), sequence_of, position_of: by, removed: true })
}

/// Where removed rows stay, a delete makes no event needless: what it removed is shown.
fn kept_for_marks(known: &Known<'_>, ascending: &[Id], cuts: &[Id]) -> Vec<Id> {
    let (from, _) = last_alive(known, ascending, cuts);
    let mut kept = undominated(known, survive(known, ascending.iter().rev().copied(), from), known.shape.cuts(), By::Upserts);
    kept.extend(cuts.iter().filter(|cut| known.position(**cut) >= from));
    kept
}
