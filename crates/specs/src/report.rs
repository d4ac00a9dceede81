//! What a run did to one dataset; every layer fills the same shape.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What a run did to one dataset. `rows_in = rows_out + rows_quarantined + Σ rows_ignored` holds always.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DatasetReport {
    /// `schema.table`.
    pub table: String,
    /// How it ended.
    pub status: Status,
    /// Records or source rows taken up.
    pub rows_in: u64,
    /// Of those, the ones that are now in the table or decided its state.
    pub rows_out: u64,
    /// Of those, the ones in quarantine.
    pub rows_quarantined: u64,
    /// Of those, the ones left out, by reason (`tombstone`, `heartbeat`, `duplicate`, …).
    pub rows_ignored: BTreeMap<String, u64>,
    /// Rows that came later than the watermark of their source, whether they were applied or left out; one that several streams of a
    /// table have late is counted for each.
    #[serde(default)]
    pub rows_late: u64,
    /// `rows_quarantined` by reason code or rule.
    #[serde(default)]
    pub quarantined: BTreeMap<String, u64>,
    /// Rows of the target added.
    pub rows_inserted: u64,
    /// Rows of the target changed.
    pub rows_updated: u64,
    /// Rows of the target removed.
    pub rows_deleted: u64,
    /// Failures per expectation.
    pub expectations: BTreeMap<String, u64>,
    /// What each expectation came to, flow by flow; none of a flow that an expectation with `fail` stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleCount>,
    /// Events that tied on the declared sequence with different content.
    pub ties: u64,
    /// Version of the target before.
    pub version_from: Option<u64>,
    /// Version of the target after.
    pub version_to: Option<u64>,
    /// Positions reached, by source.
    pub positions: BTreeMap<String, i64>,
    /// Versions written.
    #[serde(default)]
    pub commits: u64,
    /// Bytes of the records taken up; 0 where tables are read.
    #[serde(default)]
    pub bytes_read: u64,
    /// Records that the source holds and the table does not yet, where the source can tell.
    #[serde(default)]
    pub lag_records: Option<u64>,
    /// The newest time, at their source, of the records taken up: milliseconds since 1970.
    #[serde(default)]
    pub source_time_ms: Option<i64>,
    /// How far the table is behind what it reads, in seconds of the source's time.
    #[serde(default)]
    pub lag_seconds: Option<u64>,
    /// Bytes of files written.
    pub bytes_written: u64,
    /// Lost races that were planned again.
    pub conflicts: u64,
    /// Wall-clock milliseconds.
    pub millis: u64,
    /// `append`, `merge`, `full`, `incremental`.
    pub mode: String,
    /// Why this mode, or why nothing was done.
    pub reason: String,
    /// What a view that followed its inputs was brought up to date by: `signed deltas`, or `changed groups` with the reason why not by
    /// the former; empty for all else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub means: String,
    /// What was read of each table that a view is over, and of each that a streaming table follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputRead>,
    /// Things a person should know (undeclared decimal scale, schema change, …).
    pub notes: Vec<String>,
    /// Records a source no longer had, passed over by choice and recorded with the commit that passed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<PassedGap>,
    /// The error, its code and its exit code, when it failed.
    pub error: Option<ReportedError>,
}

/// What was read of an input: by a refresh of a view, beside what it was expected to; by a streaming table, of which no estimates and no
/// bytes are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputRead {
    /// `schema.table`.
    pub table: String,
    /// The version that the view was made from before.
    pub version_from: Option<i64>,
    /// The one it is made from now.
    pub version_to: i64,
    /// Rows of its change feed that its log let expect; 0 where the refresh was in full.
    pub changes_estimated: u64,
    /// Rows of its change feed that were read.
    pub changes_read: u64,
    /// Rows of the table itself that were read, once for each time.
    pub rows_read: u64,
    /// Bytes of its files that were read for them.
    pub bytes_read: u64,
}

/// What a rule came to in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RuleCount {
    /// The flow whose rows were held to it; the table's name where it has no other.
    pub flow: String,
    /// The rule.
    pub rule: String,
    /// `warn`, `drop`, `quarantine` or `fail`.
    pub action: String,
    /// Rows for which it was true; 1 for a rule of the whole table that holds.
    pub passed: u64,
    /// Rows for which it was false or null; 1 for a rule of the whole table that does not hold.
    pub failed: u64,
    /// Rows that were left out, or set aside, because of it before any other.
    pub dropped: u64,
}

impl DatasetReport {
    /// Takes in more counts of rules, those of one flow and rule together.
    pub fn count_rules(&mut self, more: Vec<RuleCount>) {
        for count in more {
            match self.rules.iter_mut().find(|known| known.flow == count.flow && known.rule == count.rule) {
                Some(known) => {
                    known.passed += count.passed;
                    known.failed += count.failed;
                    known.dropped += count.dropped;
                }
                None => self.rules.push(count),
            }
        }
    }
}

/// Records that a source no longer had, passed over by choice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PassedGap {
    /// The feed.
    pub feed: String,
    /// Its topic, where the source has topics.
    pub topic: Option<String>,
    /// The partition.
    pub partition: i32,
    /// First missing position.
    pub from: i64,
    /// First position not missing.
    pub until: i64,
    /// `earliest` or `latest`.
    pub choice: String,
}

/// How a dataset's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No input moved; no version was written.
    #[default]
    NothingNew,
    /// At least one version was written.
    Committed,
    /// It failed; the table is as its last commit left it.
    Failed,
    /// Not run because something it reads failed.
    Skipped,
}

impl fmt::Display for Status {
    /// The word of reports, of `system.tributary.runs` and of metrics.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingNew => "nothing_new",
            Self::Committed => "committed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        })
    }
}

/// An error as the report keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedError {
    /// The runbook page.
    pub code: String,
    /// The chain of messages.
    pub message: String,
    /// What the process would say with this error alone.
    pub exit_code: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_one_word_in_json_and_in_text() {
        for status in [Status::NothingNew, Status::Committed, Status::Failed, Status::Skipped] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.to_string());
        }
    }
}
