//! Where a partition is read from and to.

use crate::PartitionBounds;
#[cfg(feature = "kafka")]
use crate::options::KafkaOptions;
use crate::options::OnGap;

/// Where to read a partition on, or the missing range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    At(i64),
    /// Told to pass over a gap.
    Over {
        from: i64,
        until: i64,
        at: i64,
    },
    Missing {
        from: i64,
        until: i64,
    },
}

/// Compares a table's position with what the source has (B4).
pub(crate) fn start(position: Option<i64>, bounds: PartitionBounds, on_gap: OnGap) -> Start {
    let Some(position) = position else { return Start::At(bounds.earliest) };
    let (from, until) = if position < bounds.earliest {
        (position, bounds.earliest)
    } else if position > bounds.end {
        (bounds.end, position)
    } else {
        return Start::At(position);
    };
    match on_gap {
        OnGap::Stop => Start::Missing { from, until },
        OnGap::Earliest => Start::Over { from, until, at: bounds.earliest },
        OnGap::Latest => Start::Over { from, until, at: bounds.end },
    }
}

/// The offsets that a run was asked to read of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Range {
    /// Where to begin while the table has no position.
    pub from: Option<i64>,
    /// Where to end, before the end there is.
    pub until: Option<i64>,
}

impl Range {
    /// What was asked for of a partition; none = it is not to be read.
    #[cfg(feature = "kafka")]
    pub(crate) fn of(options: &KafkaOptions, topic: &str, partition: i32) -> Option<Self> {
        let place = (topic.to_owned(), partition);
        let range = Self { from: options.starting_offsets.get(&place).copied(), until: options.ending_offsets.get(&place).copied() };
        (range != Self::default() || !is_asked(options)).then_some(range)
    }

    /// Why a table at this position cannot read the range: it would pass over records, or go back.
    pub(crate) fn refusal(self, position: Option<i64>) -> Option<String> {
        match (self, position) {
            (Self { from: Some(from), until: Some(until) }, _) if from > until => {
                Some(format!("its starting offset {from} is past its ending offset {until}"))
            }
            (Self { from: Some(from), .. }, Some(position)) if position < from => {
                Some(format!("the table stands at {position}, and what lies between that and {from} would never be read"))
            }
            (Self { until: Some(until), .. }, Some(position)) if position > until => {
                Some(format!("the table stands at {position}, past {until}, and a position never goes back: read it into another table"))
            }
            _ => None,
        }
    }

    /// What a person should know who asked for it.
    pub(crate) fn remark(self, position: Option<i64>, bounds: PartitionBounds) -> Option<String> {
        match (self, position) {
            (Self { until: Some(until), .. }, _) if until > bounds.end => {
                Some(format!("it ends at {} so far; {until} was asked for", bounds.end))
            }
            (Self { from: Some(from), .. }, Some(position)) if position > from => {
                Some(format!("the table stands at {position} already: it is read from there, not from {from}"))
            }
            _ => None,
        }
    }
}

/// Whether only some partitions are to be read.
#[cfg(feature = "kafka")]
pub(crate) fn is_asked(options: &KafkaOptions) -> bool {
    !options.starting_offsets.is_empty() || !options.ending_offsets.is_empty()
}

/// The partitions that were asked for, by topic and number.
#[cfg(feature = "kafka")]
pub(crate) fn asked(options: &KafkaOptions) -> impl Iterator<Item = (&str, i32)> {
    let places = options.starting_offsets.keys().chain(options.ending_offsets.keys());
    places.map(|(topic, partition)| (topic.as_str(), *partition))
}

/// Offsets without a record that are worth a commit of their own: reading them again would cost more.
#[cfg(feature = "kafka")]
const HOLE: u64 = 1_000;

/// Whether positions are committed: with records, where they must be written down, or where they moved far over no record at all.
#[cfg(feature = "kafka")]
pub(crate) fn worth_a_commit(records: u64, must_be_recorded: bool, moved: u64) -> bool {
    records > 0 || must_be_recorded || moved >= HOLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_the_source_no_longer_has_is_a_gap_with_its_range() {
        let bounds = PartitionBounds { partition: 0, earliest: 10, end: 20 };
        assert_eq!(start(None, bounds, OnGap::Stop), Start::At(10));
        assert_eq!(start(Some(10), bounds, OnGap::Stop), Start::At(10));
        assert_eq!(start(Some(20), bounds, OnGap::Stop), Start::At(20));
        assert_eq!(start(Some(7), bounds, OnGap::Stop), Start::Missing { from: 7, until: 10 });
        assert_eq!(start(Some(25), bounds, OnGap::Stop), Start::Missing { from: 20, until: 25 });
        assert_eq!(start(Some(7), bounds, OnGap::Earliest), Start::Over { from: 7, until: 10, at: 10 });
        assert_eq!(start(Some(7), bounds, OnGap::Latest), Start::Over { from: 7, until: 10, at: 20 });
    }

    #[test]
    fn a_range_neither_passes_over_records_nor_goes_back_and_may_be_repeated() {
        let range = Range { from: Some(10), until: Some(20) };
        for (position, refused) in
            [(None, false), (Some(9), true), (Some(10), false), (Some(15), false), (Some(20), false), (Some(21), true)]
        {
            assert_eq!(range.refusal(position).is_some(), refused, "{position:?}");
        }
        assert!(Range { from: Some(20), until: Some(10) }.refusal(None).is_some());
        assert!(Range { from: Some(10), until: None }.refusal(Some(99)).is_none(), "it goes on from where it stands");
        let bounds = PartitionBounds { partition: 0, earliest: 0, end: 18 };
        assert!(range.remark(None, bounds).is_some_and(|remark| remark.contains("18")), "the range is not all there");
        assert!(range.remark(Some(12), PartitionBounds { end: 20, ..bounds }).is_some_and(|remark| remark.contains("from there")));
        assert_eq!(range.remark(None, PartitionBounds { end: 20, ..bounds }), None);
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn with_any_offset_only_the_partitions_named_are_read() {
        let mut options = crate::options::KafkaOptions::default();
        assert_eq!(Range::of(&options, "t", 0), Some(Range::default()));
        options.starting_offsets.insert(("t".into(), 0), 5);
        options.ending_offsets.insert(("t".into(), 1), 9);
        assert_eq!(Range::of(&options, "t", 0), Some(Range { from: Some(5), until: None }));
        assert_eq!(Range::of(&options, "t", 1), Some(Range { from: None, until: Some(9) }));
        assert_eq!((Range::of(&options, "t", 2), Range::of(&options, "u", 0)), (None, None));
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn an_idle_topic_writes_nothing_and_a_long_hole_is_not_read_twice() {
        assert!(!worth_a_commit(0, false, 0) && !worth_a_commit(0, false, HOLE - 1));
        assert!(worth_a_commit(1, false, 1) && worth_a_commit(0, true, 0) && worth_a_commit(0, false, HOLE));
    }
}
