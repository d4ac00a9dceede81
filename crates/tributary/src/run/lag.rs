//! How far tables are behind what they read, in the time of the databases the rows come from. Pure.
//!
//! A bronze table has come as far as the newest event in it. A table made from others has come as far as those were at the
//! versions it has consumed; the farthest it could be is where they are now. The difference is how far it is behind.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tributary_specs::{DatasetReport, Status, TableName};

/// Versions remembered of a table; what consumes it is seldom farther behind.
const VERSIONS_MAX: usize = 1_000;

/// How far tables had come at their versions, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct SourceTimes {
    by_table: BTreeMap<String, BTreeMap<u64, i64>>,
}

impl SourceTimes {
    /// At this version the table has come as far as `time_ms`, or farther where an earlier version had.
    pub(super) fn reached(&mut self, table: &str, version: u64, time_ms: i64) {
        let versions = self.by_table.entry(table.to_owned()).or_default();
        let before = versions.range(..=version).next_back().map(|(_, time)| *time);
        versions.insert(version, before.map_or(time_ms, |before| before.max(time_ms)));
        while versions.len() > VERSIONS_MAX {
            versions.pop_first();
        }
    }

    /// How far the table had come at a version.
    pub(super) fn at(&self, table: &str, version: u64) -> Option<i64> {
        self.by_table.get(table)?.range(..=version).next_back().map(|(_, time)| *time)
    }

    /// The latest version before this one at which it is known how far the table had come.
    pub(super) fn known_below(&self, table: &str, version: u64) -> Option<u64> {
        self.by_table.get(table)?.range(..version).next_back().map(|(known, _)| *known)
    }

    /// How far the table has come.
    pub(super) fn latest(&self, table: &str) -> Option<i64> {
        self.by_table.get(table)?.last_key_value().map(|(_, time)| *time)
    }

    /// Seconds that a table which has come as far as `version` of it is behind what its sources hold.
    pub(super) fn behind(&self, table: &str, sources: &[TableName]) -> Option<u64> {
        let reachable = sources.iter().filter_map(|source| self.latest(&source.to_string())).max()?;
        let reached = self.latest(table)?;
        Some(u64::try_from((reachable - reached) / 1000).unwrap_or_default())
    }

    /// Learns from a report, and fills in its lag.
    pub(super) fn note(&mut self, report: &mut DatasetReport, now: DateTime<Utc>) {
        let consumed = report.positions.iter().filter_map(|(source, version)| self.at(source, u64::try_from(*version).ok()?));
        let time = report.source_time_ms.into_iter().chain(consumed).max();
        if let (Some(version), Some(time)) = (report.version_to, time) {
            self.reached(&report.table, version, time);
        }
        if report.status == Status::Failed {
            return;
        }
        report.lag_seconds = match (report.lag_records, self.latest(&report.table)) {
            (Some(0), _) => Some(0),
            (Some(_), Some(reached)) => Some(u64::try_from((now.timestamp_millis() - reached) / 1000).unwrap_or_default()),
            // what its sources hold, or what was due of its files, is in the table
            (None, Some(_)) => Some(0),
            (_, None) => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(table: &str, version: u64) -> DatasetReport {
        DatasetReport { table: table.to_owned(), status: Status::Committed, version_to: Some(version), ..DatasetReport::default() }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn a_table_is_behind_by_what_its_sources_have_and_it_has_not_consumed() {
        let mut times = SourceTimes::default();
        let sources = ["bronze.orders".parse().unwrap()];
        let mut bronze = DatasetReport { source_time_ms: Some(10_000), ..committed("bronze.orders", 3) };
        times.note(&mut bronze, at(500));
        assert_eq!(bronze.lag_seconds, Some(0));
        let mut silver = DatasetReport { positions: BTreeMap::from([("bronze.orders".to_owned(), 3)]), ..committed("silver.orders", 1) };
        times.note(&mut silver, at(500));
        assert_eq!(times.behind("silver.orders", &sources), Some(0));

        let mut bronze = DatasetReport { source_time_ms: Some(75_500), ..committed("bronze.orders", 4) };
        times.note(&mut bronze, at(500));
        assert_eq!(times.behind("silver.orders", &sources), Some(65));
        let mut gold = DatasetReport { positions: BTreeMap::from([("silver.orders".to_owned(), 1)]), ..committed("gold.orders", 0) };
        times.note(&mut gold, at(500));
        assert_eq!(times.latest("gold.orders"), Some(10_000), "it has what silver had at that version");
    }

    #[test]
    fn late_events_do_not_move_a_table_back_and_records_left_count_against_the_clock() {
        let mut times = SourceTimes::default();
        times.reached("bronze.orders", 1, 50_000);
        times.reached("bronze.orders", 2, 20_000);
        assert_eq!(times.at("bronze.orders", 2), Some(50_000));
        assert_eq!(times.at("bronze.orders", 0), None);
        let mut report = DatasetReport { lag_records: Some(7), ..committed("bronze.orders", 3) };
        times.note(&mut report, at(110));
        assert_eq!(report.lag_seconds, Some(60));
        let mut unknown = committed("bronze.customers", 3);
        times.note(&mut unknown, at(110));
        assert_eq!(unknown.lag_seconds, None);
    }
}
