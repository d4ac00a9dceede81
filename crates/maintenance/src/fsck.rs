//! Whether what the log names is there.

use std::collections::{BTreeMap, HashMap};

use futures::TryStreamExt;
use serde::Serialize;
use tributary_lake::{Commit, CommitOutcome, DataFile, Lake, Operation, Reads, Table};
use tributary_specs::TableName;

use crate::report::Amount;
use crate::{Error, Result, Status};

/// How often a repair that lost a race is planned again.
const TRIES: usize = 10;

/// What is wrong with a live file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Defect {
    /// The data file is not there.
    Missing,
    /// Its deletion vector is not there: nobody knows which of its rows are deleted.
    VectorMissing {
        /// The vector's file.
        path: String,
    },
    /// The file that the deletion vector is in ends before the vector does.
    VectorCut {
        /// The vector's file.
        path: String,
        /// Its bytes.
        found: u64,
        /// The bytes that it has at least where the log is right.
        expected: u64,
    },
    /// The data file has another size than the log says.
    Size {
        /// Its bytes.
        found: u64,
        /// What the log says.
        expected: u64,
    },
}

impl Defect {
    /// Whether the rows of the file cannot be told any more.
    fn loses_rows(&self) -> bool {
        matches!(self, Self::Missing | Self::VectorMissing { .. } | Self::VectorCut { .. })
    }
}

/// A live file with something wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The data file, as the log names it.
    pub path: String,
    /// Its live rows, where the log counts them.
    pub rows: Option<u64>,
    /// What is wrong.
    pub defect: Defect,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsckOptions {
    /// Take files whose rows cannot be told any more out of the log.
    pub repair: bool,
    /// How many files may be lost so; exactly as many as are found.
    pub accept_lost_files: Option<u64>,
}

/// What a check found.
#[derive(Debug, Serialize)]
pub struct FsckReport {
    /// The table.
    pub table: TableName,
    /// Left where something is wrong, done where it was taken out of the log, else nothing to do.
    pub status: Status,
    /// Live files that were looked at.
    pub checked: Amount,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Files that lie elsewhere, and were not looked at.
    pub elsewhere: u64,
    /// Files that were taken out of the log.
    pub lost_files: u64,
    /// Their live rows, where the log counts them.
    pub lost_rows: Option<u64>,
    /// The version that was made.
    pub version: Option<u64>,
}

/// Looks for every live file of a table, and takes out of the log what is not there where that is asked for.
///
/// # Errors
/// [`Error::RepairLoses`] where another number of files would be lost than was accepted; [`Error::Lake`].
pub async fn fsck(lake: &Lake, name: &TableName, options: FsckOptions) -> Result<FsckReport> {
    for _ in 0..TRIES {
        let table = crate::open(lake, name).await?;
        let files = table.files().await.map_err(Error::lake("reading the log of", name))?;
        let (mut report, lost) = check(&table, &files).await.map_err(Error::lake("listing the files of", name))?;
        if !options.repair || lost.is_empty() {
            return Ok(report);
        }
        report.lost_files = lost.len() as u64;
        report.lost_rows = lost.iter().map(DataFile::live_rows).sum();
        if options.accept_lost_files != Some(report.lost_files) {
            return Err(Error::RepairLoses { table: name.clone(), files: report.lost_files, rows: report.lost_rows });
        }
        match table.commit(loss(lost)).await.map_err(Error::lake("repairing", name))? {
            CommitOutcome::Committed { version } => {
                report.version = Some(version);
                report.status = Status::Done;
                return Ok(report);
            }
            CommitOutcome::Conflicted(_) | CommitOutcome::Fenced { .. } => {}
        }
    }
    Err(Error::Contended { table: name.clone(), attempts: TRIES })
}

/// What readers of changes are told: the rows are deleted.
fn loss(removes: Vec<DataFile>) -> Commit {
    let metrics = BTreeMap::from([("numRemovedFiles".to_owned(), removes.len().to_string())]);
    Commit { operation: Operation::Fsck, removes, metrics, reads: Reads::Files, ..Commit::default() }
}

async fn check(table: &Table, files: &[DataFile]) -> tributary_lake::Result<(FsckReport, Vec<DataFile>)> {
    let there: HashMap<String, u64> = table.objects().map_ok(|object| (object.path, object.size)).try_collect().await?;
    let mut report = FsckReport {
        table: table.name().clone(),
        status: Status::NothingToDo,
        checked: Amount::of(files.iter().map(|file| file.size)),
        findings: Vec::new(),
        elsewhere: 0,
        lost_files: 0,
        lost_rows: None,
        version: None,
    };
    let mut lost = Vec::new();
    for file in files {
        let Some(path) = table.path_of(file) else {
            report.elsewhere += 1;
            continue;
        };
        let Some(defect) = defect_of(table, file, &path, &there)? else { continue };
        if defect.loses_rows() {
            lost.push(file.clone());
        }
        report.findings.push(Finding { path: file.path.clone(), rows: file.live_rows(), defect });
    }
    if !report.findings.is_empty() {
        report.status = Status::Left;
    }
    Ok((report, lost))
}

fn defect_of(table: &Table, file: &DataFile, path: &str, there: &HashMap<String, u64>) -> tributary_lake::Result<Option<Defect>> {
    let Some(size) = there.get(path) else { return Ok(Some(Defect::Missing)) };
    if let Some(vector) = &file.deletion_vector
        && let Some(path) = table.path_of_vector(vector)?
    {
        // Behind its offset a vector has its size and its checksum beside its bytes.
        let number = |number: i32| u64::try_from(number).unwrap_or_default();
        let expected = number(vector.offset.unwrap_or(1)) + number(vector.size_in_bytes) + 8;
        match there.get(&path) {
            None => return Ok(Some(Defect::VectorMissing { path })),
            Some(found) if *found < expected => return Ok(Some(Defect::VectorCut { path, found: *found, expected })),
            Some(_) => {}
        }
    }
    Ok((*size != file.size).then_some(Defect::Size { found: *size, expected: file.size }))
}
