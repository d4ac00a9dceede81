//! How a bronze run behaves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tributary_specs::{SourceFeed, TableName};

use crate::consumers::Consumers;
use crate::files::DataRoot;
use crate::registry::Registries;
use crate::source::RecordSource;

/// How a bronze run behaves. Build it with [`Options::new`] and change what differs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where relative paths of file feeds begin.
    pub data: DataRoot,
    /// Files of one batch, at least 1.
    pub max_files_per_trigger: usize,
    /// Bytes (as stored) of one batch; a batch holds at least one file.
    pub max_bytes_per_trigger: Option<u64>,
    /// Records of one batch; a file is never divided, so the file that crosses the bound is the last.
    pub max_records_per_trigger: Option<u64>,
    /// Records decoded at once.
    pub slice_records: usize,
    /// Bytes of records decoded at once.
    pub slice_bytes: usize,
    /// Bytes of the longest record; what is longer goes to quarantine in pieces.
    pub record_bytes_max: usize,
    /// Taken files of a feed that are kept as positions of their own; what comes after them goes into ranges of 1,000 files in
    /// metadata domains.
    pub files_as_positions_max: usize,
    /// Only these feeds are run; the others still take part in who reads what of a shared file.
    pub only: Option<BTreeSet<String>>,
    /// Schema of the quarantine tables.
    pub quarantine_schema: String,
    /// Record sources the program brings, found by [`RecordSource::name`].
    pub sources: Vec<Arc<dyn RecordSource>>,
    /// How Kafka topics are read.
    pub kafka: KafkaOptions,
    /// What is done when a source no longer has what the table has not seen.
    pub on_gap: OnGap,
    /// Feeds whose tables are built anew: one commit replaces their rows and positions by what their sources hold.
    pub full_refresh: BTreeSet<String>,
    /// A full refresh goes on where a source no longer has all that the table was made of.
    pub accept_shorter_history: bool,
    /// Lost races after which a table is given up, at least 1.
    pub attempts_max: u32,
    /// Ends the run: nothing more is taken up, what was read is committed. A file that was begun is read to its end.
    pub cancel: CancellationToken,
    /// Told after every slice and every commit.
    pub progress: Arc<dyn ProgressSink>,
}

impl Options {
    /// The defaults over a root of file drops.
    pub fn new(data: DataRoot) -> Self {
        Self {
            data,
            max_files_per_trigger: 1000,
            max_bytes_per_trigger: None,
            max_records_per_trigger: None,
            slice_records: 16_384,
            slice_bytes: 8 << 20,
            record_bytes_max: 64 << 20,
            files_as_positions_max: 10_000,
            only: None,
            quarantine_schema: "quarantine".to_owned(),
            sources: Vec::new(),
            kafka: KafkaOptions::default(),
            on_gap: OnGap::Stop,
            full_refresh: BTreeSet::new(),
            accept_shorter_history: false,
            attempts_max: 8,
            cancel: CancellationToken::new(),
            progress: Arc::new(Silent),
        }
    }

    /// Whether a feed is run.
    pub(crate) fn runs(&self, feed: &SourceFeed) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&feed.name))
    }

    /// The quarantine table of a feed.
    pub fn quarantine_of(&self, feed: &str) -> TableName {
        TableName::new(&self.quarantine_schema, feed)
    }
}

/// What is done when a source no longer has what the table has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnGap {
    /// Stop with the missing range.
    #[default]
    Stop,
    /// Go on with the first record the source still has.
    Earliest,
    /// Go on with what comes after the source's last record.
    Latest,
}

impl OnGap {
    /// As the setting says it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Earliest => "earliest",
            Self::Latest => "latest",
        }
    }
}

/// How Kafka topics are read, where the feed does not say otherwise.
#[derive(Clone)]
pub struct KafkaOptions {
    /// Brokers to begin with, `host:port` separated by commas.
    pub bootstrap: Option<String>,
    /// Consumer group of continuous runs; `tributary` when nothing names one. A drain joins no group.
    pub group: Option<String>,
    /// Consumer properties by librdkafka's names; a feed's own stand above them. Their values are never shown.
    pub properties: BTreeMap<String, String>,
    /// The schema registry's URL.
    pub registry: Option<String>,
    /// How the registry is told who asks: `USER:PASSWORD` or `Bearer TOKEN`. Never shown.
    pub registry_auth: Option<String>,
    /// The registries opened so far, so that a schema is asked for once; one is kept for all rounds.
    pub registries: Arc<Registries>,
    /// Where partitions, by topic and number, begin for which the table has no position. With any offset here or in
    /// [`Self::ending_offsets`] only the partitions named are read, by drains alone.
    pub starting_offsets: BTreeMap<(String, i32), i64>,
    /// Where partitions end, before the ends they have: the offset after the last record that is read.
    pub ending_offsets: BTreeMap<(String, i32), i64>,
    /// How long a drain waits for an answer before it fails; a round of a continuous run waits a sixth of it, and goes on trying.
    pub patience: Duration,
    /// Whether runs are drains, or the rounds of a continuous run.
    pub mode: KafkaMode,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        Self {
            bootstrap: None,
            group: None,
            properties: BTreeMap::new(),
            registry: None,
            registry_auth: None,
            registries: Arc::default(),
            starting_offsets: BTreeMap::new(),
            ending_offsets: BTreeMap::new(),
            patience: Duration::from_secs(30),
            mode: KafkaMode::Drain,
        }
    }
}

impl Debug for KafkaOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaOptions")
            .field("bootstrap", &self.bootstrap)
            .field("group", &self.group)
            .field("properties", &self.properties.keys())
            .field("registry", &self.registry)
            .field("registry_auth", &self.registry_auth.as_ref().map(|_| "…"))
            .field("starting_offsets", &self.starting_offsets)
            .field("ending_offsets", &self.ending_offsets)
            .field("patience", &self.patience)
            .field("mode", &self.mode)
            .finish()
    }
}

/// Who decides which partitions are read.
#[derive(Debug, Clone, Default)]
pub enum KafkaMode {
    /// All of the feeds' topics, from the tables' positions to the ends they have when the run begins.
    #[default]
    Drain,
    /// Those that the consumer group gives to this process. One [`Consumers`] is kept for all rounds, so that the group stays joined.
    Continuous(Arc<Consumers>),
}

/// What happened to a feed since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The feed's table.
    pub table: &'a TableName,
    /// Records read for it.
    pub records: u64,
    /// Bytes of those records.
    pub bytes: u64,
    /// Version of the last commit, when there was one.
    pub version: Option<u64>,
    /// How much of what was there when the run began has been read, where that is known.
    pub extent: Option<Extent>,
    /// The newest time, at their source, of the records read: milliseconds since 1970.
    pub source_time_ms: Option<i64>,
    /// Records that the source holds and the table does not yet, where the source can tell.
    pub lag_records: Option<u64>,
}

/// How much has been read, in the source's own unit: bytes of files, records of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Read so far.
    pub done: u64,
    /// What was there when the run began.
    pub whole: u64,
}

/// Someone who wants to know how far a run is. Called often: be quick.
pub trait ProgressSink: Debug + Send + Sync {
    /// Told after every slice and every commit.
    fn seen(&self, seen: Seen<'_>);
}

/// Nobody.
#[derive(Debug)]
struct Silent;

impl ProgressSink for Silent {
    fn seen(&self, _: Seen<'_>) {}
}
