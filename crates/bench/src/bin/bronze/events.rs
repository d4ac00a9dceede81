//! The topic: recorded changes of `orders`, repeated with growing keys and positions.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde::Deserialize;

pub const PARTITIONS: i32 = 4;

/// How much is in the topic.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loaded {
    pub events: u64,
    /// Of keys and values.
    pub bytes: u64,
}

impl Loaded {
    pub fn bytes_each(self) -> f64 {
        self.bytes as f64 / self.events as f64
    }
}

#[derive(Debug, Deserialize)]
struct Line {
    topic: String,
    key: Option<String>,
    value: Option<String>,
}

/// A change with its numbers taken out.
struct Template {
    order_id: u64,
    lsn: u64,
    committed: u64,
    /// Text between `order_id`, the two numbers of `sequence`, and `lsn`, in this order.
    pieces: Vec<String>,
}

/// How far numbers of one round lie from those of the next.
#[derive(Debug, Clone, Copy)]
struct Step {
    order_id: u64,
    lsn: u64,
}

/// Fills a new topic.
pub fn preload(bootstrap: &str, topic: &str, wanted: u64) -> Result<Loaded> {
    let templates = recorded()?;
    let last = templates.iter().map(|template| template.lsn.max(template.committed)).max().context("no change in the recording")?;
    let step = Step { order_id: 1_000_000, lsn: last };
    create(bootstrap, topic)?;
    let producer = producer(bootstrap, 20)?;
    let mut loaded = Loaded::default();
    'rounds: for round in 0.. {
        for template in &templates {
            if loaded.events == wanted {
                break 'rounds;
            }
            let (id, value) = template.write(round, step);
            let key = format!("{{\"order_id\":{id}}}");
            loaded.events += 1;
            loaded.bytes += (key.len() + value.len()) as u64;
            let partition = i32::try_from(id % PARTITIONS as u64)?;
            send(&producer, BaseRecord::to(topic).partition(partition).key(&key).payload(&value))?;
        }
    }
    producer.flush(Duration::from_secs(60)).context("filling the topic")?;
    Ok(loaded)
}

/// A producer that waits so many milliseconds for a batch to fill.
pub fn producer(bootstrap: &str, linger_ms: u32) -> Result<BaseProducer> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("linger.ms", linger_ms.to_string());
    Ok(config.set("batch.size", "1000000").set("queue.buffering.max.messages", "200000").create()?)
}

/// Hands a record to the producer, waiting while it is full.
pub fn send(producer: &BaseProducer, mut record: BaseRecord<'_, String, String>) -> Result<()> {
    loop {
        match producer.send(record) {
            Ok(()) => break,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                record = back;
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
    producer.poll(Duration::ZERO);
    Ok(())
}

/// Makes a topic.
pub fn create(bootstrap: &str, topic: &str) -> Result<()> {
    let admin: AdminClient<_> = ClientConfig::new().set("bootstrap.servers", bootstrap).create()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let topic = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1));
    for created in runtime.block_on(admin.create_topics([&topic], &AdminOptions::new()))? {
        if let Err((topic, code)) = created {
            bail!("creating topic {topic}: {code}");
        }
    }
    Ok(())
}

/// The streamed changes of `orders`, in the order of the log.
fn recorded() -> Result<Vec<Template>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debezium/postgres-big-workload.jsonl.gz");
    let lines = BufReader::new(GzDecoder::new(File::open(&path).with_context(|| path.display().to_string())?)).lines();
    let mut templates = Vec::new();
    for line in lines {
        let line: Line = serde_json::from_str(&line?)?;
        let (Some(_), Some(value)) = (&line.key, &line.value) else { continue };
        // the first change after the connector's start has no commit before it in its `sequence`
        let is_first = value.contains("\"sequence\":\"[null,");
        if line.topic == "shop.public.orders" && !value.contains("\"op\":\"r\"") && !is_first {
            templates.push(Template::of(value).with_context(|| format!("an event without its numbers: {value}"))?);
        }
    }
    templates.sort_by_key(|template| (template.committed, template.lsn));
    Ok(templates)
}

impl Template {
    fn of(value: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut rest = value;
        let mut take = |mark: &str| -> Option<u64> {
            let at = rest.find(mark)? + mark.len();
            let digits = rest[at..].find(|c: char| !c.is_ascii_digit())?;
            let number = rest[at..at + digits].parse().ok()?;
            pieces.push(rest[..at].to_owned());
            rest = &rest[at + digits..];
            Some(number)
        };
        let order_id = take("\"order_id\":")?;
        let committed = take("\"sequence\":\"[\\\"")?;
        take("\\\",\\\"")?;
        let lsn = take("\"lsn\":")?;
        pieces.push(rest.to_owned());
        Some(Self { order_id, lsn, committed, pieces })
    }

    fn write(&self, round: u64, step: Step) -> (u64, String) {
        let id = self.order_id + round * step.order_id;
        let (lsn, committed) = (self.lsn + round * step.lsn, self.committed + round * step.lsn);
        let mut value = String::with_capacity(self.pieces.iter().map(String::len).sum::<usize>() + 64);
        for (piece, number) in self.pieces.iter().zip([Some(id), Some(committed), Some(lsn), Some(lsn), None]) {
            value.push_str(piece);
            if let Some(number) = number {
                value.push_str(&number.to_string());
            }
        }
        (id, value)
    }
}
