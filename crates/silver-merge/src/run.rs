//! Reads, plans, commits, reports.

use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use tributary_lake::{Commit, CommitOutcome, DataFile, Lake, Operation, Progress, Reads, Table};
use tributary_specs::{DatasetReport, MergePolicy, RuleCount, SilverSpec, Status, TableSpec};

use crate::append::append_rows;
use crate::controls;
use crate::error::{Error, Result};
use crate::flow::{self, Positions, Whereabouts};
use crate::identity::Identity;
use crate::intake::{Findings, Intake};
use crate::judge::Judge;
use crate::late::{self, Lateness};
use crate::merge::merge_keyed;
use crate::options::Options;
use crate::quarantine::Quarantine;
use crate::reach::{Goal, Reach, Start};
use crate::refresh;
use crate::report::{CameTo, Tally, beside, both};
use crate::select::Selection;
use crate::source::Source;
use crate::state::{State, StateReads};
use crate::target::{Target, create, is_new};
use crate::widen::widen;

/// Brings a silver dataset up to date with what its sources hold when the run begins, flow by flow: each in one commit, or in one for
/// each [`Options::source_versions_max`] versions.
///
/// Safe to repeat, to overlap with itself, to cancel and to drop at any point: the position of a flow rides in the commit of its rows,
/// a run that has lost its place does not commit, and a lost race is planned again from a fresh snapshot. A flow that fails does not
/// keep the others from going on.
///
/// # Errors
/// See [`Error`], that of the first flow that failed; the table is as its last commit left it.
pub async fn run(lake: &Lake, spec: &SilverSpec, options: &Options) -> Result<DatasetReport> {
    let (flows, started) = (spec.each_flow(), lake.clock().now());
    let (mut done, mut failed) = (None::<DatasetReport>, None);
    for (at, flow) in flows.iter().enumerate() {
        // What replaces the table has set the other flows back.
        let mut options = options.clone();
        options.full_refresh &= at == 0;
        options.build = options.build.filter(|_| at == 0);
        let run = FlowRun { lake, spec: flow, flows: &flows, options: &options, started };
        // Boxed: who calls this in a future of its own has it on a thread's stack.
        match Box::pin(run.run()).await {
            Ok(report) => done = Some(done.map_or_else(|| report.clone(), |done| beside(done, &report))),
            Err(error @ Error::Cancelled { .. }) => return Err(error),
            Err(error) if options.full_refresh => return Err(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match (failed, done) {
        (Some(error), _) => Err(error),
        (None, Some(report)) => Ok(report),
        (None, None) => Err(Error::spec(&spec.table, "it has no flow")),
    }
}

/// A run of one flow.
#[derive(Clone, Copy)]
struct FlowRun<'a> {
    lake: &'a Lake,
    /// The dataset as the flow has it.
    spec: &'a SilverSpec,
    /// All flows of the dataset.
    flows: &'a [SilverSpec],
    options: &'a Options,
    /// When the run of the dataset began.
    started: DateTime<Utc>,
}

impl FlowRun<'_> {
    async fn run(self) -> Result<DatasetReport> {
        let mut done: Option<DatasetReport> = None;
        let (mut goal, mut widened) = (Goal::default(), Vec::new());
        let mut conflicts = 0;
        loop {
            match attempt(self, &mut goal).await? {
                Ended::TakenOver => {}
                Ended::Empty(to) => goal.empty_to = Some(to),
                Ended::Widened(note) => widened.push(note),
                Ended::Report(report) => {
                    let finished = !report.positions.values().any(|reached| goal.until.is_some_and(|until| (*reached as u64) < until));
                    let mut report = done.map_or_else(|| (*report).clone(), |done| both(done, &report));
                    report.conflicts = conflicts;
                    report.notes.splice(0..0, widened.drain(..));
                    if finished {
                        return Ok(report);
                    }
                    done = Some(report);
                }
                Ended::Lost(outcome) => {
                    conflicts += 1;
                    tracing::info!(table = %self.spec.table, ?outcome, conflicts, "a race was lost: planning again");
                    if conflicts >= u64::from(self.options.attempts_max.max(1)) {
                        return Err(lost(self.spec, conflicts, outcome));
                    }
                }
            }
        }
    }

    /// Gives positions that are kept by a source's name to their flows; none where there are none. What replaces the table sets them
    /// back instead.
    async fn take_over(&self, existing: Option<&Table>, positions: &Positions) -> Result<Option<Ended>> {
        if self.options.full_refresh || controls::flows_share_one_position(self.lake.options()) {
            return Ok(None);
        }
        let progress = flow::take_over(self.flows, positions)?;
        let Some(table) = existing.filter(|_| !progress.is_empty()) else { return Ok(None) };
        let commit = Commit { operation: Operation::Write, progress, reads: Reads::BlindAppend, ..Commit::default() };
        Ok(Some(match table.commit(commit).await.map_err(|source| Error::lake("commit to", &self.spec.table, source))? {
            CommitOutcome::Committed { .. } => Ended::TakenOver,
            lost => Ended::Lost(lost),
        }))
    }
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
    let flows = spec.each_flow();
    let run = FlowRun { lake, spec: &flows[0], flows: &flows, options, started: lake.clock().now() };
    let planned = match Planned::new(run, &Source::new(table, spec), None).await {
        Ok(plan) => further(run, &flows[1..]).await.map(|()| plan),
        Err(error) => Err(error),
    };
    match planned {
        Ok(plan) => Ok(Some(plan.target.table_spec(spec))),
        Err(Error::NoSource { .. }) => Ok(None),
        Err(error) if is_new && error.is_of_unknown_column() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Plans further flows, as far as their sources are there.
async fn further(run: FlowRun<'_>, flows: &[SilverSpec]) -> Result<()> {
    for flow in flows {
        let Some(name) = flow.sources.first() else { continue };
        let Some(table) = open(run.lake, name).await? else { continue };
        let options = Options { build: None, ..run.options.clone() };
        let run = FlowRun { spec: flow, options: &options, ..run };
        match Planned::new(run, &Source::new(table, flow), None).await {
            Ok(_) | Err(Error::NoSource { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How an attempt ended.
pub(crate) enum Ended {
    /// No version of the source up to this one has new rows, but later ones are left.
    Empty(u64),
    /// With the table rewritten in wider types, and nothing of the source read yet; what is to be said of it.
    Widened(String),
    /// With a commit, or with nothing to do.
    Report(Box<DatasetReport>),
    /// With a position given to its flow, and nothing read yet.
    TakenOver,
    /// With a race lost.
    Lost(CommitOutcome),
}

/// One attempt: what was found before anything was planned.
pub(crate) struct Attempt<'a> {
    pub lake: &'a Lake,
    pub spec: &'a SilverSpec,
    pub options: &'a Options,
    pub existing: Option<Table>,
    /// Whether the commit replaces all rows that are there.
    pub replaces: bool,
    /// Where the flow is in its source.
    pub place: Whereabouts,
    /// Where all flows are in theirs.
    positions: Positions,
    /// The versions of the source that the commit takes up.
    pub reach: Reach,
    quarantine: Quarantine,
    source_identity: Identity,
    pub started: DateTime<Utc>,
}

struct Planned {
    selection: Selection,
    judge: Judge,
    target: Target,
}

impl Planned {
    async fn new(run: FlowRun<'_>, source: &Source, existing: Option<&Table>) -> Result<Self> {
        let FlowRun { lake, spec, options, .. } = run;
        let mut lookups = Vec::new();
        for name in &spec.sources[1..] {
            let missing = || Error::NoSource { table: spec.table.clone(), source_table: Box::new(name.clone()) };
            lookups.push(open(lake, name).await?.ok_or_else(missing)?);
        }
        let selection = Selection::plan(lake, spec, options, source, &lookups).await?;
        let mut judge = Judge::new(spec, source, &selection, existing)?;
        if run.flows.len() > 1 {
            judge.of_several_flows();
        }
        let target = Target::new(spec, &selection, &judge, run.have_positions(source).await?, existing)?;
        target.generated().for_each(|(column, from)| judge.is_generated(column, from));
        Ok(Self { selection, judge, target })
    }
}

impl FlowRun<'_> {
    /// A definition that can no longer be carried out is told though nothing is new. It is planned only where it is another than the one
    /// that the table was last written with: a dataset that stays as it is costs nothing here.
    async fn ensure_carried_out(self, source: Option<Table>, existing: Option<&Table>) -> Result<()> {
        let Some((source, existing)) = source.zip(existing.filter(|table| table.gets_another_text())) else { return Ok(()) };
        let is_new = is_new(&source);
        match Planned::new(self, &Source::new(source, self.spec), Some(existing)).await {
            // as of what is not there yet, and of what only first rows can tell
            Ok(_) | Err(Error::NoSource { .. }) => Ok(()),
            Err(error) if is_new && error.is_of_unknown_column() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether rows of any flow's source have a position, for all flows of a table are in one order.
    async fn have_positions(&self, source: &Source) -> Result<Option<bool>> {
        let mut known = source.has_positions().await?;
        for flow in self.flows.iter().filter(|_| self.flows.len() > 1) {
            if known == Some(true) {
                break;
            }
            let Some(name) = flow.sources.first() else { continue };
            let Some(table) = open(self.lake, name).await? else { continue };
            known = Source::new(table, flow).has_positions().await?.max(known);
        }
        Ok(known)
    }
}

async fn open(lake: &Lake, name: &tributary_specs::TableName) -> Result<Option<Table>> {
    lake.table(name).await.map_err(|source| Error::lake("open", name, source))
}

/// One commit, of versions up to the goal that the first attempt sets.
async fn attempt(run: FlowRun<'_>, goal: &mut Goal) -> Result<Ended> {
    let FlowRun { lake, spec, options, started, .. } = run;
    let Some(name) = spec.sources.first() else { return Err(Error::spec(&spec.table, "it names no source")) };
    let of_target = |source| Error::lake("read positions of", &spec.table, source);
    let existing = open(lake, &spec.table).await?;
    let positions = Positions::of(existing.as_ref()).await.map_err(of_target)?;
    if let Some(ended) = run.take_over(existing.as_ref(), &positions).await? {
        return Ok(ended);
    }
    let place = Whereabouts::of(spec, name, &positions, lake.options());
    if positions.are_of_feed() {
        // Flows would bring its records once more.
        let (found, declared) = ("the records of a feed".to_owned(), "flows of its own".to_owned());
        return Err(Error::Remade { table: spec.table.clone(), found, declared });
    }
    let quarantine = Quarantine::open(lake, spec, &place).await?;
    let source_identity = Identity::recorded(existing.as_ref(), place.id_app_id.clone()).await.map_err(of_target)?;
    let replaces = options.full_refresh && existing.is_some();
    let position = place.position().filter(|_| !replaces);
    let reach = Reach::default();
    let mut attempt = Attempt { lake, spec, options, existing, replaces, place, positions, reach, quarantine, source_identity, started };
    let source = open(lake, name).await?;
    if let Some(version) = position.filter(|_| spec.once) {
        run.ensure_carried_out(source, attempt.existing.as_ref()).await?;
        return Ok(Ended::Report(Box::new(attempt.nothing_new(&format!("it has run once, over version {version} of `{name}`")))));
    }
    let Some(source) = source else {
        if position.is_some() || replaces {
            return Err(Error::NoSource { table: spec.table.clone(), source_table: Box::new(name.clone()) });
        }
        return Ok(Ended::Report(Box::new(attempt.nothing_new(&format!("its source `{name}` does not exist yet")))));
    };
    let source = Source::new(source, spec).passing_over_changes(options.skip_change_commits && !replaces);
    let latest = source.table.version();
    let made_again = attempt.source_identity.is_not(&source.table);
    if let Some(position) = position.filter(|position| made_again || *position > latest as i64) {
        let (table, source_table) = (spec.table.clone(), Box::new(name.clone()));
        return Err(Error::SourceWentBack { table, source_table, position, latest, made_again });
    }
    goal.until.get_or_insert(spec.stream.until().map_or(latest, |until| until.min(latest)));
    let quarantined = attempt.quarantine.seen(&source).filter(|_| !replaces && !attempt.place.is_set_back());
    let mut start = Start { position, quarantined, replaces, whole: false };
    let may_be_parted = start.may_be_parted(spec, options) && !controls::first_read_in_parts(lake.options());
    let by_version = spec.watermark.is_some() && !spec.once;
    start.whole = (may_be_parted || (by_version && position.is_none())) && source.is_first_read_whole(goal.until.unwrap_or(latest)).await?;
    let Some(reach) = Reach::plan(spec, options, start, goal, latest) else {
        run.ensure_carried_out(Some(source.table), attempt.existing.as_ref()).await?;
        return Ok(Ended::Report(Box::new(attempt.nothing_new("its source has no new version"))));
    };
    attempt.reach = reach;
    if let Some(table) = &attempt.existing {
        table.ensure_writable().map_err(|source| Error::lake("write to", &spec.table, source))?;
    }
    if attempt.replaced().is_some() {
        attempt.ensure_no_shorter(&source).await?;
    }
    let state = match spec.policy {
        MergePolicy::Append => None,
        _ => {
            let reads = match controls::state_above_target_position(lake.options()) {
                _ if replaces => StateReads::Nothing,
                true => StateReads::Latest,
                false => StateReads::Named,
            };
            Some(State::open(lake, &spec.table, attempt.existing.as_ref(), attempt.positions.reached(), reads).await?)
        }
    };
    let planned_on = attempt.existing.as_ref().filter(|_| !replaces);
    let Planned { selection, judge, mut target } = Planned::new(run, &source, planned_on).await?;
    target.lies = attempt.replaced().and_then(|table| refresh::layout(spec, table));
    target.grows |= attempt.replaced().is_some_and(|table| table.columns() != target.columns);
    if let Some(table) = attempt.existing.as_ref().filter(|_| !target.widened.is_empty()) {
        return widen(&attempt, table, &target, state.as_ref()).await;
    }
    let lateness = Lateness::new(spec, &source, &attempt.place, &attempt.positions, position.is_none())?;
    let mut ranges = reach.ranges(spec, start);
    if by_version && !start.whole && (position.is_some() || source.reaches_back().await?) {
        ranges = late::by_version(ranges);
    }
    let intake = Intake { spec, options, source: &source, selection: &selection, judge: &judge, target: &target, ranges, lateness };
    take_up(&attempt, &intake, state.as_ref()).await
}

/// Boxed where no other future has its place, so that the stack of an attempt is not that of all it may come to.
fn take_up<'a>(attempt: &'a Attempt<'a>, intake: &'a Intake<'a>, state: Option<&'a State>) -> BoxFuture<'a, Result<Ended>> {
    match state {
        None => append_rows(attempt, intake).boxed(),
        Some(state) => merge_keyed(attempt, intake, state).boxed(),
    }
}

impl Attempt<'_> {
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
        Progress { app_id: self.place.app_id.clone(), expected: self.place.recorded, version: self.reach.to as i64 }
    }

    /// The table whose rows are all replaced, where they are.
    fn replaced(&self) -> Option<&Table> {
        self.existing.as_ref().filter(|_| self.replaces)
    }

    /// Refuses to build the table anew from a source that no longer has all that the table was made of.
    async fn ensure_no_shorter(&self, source: &Source) -> Result<()> {
        if self.options.accept_shorter_history {
            return Ok(());
        }
        match source.shortened(self.reach.to).await? {
            None => Ok(()),
            Some(why) => Err(Error::HistoryShorter { table: self.spec.table.clone(), source_table: Box::new(source.name().clone()), why }),
        }
    }

    /// What the rules of the whole table come to once the commit is in it.
    async fn hold_to_set_rules(&self, table: &Table, commit: &Commit) -> Result<Vec<RuleCount>> {
        let findings = table.set_findings(commit, &self.spec.set_expectations, self.options.memory_limit).await;
        let findings = findings.map_err(|source| Error::lake("hold to its rules", table.name(), source))?;
        if let Some((finding, broken)) = findings.iter().find_map(|finding| Some((finding, finding.stop()?))) {
            let (table, expectation) = (self.spec.table.clone(), finding.rule.clone());
            return Err(Error::SetExpectation { table, expectation, reason: broken.reason.clone(), keys: broken.keys.clone() });
        }
        Ok(findings.iter().map(|finding| finding.count(self.spec.flow_name())).collect())
    }

    /// Commits rejected rows, before the target; gives the outcome of a lost race.
    pub async fn set_aside(&self, intake: &Intake<'_>, findings: &Findings) -> Result<Option<CommitOutcome>> {
        if findings.rejected.is_empty() {
            return Ok(None);
        }
        self.quarantine.commit(self.lake, intake, &findings.rejected, self.reached(), &self.options.run_id).await
    }

    /// The one commit of the target, and what to say of it.
    pub async fn commit(&self, table: &Table, intake: &Intake<'_>, mut commit: Commit, tally: Tally) -> Result<Ended> {
        if self.options.cancel.is_cancelled() {
            return Err(Error::Cancelled { table: self.spec.table.clone() });
        }
        let mut replaced = None;
        if self.replaces {
            let files = table.files().await.map_err(|source| Error::lake("list the files of", table.name(), source))?;
            replaced = Some(files.iter().filter_map(DataFile::live_rows).sum());
            commit = refresh::replacing(self.spec, intake.target, table, files, self.positions.set_back(&self.place.app_id), commit);
        }
        commit.rewinds |= self.replaces || self.source_identity.is_not(&intake.source.table);
        let of_set = self.hold_to_set_rules(table, &commit).await?;
        match table.commit(commit).await.map_err(|source| Error::lake("commit to", &self.spec.table, source))? {
            CommitOutcome::Committed { version } => {
                Ok(Ended::Report(Box::new(self.report(intake, tally, CameTo { version, of_set, replaced }))))
            }
            lost => Ok(Ended::Lost(lost)),
        }
    }

    /// No row is in the versions read. A table that is not there yet is made, so that what reads it finds it. A flow that runs once has
    /// run, though there was nothing: what comes later is not for it.
    pub async fn no_rows(&self, target: &Target) -> Result<Ended> {
        let Reach { to, until, .. } = self.reach;
        if to < until {
            return Ok(Ended::Empty(to));
        }
        let mut report = self.nothing_new("the new versions of its source hold no rows");
        let table = match &self.existing {
            Some(table) => table.clone(),
            None => {
                let table = self.open_or_create(target).await?;
                report.version_to = Some(table.version());
                report.status = Status::Committed;
                "created; its source holds no rows yet".clone_into(&mut report.reason);
                table
            }
        };
        if self.spec.once {
            let commit =
                Commit { operation: Operation::Write, progress: vec![self.reached()], reads: Reads::BlindAppend, ..Commit::default() };
            match table.commit(commit).await.map_err(|source| Error::lake("commit to", &self.spec.table, source))? {
                CommitOutcome::Committed { version } => report.version_to = Some(version),
                lost => return Ok(Ended::Lost(lost)),
            }
            "it has run once, over a source without rows".clone_into(&mut report.reason);
        }
        Ok(Ended::Report(Box::new(report)))
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
