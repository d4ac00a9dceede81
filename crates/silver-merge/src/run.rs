//! Reads, plans, commits, reports.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tributary_lake::{Commit, CommitOutcome, Lake, Progress, Table};
use tributary_specs::{DatasetReport, MergePolicy, SilverSpec, Status, TableSpec};

use crate::append::append_rows;
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::intake::{Findings, Intake, Range, merge};
use crate::judge::Judge;
use crate::merge::merge_keyed;
use crate::options::Options;
use crate::plan::Counts;
use crate::quarantine::Quarantine;
use crate::select::Selection;
use crate::source::Source;
use crate::state::State;
use crate::target::{Target, create, is_new};
use crate::widen::widen;
use crate::writes::Changed;

/// How the application id of a consumed source begins.
pub(crate) const SOURCE_PREFIX: &str = "tributary:source:";
/// The same for what tells which table that source is.
const SOURCE_ID_PREFIX: &str = "tributary:source-id:";

/// Brings a silver dataset up to date with what its source holds when the run begins: in one commit, or in one for each
/// [`Options::source_versions_max`] versions.
///
/// Safe to repeat, to overlap with itself, to cancel and to drop at any point: the position rides in the commit, a run that
/// has lost its place does not commit, and a lost race is planned again from a fresh snapshot.
///
/// # Errors
/// See [`Error`]; the table is as its last commit left it.
pub async fn run(lake: &Lake, spec: &SilverSpec, options: &Options) -> Result<DatasetReport> {
    let started = lake.clock().now();
    let mut done: Option<DatasetReport> = None;
    let mut goal = Goal::default();
    let mut conflicts = 0;
    loop {
        match attempt(lake, spec, options, started, &mut goal).await? {
            Ended::Empty(to) => goal.empty_to = Some(to),
            Ended::Widened(note) => goal.widened.push(note),
            Ended::Report(report) => {
                let finished = !report.positions.values().any(|reached| goal.until.is_some_and(|until| (*reached as u64) < until));
                let mut report = done.map_or_else(|| (*report).clone(), |done| both(done, &report));
                report.conflicts = conflicts;
                report.notes.splice(0..0, goal.widened.drain(..));
                if finished {
                    return Ok(report);
                }
                done = Some(report);
            }
            Ended::Lost(outcome) => {
                conflicts += 1;
                tracing::info!(table = %spec.table, ?outcome, conflicts, "a race was lost: planning again");
                if conflicts >= u64::from(options.attempts_max.max(1)) {
                    return Err(lost(spec, conflicts, outcome));
                }
            }
        }
    }
}

/// The report of two commits of one run.
fn both(first: DatasetReport, second: &DatasetReport) -> DatasetReport {
    if second.status == Status::NothingNew {
        return first;
    }
    let mut report = second.clone();
    merge(&mut report.rows_ignored, &first.rows_ignored);
    merge(&mut report.expectations, &first.expectations);
    report.rows_in += first.rows_in;
    report.rows_out += first.rows_out;
    report.rows_quarantined += first.rows_quarantined;
    report.rows_inserted += first.rows_inserted;
    report.rows_updated += first.rows_updated;
    report.rows_deleted += first.rows_deleted;
    report.ties += first.ties;
    report.bytes_written += first.bytes_written;
    report.version_from = first.version_from;
    report.reason = format!("{} new rows in several commits", report.rows_in);
    report.notes = first.notes.into_iter().chain(report.notes).collect();
    report
}

/// What `setup` creates for a silver dataset; none where a source is not there, or has no rows yet and not every column that the
/// spec names, so that only the first run can tell.
///
/// # Errors
/// When the spec cannot be planned over its sources.
pub async fn table_spec(lake: &Lake, spec: &SilverSpec, options: &Options) -> Result<Option<TableSpec>> {
    let Some(source) = spec.sources.first() else { return Err(Error::spec(&spec.table, "it names no source")) };
    let Some(table) = open(lake, source).await? else { return Ok(None) };
    let is_new = is_new(&table);
    match Planned::new(lake, spec, options, &Source::new(table), None).await {
        Ok(plan) => Ok(Some(plan.target.table_spec(spec))),
        Err(Error::NoSource { .. }) => Ok(None),
        Err(error) if is_new && error.is_of_unknown_column() => Ok(None),
        Err(error) => Err(error),
    }
}

