//! Does: reads topics to the ends they have when the run begins, feed by feed, in batches of one commit each.
//!
//! A drain reads every partition of its topics from the table's position and joins no group; two drains fence each other. A
//! round of a continuous run does the same with the partitions that the group has given to this process, and leaves the
//! consumer as it is for the next: what was fetched meanwhile is taken up then.
//!
//! A drain may be asked for a range of offsets of some partitions: then it reads those alone, from the table's position where there is one.
//!
//! Offsets without a record for us (transaction markers, aborted or compacted records) ride along with the next rows. Alone they
//! are committed only when there are enough of them: reading them again would cost more than a commit, and an idle topic writes nothing (B5).

mod ask;
mod drain;
mod fill;
mod positions;
mod round;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tributary_lake::Lake;
use tributary_specs::SourceFeed;

use self::positions::{app_id, begins_at_end, started, table_position};
use crate::consumers::Settled;
use crate::kafka::{Client, Cluster, Limits, Patience, Place, places_of};
use crate::lane::Lane;
use crate::options::{KafkaMode, Options};
use crate::plan::{self, Range};
use crate::reading::{Origin, Reading, records_left};
use crate::run::Slot;
use crate::source::PartitionBounds;
use crate::{Error, Result, anew};

/// Brings the tables of feeds with one consumer up to date.
pub(crate) async fn run(lake: &Lake, feeds: &[SourceFeed], slots: &mut [Slot], options: &Options) {
    refuse_anew(slots, options);
    let Some(first) = slots.iter().find(|slot| slot.running().is_some()).map(|slot| slot.index) else { return };
    let ended = match (Cluster::of(&feeds[first], &options.kafka), &options.kafka.mode) {
        (Err(error), _) => Err(error),
        (Ok(cluster), KafkaMode::Drain) => Run { lake, feeds, options, cluster: &cluster }.drain(slots).await,
        (Ok(cluster), KafkaMode::Continuous(consumers)) => Run { lake, feeds, options, cluster: &cluster }.round(slots, consumers).await,
    };
    if let Err(error) = ended {
        let error = Arc::new(error);
        slots.iter_mut().for_each(|slot| slot.stop(Arc::clone(&error)));
    }
}

/// A table is built anew by a drain of whole topics alone.
fn refuse_anew(slots: &mut [Slot], options: &Options) {
    let continuous = matches!(options.kafka.mode, KafkaMode::Continuous(_));
    for slot in slots {
        let lane = slot.running().filter(|lane| lane.anew.is_some());
        if let Some(error) = lane.and_then(|lane| anew::refusal(&lane.feed, continuous, plan::is_asked(&options.kafka))) {
            slot.stop(error);
        }
    }
}

struct Run<'a> {
    lake: &'a Lake,
    feeds: &'a [SourceFeed],
    options: &'a Options,
    cluster: &'a Cluster,
}

/// Topics with their numbers of partitions, by index of the slot that reads them.
type SlotTopics = BTreeMap<usize, BTreeMap<String, i32>>;

/// What partitions hold.
type Bounds = BTreeMap<Place, PartitionBounds>;

/// A feed's partitions, by index of its slot.
type Lanes = Vec<(usize, Vec<Reading>)>;

impl Run<'_> {
    /// The partitions of each slot that are among `bounds`, at their positions.
    async fn lanes(&self, slots: &mut [Slot], topics: &SlotTopics, bounds: &Bounds, settled: &BTreeMap<Place, Settled>) -> Lanes {
        let mut lanes = Vec::new();
        for (index, topics) in topics {
            let Some(lane) = slots[*index].lane() else { continue };
            let places = topics.iter().flat_map(places_of);
            let origins = places.filter_map(|place| bounds.get(&place).map(|bounds| (place, *bounds))).collect();
            match self.readings(lane, origins, settled).await {
                Ok(readings) => lanes.push((*index, readings)),
                Err(error) => slots[*index].stop(error),
            }
        }
        lanes
    }

    async fn readings(
        &self,
        lane: &mut Lane,
        origins: Vec<(Place, PartitionBounds)>,
        settled: &BTreeMap<Place, Settled>,
    ) -> Result<Vec<Reading>> {
        let from_end = begins_at_end(lane) && (lane.anew.is_some() || !started(lane).await?);
        let mut readings = Vec::with_capacity(origins.len());
        for (place, bounds) in origins {
            let app_id = app_id(lane, &place);
            let table = table_position(lane, &place).await?;
            let resume = settled.get(&place).filter(|settled| settled.table == table).map(|settled| settled.next);
            let range = self.range_of(&place).unwrap_or_default();
            let from_end = from_end && range == Range::default();
            let origin = Origin { topic: Some(place.topic), bounds, app_id, from_end, resume, range };
            readings.push(Reading::begin(self.lake, lane, origin, self.options).await?);
        }
        anew::ensure_no_record_is_lost(lane, &readings).await?;
        lane.tally.lag_records = Some(records_left(&readings));
        Ok(readings)
    }

    /// What waits for a broker ends with the run; nothing is in hand then.
    async fn unless_cancelled<T>(&self, waiting: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => Err(Error::Cancelled),
            done = waiting => done,
        }
    }

    /// How long an answer is waited for.
    fn waits(&self) -> Duration {
        match self.options.kafka.mode {
            KafkaMode::Drain => self.options.kafka.patience,
            KafkaMode::Continuous(_) => self.options.kafka.patience / 6,
        }
    }

    fn patience(&self) -> Patience {
        Patience::new(self.waits())
    }

    fn open(&self, limits: Limits, slots: &[Slot]) -> Result<Client> {
        let feed = slots.iter().find(|slot| slot.running().is_some()).map_or("", |slot| self.feeds[slot.index].name.as_str());
        Client::open(self.cluster, limits, feed, self.options)
    }
}
