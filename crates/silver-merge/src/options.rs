//! What a run is given besides the spec.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tributary_lake::datafusion::error::Result as QueryResult;
use tributary_lake::datafusion::logical_expr::ScalarUDF;
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};

/// Builds a dataset's rows in code instead of the spec's `select`: the session of the run and the sources by `schema.table`
/// go in, one row for each row of the first source (or fewer) comes out.
///
/// The first source carries all of its columns, the feed's own (`_op`, `_position`, …) included.
pub type Build = Arc<dyn Fn(SessionContext, BTreeMap<String, DataFrame>) -> BoxFuture<'static, QueryResult<DataFrame>> + Send + Sync>;

/// How one run behaves.
#[derive(Clone)]
pub struct Options {
    /// The version of the first source to start from, where the target has no position yet.
    pub starting_version: u64,
    /// At most so many versions of the first source in one commit; none = all that are there.
    pub source_versions_max: Option<u64>,
    /// Bytes that the events of one slice of keys, the rows they meet and the rows they become may hold together.
    pub memory_limit: usize,
    /// How often a lost race is planned again before it is an error.
    pub attempts_max: u32,
    /// The instant `now()` and `current_date` mean; none = the lake's clock when the run plans.
    pub as_of: Option<DateTime<Utc>>,
    /// Scalar functions usable in every SQL text of the spec.
    pub functions: Vec<Arc<ScalarUDF>>,
    /// Replaces the spec's `select`.
    pub build: Option<Build>,
    /// The table is built anew: one commit replaces all of its rows by those of the first flow, read from the start, and sets the
    /// other flows back; those that run once run again.
    pub full_refresh: bool,
    /// A full refresh goes on where the source no longer has all that the table was made of.
    pub accept_shorter_history: bool,
    /// A flow that reads its source by its appends passes over commits that updated or deleted rows there, as one that is declared so.
    pub skip_change_commits: bool,
    /// Kept with quarantined rows, so that they lead to the run that found them.
    pub run_id: String,
    /// Told now and then how many rows of the source have been read since the attempt began.
    pub progress: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    /// Ends the run at its next step; nothing of an unfinished commit is visible.
    pub cancel: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            starting_version: 0,
            source_versions_max: None,
            memory_limit: 512 << 20,
            attempts_max: 20,
            as_of: None,
            functions: Vec::new(),
            build: None,
            full_refresh: false,
            accept_shorter_history: false,
            skip_change_commits: false,
            run_id: String::new(),
            progress: None,
            cancel: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("starting_version", &self.starting_version)
            .field("source_versions_max", &self.source_versions_max)
            .field("memory_limit", &self.memory_limit)
            .field("attempts_max", &self.attempts_max)
            .field("as_of", &self.as_of)
            .field("functions", &self.functions.iter().map(|function| function.name()).collect::<Vec<_>>())
            .field("build", &self.build.is_some())
            .field("full_refresh", &self.full_refresh)
            .field("run_id", &self.run_id)
            .finish_non_exhaustive()
    }
}
