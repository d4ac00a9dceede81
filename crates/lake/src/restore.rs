//! An earlier version of a table brought back by one commit: its rows, schema, properties, domains, and the positions it had.
//!
//! What must stay true:
//! - The protocol is never lowered, and what commits say of their time stays on.
//! - Files that another version added are removed, files that it removed become live again as they were: no file is written.
//! - What was consumed is set back in the same commit, so that positions and rows agree.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::{Action, Metadata, Protocol};
use crate::create::{COMMIT_TIMESTAMPS_ON, FORMAT};
use crate::state::{CLUSTERING_DOMAIN, State};
use crate::{Commit, CommitOutcome, DataFile, Operation, Progress, Reads, Result, Table, protocol, transact};

/// How the application ids of positions of ours begin.
const OURS: &str = "tributary:";
/// What the history calls a commit that brings an earlier version back, whoever makes it.
const RESTORE: &str = "RESTORE";
/// Commits behind the last position that are looked through.
const COMMITS_MAX: usize = 1_000;

/// Properties of how commits are written, which never go back.
const OF_COMMITS: [&str; 4] =
    [COMMIT_TIMESTAMPS_ON, "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp", FORMAT.0];

impl Table {
    /// The commit that brings this table back to an earlier snapshot of it, positions left as they are; none where nothing would change.
    ///
    /// # Errors
    /// Store errors.
    pub async fn plan_restore(&self, then: &Self) -> Result<Option<Commit>> {
        let (now, before) = (self.files().await?, then.files().await?);
        let commit = Commit {
            operation: Operation::Restore,
            removes: without(&now, &before),
            again: without(&before, &now),
            domains: domains(self.state(), then.state()),
            reads: Reads::WholeTable,
            rewinds: true,
            ..Commit::default()
        };
        let positions = self.state().progress != then.state().progress;
        let changes = !commit.removes.is_empty() || !commit.again.is_empty() || !commit.domains.is_empty() || positions;
        Ok((changes || metadata(self.state(), then.state()).is_some()).then_some(commit))
    }

    /// Commits a plan of [`Self::plan_restore`], with the metadata of the earlier snapshot.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn restore(&self, then: &Self, commit: Commit) -> Result<CommitOutcome> {
        transact::restore(self, commit, metadata(self.state(), then.state())).await
    }

    /// The commit by which somebody else brought an earlier version back since a commit of ours last carried a position: rows went back,
    /// and what the table says it has consumed did not. None where the table has no positions of ours.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a commit with an action that is not known; store errors.
    pub async fn restored_by_others(&self) -> Result<Option<u64>> {
        let is_ours = |app_id: &str| app_id.starts_with(OURS);
        if !self.state().progress.keys().any(|app_id| is_ours(app_id)) {
            return Ok(None);
        }
        for version in (0..=self.version()).rev().take(COMMITS_MAX) {
            let Some(actions) = self.log().actions(version).await? else { return Ok(None) };
            if actions.iter().any(|action| matches!(action, Action::Txn(txn) if is_ours(&txn.app_id))) {
                return Ok(None);
            }
            let restores = |action: &Action| matches!(action, Action::CommitInfo(info) if info.operation.as_deref() == Some(RESTORE));
            if actions.iter().any(restores) {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// One position of ours as it is, to be said again: so a commit answers for what somebody else restored.
    pub fn position_again(&self) -> Option<Progress> {
        let (app_id, version) = self.state().progress.iter().find(|(app_id, _)| app_id.starts_with(OURS))?;
        Some(Progress { app_id: app_id.clone(), expected: Some(*version), version: *version })
    }

    /// Every position of this snapshot whose version differs in another one: as they are here, and there where there is one.
    pub fn positions_that_differ(&self, then: &Self) -> Vec<(Progress, Option<i64>)> {
        let differing = self.state().progress.iter().map(|(app_id, version)| {
            let progress = Progress { app_id: app_id.clone(), expected: Some(*version), version: *version };
            (progress, then.state().progress.get(app_id).copied())
        });
        differing.filter(|(progress, then)| Some(progress.version) != *then).collect()
    }
}

/// The files of one snapshot that are not, or not with the same rows, in the other.
pub(crate) fn without(files: &[DataFile], others: &[DataFile]) -> Vec<DataFile> {
    let key = |file: &DataFile| {
        let vector =
            file.deletion_vector.as_ref().map(|vector| (vector.path_or_inline_dv.clone(), vector.offset, vector.storage_type.clone()));
        (file.log_path.clone(), vector)
    };
    let there: BTreeSet<_> = others.iter().map(key).collect();
    files.iter().filter(|file| !there.contains(&key(file))).cloned().collect()
}

/// Domains as they were; those of the protocol stay, but for how the table lies.
fn domains(now: &State, then: &State) -> BTreeMap<String, Option<String>> {
    let goes_back = |domain: &&String| !domain.starts_with("delta.") || domain.as_str() == CLUSTERING_DOMAIN;
    let names: BTreeSet<&String> = now.domains.keys().chain(then.domains.keys()).filter(goes_back).collect();
    let differing = names.into_iter().filter(|name| now.domains.get(*name) != then.domains.get(*name));
    differing.map(|name| (name.clone(), then.domains.get(name).cloned())).collect()
}

/// Schema and properties as they were, where they differ, with the protocol grown by what they need.
fn metadata(now: &State, then: &State) -> Option<(Metadata, Option<Protocol>)> {
    let mut metadata = then.metadata.clone();
    metadata.id.clone_from(&now.metadata.id);
    metadata.created_time = now.metadata.created_time;
    for name in OF_COMMITS {
        match now.metadata.configuration.get(name) {
            Some(value) => _ = metadata.configuration.insert(name.to_owned(), value.clone()),
            None => _ = metadata.configuration.remove(name),
        }
    }
    let mut needed = protocol::needed(&metadata, !then.cluster_columns.is_empty());
    needed.extend(protocol::features(&then.protocol));
    let grown = protocol::grown(&now.protocol, &needed);
    (metadata != now.metadata || grown.is_some()).then_some((metadata, grown))
}
