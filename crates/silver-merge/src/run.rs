//! Reads, plans, commits, reports.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tributary_lake::{Commit, CommitOutcome, DataFile, Lake, Operation, Progress, Reads, Table};
use tributary_specs::{DatasetReport, ExpectationAction, MergePolicy, RuleCount, SetExpectation, SilverSpec, Status, TableSpec};

use crate::append::append_rows;
use crate::error::{Error, Result};
use crate::flow::{self, Positions, Whereabouts};
use crate::identity::Identity;
use crate::intake::{Findings, Intake, Range, merge};
use crate::judge::Judge;
use crate::merge::merge_keyed;
use crate::options::Options;
use crate::plan::Counts;
use crate::quarantine::Quarantine;
use crate::select::Selection;
use crate::source::{ROW_CHANGES, Source};
use crate::state::{State, StateReads};
use crate::target::{Target, create, is_new};
use crate::widen::widen;
use crate::writes::Changed;

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
    let flows = spec.each_flow();
    let (mut done, mut failed) = (None::<DatasetReport>, None);
    for (at, flow) in flows.iter().enumerate() {
        // What replaces the table has set the other flows back.
        let mut options = options.clone();
        options.full_refresh &= at == 0;
        options.build = options.build.filter(|_| at == 0);
        let run = FlowRun { lake, spec: flow, flows: &flows, options: &options };
        match run.run().await {
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
}

impl FlowRun<'_> {
    async fn run(self) -> Result<DatasetReport> {
        let started = self.lake.clock().now();
        let mut done: Option<DatasetReport> = None;
        let mut goal = Goal::default();
        let mut conflicts = 0;
        loop {
            match attempt(self, started, &mut goal).await? {
                Ended::TakenOver => {}
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
        if self.options.full_refresh || crate::controls::flows_share_one_position(self.lake.options()) {
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

/// The report of two commits of one flow.
fn both(first: DatasetReport, second: &DatasetReport) -> DatasetReport {
    if second.status == Status::NothingNew {
        return first;
    }
    let mut report = beside(first, second);
    report.positions.extend(second.positions.clone());
    report.reason = format!("{} new rows in several commits", report.rows_in);
    report
}

/// The report of what two flows, or two commits, did one after the other. Of flows over one source the least position tells how far
/// the table has read it.
fn beside(first: DatasetReport, second: &DatasetReport) -> DatasetReport {
    if second.status == Status::NothingNew {
        let mut report = first;
        least(&mut report.positions, &second.positions);
        return report;
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
    report.conflicts += first.conflicts;
    report.millis = first.millis.max(report.millis);
    least(&mut report.positions, &first.positions);
    report.notes = first.notes.into_iter().chain(report.notes).collect();
    report.count_rules(first.rules);
    if first.status == Status::Committed {
        report.version_from = first.version_from;
        report.commits = first.commits.max(1) + report.commits.max(1);
        report.reason = format!("{}; {}", first.reason, report.reason);
        if first.mode == FULL {
            FULL.clone_into(&mut report.mode);
        }
    }
    report
}

fn least(positions: &mut BTreeMap<String, i64>, other: &BTreeMap<String, i64>) {
    for (source, position) in other {
        positions.entry(source.clone()).and_modify(|least| *least = (*least).min(*position)).or_insert(*position);
    }
}

/// The mode of a run that built the table anew.
const FULL: &str = "full";

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
    let run = FlowRun { lake, spec: &flows[0], flows: &flows, options };
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
    /// The version of the source the commit will be at.
    pub to: u64,
    /// The version of the source the run ends at.
    until: u64,
    quarantine: Quarantine,
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
async fn attempt(run: FlowRun<'_>, started: DateTime<Utc>, goal: &mut Goal) -> Result<Ended> {
    let FlowRun { lake, spec, options, .. } = run;
    let Some(name) = spec.sources.first() else { return Err(Error::spec(&spec.table, "it names no source")) };
    let of_target = |source| Error::lake("read positions of", &spec.table, source);
    let existing = open(lake, &spec.table).await?;
    let positions = Positions::of(existing.as_ref()).await.map_err(of_target)?;
    if let Some(ended) = run.take_over(existing.as_ref(), &positions).await? {
        return Ok(ended);
    }
    let place = Whereabouts::of(spec, name, &positions, lake.options());
    let quarantine = Quarantine::open(lake, spec, &place).await?;
    let source_identity = Identity::recorded(existing.as_ref(), place.id_app_id.clone()).await.map_err(of_target)?;
    refuse_table_of_feed(spec, existing.as_ref()).await?;
    let replaces = options.full_refresh && existing.is_some();
    let position = place.position().filter(|_| !replaces);
    let mut attempt =
        Attempt { lake, spec, options, existing, replaces, place, positions, to: 0, until: 0, quarantine, source_identity, started };
    if let Some(version) = position.filter(|_| spec.once) {
        return Ok(Ended::Report(Box::new(attempt.nothing_new(&format!("it has run once, over version {version} of `{name}`")))));
    }
    let Some(source) = open(lake, name).await? else {
        if position.is_some() || replaces {
            return Err(Error::NoSource { table: spec.table.clone(), source_table: Box::new(name.clone()) });
        }
        return Ok(Ended::Report(Box::new(attempt.nothing_new(&format!("its source `{name}` does not exist yet")))));
    };
    let source = Source::new(source, spec);
    let latest = source.table.version();
    let made_again = attempt.source_identity.is_not(&source.table);
    if let Some(position) = position.filter(|position| made_again || *position > latest as i64) {
        let (table, source_table) = (spec.table.clone(), Box::new(name.clone()));
        return Err(Error::SourceWentBack { table, source_table, position, latest, made_again });
    }
    let latest = *goal.until.get_or_insert(latest);
    let from = match position {
        Some(position) => u64::try_from(position).ok(),
        None => options.starting_version.checked_sub(1).filter(|_| !spec.once),
    };
    let first = from.map_or(0, |from| from + 1);
    if first > latest {
        return Ok(Ended::Report(Box::new(attempt.nothing_new("its source has no new version"))));
    }
    attempt.until = latest;
    let begin = goal.empty_to.map_or(first, |empty| first.max(empty + 1));
    let most = options.source_versions_max.filter(|_| !replaces && !spec.once);
    attempt.to = most.map_or(latest, |most| latest.min(begin + most.max(1) - 1));
    if let Some(seen) = attempt.quarantine.seen(&source).filter(|_| spec.once && attempt.place.recorded.is_none()) {
        // A run that died after its quarantine: it is done again over the same rows.
        attempt.to = attempt.to.min(u64::try_from(seen).unwrap_or(attempt.to));
        attempt.until = attempt.to;
    }
    if let Some(table) = &attempt.existing {
        table.ensure_writable().map_err(|source| Error::lake("write to", &spec.table, source))?;
    }
    if replaces {
        attempt.ensure_replaceable(&source).await?;
    }
    let state = match spec.policy {
        MergePolicy::Append => None,
        _ => {
            let reads = match crate::controls::state_above_target_position(lake.options()) {
                _ if replaces => StateReads::Nothing,
                true => StateReads::Latest,
                false => StateReads::Named,
            };
            Some(State::open(lake, &spec.table, attempt.existing.as_ref(), attempt.positions.reached(), reads).await?)
        }
    };
    let planned_on = attempt.existing.as_ref().filter(|_| !replaces);
    let Planned { selection, judge, mut target } = Planned::new(run, &source, planned_on).await?;
    target.grows |= replaces && attempt.existing.as_ref().is_some_and(|table| table.columns() != target.columns);
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

/// A table that a feed fills is not taken over: flows would bring its records once more.
async fn refuse_table_of_feed(spec: &SilverSpec, table: Option<&Table>) -> Result<()> {
    let Some(table) = table else { return Ok(()) };
    for prefix in ["tributary:file:", "tributary:kafka:"] {
        let positions = table.progress_with_prefix(prefix).await.map_err(|source| Error::lake("read positions of", &spec.table, source))?;
        if !positions.is_empty() {
            let (found, declared) = ("the records of a feed".to_owned(), "flows of its own".to_owned());
            return Err(Error::Remade { table: spec.table.clone(), found, declared });
        }
    }
    Ok(())
}

impl Attempt<'_> {
    /// The versions to read; those that quarantine has seen already apart.
    fn ranges(&self, source: &Source, from: Option<u64>) -> Vec<Range> {
        if self.spec.once {
            // What is there is read as one; a version of it cannot be parted from those before.
            let sets_aside = self.quarantine.seen(source).is_none_or(|seen| seen < self.to as i64);
            return vec![Range { from, to: self.to, sets_aside }];
        }
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
        Progress { app_id: self.place.app_id.clone(), expected: self.place.recorded, version: self.to as i64 }
    }

    /// Whether the table can be built anew: it is then made of what its source still has, and it stays the kind of table that it is.
    async fn ensure_replaceable(&self, source: &Source) -> Result<()> {
        let keyed = self.spec.policy != MergePolicy::Append;
        let was_keyed = |table: &Table| table.properties().get(ROW_CHANGES).is_some_and(|value| value == "true");
        if let Some(table) = self.existing.as_ref().filter(|table| was_keyed(table) != keyed) {
            let word = |keyed| if keyed { "rows that change" } else { "rows that are only added" }.to_owned();
            return Err(Error::Remade { table: self.spec.table.clone(), found: word(was_keyed(table)), declared: word(keyed) });
        }
        let shortened = if self.options.accept_shorter_history { None } else { source.shortened(self.to).await? };
        shortened.map_or(Ok(()), |why| {
            Err(Error::HistoryShorter { table: self.spec.table.clone(), source_table: Box::new(source.name().clone()), why })
        })
    }

    /// The commit that makes its rows the only ones, and sets the other flows back.
    async fn replacing(&self, table: &Table, target: &Target, mut commit: Commit) -> Result<Commit> {
        let files = table.files().await.map_err(|source| Error::lake("list the files of", table.name(), source))?;
        commit.progress.extend(self.positions.set_back(&self.place.app_id));
        let said = target.table_spec(self.spec).properties.into_iter().filter(|(name, _)| name.starts_with("tributary."));
        Ok(Commit {
            operation: Operation::Overwrite,
            removes: files,
            marks: Vec::new(),
            rests_on: Vec::new(),
            changes: Vec::new(),
            schema: target.grows.then(|| target.columns.clone()),
            properties: said.collect(),
            reads: Reads::WholeTable,
            replaces: true,
            ..commit
        })
    }

    /// What the rules of the whole table come to once the commit is in it.
    async fn hold_to_set_rules(&self, table: &Table, commit: &Commit) -> Result<Vec<RuleCount>> {
        let rules = &self.spec.set_expectations;
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let findings = table.set_findings(commit, rules, self.options.memory_limit).await;
        let findings = findings.map_err(|source| Error::lake("hold to its rules", table.name(), source))?;
        let broken = |rule: &SetExpectation| findings.iter().find(|finding| finding.rule == rule.name);
        if let Some(finding) = rules.iter().filter(|rule| rule.action == ExpectationAction::Fail).find_map(broken) {
            return Err(Error::SetExpectation {
                table: self.spec.table.clone(),
                expectation: finding.rule.clone(),
                reason: finding.reason.clone(),
                keys: finding.keys.clone(),
            });
        }
        let count = |rule: &SetExpectation| {
            let failed = u64::from(broken(rule).is_some());
            let (flow, action) = (self.spec.flow_name().to_owned(), rule.action.word().to_owned());
            RuleCount { flow, rule: rule.name.clone(), action, passed: 1 - failed, failed, dropped: 0 }
        };
        Ok(rules.iter().map(count).collect())
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
        let mut commit = if self.replaces { self.replacing(table, intake.target, commit).await? } else { commit };
        commit.rewinds |= self.replaces || self.source_identity.is_not(&intake.source.table);
        let of_set = self.hold_to_set_rules(table, &commit).await?;
        let replaced: u64 = if self.replaces { commit.removes.iter().filter_map(DataFile::live_rows).sum() } else { 0 };
        match table.commit(commit).await.map_err(|source| Error::lake("commit to", &self.spec.table, source))? {
            CommitOutcome::Committed { version } => {
                let mut report = self.report(intake, tally, version);
                let failed = of_set.iter().filter(|count| count.failed > 0).map(|count| (count.rule.clone(), count.failed));
                report.expectations.extend(failed);
                report.rules.extend(of_set);
                if self.replaces {
                    FULL.clone_into(&mut report.mode);
                    report.rows_deleted += replaced;
                    report.reason = format!("built anew: {}", report.reason);
                }
                Ok(Ended::Report(Box::new(report)))
            }
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
        let passed_over = intake.source.passed_over();
        if passed_over > 0 {
            let source = intake.source.name();
            notes.push(format!("{passed_over} commits of `{source}` that update or delete rows were passed over (skipChangeCommits)"));
        }
        notes.extend(self.said_otherwise(intake.target));
        notes.extend(
            unknown.iter().map(|(column, rows)| format!("column `{column}` is unknown in {rows} rows written: its source has not sent it")),
        );
        let place = if self.spec.once { self.place.label().to_owned() } else { intake.source.name().to_string() };
        DatasetReport {
            status: Status::Committed,
            rows_in: findings.rows,
            rows_out: counts.applied,
            rows_quarantined: findings.quarantined,
            rows_ignored: ignored,
            rows_inserted: changed.inserted,
            rows_updated: changed.updated,
            rows_deleted: changed.deleted,
            expectations: intake.judge.failures(&findings.rules),
            rules: intake.judge.rule_counts(self.spec.flow_name(), &findings.rules),
            ties: counts.ties,
            version_to: Some(version),
            positions: BTreeMap::from([(place, self.to as i64)]),
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
        if self.spec.once && self.existing.is_some() {
            return self.has_run_over_nothing().await;
        }
        let mut report = self.nothing_new("the new versions of its source hold no rows");
        if self.existing.is_none() {
            report.version_to = Some(self.open_or_create(target).await?.version());
            report.status = Status::Committed;
            "created; its source holds no rows yet".clone_into(&mut report.reason);
        }
        Ok(Ended::Report(Box::new(report)))
    }

    /// A flow that runs once has run, though there was nothing: what comes later is not for it.
    async fn has_run_over_nothing(&self) -> Result<Ended> {
        let Some(table) = &self.existing else { return Ok(Ended::Empty(self.to)) };
        let commit = Commit { operation: Operation::Write, progress: vec![self.reached()], reads: Reads::BlindAppend, ..Commit::default() };
        match table.commit(commit).await.map_err(|source| Error::lake("commit to", &self.spec.table, source))? {
            CommitOutcome::Committed { .. } => Ok(Ended::Report(Box::new(self.nothing_new("it has run once, over a source without rows")))),
            lost => Ok(Ended::Lost(lost)),
        }
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
