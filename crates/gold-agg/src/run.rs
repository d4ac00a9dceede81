//! Reads, plans, commits, reports.

mod follow;
mod look;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use tributary_fault::nearest;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::datafusion::physical_plan::{ExecutionPlan, execute_stream};
use tributary_lake::datafusion::prelude::{DataFrame, ident};
use tributary_lake::{Commit, CommitOutcome, DataFile, DataWriter, Lake, NewFile, Operation, Progress, Reads, Table, WriterOptions};
use tributary_specs::{DatasetReport, GoldSpec, Refresh, RuleCount, Status, TableName};

use crate::definition::{DOMAIN, Definition};
use crate::plan::{self, Decision, InputState, WentBack};
use crate::quarantine::{Quarantine, Stamp};
use crate::query::{Input, Joins, Rows, own_names, plan_rows};
use crate::rules::{self, Tally};
use crate::scanned::Scanned;
use crate::target::{self, Target};
use crate::{Error, Options, Result, sources};

use follow::Following;
pub use look::{Look, look};

/// Commits of an input read back to see whether any changed rows; more than these are taken for changed.
const HISTORY_MAX: u64 = 200;

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

/// What the query came to.
enum Made {
    Rows(Box<Written>),
    /// A hash join did not fit in memory.
    NeedsSpilling,
}

/// Rows in files, in no commit yet.
struct Written {
    adds: Vec<NewFile>,
    rows_in: u64,
    tally: Tally,
    scanned: Scanned,
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
        match decision {
            Decision::Nothing(reason) => {
                report.reason = reason;
                report.version_to = report.version_from;
                Ok(Ended::NothingNew)
            }
            Decision::Follow(reason) if self.spec.refresh != Refresh::Full => {
                report.reason.clone_from(&reason);
                let following = match &there {
                    Some(view) => self.follow(view, &inputs, &states, report).await?,
                    None => Following::Full("it is not there yet".to_owned()),
                };
                match following {
                    Following::Ended(ended) => Ok(ended),
                    Following::Full(because) => {
                        report.reason = self.in_full(reason, Some(because))?;
                        self.refresh(there, &inputs, &states, report).await
                    }
                }
            }
            Decision::Make(reason) => {
                report.reason = reason;
                self.refresh(there, &inputs, &states, report).await
            }
            Decision::Follow(reason) | Decision::Refresh(reason) => {
                report.reason = self.in_full(reason, None)?;
                self.refresh(there, &inputs, &states, report).await
            }
        }
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

    pub(crate) async fn open(&self, name: &TableName) -> Result<Option<Table>> {
        self.lake.table(name).await.map_err(Error::lake("opening", name))
    }

    /// The inputs at their latest versions, in the order of the sources.
    pub(crate) async fn inputs(&self) -> Result<Vec<Table>> {
        let mut inputs = Vec::new();
        for source in self.sources()? {
            if source.same_without_case(&self.spec.table) {
                return Err(Error::ReadsItself { table: self.spec.table.clone() });
            }
            inputs.push(match self.open(&source).await? {
                Some(table) => table,
                None => self.find(&source).await?,
            });
        }
        Ok(inputs)
    }

    fn sources(&self) -> Result<Vec<TableName>> {
        if !self.spec.sources.is_empty() {
            return Ok(self.spec.sources.clone());
        }
        if self.options.build.is_some() {
            return Err(Error::NoSources { table: self.spec.table.clone() });
        }
        let read = sources::parse(&self.spec.query).and_then(|statement| sources::tables(&statement));
        read.map_err(|reason| Error::Query { table: Some(self.spec.table.clone()), reason })
    }

    /// A table by its name in another case.
    async fn find(&self, source: &TableName) -> Result<Table> {
        let names = self.lake.tables().await.map_err(Error::lake("looking for", source))?;
        if let Some(found) = names.iter().find(|name| name.same_without_case(source))
            && let Some(table) = self.open(found).await?
        {
            return Ok(table);
        }
        let texts: Vec<String> = names.iter().map(ToString::to_string).collect();
        let nearest = nearest(&source.to_string(), texts.iter().map(String::as_str)).map(str::to_owned);
        Err(Error::NoSource { table: self.spec.table.clone(), source_table: source.clone(), nearest })
    }

    async fn states(&self, there: Option<&Table>, inputs: &[Table]) -> Result<Vec<InputState>> {
        let mut states = Vec::new();
        for input in inputs {
            let recorded = self.recorded(there, &app_id(input.name())).await?;
            let mut state = InputState {
                table: input.name().clone(),
                version: input.version(),
                recorded,
                identity: input.identity(),
                recorded_identity: self.recorded(there, &id_app_id(input.name())).await?,
                rows_changed: false,
            };
            state.rows_changed = state.is_made_again() || rows_changed(input, recorded).await?;
            states.push(state);
        }
        Ok(states)
    }

    async fn recorded(&self, there: Option<&Table>, app_id: &str) -> Result<Option<i64>> {
        match there {
            Some(table) => table.progress(app_id).await.map_err(Error::lake("reading", &self.spec.table)),
            None => Ok(None),
        }
    }

