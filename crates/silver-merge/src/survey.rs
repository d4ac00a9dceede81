//! What a batch is made of, before it is dealt to slices of its keys.

use std::collections::HashSet;

use tributary_lake::arrow::error::ArrowError;

use crate::events::Events;
use crate::intake::ties;
use crate::keys::{Key, KeyCodec, Slices};
use crate::target::Target;

/// Keys remembered: slices of some hundreds are of one size to a few percent.
const SAMPLE_MAX: usize = 1 << 15;

/// Bytes that an event takes while its slice is planned, beside its values: its key in three places, its number, its row's place.
const PLAN_BYTES: usize = 200;

/// The values of an event, of the row it meets and of the row it becomes.
const IMAGES: usize = 3;

/// Bytes that planning and writing a slice of these events comes to, the rows they meet being like them.
pub(crate) fn weight(events: &Events) -> usize {
    IMAGES * events.bytes() + PLAN_BYTES * events.len()
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    weight: usize,
    /// Every `stride`-th key, in the order of the events.
    sample: Vec<Key>,
    stride: usize,
    seen: usize,
    /// Whether an event concerns every key.
    has_globals: bool,
    /// Keys that have or had another key.
    tied: HashSet<Key>,
}

impl Survey {
    /// Takes in events.
    ///
    /// # Errors
    /// When their keys do not have the table's types.
    pub fn add(&mut self, target: &Target, codec: &KeyCodec, events: &Events) -> Result<(), ArrowError> {
        self.weight += weight(events);
        self.tie(ties(target, codec, events)?);
        let keys = codec.encode(&codec.columns_of(&target.shape, &events.rows))?;
        for row in 0..events.len() {
            if events.kinds[row].is_global() {
                self.has_globals = true;
                continue;
            }
            if self.seen.is_multiple_of(self.stride.max(1)) {
                self.sample.push(Key::from(keys.row(row).as_ref()));
            }
            self.seen += 1;
            if self.sample.len() > SAMPLE_MAX {
                let mut at = 0;
                self.sample.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride = self.stride.max(1) * 2;
            }
        }
        Ok(())
    }

    /// Takes in pairs of keys that belong together.
    pub fn tie(&mut self, pairs: Vec<(Key, Key)>) {
        self.tied.extend(pairs.into_iter().flat_map(|(one, other)| [one, other]));
    }

    /// Has seen every event.
    pub fn close(&mut self) {
        self.sample.sort_unstable();
    }

    /// How many slices come to at most `bytes_max` each.
    pub fn slices_of(&self, bytes_max: usize) -> usize {
        self.weight.div_ceil(bytes_max.max(1))
    }

    /// About so many slices of one size, keys ascending from one to the next; by hash where events concern keys that are not among
    /// theirs. There are fewer where some keys have most of the events.
    pub fn dealt(&self, count: usize) -> Slices {
        let tied = self.tied.clone();
        if self.has_globals || self.sample.is_empty() {
            return Slices { count, bounds: None, tied };
        }
        let mut bounds: Vec<Key> = (1..count).map(|slice| self.sample[slice * self.sample.len() / count].clone()).collect();
        bounds.dedup();
        Slices { count: bounds.len() + 1, bounds: Some(bounds), tied }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_as_many_keys_each_and_ascend() {
        let sample: Vec<Key> = (0..1000_u32).map(|key| Key::from(key.to_be_bytes())).collect();
        let survey = Survey { sample, ..Survey::default() };
        let slices = survey.dealt(4);
        let of = |key: u32| slices.of(&key.to_be_bytes());
        assert_eq!([0, 249, 250, 499, 500, 750, 999, 5000].map(of), [0, 0, 1, 1, 2, 3, 3, 3]);
    }

    #[test]
    fn a_key_with_most_of_the_events_has_one_slice() {
        let sample: Vec<Key> = [1, 7, 7, 7, 7, 7, 7, 9].map(|key: u8| Key::from([key])).to_vec();
        let slices = Survey { sample, ..Survey::default() }.dealt(4);
        assert_eq!((slices.count, [1, 7, 9].map(|key: u8| slices.of(&[key]))), (2, [0, 1, 1]));
    }

    #[test]
    fn keys_are_dealt_by_hash_where_every_key_is_concerned_and_tied_ones_are_in_the_first_slice() {
        let survey = Survey { has_globals: true, sample: vec![Key::from([1])], tied: HashSet::from([Key::from([2])]), ..Survey::default() };
        let slices = survey.dealt(64);
        assert!(slices.bounds.is_none());
        assert_eq!(slices.of(&[2]), 0);
        assert!((0..200).map(|key: u8| slices.of(&[key])).collect::<HashSet<_>>().len() > 40);
    }
}
