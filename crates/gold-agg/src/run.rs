//! Reads, plans, commits, reports.

mod follow;
mod full;
mod inputs;
mod look;

use std::time::Instant;

use tributary_lake::{Commit, CommitOutcome, Lake, Progress, Table};
use tributary_specs::{DatasetReport, GoldSpec, Refresh, RuleCount, Status, TableName};

use crate::definition::Definition;
use crate::plan::{self, Decision, InputState, WentBack};
use crate::query::Input;
use crate::reached;
use crate::rules::{self, Tally};
use crate::{Error, Options, Result};

use follow::Following;
pub use look::{Look, look};

/// Brings a view up to date with its inputs: one commit, or none when nothing moved. See the crate's promises.
///
/// # Errors
/// See [`crate::Error`]; the view is as its last commit left it.
pub async fn run(lake: &Lake, spec: &GoldSpec, options: &Options) -> Result<DatasetReport> {
    let started = Instant::now();
    let run = Run { lake, spec, options };
    let mut report = DatasetReport { table: spec.table.to_string(), mode: "full".to_owned(), ..DatasetReport::default() };
    let mut lost = String::new();
    for _ in 0..options.attempts_max.max(1) {
        match run.attempt(&mut report).await? {
            Ended::NothingNew | Ended::Committed => {
                report.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                return Ok(report);
            }
            Ended::Lost(why) => {
                tracing::info!(view = %spec.table, %why, "lost a race, planning again");
                report.conflicts += 1;
                lost = why;
            }
        }
    }
    Err(Error::Contended { table: spec.table.clone(), attempts: options.attempts_max.max(1), conflict: lost })
}

/// How an attempt ended.
enum Ended {
    NothingNew,
    Committed,
    Lost(String),
}

/// The position of an input in the view's table.
fn app_id(source: &TableName) -> String {
    format!("tributary:source:{source}")
}

/// The same for what tells which table that input is.
fn id_app_id(source: &TableName) -> String {
    format!("tributary:source-id:{source}")
}

pub(crate) struct Run<'a> {
    pub lake: &'a Lake,
    pub spec: &'a GoldSpec,
    pub options: &'a Options,
}

