//! A run that goes on until it is told to end. `schedule` decides, this file does what is due and tells what became of it.
//!
//! Nothing here waits for one thing: work, looking for moved tables and writing `system.tributary.runs` are tasks of their own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures::FutureExt;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tributary_specs::{DatasetReport, Layer, Status, TableName};

use super::lag::SourceTimes;
use super::look::{Reached, moved_tables, reached};
use super::schedule::{Consequence, Outcome, Schedule, Start};
use super::work::{Moved, Run, Unfinished, Work, skipped};
use super::{GRACE, totals};
use crate::report::{Finished, millis};
use crate::{ProgressEvent, RunReport};

/// How often `system.tributary.runs` gets a row of a dataset at most.
const RECORD_EVERY: Duration = Duration::from_secs(60);
/// The longest the last rows of `system.tributary.runs` may take.
const LAST_RECORD: Duration = Duration::from_secs(2);

/// What a task ended with.
enum Done {
    Work(Vec<Finished>),
    Looked(Vec<Moved>),
    Learned(Vec<Reached>),
    Recorded,
}

/// A piece of work under way.
struct UnderWay {
    index: usize,
    layer: Layer,
    tables: Vec<TableName>,
    since: Instant,
}

struct Stream {
    run: Arc<Run>,
    every: Duration,
    schedule: Schedule,
    /// Layer and sources of every dataset chosen, in the order of the report.
    datasets: Vec<(TableName, Layer, Vec<TableName>)>,
    tasks: JoinSet<Done>,
    under_way: HashMap<Id, UnderWay>,
    times: SourceTimes,
    /// The lag last told of each dataset.
    lags: BTreeMap<TableName, Option<u64>>,
    /// Since the run began.
    sums: BTreeMap<TableName, DatasetReport>,
    /// Since `system.tributary.runs` was written.
    unrecorded: BTreeMap<TableName, DatasetReport>,
    recorded: Instant,
    recording: bool,
    looked: Option<Instant>,
    looking: bool,
    started_at: DateTime<Utc>,
}

/// Keeps everything chosen up to date until the run is cancelled, or nothing is left that could go on.
pub(super) async fn stream(run: Run, phases: Vec<Vec<Work>>, every: Duration, mut moved: mpsc::UnboundedReceiver<Moved>) -> RunReport {
    let begun = Instant::now();
    let mut stream = Stream::new(Arc::new(run), phases, every, begun);
    let cancel = stream.run.options.cancel.clone();
    loop {
        let now = Instant::now();
        stream.look(now);
        stream.record(now);
        stream.start(now);
        if stream.schedule.is_over() {
            break;
        }
        let wake_at = stream.wake_at(now).into();
        tokio::select! {
            () = cancel.cancelled() => break,
            Some(done) = stream.tasks.join_next_with_id() => stream.done(done),
            Some(one) = moved.recv() => {
                stream.moved(one);
                while let Ok(one) = moved.try_recv() {
                    stream.moved(one);
                }
                stream.tell_lags();
            }
            () = tokio::time::sleep_until(wake_at) => {}
        }
    }
    stream.wind_up(begun).await
}

impl Stream {
    fn new(run: Arc<Run>, phases: Vec<Vec<Work>>, every: Duration, now: Instant) -> Self {
        let pipeline = &run.pipeline;
        let owned = |tables: Vec<&TableName>| tables.into_iter().cloned().collect::<Vec<_>>();
        let works: Vec<_> = phases.into_iter().flatten().flat_map(|work| apart(work, pipeline)).collect();
        let mut datasets = Vec::new();
        for work in &works {
            let sources = owned(work.sources(pipeline));
            datasets.extend(owned(work.tables(pipeline)).into_iter().map(|table| (table, work.layer(), sources.clone())));
        }
        let made = pipeline.spec().datasets().into_iter().map(|dataset| dataset.table).collect();
        let works = works.into_iter().map(|work| {
            let (tables, sources) = (owned(work.tables(pipeline)), owned(work.sources(pipeline)));
            (work, tables, sources)
        });
        let schedule = Schedule::new(now, every, works.collect(), made);
        Self {
            started_at: run.lake.inner().clock().now(),
            every,
            schedule,
            datasets,
            tasks: JoinSet::new(),
            under_way: HashMap::new(),
            times: SourceTimes::default(),
            lags: BTreeMap::new(),
            sums: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            recorded: now,
            recording: false,
            looked: None,
            looking: false,
            run,
        }
    }

    /// Begins what is due.
    fn start(&mut self, now: Instant) {
        for Start { index, work, tables } in self.schedule.start(now) {
            let (run, layer, only) = (Arc::clone(&self.run), work.layer(), tables.clone());
            let task = self.tasks.spawn(async move { Done::Work(run.work(&work, &only).boxed().await) });
            self.under_way.insert(task.id(), UnderWay { index, layer, tables, since: now });
        }
    }

