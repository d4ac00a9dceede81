//! What a run has the layers do: one piece of work is the feeds that are read together, or one silver or gold dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::sync::{Semaphore, mpsc};
use tributary_bronze::KafkaMode;
use tributary_fault::{ExitCode, Fault, FaultClass, FaultCode};
use tributary_specs::{DatasetRef, DatasetReport, GoldSpec, Layer, ReportedError, SilverSpec, SourceFeed, Status, TableName};

use super::way_out::next_command;
use crate::definition::Definition;
use crate::lineage::{By, Watch};
use crate::report::{Finished, millis};
use crate::{Error, Lake, Mode, Pipeline, ProgressEvent, ProgressSink, RunOptions, RunReport, runs};

/// One piece of work, by indexes into the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    Feeds(Vec<usize>),
    Silver(usize),
    Gold(usize),
}

impl Work {
    pub(super) fn layer(&self) -> Layer {
        match self {
            Self::Feeds(_) => Layer::Bronze,
            Self::Silver(_) => Layer::Silver,
            Self::Gold(_) => Layer::Gold,
        }
    }

    pub(super) fn tables<'a>(&self, pipeline: &'a Pipeline) -> Vec<&'a TableName> {
        let spec = pipeline.spec();
        match self {
            Self::Feeds(feeds) => feeds.iter().map(|feed| &spec.feeds[*feed].table).collect(),
            Self::Silver(index) => vec![&spec.silver[*index].table],
            Self::Gold(index) => vec![&spec.gold[*index].table],
        }
    }

    pub(super) fn sources<'a>(&self, pipeline: &'a Pipeline) -> Vec<&'a TableName> {
        match self {
            Self::Feeds(_) => Vec::new(),
            Self::Silver(index) | Self::Gold(index) => pipeline.sources_of(self.layer(), *index),
        }
    }
}

/// A table that has a new version.
pub(super) type Moved = (TableName, u64);

/// What a dataset at work takes beside what is counted, buffers of writers above all: under a smaller limit they take turns.
const DATASET_BYTES: usize = 256 << 20;

/// A run and all it was given: whoever does a piece of its work holds it.
pub(super) struct Run {
    pub lake: Lake,
    pub pipeline: Pipeline,
    pub options: RunOptions,
    pub id: String,
    /// Silver and gold datasets at work at once.
    tables: Semaphore,
    /// Bytes of each silver dataset at work.
    silver_bytes: usize,
    moved: Option<mpsc::UnboundedSender<Moved>>,
    lineage: Watch,
    /// Datasets that have been brought up to date.
    built_anew: Mutex<BTreeSet<TableName>>,
}

impl Run {
    pub(super) fn new(lake: Lake, pipeline: Pipeline, mut options: RunOptions, moved: Option<mpsc::UnboundedSender<Moved>>) -> Self {
        options.kafka.mode = match options.mode {
            Mode::Drain => KafkaMode::Drain,
            Mode::Continuous { .. } => KafkaMode::Continuous(Arc::default()),
        };
        let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let memory_limit = lake.inner().options().memory_limit;
        let at_once = (memory_limit / DATASET_BYTES).clamp(1, cores);
        let silver_bytes = memory_limit / 2 / pipeline.spec().silver.len().clamp(1, cores);
        let id = lake.inner().new_id().to_string();
        let continuous = matches!(options.mode, Mode::Continuous { .. });
        let by = By { run_id: id.clone(), within: options.within_job.clone() };
        let lineage = Watch::new(lake.inner().clone(), pipeline.clone(), by, continuous, options.openlineage.clone());
        Self { lake, pipeline, options, id, tables: Semaphore::new(at_once), silver_bytes, moved, lineage, built_anew: Mutex::default() }
    }

