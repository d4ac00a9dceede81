//! What a lost race means. Pure: the plan that lost, and the actions of the commit that won.
//!
//! | we are | winner did | then |
//! |---|---|---|
//! | anyone | a position of ours | fenced |
//! | anyone | metadata or protocol | plan again |
//! | anyone | a metadata domain we write | plan again |
//! | blind append | anything else | go on top of it |
//! | row-level change | removed or re-vectored a file we remove or mark rows of, data change or not | plan again |
//! | row-level change | removed rows of a file in which we found rows that stay as they are | plan again |
//! | row-level change | marked more rows of a file in which we found none of our keys | go on top of it |
//! | row-level change | added rows that may hold our keys | plan again |
//! | optimize | touched one of our inputs | plan again |
//! | restore | began to delete files | plan again |
//! | reader of everything | added or removed rows | plan again |

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::ScalarValue;

use crate::action::{Action, Add};
use crate::{Commit, Conflict, DataFile, FileStats, KeyRange, KeyRanges, Operation, Reads, transact};

/// How a race ended for the loser's plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A position of ours moved to this version.
    Fenced { app_id: String, found: i64 },
    /// The plan no longer holds.
    Conflict(Conflict),
}

/// What of a commit matters when a race is lost.
pub(crate) struct Plan<'a> {
    commit: &'a Commit,
    /// Files it removes or marks rows of, as the log spells them.
    touches: BTreeSet<&'a str>,
    /// Files in which it found rows that it leaves as they are.
    rests_on: BTreeSet<&'a str>,
}

/// What is known of a winner beside its actions.
pub(crate) struct Winner<'a, S> {
    pub version: u64,
    pub actions: &'a [Action],
    /// Types the statistics of its files.
    pub stats_of: S,
    /// Files it added again without a row that the loser's snapshot does not have.
    pub only_lose: BTreeSet<&'a str>,
    /// Rows on which the plan rests are in files that are not known any more.
    pub moved: bool,
}

impl<'a> Plan<'a> {
    pub(crate) fn of(commit: &'a Commit) -> Self {
        let files = commit.removes.iter().chain(commit.marks.iter().map(|marks| &marks.file));
        let paths = |file: &'a DataFile| file.log_path.as_str();
        Self { commit, touches: files.map(paths).collect(), rests_on: commit.rests_on.iter().map(paths).collect() }
    }

    /// Whether a commit moves rows on which this plan rests to other files.
    pub(crate) fn rests_on_what_moves(&self, actions: &[Action]) -> bool {
        let moves = |action: &Action| matches!(action, Action::Remove(remove) if !remove.data_change && self.rests_on.contains(remove.path.as_str()));
        actions.iter().any(moves)
    }

    /// What the winner does to this plan; none when it can go on top of it.
    pub(crate) fn after<S: Fn(&Add) -> FileStats>(&self, winner: &Winner<'_, S>) -> Option<Lost> {
        if let Some(lost) = winner.actions.iter().find_map(|action| self.fenced_by(action)) {
            return Some(lost);
        }
        winner.actions.iter().find_map(|action| self.broken_by(winner, action)).map(Lost::Conflict)
    }

    fn fenced_by(&self, action: &Action) -> Option<Lost> {
        let Action::Txn(txn) = action else { return None };
        let ours = self.commit.progress.iter().any(|progress| progress.app_id == txn.app_id);
        ours.then(|| Lost::Fenced { app_id: txn.app_id.clone(), found: txn.version })
    }

    fn broken_by<S: Fn(&Add) -> FileStats>(&self, winner: &Winner<'_, S>, action: &Action) -> Option<Conflict> {
        let version = winner.version;
        match action {
            Action::Metadata(_) => Some(Conflict::Metadata { version }),
            Action::Protocol(_) => Some(Conflict::Protocol { version }),
            Action::DomainMetadata(domain) => {
                self.commit.domains.contains_key(&domain.domain).then(|| Conflict::Domain { version, domain: domain.domain.clone() })
            }
            Action::Remove(remove) => self.broken_by_remove(winner, &remove.path, remove.data_change),
            Action::Add(add) => self.broken_by_add(winner, add),
            Action::CommitInfo(info) => {
                let deletes = info.operation.as_deref() == Some(transact::VACUUM_START);
                (deletes && self.commit.operation == Operation::Restore).then_some(Conflict::Vacuum { version })
            }
            Action::Txn(_) | Action::Cdc(_) => None,
        }
    }