impl Run<'_> {
    async fn attempt(&self, report: &mut DatasetReport) -> Result<Ended> {
        self.ensure_wanted()?;
        // The view first: then no input can be older than the version the view was made from.
        let there = self.open(&self.spec.table).await?;
        if let Some(table) = &there {
            table.ensure_writable().map_err(Error::lake("writing", &self.spec.table))?;
        }
        let inputs = self.inputs().await?;
        let (states, decision) = self.decide(there.as_ref(), &inputs).await?;
        report.version_from = there.as_ref().map(Table::version);
        report.positions = states.iter().filter_map(|state| Some((state.table.to_string(), state.recorded?))).collect();
        if let Decision::Nothing(reason) = decision {
            report.reason = reason;
            report.version_to = report.version_from;
            return Ok(Ended::NothingNew);
        }
        let inputs = Input::open_all(&inputs).await?;
        let made = self.made(there.as_ref()).await?;
        let late = Box::pin(reached::late(self.spec, &inputs, &states, made.as_ref())).await?;
        report.reason = match (decision, &there) {
            (Decision::Nothing(reason) | Decision::Make(reason), _) => reason,
            (Decision::Follow(reason), Some(view)) if self.spec.refresh != Refresh::Full => {
                report.reason.clone_from(&reason);
                match Box::pin(self.follow(view, &inputs, &states, made.as_ref(), &late, report)).await? {
                    Following::Ended(ended) => return Ok(ended),
                    Following::Full(because) => self.in_full(reason, Some(because))?,
                }
            }
            (Decision::Follow(reason) | Decision::Refresh(reason), _) => self.in_full(reason, None)?,
        };
        Box::pin(self.refresh(there, &inputs, &states, &late, report)).await
    }

    /// Where the view is in its inputs, and what is therefore to be done.
    pub(crate) async fn decide(&self, there: Option<&Table>, inputs: &[Table]) -> Result<(Vec<InputState>, Decision)> {
        let states = self.states(there, inputs).await?;
        let mut made = None;
        if let Some(table) = there {
            made = Definition::of_table(table).await.map_err(Error::lake("reading", &self.spec.table))?;
            if made.is_none() {
                self.ensure_empty(table).await?;
            }
            if self.options.full_refresh {
                return Ok((states, Decision::Refresh("a full refresh was asked for".to_owned())));
            }
        }
        let wanted = Definition::of(self.spec, &self.options.called, false).digest;
        let decision = plan::decide(made.as_ref(), &wanted, &states).map_err(|back| self.went_back(back))?;
        Ok((states, decision))
    }

    /// What the view's table was made from, where that goes on.
    async fn made(&self, there: Option<&Table>) -> Result<Option<Definition>> {
        let Some(table) = there.filter(|_| !self.options.full_refresh) else { return Ok(None) };
        let made = Definition::of_table(table).await.map_err(Error::lake("reading", &self.spec.table))?;
        let wanted = Definition::of(self.spec, &self.options.called, false).digest;
        Ok(made.filter(|made| made.digest == wanted))
    }

    fn ensure_wanted(&self) -> Result<()> {
        match self.options.cancel.is_cancelled() {
            true => Err(Error::Cancelled { table: self.spec.table.clone() }),
            false => Ok(()),
        }
    }

    /// A table that no view made yet is taken over only without rows, as `setup` makes it.
    async fn ensure_empty(&self, table: &Table) -> Result<()> {
        let files = table.files().await.map_err(Error::lake("reading", &self.spec.table))?;
        match files.is_empty() {
            true => Ok(()),
            false => Err(Error::NotAView { table: self.spec.table.clone() }),
        }
    }

    fn went_back(&self, back: WentBack) -> Error {
        let WentBack { table, recorded, latest } = back;
        Error::SourceWentBack { table: self.spec.table.clone(), source_table: table, position: recorded, latest }
    }

    /// What a refresh in full is told to be for; a view that is not to be refreshed so stops.
    fn in_full(&self, why: String, because: Option<String>) -> Result<String> {
        plan::in_full(self.spec.refresh, self.options.full_refresh, why, because)
            .map_err(|reason| Error::IncrementalUnavailable { table: self.spec.table.clone(), reason })
    }

    /// Stops where a row breaks a rule that forbids it.
    fn ensure_unbroken(&self, tally: &Tally) -> Result<()> {
        let Some((rule, rows)) = rules::broken(&self.spec.expectations, tally) else { return Ok(()) };
        let keys = tally.keys.get(&rule.name).cloned().unwrap_or_default();
        Err(Error::Expectation { table: self.spec.table.clone(), expectation: rule.name.clone(), rows, keys })
    }

    /// Commits to the view where its rules allow it, and reports what every refresh has to.
    async fn commit_view(
        &self,
        table: &Table,
        commit: Commit,
        states: &[InputState],
        tally: Tally,
        report: &mut DatasetReport,
    ) -> Result<Ended> {
        let bytes_written = commit.adds.iter().map(|file| file.size).chain(commit.changes.iter().map(|file| file.size)).sum();
        let of_view = self.hold_to_set_rules(table, &commit).await?;
        let outcome = table.commit(commit).await.map_err(Error::lake("committing to", &self.spec.table))?;
        let CommitOutcome::Committed { version } = outcome else {
            return Ok(Ended::Lost(lost(outcome).unwrap_or_default()));
        };
        report.status = Status::Committed;
        report.version_to = Some(version);
        report.positions = states.iter().map(|state| (state.table.to_string(), version_of(state))).collect();
        report.rules = rules::counts(self.spec, &tally);
        report.rows_ignored = tally.dropped.into_iter().map(|(rule, rows)| (format!("expectation {rule}"), rows)).collect();
        report.expectations = tally.failed;
        report.expectations.extend(of_view.iter().map(|count| (count.rule.clone(), count.failed)));
        report.rules.extend(of_view);
        report.bytes_written = bytes_written;
        Ok(Ended::Committed)
    }

    /// What the rules of the whole view come to once the commit is in it.
    async fn hold_to_set_rules(&self, table: &Table, commit: &Commit) -> Result<Vec<RuleCount>> {
        let memory_limit = self.lake.options().memory_limit / 2;
        let findings = table.set_findings(commit, &self.spec.set_expectations, memory_limit).await;
        let findings = findings.map_err(Error::lake("reading", &self.spec.table))?;
        if let Some((finding, broken)) = findings.iter().find_map(|finding| Some((finding, finding.stop()?))) {
            let (table, expectation) = (self.spec.table.clone(), finding.rule.clone());
            return Err(Error::SetExpectation { table, expectation, reason: broken.reason.clone(), keys: broken.keys.clone() });
        }
        Ok(findings.iter().map(|finding| finding.count(&self.spec.table.name)).collect())
    }

    fn progress(&self, states: &[InputState]) -> Vec<Progress> {
        let of = |state: &InputState| {
            let reached = Progress { app_id: app_id(&state.table), expected: state.recorded, version: version_of(state) };
            let table = Progress { app_id: id_app_id(&state.table), expected: state.recorded_identity, version: state.identity };
            [Some(reached), (table.expected != Some(table.version)).then_some(table)]
        };
        states.iter().flat_map(of).flatten().collect()
    }
}

/// Versions of Delta tables fit into the log's signed numbers.
fn version_of(state: &InputState) -> i64 {
    i64::try_from(state.version).unwrap_or(i64::MAX)
}

/// Why an outcome is no commit.
fn lost(outcome: CommitOutcome) -> Option<String> {
    match outcome {
        CommitOutcome::Committed { .. } => None,
        CommitOutcome::Conflicted(conflict) => Some(conflict.to_string()),
        CommitOutcome::Fenced { app_id, .. } => Some(format!("another run moved the position {app_id}")),
    }
}
