//! Checkpoints of the log, so that opening stays cheap.
//!
//! Writers never clean the log, and a checkpoint that fails is no error of theirs: the next commit finds it still due and tries
//! again, also after a restart, because what is due is read from the log. A table that says its own interval gets its checkpoints
//! by that, whoever made it.

use object_store::ObjectStoreExt;
use serde_json::Value;

use crate::log::{Log, kernel_error};
use crate::{Error, Result, Table};

/// The table property that says after how many commits a checkpoint is due.
pub(crate) const INTERVAL: &str = "delta.checkpointInterval";

/// Commits between two checkpoints at least, where the table says nothing.
const COMMITS_MIN: u64 = 10;

/// A checkpoint has a row a file: a table of many files gets them more rarely.
const FILES_PER_COMMIT: u64 = 200;

/// The commits between two checkpoints that a value of [`INTERVAL`] asks for; none when it is no whole number from 1.
pub(crate) fn interval(value: &str) -> Option<u64> {
    value.trim().parse().ok().filter(|commits| *commits > 0)
}

/// After `version` was committed on top of `table`: writes a checkpoint when one is due.
pub(crate) async fn write_when_due(table: &Table, version: u64) {
    let since = version - table.state().checkpoint_version().unwrap_or_default();
    let said = table.properties().get(INTERVAL).and_then(|value| interval(value));
    if since < said.unwrap_or(COMMITS_MIN) {
        return;
    }
    match write(table, version, said).await {
        Ok(true) => tracing::debug!(table = %table.name(), version, "wrote a checkpoint"),
        Ok(false) => {}
        Err(error) => tracing::warn!(table = %table.name(), version, %error, "the checkpoint failed; a later commit tries again"),
    }
}

async fn write(table: &Table, version: u64, said: Option<u64>) -> Result<bool> {
    let log = table.log();
    let interval = match said {
        Some(commits) => commits,
        None => COMMITS_MIN.max(files_of_last(log).await? / FILES_PER_COMMIT),
    };
    let (kernel, engine, name) = (log.kernel(table.state()).await?, log.delta.engine(None), table.name().clone());
    let written = tokio::task::spawn_blocking(move || {
        let failed = |error| kernel_error(&name, error);
        // Another writer may have made one meanwhile.
        let snapshot = delta_kernel::Snapshot::builder_from(kernel).at_version(version).build(engine.as_ref()).map_err(failed)?;
        let since = version - snapshot.log_segment().checkpoint_version.unwrap_or_default();
        if since < interval {
            return Ok(false);
        }
        snapshot.checkpoint(engine.as_ref(), None).map(|_| true).map_err(failed)
    });
    written.await.map_err(|error| log.unreadable(error.to_string()))?
}

impl Table {
    /// Commits of this snapshot that no checkpoint holds; a reader of the table opens each.
    pub fn commits_since_checkpoint(&self) -> u64 {
        self.version() - self.state().checkpoint_version().unwrap_or_default()
    }

    /// Writes a checkpoint of this version, where there is none: of the classic kind, or of the second version where the table has that
    /// feature. Whether one was written.
    ///
    /// # Errors
    /// Store errors.
    pub async fn checkpoint(&self) -> Result<bool> {
        if self.commits_since_checkpoint() == 0 {
            return Ok(false);
        }
        write(self, self.version(), Some(1)).await
    }
}

/// Files in the newest checkpoint, as `_last_checkpoint` says; 0 without one.
async fn files_of_last(log: &Log) -> Result<u64> {
    let path = log.root.clone().join("_delta_log").join("_last_checkpoint");
    let failed = |error| Error::store(format!("reading the checkpoint of {}", log.table), error);
    let bytes = match log.store.get(&path).await {
        Ok(result) => result.bytes().await.map_err(failed)?,
        Err(object_store::Error::NotFound { .. }) => return Ok(0),
        Err(error) => return Err(failed(error)),
    };
    // The file is a hint: what cannot be read says nothing.
    let hint: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    Ok(hint["numOfAddFiles"].as_u64().or_else(|| hint["size"].as_u64()).unwrap_or_default())
}
