//! Decides: which feeds are read together, which files are due, what of a file is new to a table, when a batch is full.
//!
//! - Feeds with one path, glob and format are one group: each file is read once and its records are routed by topic.
//! - Bytes that belong to no feed (a broken line, a topic nobody asked for) are the first feed's of the group, so that they
//!   are counted once whoever else reads the file.
//! - A file's content is taken once a feed. Under a path known before, only what follows a content taken before is new.

use std::collections::BTreeMap;

use tributary_specs::{Decode, FileFormat, FileSource, KafkaSource, Source, SourceFeed};

use crate::files::{CutRules, Dialect, Identity, Listed, Pattern};
use crate::ledger::{ContentId, Ledger};
#[cfg(feature = "kafka")]
use crate::options::KafkaOptions;
use crate::options::{OnGap, Options};
use crate::{Error, PartitionBounds, Result};

/// Feeds that are read in one pass over the same files.
#[derive(Debug)]
pub(crate) struct FileGroup {
    pub path: String,
    pub glob: Option<String>,
    pub format: FileFormat,
    source: FileSource,
    settle_seconds: u64,
    /// Indexes into the pipeline's feeds, in its order; the first is the lead.
    pub members: Vec<usize>,
}

/// What is run as one.
#[derive(Debug)]
pub(crate) enum Group {
    Files(Box<FileGroup>),
    /// Feeds of one consumer, indexes into the pipeline's feeds.
    Kafka(Vec<usize>),
    Custom(usize),
}

impl Group {
    /// Indexes into the pipeline's feeds, in its order.
    pub(crate) fn members(&self) -> Vec<usize> {
        match self {
            Self::Files(group) => group.members.clone(),
            Self::Kafka(members) => members.clone(),
            Self::Custom(index) => vec![*index],
        }
    }
}

/// Which feeds are read together, by their indexes: two runs of feeds of different groups never read the same.
pub fn read_together(feeds: &[SourceFeed]) -> Vec<Vec<usize>> {
    groups(feeds).iter().map(Group::members).collect()
}

/// The groups of a pipeline's feeds, in the order of their first member.
pub(crate) fn groups(feeds: &[SourceFeed]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, feed) in feeds.iter().enumerate() {
        let source = match &feed.source {
            Source::Files(source) => source,
            Source::Kafka(source) => {
                join_consumer(&mut groups, feeds, index, source);
                continue;
            }
            Source::Custom(_) => {
                groups.push(Group::Custom(index));
                continue;
            }
        };
        let known = groups.iter_mut().find_map(|group| match group {
            Group::Files(group) if group.reads_like(source) => Some(group),
            _ => None,
        });
        match known {
            Some(group) => {
                group.members.push(index);
                group.settle_seconds = group.settle_seconds.max(source.settle_seconds);
            }
            None => groups.push(Group::Files(Box::new(FileGroup {
                path: source.path.clone(),
                glob: source.glob.clone(),
                format: source.format,
                source: source.clone(),
                settle_seconds: source.settle_seconds,
                members: vec![index],
            }))),
        }
    }
    groups
}

/// Feeds that name the same brokers, group and properties, or leave them to the settings alike, are one consumer.
fn join_consumer(groups: &mut Vec<Group>, feeds: &[SourceFeed], index: usize, source: &KafkaSource) {
    let alike =
        |other: &KafkaSource| (&other.bootstrap, &other.group, &other.properties) == (&source.bootstrap, &source.group, &source.properties);
    let known = groups.iter_mut().find_map(|group| match group {
        Group::Kafka(members) => match members.first().map(|first| &feeds[*first].source) {
            Some(Source::Kafka(other)) if alike(other) => Some(members),
            _ => None,
        },
        Group::Files(_) | Group::Custom(_) => None,
    });
    match known {
        Some(members) => members.push(index),
        None => groups.push(Group::Kafka(vec![index])),
    }
}

impl FileGroup {
    fn reads_like(&self, other: &FileSource) -> bool {
        let cut = |source: &FileSource| (source.csv.delimiter, source.csv.quote, source.csv.header);
        self.path.trim_end_matches('/') == other.path.trim_end_matches('/')
            && self.glob == other.glob
            && self.format == other.format
            && (self.format != FileFormat::Csv || cut(&self.source) == cut(other))
    }