    /// Does a piece of work; of feeds only those whose tables are named.
    pub(super) async fn work(&self, work: &Work, only: &[TableName]) -> Vec<Finished> {
        let layer = work.layer();
        let spec = self.pipeline.spec();
        for table in only {
            self.options.progress.event(&ProgressEvent::DatasetStarted { table: table.clone(), layer });
        }
        self.lineage.begins(only);
        let stopped = self.restored_by_others(work, only).await;
        let is_stopped = |table: &TableName| stopped.iter().any(|report| report.table == table.to_string());
        let mut reports = match work {
            _ if !stopped.is_empty() && stopped.len() == only.len() => Vec::new(),
            Work::Feeds(feeds) => {
                let chosen = feeds.iter().map(|feed| &spec.feeds[*feed]).filter(|feed| only.contains(&feed.table));
                let chosen = chosen.filter(|feed| !is_stopped(&feed.table));
                self.feeds(chosen.collect()).await
            }
            Work::Silver(index) => {
                let spec = &spec.silver[*index];
                let anew = self.builds_anew(&spec.table, &spec.properties);
                let replaced = if anew { Vec::new() } else { self.functions_replaced(&spec.table).await };
                let mut report = self.in_turn(&spec.table, &spec.properties, self.silver(spec)).await;
                let stays = |name: String| {
                    format!(
                        "function {name} is another than its earlier rows were made with, which stay: --full-refresh {} makes them anew",
                        spec.table
                    )
                };
                report.notes.extend(replaced.into_iter().map(stays).filter(|_| report.status == Status::Committed));
                vec![report]
            }
            Work::Gold(index) => {
                let spec = &spec.gold[*index];
                vec![self.in_turn(&spec.table, &spec.properties, self.gold(spec)).await]
            }
        };
        reports.extend(stopped);
        for report in &reports {
            self.lineage.ended(report).await;
        }
        let told = |mut report: DatasetReport| {
            report.notes.extend(self.pipeline.unprotected().iter().map(|clause| format!("not protected: {clause}")));
            Finished { layer, report }
        };
        reports.into_iter().map(told).collect()
    }

    /// What became of these datasets, as the run reports it.
    pub(super) fn report(&self, started_at: DateTime<Utc>, millis: u64, cancelled: bool, datasets: Vec<DatasetReport>) -> RunReport {
        let pipeline = self.pipeline.spec().name.clone();
        let unprotected = self.pipeline.unprotected().to_vec();
        let not_applied = self.pipeline.not_applied().to_vec();
        let as_of = self.options.as_of;
        RunReport { run_id: self.id.clone(), pipeline, started_at, millis, cancelled, as_of, unprotected, not_applied, datasets }
    }

    /// Keeps what became of datasets in the system tables: counts, and where their rows come from.
    pub(super) async fn record(&self, report: &RunReport) {
        runs::record(self.lake.inner(), report).await;
        self.lineage.keep(report).await;
    }

    /// All feeds of the pipeline are handed over, since they may share files; only the chosen ones are run.
    async fn feeds(&self, chosen: Vec<&SourceFeed>) -> Vec<DatasetReport> {
        let started = Instant::now();
        let mut options = match bronze_options(&self.pipeline, &self.options) {
            Ok(options) => options,
            Err(error) => return chosen.iter().map(|feed| failed(&feed.table, &error, started)).collect(),
        };
        let anew = chosen.iter().filter(|feed| self.options.builds_feed_anew(&self.pipeline, feed) && !self.is_up_to_date(&feed.table));
        options.full_refresh = anew.map(|feed| feed.name.clone()).collect();
        options.only = Some(chosen.into_iter().map(|feed| feed.name.clone()).collect());
        options.progress = Arc::new(Advances { sink: Arc::clone(&self.options.progress), moved: self.moved.clone() });
        let reports = layer::bronze(self.lake.inner(), &self.pipeline.spec().feeds, &options).await;
        self.are_up_to_date(reports.iter().filter(|report| report.status != Status::Failed).filter_map(|report| report.table.parse().ok()));
        reports
    }

    /// Brings a silver or gold dataset up to date when it is its turn.
    async fn in_turn<E: Into<Error>>(
        &self,
        table: &TableName,
        properties: &BTreeMap<String, String>,
        work: impl Future<Output = Result<DatasetReport, E>>,
    ) -> DatasetReport {
        let _turn = self.tables.acquire().await;
        let started = Instant::now();
        let done = work.await;
        self.are_up_to_date(done.is_ok().then(|| table.clone()));
        match done {
            Ok(report) => one_commit(report),
            Err(error) => {
                let error = error.into();
                let next = next_command(&error, table, !tributary_specs::reset_allowed(properties));
                let reported = reported(&error, self.pipeline.told(table, &error), next);
                failed_with(table, reported, started)
            }
        }
    }

    async fn silver(&self, spec: &SilverSpec) -> tributary_silver_merge::Result<DatasetReport> {
        let options = tributary_silver_merge::Options {
            starting_version: self.options.starting_version,
            as_of: self.options.as_of,
            full_refresh: self.builds_anew(&spec.table, &spec.properties),
            accept_shorter_history: self.options.accept_shorter_history,
            skip_change_commits: self.options.skip_change_commits,
            memory_limit: self.silver_bytes,
            run_id: self.id.clone(),
            progress: Some(self.advances(&spec.table, Layer::Silver)),
            cancel: self.options.cancel.clone(),
            ..self.pipeline.silver_options(spec)
        };
        layer::silver(self.lake.inner(), spec, &options).await
    }

