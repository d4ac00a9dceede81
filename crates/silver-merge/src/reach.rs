//! Which versions of its source a run takes up, and which of them one commit. Pure.
//!
//! - A run ends at what there was when it began, however often it plans again.
//! - A flow that runs once, one whose rows replace all others, and the first reading of a source whose rows have changed takes what there
//!   is in one commit.
//! - What quarantine has of a commit that did not come is not set aside again. Of a flow that begins anew everything is: its rules may
//!   be others than those by which quarantine was filled.

use tributary_specs::SilverSpec;

use crate::intake::Range;
use crate::options::Options;
use crate::source::first_after;

/// The version from which a flow reads its source while it has no position.
pub(crate) fn first_version(flow: &SilverSpec, options: &Options) -> u64 {
    flow.stream.first().unwrap_or(options.starting_version)
}

/// How far a run goes.
#[derive(Debug, Default)]
pub(crate) struct Goal {
    /// The version of the source that the run ends at.
    pub until: Option<u64>,
    /// Versions up to this one hold no rows.
    pub empty_to: Option<u64>,
}

/// Where a flow stands before a commit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Start {
    /// The version consumed; none where the flow begins at the start.
    pub position: Option<i64>,
    /// The version whose rejected rows are all in quarantine; none also where a flow begins anew.
    pub quarantined: Option<u64>,
    /// The commit replaces all rows that are there.
    pub replaces: bool,
    /// It takes up the source as it is: no version of it can be parted from those before.
    pub whole: bool,
}

impl Start {
    /// Whether what is read for the first time could come in parts.
    pub fn may_be_parted(&self, flow: &SilverSpec, options: &Options) -> bool {
        let is_first = self.position.is_none() && first_version(flow, options) == 0;
        is_first && (options.source_versions_max.is_some() || self.quarantined.is_some())
    }
}

/// The versions that a commit takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reach {
    /// Those above this one; none = from the first.
    from: Option<u64>,
    /// The last one.
    pub to: u64,
    /// The last one of the run.
    pub until: u64,
}

impl Reach {
    /// None where the source, whose latest version is `latest`, has no new one.
    pub fn plan(flow: &SilverSpec, options: &Options, start: Start, goal: &Goal, latest: u64) -> Option<Self> {
        let until = goal.until.unwrap_or(latest);
        let from = match start.position {
            Some(position) => u64::try_from(position).ok(),
            None => first_version(flow, options).checked_sub(1).filter(|_| !flow.once),
        };
        let first = first_after(from);
        if first > until {
            return None;
        }
        if flow.once {
            // A run that died after its quarantine is done again over the same rows.
            let to = start.quarantined.map_or(until, |seen| until.min(seen));
            return Some(Self { from, to, until: to });
        }
        let begin = goal.empty_to.map_or(first, |empty| first.max(empty + 1));
        if start.whole {
            // The same: what came since then is for the next commit.
            let seen = start.quarantined.filter(|seen| goal.empty_to.is_none_or(|empty| *seen > empty));
            return Some(Self { from, to: seen.map_or(until, |seen| until.min(seen)), until });
        }
        let most = options.source_versions_max.filter(|_| !start.replaces);
        let to = most.map_or(until, |most| until.min(begin + most.max(1) - 1));
        Some(Self { from, to, until })
    }