    /// How the group's files are cut.
    pub(crate) fn cut_rules(&self, feed: &str, options: &Options) -> Result<CutRules> {
        let dialect = Dialect::new(&self.source.csv).map_err(|reason| Error::Feed { feed: feed.to_owned(), reason })?;
        Ok(CutRules {
            format: self.format,
            dialect,
            header: self.source.csv.header,
            record_bytes_max: options.record_bytes_max.max(1),
            slice_records: options.slice_records.max(1),
            slice_bytes: options.slice_bytes.max(1),
        })
    }

    pub(crate) fn pattern(&self, feed: &str) -> Result<Pattern> {
        Pattern::new(feed, self.glob.as_deref())
    }

    /// Whether a file was changed too short a time ago to be taken.
    pub(crate) fn settling(&self, file: &Listed, now_us: i64) -> bool {
        let settle_us = i64::try_from(self.settle_seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        settle_us > 0 && now_us.saturating_sub(file.modified_us) < settle_us
    }

    pub(crate) fn settle_seconds(&self) -> u64 {
        self.settle_seconds
    }
}

/// Whether a feed's parts go together.
pub(crate) fn check(feed: &SourceFeed) -> Result<()> {
    let refused = |reason: &str| Err(Error::Feed { feed: feed.name.clone(), reason: reason.to_owned() });
    if matches!((&feed.source, feed.decode), (Source::Kafka(_), Decode::Csv)) {
        return refused("a Kafka source does not go with decode `csv`");
    }
    let Source::Files(source) = &feed.source else { return Ok(()) };
    match (source.format, feed.decode) {
        (FileFormat::Csv, Decode::Csv | Decode::Raw) | (FileFormat::KafkaJsonl, _) => {}
        (FileFormat::Csv, _) => return refused("format `csv` goes with decode `csv` or `raw`"),
        (FileFormat::Jsonl, Decode::Csv) => return refused("format `jsonl` does not go with decode `csv`"),
        (FileFormat::Jsonl, _) => {}
    }
    if !source.topics.is_empty() && source.format != FileFormat::KafkaJsonl {
        return refused("only format `kafka_jsonl` has topics");
    }
    Ok(())
}

/// Which topics are a feed's.
#[derive(Debug, Clone)]
pub(crate) struct Topics(Vec<String>);

impl Topics {
    pub(crate) fn of(feed: &SourceFeed) -> Self {
        match &feed.source {
            Source::Files(source) => Self(source.topics.clone()),
            Source::Kafka(source) => Self(source.topics.clone()),
            Source::Custom(_) => Self(Vec::new()),
        }
    }

    /// No topics asked for: every record, also one without a topic.
    pub(crate) fn take(&self, topic: Option<&str>) -> bool {
        self.0.is_empty() || topic.is_some_and(|topic| self.0.iter().any(|pattern| wildcard(pattern, topic)))
    }
}

/// Whether `text` is `pattern`, where `*` stands for any text, also none.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text
            .strip_prefix(head)
            .is_some_and(|rest| rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| wildcard(tail, &rest[at..]))),
    }
}

/// What a file is to one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Seen as it is: nothing to do.
    Seen,
    /// Its content is in the table, under another name or time: only that is noted.
    Known,
    /// Records that end behind `from` bytes of the content are new. What comes before was taken as the content `grown_from`.
    Take { from: u64, grown_from: Option<ContentId> },
}

/// Whether the content of a file must be read to decide.
pub(crate) fn due(ledger: &Ledger, file: &Listed) -> bool {
    !ledger.seen(file.path_mark(), file.quick())
}

/// What a file whose content is known is to a table.
pub(crate) fn decide(ledger: &Ledger, file: &Listed, identity: &Identity) -> Decision {
    if !due(ledger, file) {
        return Decision::Seen;
    }
    if ledger.holds(&identity.id) {
        return Decision::Known;
    }
    let taken = identity.prefixes.iter().rev().find(|(_, id)| ledger.holds(id)).filter(|_| ledger.knows_path(file.path_mark()));
    Decision::Take { from: taken.map_or(0, |(size, _)| *size), grown_from: taken.map(|(_, id)| *id) }
}

/// How full a batch is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Fill {
    pub files: usize,
    pub bytes: u64,
    pub records: u64,
}

impl Fill {
    /// Whether a file of `size` bytes still goes into the batch. The first always does.
    pub(crate) fn has_room(&self, size: u64, options: &Options) -> bool {
        self.files == 0
            || self.files < options.max_files_per_trigger.max(1)
                && options.max_bytes_per_trigger.is_none_or(|most| self.bytes.saturating_add(size) <= most)
                && options.max_records_per_trigger.is_none_or(|most| self.records < most)
    }
}

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

