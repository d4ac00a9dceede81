//! The refresh that takes up what changed, and its commit.

use std::collections::BTreeMap;

use tributary_lake::{Commit, Operation, Reads, Table, TakenOut};
use tributary_specs::{DatasetReport, InputRead};

use super::{Ended, Run};
use crate::definition::{DOMAIN, Definition};
use crate::follow::{Followed, Follower};
use crate::plan::InputState;
use crate::query::Input;
use crate::reached::Late;
use crate::{Error, Result};

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
        inputs: &[Input],
        states: &[InputState],
        made: Option<&Definition>,
        late: &Late,
        report: &mut DatasetReport,
    ) -> Result<Following> {
        let follower = Follower { lake: self.lake, spec: self.spec, options: self.options, view, inputs, states };
        let followed = match self.options.cancel.run_until_cancelled(follower.follow()).await {
            None => return Err(Error::Cancelled { table: self.spec.table.clone() }),
            Some(Ok(followed)) => followed,
            Some(Err(stop)) => return stop.reason(&self.spec.table).map(Following::Full),
        };
        let reads = self.reads(inputs, states, &followed.changes_read, &followed.scanned).await?;
        let reached = made.map(|made| Definition { held: followed.held.clone(), brought: late.brought.clone(), ..made.clone() });
        let domains = reached.filter(|reached| Some(reached) != made).map(|reached| (DOMAIN.to_owned(), Some(reached.to_text())));
        let ended = self.commit_followed(view, followed, states, domains.into_iter().collect(), reads, report).await?;
        if let Ended::Committed = ended {
            late.tell(report);
        }
        Ok(Following::Ended(ended))
    }

    async fn commit_followed(
        &self,
        view: &Table,
        followed: Followed,
        states: &[InputState],
        domains: BTreeMap<String, Option<String>>,
        reads: Vec<InputRead>,
        report: &mut DatasetReport,
    ) -> Result<Ended> {
        let Followed {
            files: TakenOut { adds, removes, marks }, changes, inserted, updated, deleted, rows_in, rows_out, tally, means, ..
        } = followed;
        self.ensure_unbroken(&tally)?;
        self.ensure_wanted()?;
        let commit = Commit {
            operation: Operation::Merge,
            adds,
            removes,
            marks,
            changes,
            progress: self.progress(states),
            domains,
            reads: Reads::WholeTable,
            metrics: BTreeMap::from([
                ("numTargetRowsInserted".to_owned(), inserted.to_string()),
                ("numTargetRowsUpdated".to_owned(), updated.to_string()),
                ("numTargetRowsDeleted".to_owned(), deleted.to_string()),
            ]),
            ..Commit::default()
        };
        let ended = self.commit_view(view, commit, states, tally, report).await?;
        if let Ended::Committed = ended {
            let (version, reason) = (report.version_to, &report.reason);
            tracing::info!(view = %self.spec.table, version, inserted, updated, deleted, %reason, "brought up to date");
            report.mode = "incremental".to_owned();
            report.means = means;
            report.inputs = reads;
            (report.rows_in, report.rows_out) = (rows_in, rows_out);
            (report.rows_inserted, report.rows_updated, report.rows_deleted) = (inserted, updated, deleted);
        }
        Ok(ended)
    }
}
