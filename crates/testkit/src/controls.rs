//! Rules that can be broken on purpose, so that a proof can be shown to notice.
//!
//! A proof that never fails proves nothing. Each [`Control`] switches off one rule of the product; the test that holds the
//! rule is run once more with the control on, and must fail. The product asks `controls.has(..)` only under its cargo
//! feature `controls`, which nothing but dev-dependencies turns on.

/// One rule, broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Control {
    /// Positions are committed after the rows, in a commit of their own.
    PositionsOutsideCommit,
    /// A writer whose expected previous position is not the table's current one commits all the same.
    FencingOff,
    /// Deletes leave no marker behind.
    DeleteMemoryOff,
    /// After a lost race the old plan is committed again.
    NoReplanAfterConflict,
    /// `_state` rows above the target's own position count.
    StateAboveTargetPosition,
    /// A commit with updates or deletes writes no change-feed rows for its inserts.
    InsertsLeftOutOfChangeFeed,
    /// What an event says its row was before stands for the table's row, whatever that row is.
    BeforeImagesUnchecked,
    /// Flows of a table over one source keep one position together.
    FlowsShareOnePosition,
    /// The first reading of a source whose rows have changed comes in parts, as any other.
    FirstReadInParts,
    /// Of the files that are written anew together one is not read, and another is read twice instead.
    InputForgotten,
    /// Vacuum and log clean-up do not wait for the slowest reader of a table.
    ReaderForgotten,
}

impl Control {
    /// Every control.
    pub const ALL: [Self; 11] = [
        Self::PositionsOutsideCommit,
        Self::FencingOff,
        Self::DeleteMemoryOff,
        Self::NoReplanAfterConflict,
        Self::StateAboveTargetPosition,
        Self::InsertsLeftOutOfChangeFeed,
        Self::BeforeImagesUnchecked,
        Self::FlowsShareOnePosition,
        Self::FirstReadInParts,
        Self::InputForgotten,
        Self::ReaderForgotten,
    ];
}

/// A set of controls; the default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Controls(u32);

impl Controls {
    /// Every rule holds.
    pub const fn none() -> Self {
        Self(0)
    }

    /// The set with one more rule broken.
    #[must_use]
    pub const fn with(self, control: Control) -> Self {
        Self(self.0 | (1 << control as u32))
    }

    /// Whether this rule is broken.
    pub const fn has(self, control: Control) -> bool {
        self.0 & (1 << control as u32) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_nothing_else() {
        for control in Control::ALL {
            assert!(!Controls::none().has(control));
            let set = Controls::none().with(control);
            for other in Control::ALL {
                assert_eq!(set.has(other), other == control);
            }
        }
    }
}
