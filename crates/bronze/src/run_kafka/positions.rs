//! Where the partitions of a lane are, in its table and while they are read.

use tributary_specs::{KafkaStart, Source};

use crate::kafka::Place;
use crate::lane::Lane;
use crate::reading::{Reading, records_left};
use crate::{Error, Result, positions};

/// Tells the readings where the tables are after a commit.
pub(super) async fn settle(lane: &mut Lane, readings: &mut [Reading]) -> Result<()> {
    for reading in readings.iter_mut() {
        reading.settle(lane).await?;
    }
    lane.tally.lag_records = Some(records_left(readings));
    Ok(())
}

pub(super) fn place(reading: &Reading) -> Option<Place> {
    Some(Place { topic: reading.topic.clone()?, partition: reading.partition })
}

/// Where a partition that has something to read begins.
pub(super) fn begin(reading: &Reading) -> Option<(Place, i64)> {
    Some((place(reading)?, reading.position.next)).filter(|_| reading.position.next < reading.until)
}

pub(super) fn find<'a>(readings: &'a mut [Reading], place: &Place) -> Option<&'a mut Reading> {
    readings.iter_mut().find(|reading| reading.partition == place.partition && reading.topic.as_ref() == Some(&place.topic))
}

pub(super) fn app_id(lane: &Lane, place: &Place) -> String {
    positions::of_topic(&lane.feed.name, &place.topic, place.partition)
}

pub(super) async fn table_position(lane: &Lane, place: &Place) -> Result<Option<i64>> {
    positions::read(lane.bronze.as_ref(), &app_id(lane, place)).await
}

pub(super) fn begins_at_end(lane: &Lane) -> bool {
    matches!(&lane.feed.source, Source::Kafka(source) if source.starting == KafkaStart::Latest)
}

/// Whether the table has a position of any partition of the feed.
pub(super) async fn started(lane: &Lane) -> Result<bool> {
    let Some(table) = &lane.bronze else { return Ok(false) };
    let positions = table.progress_with_prefix(&positions::of_topics(&lane.feed.name)).await;
    let positions = positions.map_err(|source| Error::lake(table.name(), "reading positions", source))?;
    Ok(positions.into_values().any(|position| positions::known(Some(position)).is_some()))
}
