//! How a lake is opened and how a run is asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;
use tributary_bronze::{Extent, KafkaOptions, OnGap};
use tributary_lake::{Clock, SystemClock};
use tributary_specs::{DatasetReport, Layer, SourceFeed, TableName};

use crate::{OpenLineage, Pipeline};

/// How a lake is opened.
///
/// ```
/// let options = tributary::OpenOptions { catalogue: "shop".to_owned(), ..Default::default() };
/// assert_eq!(options.memory_limit, 1 << 30);
/// ```
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The catalogue: the first folder below the root. Default `main`.
    pub catalogue: String,
    /// Where commit times come from.
    pub clock: Arc<dyn Clock>,
    /// Bytes that queries and our own buffers may hold together. Default 1 GiB.
    pub memory_limit: usize,
    /// How often a lost race is planned again before the dataset fails. Default 20.
    pub attempts_max: u32,
    /// Where queries spill to when memory is short; the system's temporary folder by default.
    pub spill_path: Option<PathBuf>,
    /// Told of every table a run has committed to.
    pub catalogues: Vec<Arc<dyn Catalogue>>,
    /// Rules broken on purpose; only in tests.
    #[cfg(feature = "controls")]
    pub controls: tributary_testkit::Controls,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            catalogue: "main".to_owned(),
            clock: Arc::new(SystemClock),
            memory_limit: 1 << 30,
            attempts_max: 20,
            spill_path: None,
            catalogues: Vec::new(),
            #[cfg(feature = "controls")]
            controls: tributary_testkit::Controls::none(),
        }
    }
}

/// A catalogue of the embedding program's that wants to know of tables.
///
/// ```
/// #[derive(Debug, Default)]
/// struct Log(std::sync::Mutex<Vec<String>>);
///
/// impl tributary::Catalogue for Log {
///     fn committed(&self, table: &tributary::TableName, version: u64) {
///         self.0.lock().unwrap().push(format!("{table}@{version}"));
///     }
/// }
/// ```
pub trait Catalogue: fmt::Debug + Send + Sync {
    /// `table` has reached `version` in this run. Called after the commit; it cannot undo it.
    fn committed(&self, table: &TableName, version: u64);
}

/// What one run does.
///
/// ```
/// use tributary::{Layer, RunOptions};
/// let options = RunOptions { layers: vec![Layer::Bronze], ..Default::default() };
/// assert!(options.only.is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Layers to run, in phases. Default all.
    pub layers: Vec<Layer>,
    /// Datasets to run and no others; empty = all of the layers.
    pub only: Vec<TableName>,
    /// Datasets that are built anew: their rows and positions are replaced in one commit, flows that run once run again, the source of
    /// a feed is read from its start. They are run besides those of `only`; where `only` is empty, they alone are.
    pub full_refresh: Vec<TableName>,
    /// A full refresh goes on where a source no longer has all that the table was made of: what it has no more is lost.
    pub accept_shorter_history: bool,
    /// Streams pass over commits that updated or deleted rows of a table that they read by its appends, though their flows are not
    /// declared so. What they took up of those rows stays; the report counts the commits.
    pub skip_change_commits: bool,
    /// Every dataset of the pipeline that the run chooses is built anew, but those that `pipelines.reset.allowed` = `false` protects, and
    /// feeds that stand by themselves: of feeds only streaming tables over `read_files` and `read_kafka` are datasets of the pipeline.
    pub full_refresh_all: bool,
    /// Tables are written on which masks or row filters are recorded, though nothing enforces those; every report names them.
    pub accept_unprotected: bool,
    /// Drain what is there and return, or go on.
    pub mode: Mode,
    /// Bytes for this run, where it differs from the lake's.
    pub memory_limit: Option<usize>,
    /// The instant that `now()` and `current_date()` mean in silver and gold queries, where it is not the clock's.
    pub as_of: Option<DateTime<Utc>>,
    /// The clock of this run, where it differs from the lake's.
    pub clock: Option<Arc<dyn Clock>>,
    /// Ends the run: what is read is committed, within some seconds; a cancelled run is as safe as a killed one.
    pub cancel: CancellationToken,
    /// Told of what happens.
    pub progress: Arc<dyn ProgressSink>,
    /// Root of relative file paths of feeds.
    pub base_data_path: PathBuf,
    /// Bounds of one batch of a feed.
    pub batch: BatchBounds,
    /// Version of a source table to start from where the target has no position yet.
    pub starting_version: u64,
    /// How Kafka topics are read; the run itself sets whether as a drain or continuously.
    pub kafka: KafkaOptions,
    /// What to do where a record source no longer has the records after the stored position. Default: stop.
    pub on_gap: OnGap,
    /// Where OpenLineage events of this run go.
    pub openlineage: Option<OpenLineage>,
    /// The task of a job that this run is the work of: lineage is then the job's.
    pub within_job: Option<WithinJob>,
}

