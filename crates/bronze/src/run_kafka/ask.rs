//! Does: asks the broker which topics there are and what their partitions hold, and stops the feeds that cannot be read.

use std::collections::BTreeMap;
use std::time::Duration;

use tributary_specs::{Source, SourceFeed};

use super::positions::table_position;
use super::{Bounds, Run, SlotTopics};
use crate::kafka::{Client, Cluster, Patience, Place, Wanted, places_of, route};
use crate::plan::{self, Range};
use crate::run::Slot;
use crate::{Error, Result};

/// How often an end that lies before a table's position is asked for again, and after how long.
const SECOND_LOOKS: usize = 3;
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(500);

impl Run<'_> {
    /// The topics of the slots, by index of slot. A feed whose topics are not its own or not there stops.
    pub(super) async fn topics(&self, client: &Client, slots: &mut [Slot], patience: Patience) -> Result<SlotTopics> {
        let (mut all, mut slot_of): (Vec<Wanted>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
        for (index, feed) in self.feeds.iter().enumerate() {
            let Source::Kafka(source) = &feed.source else { continue };
            let slot = slots.iter().position(|slot| slot.index == index && slot.running().is_some());
            match (Wanted::of(feed, source), slot) {
                (Ok(wanted), _) if slot.is_some() || self.shares_brokers(feed) => {
                    all.push(wanted);
                    slot_of.push(slot);
                }
                (Err(error), Some(slot)) => slots[slot].stop(error),
                _ => {}
            }
        }
        let running = || all.iter().zip(&slot_of).filter(|(_, slot)| slot.is_some()).map(|(wanted, _)| wanted);
        let exact = running().flat_map(Wanted::exact).map(str::to_owned).collect();
        let there = client.topics(exact, running().any(Wanted::is_open), patience).await?;
        let mut routes = route(&all, &there, &self.cluster.bootstrap);
        for (index, error) in routes.stopped {
            if let Some(slot) = slot_of[index] {
                slots[slot].stop(error);
            }
            routes.topics.remove(&index);
        }
        Ok(routes.topics.into_iter().filter_map(|(index, topics)| Some((slot_of[index]?, topics))).collect())
    }

    /// What partitions hold. A broker that has just become their leader may name an earlier end for a moment: one that lies before a
    /// table's position is asked for again before it counts as a gap.
    pub(super) async fn bounds(&self, client: &Client, slots: &[Slot], topics: &SlotTopics, places: Vec<Place>) -> Result<Bounds> {
        let mut bounds = client.bounds(places, self.patience()).await?;
        for _ in 0..SECOND_LOOKS {
            let mut receded = Vec::new();
            for (place, bounds) in &bounds {
                let reads = |(index, topics): (&usize, &BTreeMap<String, i32>)| topics.contains_key(&*place.topic).then_some(*index);
                let lane = topics.iter().find_map(reads).and_then(|index| slots[index].running());
                if let Some(lane) = lane
                    && table_position(lane, place).await?.is_some_and(|position| position > bounds.end)
                {
                    receded.push(place.clone());
                }
            }
            if receded.is_empty() {
                break;
            }
            tokio::time::sleep(SECOND_LOOK_AFTER).await;
            bounds.extend(client.bounds(receded, self.patience()).await?);
        }
        Ok(bounds)
    }

    /// A feed that has a partition without a leader stops; the others flow on.
    pub(super) fn stop_without_bounds(&self, client: &Client, slots: &mut [Slot], topics: &SlotTopics, bounds: &Bounds) {
        for (index, topics) in topics {
            if let Some(place) = topics.iter().flat_map(|topic| self.places_of(topic)).find(|place| !bounds.contains_key(place)) {
                let doing = format!("asking where {place} begins and ends");
                slots[*index].stop(client.away(&doing, self.waits(), "it has no leader"));
            }
        }
    }

    /// A feed whose topics do not have a partition that was asked for stops.
    pub(super) fn stop_without_partitions(&self, slots: &mut [Slot], topics: &SlotTopics) {
        for (index, topics) in topics {
            let lacks = |(topic, partition): &(&str, i32)| topics.get(*topic).is_some_and(|partitions| partition >= partitions);
            if let Some((topic, partition)) = plan::asked(&self.options.kafka).find(lacks) {
                let place = format!("topic `{topic}`, partition {partition}");
                slots[*index].stop(Error::Range { place, reason: "the topic has no such partition".to_owned() });
            }
        }
    }

    /// The partitions of a topic that are to be read.
    pub(super) fn places_of(&self, topic: (&String, &i32)) -> Vec<Place> {
        let mut places = places_of(topic);
        places.retain(|place| self.range_of(place).is_some());
        places
    }

    pub(super) fn range_of(&self, place: &Place) -> Option<Range> {
        Range::of(&self.options.kafka, &place.topic, place.partition)
    }

    fn shares_brokers(&self, feed: &SourceFeed) -> bool {
        Cluster::of(feed, &self.options.kafka).is_ok_and(|cluster| cluster.bootstrap == self.cluster.bootstrap)
    }
}
