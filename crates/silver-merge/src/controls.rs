//! Rules of this layer that tests may break on purpose. Without the feature each answer is a constant.

use tributary_lake::LakeOptions;

/// Deletes leave no marker behind.
pub(crate) fn delete_memory_off(options: &LakeOptions) -> bool {
    broken(options, Rule::DeleteMemoryOff)
}

/// `_state` rows above the target's own position count.
pub(crate) fn state_above_target_position(options: &LakeOptions) -> bool {
    broken(options, Rule::StateAboveTargetPosition)
}

/// A commit with updates or deletes writes no change-feed rows for its inserts.
pub(crate) fn inserts_left_out_of_change_feed(options: &LakeOptions) -> bool {
    broken(options, Rule::InsertsLeftOutOfChangeFeed)
}

/// What an event says its row was stands for the table's row, whatever that row is.
pub(crate) fn before_images_unchecked(options: &LakeOptions) -> bool {
    broken(options, Rule::BeforeImagesUnchecked)
}

/// Flows of a table over one source keep one position together.
pub(crate) fn flows_share_one_position(options: &LakeOptions) -> bool {
    broken(options, Rule::FlowsShareOnePosition)
}

/// The first reading of a source whose rows have changed comes in parts, as any other.
pub(crate) fn first_read_in_parts(options: &LakeOptions) -> bool {
    broken(options, Rule::FirstReadInParts)
}

#[cfg(feature = "controls")]
use tributary_testkit::Control as Rule;

#[cfg(feature = "controls")]
fn broken(options: &LakeOptions, rule: Rule) -> bool {
    options.controls.has(rule)
}

#[cfg(not(feature = "controls"))]
enum Rule {
    DeleteMemoryOff,
    StateAboveTargetPosition,
    InsertsLeftOutOfChangeFeed,
    BeforeImagesUnchecked,
    FlowsShareOnePosition,
    FirstReadInParts,
}

#[cfg(not(feature = "controls"))]
const fn broken(_: &LakeOptions, _: Rule) -> bool {
    false
}
