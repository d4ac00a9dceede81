//! What is asked for and how much may be spent on it.

use std::time::Duration;

/// What is to be done to a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// What the table's own state asks for.
    Auto,
    /// Small files become few, and rows marked as deleted go; of a clustered table as [`Self::Cluster`].
    Optimize,
    /// Files that are not clustered by the table's clustering columns are sorted along a curve.
    Cluster,
    /// The same by these columns, of a table that is not clustered.
    ZOrder(Vec<String>),
    /// Every row marked as deleted goes, and every column that the table no longer has.
    Reorg,
    /// A checkpoint of the log.
    Checkpoint,
}

impl Task {
    /// What a person calls it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Optimize => "optimize",
            Self::Cluster => "cluster",
            Self::ZOrder(_) => "zorder",
            Self::Reorg => "reorg",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// How much may be spent, and from where on files are written anew.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of files that one commit takes away, which is what a kill loses.
    pub group_bytes: u64,
    /// Bytes of files that are sorted together along a curve; what does not fit into memory meanwhile spills.
    pub cube_bytes: u64,
    /// The share of a file's rows that are marked as deleted from which on it is written without them.
    pub vector_share: f64,
    /// No group is begun, and none goes on, once so much time has passed.
    pub time_limit: Option<Duration>,
    /// A table whose rows somebody changed so recently gets one commit in as much time.
    pub yield_to: Duration,
    /// Say what would be done and write nothing.
    pub dry_run: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            group_bytes: 1 << 30,
            cube_bytes: 16 << 30,
            vector_share: 0.1,
            time_limit: None,
            yield_to: Duration::from_secs(60),
            dry_run: false,
        }
    }
}