    fn broken_by_remove<S>(&self, winner: &Winner<'_, S>, path: &str, data_change: bool) -> Option<Conflict> {
        let version = winner.version;
        if self.touches.contains(path) {
            return Some(Conflict::FileChanged { version, path: path.to_owned() });
        }
        let has_read = self.commit.reads == Reads::WholeTable || self.rests_on.contains(path) || winner.moved;
        (data_change && has_read).then(|| Conflict::RowsRemoved { version, path: path.to_owned() })
    }

    fn broken_by_add<S: Fn(&Add) -> FileStats>(&self, winner: &Winner<'_, S>, add: &Add) -> Option<Conflict> {
        let version = winner.version;
        if self.touches.contains(add.path.as_str()) {
            return Some(Conflict::FileChanged { version, path: add.path.clone() });
        }
        // Rows that only moved were live before: whoever read them has read them, or had their file excluded by the same statistics.
        let matters = add.data_change
            && match &self.commit.reads {
                Reads::BlindAppend | Reads::Files => false,
                Reads::WholeTable => true,
                Reads::Keys(ranges) => !winner.only_lose.contains(add.path.as_str()) && may_hold(ranges, &(winner.stats_of)(add)),
            };
        matters.then(|| Conflict::RowsAdded { version, path: add.path.clone() })
    }
}

/// Whether a file with these statistics may hold one of the keys. What is unknown may.
pub(crate) fn may_hold(ranges: &KeyRanges, stats: &FileStats) -> bool {
    let KeyRanges(ranges) = ranges;
    !ranges.iter().any(|(column, range)| excludes(range, column, stats))
}

fn excludes(range: &KeyRange, column: &str, stats: &FileStats) -> bool {
    let Some(column) = stats.columns.get(column) else { return false };
    let no_nulls = column.null_count == Some(0);
    let only_nulls = stats.rows.is_some() && column.null_count == stats.rows;
    let nulls_excluded = !range.nulls || no_nulls;
    let values_excluded = match &range.bounds {
        None => true,
        Some((least, greatest)) => only_nulls || is_less(&column.max, least) || is_greater(&column.min, greatest),
    };
    nulls_excluded && values_excluded
}

fn is_less(bound: &Option<ScalarValue>, value: &ScalarValue) -> bool {
    bound.as_ref().and_then(|bound| bound.partial_cmp(value)) == Some(std::cmp::Ordering::Less)
}

fn is_greater(bound: &Option<ScalarValue>, value: &ScalarValue) -> bool {
    bound.as_ref().and_then(|bound| bound.partial_cmp(value)) == Some(std::cmp::Ordering::Greater)
}

