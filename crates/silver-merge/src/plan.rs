//! Decides what a batch does to a table: pure, columnar, no I/O.
//!
//! What must stay true:
//! - S1: what is planned from (visible rows ∪ retained events ∪ batch) is what would be planned from all events ever seen.
//! - S2: a current table has one row a key. S3: history rows of a key neither overlap nor gap except by deletion.
//! - S4: a delete of any key, known or not, is retained while an older event could still arrive.
//! - S5, S6: a key change leaves one row, with what the source did not send taken from the old key (`hand_over`).
//! - S7: a row that stays as it is is not written again; what its newest event was is retained.
//! - S9: one total order (`known`).
//!
//! ```text
//! visible rows ─┐                        ┌▶ rows removed, rows added, changes
//! retained ─────┼▶ Known ▶ groups ▶ fold ┤
//! batch ────────┘          (a key each)  └▶ retained events removed and added
//! ```

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use crate::arrow::array::{Array, BooleanArray};
use crate::arrow::error::ArrowError;
use crate::arrow::row::Row;
use crate::assemble::{NewRows, assemble_rows, assemble_state};
use crate::events::{Events, Kind};
use crate::fold_current::{CurrentRow, fold_current};
use crate::fold_history::{HistoryRow, fold_history};
use crate::hand_over::{Group, GroupOf, KeyOf, Link, hand_over, is_needed, kept_for, key_bytes, links};
use crate::known::{INCOMING, Id, Known, STATE, VISIBLE};
use crate::payload::{By, Payload, undominated};
use crate::shape::{Form, Order, Shape};

/// What a batch meets: all of it restricted to the keys of one slice.
pub(crate) struct Inputs<'a> {
    pub shape: &'a Shape,
    /// Visible rows as events.
    pub visible: &'a Events,
    /// Where removed rows stay: which visible rows are removed ones.
    pub removed: Option<&'a BooleanArray>,
    /// For each visible row whether it is known to differ from what its key comes to, and what such a row shows is not looked
    /// at; empty = of none.
    pub differing: &'a [bool],
    /// Retained events and links.
    pub state: &'a Events,
    /// The batch, and behind it events of the source that are read again.
    pub incoming: &'a Events,
    /// How many of those are read again: they are not counted, and all that their keys ever had is among them.
    pub again: usize,
    /// Whether what concerns every key is counted and retained here; another slice does it else.
    pub first_slice: bool,
    /// Whether deletes are remembered; only a control says no.
    pub delete_memory: bool,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct MergePlan {
    /// New and changed rows, sorted by key.
    pub rows: NewRows,
    /// Rows of `rows` that no visible row makes place for.
    pub inserted: Vec<u32>,
    /// (visible row, row of `rows`) that replaces it.
    pub updated: Vec<(u32, u32)>,
    /// Visible rows without a successor.
    pub deleted: Vec<u32>,
    /// Rows of `state` that are no longer retained as they are.
    pub state_removed: Vec<u32>,
    /// What is retained instead and in addition, links included.
    pub state_added: Events,
    /// What became of the batch.
    pub counts: Counts,
    /// Keys whose values before a key change can only be told from all their events, because later ones are known already: the
    /// plan holds only if there are none.
    pub to_read_again: Vec<Box<[u8]>>,
}

/// What became of the events of a batch; the first four add up to their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Shown, or retained.
    pub applied: u64,
    /// Known already.
    pub duplicates: u64,
    /// Lost for good to a greater event.
    pub superseded: u64,
    /// Earlier than the fact that stays because it was there first.
    pub late_earlier: u64,
    /// Events that tied on the declared sequence (where there is none: on the position) with others of different content.
    pub ties: u64,
}

/// What a key comes to before links are decided.
struct Folded {
    /// Rows it shows.
    rows: Vec<Shown>,
    /// Events retained in `_state`.
    kept: Vec<Id>,
    /// Whether they replace the visible row as an event.
    covers: bool,
    /// The event that is shown by a row of its own and needs no place in `_state`.
    shown: Vec<Id>,
}

/// A row a key shows.
enum Shown {
    /// The visible row as it is.
    Unchanged(u32),
    /// A row to write, instead of a visible one or not.
    Written { row: RowToWrite, replaces: Option<u32> },
}

