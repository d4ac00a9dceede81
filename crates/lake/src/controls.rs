//! Rules of the commit that tests may break on purpose. Without the feature each answer is a constant.

use crate::LakeOptions;

/// Positions are committed after the rows, in a commit of their own.
pub(crate) fn positions_outside_commit(options: &LakeOptions) -> bool {
    broken(options, Rule::PositionsOutsideCommit)
}

/// A writer that is wrong about a position commits all the same.
pub(crate) fn fencing_off(options: &LakeOptions) -> bool {
    broken(options, Rule::FencingOff)
}

/// After a lost race the old plan is committed again.
pub(crate) fn no_replan_after_conflict(options: &LakeOptions) -> bool {
    broken(options, Rule::NoReplanAfterConflict)
}

/// Change-feed files need not hold the inserts of their commit.
pub(crate) fn inserts_left_out_of_change_feed(options: &LakeOptions) -> bool {
    broken(options, Rule::InsertsLeftOutOfChangeFeed)
}

#[cfg(feature = "controls")]
use tributary_testkit::Control as Rule;

#[cfg(feature = "controls")]
fn broken(options: &LakeOptions, rule: Rule) -> bool {
    options.controls.has(rule)
}

#[cfg(not(feature = "controls"))]
enum Rule {
    PositionsOutsideCommit,
    FencingOff,
    NoReplanAfterConflict,
    InsertsLeftOutOfChangeFeed,
}

#[cfg(not(feature = "controls"))]
const fn broken(_: &LakeOptions, _: Rule) -> bool {
    false
}