/// The first position about which the writer is wrong.
pub(crate) fn fenced(commit: &Commit, current: &BTreeMap<String, i64>) -> Option<(String, Option<i64>, Option<i64>)> {
    let wrong = commit.progress.iter().find(|progress| current.get(&progress.app_id).copied() != progress.expected)?;
    Some((wrong.app_id.clone(), wrong.expected, current.get(&wrong.app_id).copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action;
    use crate::file::Said;
    use crate::{ColumnStats, Progress};

    fn file(path: &str) -> DataFile {
        DataFile {
            path: path.to_owned(),
            log_path: path.to_owned(),
            partition_values: BTreeMap::new(),
            size: 1,
            modified_ms: 0,
            stats: FileStats::default(),
            deletion_vector: None,
            row_tracking: None,
            said: Said::default(),
        }
    }

    fn keys(low: i64, high: i64) -> Reads {
        let range = KeyRange { bounds: Some((ScalarValue::Int64(Some(low)), ScalarValue::Int64(Some(high)))), nulls: false };
        Reads::Keys(KeyRanges(BTreeMap::from([("id".to_owned(), range)])))
    }

    fn commit(reads: Reads, removes: &[&str]) -> Commit {
        Commit { reads, removes: removes.iter().map(|path| file(path)).collect(), ..Commit::default() }
    }

    /// Statistics of the winner's file: ids 10 to 19, no nulls.
    fn stats(_: &Add) -> FileStats {
        let column = ColumnStats { min: Some(ScalarValue::Int64(Some(10))), max: Some(ScalarValue::Int64(Some(19))), null_count: Some(0) };
        FileStats { rows: Some(10), columns: BTreeMap::from([("id".to_owned(), column)]) }
    }

    /// What version 7 with these lines does to a plan; it added the files of `only_lose` again with fewer rows.
    fn after_one(plan: &Commit, lines: &str, only_lose: &[&str]) -> Option<Lost> {
        let actions = action::parse(lines.as_bytes()).unwrap();
        let (plan, only_lose) = (Plan::of(plan), only_lose.iter().copied().collect());
        plan.after(&Winner { version: 7, actions: &actions, stats_of: stats, only_lose, moved: plan.rests_on_what_moves(&actions) })
    }

    fn after(plan: &Commit, lines: &str) -> Option<Lost> {
        after_one(plan, lines, &[])
    }

    fn add(path: &str, data_change: bool) -> String {
        format!(r#"{{"add":{{"path":"{path}","partitionValues":{{}},"size":1,"modificationTime":1,"dataChange":{data_change}}}}}"#)
    }

    fn remove(path: &str, data_change: bool) -> String {
        format!(r#"{{"remove":{{"path":"{path}","dataChange":{data_change}}}}}"#)
    }

    const METADATA: &str = r#"{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":[],"configuration":{}}}"#;
    const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":[]}}"#;

    #[test]
    fn every_row_of_the_table_of_conflicts() {
        let everyone = [Reads::BlindAppend, keys(0, 5), Reads::Files, Reads::WholeTable];
        for reads in &everyone {
            let plan = commit(reads.clone(), &[]);
            assert_eq!(after(&plan, METADATA), Some(Lost::Conflict(Conflict::Metadata { version: 7 })));
            assert_eq!(after(&plan, PROTOCOL), Some(Lost::Conflict(Conflict::Protocol { version: 7 })));
        }
        let changed = Some(Lost::Conflict(Conflict::FileChanged { version: 7, path: "a".to_owned() }));
        let added = Some(Lost::Conflict(Conflict::RowsAdded { version: 7, path: "b".to_owned() }));
        let removed = Some(Lost::Conflict(Conflict::RowsRemoved { version: 7, path: "b".to_owned() }));
        let cases = [
            // A blind append goes on top of everything else.
            (commit(Reads::BlindAppend, &[]), add("b", true), None),
            (commit(Reads::BlindAppend, &[]), remove("b", true), None),
            (commit(Reads::BlindAppend, &[]), remove("b", false), None),
            // A file that a row-level change removes is gone, or has another deletion vector.
            (commit(keys(0, 5), &["a"]), remove("a", true), changed.as_ref()),
            (commit(keys(0, 5), &["a"]), remove("a", false), changed.as_ref()),
            (commit(keys(0, 5), &["a"]), format!("{}\n{}", remove("a", true), add("a", true)), changed.as_ref()),
            (commit(keys(0, 5), &["a"]), remove("b", true), None),
            // Rows added in its key range, or with no statistics to tell.
            (commit(keys(15, 30), &["a"]), add("b", true), added.as_ref()),
            (commit(keys(0, 9), &["a"]), add("b", true), None),
            (commit(keys(20, 30), &["a"]), add("b", true), None),
            (commit(Reads::Keys(KeyRanges::default()), &["a"]), add("b", true), added.as_ref()),
            // Rows that only moved.
            (commit(keys(15, 30), &["a"]), add("b", false), None),
            // Optimize cares for its inputs alone.
            (commit(Reads::Files, &["a"]), remove("a", true), changed.as_ref()),
            (commit(Reads::Files, &["a"]), add("b", true), None),
            // Who read everything cares for every row.
            (commit(Reads::WholeTable, &["a"]), add("b", true), added.as_ref()),
            (commit(Reads::WholeTable, &[]), remove("b", true), removed.as_ref()),
            (commit(Reads::WholeTable, &["a"]), remove("a", false), changed.as_ref()),
            (commit(Reads::WholeTable, &[]), remove("b", false), None),
        ];
        for (plan, lines, expected) in cases {
            assert_eq!(after(&plan, &lines).as_ref(), expected, "{:?} after {lines}", plan.reads);
        }
    }

    #[test]
    fn a_position_of_ours_that_moved_fences_whatever_else_happened() {
        let mut plan = commit(Reads::BlindAppend, &[]);
        plan.progress = vec![Progress { app_id: "ours".to_owned(), expected: Some(1), version: 2 }];
        let lines = format!("{METADATA}\n{}", r#"{"txn":{"appId":"ours","version":9}}"#);
        assert_eq!(after(&plan, &lines), Some(Lost::Fenced { app_id: "ours".to_owned(), found: 9 }));
        assert_eq!(after(&plan, r#"{"txn":{"appId":"other","version":9}}"#), None);
    }

    #[test]
    fn a_domain_we_write_conflicts_and_another_does_not() {
        let mut plan = commit(Reads::BlindAppend, &[]);
        plan.domains = BTreeMap::from([("tributary.ledger".to_owned(), Some("{}".to_owned()))]);
        let domain = |name: &str| format!(r#"{{"domainMetadata":{{"domain":"{name}","configuration":"{{}}","removed":false}}}}"#);
        let expected = Lost::Conflict(Conflict::Domain { version: 7, domain: "tributary.ledger".to_owned() });
        assert_eq!(after(&plan, &domain("tributary.ledger")), Some(expected));
        assert_eq!(after(&plan, &domain("delta.rowTracking")), None);
    }

    #[test]
    fn a_file_that_only_loses_rows_breaks_who_changes_it_or_found_rows_in_it() {
        let again = |path: &str| format!("{}\n{}", remove(path, true), add(path, true));
        let of_keys =
            |rests_on: &[&str]| Commit { rests_on: rests_on.iter().map(|path| file(path)).collect(), ..commit(keys(15, 30), &["a"]) };
        assert_eq!(after_one(&of_keys(&[]), &again("b"), &["b"]), None);
        let added = Lost::Conflict(Conflict::RowsAdded { version: 7, path: "b".to_owned() });
        assert_eq!(after_one(&of_keys(&[]), &again("b"), &[]), Some(added), "it may have rows again");
        let changed = Lost::Conflict(Conflict::FileChanged { version: 7, path: "a".to_owned() });
        assert_eq!(after_one(&of_keys(&[]), &again("a"), &["a"]), Some(changed));
        let removed = Some(Lost::Conflict(Conflict::RowsRemoved { version: 7, path: "b".to_owned() }));
        assert_eq!(after_one(&of_keys(&["b"]), &again("b"), &["b"]), removed);
        assert_eq!(after_one(&of_keys(&["b"]), &remove("b", true), &[]), removed);
        assert_eq!(after_one(&of_keys(&["b"]), &remove("b", false), &[]), None, "its rows moved, and are live");
        let moved_and_gone = format!("{}\n{}", remove("b", false), remove("c", true));
        let removed_elsewhere = Some(Lost::Conflict(Conflict::RowsRemoved { version: 7, path: "c".to_owned() }));
        assert_eq!(after_one(&of_keys(&["b"]), &moved_and_gone, &[]), removed_elsewhere, "they may be among those that are gone");
        let everything = commit(Reads::WholeTable, &["a"]);
        assert_eq!(after_one(&everything, &again("b"), &["b"]), removed);
    }

    #[test]
    fn missing_statistics_exclude_no_file() {
        let Reads::Keys(ranges) = keys(100, 200) else { unreachable!() };
        assert!(may_hold(&ranges, &FileStats::default()));
        let one_sided = |min: Option<i64>, max: Option<i64>| {
            let column = ColumnStats {
                min: min.map(|value| ScalarValue::Int64(Some(value))),
                max: max.map(|value| ScalarValue::Int64(Some(value))),
                null_count: None,
            };
            FileStats { rows: None, columns: BTreeMap::from([("id".to_owned(), column)]) }
        };
        assert!(may_hold(&ranges, &one_sided(Some(5), None)));
        assert!(may_hold(&ranges, &one_sided(None, Some(150))));
        assert!(!may_hold(&ranges, &one_sided(None, Some(99))));
        assert!(!may_hold(&ranges, &one_sided(Some(201), None)));
    }

    #[test]
    fn a_null_key_is_excluded_only_by_a_file_without_nulls() {
        let range = KeyRange { bounds: None, nulls: true };
        let ranges = KeyRanges(BTreeMap::from([("id".to_owned(), range)]));
        let with_nulls = |null_count| FileStats {
            rows: Some(3),
            columns: BTreeMap::from([("id".to_owned(), ColumnStats { null_count, ..ColumnStats::default() })]),
        };
        assert!(may_hold(&ranges, &with_nulls(None)));
        assert!(may_hold(&ranges, &with_nulls(Some(1))));
        assert!(!may_hold(&ranges, &with_nulls(Some(0))));
    }

    #[test]
    fn a_writer_that_is_wrong_about_a_position_is_fenced() {
        let progress = |expected| Commit { progress: vec![Progress { app_id: "a".to_owned(), expected, version: 9 }], ..Commit::default() };
        let current = BTreeMap::from([("a".to_owned(), 5)]);
        assert_eq!(fenced(&progress(Some(5)), &current), None);
        assert_eq!(fenced(&progress(Some(4)), &current), Some(("a".to_owned(), Some(4), Some(5))));
        assert_eq!(fenced(&progress(None), &current), Some(("a".to_owned(), None, Some(5))));
        assert_eq!(fenced(&progress(None), &BTreeMap::new()), None);
        assert_eq!(fenced(&progress(Some(1)), &BTreeMap::new()), Some(("a".to_owned(), Some(1), None)));
    }
}
