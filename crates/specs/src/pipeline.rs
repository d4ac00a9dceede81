//! A pipeline: feeds, silver, gold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::{GoldSpec, SilverSpec};
use crate::feed::SourceFeed;

/// Everything one run keeps current.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The pipeline's name.
    pub name: String,
    /// Bronze.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feeds: Vec<SourceFeed>,
    /// Silver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silver: Vec<SilverSpec>,
    /// Gold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gold: Vec<GoldSpec>,
}
