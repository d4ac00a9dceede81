//! How a bronze run behaves.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tributary_specs::TableName;

use crate::files::DataRoot;
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
    /// What is done when a source no longer has what the table has not seen.
    pub on_gap: OnGap,
    /// Lost races after which a table is given up, at least 1.
    pub attempts_max: u32,
    /// Stops the run between two slices.
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
            on_gap: OnGap::Stop,
            attempts_max: 8,
            cancel: CancellationToken::new(),
            progress: Arc::new(Silent),
        }
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
