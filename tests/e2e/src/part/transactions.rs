//! A producer of which some transactions abort and one is still open: only committed records are read, and what they leave out
//! of the offsets is no gap.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};

use crate::check::Outcome;
use crate::layers::Layers;
use crate::run::{Definition, World};
use crate::services::Services;

/// How long the broker may take over one step of a transaction.
const STEP: Duration = Duration::from_secs(30);

pub(super) fn run(services: &Services) -> Result<Outcome> {
    let tag = World::tag("transactions");
    let topic = format!("entries_{tag}");
    let world = World::new(services, &tag, Definition::Yaml(pipeline(&tag, &topic)))?;
    let bootstrap = services.get("KAFKA_BOOTSTRAP")?;
    make(bootstrap, &topic)?;
    let layers = world.layers("drained")?;
    let writer = Writer { bootstrap: bootstrap.to_owned(), topic };

    writer.committed(0..3)?;
    writer.aborted(100..102)?;
    writer.committed(3..5)?;
    expect(&layers, 0, 5, "the first committed records")?;
    // nothing but an aborted transaction, and then nothing but one that nobody has ended
    writer.aborted(102..105)?;
    expect(&layers, 99, 0, "an aborted transaction")?;
    let open = writer.begun(5..7)?;
    writer.committed(7..8)?;
    // what is committed behind an open transaction has to wait for it
    expect(&layers, 99, 0, "an open transaction")?;
    open.commit_transaction(STEP).context("committing")?;
    expect(&layers, 0, 3, "a transaction that took its time")?;

    let mut records = world.records()?;
    records.read_on()?;
    let mut outcome = world.compare(&layers.warehouse, &records, &[])?;
    let ids = ids(&layers)?;
    if ids != (0..8).collect::<Vec<_>>() {
        outcome.fail(format!("bronze holds the entries {ids:?}"));
    }
    if layers.warehouse.join("system/tributary/gaps").exists() {
        outcome.fail("the offsets that aborted records took are reported as a gap".to_owned());
    }
    outcome.lines.push(format!("transactions: {} committed records read, 5 aborted ones never, no gap reported", ids.len()));
    Ok(outcome)
}

fn pipeline(tag: &str, topic: &str) -> String {
    format!(
        "name: {tag}\nfeeds:\n  - name: entries\n    table: bronze.entries\n    decode: json\n    source:\n      \
         kafka: {{ topics: [{topic}] }}\n    columns:\n      - {{ name: id, type: long }}\n"
    )
}

/// A drain of bronze must end with this code and take up so many records.
fn expect(layers: &Layers, code: i32, rows: u64, what: &str) -> Result<()> {
    let (found, report) = layers.drain("bronze")?;
    let taken: u64 = report["datasets"].as_array().into_iter().flatten().filter_map(|dataset| dataset["rows_in"].as_u64()).sum();
    ensure!(
        (found, taken) == (code, rows),
        "after {what} a drain took {taken} records instead of {rows} and ended with {found}: {report:#}"
    );
    Ok(())
}

fn ids(layers: &Layers) -> Result<Vec<i64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
    runtime.block_on(crate::check::longs(&layers.warehouse, "select id from bronze.entries order by id"))
}

fn make(bootstrap: &str, topic: &str) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", bootstrap).create().context("an admin client")?;
    let made = futures::executor::block_on(
        admin.create_topics(&[NewTopic::new(topic, 1, TopicReplication::Fixed(1))], &AdminOptions::new().operation_timeout(Some(STEP))),
    );
    for answer in made.context("making a topic")? {
        answer.map_err(|(topic, code)| anyhow::anyhow!("{topic} was not made: {code}"))?;
    }
    Ok(())
}

type Transactional = ThreadedProducer<DefaultProducerContext>;

/// Writes entries in transactions.
struct Writer {
    bootstrap: String,
    topic: String,
}

impl Writer {
    /// A transaction with these entries, in the topic and not ended.
    fn begun(&self, ids: std::ops::Range<i64>) -> Result<Transactional> {
        let producer: Transactional = ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("transactional.id", format!("{}-{}", self.topic, ids.start))
            .create()
            .context("a producer")?;
        producer.init_transactions(STEP).context("beginning to write in transactions")?;
        producer.begin_transaction().context("beginning")?;
        for id in ids {
            let value = format!("{{\"id\": {id}}}");
            let record: BaseRecord<'_, (), String> = BaseRecord::to(&self.topic).partition(0).payload(&value);
            producer.send(record).map_err(|(error, _)| error).context("writing")?;
        }
        producer.flush(STEP).context("writing")?;
        Ok(producer)
    }

    fn committed(&self, ids: std::ops::Range<i64>) -> Result<()> {
        self.begun(ids)?.commit_transaction(STEP).context("committing")
    }

    fn aborted(&self, ids: std::ops::Range<i64>) -> Result<()> {
        self.begun(ids)?.abort_transaction(STEP).context("aborting")
    }
}
