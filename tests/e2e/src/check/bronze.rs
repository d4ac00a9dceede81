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
    let mut seen: BTreeMap<Place, u64> = BTreeMap::new();
    for place in places(lake, &format!("select _topic, _partition, _offset from {}", feed.table)).await? {
        *seen.entry(place).or_default() += 1;
    }
    let mut quarantined = 0;
    let quarantine = format!("quarantine.{}", feed.name);
    if lake.table(&quarantine).await.is_ok() {
        let open = format!("select topic, partition, offset from quarantine.`{}` where superseded_at is null", feed.name);
        for place in places(lake, &open).await? {
            quarantined += 1;
            *seen.entry(place).or_default() += 1;
        }
    }
    let mut records = Vec::new();
    for topic in &kafka.topics {
        let read = sides.records.of.get(topic).context("the topic was not read")?;
        records.extend(read.iter().map(|record| ((topic.clone(), record.partition, record.offset), record.tombstone)));
    }
    Ok(Counts { quarantined, ..tally(seen, &records) })
}

/// Topic, partition and offset.
type Place = (String, i32, i64);

/// How often each place is in the lake, against the records, of which some are tombstones.
fn tally(mut seen: BTreeMap<Place, u64>, records: &[(Place, bool)]) -> Counts {
    let mut counts = Counts { duplicated: seen.values().map(|times| times - 1).sum(), ..Counts::default() };
    for (place, tombstone) in records {
        counts.records += 1;
        match (tombstone, seen.remove(place).is_some()) {
            (false, false) => counts.missing += 1,
            (true, true) => counts.duplicated += 1,
            (true, false) => counts.tombstones += 1,
            (false, true) => {}
        }
    }
    // what is left has no record
    counts.duplicated += seen.len() as u64;
    counts
}

async fn places(lake: &Lake, query: &str) -> Result<Vec<Place>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: i64) -> Place {
        ("orders".to_owned(), 0, offset)
    }

    #[test]
    fn a_lost_a_doubled_and_an_invented_record_are_counted() {
        let records = [(place(0), false), (place(1), false), (place(2), true), (place(3), false)];
        let seen = BTreeMap::from([(place(0), 1), (place(1), 2), (place(9), 1)]);
        let counts = tally(seen, &records);
        assert_eq!(counts, Counts { records: 4, missing: 1, duplicated: 2, quarantined: 0, tombstones: 1 });
    }

    #[test]
    fn a_tombstone_that_became_a_row_is_one_too_many() {
        assert_eq!(tally(BTreeMap::from([(place(0), 1)]), &[(place(0), true)]).duplicated, 1);
    }
}