/// How far a run goes.
#[derive(Debug, Default)]
struct Goal {
    /// The source's latest version when the run began.
    until: Option<u64>,
    /// No row is in the versions up to this one that the target has not consumed.
    empty_to: Option<u64>,
    /// What is to be said of wider columns.
    widened: Vec<String>,
}

/// How an attempt ended.
pub(crate) enum Ended {
    /// No version of the source up to this one has new rows, but later ones are left.
    Empty(u64),
    /// With the table rewritten in wider types, and nothing of the source read yet; what is to be said of it.
    Widened(String),
    /// With a commit, or with nothing to do.
    Report(Box<DatasetReport>),
    /// With a race lost.
    Lost(CommitOutcome),
}

/// One attempt: what was found before anything was planned.
pub(crate) struct Attempt<'a> {
    pub lake: &'a Lake,
    pub spec: &'a SilverSpec,
    pub options: &'a Options,
    pub existing: Option<Table>,
    /// The target's position in its source.
    pub position: Option<i64>,
    /// The version of the source the commit will be at.
    pub to: u64,
    /// The version of the source the run ends at.
    until: u64,
    quarantine: Quarantine,
    source: String,
    source_identity: Identity,
    started: DateTime<Utc>,
}

/// What a commit did, for the report.
pub(crate) struct Tally {
    pub findings: Findings,
    pub counts: Counts,
    pub changed: Changed,
    pub bytes: u64,
    /// Rows by column whose value no event has brought.
    pub unknown: BTreeMap<String, u64>,
    /// Slices of keys it took.
    pub slices: usize,
    pub mode: &'static str,
}

struct Planned {
    selection: Selection,
    judge: Judge,
    target: Target,
}

impl Planned {
    async fn new(lake: &Lake, spec: &SilverSpec, options: &Options, source: &Source, existing: Option<&Table>) -> Result<Self> {
        let mut lookups = Vec::new();
        for name in &spec.sources[1..] {
            let missing = || Error::NoSource { table: spec.table.clone(), source_table: Box::new(name.clone()) };
            lookups.push(open(lake, name).await?.ok_or_else(missing)?);
        }
        let selection = Selection::plan(lake, spec, options, source, &lookups).await?;
        let judge = Judge::new(spec, source, &selection)?;
        let target = Target::new(spec, &selection, &judge, source.has_positions().await?, existing)?;
        Ok(Self { selection, judge, target })
    }
}

async fn open(lake: &Lake, name: &tributary_specs::TableName) -> Result<Option<Table>> {
    lake.table(name).await.map_err(|source| Error::lake("open", name, source))
}

