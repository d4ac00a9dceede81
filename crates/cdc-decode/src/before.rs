//! Whether before-images are complete, as far as the source's own events have shown.
//!
//! PostgreSQL's default identity sends the key of the old row, and in other columns null or, where null is not allowed or
//! there is a default, an invented value. Three things show that a before-image is the whole old row:
//!
//! 1. its change has no key at all: only a full image identifies the row;
//! 2. it has a value in a column that shows null as null, by its schema, or without a schema because the row image after the
//!    change is null there;
//! 3. the update or delete of the greatest position so far had a complete one.
//!
//! The first two are in the event itself and the third is in the table, so what is trusted does not depend on where a run ends
//! and the next begins.

use std::cmp::Ordering;

use crate::decoded::BeforeImages;
use crate::position::Position;

/// What the update or delete of the greatest position says of before-images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    latest: Option<(Position, bool)>,
}

impl Shown {
    /// As the table tells it.
    pub(crate) fn resumed(told: &BeforeImages) -> Self {
        Self { latest: Position::parse(&told.position).map(|position| (position, told.complete)) }
    }

    /// Whether before-images are complete by now.
    pub(crate) fn are_complete(&self) -> bool {
        self.latest.is_some_and(|(_, complete)| complete)
    }

    /// Takes an update or delete into account whose row has its before-image, or has none. Of several at one position all
    /// must have it.
    pub(crate) fn see(&mut self, position: Position, complete: bool) {
        self.latest = Some(match self.latest {
            None => (position, complete),
            Some((known, shown)) => match known.text_order(&position) {
                Ordering::Less => (position, complete),
                Ordering::Equal => (known, shown && complete),
                Ordering::Greater => (known, shown),
            },
        });
    }
}