/// A row to write.
#[derive(Debug)]
pub(crate) enum RowToWrite {
    Current(CurrentRow),
    History(Box<HistoryRow>),
}

impl RowToWrite {
    /// Where its values stand.
    pub fn payload(&self) -> &Payload {
        match self {
            Self::Current(row) => &row.payload,
            Self::History(row) => &row.payload,
        }
    }
}

/// One row of `_state` to write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StateRow {
    Event { id: Id, covers: bool },
    Link { from: KeyOf, to: KeyOf, at: Id },
}

/// Plans a batch.
///
/// # Errors
/// When a column has a type without an order.
pub(crate) fn plan_merge(inputs: &Inputs<'_>) -> Result<MergePlan, ArrowError> {
    let mut known = Known::new(inputs.shape, inputs.visible, inputs.state, inputs.incoming)?;
    let mut fates = Fates::new(known.ids_of(INCOMING).start, inputs.incoming.len() - inputs.again);
    let (truncates, global_cuts) = globals(&known, &mut fates);
    let ids = ids_by_key(&known);
    let mut links = links(&known);
    let groups = linked_groups(&known, &links, &ids, &truncates, &mut fates);
    let of = group_of(&known, &groups);
    hand_over(&mut known, &mut links, &groups, &of, &global_cuts);
    let mut folded: Vec<Folded> = groups.iter().map(|group| fold(&known, inputs, group, &global_cuts)).collect();
    let kept_links = keep_links(&known, &links, &groups, &of, &global_cuts, &mut folded);
    let mut state = StateChange::default();
    if inputs.first_slice {
        state.globals(&known, &truncates, &global_cuts, !links.is_empty());
    }
    let to_read_again = if inputs.again == 0 { keys_to_read_again(&known, &kept_links, &groups) } else { Vec::new() };
    let mut links_of: HashMap<Option<usize>, Vec<&Link>> = HashMap::new();
    kept_links.into_iter().for_each(|(owner, link)| links_of.entry(owner).or_default().push(link));
    let mut rows = RowChange::default();
    // Keys without links are decided one after the other: nothing of them is held but what they come to.
    let mut linked = groups.iter().zip(folded).enumerate().peekable();
    for ids in ids.chunk_by(|a, b| known.key(*a) == known.key(*b)) {
        let unlinked;
        let (of_key, mut key, links) = match linked.next_if(|(_, (group, _))| group.of == ids[0]) {
            Some((at, (group, key))) => (group, key, links_of.get(&Some(at)).map_or(&[][..], Vec::as_slice)),
            None => {
                unlinked = group(&known, ids, &truncates, &mut fates);
                (&unlinked, fold(&known, inputs, &unlinked, &global_cuts), &[][..])
            }
        };
        if !inputs.delete_memory {
            key.kept.retain(|id| known.kind(*id) == Kind::Upsert);
        }
        state.key(&known, of_key, &key, links);
        fates.settle(&known, inputs, of_key, &key);
        rows.key(&known, of_key, key);
    }
    let of_unknown_keys = links_of.get(&None).into_iter().flatten().filter(|link| link.stored.is_none());
    state.added.extend(of_unknown_keys.map(|link| state_link(link)));
    if inputs.first_slice {
        truncates.iter().chain(&global_cuts).for_each(|id| fates.set(*id, Fate::Applied));
    } else {
        fates.forget_globals(&known);
    }
    Ok(MergePlan {
        rows: assemble_rows(&known, &rows.written)?,
        inserted: rows.inserted,
        updated: rows.updated,
        deleted: rows.deleted,
        state_removed: state.removed,
        state_added: assemble_state(&known, &state.added)?,
        counts: fates.counts(),
        to_read_again,
    })
}

/// Every key's truncates and cuts, each once, ascending.
fn globals(known: &Known<'_>, fates: &mut Fates) -> (Vec<Id>, Vec<Id>) {
    let mut truncates: Vec<Id> = known.ids().filter(|id| known.kind(*id) == Kind::Truncate).collect();
    truncates.sort_by(|a, b| known.compare(*a, *b).then(a.cmp(b)));
    fates.dedup(&mut truncates, |a, b| known.compare(a, b));
    let mut cuts: Vec<Id> = known.ids().filter(|id| known.kind(*id) == Kind::TruncateCut).collect();
    sort_cuts(known, &mut cuts, fates);
    (truncates, cuts)
}

