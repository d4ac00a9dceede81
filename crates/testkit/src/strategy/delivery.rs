//! Illegal for no one to receive: at least once, reordered across partitions, repeated, cut into batches, restarted from an
//! older position.
//!
//! Plans are made of small numbers and carried out against any number of events, so that they shrink apart from the history.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

/// How events reach a reader, independent of what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryPlan {
    /// A partition's events come in order; readers restart from older positions; partitions are interleaved.
    ByPartition(Vec<Turn>),
    /// Any order at all: each event is given a place by its number in the list, ties keep the order; the list is used in turn.
    Shuffled {
        /// Places.
        places: Vec<u8>,
        /// Batches end after so many events, in turn.
        cuts: Vec<u8>,
        /// Every so many-th event comes twice; 0 = none.
        twice: u8,
    },
}

/// One turn of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which partition with something left (or, for a restart, any) has its turn.
    partition: u8,
    /// It goes back by so many events first.
    back: u8,
    /// So many events are taken.
    take: u8,
    /// The batch ends after them.
    cut: bool,
}

/// Deliveries that a log with partitions can make.
pub fn delivery() -> impl Strategy<Value = DeliveryPlan> {
    let back = prop_oneof![6 => Just(0u8), 1 => 1..6u8];
    let turn =
        (0..8u8, back, 1..6u8, prop::bool::weighted(0.4)).prop_map(|(partition, back, take, cut)| Turn { partition, back, take, cut });
    vec(turn, 1..40).prop_map(DeliveryPlan::ByPartition)
}

/// Deliveries in any order, with repeats.
pub fn shuffle() -> impl Strategy<Value = DeliveryPlan> {
    (vec(any::<u8>(), 1..60), vec(1..9u8, 1..6), 0..5u8).prop_map(|(places, cuts, twice)| DeliveryPlan::Shuffled { places, cuts, twice })
}

impl DeliveryPlan {
    /// The batches, as indexes into events whose partitions these are. Every event is in at least one.
    pub fn batches(&self, partitions: &[i32]) -> Vec<Vec<usize>> {
        let batches = match self {
            Self::ByPartition(turns) => by_partition(turns, partitions),
            Self::Shuffled { places, cuts, twice } => shuffled(places, cuts, *twice, partitions.len()),
        };
        batches.into_iter().filter(|batch| !batch.is_empty()).collect()
    }
}

fn by_partition(turns: &[Turn], partitions: &[i32]) -> Vec<Vec<usize>> {
    let mut events: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    partitions.iter().enumerate().for_each(|(at, partition)| events.entry(*partition).or_default().push(at));
    let queues: Vec<Vec<usize>> = events.into_values().collect();
    if queues.is_empty() {
        return Vec::new();
    }
    let mut next = vec![0; queues.len()];
    let mut batches = vec![Vec::new()];
    for turn in turns {
        let at = usize::from(turn.partition) % queues.len();
        let from = usize::saturating_sub(next[at], turn.back.into());
        let to = (from + usize::from(turn.take)).min(queues[at].len());
        batches.last_mut().expect("never empty").extend(&queues[at][from..to]);
        next[at] = to;
        if turn.cut {
            batches.push(Vec::new());
        }
    }
    // What no turn reached, and what lies behind a restart at the end.
    let rest = queues.iter().zip(next).flat_map(|(queue, next)| queue[next..].iter().copied());
    batches.push(rest.collect());
    batches
}

fn shuffled(places: &[u8], cuts: &[u8], twice: u8, events: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..events).collect();
    order.sort_by_key(|at| places[at % places.len()]);
    let mut stream: Vec<usize> = Vec::new();
    for (at, event) in order.iter().enumerate() {
        stream.push(*event);
        if twice > 0 && at % usize::from(twice) == 0 {
            stream.push(order[at / 2]);
        }
    }
    let mut batches = Vec::new();
    let mut rest = stream.as_slice();
    for size in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (batch, after) = rest.split_at(usize::from(*size).min(rest.len()));
        batches.push(batch.to_vec());
        rest = after;
    }
    batches
}