impl RunOptions {
    /// Whether the run brings this dataset up to date. It is of the layer that its schema is called after, whatever makes it, so that a
    /// view in the schema `silver` comes with silver; in a schema of another name, of the layer of its kind.
    ///
    /// ```
    /// use tributary::{Layer, RunOptions};
    /// let options = RunOptions { layers: vec![Layer::Bronze], ..Default::default() };
    /// assert!(options.chooses(Layer::Bronze, &"bronze.orders".parse()?) && !options.chooses(Layer::Gold, &"gold.revenue".parse()?));
    /// assert!(options.chooses(Layer::Silver, &"bronze.enriched".parse()?) && options.chooses(Layer::Bronze, &"landing.orders".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chooses(&self, layer: Layer, table: &TableName) -> bool {
        let refreshed = self.full_refresh.contains(table);
        match self.only.is_empty() && !self.full_refresh.is_empty() {
            true => refreshed,
            false => refreshed || is_chosen(&self.layers, &self.only, layer, table),
        }
    }

    /// Whether the run builds this dataset anew.
    ///
    /// ```
    /// use tributary::RunOptions;
    /// let options = RunOptions { full_refresh: vec!["silver.orders".parse()?], ..Default::default() };
    /// assert!(options.refreshes_in_full(&"silver.orders".parse()?) && !options.refreshes_in_full(&"gold.revenue".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refreshes_in_full(&self, table: &TableName) -> bool {
        self.full_refresh_all || self.full_refresh.contains(table)
    }
}

impl RunOptions {
    /// Whether the run builds a dataset with these properties anew: one that is protected is not built anew with all others.
    pub(crate) fn builds_anew(&self, table: &TableName, properties: &BTreeMap<String, String>) -> bool {
        self.refreshes_in_full(table) && tributary_specs::reset_allowed(properties)
    }

    /// Whether the run builds a feed's table anew: with all others where it is a dataset of the pipeline's files (a streaming table over
    /// `read_files` or `read_kafka`), as on the platform; a feed that stands by itself only where it was named.
    pub(crate) fn builds_feed_anew(&self, pipeline: &Pipeline, feed: &SourceFeed) -> bool {
        let named = self.full_refresh.contains(&feed.table) || (self.full_refresh_all && pipeline.defines_feed(&feed.table));
        named && self.builds_anew(&feed.table, &feed.properties)
    }
}

/// Whether `layers` and `only`, where it names any, choose a dataset; `kind` is the layer of what makes it.
pub(crate) fn is_chosen(layers: &[Layer], only: &[TableName], kind: Layer, table: &TableName) -> bool {
    let layer = table.schema.to_lowercase().parse().unwrap_or(kind);
    layers.contains(&layer) && (only.is_empty() || only.contains(table))
}

/// The task of a job that a run is the work of.
///
/// ```
/// let task = tributary::WithinJob { job_name: "nightly".to_owned(), task_key: "refresh".to_owned(), ..Default::default() };
/// let options = tributary::RunOptions { within_job: Some(task), ..Default::default() };
/// assert!(options.within_job.is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WithinJob {
    /// The job's number.
    pub job_id: String,
    /// Its name.
    pub job_name: String,
    /// The number of its run.
    pub job_run_id: String,
    /// The task's key.
    pub task_key: String,
    /// The number of its attempt.
    pub task_run_id: String,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            layers: Layer::ALL.to_vec(),
            only: Vec::new(),
            full_refresh: Vec::new(),
            full_refresh_all: false,
            accept_shorter_history: false,
            skip_change_commits: false,
            accept_unprotected: false,
            mode: Mode::Drain,
            memory_limit: None,
            as_of: None,
            clock: None,
            cancel: CancellationToken::new(),
            progress: Arc::new(Silent),
            base_data_path: PathBuf::from("data/raw"),
            batch: BatchBounds::default(),
            starting_version: 0,
            kafka: KafkaOptions::default(),
            on_gap: OnGap::Stop,
            openlineage: None,
            within_job: None,
        }
    }
}