fn sort_cuts(known: &Known<'_>, cuts: &mut Vec<Id>, fates: &mut Fates) {
    cuts.sort_by(|a, b| known.position(*a).cmp(&known.position(*b)).then(a.cmp(b)));
    fates.dedup(cuts, |a, b| known.position(a).cmp(&known.position(b)));
}

/// The events that concern a key, keys ascending.
fn ids_by_key(known: &Known<'_>) -> Vec<Id> {
    let of_keys = || known.ids().filter(|id| !known.kind(*id).is_global());
    // Nearly always the bytes behind those that all keys begin with decide: they are compared without looking the key up.
    let first = of_keys().next().map(|id| known.key(id));
    let shared = |key: &Row<'_>| first.as_ref().map_or(0, |first| shared_bytes(first.as_ref(), key.as_ref()));
    let skipped = of_keys().map(|id| shared(&known.key(id))).min().unwrap_or_default();
    let head = |id: Id| {
        let (key, mut head) = (known.key(id), [0; 8]);
        let rest = &key.as_ref()[skipped..];
        let length = rest.len().min(8);
        head[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(head)
    };
    let mut ids: Vec<(u64, Id)> = of_keys().map(|id| (head(id), id)).collect();
    ids.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| known.key(a.1).cmp(&known.key(b.1))).then(a.1.cmp(&b.1)));
    ids.into_iter().map(|(_, id)| id).collect()
}

fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// The groups of the keys that links leave or lead to, keys ascending.
fn linked_groups(known: &Known<'_>, links: &[Link], ids: &[Id], truncates: &[Id], fates: &mut Fates) -> Vec<Group> {
    if links.is_empty() {
        return Vec::new();
    }
    let linked: HashSet<Vec<u8>> = links.iter().flat_map(|link| [link.from, link.to]).filter_map(|key| key_bytes(known, key)).collect();
    let by_key = ids.chunk_by(|a, b| known.key(*a) == known.key(*b));
    by_key.filter(|ids| linked.contains(known.key(ids[0]).as_ref())).map(|ids| group(known, ids, truncates, fates)).collect()
}

fn group_of(known: &Known<'_>, groups: &[Group]) -> GroupOf {
    groups.iter().enumerate().map(|(at, group)| (known.key(group.of).as_ref().to_vec(), at)).collect()
}

fn group(known: &Known<'_>, ids: &[Id], truncates: &[Id], fates: &mut Fates) -> Group {
    let mut group = Group { of: ids[0], ..Group::default() };
    for &id in ids {
        let (batch, row) = known.split(id);
        match batch {
            VISIBLE => group.rows.push(id),
            STATE => {
                group.stored.push(id);
                group.covered |= known.batch(STATE).covers_row.get(row).copied().unwrap_or(false);
            }
            _ => {}
        }
        match known.kind(id) {
            Kind::Upsert | Kind::Delete => group.events.push(id),
            Kind::Cut => group.cuts.push(id),
            Kind::Truncate | Kind::TruncateCut | Kind::Link => {}
        }
    }
    let is_stored = |id: &Id| {
        let stored_here =
            |stored: &Id| known.kind(*stored) == Kind::Upsert && known.compare_point(known.place(*stored), known.place(*id)).is_eq();
        matches!(known.shape.form, Form::History { .. }) && group.stored.iter().any(stored_here)
    };
    let covered = group.covered;
    let replaced: Vec<Id> = group.rows.iter().copied().filter(|id| covered || is_stored(id)).collect();
    group.events.retain(|id| !replaced.contains(id));
    group.events.extend(truncates);
    let order = order_of(known.shape);
    group.events.sort_by(|a, b| known.compare_in(&order, *a, *b).then(a.cmp(b)));
    fates.dedup(&mut group.events, |a, b| known.compare_in(&order, a, b));
    fates.count_ties(known, &group.events);
    sort_cuts(known, &mut group.cuts, fates);
    group
}

fn order_of(shape: &Shape) -> Order {
    match &shape.form {
        Form::Current { order, .. } => order.clone(),
        Form::History { .. } => Order::default(),
    }
}

