//! What the topics hold, read by a plain consumer of committed records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};

use crate::workload::is_marker;

/// One record, as far as the comparison needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Whether its value is null.
    pub tombstone: bool,
}

/// The records of some topics, read on from where the last call ended.
#[derive(Debug)]
pub struct Records {
    bootstrap: String,
    next: BTreeMap<(String, i32), i64>,
    /// By topic, in no particular order.
    pub of: BTreeMap<String, Vec<Record>>,
    marked: BTreeSet<(String, i32)>,
}

/// How long the broker may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

impl Records {
    /// Nothing read yet.
    pub fn new<'t>(bootstrap: &str, topics: impl IntoIterator<Item = &'t String>) -> Self {
        let of = topics.into_iter().map(|topic| (topic.clone(), Vec::new())).collect();
        Self { bootstrap: bootstrap.to_owned(), next: BTreeMap::new(), of, marked: BTreeSet::new() }
    }

    /// Reads up to the ends that the partitions have now.
    pub fn read_on(&mut self) -> Result<()> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("group.id", "tributary-e2e-check")
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .set("enable.partition.eof", "true")
            .create()
            .context("a consumer")?;
        let mut list = TopicPartitionList::new();
        let topics: Vec<String> = self.of.keys().cloned().collect();
        for topic in &topics {
            let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).with_context(|| format!("asking for {topic}"))?;
            for partition in metadata.topics().iter().flat_map(|topic| topic.partitions()) {
                let next = *self.next.entry((topic.clone(), partition.id())).or_insert(0);
                list.add_partition_offset(topic, partition.id(), Offset::Offset(next)).context("a position")?;
            }
        }
        let mut waiting = list.count();
        consumer.assign(&list).context("assigning partitions")?;
        let mut heard = Instant::now();
        while waiting > 0 {
            ensure!(heard.elapsed() < PATIENCE, "the broker has been silent for {} s", PATIENCE.as_secs());
            match consumer.poll(Duration::from_secs(1)) {
                None => continue,
                Some(Err(KafkaError::PartitionEOF(_))) => waiting -= 1,
                // the client connects again by itself
                Some(Err(_)) => continue,
                Some(Ok(message)) => {
                    let (topic, partition, offset) = (message.topic().to_owned(), message.partition(), message.offset());
                    if message.key().is_some_and(|key| is_marker(&String::from_utf8_lossy(key))) {
                        self.marked.insert((topic.clone(), partition));
                    }
                    let record = Record { partition, offset, tombstone: message.payload().is_none() };
                    self.of.entry(topic.clone()).or_default().push(record);
                    self.next.insert((topic, partition), offset + 1);
                }
            }
            heard = Instant::now();
        }
        Ok(())
    }

    /// Whether every partition of every topic has shown a marker row.
    pub fn all_marked(&self) -> bool {
        self.of.keys().all(|topic| self.next.keys().any(|(known, _)| known == topic))
            && self.next.keys().all(|key| self.marked.contains(key))
    }

    /// How many records there are.
    pub fn count(&self) -> usize {
        self.of.values().map(Vec::len).sum()
    }
}
