//! A run: phases in order, datasets of a phase side by side, one report.
//!
//! A failing dataset stops only what reads it. Nothing here decides about data: the layers plan and commit, this file
//! calls them in order and collects what they say.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tributary_fault::{ExitCode, Fault};
use tributary_specs::{DatasetRef, DatasetReport, GoldSpec, Layer, ReportedError, SilverSpec, SourceFeed, Status, TableName};

use crate::report::{Finished, millis};
use crate::{Error, Lake, Mode, Pipeline, ProgressEvent, ProgressSink, RunOptions, RunReport};

impl Lake {
    /// Brings every dataset of the pipeline up to date, phase by phase.
    ///
    /// Safe to repeat, to overlap with itself, to cancel, and to drop at any point: what a run committed stays, what it
    /// did not is done by the next. In [`Mode::Continuous`] it returns when cancelled, with the last round's report.
    ///
    /// # Errors
    /// [`Error::NoDataset`] when `only` names an unknown one. A failing dataset is not an error: it is in the report.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), tributary::Error> {
    /// use tributary::{Lake, Pipeline, RunOptions};
    /// let lake = Lake::open("memory://", Default::default())?;
    /// let report = lake.run(&Pipeline::builder("empty").build()?, RunOptions::default()).await?;
    /// assert!(report.nothing_new());
    /// # Ok(()) }
    /// ```
    pub async fn run(&self, pipeline: &Pipeline, options: RunOptions) -> Result<RunReport, Error> {
        let lake = self.for_run(&options)?;
        match options.mode {
            Mode::Drain => lake.run_once(pipeline, &options).await,
            Mode::Continuous { every } => loop {
                let started = Instant::now();
                let report = lake.run_once(pipeline, &options).await?;
                let pause = every.saturating_sub(started.elapsed());
                tokio::select! {
                    () = options.cancel.cancelled() => return Ok(report),
                    () = tokio::time::sleep(pause) => {}
                }
            },
        }
    }

    async fn run_once(&self, pipeline: &Pipeline, options: &RunOptions) -> Result<RunReport, Error> {
        let started = Instant::now();
        let chosen = choose(pipeline, options)?;
        let run_id = uuid::Uuid::new_v4().to_string();
        let mut run = Run { lake: self, pipeline, options, run_id: &run_id, failed: BTreeSet::new(), finished: Vec::new() };
        let phases: Vec<Vec<Task<'_>>> = phases(pipeline, &chosen)?;
        let count = phases.len();
        for (phase, tasks) in phases.into_iter().enumerate() {
            if options.cancel.is_cancelled() {
                break;
            }
            options.progress.event(&ProgressEvent::PhaseStarted { phase, phases: count });
            run.phase(tasks).await;
        }
        let cancelled = options.cancel.is_cancelled() && run.finished.len() < chosen.len();
        let datasets = run.finished.into_iter().map(|finished| finished.report).collect();
        let report = RunReport {
            run_id,
            pipeline: pipeline.spec().name.clone(),
            started_at: self.inner().clock().now(),
            millis: millis(started.elapsed()),
            cancelled,
            datasets,
        };
        if let Err(error) = crate::runs::record(self.inner(), &report).boxed().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "system.tributary.runs was not written");
        }
        self.announce(&report);
        Ok(report)
    }

    fn announce(&self, report: &RunReport) {
        for dataset in report.datasets.iter().filter(|dataset| dataset.status == Status::Committed) {
            if let (Ok(table), Some(version)) = (dataset.table.parse::<TableName>(), dataset.version_to) {
                self.catalogues().iter().for_each(|catalogue| catalogue.committed(&table, version));
            }
        }
    }
}

