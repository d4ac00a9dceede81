//! The refresh that takes up what changed, and its commit.

use std::collections::BTreeMap;

use tributary_lake::{Commit, CommitOutcome, Operation, Reads, Table};
use tributary_specs::{DatasetReport, InputRead, Refresh, Status};

use super::{Ended, Run, lost, version_of};
use crate::explain::cost;
use crate::follow::{Followed, Follower, Stop, why_not};
use crate::plan::{self, InputState};
use crate::query::{Input, Rows};
use crate::scanned::Scanned;
use crate::{Error, Result, rules};

/// How following ended.
pub(super) enum Following {
    Ended(Ended),
    /// It does not, for this reason.
    Full(String),
}

impl Run<'_> {
    /// Brings the view up to date by what changed; where that is not to be, the reason.
    pub(super) async fn follow(
        &self,
        view: &Table,
        inputs: &[Table],
        states: &[InputState],
        report: &mut DatasetReport,
    ) -> Result<Following> {
        let mut opened = Vec::new();
        for input in inputs {
            opened.push(Input::open(input.clone()).await?);
        }
        let follower = Follower { lake: self.lake, spec: self.spec, options: self.options, view, inputs: &opened, states };
        let followed = match self.options.cancel.run_until_cancelled(follower.follow()).await {
            None => return Err(Error::Cancelled { table: self.spec.table.clone() }),
            Some(Ok(followed)) => followed,
            Some(Err(Stop::Full(reason))) => return Ok(Following::Full(reason)),
            Some(Err(Stop::Failed(error))) => return Err(error),
            Some(Err(Stop::Lake(source))) => return Err(Error::lake("reading what feeds", &self.spec.table)(source)),
        };
        let reads = self.reads(&opened, states, &followed.changes_read, &followed.scanned).await?;
        self.commit_followed(view, followed, states, reads, report).await.map(Following::Ended)
    }

    async fn commit_followed(
        &self,
        view: &Table,
        followed: Followed,
        states: &[InputState],
        reads: Vec<InputRead>,
        report: &mut DatasetReport,
    ) -> Result<Ended> {
        let Followed { adds, removes, marks, changes, inserted, updated, deleted, rows_in, rows_out, tally, .. } = followed;
        if let Some((rule, rows)) = rules::broken(&self.spec.expectations, &tally) {
            let keys = tally.keys.get(&rule.name).cloned().unwrap_or_default();
            return Err(Error::Expectation { table: self.spec.table.clone(), expectation: rule.name.clone(), rows, keys });
        }
        self.ensure_wanted()?;
        let bytes_written = adds.iter().map(|file| file.size).chain(changes.iter().map(|file| file.size)).sum();
        let commit = Commit {
            operation: Operation::Merge,
            adds,
            removes,
            marks,
            changes,
            progress: self.progress(states),
            reads: Reads::WholeTable,
            metrics: BTreeMap::from([
                ("numTargetRowsInserted".to_owned(), inserted.to_string()),
                ("numTargetRowsUpdated".to_owned(), updated.to_string()),
                ("numTargetRowsDeleted".to_owned(), deleted.to_string()),
            ]),
            ..Commit::default()
        };
        let of_view = self.hold_to_set_rules(view, &commit).await?;
        let outcome = view.commit(commit).await.map_err(Error::lake("committing to", &self.spec.table))?;
        let CommitOutcome::Committed { version } = outcome else {
            return Ok(Ended::Lost(lost(outcome).unwrap_or_default()));
        };
        tracing::info!(view = %self.spec.table, version, inserted, updated, deleted, reason = %report.reason, "brought up to date");
        report.mode = "incremental".to_owned();
        report.status = Status::Committed;
        report.version_to = Some(version);
        report.positions = states.iter().map(|state| (state.table.to_string(), version_of(state))).collect();
        (report.rows_in, report.rows_out) = (rows_in, rows_out);
        (report.rows_inserted, report.rows_updated, report.rows_deleted) = (inserted, updated, deleted);
        report.rules = rules::counts(self.spec, &tally);
        report.rows_ignored = tally.dropped.into_iter().map(|(rule, rows)| (format!("expectation {rule}"), rows)).collect();
        report.expectations = tally.failed;
        report.expectations.extend(of_view.iter().map(|count| (count.rule.clone(), count.failed)));
        report.rules.extend(of_view);
        report.bytes_written = bytes_written;
        report.inputs = reads;
        Ok(Ended::Committed)
    }

    /// What was read of each input, beside what its log let expect.
    pub(super) async fn reads(
        &self,
        inputs: &[Input],
        states: &[InputState],
        changes_read: &BTreeMap<usize, u64>,
        scanned: &Scanned,
    ) -> Result<Vec<InputRead>> {
        let mut reads = Vec::new();
        for (at, (input, state)) in inputs.iter().zip(states).enumerate() {
            let (rows_read, bytes_read) = scanned.0.get(&at).copied().unwrap_or_default();
            let changes_estimated = match changes_read.contains_key(&at) {
                true => cost(&input.table, state).await?.0.changes_rows,
                false => 0,
            };
            reads.push(InputRead {
                table: state.table.to_string(),
                version_from: state.recorded,
                version_to: version_of(state),
                changes_estimated,
                changes_read: changes_read.get(&at).copied().unwrap_or_default(),
                rows_read,
                bytes_read,
            });
        }
        Ok(reads)
    }

    /// A view that is to follow or stop is not made in full where it could never follow.
    pub(super) fn ensure_follows(&self, rows: &Rows, inputs: &[Input]) -> Result<()> {
        if self.spec.refresh != Refresh::Incremental {
            return Ok(());
        }
        let reason = match why_not(self.spec, rows, inputs) {
            Ok(None) => return Ok(()),
            Ok(Some(reason)) | Err(Stop::Full(reason)) => reason,
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Lake(source)) => return Err(Error::lake("reading what feeds", &self.spec.table)(source)),
        };
        Err(Error::IncrementalUnavailable { table: self.spec.table.clone(), reason })
    }

    /// What a refresh in full is told to be for; a view that is not to be refreshed so stops.
    pub(super) fn in_full(&self, why: String, because: Option<String>) -> Result<String> {
        if self.spec.refresh == Refresh::Incremental && !self.options.full_refresh {
            return Err(Error::IncrementalUnavailable { table: self.spec.table.clone(), reason: because.unwrap_or(why) });
        }
        Ok(plan::reason_for_full(why, because))
    }
}