/// Records of no feed, by topic, as a note says it.
pub(crate) fn unrouted_note(topics: &BTreeMap<String, u64>) -> String {
    let mut most: Vec<_> = topics.iter().collect();
    most.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
    let named: Vec<_> = most.iter().take(5).map(|(topic, records)| format!("{topic} ({records})")).collect();
    let more = if most.len() > 5 { format!(" and {} more", most.len() - 5) } else { String::new() };
    format!("records of no feed, by topic: {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use tributary_specs::{CsvOptions, TableName};

    use super::*;

    fn feed(name: &str, path: &str, format: FileFormat, topics: &[&str]) -> SourceFeed {
        serde_json::from_value(serde_json::json!({
            "name": name, "table": format!("bronze.{name}"), "decode": if format == FileFormat::Csv { "csv" } else { "json" },
            "source": {"files": {"path": path, "format": format, "topics": topics}},
        }))
        .unwrap()
    }

    #[test]
    fn feeds_with_one_path_and_format_are_read_in_one_pass() {
        let feeds = [
            feed("orders", "retail/", FileFormat::KafkaJsonl, &["shop.public.orders"]),
            feed("prices", "prices", FileFormat::Csv, &[]),
            feed("customers", "retail", FileFormat::KafkaJsonl, &["shop.public.customers"]),
            feed("lines", "retail", FileFormat::Jsonl, &[]),
        ];
        let members: Vec<_> = groups(&feeds)
            .into_iter()
            .map(|group| match group {
                Group::Files(group) => group.members,
                Group::Kafka(members) => members,
                Group::Custom(index) => vec![index],
            })
            .collect();
        assert_eq!(members, [vec![0, 2], vec![1], vec![3]]);
    }

    #[test]
    fn csv_feeds_that_cut_differently_are_read_apart() {
        let mut other = feed("b", "p", FileFormat::Csv, &[]);
        other.source = Source::Files(FileSource {
            csv: CsvOptions { delimiter: ';', ..CsvOptions::default() },
            ..match other.source {
                Source::Files(source) => source,
                Source::Kafka(_) | Source::Custom(_) => unreachable!(),
            }
        });
        assert_eq!(groups(&[feed("a", "p", FileFormat::Csv, &[]), other]).len(), 2);
    }

    #[test]
    fn a_format_and_a_decoding_that_do_not_go_together_are_refused() {
        let mut wrong = feed("a", "p", FileFormat::Csv, &[]);
        wrong.decode = Decode::Debezium;
        assert_eq!(check(&wrong).unwrap_err().to_string(), "feed a cannot be read: format `csv` goes with decode `csv` or `raw`");
        assert!(check(&feed("a", "p", FileFormat::Jsonl, &["t"])).is_err());
        assert_eq!(wrong.table, TableName::new("bronze", "a"));
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, topic, taken) in [
            ("shop.public.orders", "shop.public.orders", true),
            ("shop.public.*", "shop.public.orders", true),
            ("*.orders", "shop.public.orders", true),
            ("shop.*.orders", "shop.public.orders", true),
            ("*", "é", true),
            ("shop.public.order", "shop.public.orders", false),
            ("shop.*.items", "shop.public.orders", false),
            ("shop?public.orders", "shop.public.orders", false),
        ] {
            assert_eq!(wildcard(pattern, topic), taken, "{pattern} {topic}");
        }
    }

    #[test]
    fn a_batch_takes_its_first_file_whatever_its_size_and_then_keeps_its_bounds() {
        let mut options = Options::new(crate::DataRoot::local("data").unwrap());
        options.max_files_per_trigger = 3;
        options.max_bytes_per_trigger = Some(100);
        options.max_records_per_trigger = Some(10);
        assert!(Fill::default().has_room(1_000, &options));
        assert!(Fill { files: 1, bytes: 50, records: 9 }.has_room(50, &options));
        assert!(!Fill { files: 1, bytes: 50, records: 9 }.has_room(51, &options));
        assert!(!Fill { files: 1, bytes: 50, records: 10 }.has_room(1, &options));
        assert!(!Fill { files: 3, bytes: 3, records: 3 }.has_room(1, &options));
    }

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
}