    async fn refresh(&self, there: Option<Table>, inputs: &[Table], states: &[InputState], report: &mut DatasetReport) -> Result<Ended> {
        let mut opened = Vec::new();
        for input in inputs {
            opened.push(Input::open(input.clone()).await?);
        }
        let mut joins = Joins::Hash;
        loop {
            let kept = there.as_ref().filter(|_| !self.options.full_refresh);
            let rows = plan_rows(self.lake, self.spec, kept, &opened, self.options, joins).await?;
            self.ensure_follows(&rows, &opened)?;
            target::check_columns(self.spec, &rows.columns)?;
            let target = target::prepare(self.lake, self.spec, there.clone(), &rows.columns, self.options.full_refresh).await?;
            let asks_for_time = rows.asks_for_time;
            let mut quarantine = Quarantine::open(self.lake, self.spec, rows.columns.clone(), self.stamp(states)).await?;
            match self.write(rows, &opened, &target, &mut quarantine, joins).await {
                Ok(Made::Rows(written)) => {
                    report.inputs = self.reads(&opened, states, &BTreeMap::new(), &written.scanned).await?;
                    return self.commit(*written, target, quarantine, asks_for_time, states, report).await;
                }
                Ok(Made::NeedsSpilling) => {
                    tracing::warn!(view = %self.spec.table, "a hash join did not fit in memory, planning with sort-merge joins");
                    report.notes.push("a hash join did not fit in memory: the query was planned again with sort-merge joins".to_owned());
                    quarantine.abandon().await;
                    joins = Joins::SortMerge;
                }
                Err(error) => {
                    quarantine.abandon().await;
                    return Err(error);
                }
            }
        }
    }

    fn stamp(&self, states: &[InputState]) -> Stamp {
        Stamp {
            run_id: self.options.run_id.clone(),
            now_us: self.lake.clock().now().timestamp_micros(),
            source_versions: states.iter().map(|state| (state.table.to_string(), version_of(state))).collect(),
        }
    }

    /// Runs the query into files.
    async fn write(&self, rows: Rows, inputs: &[Input], target: &Target, quarantine: &mut Quarantine<'_>, joins: Joins) -> Result<Made> {
        let planned = |error| Error::planned(&self.spec.table, error);
        let frame = self.sorted(rules::ask(self.spec, rows.frame, &own_names(self.options))?)?;
        let context = Arc::new(frame.task_ctx());
        let physical = frame.create_physical_plan().await.map_err(planned)?;
        let may_spill = joins == Joins::Hash && has_hash_join(physical.as_ref());
        let stream = execute_stream(Arc::clone(&physical), context).map_err(planned)?;
        let options = WriterOptions { columns: Some(target.columns.clone()), layout: target.lies.clone(), ..WriterOptions::default() };
        let mut writer = target.table.writer(options).map_err(Error::lake("writing", &self.spec.table))?;
        let mut tally = Tally::default();
        match self.pump(stream, &mut writer, quarantine, &mut tally).await {
            Ok(rows_in) => {
                let adds = writer.finish().await.map_err(Error::lake("writing", &self.spec.table))?;
                let mut scanned = Scanned::default();
                scanned.take_in(self.lake, inputs, physical.as_ref());
                Ok(Made::Rows(Box::new(Written { adds, rows_in, tally, scanned })))
            }
            Err(error) => {
                if let Err(error) = writer.abandon().await {
                    tracing::debug!(view = %self.spec.table, %error, "an unfinished file stays until vacuum");
                }
                if may_spill && matches!(error, Error::OutOfMemory { .. }) { Ok(Made::NeedsSpilling) } else { Err(error) }
            }
        }
    }

    /// Rows in the order their layout asks for.
    fn sorted(&self, frame: DataFrame) -> Result<DataFrame> {
        let layout = self.spec.partition_by.iter().chain(&self.spec.cluster_by).chain(&self.spec.zorder_by);
        let order: Vec<_> = layout.map(|column| ident(column).sort(true, true)).collect();
        if order.is_empty() {
            return Ok(frame);
        }
        frame.sort(order).map_err(|error| Error::planned(&self.spec.table, error))
    }

    async fn pump(
        &self,
        mut stream: SendableRecordBatchStream,
        writer: &mut DataWriter,
        quarantine: &mut Quarantine<'_>,
        tally: &mut Tally,
    ) -> Result<u64> {
        let mut rows_in = 0;
        loop {
            let next = self.options.cancel.run_until_cancelled(stream.next()).await;
            let Some(next) = next else { return Err(Error::Cancelled { table: self.spec.table.clone() }) };
            let Some(batch) = next else { return Ok(rows_in) };
            let batch = batch.map_err(|error| Error::failed(&self.spec.table, error))?;
            rows_in += batch.num_rows() as u64;
            if let Some(progress) = &self.options.progress {
                progress(rows_in);
            }
            let kept = self.sift(&batch, quarantine, tally).await?;
            writer.write(&kept).await.map_err(Error::lake("writing", &self.spec.table))?;
        }
    }