    /// The versions to read; those that quarantine has seen already apart.
    pub fn ranges(&self, flow: &SilverSpec, start: Start) -> Vec<Range> {
        let Self { from, to, .. } = *self;
        let seen = start.quarantined.map(|seen| seen.min(to)).filter(|seen| from.is_none_or(|from| *seen > from));
        match seen {
            None => vec![Range { from, to, sets_aside: true }],
            Some(seen) if seen == to => vec![Range { from, to, sets_aside: false }],
            Some(_) if flow.once || start.whole => vec![Range { from, to, sets_aside: true }],
            Some(seen) => vec![Range { from, to: seen, sets_aside: false }, Range { from: Some(seen), to, sets_aside: true }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_specs::TableName;

    fn flow(once: bool) -> SilverSpec {
        let mut spec = SilverSpec::new(TableName::new("silver", "t"), [TableName::new("bronze", "a")]);
        spec.once = once;
        spec
    }

    fn reach(once: bool, start: Start, most: Option<u64>, starting_version: u64, empty_to: Option<u64>) -> Option<(Option<u64>, u64, u64)> {
        let options = Options { source_versions_max: most, starting_version, ..Options::default() };
        let planned = Reach::plan(&flow(once), &options, start, &Goal { until: Some(9), empty_to }, 12);
        planned.map(|Reach { from, to, until }| (from, to, until))
    }

    fn at(position: i64) -> Start {
        Start { position: Some(position), ..Start::default() }
    }

    #[test]
    fn a_commit_takes_up_what_is_new_and_no_more_versions_than_are_asked_for() {
        assert_eq!(reach(false, Start::default(), None, 0, None), Some((None, 9, 9)), "what came later is for the next run");
        assert_eq!(reach(false, at(5), None, 0, None), Some((Some(5), 9, 9)));
        assert_eq!(reach(false, at(9), None, 0, None), None);
        assert_eq!(reach(false, at(5), Some(2), 0, None), Some((Some(5), 7, 9)));
        assert_eq!(reach(false, at(5), Some(2), 0, Some(7)), Some((Some(5), 9, 9)), "versions without rows do not count");
        assert_eq!(reach(false, at(5), None, 3, None), Some((Some(5), 9, 9)), "a position goes before the version to start from");
        assert_eq!(reach(false, Start::default(), None, 3, None), Some((Some(2), 9, 9)));
    }

    #[test]
    fn what_runs_once_or_replaces_takes_all_there_is_in_one_commit() {
        let replaces = Start { replaces: true, ..Start::default() };
        assert_eq!(reach(false, replaces, Some(2), 0, None), Some((None, 9, 9)));
        assert_eq!(reach(true, Start::default(), Some(2), 3, None), Some((None, 9, 9)));
        let died = Start { quarantined: Some(4), ..Start::default() };
        assert_eq!(reach(true, died, None, 0, None), Some((None, 4, 4)), "once more over the same rows");
    }

    #[test]
    fn the_first_reading_of_rows_that_changed_is_of_all_of_them_at_once() {
        let whole = Start { whole: true, ..Start::default() };
        assert_eq!(reach(false, whole, Some(2), 0, None), Some((None, 9, 9)));
        let died = Start { quarantined: Some(4), ..whole };
        assert_eq!(
            reach(false, died, Some(2), 0, None),
            Some((None, 4, 9)),
            "as if it had not died; what came since is for the next commit"
        );
        assert_eq!(reach(false, died, None, 0, Some(4)), Some((None, 9, 9)), "versions without rows are not read again and again");
        let ranges = Reach { from: None, to: 9, until: 9 }.ranges(&flow(false), died);
        assert_eq!(ranges.iter().map(|range| (range.from, range.to, range.sets_aside)).collect::<Vec<_>>(), [(None, 9, true)]);

        let capped = Options { source_versions_max: Some(1), ..Options::default() };
        let later = Options { starting_version: 3, ..capped.clone() };
        for (start, options, expected) in [
            (Start::default(), &capped, true),
            (Start::default(), &Options::default(), false),
            (died, &Options::default(), true),
            (at(5), &capped, false),
            (Start::default(), &later, false),
        ] {
            assert_eq!(start.may_be_parted(&flow(false), options), expected, "{start:?}");
        }
    }

    #[test]
    fn what_quarantine_has_is_read_apart_and_not_set_aside_again() {
        let ranges = |once, from, quarantined| {
            let ranges = Reach { from, to: 9, until: 9 }.ranges(&flow(once), Start { quarantined, ..Start::default() });
            ranges.iter().map(|range| (range.from, range.to, range.sets_aside)).collect::<Vec<_>>()
        };
        assert_eq!(ranges(false, None, None), [(None, 9, true)]);
        assert_eq!(ranges(false, Some(5), Some(5)), [(Some(5), 9, true)], "it is of commits that came");
        assert_eq!(ranges(false, Some(5), Some(7)), [(Some(5), 7, false), (Some(7), 9, true)]);
        assert_eq!(ranges(false, Some(5), Some(12)), [(Some(5), 9, false)]);
        assert_eq!(ranges(true, None, Some(7)), [(None, 9, true)]);
        assert_eq!(ranges(true, None, Some(9)), [(None, 9, false)]);
    }
}
