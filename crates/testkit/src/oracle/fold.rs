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
    of_key: BTreeMap<&'a [Value], Vec<Known<'a>>>,
    of_every_key: Vec<Known<'a>>,
}

/// An event, what it wrote, and where it stands.
struct Known<'a> {
    event: &'a Event,
    written: Leaves,
    content: Content,
}

impl<'a> Fold<'a> {
    pub(super) fn new(model: &Model, events: &'a [Event]) -> Self {
        let written: Vec<Leaves> = events.iter().map(|event| model.written(event)).collect();
        let place = |path: &[String]| model.columns.iter().position(|column| *column == path[0]);
        let mut paths: Vec<Vec<String>> = written.iter().flat_map(|leaves| leaves.keys().cloned()).collect();
        paths.sort_by_key(|path| (place(path), path.clone()));
        paths.dedup();
        let known = |(event, written): (&'a Event, Leaves)| {
            let content =
                if event.kind == Kind::Upsert { paths.iter().map(|path| written.get(path).cloned()).collect() } else { Content::new() };
            Known { event, written, content }
        };
        let mut fold = Self { of_key: BTreeMap::new(), of_every_key: Vec::new() };
        for known in events.iter().zip(written).map(known) {
            match known.event.kind {
                Kind::Truncate => fold.of_every_key.push(known),
                Kind::Upsert | Kind::Delete => fold.of_key.entry(&known.event.key).or_default().push(known),
            }
        }
        fold
    }

    /// The steps of a key, each segment between two cuts after the one before it. Nothing of a segment stays at or behind the
    /// first sequence of a later one.
    pub(super) fn steps(&self, key: &[Value]) -> Vec<Step> {
        self.steps_before(key, None)
    }

    fn steps_before(&self, key: &[Value], end: Option<&str>) -> Vec<Step> {
        let earlier = |known: &&Known<'_>| end.is_none_or(|end| known.position() < Some(end));
        let mine: Vec<&Known<'_>> = self.of_key.get(key).into_iter().flatten().chain(&self.of_every_key).filter(earlier).collect();
        let mut cuts: Vec<&str> = mine.iter().filter(|known| known.event.is_cut()).filter_map(|known| known.position()).collect();
        cuts.sort_unstable();
        cuts.dedup();

        let mut steps: Vec<Step> = Vec::new();
        for segment in 0..=cuts.len() {
            let from = segment.checked_sub(1).map(|at| cuts[at]);
            let to = cuts.get(segment).copied();
            let inside = |known: &&Known<'_>| {
                let position = known.position();
                !known.event.is_cut() && from.is_none_or(|from| position >= Some(from)) && to.is_none_or(|to| position < Some(to))
            };
            let found = self.segment(mine.iter().copied().filter(inside).collect());
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

    fn segment(&self, mut events: Vec<&Known<'_>>) -> Vec<Step> {
        events.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut leaves: Option<Leaves> = None;
        let step = |known: &Known<'_>| {
            leaves = match known.event.kind {
                Kind::Delete | Kind::Truncate => None,
                Kind::Upsert => {
                    let mut state = leaves.take().unwrap_or_default();
                    state.extend(known.written.clone());
                    state.extend(self.handed_over(known.event));
                    Some(state)
                }
            };
            Step { sequence: known.sequence().clone(), state: leaves.clone() }
        };
        events.into_iter().map(step).collect()
    }

    /// What the source did not send with a new key: what the old key had just before.
    fn handed_over(&self, event: &Event) -> Leaves {
        let (Some(from), Some(position)) = (&event.moved_from, &event.position) else { return Leaves::new() };
        let before = self.steps_before(from, Some(position)).pop().and_then(|step| step.state).unwrap_or_default();
        before.into_iter().filter(|(path, _)| event.unavailable.contains(&path[0])).collect()
    }
}

impl Known<'_> {
    fn position(&self) -> Option<&str> {
        self.event.position.as_deref()
    }

    fn sequence(&self) -> &Value {
        self.event.sequence.as_ref().unwrap_or_else(|| panic!("an upsert without a sequence: {:?}", self.event))
    }

    /// The total order.
    fn order(&self) -> (&Value, Option<&str>, bool, &Content) {
        (self.sequence(), self.position(), self.event.kind != Kind::Upsert, &self.content)
    }
}
