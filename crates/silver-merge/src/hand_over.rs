//! Key changes: what the source did not send with the new key is what the old key had (S6).
//!
//! A key change is a delete of the old key and an upsert of the new one at one position. The upsert's unsent leaves are the
//! old key's, as of just before that position, whichever half arrives first and whatever arrives late: the old key keeps a
//! link, and the events that decide its values before that position, until no later event can change the new key's row.
//! Links are followed in the order of their positions, so that chains of key changes resolve.

use std::collections::HashMap;

use crate::events::Kind;
use crate::known::{Id, Known};
use crate::payload::{By, Payload, survive, undominated};

/// Which key of an event is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOf {
    /// Its own.
    Own(Id),
    /// The other one of its key change.
    Other(Id),
}

/// A key change, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// The key before.
    pub from: KeyOf,
    /// The key after.
    pub to: KeyOf,
    /// An event whose position is the key change's.
    pub at: Id,
    /// The row of `_state` that holds it.
    pub stored: Option<Id>,
    /// The upsert of the new key.
    pub create: Option<Id>,
}

/// Encoded key → number of its group.
pub(crate) type GroupOf = HashMap<Vec<u8>, usize>;

/// What is known of one key.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// One of its events; their key is the group's.
    pub of: Id,
    /// Upserts and deletes, ascending in the form's order, each once; every key's truncates among them.
    pub events: Vec<Id>,
    /// Cuts of this key, each position once.
    pub cuts: Vec<Id>,
    /// Visible rows.
    pub rows: Vec<Id>,
    /// Rows of `_state`, links included.
    pub stored: Vec<Id>,
    /// Whether `_state` replaces the visible row as an event.
    pub covered: bool,
}

/// All key changes the events tell of, by position.
pub(crate) fn links(known: &Known<'_>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut seen: HashMap<(Vec<u8>, Vec<u8>, &str), usize> = HashMap::new();
    for id in known.ids() {
        let (Some(other), Some(position)) = (known.other_key(id), known.position(id)) else { continue };
        let own = known.key(id);
        let upsert = known.kind(id) == Kind::Upsert;
        let (from, to) = if upsert { (KeyOf::Other(id), KeyOf::Own(id)) } else { (KeyOf::Own(id), KeyOf::Other(id)) };
        let pair = if upsert { (other, own) } else { (own, other) };
        let at = *seen.entry((pair.0.as_ref().to_vec(), pair.1.as_ref().to_vec(), position)).or_insert_with(|| {
            links.push(Link { from, to, at: id, stored: None, create: None });
            links.len() - 1
        });
        if known.kind(id) == Kind::Link {
            links[at].stored = Some(id);
        }
    }
    links.sort_by(|a, b| known.position(a.at).cmp(&known.position(b.at)));
    links
}

/// The encoded key.
pub(crate) fn key_bytes(known: &Known<'_>, key: KeyOf) -> Option<Vec<u8>> {
    match key {
        KeyOf::Own(id) => Some(known.key(id).as_ref().to_vec()),
        KeyOf::Other(id) => known.other_key(id).map(|row| row.as_ref().to_vec()),
    }
}

/// Fills the unsent leaves of every create half from the key before, and notes the create halves found.
pub(crate) fn hand_over(known: &mut Known<'_>, links: &mut [Link], groups: &[Group], of: &GroupOf, global_cuts: &[Id]) {
    for link in links {
        let position = known.position(link.at);
        let group = |known: &Known<'_>, key| key_bytes(known, key).and_then(|key| of.get(&key)).map(|at| &groups[*at]);
        let Some(to) = group(known, link.to) else { continue };
        let creates = |id: &&Id| known.kind(**id) == Kind::Upsert && known.position(**id) == position;
        let with_key = to.events.iter().filter(creates).find(|id| known.other_key(**id).is_some());
        link.create = with_key.or_else(|| to.events.iter().find(creates)).copied();
        let (Some(create), Some(from)) = (link.create, group(known, link.from)) else { continue };
        let Some(unwritten) = known.unwritten(create) else { continue };
        let before = Payload::of(known, as_of(known, from, global_cuts, position));
        for leaf in unwritten.iter() {
            if !is_key_leaf(known, leaf) {
                known.set_carry(create, leaf, before.place(known, leaf));
            }
        }
    }
}

fn is_key_leaf(known: &Known<'_>, leaf: usize) -> bool {
    known.shape.keys.contains(&known.shape.leaves.get(leaf).column)
}

/// The events of a key that decide its values just before a position, greatest first.
fn as_of<'a>(known: &'a Known<'_>, group: &'a Group, global_cuts: &'a [Id], position: Option<&'a str>) -> impl Iterator<Item = Id> + 'a {
    let cut = cut_before(known, group, global_cuts, position).and_then(|cut| known.position(cut));
    let earlier = group.events.iter().rev().copied().filter(move |id| known.position(*id) < position);
    survive(known, earlier, cut)
}

fn cut_before(known: &Known<'_>, group: &Group, global_cuts: &[Id], position: Option<&str>) -> Option<Id> {
    let earlier = group.cuts.iter().chain(global_cuts).copied().filter(|cut| known.position(*cut) < position);
    earlier.max_by(|a, b| known.position(*a).cmp(&known.position(*b)))
}

/// Whether a link can still change the new key's row; `kept` are the events the new key keeps.
pub(crate) fn is_needed(known: &Known<'_>, link: &Link, to: Option<&Group>, kept: &[Id]) -> bool {
    if let Some(create) = link.create {
        return !known.is_whole(create) && kept.contains(&create);
    }
    // The create half has not arrived, unless it is forgotten because something greater is known.
    let position = known.position(link.at);
    let settles = |id: &Id| !known.shape.sequence && known.position(*id) >= position && (known.kind(*id).removes() || known.is_whole(*id));
    !to.is_some_and(|to| to.events.iter().any(settles))
}

/// The events and the cut the old key keeps because of a link.
pub(crate) fn kept_for(known: &Known<'_>, link: &Link, from: &Group, global_cuts: &[Id]) -> Vec<Id> {
    let position = known.position(link.at);
    let mut kept = undominated(known, as_of(known, from, global_cuts, position), known.shape.cuts(), By::AnyEvent);
    kept.extend(cut_before(known, from, global_cuts, position).filter(|cut| !known.kind(*cut).is_global()));
    kept
}