    /// The rows that stay, the others sent where the rules send them.
    async fn sift(&self, batch: &RecordBatch, quarantine: &mut Quarantine<'_>, tally: &mut Tally) -> Result<RecordBatch> {
        if self.spec.expectations.is_empty() {
            return Ok(batch.clone());
        }
        let sifted = rules::sift(&self.spec.expectations, rules::key_columns(self.spec), batch, tally)
            .map_err(|error| Error::failed(&self.spec.table, error.into()))?;
        quarantine.write(&sifted).await?;
        Ok(sifted.kept)
    }

    async fn commit(
        &self,
        written: Written,
        target: Target,
        mut quarantine: Quarantine<'_>,
        asks_for_time: bool,
        states: &[InputState],
        report: &mut DatasetReport,
    ) -> Result<Ended> {
        let Written { adds, rows_in, tally, .. } = written;
        if let Some((rule, rows)) = rules::broken(&self.spec.expectations, &tally) {
            quarantine.abandon().await;
            let keys = tally.keys.get(&rule.name).cloned().unwrap_or_default();
            return Err(Error::Expectation { table: self.spec.table.clone(), expectation: rule.name.clone(), rows, keys });
        }
        self.ensure_wanted()?;
        let positions: Vec<(String, i64)> = states
            .iter()
            .flat_map(|state| [(app_id(&state.table), version_of(state)), (id_app_id(&state.table), state.identity)])
            .collect();
        let refused = quarantine.finish().await?;
        let rows_quarantined = quarantine.rows;
        if let Some(why) = quarantine.commit(refused, &positions).await?.and_then(lost) {
            return Ok(Ended::Lost(why));
        }
        let removes = target.table.files().await.map_err(Error::lake("reading", &self.spec.table))?;
        let rows_deleted = removes.iter().filter_map(DataFile::live_rows).sum();
        let rows_out = adds.iter().map(|file| file.rows).sum();
        let bytes_written = adds.iter().map(|file| file.size).sum();
        let definition = Definition::of(self.spec, &self.options.called, asks_for_time);
        let commit = Commit {
            operation: Operation::Overwrite,
            adds,
            removes,
            progress: self.progress(states),
            schema: target.changes_columns.then(|| target.columns.clone()),
            layout: target.lies,
            domains: BTreeMap::from([(DOMAIN.to_owned(), Some(definition.to_text()))]),
            reads: Reads::WholeTable,
            rewinds: self.options.full_refresh || states.iter().any(InputState::is_made_again),
            replaces: self.options.full_refresh,
            metrics: BTreeMap::from([("numOutputRows".to_owned(), u64::to_string(&rows_out))]),
            ..Commit::default()
        };
        let of_view = self.hold_to_set_rules(&target.table, &commit).await?;
        let outcome = target.table.commit(commit).await.map_err(Error::lake("committing to", &self.spec.table))?;
        let CommitOutcome::Committed { version } = outcome else {
            return Ok(Ended::Lost(lost(outcome).unwrap_or_default()));
        };
        tracing::info!(view = %self.spec.table, version, rows = rows_out, reason = %report.reason, "refreshed in full");
        report.status = Status::Committed;
        report.version_to = Some(version);
        report.positions = states.iter().map(|state| (state.table.to_string(), version_of(state))).collect();
        report.rows_in = rows_in;
        report.rows_out = rows_out;
        report.rows_quarantined = rows_quarantined;
        report.rules = rules::counts(self.spec, &tally);
        report.rows_ignored = tally.dropped.into_iter().map(|(rule, rows)| (format!("expectation {rule}"), rows)).collect();
        report.expectations = tally.failed;
        report.expectations.extend(of_view.iter().map(|count| (count.rule.clone(), count.failed)));
        report.rules.extend(of_view);
        report.rows_inserted = rows_out;
        report.rows_deleted = rows_deleted;
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

/// Whether a commit of the input after the recorded version may have changed rows.
async fn rows_changed(input: &Table, recorded: Option<i64>) -> Result<bool> {
    let Some(recorded) = recorded.and_then(|recorded| u64::try_from(recorded).ok()) else { return Ok(true) };
    let behind = input.version().saturating_sub(recorded);
    if behind == 0 || behind > HISTORY_MAX {
        return Ok(behind > 0);
    }
    let limit = usize::try_from(behind).unwrap_or(usize::MAX);
    let history = input.history(Some(limit)).await.map_err(Error::lake("reading the history of", input.name()))?;
    let since: Vec<_> = history.iter().filter(|entry| entry.version > recorded).collect();
    let all_there = since.len() as u64 == behind;
    let changed = since.iter().any(|entry| plan::changes_rows(entry.operation.as_deref(), entry.files_added, entry.files_removed));
    Ok(!all_there || changed)
}

fn has_hash_join(plan: &dyn ExecutionPlan) -> bool {
    plan.name() == "HashJoinExec" || plan.children().into_iter().any(|child| has_hash_join(child.as_ref()))
}