    /// The functions of the lake that a silver dataset calls and that were replaced since its table was last written.
    async fn functions_replaced(&self, table: &TableName) -> Vec<String> {
        let Some(dataset) = self.dataset(table) else { return Vec::new() };
        let now = Definition::of(&self.pipeline, &dataset);
        if !now.calls_functions() {
            return Vec::new();
        }
        // what cannot be read fails the run of the dataset itself
        let Ok(Some(table)) = self.lake.inner().table(table).await else { return Vec::new() };
        match Definition::of_table(&table).await {
            Ok(Some(before)) => now.functions_replaced_since(&before),
            Ok(None) | Err(_) => Vec::new(),
        }
    }

    /// Whether a dataset is still to be built anew: once a run, however long that goes on.
    pub(super) fn builds_anew(&self, table: &TableName, properties: &BTreeMap<String, String>) -> bool {
        self.options.builds_anew(table, properties) && !self.is_up_to_date(table)
    }

    fn is_up_to_date(&self, table: &TableName) -> bool {
        self.built_anew.lock().unwrap_or_else(PoisonError::into_inner).contains(table)
    }

    /// Notes that these have been brought up to date, and are not built anew again.
    fn are_up_to_date(&self, tables: impl IntoIterator<Item = TableName>) {
        self.built_anew.lock().unwrap_or_else(PoisonError::into_inner).extend(tables);
    }

    /// Passes on how many rows a dataset has taken up or made.
    fn advances(&self, table: &TableName, layer: Layer) -> Arc<dyn Fn(u64) + Send + Sync> {
        let (sink, table) = (Arc::clone(&self.options.progress), table.clone());
        Arc::new(move |records| {
            let table = table.clone();
            sink.event(&ProgressEvent::DatasetAdvanced {
                table,
                layer,
                records,
                bytes: 0,
                extent: None,
                source_time_ms: None,
                lag_records: None,
            });
        })
    }

    async fn gold(&self, spec: &GoldSpec) -> Result<DatasetReport, tributary_gold_agg::Error> {
        let options = tributary_gold_agg::Options {
            as_of: self.options.as_of,
            full_refresh: self.builds_anew(&spec.table, &spec.properties),
            run_id: self.id.clone(),
            progress: Some(self.advances(&spec.table, Layer::Gold)),
            cancel: self.options.cancel.clone(),
            ..self.pipeline.gold_options(spec)
        };
        match layer::gold(self.lake.inner(), spec, &options).await {
            // as of a silver dataset whose source is not there yet
            Err(tributary_gold_agg::Error::NoSource { source_table, .. }) if self.dataset(&source_table).is_some() => {
                let root = self.missing_below(&source_table).await;
                let why = if root == source_table { String::new() } else { format!(": nothing has come to `{root}`") };
                let reason = format!("`{source_table}`, which it reads, does not exist yet{why}");
                Ok(DatasetReport { table: spec.table.to_string(), status: Status::NothingNew, reason, ..DatasetReport::default() })
            }
            done => done,
        }
    }

    /// The dataset of the pipeline that makes a table.
    fn dataset(&self, table: &TableName) -> Option<DatasetRef> {
        self.pipeline.spec().datasets().into_iter().find(|dataset| dataset.table.same_without_case(table))
    }

    /// Of a table that is not there the first that is not there either, of those that it is made from, and so on down.
    async fn missing_below(&self, table: &TableName) -> TableName {
        let mut missing = table.clone();
        // each is made of earlier ones
        for _ in 0..self.pipeline.spec().datasets().len() {
            match self.missing_source(&missing).await {
                Some(source) => missing = source,
                None => break,
            }
        }
        missing
    }

    /// The first table that a dataset of the pipeline reads and that is not there.
    async fn missing_source(&self, table: &TableName) -> Option<TableName> {
        let dataset = self.dataset(table)?;
        for source in self.pipeline.sources_of(dataset.layer, dataset.index) {
            if matches!(self.lake.inner().table(source).await, Ok(None)) {
                return Some(source.clone());
            }
        }
        None
    }
}

/// A run's options as the bronze layer takes them; they choose no feeds.
pub(crate) fn bronze_options(pipeline: &Pipeline, options: &RunOptions) -> tributary_bronze::Result<tributary_bronze::Options> {
    let root = tributary_bronze::DataRoot::local(&options.base_data_path.to_string_lossy())?;
    let mut of_bronze = tributary_bronze::Options::new(root);
    of_bronze.max_files_per_trigger = options.batch.files_max;
    of_bronze.max_bytes_per_trigger = options.batch.bytes_max;
    of_bronze.max_records_per_trigger = options.batch.records_max;
    of_bronze.sources = pipeline.sources().to_vec();
    of_bronze.kafka = options.kafka.clone();
    of_bronze.on_gap = options.on_gap;
    of_bronze.accept_shorter_history = options.accept_shorter_history;
    of_bronze.cancel = options.cancel.clone();
    Ok(of_bronze)
}