fn fold(known: &Known<'_>, inputs: &Inputs<'_>, group: &Group, global_cuts: &[Id]) -> Folded {
    match &inputs.shape.form {
        Form::Current { soft_delete, keep_existing, .. } => match group.rows.first() {
            Some(existing) if *keep_existing => {
                Folded { rows: vec![Shown::Unchanged(known.place(*existing).row)], kept: Vec::new(), covers: false, shown: vec![*existing] }
            }
            _ => current(known, inputs, group, global_cuts, *soft_delete),
        },
        Form::History { tracked } => history(known, group, global_cuts, tracked),
    }
}

fn current(known: &Known<'_>, inputs: &Inputs<'_>, group: &Group, global_cuts: &[Id], soft_delete: bool) -> Folded {
    let mut cuts: Vec<Id> = group.cuts.iter().chain(global_cuts).copied().collect();
    cuts.sort_by_key(|cut| known.position(*cut));
    let mut fold = fold_current(known, &group.events, &cuts, &order_of(known.shape), soft_delete);
    fold.kept.retain(|id| !known.kind(*id).is_global());
    let Some(row) = fold.row else { return Folded { rows: Vec::new(), kept: fold.kept, covers: false, shown: Vec::new() } };
    let all = 0..known.shape.leaves.len();
    let is_removed = |id: Id| inputs.removed.is_some_and(|removed| removed.is_valid(id as usize) && removed.value(id as usize));
    let unchanged = group
        .rows
        .iter()
        .copied()
        .filter(|id| !inputs.differing.get(*id as usize).copied().unwrap_or(false))
        .find(|id| is_removed(*id) == row.removed && row.payload.equals(known, &Payload::Whole(*id), all.clone()));
    let winner = row.sequence_of;
    let stands_for_itself = !row.removed && known.is_whole(winner) && unchanged.is_none_or(|id| id == winner);
    if stands_for_itself {
        fold.kept.retain(|id| *id != winner);
    }
    let shown = match unchanged {
        Some(id) => Shown::Unchanged(known.place(id).row),
        None => Shown::Written { row: RowToWrite::Current(row), replaces: group.rows.first().map(|id| known.place(*id).row) },
    };
    Folded {
        rows: vec![shown],
        kept: fold.kept,
        covers: !stands_for_itself,
        shown: if stands_for_itself { vec![winner] } else { Vec::new() },
    }
}

fn history(known: &Known<'_>, group: &Group, global_cuts: &[Id], tracked: &[usize]) -> Folded {
    let cuts: Vec<Id> = group.cuts.iter().chain(global_cuts).copied().collect();
    let rows = fold_history(known, &group.events, &cuts, tracked);
    let shown: Vec<Id> = rows.iter().filter_map(|row| alone(known, group, row)).collect();
    let kept = group.events.iter().filter(|id| !known.kind(**id).is_global() && !shown.contains(id)).chain(&group.cuts).copied().collect();
    let rows = rows.into_iter().map(|row| match_visible(known, group, row)).collect();
    Folded { rows, kept, covers: false, shown }
}

/// The event of a run that its visible row stands for: the only one of the run and of its point, whole, and with no position
/// that the row does not show.
fn alone(known: &Known<'_>, group: &Group, row: &HistoryRow) -> Option<Id> {
    let &[id] = row.events.as_slice() else { return None };
    let at_its_point = |other: &&Id| known.kind(**other) == Kind::Upsert && known.compare_point(known.place(**other), row.start).is_eq();
    let is_alone = group.events.iter().filter(at_its_point).count() == 1;
    (is_alone && known.is_whole(id) && !(known.shape.sequence && known.shape.positions)).then_some(id)
}

fn match_visible(known: &Known<'_>, group: &Group, row: HistoryRow) -> Shown {
    let Some(visible) = group.rows.iter().copied().find(|id| known.compare_point(known.place(*id), row.start).is_eq()) else {
        return Shown::Written { row: RowToWrite::History(Box::new(row)), replaces: None };
    };
    let at = known.place(visible).row;
    let same = known.ends_at(at as usize, row.end) && row.payload.equals(known, &Payload::Whole(visible), 0..known.shape.leaves.len());
    if same { Shown::Unchanged(at) } else { Shown::Written { row: RowToWrite::History(Box::new(row)), replaces: Some(at) } }
}

