//! Decides: how the consumer of a cluster is set up.

use std::collections::BTreeMap;

use tributary_specs::{KafkaSource, Source, SourceFeed};

use crate::options::KafkaOptions;
use crate::{Error, Result};

/// Partitions that a drain reads at once.
pub(crate) const WINDOW: usize = 16;
/// Group of continuous runs where nothing names one; a drain names it too, without joining.
const GROUP: &str = "tributary";
/// Shorter values of properties are words, not secrets.
const SECRET_LENGTH: usize = 4;
/// Properties whose values are words that messages need.
const NO_SECRETS: [&str; 5] = ["client.id", "debug", "sasl.mechanism", "sasl.mechanisms", "security.protocol"];

/// A consumer's cluster, group and properties.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cluster {
    pub bootstrap: String,
    pub group: String,
    properties: BTreeMap<String, String>,
}

impl Cluster {
    /// The feed's own words stand above the settings'.
    pub(crate) fn of(feed: &SourceFeed, options: &KafkaOptions) -> Result<Self> {
        let Source::Kafka(source) = &feed.source else {
            return Err(Error::Feed { feed: feed.name.clone(), reason: "it reads no topics".to_owned() });
        };
        let refused = |reason: String| Error::KafkaSettings { feed: feed.name.clone(), reason };
        let bootstrap =
            source.bootstrap.clone().or_else(|| options.bootstrap.clone()).ok_or_else(|| {
                refused("no broker is named: set `kafka_bootstrap`, or the source's `bootstrap`, to `host:port`".to_owned())
            })?;
        let group = source.group.clone().or_else(|| options.group.clone()).unwrap_or_else(|| GROUP.to_owned());
        let mut properties = options.properties.clone();
        properties.extend(source.properties.iter().map(|(name, value)| (name.clone(), value.clone())));
        for (name, reason) in KafkaSource::RESERVED_PROPERTIES {
            if properties.contains_key(*name) {
                return Err(refused(format!("the property `{name}` cannot be set: {reason}")));
            }
        }
        Ok(Self { bootstrap, group, properties })
    }

    /// librdkafka's properties. What exactly-once reading decides comes last, so that nothing stands above it.
    pub(crate) fn properties(&self, limits: Limits) -> Vec<(&str, String)> {
        let mut properties = limits.properties();
        properties.push(("client.id", "tributary".to_owned()));
        // How soon a group learns of new partitions.
        properties.push(("topic.metadata.refresh.interval.ms", "10000".to_owned()));
        properties.extend(self.properties.iter().map(|(name, value)| (name.as_str(), value.clone())));
        properties.extend([
            ("bootstrap.servers", self.bootstrap.clone()),
            ("group.id", self.group.clone()),
            ("enable.auto.commit", "false".to_owned()),
            ("enable.auto.offset.store", "false".to_owned()),
            ("auto.offset.reset", "error".to_owned()),
            ("isolation.level", "read_committed".to_owned()),
            ("enable.partition.eof", "true".to_owned()),
            ("partition.assignment.strategy", "cooperative-sticky".to_owned()),
        ]);
        properties
    }

    /// The text without any value of a property that may be a secret.
    pub(crate) fn redact(&self, text: &str) -> String {
        let secrets = self.properties.iter().filter(|(name, value)| value.len() >= SECRET_LENGTH && !NO_SECRETS.contains(&name.as_str()));
        secrets.fold(text.to_owned(), |text, (_, secret)| text.replace(secret.as_str(), "…"))
    }
}

impl Cluster {
    /// What may be behind a connection that is closed without a word, where it is a plain one.
    pub(crate) fn hint(&self, reason: &str) -> &'static str {
        let plain = self.properties.get("security.protocol").is_none_or(|protocol| protocol.eq_ignore_ascii_case("plaintext"));
        let reason = reason.to_lowercase();
        let closed = ["disconnected", "brokers are down", "transport failure", "reset by peer", "closed by peer"];
        let explained = reason.contains("security.protocol") || reason.contains("connection refused");
        if plain && !explained && closed.iter().any(|word| reason.contains(word)) {
            "; a listener that wants TLS or SASL closes plain connections: is `security.protocol` what the listener wants?"
        } else {
            ""
        }
    }
}

/// Bytes a consumer may hold before they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of one partition's queue.
    pub queue: usize,
    /// Bytes of one partition in one answer.
    pub fetch: usize,
    /// Bytes of one answer.
    pub answer: usize,
}

impl Limits {
    /// A sixteenth of the memory limit, shared by the partitions that are read at once: each has a queue of its own, and one
    /// fetch may come on top of a queue that is almost full.
    pub(crate) fn new(memory_limit: usize, partitions: usize) -> Self {
        let whole = (memory_limit / 16).clamp(8 << 20, 256 << 20);
        let queue = (whole / partitions.max(1)).clamp(64 << 10, 16 << 20);
        Self { queue, fetch: (queue / 2).clamp(32 << 10, 1 << 20), answer: (whole / 4).max(1 << 20) }
    }

