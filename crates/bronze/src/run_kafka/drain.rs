//! Does: reads every partition to the end it had when the run began.

use std::collections::{BTreeMap, VecDeque};

use super::fill::{Stop, Stream};
use super::positions::{begin, place, settle};
use super::{Bounds, Lanes, Run};
use crate::Result;
use crate::kafka::{Client, Limits, Place, WINDOW};
use crate::reading::Reading;
use crate::run::{AfterRace, Committed, Slot, cancelled};

impl Run<'_> {
    pub(super) async fn drain(&self, slots: &mut [Slot]) -> Result<()> {
        let memory = self.lake.options().memory_limit;
        let mut client = self.open(Limits::new(memory, WINDOW), slots)?;
        let topics = self.unless_cancelled(self.topics(&client, slots, self.patience())).await?;
        self.stop_without_partitions(slots, &topics);
        let places = topics.values().flatten().flat_map(|topic| self.places_of(topic)).collect();
        let bounds = self.unless_cancelled(self.bounds(&client, slots, &topics, places)).await?;
        self.stop_without_bounds(&client, slots, &topics, &bounds);
        let mut lanes = self.lanes(slots, &topics, &bounds, &BTreeMap::new()).await;
        lanes.retain(|(_, readings)| readings.iter().any(Reading::is_due));
        let widest = lanes.iter().map(|(_, readings)| readings.len()).max().unwrap_or_default();
        if widest > WINDOW {
            client = self.open(Limits::new(memory, widest), slots)?;
        }
        self.drain_lanes(&client, slots, lanes, &bounds).await;
        Ok(())
    }

    /// Lane by lane, so that one commit holds as much as it may; the next lanes are fetched meanwhile.
    async fn drain_lanes(&self, client: &Client, slots: &mut [Slot], lanes: Lanes, bounds: &Bounds) {
        let (mut waiting, mut begun, mut open) = (VecDeque::from(lanes), VecDeque::new(), 0);
        loop {
            while let Some((_, readings)) = waiting.front() {
                let due = readings.iter().filter(|reading| reading.position.next < reading.until).count();
                if open > 0 && open + due > WINDOW {
                    break;
                }
                client.begin(readings.iter().filter_map(begin).collect());
                open += due;
                begun.extend(waiting.pop_front().map(|lane| (lane, due)));
            }
            let Some(((index, readings), due)) = begun.pop_front() else { return };
            let places: Vec<Place> = readings.iter().filter_map(place).collect();
            if let Err(error) = self.drain_lane(client, &mut slots[index], readings, bounds).await {
                slots[index].stop(error);
            }
            client.end(places);
            open -= due;
        }
    }

    async fn drain_lane(&self, client: &Client, slot: &mut Slot, mut readings: Vec<Reading>, bounds: &Bounds) -> Result<()> {
        'from_the_table: loop {
            let mut stream = Stream::new(client, &readings, self.waits());
            while readings.iter().any(Reading::is_due) {
                cancelled(self.options)?;
                let Some(lane) = slot.lane() else { return Ok(()) };
                let batch = self.fill(lane, &mut stream, &mut readings).await?;
                if let (Stop::Silent, false) = (stream.stop, self.options.cancel.is_cancelled()) {
                    return Err(client.silent("reading records", self.waits(), "records that are there do not come"));
                }
                match slot.commit(self.lake, batch, AfterRace::StopWhenFenced, self.options).await {
                    Committed::Yes => {}
                    Committed::ReadAgain => {
                        drop(stream);
                        let origins = readings.iter().filter_map(|reading| place(reading).and_then(|place| bounds.get_key_value(&place)));
                        let origins: Vec<_> = origins.map(|(place, bounds)| (place.clone(), *bounds)).collect();
                        let Some(lane) = slot.lane() else { return Ok(()) };
                        readings = self.readings(lane, origins, &BTreeMap::new()).await?;
                        client.begin(readings.iter().filter_map(begin).collect());
                        continue 'from_the_table;
                    }
                    Committed::Stopped => return Ok(()),
                }
                let Some(lane) = slot.lane() else { return Ok(()) };
                settle(lane, &mut readings).await?;
            }
            return Ok(());
        }
    }
}
