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

/// Builds a view's rows in code instead of by the spec's `query`: the session of the run and the inputs by `schema.table` go
/// in, the rows of the view come out. The session has the inputs at the versions of the run, as `catalogue.schema.table`.
///
/// The text of the spec's `query` is then only a name for the code: change it with the code, and the view is made anew.
pub type Build = Arc<dyn Fn(SessionContext, BTreeMap<String, DataFrame>) -> BoxFuture<'static, QueryResult<DataFrame>> + Send + Sync>;

/// How one run behaves.
#[derive(Clone)]
pub struct Options {
    /// Scalar functions usable in the query and in expectations.
    pub functions: Vec<Arc<ScalarUDF>>,
    /// How those of them that the view calls are declared, where their declarations can change: then the view is made anew.
    pub called: Vec<String>,
    /// Replaces the spec's `query`; the spec's `sources` name the inputs.
    pub build: Option<Build>,
    /// The instant `now()` and `current_date` mean; none = the lake's clock when the run starts.
    pub as_of: Option<DateTime<Utc>>,
    /// How often a lost race is planned again before it is an error, at least 1.
    pub attempts_max: u32,
    /// The view is made anew whatever its inputs did; its columns may become others, and inputs that went back are taken as they are.
    pub full_refresh: bool,
    /// Kept with quarantined rows, so that they lead to the run that found them.
    pub run_id: String,
    /// Told now and then how many rows of the view have been made since the attempt began.
    pub progress: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    /// Ends the run at its next step; nothing of an unfinished commit is visible.
    pub cancel: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            functions: Vec::new(),
            called: Vec::new(),
            build: None,
            as_of: None,
            attempts_max: 20,
            full_refresh: false,
            run_id: String::new(),
            progress: None,
            cancel: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("functions", &self.functions.iter().map(|function| function.name()).collect::<Vec<_>>())
            .field("build", &self.build.is_some())
            .field("as_of", &self.as_of)
            .field("attempts_max", &self.attempts_max)
            .field("full_refresh", &self.full_refresh)
            .field("run_id", &self.run_id)
            .finish_non_exhaustive()
    }
}