/// Bounds of one batch of a feed; the first one met ends the batch.
///
/// ```
/// assert_eq!(tributary::BatchBounds::default().files_max, 1000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchBounds {
    /// Files. Default 1000.
    pub files_max: usize,
    /// Bytes of files; a single larger file is a batch of its own.
    pub bytes_max: Option<u64>,
    /// Records.
    pub records_max: Option<u64>,
}

impl Default for BatchBounds {
    fn default() -> Self {
        Self { files_max: 1000, bytes_max: None, records_max: None }
    }
}

/// When a run returns.
///
/// ```
/// assert_eq!(tributary::Mode::default(), tributary::Mode::Drain);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// When what was there at its start has gone through.
    #[default]
    Drain,
    /// When it is cancelled.
    Continuous {
        /// No dataset begins twice within this time; feeds, and tables of others that are read, are looked at this often.
        every: Duration,
    },
}

/// Told of what happens in a run. Calls come from several tasks and must not block.
///
/// ```
/// #[derive(Debug)]
/// struct Print;
///
/// impl tributary::ProgressSink for Print {
///     fn event(&self, event: &tributary::ProgressEvent) {
///         println!("{event:?}");
///     }
/// }
/// ```
pub trait ProgressSink: fmt::Debug + Send + Sync {
    /// Something happened.
    fn event(&self, event: &ProgressEvent);
}

/// What happens in a run.
///
/// ```
/// let event = tributary::ProgressEvent::PhaseStarted { phase: 0, phases: 3 };
/// assert!(format!("{event:?}").contains("PhaseStarted"));
/// ```
#[derive(Debug, Clone)]
pub enum ProgressEvent {
    /// The datasets of one level of the graph begin.
    PhaseStarted {
        /// From 0.
        phase: usize,
        /// How many there are.
        phases: usize,
    },
    /// A dataset begins.
    DatasetStarted {
        /// Which.
        table: TableName,
        /// Its layer.
        layer: Layer,
    },
    /// A dataset has gone on; what it has taken up since its work began.
    DatasetAdvanced {
        /// Which.
        table: TableName,
        /// Its layer.
        layer: Layer,
        /// Records read in bronze, source rows read in silver, rows made in gold.
        records: u64,
        /// Bytes of records; 0 in silver and gold.
        bytes: u64,
        /// How much of what was there when the run began has been read, where that is known.
        extent: Option<Extent>,
        /// The newest time, at their source, of the records read: milliseconds since 1970.
        source_time_ms: Option<i64>,
        /// Records that the source holds and the table does not yet, where the source can tell.
        lag_records: Option<u64>,
    },
    /// A dataset has ended.
    DatasetFinished {
        /// Its layer.
        layer: Layer,
        /// What it did.
        report: Box<DatasetReport>,
    },
    /// A dataset of a continuous run has failed and is tried again.
    DatasetWaits {
        /// Which.
        table: TableName,
        /// Its layer.
        layer: Layer,
        /// How often it has failed in a row.
        failures: u32,
        /// How long it is left alone.
        after: Duration,
    },
    /// A dataset of a continuous run is not run any more: it failed, or what it reads did, and a person must mend that.
    DatasetStopped {
        /// Which.
        table: TableName,
        /// Its layer.
        layer: Layer,
        /// The dataset that failed: itself, or one that it reads.
        because_of: TableName,
    },
    /// What a dataset of a continuous run reads has moved on, or the dataset has.
    LagChanged {
        /// Which.
        table: TableName,
        /// Its layer.
        layer: Layer,
        /// How far it is behind, in seconds of the source's time; none = that cannot be told.
        seconds: Option<u64>,
    },
}

/// Says nothing.
#[derive(Debug)]
struct Silent;

impl ProgressSink for Silent {
    fn event(&self, _event: &ProgressEvent) {}
}
