//! The fold of one key's events.

use std::collections::BTreeMap;

use super::event::{Event, Kind};
use super::model::Model;
use crate::value::Value;

/// The leaves somebody wrote, by path; what is not there is null.
pub(super) type Leaves = BTreeMap<Vec<String>, Value>;

/// What the key is after one event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// Where the event stands; two steps of one sequence show only the later.
    pub(super) sequence: Value,
    /// The row's leaves; none after a delete.
    pub(super) state: Option<Leaves>,
}

/// What an event wrote, in the order's terms: a leaf each, none below null below values.
type Content = Vec<Option<Value>>;

/// Everything known, looked at from one model.
pub(super) struct Fold<'a> {
    model: &'a Model,
    events: &'a [Event],
}

impl<'a> Fold<'a> {
    pub(super) fn new(model: &'a Model, events: &'a [Event]) -> Self {
        Self { model, events }
    }

    /// The steps of a key, each segment between two cuts after the one before it. Nothing of a segment stays at or behind the
    /// first sequence of a later one.
    pub(super) fn steps(&self, key: &[Value]) -> Vec<Step> {
        self.steps_before(key, None)
    }

    fn steps_before(&self, key: &[Value], end: Option<&str>) -> Vec<Step> {
        let earlier = |event: &&Event| end.is_none_or(|end| event.position.as_deref() < Some(end));
        let mine: Vec<&Event> =
            self.events.iter().filter(|event| event.key == key || event.kind == Kind::Truncate).filter(earlier).collect();
        let mut cuts: Vec<&str> = mine.iter().filter(|event| event.is_cut()).filter_map(|event| event.position.as_deref()).collect();
        cuts.sort_unstable();
        cuts.dedup();

        let mut steps: Vec<Step> = Vec::new();
        for segment in 0..=cuts.len() {
            let from = segment.checked_sub(1).map(|at| cuts[at]);
            let to = cuts.get(segment).copied();
            let inside = |event: &&&Event| {
                let position = event.position.as_deref();
                !event.is_cut() && from.is_none_or(|from| position >= Some(from)) && to.is_none_or(|to| position < Some(to))
            };
            let found = self.segment(&mine.iter().filter(inside).copied().collect::<Vec<_>>());
            if let Some(first) = found.first() {
                steps.retain(|step| step.sequence < first.sequence);
            }
            steps.extend(found);
            if let (Some(_), Some(last)) = (to, steps.last()) {
                steps.push(Step { sequence: last.sequence.clone(), state: None });
            }
        }
        steps
    }

    fn segment(&self, events: &[&Event]) -> Vec<Step> {
        let mut ordered: Vec<_> = events.iter().map(|event| (self.order(event), *event)).collect();
        ordered.sort_by(|a, b| a.0.cmp(&b.0));
        let mut leaves = None;
        let step = |(order, event): (Order<'_>, &Event)| {
            leaves = match event.kind {
                Kind::Delete | Kind::Truncate => None,
                Kind::Upsert => {
                    let mut state: Leaves = leaves.take().unwrap_or_default();
                    state.extend(self.model.written(event));
                    state.extend(self.handed_over(event));
                    Some(state)
                }
            };
            Step { sequence: order.0.clone(), state: leaves.clone() }
        };
        ordered.into_iter().map(step).collect()
    }

    fn order<'e>(&self, event: &'e Event) -> Order<'e> {
        let Some(sequence) = &event.sequence else { panic!("an upsert without a sequence: {event:?}") };
        let removes = event.kind != Kind::Upsert;
        let content = if removes { Content::new() } else { self.content(event) };
        (sequence, event.position.as_deref(), removes, content)
    }

    fn content(&self, event: &Event) -> Content {
        let written = self.model.written(event);
        self.leaf_paths().iter().map(|path| written.get(path).cloned()).collect()
    }

    /// Every path any event wrote, column by column.
    fn leaf_paths(&self) -> Vec<Vec<String>> {
        let mut paths: Vec<Vec<String>> = self.events.iter().flat_map(|event| self.model.written(event).into_keys()).collect();
        paths.sort_by_key(|path| (self.model.columns.iter().position(|column| *column == path[0]), path.clone()));
        paths.dedup();
        paths
    }

    /// What the source did not send with a new key: what the old key had just before.
    fn handed_over(&self, event: &Event) -> Leaves {
        let (Some(from), Some(position)) = (&event.moved_from, &event.position) else { return Leaves::new() };
        let before = self.steps_before(from, Some(position)).pop().and_then(|step| step.state).unwrap_or_default();
        before.into_iter().filter(|(path, _)| event.unavailable.contains(&path[0])).collect()
    }
}

type Order<'e> = (&'e Value, Option<&'e str>, bool, Content);
