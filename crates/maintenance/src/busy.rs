//! Whether somebody is at work on a table. Pure.
//!
//! Who changes rows while files are written anew may have to plan again. So a table whose rows somebody changed lately gets one commit
//! of ours in as much time: whoever lost to it comes to an end before the next. Appends go on top of everything and count for nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tributary_lake::CommitEntry;

/// Operations that move rows from file to file.
const REARRANGING: [&str; 2] = ["OPTIMIZE", "REORG"];

/// How much may be done to a table now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Nobody is at work.
    Free,
    /// One commit.
    Once,
    /// None: somebody changed rows so many seconds ago, and files were written anew since.
    Wait { seconds: i64 },
}

/// From the newest commits, newest first.
pub(crate) fn pace(commits: &[CommitEntry], now: DateTime<Utc>, yield_to: Duration) -> Pace {
    let lately = || commits.iter().take_while(|commit| (now - commit.timestamp).to_std().is_ok_and(|age| age < yield_to));
    let rearranges = |commit: &CommitEntry| commit.operation.as_deref().is_some_and(|operation| REARRANGING.contains(&operation));
    let Some(writer) = lately().find(|commit| commit.files_removed > 0 && !rearranges(commit)) else { return Pace::Free };
    if lately().any(rearranges) { Pace::Wait { seconds: (now - writer.timestamp).num_seconds() } } else { Pace::Once }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::TimeDelta;

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_769_940_000, 0).unwrap_or_default() + TimeDelta::seconds(second)
    }

    fn commit(second: i64, operation: &str, files_removed: u64) -> CommitEntry {
        CommitEntry {
            version: 0,
            timestamp: at(second),
            operation: Some(operation.to_owned()),
            parameters: BTreeMap::new(),
            metrics: BTreeMap::new(),
            engine: None,
            txn_id: None,
            user_metadata: None,
            progress: BTreeMap::new(),
            files_added: 1,
            files_removed,
        }
    }

    fn paced(commits: &[CommitEntry]) -> Pace {
        pace(commits, at(100), Duration::from_secs(60))
    }

    #[test]
    fn a_writer_of_rows_gets_a_minute_between_two_of_ours() {
        assert_eq!(paced(&[]), Pace::Free);
        assert_eq!(paced(&[commit(99, "WRITE", 0)]), Pace::Free, "appends go on top of everything");
        assert_eq!(paced(&[commit(40, "MERGE", 1)]), Pace::Free, "it is a minute ago");
        assert_eq!(paced(&[commit(90, "MERGE", 1)]), Pace::Once);
        assert_eq!(paced(&[commit(95, "OPTIMIZE", 9), commit(90, "MERGE", 1)]), Pace::Wait { seconds: 10 });
        assert_eq!(paced(&[commit(99, "MERGE", 1), commit(95, "OPTIMIZE", 9)]), Pace::Wait { seconds: 1 });
        assert_eq!(paced(&[commit(99, "MERGE", 1), commit(39, "OPTIMIZE", 9)]), Pace::Once);
        assert_eq!(paced(&[commit(95, "OPTIMIZE", 9)]), Pace::Free);
        assert_eq!(pace(&[commit(99, "MERGE", 1), commit(98, "OPTIMIZE", 1)], at(100), Duration::ZERO), Pace::Free);
    }
}
