//! Does: one round of a continuous run, with the partitions that the group has given to this process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::fill::{Stop, Stream};
use super::positions::{begin, begins_at_end, place, settle, started};
use super::{Run, SlotTopics};
use crate::batch::LaneBatch;
use crate::consumers::{Consumers, Live, Settled};
use crate::kafka::{Client, Limits, Place, places_of};
use crate::reading::Reading;
use crate::run::{AfterRace, Committed, Slot};
use crate::{Error, Result, events};

/// How long a round waits for records that it knows to be there.
const QUIET: Duration = Duration::from_millis(500);

impl Run<'_> {
    pub(super) async fn round(&self, slots: &mut [Slot], consumers: &Consumers) -> Result<()> {
        match self.try_round(slots, consumers).await {
            Err(error @ Error::KafkaAway { .. }) => {
                events::kafka_away(&error);
                for lane in slots.iter_mut().filter_map(Slot::lane) {
                    lane.tally.remarks.insert(format!("{error}; going on trying"));
                }
                Ok(())
            }
            Err(Error::Cancelled) => Ok(()),
            ended => ended,
        }
    }

    async fn try_round(&self, slots: &mut [Slot], consumers: &Consumers) -> Result<()> {
        let (live, topics) = match consumers.get(self.cluster) {
            Some(live) => {
                let topics = self.unless_cancelled(self.topics(&live.client, slots, self.patience())).await?;
                (live, topics)
            }
            None => {
                let memory = self.lake.options().memory_limit;
                let asking = self.open(Limits::new(memory, 1), slots)?;
                let topics = self.unless_cancelled(self.topics(&asking, slots, self.patience())).await?;
                let partitions: i32 = topics.values().flatten().map(|(_, partitions)| *partitions).sum();
                let limits = Limits::new(memory, usize::try_from(partitions).unwrap_or_default());
                (consumers.keep(self.open(limits, slots)?), topics)
            }
        };
        let mut settled = live.settled.lock().await;
        let names: BTreeSet<&str> = topics.values().flatten().map(|(topic, _)| topic.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.write_beginnings(&live.client, slots, &topics).await?;
        live.client.subscribe(&names.iter().copied().collect::<Vec<_>>())?;
        let owned = self.unless_cancelled(async { Ok(live.client.owned(self.waits()).await) }).await?;
        let owned = owned.ok_or_else(|| {
            let doing = format!("joining the group {}", self.cluster.group);
            live.client.silent(&doing, self.waits(), "its coordinator has not answered")
        })?;
        settled.retain(|place, _| owned.contains(place));
        let places = owned.into_iter().filter(|place| names.contains(&*place.topic)).collect();
        let bounds = self.unless_cancelled(self.bounds(&live.client, slots, &topics, places)).await?;
        let lanes = self.lanes(slots, &topics, &bounds, &settled).await;
        for (index, mut readings) in lanes {
            match self.take_round(&live, &mut slots[index], &mut readings).await {
                Ok(true) => settled.extend(readings.iter().filter_map(|reading| Some((place(reading)?, settled_at(reading))))),
                Ok(false) => {}
                Err(error) => slots[index].stop(error),
            }
        }
        Ok(())
    }

    /// Takes what a lane's partitions hold now; whether everything that came is in the table.
    async fn take_round(&self, live: &Live, slot: &mut Slot, readings: &mut [Reading]) -> Result<bool> {
        let mut stream = Stream::new(&live.client, readings, QUIET);
        let mut begun_again = false;
        while readings.iter().any(Reading::is_due) {
            let Some(lane) = slot.lane() else { return Ok(false) };
            let batch = self.fill(lane, &mut stream, readings).await?;
            match slot.commit(self.lake, batch, AfterRace::ReadAgain, self.options).await {
                Committed::Yes => {}
                // Another process owns a partition now, or the table has changed: the next round begins at the table's positions.
                Committed::ReadAgain | Committed::Stopped => return Ok(false),
            }
            let Some(lane) = slot.lane() else { return Ok(false) };
            settle(lane, readings).await?;
            let kept = readings.iter().filter(|reading| reading.position.bronze.is_some());
            live.client.hint(kept.filter_map(|reading| place(reading).zip(reading.position.bronze)));
            match stream.stop {
                Stop::Full => {}
                Stop::Hurried | Stop::Ended => break,
                Stop::Silent if begun_again || self.options.cancel.is_cancelled() => break,
                // There may be nothing but transaction markers: a partition that is begun anew reports its end.
                Stop::Silent => {
                    begun_again = true;
                    drop(stream);
                    let owned = live.client.shared.owned().unwrap_or_default();
                    live.client.begin(readings.iter().filter_map(begin).filter(|(place, _)| owned.contains(place)).collect());
                    stream = Stream::new(&live.client, readings, 2 * QUIET);
                }
            }
        }
        if let (Some(trouble), Some(lane)) = (live.client.shared.trouble(), slot.lane()) {
            lane.tally.remarks.insert(format!("Kafka at {}: {}; going on trying", self.cluster.bootstrap, trouble.reason));
        }
        Ok(true)
    }

    /// A feed that begins at the end has its beginning written down for all partitions at once, whoever reads them later.
    async fn write_beginnings(&self, client: &Client, slots: &mut [Slot], topics: &SlotTopics) -> Result<()> {
        for (index, topics) in topics {
            let Some(lane) = slots[*index].lane().filter(|lane| begins_at_end(lane)) else { continue };
            if started(lane).await? {
                continue;
            }
            let places: Vec<Place> = topics.iter().flat_map(places_of).collect();
            let bounds = client.bounds(places, self.patience()).await?;
            let readings = self.readings(lane, bounds.into_iter().collect(), &BTreeMap::new()).await?;
            let mut batch = LaneBatch::new(self.lake.clock().now().timestamp_micros());
            readings.iter().for_each(|reading| reading.join(&mut batch));
            slots[*index].commit(self.lake, batch, AfterRace::ReadAgain, self.options).await;
        }
        Ok(())
    }
}

fn settled_at(reading: &Reading) -> Settled {
    Settled { table: reading.position.bronze, next: reading.position.next }
}
