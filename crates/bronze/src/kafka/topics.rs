//! Decides: which topics are a feed's.
//!
//! Each topic belongs to at most one feed of a cluster; the broker's own topics (`__…`) are a feed's only by their exact name.

use std::collections::BTreeMap;

use regex::Regex;
use tributary_specs::{KafkaSource, Source, SourceFeed};

use crate::options::{KafkaMode, Options};
use crate::plan::{self, wildcard};
use crate::{Error, Result};

/// The topics a feed asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub feed: String,
    topics: Vec<String>,
    pattern: Option<Regex>,
}

impl Wanted {
    pub(crate) fn of(feed: &SourceFeed, source: &KafkaSource) -> Result<Self> {
        let pattern = match &source.pattern {
            Some(pattern) => {
                let refused = |_| Error::KafkaSettings { feed: feed.name.clone(), reason: format!("`{pattern}` is no regular expression") };
                Some(Regex::new(&format!("^(?:{pattern})$")).map_err(refused)?)
            }
            None => None,
        };
        Ok(Self { feed: feed.name.clone(), topics: source.topics.clone(), pattern })
    }

    /// Topics asked for by their exact names.
    pub(crate) fn exact(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(String::as_str).filter(|topic| !topic.contains('*'))
    }

    /// Whether the broker's list of topics is needed to know them.
    pub(crate) fn is_open(&self) -> bool {
        self.pattern.is_some() || self.topics.iter().any(|topic| topic.contains('*'))
    }

    /// Whether a topic is one of them.
    pub(crate) fn takes(&self, topic: &str) -> bool {
        self.exact().any(|exact| exact == topic)
            || !topic.starts_with("__")
                && (self.topics.iter().any(|wanted| wildcard(wanted, topic))
                    || self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(topic)))
    }
}

/// Whether the feeds that are run can read the partitions that were asked for at all.
pub(crate) fn check_asked(feeds: &[SourceFeed], options: &Options) -> Result<()> {
    if plan::is_asked(&options.kafka) && matches!(options.kafka.mode, KafkaMode::Continuous(_)) {
        return Err(Error::Range { place: "a range of offsets".to_owned(), reason: "only a run that ends reads one".to_owned() });
    }
    let mut wanted = Vec::new();
    for feed in feeds.iter().filter(|feed| options.runs(feed)) {
        if let Source::Kafka(source) = &feed.source {
            wanted.push(Wanted::of(feed, source)?);
        }
    }
    match plan::asked(&options.kafka).find(|(topic, _)| !wanted.iter().any(|wanted| wanted.takes(topic))) {
        Some((topic, _)) => Err(Error::Range { place: format!("topic `{topic}`"), reason: "no feed that is run reads it".to_owned() }),
        None => Ok(()),
    }
}

/// Who reads what.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Topics with their number of partitions, by index of who wants them.
    pub topics: BTreeMap<usize, BTreeMap<String, i32>>,
    /// What stops some of them, by index.
    pub stopped: Vec<(usize, Error)>,
}

/// Gives each topic there is to the one that wants it.
pub(crate) fn route(wanted: &[Wanted], there: &BTreeMap<String, i32>, bootstrap: &str) -> Routes {
    let mut routes = Routes::default();
    for (topic, partitions) in there {
        let takers: Vec<usize> = wanted.iter().enumerate().filter(|(_, wanted)| wanted.takes(topic)).map(|(index, _)| index).collect();
        if let [first, others @ ..] = takers.as_slice()
            && !others.is_empty()
        {
            for (index, other) in takers.iter().map(|index| (*index, if index == first { others[0] } else { *first })) {
                let (feed, other) = (wanted[index.min(other)].feed.clone(), wanted[index.max(other)].feed.clone());
                routes.stopped.push((index, Error::TopicTwice { topic: topic.clone(), feed, other }));
            }
        }
        for index in takers {
            routes.topics.entry(index).or_default().insert(topic.clone(), *partitions);
        }
    }
    for (index, wanted) in wanted.iter().enumerate() {
        for topic in wanted.exact().filter(|topic| !there.contains_key(*topic)) {
            let (feed, bootstrap) = (wanted.feed.clone(), bootstrap.to_owned());
            routes.stopped.push((index, Error::TopicMissing { feed, topic: topic.to_owned(), bootstrap }));
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(feed: &str, topics: &[&str], pattern: Option<&str>) -> Wanted {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        Wanted { feed: feed.into(), topics, pattern: pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$")).unwrap()) }
    }

    fn there(topics: &[&str]) -> BTreeMap<String, i32> {
        topics.iter().map(|topic| ((*topic).to_owned(), 1)).collect()
    }

    fn of(routes: &Routes, index: usize) -> Vec<&str> {
        routes.topics.get(&index).map(|topics| topics.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    #[test]
    fn topics_go_by_name_by_star_and_by_pattern_over_the_whole_name() {
        let all = [wanted("a", &["shop.orders"], None), wanted("b", &["crm.*"], None), wanted("c", &[], Some("log_[0-9]+|audit"))];
        let routes = route(&all, &there(&["shop.orders", "shop.orders.dlq", "crm.a", "crm.b", "log_7", "log_7x", "audit", "__x"]), "b:1");
        assert_eq!((of(&routes, 0), of(&routes, 1), of(&routes, 2)), (vec!["shop.orders"], vec!["crm.a", "crm.b"], vec!["audit", "log_7"]));
        assert!(routes.stopped.is_empty());
    }

    #[test]
    fn a_topic_of_two_feeds_stops_both_and_names_both() {
        let routes = route(&[wanted("a", &["t*"], None), wanted("b", &["tt"], None)], &there(&["t", "tt"]), "b:1");
        let said: Vec<_> = routes.stopped.iter().map(|(index, error)| format!("{index} {error}")).collect();
        assert_eq!(said, ["0 topic `tt` is read by feed a and by feed b", "1 topic `tt` is read by feed a and by feed b"]);
    }

    #[test]
    fn the_brokers_own_topics_are_read_only_by_name() {
        let routes = route(&[wanted("a", &["*"], None)], &there(&["__consumer_offsets", "t"]), "b:1");
        assert_eq!(of(&routes, 0), ["t"]);
        assert_eq!(of(&route(&[wanted("a", &["__audit"], None)], &there(&["__audit"]), "b:1"), 0), ["__audit"]);
    }

    #[test]
    fn a_topic_by_name_must_be_there_and_one_by_star_may_come_later() {
        let routes = route(&[wanted("a", &["t"], None), wanted("b", &["u*"], None)], &there(&[]), "b:1");
        let said: Vec<_> = routes.stopped.iter().map(|(index, error)| format!("{index} {error}")).collect();
        assert_eq!(said, ["0 topic `t` of feed a does not exist at b:1"]);
    }
}