/// What runs as one task: feeds that share files are read in one pass, everything else is by itself.
enum Task<'a> {
    Feeds(Vec<&'a SourceFeed>),
    Silver(&'a SilverSpec),
    Gold(&'a GoldSpec),
}

impl Task<'_> {
    fn layer(&self) -> Layer {
        match self {
            Self::Feeds(_) => Layer::Bronze,
            Self::Silver(_) => Layer::Silver,
            Self::Gold(_) => Layer::Gold,
        }
    }

    fn tables(&self) -> Vec<&TableName> {
        match self {
            Self::Feeds(feeds) => feeds.iter().map(|feed| &feed.table).collect(),
            Self::Silver(spec) => vec![&spec.table],
            Self::Gold(spec) => vec![&spec.table],
        }
    }

    fn sources(&self) -> &[TableName] {
        match self {
            Self::Feeds(_) => &[],
            Self::Silver(spec) => &spec.sources,
            Self::Gold(spec) => &spec.sources,
        }
    }
}

struct Run<'a> {
    lake: &'a Lake,
    pipeline: &'a Pipeline,
    options: &'a RunOptions,
    run_id: &'a str,
    failed: BTreeSet<TableName>,
    finished: Vec<Finished>,
}

impl Run<'_> {
    async fn phase(&mut self, tasks: Vec<Task<'_>>) {
        let mut running: FuturesUnordered<BoxFuture<'_, Vec<Finished>>> = FuturesUnordered::new();
        let mut finished = Vec::new();
        for task in tasks {
            match task.sources().iter().find(|source| self.failed.contains(source)) {
                Some(source) => finished.extend(task.tables().into_iter().map(|table| skipped(task.layer(), table, source))),
                None => running.push(self.task(task).boxed()),
            }
        }
        while let Some(reports) = running.next().await {
            finished.extend(reports);
        }
        drop(running);
        finished.sort_by(|a, b| (a.layer, &a.report.table).cmp(&(b.layer, &b.report.table)));
        for one in finished {
            self.options.progress.event(&ProgressEvent::DatasetFinished { layer: one.layer, report: Box::new(one.report.clone()) });
            if matches!(one.report.status, Status::Failed | Status::Skipped)
                && let Ok(table) = one.report.table.parse()
            {
                self.failed.insert(table);
            }
            self.finished.push(one);
        }
    }

    async fn task(&self, task: Task<'_>) -> Vec<Finished> {
        let layer = task.layer();
        for table in task.tables() {
            self.options.progress.event(&ProgressEvent::DatasetStarted { table: table.clone(), layer });
        }
        let started = Instant::now();
        let reports = match task {
            Task::Feeds(feeds) => self.feeds(feeds).await,
            Task::Silver(spec) => vec![self.silver(spec).await.unwrap_or_else(|error| failed(&spec.table, &error, started))],
            Task::Gold(spec) => vec![self.gold(spec).await.unwrap_or_else(|error| failed(&spec.table, &error, started))],
        };
        reports.into_iter().map(|report| Finished { layer, report }).collect()
    }

    /// All feeds of the pipeline are handed over, since they may share files; only the chosen ones are run.
    async fn feeds(&self, chosen: Vec<&SourceFeed>) -> Vec<DatasetReport> {
        let started = Instant::now();
        let root = match tributary_bronze::DataRoot::local(&self.options.base_data_path.to_string_lossy()) {
            Ok(root) => root,
            Err(error) => return chosen.iter().map(|feed| failed(&feed.table, &error, started)).collect(),
        };
        let mut options = tributary_bronze::Options::new(root);
        options.max_files_per_trigger = self.options.batch.files_max;
        options.max_bytes_per_trigger = self.options.batch.bytes_max;
        options.max_records_per_trigger = self.options.batch.records_max;
        options.only = Some(chosen.into_iter().map(|feed| feed.name.clone()).collect());
        options.sources = self.pipeline.sources().to_vec();
        options.on_gap = self.options.on_gap;
        options.cancel = self.options.cancel.clone();
        options.progress = Arc::new(Advances(Arc::clone(&self.options.progress)));
        layer::bronze(self.lake.inner(), &self.pipeline.spec().feeds, &options).await
    }

    async fn silver(&self, spec: &SilverSpec) -> Result<DatasetReport, tributary_silver_merge::Error> {
        let options = tributary_silver_merge::Options {
            functions: self.pipeline.functions().to_vec(),
            build: self.pipeline.build_of(&spec.table),
            starting_version: self.options.starting_version,
            memory_limit: self.lake.inner().options().memory_limit / 2,
            run_id: self.run_id.to_owned(),
            cancel: self.options.cancel.clone(),
            ..Default::default()
        };
        layer::silver(self.lake.inner(), spec, &options).await
    }

    async fn gold(&self, spec: &GoldSpec) -> Result<DatasetReport, tributary_gold_agg::Error> {
        let options = tributary_gold_agg::Options {
            functions: self.pipeline.functions().to_vec(),
            build: self.pipeline.build_of(&spec.table),
            as_of: self.options.as_of,
            run_id: self.run_id.to_owned(),
            cancel: self.options.cancel.clone(),
            ..Default::default()
        };
        layer::gold(self.lake.inner(), spec, &options).await
    }
}

