//! One commit of bins that were written anew.

use std::collections::BTreeMap;

use tributary_lake::{Commit, CommitOutcome, Conflict, DataFile, NewFile, Operation, Reads, Table};

use crate::{Amount, Error, Result};

/// A bin that was written anew.
pub(crate) struct Done {
    /// Its inputs as the snapshot has them that it was planned on.
    pub inputs: Vec<DataFile>,
    pub adds: Vec<NewFile>,
}

/// How a group ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Files read for the bins in the commit, and files written.
    pub read: Amount,
    pub written: Amount,
    /// Bins in the commit.
    pub kept: u64,
    /// Bins of which a rival touched an input.
    pub dropped: u64,
}

impl Ended {
    fn of(bins: usize, kept: &[Done]) -> Self {
        let mut ended = Self { kept: kept.len() as u64, dropped: (bins - kept.len()) as u64, ..Self::default() };
        for done in kept {
            ended.read += Amount::of(done.inputs.iter().map(|file| file.size));
            ended.written += Amount::of(done.adds.iter().map(|file| file.size));
        }
        ended
    }
}

/// Commits the bins whose inputs are all live as they were read; the others are dropped. `planned` is the snapshot they were planned on.
///
/// # Errors
/// Store errors.
pub(crate) async fn commit(planned: &Table, mut group: Vec<Done>) -> Result<Ended> {
    let bins = group.len();
    let failed = |action| Error::lake(action, planned.name());
    let mut fresh = planned.refresh().await.map_err(failed("opening"))?;
    loop {
        if fresh.columns() != planned.columns() || fresh.lies() != planned.lies() || fresh.identity() != planned.identity() {
            return Ok(Ended::of(bins, &[]));
        }
        let live = fresh.files().await.map_err(failed("listing the files of"))?;
        let live: BTreeMap<&str, &DataFile> = live.iter().map(|file| (file.path.as_str(), file)).collect();
        let as_read = |input: &DataFile| live.get(input.path.as_str()).is_some_and(|now| now.deletion_vector == input.deletion_vector);
        group.retain(|done| done.inputs.iter().all(as_read));
        if group.is_empty() {
            return Ok(Ended::of(bins, &[]));
        }
        let outcome = fresh.commit(of(&group)).await.map_err(failed("committing to"))?;
        match outcome {
            CommitOutcome::Committed { .. } => return Ok(Ended::of(bins, &group)),
            CommitOutcome::Conflicted(Conflict::Attempts { .. }) => return Ok(Ended::of(bins, &[])),
            CommitOutcome::Conflicted(conflict) => {
                tracing::debug!(table = %planned.name(), %conflict, "lost a race, dropping what it touched")
            }
            CommitOutcome::Fenced { app_id, .. } => tracing::warn!(table = %planned.name(), app_id, "fenced without a position of ours"),
        }
        fresh = fresh.refresh().await.map_err(failed("opening"))?;
    }
}

fn of(group: &[Done]) -> Commit {
    let removes: Vec<DataFile> = group.iter().flat_map(|done| done.inputs.clone()).collect();
    let adds: Vec<NewFile> = group.iter().flat_map(|done| done.adds.clone()).collect();
    let vectors = removes.iter().filter(|file| file.deletion_vector.is_some()).count();
    let bytes = |sizes: &mut dyn Iterator<Item = u64>| sizes.sum::<u64>().to_string();
    let metrics = [
        ("numRemovedFiles", removes.len().to_string()),
        ("numAddedFiles", adds.len().to_string()),
        ("numRemovedBytes", bytes(&mut removes.iter().map(|file| file.size))),
        ("numAddedBytes", bytes(&mut adds.iter().map(|file| file.size))),
        ("numDeletionVectorsRemoved", vectors.to_string()),
    ];
    let metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Commit { operation: Operation::Optimize, adds, removes, reads: Reads::Files, metrics, ..Commit::default() }
}
