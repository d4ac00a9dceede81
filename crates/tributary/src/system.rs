//! The catalogue of our own tables, beside the lake's.

use tributary_lake::{Lake, LakeOptions, Result};

/// Its name.
pub(crate) const NAME: &str = "system";

/// The catalogue `system` under the root of a lake.
pub(crate) fn catalogue(lake: &Lake) -> Result<Lake> {
    Lake::open(lake.stores().clone(), LakeOptions { catalogue: NAME.to_owned(), ..lake.options().clone() })
}
