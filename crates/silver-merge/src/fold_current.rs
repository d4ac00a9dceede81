//! The one row of a key: what its events come to, and which of them must be kept because more may arrive.

use crate::events::Kind;
use crate::known::{Id, Known};
use crate::payload::{Payload, is_upsert, survive, undominated};

/// What the events of a key come to.
#[derive(Debug, Default)]
pub(crate) struct CurrentFold {
    /// The row, or none.
    pub row: Option<CurrentRow>,
    /// Events that may still decide something, greatest first.
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

/// Folds the events of a key, ascending in the form's order; `cut` is its latest cut, or every key's.
pub(crate) fn fold_current(known: &Known<'_>, ascending: &[Id], cut: Option<Id>, soft_delete: bool) -> CurrentFold {
    let cut_at = cut.and_then(|cut| known.position(cut));
    let descending = || ascending.iter().rev().copied();
    let alive = || survive(known, descending(), cut_at);
    let mut fold = CurrentFold { row: None, kept: undominated(known, alive(), known.shape.cuts()) };
    let winner = alive().next();
    match winner {
        Some(id) if is_upsert(known, id) => {
            fold.row = Some(CurrentRow { payload: Payload::of(known, alive()), sequence_of: id, position_of: id, removed: false });
        }
        _ if soft_delete => fold.row = removed_row(known, ascending, winner.or(cut)),
        _ => {}
    }
    if soft_delete {
        keep_what_a_removal_would_show(known, ascending, &mut fold.kept);
    }
    fold
}

/// A removed row shows the greatest upsert, whatever removed it.
fn removed_row(known: &Known<'_>, ascending: &[Id], by: Option<Id>) -> Option<CurrentRow> {
    let upserts = || ascending.iter().rev().copied().filter(|id| is_upsert(known, *id));
    let shown = upserts().next()?;
    let by = by.unwrap_or(shown);
    let sequence_of = if matches!(known.kind(by), Kind::Delete | Kind::Truncate) { by } else { shown };
    Some(CurrentRow { payload: Payload::of(known, upserts()), sequence_of, position_of: by, removed: true })
}

fn keep_what_a_removal_would_show(known: &Known<'_>, ascending: &[Id], kept: &mut Vec<Id>) {
    let upserts = ascending.iter().rev().copied().filter(|id| is_upsert(known, *id));
    for id in undominated(known, upserts, false) {
        if !kept.contains(&id) {
            kept.push(id);
        }
    }
}
