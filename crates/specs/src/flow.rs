//! What else writes a silver table, how a stream is read, and what must hold of a table as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::{ExpectationAction, SilverSpec};
use crate::table_name::TableName;

/// A further flow into a silver table: it reads a stream of its own and keeps a position of its own, so that a flow that is added
/// later takes up its source from the start without touching what the others have read. Keys, sequence, policy, columns and rules
/// are the table's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name; unique in the table.
    pub name: String,
    /// As [`SilverSpec::sources`].
    pub sources: Vec<TableName>,
    /// As [`SilverSpec::select`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// As [`SilverSpec::once`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// As [`SilverSpec::stream`].
    #[serde(default, skip_serializing_if = "StreamRead::is_auto")]
    pub stream: StreamRead,
    /// SQL over the source row; true = delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_as_delete_when: Option<String>,
    /// SQL over the source row; true = truncate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_as_truncate_when: Option<String>,
}

/// How the stream of a flow is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamRead {
    /// By its appends; a commit that updates or deletes rows stops the flow. Into a table with keys, a table of ours whose rows change
    /// by its change feed.
    #[default]
    Auto,
    /// By its appends; commits that update or delete rows are passed over and counted.
    SkipChangeCommits,
    /// By its change feed. Where rows are only added, the rows that are there come first, as inserts, and then each change is a row.
    ChangeFeed,
    /// By its change feed, from a version on.
    Changes {
        /// The first version.
        from: u64,
        /// The last one; none = whatever comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
    },
}

impl StreamRead {
    /// Whether the change feed is asked for.
    pub fn is_change_feed(&self) -> bool {
        matches!(self, Self::ChangeFeed | Self::Changes { .. })
    }

    /// The version with which the stream begins, where it says so.
    pub fn first(&self) -> Option<u64> {
        match self {
            Self::Changes { from, .. } => Some(*from),
            Self::Auto | Self::SkipChangeCommits | Self::ChangeFeed => None,
        }
    }

    /// The version with which the stream ends, where it does.
    pub fn until(&self) -> Option<u64> {
        match self {
            Self::Changes { to, .. } => *to,
            Self::Auto | Self::SkipChangeCommits | Self::ChangeFeed => None,
        }
    }

    /// Whether the table says how it is read.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// What must hold of a table as a whole once the rows of a run are in it; looked at before the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetExpectation {
    /// The rule's name; unique among all rules of the table.
    pub name: String,
    /// What must hold.
    pub rule: SetRule,
    /// `warn` counts, `fail` stops the dataset before its commit. There is no row to leave out.
    #[serde(default)]
    pub action: ExpectationAction,
}

/// What must hold of a table as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SetRule {
    /// No two rows have the same values in these columns; null equals null.
    Unique(Vec<String>),
    /// The table has so many rows.
    RowCount {
        /// At least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// At most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    /// The latest time in a column is not older than this; a table without rows is not fresh.
    Freshness {
        /// A column of type `timestamp`, `timestamp_ntz` (taken as UTC) or `date`.
        column: String,
        /// Seconds, counted back from the clock of the run.
        max_age_seconds: u64,
    },
}

impl SilverSpec {
    /// The name of the table's first flow: its own, else the table's.
    pub fn flow_name(&self) -> &str {
        self.flow.as_deref().unwrap_or(&self.table.name)
    }

    /// Every table that a flow reads, each once: streams and lookups.
    pub fn reads(&self) -> Vec<&TableName> {
        let mut tables: Vec<&TableName> = Vec::new();
        for table in self.sources.iter().chain(self.flows.iter().flat_map(|flow| &flow.sources)) {
            if !tables.iter().any(|known| known.same_without_case(table)) {
                tables.push(table);
            }
        }
        tables
    }

    /// The dataset as each of its flows has it, the first one first: one stream, `flow` named, and no further `flows`.
    pub fn each_flow(&self) -> Vec<Self> {
        let first = Self { flow: Some(self.flow_name().to_owned()), flows: Vec::new(), ..self.clone() };
        let further = self.flows.iter().map(|flow| {
            let mut spec = first.clone();
            spec.flow = Some(flow.name.clone());
            spec.sources.clone_from(&flow.sources);
            spec.select.clone_from(&flow.select);
            spec.once = flow.once;
            spec.stream = flow.stream;
            spec.deletes.apply_as_delete_when.clone_from(&flow.apply_as_delete_when);
            spec.deletes.apply_as_truncate_when.clone_from(&flow.apply_as_truncate_when);
            spec
        });
        std::iter::once(first.clone()).chain(further).collect()
    }
}
