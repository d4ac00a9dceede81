//! New ids come in through the door.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Where ids of commits, files and tables come from.
pub trait Ids: Debug + Send + Sync {
    /// An id nobody else has.
    fn next(&self) -> Uuid;
}

/// Ids by chance.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn next(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// The same ids in every run with the same seed: for tests that compare file by file.
#[derive(Debug)]
pub struct SeededIds {
    seed: Uuid,
    given: AtomicU64,
}

impl SeededIds {
    /// Ids that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed: Uuid::from_u64_pair(seed, 0), given: AtomicU64::new(0) }
    }
}

impl Ids for SeededIds {
    fn next(&self) -> Uuid {
        Uuid::new_v5(&self.seed, &self.given.fetch_add(1, Ordering::SeqCst).to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_ids_repeat_and_differ() {
        let (one, other) = (SeededIds::new(7), SeededIds::new(7));
        let ids: Vec<_> = (0..3).map(|_| one.next()).collect();
        assert_eq!(ids, (0..3).map(|_| other.next()).collect::<Vec<_>>());
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
        assert_ne!(ids[0], SeededIds::new(8).next());
    }
}