/// One commit, of versions up to the goal that the first attempt sets.
async fn attempt(lake: &Lake, spec: &SilverSpec, options: &Options, started: DateTime<Utc>, goal: &mut Goal) -> Result<Ended> {
    let Some(name) = spec.sources.first() else { return Err(Error::spec(&spec.table, "it names no source")) };
    let app_id = format!("{SOURCE_PREFIX}{name}");
    let existing = open(lake, &spec.table).await?;
    let position = match &existing {
        Some(table) => table.progress(&app_id).await.map_err(|source| Error::lake("read positions of", &spec.table, source))?,
        None => None,
    };
    let id_app_id = format!("{SOURCE_ID_PREFIX}{name}");
    let quarantine = Quarantine::open(lake, spec, &app_id, &id_app_id).await?;
    let recorded = Identity::recorded(existing.as_ref(), id_app_id).await;
    let source_identity = recorded.map_err(|source| Error::lake("read positions of", &spec.table, source))?;
    let mut attempt =
        Attempt { lake, spec, options, existing, position, to: 0, until: 0, quarantine, source: app_id, source_identity, started };
    let Some(source) = open(lake, name).await? else {
        if position.is_some() {
            return Err(Error::NoSource { table: spec.table.clone(), source_table: Box::new(name.clone()) });
        }
        return Ok(Ended::Report(Box::new(attempt.nothing_new(&format!("its source `{name}` does not exist yet")))));
    };
    let source = Source::new(source);
    let latest = source.table.version();
    let made_again = attempt.source_identity.is_not(&source.table);
    if made_again || position.is_some_and(|position| position > latest as i64) {
        return Err(Error::SourceWentBack {
            table: spec.table.clone(),
            source_table: Box::new(name.clone()),
            position: position.unwrap_or_default(),
            latest,
            made_again,
        });
    }
    let latest = *goal.until.get_or_insert(latest);
    let from = match position {
        Some(position) => u64::try_from(position).ok(),
        None => options.starting_version.checked_sub(1),
    };
    let first = from.map_or(0, |from| from + 1);
    if first > latest {
        return Ok(Ended::Report(Box::new(attempt.nothing_new("its source has no new version"))));
    }
    attempt.until = latest;
    let begin = goal.empty_to.map_or(first, |empty| first.max(empty + 1));
    attempt.to = options.source_versions_max.map_or(latest, |most| latest.min(begin + most.max(1) - 1));
    if let Some(table) = &attempt.existing {
        table.ensure_writable().map_err(|source| Error::lake("write to", &spec.table, source))?;
    }
    let state = match spec.policy {
        MergePolicy::Append => None,
        _ => {
            let ignores_position = crate::controls::state_above_target_position(lake.options());
            Some(State::open(lake, &spec.table, attempt.existing.as_ref(), position, ignores_position).await?)
        }
    };
    let Planned { selection, judge, target } = Planned::new(lake, spec, options, &source, attempt.existing.as_ref()).await?;
    if let Some(table) = attempt.existing.as_ref().filter(|_| !target.widened.is_empty()) {
        return widen(&attempt, table, &target, state.as_ref()).await;
    }
    let ranges = attempt.ranges(&source, from);
    let intake = Intake { spec, options, source: &source, selection: &selection, judge: &judge, target: &target, ranges };
    match &state {
        None => append_rows(&attempt, &intake).await,
        Some(state) => merge_keyed(&attempt, &intake, state).await,
    }
}

