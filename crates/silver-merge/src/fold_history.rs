//! The history of a key: a row for each run of events that are equal in the tracked leaves.
//!
//! In the total order an upsert writes its leaves and leaves the others as they are; a delete leaves nothing. Of the events of
//! one point the last counts; equal neighbours in the tracked leaves are one row, with the last one's values. A point is a
//! value of the declared sequence, else a position.
//!
//! Cuts part the events by position. What a cut takes ends at its greatest point, and never follows what the cut leaves.

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
    /// The events of the run, one a point.
    pub events: Vec<Id>,
}

/// What the key is from a point on.
#[derive(Debug, Clone)]
struct Step {
    /// The event, or the last one a cut takes.
    id: Id,
    /// Its row; none after a delete or a cut.
    payload: Option<Payload>,
}

/// Folds the events of a key, ascending in the total order; `cuts` are its own and every key's, in any order.
pub(crate) fn fold_history(known: &Known<'_>, ascending: &[Id], cuts: &[Id], tracked: &[usize]) -> Vec<HistoryRow> {
    let mut rows: Vec<HistoryRow> = Vec::new();
    let steps = steps(known, ascending, cuts);
    for step in steps.chunk_by(|a, b| compare_points(known, a.id, b.id).is_eq()).filter_map(<[Step]>::last) {
        let point = known.place(step.id);
        let open = rows.last_mut().filter(|run| run.end.is_none());
        match (&step.payload, open) {
            (Some(payload), Some(run)) if run.payload.equals(known, payload, tracked.iter().copied()) => {
                run.payload = payload.clone();
                run.events.push(step.id);
            }
            (payload, open) => {
                if let Some(run) = open {
                    run.end = Some(point);
                }
                rows.extend(payload.clone().map(|payload| HistoryRow { payload, start: point, end: None, events: vec![step.id] }));
            }
        }
    }
    rows
}

fn compare_points(known: &Known<'_>, a: Id, b: Id) -> Ordering {
    known.compare_point(known.place(a), known.place(b))
}

/// The steps of the key, each part between two cuts after the one before it.
fn steps(known: &Known<'_>, ascending: &[Id], cuts: &[Id]) -> Vec<Step> {
    let mut cuts: Vec<Option<&str>> = cuts.iter().map(|cut| known.position(*cut)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut steps = Vec::new();
    for (at, part) in parts(known, ascending, &cuts).into_iter().enumerate() {
        if let Some(first) = part.first().copied() {
            steps.retain(|step: &Step| compare_points(known, step.id, first).is_lt());
        }
        fold_part(known, &part, &mut steps);
        if at < cuts.len()
            && let Some(Step { id, .. }) = steps.last().cloned()
        {
            steps.push(Step { id, payload: None });
        }
    }
    steps
}

/// The events between each two cuts, in order.
fn parts(known: &Known<'_>, ascending: &[Id], cuts: &[Option<&str>]) -> Vec<Vec<Id>> {
    let mut parts = vec![Vec::new(); cuts.len() + 1];
    for id in ascending {
        parts[cuts.partition_point(|cut| *cut <= known.position(*id))].push(*id);
    }
    parts
}

fn fold_part(known: &Known<'_>, ascending: &[Id], steps: &mut Vec<Step>) {
    let mut values: Option<Payload> = None;
    for &id in ascending {
        values = (known.kind(id) == Kind::Upsert).then(|| inherit(known, id, values.as_ref()));
        steps.push(Step { id, payload: values.clone() });
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
