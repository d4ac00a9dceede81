//! Sums of a dataset's rounds: those of the last minute for `system.tributary.runs`, all of them for the report. Pure.

use std::collections::BTreeMap;

use tributary_specs::{DatasetReport, Status};

/// Notes kept of a dataset; a stream that goes on for months repeats itself.
const NOTES_MAX: usize = 20;

/// Adds a round to the sum of those before it: counts add up, the state and the error are the last round's.
pub(super) fn add(sum: &mut DatasetReport, round: &DatasetReport) {
    sum.rows_in += round.rows_in;
    sum.rows_out += round.rows_out;
    sum.rows_quarantined += round.rows_quarantined;
    sum.rows_late += round.rows_late;
    sum.rows_inserted += round.rows_inserted;
    sum.rows_updated += round.rows_updated;
    sum.rows_deleted += round.rows_deleted;
    sum.ties += round.ties;
    sum.commits += round.commits;
    sum.bytes_read += round.bytes_read;
    sum.bytes_written += round.bytes_written;
    sum.conflicts += round.conflicts;
    sum.millis += round.millis;
    add_counts(&mut sum.rows_ignored, &round.rows_ignored);
    add_counts(&mut sum.quarantined, &round.quarantined);
    add_counts(&mut sum.expectations, &round.expectations);
    sum.count_rules(round.rules.clone());
    sum.version_from = sum.version_from.or(round.version_from);
    sum.version_to = round.version_to.or(sum.version_to);
    sum.positions.extend(round.positions.clone());
    sum.gaps.extend(round.gaps.iter().cloned());
    sum.source_time_ms = sum.source_time_ms.max(round.source_time_ms);
    sum.lag_records = round.lag_records;
    sum.lag_seconds = round.lag_seconds;
    sum.error.clone_from(&round.error);
    for note in &round.notes {
        if sum.notes.len() < NOTES_MAX && !sum.notes.contains(note) {
            sum.notes.push(note.clone());
        }
    }
    let wrote = sum.commits > 0;
    sum.status = match round.status {
        Status::NothingNew if wrote => Status::Committed,
        status => status,
    };
    if round.status != Status::NothingNew || sum.reason.is_empty() {
        sum.reason.clone_from(&round.reason);
        sum.mode.clone_from(&round.mode);
    }
}

/// Takes a failure that counts as none out of a round: what it had not committed is done by the next run.
pub(super) fn forgive(round: &mut DatasetReport) {
    if round.status == Status::Failed {
        round.status = if round.commits > 0 { Status::Committed } else { Status::NothingNew };
        round.error = None;
    }
}

fn add_counts(sum: &mut BTreeMap<String, u64>, round: &BTreeMap<String, u64>) {
    round.iter().for_each(|(key, count)| *sum.entry(key.clone()).or_default() += count);
}

#[cfg(test)]
mod tests {
    use tributary_specs::{PassedGap, ReportedError};

    use super::*;

    fn round(status: Status, rows: u64, version: Option<u64>) -> DatasetReport {
        let commits = u64::from(status == Status::Committed);
        let error = (status == Status::Failed).then(|| ReportedError { code: "LK0001".into(), message: "away".into(), exit_code: 1 });
        DatasetReport { status, rows_in: rows, rows_out: rows, commits, version_to: version, error, ..DatasetReport::default() }
    }

    fn sum(rounds: &[DatasetReport]) -> DatasetReport {
        let mut sum = DatasetReport::default();
        rounds.iter().for_each(|round| add(&mut sum, round));
        sum
    }

    #[test]
    fn counts_add_up_and_a_round_without_news_hides_nothing() {
        let sum = sum(&[round(Status::Committed, 3, Some(4)), round(Status::NothingNew, 0, Some(4)), round(Status::Committed, 2, Some(5))]);
        assert_eq!((sum.rows_in, sum.commits, sum.version_to, sum.status), (5, 2, Some(5), Status::Committed));
    }

    #[test]
    fn a_gap_that_was_passed_over_is_counted_once() {
        let gap = PassedGap { feed: "orders".into(), from: 3, until: 9, ..PassedGap::default() };
        let passed = DatasetReport { gaps: vec![gap.clone()], ..round(Status::Committed, 1, Some(1)) };
        assert_eq!(sum(&[passed, round(Status::Committed, 1, Some(2))]).gaps, [gap]);
    }

    #[test]
    fn a_failure_is_said_until_the_dataset_is_well_again() {
        let failing = sum(&[round(Status::Committed, 3, Some(4)), round(Status::Failed, 0, None)]);
        assert_eq!((failing.status, failing.error.is_some(), failing.version_to), (Status::Failed, true, Some(4)));
        let well = sum(&[round(Status::Committed, 3, Some(4)), round(Status::Failed, 0, None), round(Status::NothingNew, 0, Some(4))]);
        assert_eq!((well.status, well.error.is_some()), (Status::Committed, false));
    }
}