    /// Looks which tables have moved, in this process or another.
    fn look(&mut self, now: Instant) {
        if self.looking || self.looked.is_some_and(|looked| now < looked + self.every) {
            return;
        }
        let watched = self.schedule.watched();
        self.looked = Some(now);
        if !watched.is_empty() {
            self.looking = true;
            let run = Arc::clone(&self.run);
            self.tasks.spawn(async move { Done::Looked(moved_tables(run.lake.inner(), watched).boxed().await) });
        }
    }

    /// Writes what has become of the datasets, once a minute.
    fn record(&mut self, now: Instant) {
        if self.recording || now < self.recorded + RECORD_EVERY {
            return;
        }
        self.recorded = now;
        if self.unrecorded.values().any(|report| report.status != Status::NothingNew) {
            self.recording = true;
            let unrecorded = std::mem::take(&mut self.unrecorded);
            let report = self.run.report(self.run.lake.inner().clock().now(), 0, false, unrecorded.into_values().collect());
            let run = Arc::clone(&self.run);
            self.tasks.spawn(async move {
                run.record(&report).await;
                Done::Recorded
            });
        }
    }

    fn wake_at(&self, now: Instant) -> Instant {
        let look = (!self.looking).then(|| self.looked.map_or(now, |looked| looked + self.every));
        let record = (!self.recording).then(|| self.recorded + RECORD_EVERY);
        let wake = self.schedule.wake_at().into_iter().chain(look).chain(record).min();
        // with nothing in sight whatever is under way ends the wait
        wake.unwrap_or(now + RECORD_EVERY)
    }

    fn done(&mut self, done: Result<(Id, Done), JoinError>) {
        match done {
            Ok((id, Done::Work(finished))) => {
                if let Some(UnderWay { index, tables, .. }) = self.under_way.remove(&id) {
                    self.ended(index, &tables, finished);
                }
            }
            Ok((_, Done::Looked(moved))) => {
                self.looking = false;
                // what is being written here is told by who writes it, when it is whole
                let elsewhere = moved.into_iter().filter(|(table, _)| !self.under_way.values().any(|work| work.tables.contains(table)));
                elsewhere.collect::<Vec<_>>().into_iter().for_each(|one| self.moved(one));
            }
            Ok((_, Done::Learned(reached))) => {
                reached.into_iter().for_each(|Reached { table, version, time_ms }| self.times.reached(&table, version, time_ms));
            }
            Ok((_, Done::Recorded)) => self.recording = false,
            Err(error) => self.broken_off(&error),
        }
        self.tell_lags();
    }

    /// A task panicked: its datasets stop as with any bug of ours; looking and recording are begun anew.
    fn broken_off(&mut self, error: &JoinError) {
        let Some(UnderWay { index, layer, tables, since }) = self.under_way.remove(&error.id()) else {
            tracing::warn!(%error, "looking at tables or writing system.tributary.runs broke off");
            (self.looking, self.recording) = (false, false);
            return;
        };
        let broken = |table: &TableName| {
            let report = Unfinished::Panicked { table: table.clone(), reason: error.to_string() }.report(since);
            Finished { layer, report }
        };
        let finished = tables.iter().map(broken).collect();
        self.ended(index, &tables, finished);
    }

    fn moved(&mut self, one: Moved) {
        if !self.schedule.moved(&one) {
            return;
        }
        let (table, version) = one;
        let made_here = self.datasets.iter().any(|(dataset, ..)| *dataset == table);
        if !made_here {
            self.learn(table, Some(version));
        }
    }

    /// Asks the log how far a table has come.
    fn learn(&mut self, table: TableName, version: Option<u64>) {
        let run = Arc::clone(&self.run);
        let known = version.and_then(|version| self.times.known_below(&table.to_string(), version));
        self.tasks.spawn(async move { Done::Learned(reached(run.lake.inner(), table, known).boxed().await) });
    }

    fn ended(&mut self, index: usize, tables: &[TableName], finished: Vec<Finished>) {
        let mut outcomes: Vec<(TableName, Outcome)> = tables.iter().map(|table| (table.clone(), Outcome::Well)).collect();
        for one in finished {
            if let Some((table, outcome)) = outcomes.iter_mut().find(|(table, _)| table.to_string() == one.report.table) {
                *outcome = self.finish(table, one);
            }
        }
        for consequence in self.schedule.ended(index, &outcomes, Instant::now()) {
            self.tell(consequence);
        }
    }

