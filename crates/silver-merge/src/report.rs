//! What a run has to say: of one commit, and of what was done one after the other.

use std::collections::BTreeMap;

use tributary_lake::Table;
use tributary_specs::{DatasetReport, InputRead, RuleCount, Status};

use crate::intake::{Findings, Intake, merge};
use crate::plan::Counts;
use crate::run::Attempt;
use crate::source::Delivery;
use crate::target::Target;
use crate::writes::Changed;

/// The mode of a run that built the table anew.
const FULL: &str = "full";

/// What a commit did, for the report.
pub(crate) struct Tally {
    pub findings: Findings,
    pub counts: Counts,
    pub changed: Changed,
    pub bytes: u64,
    /// Rows by column whose value no event has brought.
    pub unknown: BTreeMap<String, u64>,
    /// Slices of keys it took.
    pub slices: usize,
    pub mode: &'static str,
}

/// What a commit came to once it was there.
pub(crate) struct CameTo {
    pub version: u64,
    /// Of the rules of the whole table.
    pub of_set: Vec<RuleCount>,
    /// Rows that it took away, where it replaced all.
    pub replaced: Option<u64>,
}

impl Attempt<'_> {
    /// The report of a commit.
    pub(crate) fn report(&self, intake: &Intake<'_>, tally: Tally, came_to: CameTo) -> DatasetReport {
        let CameTo { version, of_set, replaced } = came_to;
        let Tally { findings, counts, changed, bytes, unknown, slices, mode } = tally;
        let slices = if slices > 1 { format!(" in {slices} slices of keys") } else { String::new() };
        let mut ignored = findings.ignored;
        for (reason, count) in [("duplicate", counts.duplicates), ("superseded", counts.superseded), ("late_earlier", counts.late_earlier)]
        {
            merge(&mut ignored, &BTreeMap::from([(reason.to_owned(), count)]));
        }
        ignored.retain(|_, count| *count > 0);
        let mut notes = Vec::new();
        if intake.target.grows {
            let had = |name: &str| self.existing.as_ref().is_some_and(|table| table.columns().iter().any(|column| column.name == name));
            let new: Vec<&str> = intake.target.columns.iter().map(|column| column.name.as_str()).filter(|name| !had(name)).collect();
            notes.push(if new.is_empty() { "a struct has more fields".to_owned() } else { format!("columns added: {}", new.join(", ")) });
        }
        let passed_over = intake.source.passed_over();
        if passed_over > 0 {
            let source = intake.source.name();
            notes.push(format!("{passed_over} commits of `{source}` that update or delete rows were passed over (skipChangeCommits)"));
        }
        if findings.late.applied > 0 {
            let (late, source) = (findings.late.applied, intake.source.name());
            notes.push(format!("{late} rows of `{source}` came later than its watermark, and were applied"));
        }
        notes.extend(self.said_otherwise(intake.target));
        notes.extend(
            unknown.iter().map(|(column, rows)| format!("column `{column}` is unknown in {rows} rows written: its source has not sent it")),
        );
        let place = if self.spec.once { self.place.label().to_owned() } else { intake.source.name().to_string() };
        let (mut expectations, mut rules) =
            (intake.judge.failures(&findings.rules), intake.judge.rule_counts(self.spec.flow_name(), &findings.rules));
        expectations.extend(of_set.iter().filter(|count| count.failed > 0).map(|count| (count.rule.clone(), count.failed)));
        rules.extend(of_set);
        let reason = format!("{} new rows of {}{slices}", findings.rows, intake.source.name());
        let (mode, reason) = match replaced {
            Some(_) => (FULL, format!("built anew: {reason}")),
            None => (mode, reason),
        };
        DatasetReport {
            status: Status::Committed,
            rows_in: findings.rows,
            rows_out: counts.applied,
            rows_quarantined: findings.quarantined,
            rows_ignored: ignored,
            rows_late: findings.late.dropped + findings.late.applied,
            rows_inserted: changed.inserted,
            rows_updated: changed.updated,
            rows_deleted: changed.deleted + replaced.unwrap_or_default(),
            expectations,
            rules,
            ties: counts.ties,
            version_to: Some(version),
            positions: BTreeMap::from([(place, self.reach.to as i64)]),
            inputs: vec![self.read_of(intake)],
            bytes_written: bytes,
            mode: mode.to_owned(),
            reason,
            notes,
            ..self.blank()
        }
    }

    /// What was read of the source, each row as often as it was read.
    fn read_of(&self, intake: &Intake<'_>) -> InputRead {
        let read = intake.selection.rows_read_in_all();
        let (changes_read, rows_read) = if intake.source.delivery == Delivery::Feed { (read, 0) } else { (0, read) };
        InputRead {
            table: intake.source.name().to_string(),
            version_from: self.place.position().filter(|_| !self.replaces),
            version_to: self.reach.to as i64,
            changes_read,
            rows_read,
            ..InputRead::default()
        }
    }

    /// Where the table that was there is without what it is declared with, or has what it is declared without.
    fn said_otherwise(&self, target: &Target) -> Vec<String> {
        let spec = target.table_spec(self.spec);
        let differences = self.existing.iter().flat_map(|table| table.said_otherwise(&spec));
        differences.map(|difference| format!("the table is obeyed, not the declaration: {difference}; setup changes the table")).collect()
    }

    /// A report of a run that found nothing to do.
    pub(crate) fn nothing_new(&self, reason: &str) -> DatasetReport {
        let version = self.existing.as_ref().map(Table::version);
        DatasetReport { status: Status::NothingNew, version_to: version, reason: reason.to_owned(), ..self.blank() }
    }

    fn blank(&self) -> DatasetReport {
        let millis = (self.lake.clock().now() - self.started).num_milliseconds();
        DatasetReport {
            table: self.spec.table.to_string(),
            version_from: self.existing.as_ref().map(Table::version),
            millis: u64::try_from(millis).unwrap_or_default(),
            ..DatasetReport::default()
        }
    }
}

