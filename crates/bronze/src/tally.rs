//! Counts of one feed, and the report they become.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tributary_fault::{ExitCode, Fault, chain};
use tributary_specs::{Column, DatasetReport, PassedGap, ReportedError, Status, TableName};

use crate::options::Extent;
use crate::{Error, Result};

/// Records of one batch, or of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub rows_in: u64,
    pub rows_out: u64,
    pub quarantined: u64,
    pub ignored: BTreeMap<String, u64>,
    pub bytes: u64,
    pub notes: BTreeMap<String, u64>,
    /// `quarantined` by reason code.
    pub reasons: BTreeMap<String, u64>,
    /// The newest event time of the rows, in microseconds.
    pub newest_us: Option<i64>,
}

impl Counts {
    pub(crate) fn ignore(&mut self, reason: &str, records: u64) {
        if records > 0 {
            *self.ignored.entry(reason.to_owned()).or_default() += records;
        }
    }

    pub(crate) fn quarantine(&mut self, reason: &str, records: u64) {
        if records > 0 {
            self.quarantined += records;
            *self.reasons.entry(reason.to_owned()).or_default() += records;
        }
    }

    pub(crate) fn note(&mut self, note: String, times: u64) {
        *self.notes.entry(note).or_default() += times;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        other.reasons.into_iter().for_each(|(reason, records)| self.quarantine(&reason, records));
        self.bytes += other.bytes;
        self.newest_us = self.newest_us.max(other.newest_us);
        other.ignored.into_iter().for_each(|(reason, records)| self.ignore(&reason, records));
        other.notes.into_iter().for_each(|(note, times)| self.note(note, times));
    }

    /// B3.
    pub(crate) fn check(&self, table: &TableName) -> Result<()> {
        let ignored: u64 = self.ignored.values().sum();
        if self.rows_in == self.rows_out + self.quarantined + ignored {
            return Ok(());
        }
        let (rows_in, rows_out, quarantined) = (self.rows_in, self.rows_out, self.quarantined);
        Err(Error::Counts { table: table.clone(), rows_in, rows_out, quarantined, ignored })
    }
}

/// What a run did to one feed.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub counts: Counts,
    pub files_taken: u64,
    pub version_from: Option<u64>,
    pub version_to: Option<u64>,
    pub committed: bool,
    /// Rows that were there before the table was built anew.
    pub replaced: Option<u64>,
    /// Why it was.
    pub anew_because: &'static str,
    /// Versions written, quarantine's left out.
    pub commits: u64,
    /// How much of what was there when the run began has been read.
    pub extent: Option<Extent>,
    /// Records that the source holds and the table does not yet.
    pub lag_records: Option<u64>,
    pub conflicts: u64,
    pub bytes_written: u64,
    pub positions: BTreeMap<String, i64>,
    /// Gaps passed over, in commits of this run.
    pub gaps: Vec<PassedGap>,
    /// Notes said once, in their order of text.
    pub remarks: BTreeSet<String>,
    /// Records of no feed, by topic.
    pub unrouted: BTreeMap<String, u64>,
    /// Files that could not be read; the others were.
    pub file_faults: Vec<Arc<Error>>,
    pub failed: Option<Arc<Error>>,
}

impl Tally {
    /// The table was rewritten in wider types.
    pub(crate) fn widened(&mut self, columns: &[Column], version: u64) {
        let columns = columns.iter().map(|column| format!("{} to {}", column.name, column.data_type)).collect::<Vec<_>>().join(", ");
        self.remarks.insert(format!("widened {columns}: the table was rewritten in version {version}"));
        self.version_to = Some(version);
        self.committed = true;
        self.commits += 1;
    }

    pub(crate) fn into_report(self, table: &TableName, millis: u64) -> DatasetReport {
        let status = match (&self.failed, self.committed) {
            (Some(_), _) => Status::Failed,
            (None, true) => Status::Committed,
            (None, false) => Status::NothingNew,
        };
        let widened_only = self.counts.rows_in == 0 && self.remarks.iter().any(|remark| remark.starts_with("widened "));
        let mut notes: Vec<_> = self.remarks.into_iter().collect();
        if !self.unrouted.is_empty() {
            notes.push(unrouted_note(&self.unrouted));
        }
        notes.extend(
            self.counts.notes.iter().map(|(note, times)| if *times > 1 { format!("{note} ({times} times)") } else { note.clone() }),
        );
        notes.extend(self.file_faults.iter().map(|fault| chain(fault.as_ref())));
        let reason = match status {
            Status::Failed => "stopped by an error".to_owned(),
            Status::NothingNew if self.file_faults.is_empty() => "no input moved".to_owned(),
            Status::NothingNew => "no input could be read".to_owned(),
            _ if self.replaced.is_some() => self.anew_because.to_owned(),
            _ if self.files_taken > 0 => format!("{} new files", self.files_taken),
            _ if widened_only => "the declaration changed".to_owned(),
            _ => "new records".to_owned(),
        };
        let stopped = self.failed.iter().map(|error| (exit_code(error), error.as_ref()));
        let left = self.file_faults.iter().map(|fault| (left_over(fault), fault.as_ref()));
        let said = stopped.chain(left).reduce(|first, next| if ExitCode::worst([first.0, next.0]) == first.0 { first } else { next });
        let error = said.map(|(code, error)| reported(error, code));
        DatasetReport {
            table: table.to_string(),
            status,
            rows_in: self.counts.rows_in,
            rows_out: self.counts.rows_out,
            rows_quarantined: self.counts.quarantined,
            rows_ignored: self.counts.ignored,
            quarantined: self.counts.reasons,
            commits: self.commits,
            bytes_read: self.counts.bytes,
            lag_records: self.lag_records,
            source_time_ms: self.counts.newest_us.map(|newest| newest / 1000),
            rows_inserted: self.counts.rows_out,
            version_from: self.version_from,
            version_to: self.version_to,
            positions: self.positions,
            bytes_written: self.bytes_written,
            conflicts: self.conflicts,
            millis,
            rows_deleted: self.replaced.unwrap_or_default(),
            mode: if self.replaced.is_some() { "full" } else { "append" }.to_owned(),
            reason,
            notes,
            gaps: self.gaps,
            error,
            ..DatasetReport::default()
        }
    }
}

/// A run that was cancelled left work, whatever else it did.
fn exit_code(error: &Error) -> ExitCode {
    if matches!(error, Error::Cancelled) { ExitCode::Partial } else { ExitCode::of(error.class()) }
}

/// A file that was left out: part of the work is left, unless a person must change the file.
fn left_over(fault: &Error) -> ExitCode {
    match ExitCode::of(fault.class()) {
        ExitCode::BadInput => ExitCode::BadInput,
        _ => ExitCode::Partial,
    }
}

fn reported(error: &Error, exit: ExitCode) -> ReportedError {
    let mut message = chain(error);
    if let Some(command) = error.next_command() {
        message.push_str(&format!(" (next: {command})"));
    }
    ReportedError { code: error.code().to_string(), message, exit_code: exit.code() }
}

/// Records of no feed, by topic, as a note says it.
fn unrouted_note(topics: &BTreeMap<String, u64>) -> String {
    let mut most: Vec<_> = topics.iter().collect();
    most.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
    let named: Vec<_> = most.iter().take(5).map(|(topic, records)| format!("{topic} ({records})")).collect();
    let more = if most.len() > 5 { format!(" and {} more", most.len() - 5) } else { String::new() };
    format!("records of no feed, by topic: {}{more}", named.join(", "))
}