    fn finish(&mut self, table: &TableName, mut one: Finished) -> Outcome {
        let well_before = self.sums.get(table).is_none_or(|sum| sum.status != Status::Failed);
        let outcome = Outcome::of(&one.report, well_before && self.run.options.cancel.is_cancelled());
        if outcome == Outcome::Well {
            totals::forgive(&mut one.report);
        }
        if let Some(version) = one.report.version_to {
            self.schedule.moved(&(table.clone(), version));
        }
        self.times.note(&mut one.report, self.run.lake.inner().clock().now());
        let sources = self.datasets.iter().find(|(dataset, ..)| dataset == table).map(|(.., sources)| sources.clone()).unwrap_or_default();
        if self.times.latest(&one.report.table).is_none() && one.report.version_to.is_some() {
            self.learn(table.clone(), None);
        }
        if !sources.is_empty() {
            one.report.lag_seconds = self.times.behind(&one.report.table, &sources);
        }
        self.publish(table, one);
        outcome
    }

    fn publish(&mut self, table: &TableName, one: Finished) {
        self.run.lake.announce(&one.report);
        for sums in [&mut self.sums, &mut self.unrecorded] {
            let sum = sums.entry(table.clone()).or_insert_with(|| DatasetReport { table: table.to_string(), ..DatasetReport::default() });
            totals::add(sum, &one.report);
        }
        self.event(&ProgressEvent::DatasetFinished { layer: one.layer, report: Box::new(one.report) });
    }

    fn tell(&mut self, consequence: Consequence) {
        match consequence {
            Consequence::Wait { table, failures, after } => {
                let layer = self.layer(&table);
                self.event(&ProgressEvent::DatasetWaits { table, layer, failures, after });
            }
            Consequence::Stop { table, because_of } => {
                let layer = self.layer(&table);
                if table != because_of {
                    self.publish(&table, skipped(layer, &table, &because_of));
                }
                self.event(&ProgressEvent::DatasetStopped { table, layer, because_of });
            }
        }
    }

    fn layer(&self, table: &TableName) -> Layer {
        self.datasets.iter().find(|(dataset, ..)| dataset == table).map_or(Layer::Bronze, |(_, layer, _)| *layer)
    }

    /// Tells of each dataset whose lag has changed because something it reads has moved.
    fn tell_lags(&mut self) {
        let mut changed = Vec::new();
        for (table, layer, sources) in self.datasets.iter().filter(|(.., sources)| !sources.is_empty()) {
            let seconds = self.times.behind(&table.to_string(), sources);
            if self.lags.get(table).copied().flatten() != seconds {
                self.lags.insert(table.clone(), seconds);
                changed.push(ProgressEvent::LagChanged { table: table.clone(), layer: *layer, seconds });
            }
        }
        changed.iter().for_each(|event| self.event(event));
    }

    fn event(&self, event: &ProgressEvent) {
        self.run.options.progress.event(event);
    }

    /// Lets what is under way come to its end, as long as that may take; then writes the last rows of `system.tributary.runs`.
    async fn wind_up(mut self, begun: Instant) -> RunReport {
        let until = tokio::time::Instant::now() + GRACE;
        while !self.under_way.is_empty() {
            match tokio::time::timeout_at(until, self.tasks.join_next_with_id()).await {
                Ok(Some(done)) => self.done(done),
                Ok(None) => break,
                Err(_) => {
                    let left: Vec<String> = self.under_way.values().flat_map(|work| &work.tables).map(ToString::to_string).collect();
                    tracing::warn!(tables = left.join(", "), "given up at the end of the run; the next run does what is left");
                    break;
                }
            }
        }
        self.tasks.abort_all();
        let unrecorded = std::mem::take(&mut self.unrecorded).into_values().collect();
        let last = self.run.report(self.run.lake.inner().clock().now(), 0, false, unrecorded);
        if tokio::time::timeout(LAST_RECORD, self.run.record(&last)).await.is_err() {
            tracing::warn!("system.tributary.runs was not written in time");
        }
        let mut datasets = Vec::new();
        for (table, ..) in &self.datasets {
            let never =
                || DatasetReport { table: table.to_string(), reason: "what it reads is not there yet".to_owned(), ..Default::default() };
            datasets.push(self.sums.remove(table).unwrap_or_else(never));
        }
        self.run.report(self.started_at, millis(begun.elapsed()), false, datasets)
    }
}

/// Feeds that are not read together go on without each other.
fn apart(work: Work, pipeline: &crate::Pipeline) -> Vec<Work> {
    let Work::Feeds(chosen) = &work else { return vec![work] };
    let groups = tributary_bronze::read_together(&pipeline.spec().feeds).into_iter();
    let groups = groups.map(|group| group.into_iter().filter(|feed| chosen.contains(feed)).collect::<Vec<_>>());
    groups.filter(|group| !group.is_empty()).map(Work::Feeds).collect()
}
