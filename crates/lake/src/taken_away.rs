//! What the commits of a log took away: files that nobody needs once nobody reads the versions before.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use delta_kernel::actions::get_all_actions_schema;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::action::{Action, Remove};
use crate::folder::{relative, vector_paths};
use crate::log::{Log, actions_of, kernel_error};
use crate::{Result, Table, history};

/// Commits that are read side by side.
const AT_ONCE: usize = 8;

/// What a commit took away, and what its change feed holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRemovals {
    /// The version it made.
    pub version: u64,
    /// In-commit timestamp where the commit has one, else the time of its file.
    pub timestamp: DateTime<Utc>,
    /// As its writer called it.
    pub operation: Option<String>,
    /// Files that stopped being live, and deletion vectors that stopped being looked at.
    pub removed: Vec<Removed>,
    /// Change-feed files, every reading of their relative paths.
    pub changes: Vec<String>,
}

/// A file that stopped being live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Every reading of the relative paths of the file and of its deletion vector.
    pub paths: Vec<String>,
    /// When, as its writer says.
    pub at: Option<DateTime<Utc>>,
}

impl Table {
    /// What the commits whose files are there took away, of this snapshot's, in no order.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a commit with an action that is not known; store errors; each as an item of the stream.
    pub async fn commit_removals(&self) -> Result<BoxStream<'static, Result<CommitRemovals>>> {
        let versions = self.log().versions().await?;
        let Some(earliest) = versions.earliest_commit else { return Ok(stream::empty().boxed()) };
        let table = self.clone();
        let read = move |version| {
            let table = table.clone();
            async move { table.removals_of(version).await }
        };
        Ok(stream::iter(earliest..=self.version()).map(read).buffer_unordered(AT_ONCE).boxed())
    }

    async fn removals_of(&self, version: u64) -> Result<CommitRemovals> {
        let log = self.log();
        let actions = self.commit_actions(version).await?;
        let timestamp = self.commit_time(version, &actions).await?;
        let mut found =
            CommitRemovals { version, timestamp, operation: history::operation(&actions), removed: Vec::new(), changes: Vec::new() };
        for action in &actions {
            match action {
                Action::Remove(remove) => found.removed.push(removed(log, remove)?),
                Action::Cdc(cdc) => found.changes.extend(relative(log, &cdc.path)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Files that the newest checkpoint remembers as removed, and those removed since.
    ///
    /// # Errors
    /// Store errors.
    pub async fn remembered_removals(&self) -> Result<Vec<Removed>> {
        let log = self.log();
        let (kernel, engine, name) = (log.kernel(self.state()).await?, log.delta.engine(None), log.table.clone());
        let log_of_thread = log.clone();
        let read = tokio::task::spawn_blocking(move || {
            let failed = |error| kernel_error(&name, error);
            let schema = get_all_actions_schema().project(&["remove"]).map_err(failed)?;
            let mut removals = Vec::new();
            for batch in kernel.log_segment().read_actions(engine.as_ref(), schema).map_err(failed)? {
                let batch = ArrowEngineData::try_from_engine_data(batch.map_err(failed)?.actions).map_err(failed)?;
                for action in actions_of(&name, batch.record_batch())? {
                    if let Action::Remove(remove) = action {
                        removals.push(removed(&log_of_thread, &remove)?);
                    }
                }
            }
            Ok(removals)
        });
        read.await.map_err(|error| log.unreadable(error.to_string()))?
    }
}

fn removed(log: &Log, remove: &Remove) -> Result<Removed> {
    let mut paths: BTreeSet<String> = relative(log, &remove.path).into_iter().collect();
    if let Some(vector) = &remove.deletion_vector {
        paths.extend(vector_paths(log, vector)?);
    }
    let at = remove.deletion_timestamp.and_then(DateTime::from_timestamp_millis);
    Ok(Removed { paths: paths.into_iter().collect(), at })
}
