//! Which files are written anew together. Pure: everything is decided from what the log says of the files.

mod compact;
mod cubes;
mod decide;

use std::collections::BTreeMap;

use tributary_lake::{Cube, Curve, DataFile};

pub(crate) use compact::{Rules, compact};
pub(crate) use cubes::{Along, cubes};
pub(crate) use decide::{Asked, Work, decide};

/// Whose clustering we take part in.
const PROVIDER: &str = "liquid";

/// A live file, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct File {
    /// Its number in the snapshot.
    pub at: usize,
    pub path: String,
    pub partition: BTreeMap<String, Option<String>>,
    pub modified_ms: i64,
    pub bytes: u64,
    /// Rows, those marked as deleted counted in; none where nobody counted.
    pub rows: Option<u64>,
    /// Rows marked as deleted; none where the file has no deletion vector.
    pub marked: Option<u64>,
    pub cube: Option<Cube>,
    /// The bytes at which its writer closed it.
    pub full_at: Option<u64>,
    /// Somebody else's clustering laid its rows, which nobody but them may lay anew.
    pub foreign: bool,
}

impl File {
    /// The files of a snapshot.
    pub fn all(files: &[DataFile]) -> Vec<Self> {
        files.iter().enumerate().map(|(at, file)| Self::of(at, file)).collect()
    }

    fn of(at: usize, file: &DataFile) -> Self {
        let arranged = file.arranged();
        let provider = file.clustering_provider();
        Self {
            at,
            path: file.path.clone(),
            partition: file.partition_values.clone(),
            modified_ms: file.modified_ms,
            bytes: file.size,
            rows: file.stats.rows,
            marked: file.deletion_vector.as_ref().map(|vector| vector.rows),
            foreign: provider.is_some_and(|provider| provider != PROVIDER),
            cube: arranged.cube,
            full_at: arranged.full_at,
        }
    }

    /// Bytes that its live rows take, as far as counts of rows can tell.
    pub fn live_bytes(&self) -> u64 {
        match (self.rows, self.marked) {
            (Some(rows), Some(marked)) if rows > 0 => {
                let live = u128::from(self.bytes) * u128::from(rows.saturating_sub(marked)) / u128::from(rows);
                u64::try_from(live).unwrap_or(self.bytes)
            }
            _ => self.bytes,
        }
    }

    /// Whether so large a share of its rows is marked as deleted. Of unknown many it may be.
    pub fn is_purged_at(&self, share: f64) -> bool {
        self.marked.is_some_and(|marked| self.rows.is_none_or(|rows| marked as f64 >= share * rows as f64))
    }
}

/// Files of one partition that are written anew together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bin {
    /// In the order in which their rows are read.
    pub files: Vec<File>,
    pub becomes: Becomes,
}

/// What becomes of the rows of a bin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// Files of the table's usual size, in the order of their keys where the files have any, else as they come.
    Few,
    /// One file without the rows that are marked as deleted, else as it is.
    Purged,
    /// A cube along a curve.
    Cube { columns: Vec<String>, curve: Curve },
}

impl Bin {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.files.iter().map(File::live_bytes).sum()
    }
}

/// Files by partition, each partition's in the order in which they came.
fn by_partition(files: &[File]) -> Vec<Vec<&File>> {
    let mut sorted: Vec<&File> = files.iter().collect();
    sorted.sort_by(|one, other| {
        let key = |file: &'_ File| (file.modified_ms, file.at);
        one.partition.cmp(&other.partition).then_with(|| key(one).cmp(&key(other)))
    });
    sorted.chunk_by(|one, other| one.partition == other.partition).map(<[_]>::to_vec).collect()
}

/// Consecutive files as long as they have at most so many bytes together.
fn runs_within<'a>(files: &[&'a File], bytes_max: u64) -> Vec<Vec<&'a File>> {
    let mut runs: Vec<Vec<&File>> = Vec::new();
    let mut bytes = 0;
    for file in files {
        match runs.last_mut() {
            Some(run) if bytes + file.bytes <= bytes_max => run.push(file),
            _ => {
                runs.push(vec![file]);
                bytes = 0;
            }
        }
        bytes += file.bytes;
    }
    runs
}

/// Bins as they are committed together: each group within so many bytes, or one bin alone.
pub(crate) fn groups(bins: Vec<Bin>, bytes_max: u64) -> Vec<Vec<Bin>> {
    let mut groups: Vec<Vec<Bin>> = Vec::new();
    let mut bytes = 0;
    for bin in bins {
        let more = bin.bytes();
        match groups.last_mut() {
            Some(group) if bytes + more <= bytes_max => group.push(bin),
            _ => {
                groups.push(vec![bin]);
                bytes = 0;
            }
        }
        bytes += more;
    }
    groups
}