impl Attempt<'_> {
    /// The versions to read; those that quarantine has seen already apart.
    fn ranges(&self, source: &Source, from: Option<u64>) -> Vec<Range> {
        let seen = self.quarantine.seen(source).and_then(|seen| u64::try_from(seen).ok()).map(|seen| seen.min(self.to));
        match seen.filter(|seen| from.is_none_or(|from| *seen > from)) {
            None => vec![Range { from, to: self.to, sets_aside: true }],
            Some(seen) if seen == self.to => vec![Range { from, to: self.to, sets_aside: false }],
            Some(seen) => vec![Range { from, to: seen, sets_aside: false }, Range { from: Some(seen), to: self.to, sets_aside: true }],
        }
    }

    /// The target, made first where it is not there, and brought up to date where an older release made it.
    pub async fn open_or_create(&self, target: &Target) -> Result<Table> {
        let spec = target.table_spec(self.spec);
        let Some(table) = &self.existing else { return create(self.lake, &spec).await };
        self.lake.bring_up_to_date(table.clone(), &spec).await.map_err(|source| Error::lake("write to", &spec.name, source))
    }

    /// Where the target will be in its source, and which table that is.
    pub fn source_progress(&self, source: &Source) -> Vec<Progress> {
        std::iter::once(self.reached()).chain(self.source_identity.take_on(&source.table)).collect()
    }

    fn reached(&self) -> Progress {
        Progress { app_id: self.source.clone(), expected: self.position, version: self.to as i64 }
    }

    /// Commits rejected rows, before the target; gives the outcome of a lost race.
    pub async fn set_aside(&self, intake: &Intake<'_>, findings: &Findings) -> Result<Option<CommitOutcome>> {
        if findings.rejected.is_empty() {
            return Ok(None);
        }
        self.quarantine.commit(self.lake, intake, &findings.rejected, self.reached(), &self.options.run_id).await
    }

    /// The one commit of the target, and what to say of it.
    pub async fn commit(&self, table: &Table, intake: &Intake<'_>, commit: Commit, tally: Tally) -> Result<Ended> {
        if self.options.cancel.is_cancelled() {
            return Err(Error::Cancelled { table: self.spec.table.clone() });
        }
        match table.commit(commit).await.map_err(|source| Error::lake("commit to", &self.spec.table, source))? {
            CommitOutcome::Committed { version } => Ok(Ended::Report(Box::new(self.report(intake, tally, version)))),
            lost => Ok(Ended::Lost(lost)),
        }
    }

    fn report(&self, intake: &Intake<'_>, tally: Tally, version: u64) -> DatasetReport {
        let Tally { findings, counts, changed, bytes, unknown, slices, mode } = tally;
        let slices = if slices > 1 { format!(" in {slices} slices of keys") } else { String::new() };
        let mut ignored = findings.ignored;
        for (reason, count) in [("duplicate", counts.duplicates), ("superseded", counts.superseded), ("late_earlier", counts.late_earlier)]
        {
            merge(&mut ignored, &BTreeMap::from([(reason.to_owned(), count)]));
        }
        ignored.retain(|_, count| *count > 0);
        let mut notes = Vec::new();
        if intake.target.grows {
            let had = |name: &str| self.existing.as_ref().is_some_and(|table| table.columns().iter().any(|column| column.name == name));
            let new: Vec<&str> = intake.target.columns.iter().map(|column| column.name.as_str()).filter(|name| !had(name)).collect();
            notes.push(if new.is_empty() { "a struct has more fields".to_owned() } else { format!("columns added: {}", new.join(", ")) });
        }
        notes.extend(self.said_otherwise(intake.target));
        notes.extend(
            unknown.iter().map(|(column, rows)| format!("column `{column}` is unknown in {rows} rows written: its source has not sent it")),
        );
        DatasetReport {
            status: Status::Committed,
            rows_in: findings.rows,
            rows_out: counts.applied,
            rows_quarantined: findings.quarantined,
            rows_ignored: ignored,
            rows_inserted: changed.inserted,
            rows_updated: changed.updated,
            rows_deleted: changed.deleted,
            expectations: findings.expectations,
            ties: counts.ties,
            version_to: Some(version),
            positions: BTreeMap::from([(intake.source.name().to_string(), self.to as i64)]),
            bytes_written: bytes,
            mode: mode.to_owned(),
            reason: format!("{} new rows of {}{slices}", findings.rows, intake.source.name()),
            notes,
            ..self.blank()
        }
    }

    /// Where the table that was there is without what it is declared with, or has what it is declared without.
    fn said_otherwise(&self, target: &Target) -> Vec<String> {
        let spec = target.table_spec(self.spec);
        let differences = self.existing.iter().flat_map(|table| table.said_otherwise(&spec));
        differences.map(|difference| format!("the table is obeyed, not the declaration: {difference}; setup changes the table")).collect()
    }

    /// No row is in the versions read. A table that is not there yet is made, so that what reads it finds it.
    pub async fn no_rows(&self, target: &Target) -> Result<Ended> {
        if self.to < self.until {
            return Ok(Ended::Empty(self.to));
        }
        let mut report = self.nothing_new("the new versions of its source hold no rows");
        if self.existing.is_none() {
            report.version_to = Some(self.open_or_create(target).await?.version());
            report.status = Status::Committed;
            "created; its source holds no rows yet".clone_into(&mut report.reason);
        }
        Ok(Ended::Report(Box::new(report)))
    }

    /// A report of a run that found nothing to do.
    fn nothing_new(&self, reason: &str) -> DatasetReport {
        let version = self.existing.as_ref().map(Table::version);
        DatasetReport { status: Status::NothingNew, version_to: version, reason: reason.to_owned(), ..self.blank() }
    }

    fn blank(&self) -> DatasetReport {
        let millis = (self.lake.clock().now() - self.started).num_milliseconds();
        DatasetReport {
            table: self.spec.table.to_string(),
            version_from: self.existing.as_ref().map(Table::version),
            millis: u64::try_from(millis).unwrap_or_default(),
            ..DatasetReport::default()
        }
    }
}

fn lost(spec: &SilverSpec, attempts: u64, outcome: CommitOutcome) -> Error {
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    match outcome {
        CommitOutcome::Fenced { app_id, .. } => Error::Busy { table: spec.table.clone(), app_id, attempts },
        CommitOutcome::Conflicted(conflict) => Error::Contended { table: spec.table.clone(), attempts, conflict: Box::new(conflict) },
        CommitOutcome::Committed { .. } => {
            Error::Contended { table: spec.table.clone(), attempts, conflict: Box::new(tributary_lake::Conflict::Attempts { attempts }) }
        }
    }
}