/// Decides which links stay, latest first, and adds what they need to the keys they leave; gives each with its key's group.
fn keep_links<'l>(
    known: &Known<'_>,
    links: &'l [Link],
    groups: &[Group],
    of: &GroupOf,
    global_cuts: &[Id],
    folded: &mut [Folded],
) -> Vec<(Option<usize>, &'l Link)> {
    let at = |key| key_bytes(known, key).and_then(|key| of.get(&key).copied());
    let mut kept_links = Vec::new();
    for link in links.iter().rev() {
        let (from, to) = (at(link.from), at(link.to));
        let kept = to.map_or(&[][..], |to| &folded[to].kept);
        if !is_needed(known, link, to.map(|to| &groups[to]), kept) {
            continue;
        }
        if let Some(from) = from {
            for id in kept_for(known, link, &groups[from], global_cuts) {
                let key = &mut folded[from];
                if !known.kind(id).is_global() && !key.kept.contains(&id) && !key.shown.contains(&id) {
                    key.kept.push(id);
                }
            }
        }
        kept_links.push((from, link));
    }
    kept_links
}

/// The keys of new links that had later events before: what came before the key change may be forgotten.
fn keys_to_read_again(known: &Known<'_>, links: &[(Option<usize>, &Link)], groups: &[Group]) -> Vec<Box<[u8]>> {
    if matches!(known.shape.form, Form::History { .. }) {
        return Vec::new();
    }
    let forgetful = |(owner, link): &&(Option<usize>, &Link)| {
        let known_before = owner.iter().flat_map(|owner| groups[*owner].rows.iter().chain(&groups[*owner].stored));
        let mut known_before = known_before.filter(|id| known.kind(**id) != Kind::Link);
        link.stored.is_none() && known_before.any(|id| known.position(*id) >= known.position(link.at))
    };
    links.iter().filter(forgetful).filter_map(|(owner, _)| Some(known.key(groups[(*owner)?].of).as_ref().into())).collect()
}

fn state_link(link: &Link) -> StateRow {
    StateRow::Link { from: link.from, to: link.to, at: link.at }
}

/// What changes in `_state`: a key's rows are replaced together, or not at all.
#[derive(Default)]
struct StateChange {
    removed: Vec<u32>,
    added: Vec<StateRow>,
}

impl StateChange {
    /// Every key's truncates and cuts: those that a later one makes needless go.
    fn globals(&mut self, known: &Known<'_>, truncates: &[Id], cuts: &[Id], linked: bool) {
        let latest_is_enough = matches!(known.shape.form, Form::Current { soft_delete: false, .. }) && !linked;
        let mut kept = match latest_is_enough {
            true => undominated(known, truncates.iter().rev().copied(), known.shape.cuts(), By::AnyEvent),
            false => truncates.to_vec(),
        };
        let needless = if latest_is_enough { cuts.len().saturating_sub(1) } else { 0 };
        kept.extend(&cuts[needless..]);
        for id in known.ids_of(STATE).filter(|id| known.kind(*id).is_global() && !kept.contains(id)) {
            self.removed.push(known.place(id).row);
        }
        self.added.extend(kept.into_iter().filter(|id| known.split(*id).0 != STATE).map(|id| StateRow::Event { id, covers: false }));
    }

    fn key(&mut self, known: &Known<'_>, group: &Group, key: &Folded, links: &[&Link]) {
        let is_stored = |id: Id| known.split(id).0 == STATE;
        let carries_anew = |id: Id| known.unwritten(id).is_some_and(|set| set.iter().any(|leaf| known.has_new_carry(id, leaf)));
        let same = key.kept.len() + links.len() == group.stored.len()
            && key.kept.iter().all(|id| is_stored(*id) && !carries_anew(*id))
            && links.iter().all(|link| link.stored.is_some())
            && (group.covered == key.covers || key.kept.is_empty());
        if same {
            return;
        }
        self.removed.extend(group.stored.iter().map(|id| known.place(*id).row));
        self.added.extend(key.kept.iter().map(|id| StateRow::Event { id: *id, covers: key.covers }));
        self.added.extend(links.iter().map(|link| state_link(link)));
    }
}