/// Silver and gold commit once a run where they do not say otherwise.
fn one_commit(mut report: DatasetReport) -> DatasetReport {
    if report.status == Status::Committed {
        report.commits = report.commits.max(1);
    }
    report
}

/// Passes on what bronze has read and committed.
#[derive(Debug)]
struct Advances {
    sink: Arc<dyn ProgressSink>,
    moved: Option<mpsc::UnboundedSender<Moved>>,
}

impl tributary_bronze::ProgressSink for Advances {
    fn seen(&self, seen: tributary_bronze::Seen<'_>) {
        if let (Some(moved), Some(version)) = (&self.moved, seen.version) {
            // nobody listens any more when the run has ended
            let _ = moved.send((seen.table.clone(), version));
        }
        self.sink.event(&ProgressEvent::DatasetAdvanced {
            table: seen.table.clone(),
            layer: Layer::Bronze,
            records: seen.records,
            bytes: seen.bytes,
            extent: seen.extent,
            source_time_ms: seen.source_time_ms,
            lag_records: seen.lag_records,
        });
    }
}

/// Why a piece of work has no report of a layer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfinished {
    /// TR0004.
    #[error("`{table}` was not done when the run had to end; what it had not committed is done by the next run")]
    Interrupted { table: TableName },
    /// TR0005.
    #[error("the work on `{table}` broke off: {reason}")]
    Panicked { table: TableName, reason: String },
}

impl Unfinished {
    pub(super) fn report(&self, started: Instant) -> DatasetReport {
        let table = match self {
            Self::Interrupted { table } | Self::Panicked { table, .. } => table,
        };
        let mut report = failed(table, self, started);
        if let (Self::Interrupted { .. }, Some(error)) = (self, &mut report.error) {
            error.exit_code = ExitCode::Partial.code();
        }
        report
    }
}

impl Fault for Unfinished {
    fn class(&self) -> FaultClass {
        match self {
            Self::Interrupted { .. } => FaultClass::Transient,
            Self::Panicked { .. } => FaultClass::Bug,
        }
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::Interrupted { .. } => "TR0004",
            Self::Panicked { .. } => "TR0005",
        })
    }

    fn next_command(&self) -> Option<String> {
        match self {
            Self::Interrupted { table } => Some(format!("tributary run --only {table}")),
            Self::Panicked { .. } => Some("tributary help TR0005".to_owned()),
        }
    }
}

pub(super) fn skipped(layer: Layer, table: &TableName, source: &TableName) -> Finished {
    let reason = format!("not run: `{source}`, which it reads, failed");
    Finished { layer, report: DatasetReport { table: table.to_string(), status: Status::Skipped, reason, ..DatasetReport::default() } }
}

pub(super) fn failed<E: Fault + 'static>(table: &TableName, error: &E, started: Instant) -> DatasetReport {
    failed_with(table, reported(error, tributary_fault::chain(error), error.next_command()), started)
}

fn failed_with(table: &TableName, error: ReportedError, started: Instant) -> DatasetReport {
    DatasetReport {
        table: table.to_string(),
        status: Status::Failed,
        millis: millis(started.elapsed()),
        error: Some(error),
        ..DatasetReport::default()
    }
}

/// An error as reports keep it: what it says, the page, the next command.
fn reported<E: Fault>(error: &E, mut message: String, next: Option<String>) -> ReportedError {
    if let Some(command) = next {
        message.push_str(&format!(" (next: {command})"));
    }
    ReportedError { code: error.code().to_string(), message, exit_code: ExitCode::of(error.class()).code() }
}

/// The layers' futures, boxed where their lifetimes are known: so the compiler can see that a run may be spawned.
mod layer {
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use tributary_lake::Lake;
    use tributary_specs::{DatasetReport, GoldSpec, SilverSpec, SourceFeed};

    pub(super) fn bronze<'a>(
        lake: &'a Lake,
        feeds: &'a [SourceFeed],
        options: &'a tributary_bronze::Options,
    ) -> BoxFuture<'a, Vec<DatasetReport>> {
        tributary_bronze::run(lake, feeds, options).boxed()
    }

    pub(super) fn silver<'a>(
        lake: &'a Lake,
        spec: &'a SilverSpec,
        options: &'a tributary_silver_merge::Options,
    ) -> BoxFuture<'a, tributary_silver_merge::Result<DatasetReport>> {
        tributary_silver_merge::run(lake, spec, options).boxed()
    }

    pub(super) fn gold<'a>(
        lake: &'a Lake,
        spec: &'a GoldSpec,
        options: &'a tributary_gold_agg::Options,
    ) -> BoxFuture<'a, Result<DatasetReport, tributary_gold_agg::Error>> {
        tributary_gold_agg::run(lake, spec, options).boxed()
    }
}