/// Passes on what bronze has read.
#[derive(Debug)]
struct Advances(Arc<dyn ProgressSink>);

impl tributary_bronze::ProgressSink for Advances {
    fn seen(&self, seen: tributary_bronze::Seen<'_>) {
        self.0.event(&ProgressEvent::DatasetAdvanced { table: seen.table.clone(), records: seen.records, bytes: seen.bytes });
    }
}

/// Tables of the layers asked for, or exactly those that `only` names.
fn choose(pipeline: &Pipeline, options: &RunOptions) -> Result<BTreeSet<TableName>, Error> {
    let spec = pipeline.spec();
    let all: Vec<(Layer, &TableName)> = (spec.feeds.iter().map(|feed| (Layer::Bronze, &feed.table)))
        .chain(spec.silver.iter().map(|silver| (Layer::Silver, &silver.table)))
        .chain(spec.gold.iter().map(|gold| (Layer::Gold, &gold.table)))
        .collect();
    for wanted in &options.only {
        if !all.iter().any(|(_, table)| *table == wanted) {
            let names: Vec<String> = all.iter().map(|(_, table)| table.to_string()).collect();
            let nearest = tributary_specs::nearest(&wanted.to_string(), names.iter().map(String::as_str)).map(str::to_owned);
            return Err(Error::NoDataset { table: wanted.to_string(), nearest });
        }
    }
    let chosen = all
        .into_iter()
        .filter(|(layer, table)| options.layers.contains(layer) && (options.only.is_empty() || options.only.contains(table)));
    Ok(chosen.map(|(_, table)| table.clone()).collect())
}

fn phases<'a>(pipeline: &'a Pipeline, chosen: &BTreeSet<TableName>) -> Result<Vec<Vec<Task<'a>>>, Error> {
    let spec = pipeline.spec();
    let mut phases = Vec::new();
    for level in spec.phases()? {
        let mut tasks = Vec::new();
        let mut feeds = Vec::new();
        for dataset in level {
            if !chosen.contains(&dataset.table) {
                continue;
            }
            let DatasetRef { layer, index, .. } = dataset;
            match layer {
                Layer::Bronze => feeds.push(&spec.feeds[index]),
                Layer::Silver => tasks.push(Task::Silver(&spec.silver[index])),
                Layer::Gold => tasks.push(Task::Gold(&spec.gold[index])),
            }
        }
        if !feeds.is_empty() {
            tasks.insert(0, Task::Feeds(feeds));
        }
        if !tasks.is_empty() {
            phases.push(tasks);
        }
    }
    Ok(phases)
}

fn skipped(layer: Layer, table: &TableName, source: &TableName) -> Finished {
    let reason = format!("not run: `{source}`, which it reads, failed");
    Finished { layer, report: DatasetReport { table: table.to_string(), status: Status::Skipped, reason, ..DatasetReport::default() } }
}

fn failed<E: Fault + 'static>(table: &TableName, error: &E, started: Instant) -> DatasetReport {
    DatasetReport {
        table: table.to_string(),
        status: Status::Failed,
        millis: millis(started.elapsed()),
        error: Some(reported(error)),
        ..DatasetReport::default()
    }
}

/// An error as reports keep it: the chain of messages, the page, the next command.
pub(crate) fn reported<E: Fault + 'static>(error: &E) -> ReportedError {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    if let Some(command) = error.next_command() {
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
