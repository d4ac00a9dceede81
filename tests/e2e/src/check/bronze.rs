//! Every record of the topics is in bronze once, or in quarantine once, or a tombstone.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use tributary::arrow::array::AsArray as _;
use tributary::arrow::datatypes::{Int32Type, Int64Type};
use tributary::{Lake, Source, SourceFeed};

use super::{Outcome, Sides};

/// Records by where they went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the topics.
    pub records: u64,
    /// In the topics and nowhere in the lake, though no tombstone.
    pub missing: u64,
    /// More than once in the lake, or in the lake and not in the topics.
    pub duplicated: u64,
    /// Open in quarantine.
    pub quarantined: u64,
    /// Tombstones, which are no rows.
    pub tombstones: u64,
}

pub(super) async fn check(lake: &Lake, sides: &Sides<'_>, outcome: &mut Outcome) -> Result<()> {
    let mut total = Counts::default();
    for feed in &sides.pipeline.spec().feeds {
        let counts = of_feed(lake, sides, feed).await.with_context(|| format!("comparing {}", feed.table))?;
        outcome.details.push(format!(
            "{}: {} records, of them {} tombstones, {} in quarantine",
            feed.table, counts.records, counts.tombstones, counts.quarantined
        ));
        total.records += counts.records;
        total.missing += counts.missing;
        total.duplicated += counts.duplicated;
        total.quarantined += counts.quarantined;
        total.tombstones += counts.tombstones;
    }
    outcome.holds &= total.missing == 0 && total.duplicated == 0 && total.records > 0;
    if total.quarantined > 0 {
        outcome.fail(format!("{} records are in quarantine, though all can be read", total.quarantined));
    }
    outcome.lines.push(format!("bronze missing {} duplicated {} of {}", total.missing, total.duplicated, total.records));
    outcome.counts = total;
    Ok(())
}

async fn of_feed(lake: &Lake, sides: &Sides<'_>, feed: &SourceFeed) -> Result<Counts> {
    let Source::Kafka(kafka) = &feed.source else { return Ok(Counts::default()) };
    let mut seen: BTreeMap<(String, i32, i64), u64> = BTreeMap::new();
    for place in places(lake, &format!("select _topic, _partition, _offset from {}", feed.table)).await? {
        *seen.entry(place).or_default() += 1;
    }
    let mut counts = Counts::default();
    let quarantine = format!("quarantine.{}", feed.name);
    if lake.table(&quarantine).await.is_ok() {
        let open = format!("select topic, partition, offset from quarantine.`{}` where superseded_at is null", feed.name);
        for place in places(lake, &open).await? {
            counts.quarantined += 1;
            *seen.entry(place).or_default() += 1;
        }
    }
    counts.duplicated = seen.values().map(|times| times - 1).sum();
    for topic in &kafka.topics {
        for record in sides.records.of.get(topic).context("the topic was not read")? {
            counts.records += 1;
            let landed = seen.remove(&(topic.clone(), record.partition, record.offset)).is_some();
            match (record.tombstone, landed) {
                (false, false) => counts.missing += 1,
                (true, true) => counts.duplicated += 1,
                (true, false) => counts.tombstones += 1,
                (false, true) => {}
            }
        }
    }
    // what is left has no record
    counts.duplicated += seen.len() as u64;
    Ok(counts)
}

async fn places(lake: &Lake, query: &str) -> Result<Vec<(String, i32, i64)>> {
    let batches = tributary::sql::query(lake, query).await?.collect().await?;
    let mut places = Vec::new();
    for batch in &batches {
        let (topics, partitions, offsets) = (batch.column(0), batch.column(1), batch.column(2));
        let topics = topics.as_string_opt::<i32>().context("topics are text")?;
        let partitions = partitions.as_primitive_opt::<Int32Type>().context("partitions are integers")?;
        let offsets = offsets.as_primitive_opt::<Int64Type>().context("offsets are longs")?;
        places.extend((0..batch.num_rows()).map(|row| (topics.value(row).to_owned(), partitions.value(row), offsets.value(row))));
    }
    Ok(places)
}