    fn properties(self) -> Vec<(&'static str, String)> {
        // Records are counted besides bytes: small ones cost more than their bytes.
        let records = (self.queue / 256).clamp(256, 100_000);
        vec![
            ("queued.max.messages.kbytes", (self.queue >> 10).max(1).to_string()),
            ("queued.min.messages", records.to_string()),
            ("fetch.message.max.bytes", self.fetch.to_string()),
            ("fetch.max.bytes", self.answer.to_string()),
            // How long a fetch waits at the end of a partition, and after a full queue.
            ("fetch.wait.max.ms", "100".to_owned()),
            ("fetch.queue.backoff.ms", "2".to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(kafka: serde_json::Value) -> SourceFeed {
        serde_json::from_value(serde_json::json!({"name": "a", "table": "bronze.a", "source": {"kafka": kafka}})).unwrap()
    }

    fn cluster(kafka: serde_json::Value, options: &KafkaOptions) -> Result<Cluster> {
        Cluster::of(&feed(kafka), options)
    }

    fn settings() -> KafkaOptions {
        KafkaOptions {
            bootstrap: Some("broker:9092".into()),
            properties: BTreeMap::from([("sasl.password".into(), "hunter2".into()), ("client.id".into(), "them".into())]),
            ..KafkaOptions::default()
        }
    }

    #[test]
    fn a_feeds_own_words_stand_above_the_settings_and_exactly_once_above_both() {
        let of_feed = serde_json::json!({"topics": ["t"], "bootstrap": "other:1", "group": "g", "properties": {"client.id": "us"}});
        let cluster = cluster(of_feed, &settings()).unwrap();
        assert_eq!((cluster.bootstrap.as_str(), cluster.group.as_str()), ("other:1", "g"));
        let mut last = BTreeMap::new();
        cluster.properties(Limits::new(1 << 30, 1)).into_iter().for_each(|(name, value)| {
            last.insert(name, value);
        });
        assert_eq!((last["client.id"].as_str(), last["sasl.password"].as_str()), ("us", "hunter2"));
        assert_eq!((last["isolation.level"].as_str(), last["enable.auto.commit"].as_str()), ("read_committed", "false"));
    }

    #[test]
    fn a_missing_broker_and_a_reserved_property_are_named_without_values() {
        let error = cluster(serde_json::json!({"topics": ["t"]}), &KafkaOptions::default()).err().unwrap();
        assert!(error.to_string().contains("kafka_bootstrap"), "{error}");
        let mut options = settings();
        options.properties.insert("group.id".into(), "theirs".into());
        let error = cluster(serde_json::json!({"topics": ["t"]}), &options).err().unwrap().to_string();
        assert!(error.contains("`group.id`") && !error.contains("theirs"), "{error}");
    }

    #[test]
    fn values_of_properties_are_taken_out_of_texts_and_of_debug() {
        let cluster = cluster(serde_json::json!({"topics": ["t"]}), &settings()).unwrap();
        assert_eq!(cluster.redact("broker said: hunter2 is wrong"), "broker said: … is wrong");
        assert!(!format!("{:?}", settings()).contains("hunter2"));
    }

    #[test]
    fn a_plain_connection_that_is_closed_gets_a_hint_and_a_refused_one_none() {
        let of = |protocol: Option<&str>| {
            let properties = protocol.map(|protocol| ("security.protocol".to_owned(), protocol.to_owned())).into_iter().collect();
            cluster(serde_json::json!({"topics": ["t"]}), &KafkaOptions { properties, ..settings() }).unwrap()
        };
        assert!(of(None).hint("b:1: Disconnected (after 1ms in APIVERSION_QUERY state)").contains("security.protocol"));
        assert!(of(Some("PLAINTEXT")).hint("1/1 brokers are down").contains("security.protocol"));
        assert_eq!(of(Some("sasl_ssl")).hint("1/1 brokers are down"), "");
        assert_eq!(of(None).hint("Connect to b:1 failed: Connection refused"), "");
        assert_eq!(of(None).hint("Disconnected: might be caused by incorrect security.protocol configuration"), "");
    }

    #[test]
    fn queues_stay_within_their_share_of_the_memory_however_many_partitions() {
        for partitions in [1, 4, 16, 200, 800] {
            let limits = Limits::new(1 << 30, partitions);
            assert!((limits.queue + limits.fetch) * partitions <= 128 << 20, "{partitions}: {limits:?}");
        }
        assert!(Limits::new(64 << 20, 4).queue >= 1 << 20);
    }
}