/// The report of two commits of one flow.
pub(crate) fn both(first: DatasetReport, second: &DatasetReport) -> DatasetReport {
    if second.status == Status::NothingNew {
        return first;
    }
    let mut report = beside(first, second);
    report.positions.extend(second.positions.clone());
    report.reason = format!("{} new rows in several commits", report.rows_in);
    report
}

/// The report of what two flows, or two commits, did one after the other; the time of each is counted from the beginning of the run. Of
/// flows over one source the least position tells how far the table has read it.
pub(crate) fn beside(first: DatasetReport, second: &DatasetReport) -> DatasetReport {
    if second.status == Status::NothingNew {
        let mut report = first;
        report.millis = report.millis.max(second.millis);
        least(&mut report.positions, &second.positions);
        return report;
    }
    let mut report = second.clone();
    merge(&mut report.rows_ignored, &first.rows_ignored);
    report.rows_late += first.rows_late;
    merge(&mut report.expectations, &first.expectations);
    report.rows_in += first.rows_in;
    report.rows_out += first.rows_out;
    report.rows_quarantined += first.rows_quarantined;
    report.rows_inserted += first.rows_inserted;
    report.rows_updated += first.rows_updated;
    report.rows_deleted += first.rows_deleted;
    report.ties += first.ties;
    report.bytes_written += first.bytes_written;
    report.conflicts += first.conflicts;
    report.millis = first.millis.max(report.millis);
    least(&mut report.positions, &first.positions);
    report.inputs = first.inputs;
    add_reads(&mut report.inputs, &second.inputs);
    report.notes = first.notes.into_iter().chain(report.notes).collect();
    report.count_rules(first.rules);
    if first.status == Status::Committed {
        report.version_from = first.version_from;
        report.commits = first.commits.max(1) + report.commits.max(1);
        report.reason = format!("{}; {}", first.reason, report.reason);
        if first.mode == FULL {
            FULL.clone_into(&mut report.mode);
        }
    }
    report
}

/// Adds what was read of tables to what was read of them before.
fn add_reads(into: &mut Vec<InputRead>, from: &[InputRead]) {
    for read in from {
        match into.iter_mut().find(|found| found.table == read.table) {
            Some(found) => {
                found.version_to = found.version_to.max(read.version_to);
                found.changes_read += read.changes_read;
                found.rows_read += read.rows_read;
            }
            None => into.push(read.clone()),
        }
    }
}

fn least(positions: &mut BTreeMap<String, i64>, other: &BTreeMap<String, i64>) {
    for (source, position) in other {
        positions.entry(source.clone()).and_modify(|least| *least = (*least).min(*position)).or_insert(*position);
    }
}
