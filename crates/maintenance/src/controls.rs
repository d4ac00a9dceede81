//! Rules of maintenance that tests may break on purpose. Without the feature each answer is a constant.

use tributary_lake::LakeOptions;

/// One input of each bin is not read; another is read twice instead, so that counts add up.
pub(crate) fn forgets_an_input(options: &LakeOptions) -> bool {
    broken(options, Rule::InputForgotten)
}

/// The slowest reader of a table is not waited for.
pub(crate) fn forgets_a_reader(options: &LakeOptions) -> bool {
    broken(options, Rule::ReaderForgotten)
}

#[cfg(feature = "controls")]
use tributary_testkit::Control as Rule;

#[cfg(feature = "controls")]
fn broken(options: &LakeOptions, rule: Rule) -> bool {
    options.controls.has(rule)
}

#[cfg(not(feature = "controls"))]
enum Rule {
    InputForgotten,
    ReaderForgotten,
}

#[cfg(not(feature = "controls"))]
const fn broken(_: &LakeOptions, _: Rule) -> bool {
    false
}