/// What changes in the table.
#[derive(Default)]
struct RowChange {
    written: Vec<RowToWrite>,
    inserted: Vec<u32>,
    updated: Vec<(u32, u32)>,
    deleted: Vec<u32>,
}

impl RowChange {
    fn key(&mut self, known: &Known<'_>, group: &Group, key: Folded) {
        let mut visible: Vec<u32> = group.rows.iter().map(|id| known.place(*id).row).collect();
        for shown in key.rows {
            let (row, replaces) = match shown {
                Shown::Unchanged(at) => {
                    visible.retain(|other| *other != at);
                    continue;
                }
                Shown::Written { row, replaces } => (row, replaces),
            };
            let new = self.written.len() as u32;
            self.written.push(row);
            match replaces {
                Some(at) => {
                    visible.retain(|other| *other != at);
                    self.updated.push((at, new));
                }
                None => self.inserted.push(new),
            }
        }
        self.deleted.extend(visible);
    }
}

/// What becomes of an event of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Superseded,
    Duplicate,
    LateEarlier,
    Applied,
    CountedElsewhere,
}

struct Fates {
    of: Vec<Fate>,
    first: Id,
    ties: u64,
}

impl Fates {
    /// Fates of `count` events from `first` on; others have none.
    fn new(first: Id, count: usize) -> Self {
        Self { of: vec![Fate::Superseded; count], first, ties: 0 }
    }

    fn is_new(&self, id: Id) -> bool {
        id.checked_sub(self.first).is_some_and(|at| (at as usize) < self.of.len())
    }

    fn set(&mut self, id: Id, fate: Fate) {
        if self.is_new(id) {
            self.of[(id - self.first) as usize] = fate;
        }
    }

    /// Takes out all but the first of equal neighbours.
    fn dedup(&mut self, ids: &mut Vec<Id>, compare: impl Fn(Id, Id) -> Ordering) {
        ids.dedup_by(|later, earlier| {
            let equal = compare(*earlier, *later).is_eq();
            if equal {
                self.set(*later, Fate::Duplicate);
            }
            equal
        });
    }

    /// Events of the batch beside another of the same sequence (or position, where that is the order) and different content.
    fn count_ties(&mut self, known: &Known<'_>, events: &[Id]) {
        let tied = |a: Id, b: Id| match known.shape.sequence {
            true => known.compare_sequence(a, b).is_eq(),
            false => known.position(a).is_some() && known.position(a) == known.position(b),
        };
        for group in events.chunk_by(|a, b| tied(*a, *b)).filter(|group| group.len() > 1) {
            let new = group.iter().filter(|id| self.is_new(**id)).count();
            self.ties += new.min(group.len() - 1) as u64;
        }
    }

    /// Leaves what concerns every key out of the counts.
    fn forget_globals(&mut self, known: &Known<'_>) {
        known.ids_of(INCOMING).filter(|id| known.kind(*id).is_global()).for_each(|id| self.set(id, Fate::CountedElsewhere));
    }

    fn settle(&mut self, known: &Known<'_>, inputs: &Inputs<'_>, group: &Group, key: &Folded) {
        key.kept.iter().chain(&key.shown).for_each(|id| self.set(*id, Fate::Applied));
        for shown in &key.rows {
            if let Shown::Written { row: RowToWrite::Current(row), .. } = shown {
                self.set(row.position_of, Fate::Applied);
            }
        }
        if let Form::Current { order, keep_existing: true, .. } = &inputs.shape.form
            && let Some(existing) = group.rows.first()
        {
            let late = group.events.iter().filter(|id| self.is_new(**id) && known.compare_in(order, **id, *existing).is_gt()).copied();
            late.collect::<Vec<_>>().into_iter().for_each(|id| self.set(id, Fate::LateEarlier));
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts { ties: self.ties, ..Counts::default() };
        for fate in &self.of {
            match fate {
                Fate::Superseded => counts.superseded += 1,
                Fate::Duplicate => counts.duplicates += 1,
                Fate::LateEarlier => counts.late_earlier += 1,
                Fate::Applied => counts.applied += 1,
                Fate::CountedElsewhere => {}
            }
        }
        counts
    }
}
