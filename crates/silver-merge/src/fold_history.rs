//! The history of a key: a row for each run of events that are equal in the tracked leaves.
//!
//! The fold is over all events of the key in the total order. An upsert equal to the open run in the tracked leaves extends it
//! and lends it its values; another closes it at its own point and opens the next; a delete closes it. A run whose two ends
//! are one point shows no row. A point is a value of the declared sequence, else a position.

use std::cmp::Ordering;

use crate::events::Kind;
use crate::known::{Id, Known, Place};
use crate::payload::Payload;

/// A row of a key's history.
#[derive(Debug)]
pub(crate) struct HistoryRow {
    /// Its values: those of the last event of the run.
    pub payload: Payload,
    /// Where `__START_AT` stands.
    pub start: Place,
    /// Where `__END_AT` stands; none while the run is open.
    pub end: Option<Place>,
    /// The events of the run.
    pub events: Vec<Id>,
}

/// One step of the fold.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    /// The event, or the cut.
    id: Id,
    /// Where its point stands.
    point: Place,
    position: Option<&'a str>,
}

/// Folds the events of a key, ascending in the total order; `cuts` are its own and every key's, in any order.
pub(crate) fn fold_history(known: &Known<'_>, ascending: &[Id], cuts: &[Id], tracked: &[usize]) -> Vec<HistoryRow> {
    let mut rows = Vec::new();
    let mut open: Option<HistoryRow> = None;
    let mut values: Option<Payload> = None;
    for step in steps(known, ascending, cuts) {
        if known.kind(step.id) != Kind::Upsert {
            close(known, open.take(), step.point, &mut rows);
            values = None;
            continue;
        }
        let payload = inherit(known, step.id, values.as_ref());
        match &mut open {
            Some(run) if run.payload.equals(known, &payload, tracked.iter().copied()) => {
                run.payload = payload.clone();
                run.events.push(step.id);
            }
            run => {
                close(known, run.take(), step.point, &mut rows);
                *run = Some(HistoryRow { payload: payload.clone(), start: step.point, end: None, events: vec![step.id] });
            }
        }
        values = Some(payload);
    }
    rows.extend(open);
    rows
}

fn close(known: &Known<'_>, run: Option<HistoryRow>, end: Place, rows: &mut Vec<HistoryRow>) {
    if let Some(mut run) = run
        && known.compare_point(run.start, end) == Ordering::Less
    {
        run.end = Some(end);
        rows.push(run);
    }
}

/// An event's values, with what it did not write from the version before.
fn inherit(known: &Known<'_>, id: Id, before: Option<&Payload>) -> Payload {
    if known.is_whole(id) {
        return Payload::Whole(id);
    }
    let part = |leaf| match known.wrote(id, leaf) {
        true => Some(known.value_place(id, leaf)),
        false => before.and_then(|before| before.place(known, leaf)),
    };
    Payload::Parts((0..known.shape.leaves.len()).map(part).collect())
}

/// The events in order, with each cut as a delete behind the greatest event it removes.
fn steps<'a>(known: &'a Known<'_>, ascending: &[Id], cuts: &[Id]) -> Vec<Step<'a>> {
    let mut steps: Vec<_> = ascending.iter().map(|id| Step { id: *id, point: known.place(*id), position: known.position(*id) }).collect();
    if cuts.is_empty() {
        return steps;
    }
    let mut cuts: Vec<Id> = cuts.to_vec();
    cuts.sort_by_key(|cut| known.position(*cut));
    cuts.dedup_by_key(|cut| known.position(*cut));
    // For each cut the greatest event between the cut before and it.
    let mut removed: Vec<Option<Id>> = vec![None; cuts.len()];
    for id in ascending {
        let at = cuts.partition_point(|cut| known.position(*cut) <= known.position(*id));
        if let Some(removed) = removed.get_mut(at) {
            *removed = Some(*id);
        }
    }
    for (cut, removed) in cuts.into_iter().zip(removed).filter_map(|(cut, removed)| Some((cut, removed?))) {
        let point = known.place(if known.shape.sequence { removed } else { cut });
        let step = Step { id: cut, point, position: known.position(cut) };
        let before = |other: &Step<'_>| known.compare_point(other.point, point).then_with(|| other.position.cmp(&step.position)).is_lt();
        let at = steps.partition_point(before);
        steps.insert(at, step);
    }
    steps
}
