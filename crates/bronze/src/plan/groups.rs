//! Which feeds are read together, and whether a feed's parts go together.

use tributary_specs::{Decode, FileFormat, FileSource, KafkaSource, Source, SourceFeed};

use crate::files::{CutRules, Dialect, Listed, Pattern};
use crate::options::Options;
use crate::{Error, Result};

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
}
