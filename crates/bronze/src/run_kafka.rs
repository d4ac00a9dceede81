//! Does: reads topics to the ends they have when the run begins, feed by feed, in batches of one commit each.
//!
//! A drain reads every partition of its topics from the table's position and joins no group; two drains fence each other. A
//! round of a continuous run does the same with the partitions that the group has given to this process, and leaves the
//! consumer as it is for the next: what was fetched meanwhile is taken up then.
//!
//! A drain may be asked for a range of offsets of some partitions: then it reads those alone, from the table's position where there is one.
//!
//! Offsets without a record for us (transaction markers, aborted or compacted records) ride along with the next rows. Alone they
//! are committed only when there are [`HOLE`] of them: reading them again would cost more than a commit, and an idle topic writes nothing (B5).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tributary_lake::Lake;
use tributary_specs::{KafkaStart, Source, SourceFeed};

use crate::batch::LaneBatch;
use crate::consumers::{Consumers, Live, Settled};
use crate::kafka::{Chunk, Client, Cluster, Limits, Next, Patience, Piece, Pieces, Place, Target, WINDOW, Wanted, places_of, route};
use crate::lane::Lane;
use crate::options::{KafkaMode, Options};
use crate::plan::{self, Range};
use crate::reading::{Origin, Reading, records_left};
use crate::run::{AfterRace, Committed, Slot, cancelled, tell};
use crate::source::PartitionBounds;
use crate::{Error, Result, events, positions};

/// Records of one commit where no bound is set.
const BATCH_RECORDS: u64 = 2_000_000;
/// Bytes of the records of one commit where no bound is set.
const BATCH_BYTES: u64 = 2 << 30;
/// Offsets without a record that are worth a commit of their own.
const HOLE: u64 = 1_000;
/// How often an end that lies before a table's position is asked for again, and after how long.
const SECOND_LOOKS: usize = 3;
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(500);
/// How long a round waits for records that it knows to be there.
const QUIET: Duration = Duration::from_millis(500);

/// Brings the tables of feeds with one consumer up to date.
pub(crate) async fn run(lake: &Lake, feeds: &[SourceFeed], slots: &mut [Slot], options: &Options) {
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

/// Whether the feeds that are run can read the partitions that were asked for at all.
pub(crate) fn check_asked(feeds: &[SourceFeed], options: &Options) -> Result<()> {
    if plan::is_asked(&options.kafka) && matches!(options.kafka.mode, KafkaMode::Continuous(_)) {
        return Err(Error::Range { place: "a range of offsets".to_owned(), reason: "only a run that ends reads one".to_owned() });
    }
    let mut wanted = Vec::new();
    for feed in feeds.iter().filter(|feed| options.runs(feed)) {
        if let Source::Kafka(source) = &feed.source {
            wanted.push(Wanted::of(feed, source)?);
        }
    }
    match plan::asked(&options.kafka).find(|(topic, _)| !wanted.iter().any(|wanted| wanted.takes(topic))) {
        Some((topic, _)) => Err(Error::Range { place: format!("topic `{topic}`"), reason: "no feed that is run reads it".to_owned() }),
        None => Ok(()),
    }
}

struct Run<'a> {
    lake: &'a Lake,
    feeds: &'a [SourceFeed],
    options: &'a Options,
    cluster: &'a Cluster,
}

/// A feed's partitions, by index of its slot.
type Lanes = Vec<(usize, Vec<Reading>)>;

impl Run<'_> {
    async fn drain(&self, slots: &mut [Slot]) -> Result<()> {
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
    async fn drain_lanes(&self, client: &Client, slots: &mut [Slot], lanes: Lanes, bounds: &BTreeMap<Place, PartitionBounds>) {
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

    async fn drain_lane(
        &self,
        client: &Client,
        slot: &mut Slot,
        mut readings: Vec<Reading>,
        bounds: &BTreeMap<Place, PartitionBounds>,
    ) -> Result<()> {
        'from_the_table: loop {
            let mut stream = Stream::new(client, &readings, self.waits());
            while readings.iter().any(Reading::is_due) {
                cancelled(self.options)?;
                let Some(lane) = slot.lane() else { return Ok(()) };
                let batch = self.fill(lane, &mut stream, &mut readings).await?;
                if let (Stop::Silent, false) = (stream.stop, self.options.cancel.is_cancelled()) {
                    return Err(silence(client, self.waits()));
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

    async fn round(&self, slots: &mut [Slot], consumers: &Consumers) -> Result<()> {
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

    /// What waits for a broker ends with the run; nothing is in hand then.
    async fn unless_cancelled<T>(&self, waiting: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => Err(Error::Cancelled),
            done = waiting => done,
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
        let owned = owned.ok_or_else(|| unanswered(&live.client, self.waits()))?;
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
    async fn write_beginnings(&self, client: &Client, slots: &mut [Slot], topics: &BTreeMap<usize, BTreeMap<String, i32>>) -> Result<()> {
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

    /// The topics of the slots, by index of slot. A feed whose topics are not its own or not there stops.
    async fn topics(&self, client: &Client, slots: &mut [Slot], patience: Patience) -> Result<BTreeMap<usize, BTreeMap<String, i32>>> {
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
    async fn bounds(
        &self,
        client: &Client,
        slots: &[Slot],
        topics: &BTreeMap<usize, BTreeMap<String, i32>>,
        places: Vec<Place>,
    ) -> Result<BTreeMap<Place, PartitionBounds>> {
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
    fn stop_without_bounds(
        &self,
        client: &Client,
        slots: &mut [Slot],
        topics: &BTreeMap<usize, BTreeMap<String, i32>>,
        bounds: &BTreeMap<Place, PartitionBounds>,
    ) {
        for (index, topics) in topics {
            if let Some(place) = topics.iter().flat_map(|topic| self.places_of(topic)).find(|place| !bounds.contains_key(place)) {
                let doing = format!("asking where {place} begins and ends");
                slots[*index].stop(client.away(&doing, self.waits(), "it has no leader"));
            }
        }
    }

    /// A feed whose topics do not have a partition that was asked for stops.
    fn stop_without_partitions(&self, slots: &mut [Slot], topics: &BTreeMap<usize, BTreeMap<String, i32>>) {
        for (index, topics) in topics {
            let lacks = |(topic, partition): &(&str, i32)| topics.get(*topic).is_some_and(|partitions| partition >= partitions);
            if let Some((topic, partition)) = plan::asked(&self.options.kafka).find(lacks) {
                let place = format!("topic `{topic}`, partition {partition}");
                slots[*index].stop(Error::Range { place, reason: "the topic has no such partition".to_owned() });
            }
        }
    }

    /// The partitions of a topic that are to be read.
    fn places_of(&self, topic: (&String, &i32)) -> Vec<Place> {
        let mut places = places_of(topic);
        places.retain(|place| self.range_of(place).is_some());
        places
    }

    fn range_of(&self, place: &Place) -> Option<Range> {
        Range::of(&self.options.kafka, &place.topic, place.partition)
    }

    fn shares_brokers(&self, feed: &SourceFeed) -> bool {
        Cluster::of(feed, &self.options.kafka).is_ok_and(|cluster| cluster.bootstrap == self.cluster.bootstrap)
    }

    /// The partitions of each slot that are among `bounds`, at their positions.
    async fn lanes(
        &self,
        slots: &mut [Slot],
        topics: &BTreeMap<usize, BTreeMap<String, i32>>,
        bounds: &BTreeMap<Place, PartitionBounds>,
        settled: &BTreeMap<Place, Settled>,
    ) -> Lanes {
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
        let from_end = begins_at_end(lane) && !started(lane).await?;
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
        lane.tally.lag_records = Some(records_left(&readings));
        Ok(readings)
    }

    /// Reads until a batch is full, every partition is at its end, nothing comes, or the run shall end.
    async fn fill(&self, lane: &mut Lane, stream: &mut Stream<'_>, readings: &mut [Reading]) -> Result<LaneBatch> {
        let mut batch = LaneBatch::new(self.lake.clock().now().timestamp_micros());
        let records = self.options.max_records_per_trigger.unwrap_or(BATCH_RECORDS).max(1);
        let bytes = self.options.max_bytes_per_trigger.unwrap_or(BATCH_BYTES);
        stream.stop = loop {
            if stream.open.is_empty() {
                break Stop::Ended;
            }
            if batch.counts.rows_in >= records || batch.counts.bytes >= bytes {
                break Stop::Full;
            }
            match stream.next(&self.options.cancel).await {
                Next::Piece(Piece::Records(chunk)) => self.absorb(lane, &mut batch, readings, &chunk).await?,
                Next::Piece(Piece::Ended(place)) => {
                    stream.open.remove(&place);
                    if let Some(reading) = find(readings, &place) {
                        reading.position.next = reading.position.next.max(reading.until);
                    }
                }
                Next::Piece(Piece::Failed { place, reason, refused: true }) => {
                    return Err(stream.client.refused(&format!("reading {place}"), &reason));
                }
                Next::Piece(Piece::Failed { place, reason, refused: false }) => {
                    return Err(Error::KafkaPartition { topic: place.topic.to_string(), partition: place.partition, reason });
                }
                Next::Hurry => break Stop::Hurried,
                Next::Silence => break Stop::Silent,
                Next::Gone => return Err(stream.client.away("reading records", Duration::ZERO, "the polling thread has ended")),
            }
        };
        let must = batch.counts.rows_in > 0 || readings.iter().any(Reading::must_be_recorded);
        if must || readings.iter().map(Reading::moved).sum::<u64>() >= HOLE {
            readings.iter().for_each(|reading| reading.join(&mut batch));
        }
        Ok(batch)
    }

    async fn absorb(&self, lane: &mut Lane, batch: &mut LaneBatch, readings: &mut [Reading], chunk: &Chunk) -> Result<()> {
        let (Some(reading), Some(last)) = (find(readings, &chunk.place), chunk.last()) else { return Ok(()) };
        let from = std::mem::replace(&mut reading.position.next, last + 1);
        reading.look_into_quarantine(lane, batch, from).await?;
        let headers = chunk.headers();
        batch.absorb(lane, self.lake, None, &chunk.records(&headers)).await?;
        tell(self.options, lane, batch);
        Ok(())
    }
}

/// Why a batch is not filled any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Ended,
    Full,
    Hurried,
    Silent,
}

/// Records of a lane's partitions, batch after batch.
struct Stream<'a> {
    client: &'a Client,
    pieces: Pieces<'a>,
    /// Partitions whose end has not come.
    open: BTreeSet<Place>,
    patience: Duration,
    stop: Stop,
}

impl<'a> Stream<'a> {
    fn new(client: &'a Client, readings: &[Reading], patience: Duration) -> Self {
        let due = readings.iter().filter(|reading| reading.position.next < reading.until);
        let target = |reading: &Reading| Some(Target { place: place(reading)?, from: reading.position.next, until: reading.until });
        let targets: Vec<Target> = due.filter_map(target).collect();
        let open = targets.iter().map(|target| target.place.clone()).collect();
        Self { client, pieces: client.read(targets), open, patience, stop: Stop::Full }
    }

    /// Nothing comes any more once the run shall end.
    async fn next(&mut self, cancel: &tokio_util::sync::CancellationToken) -> Next {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Next::Silence,
            next = self.pieces.next(self.patience) => next,
        }
    }
}

/// Tells the readings where the tables are after a commit.
async fn settle(lane: &mut Lane, readings: &mut [Reading]) -> Result<()> {
    for reading in readings.iter_mut() {
        reading.settle(lane).await?;
    }
    lane.tally.lag_records = Some(records_left(readings));
    Ok(())
}

/// Why records that are there do not come.
fn silence(client: &Client, waited: Duration) -> Error {
    match client.shared.trouble() {
        Some(trouble) if trouble.refused => client.refused("reading records", &trouble.reason),
        Some(trouble) => client.away("reading records", waited, &trouble.reason),
        None => client.away("reading records", waited, "records that are there do not come"),
    }
}

/// The group has not answered.
fn unanswered(client: &Client, waited: Duration) -> Error {
    let doing = format!("joining the group {}", client.cluster.group);
    match client.shared.trouble() {
        Some(trouble) if trouble.refused => client.refused(&doing, &trouble.reason),
        Some(trouble) => client.away(&doing, waited, &trouble.reason),
        None => client.away(&doing, waited, "its coordinator has not answered"),
    }
}

fn settled_at(reading: &Reading) -> Settled {
    Settled { table: reading.position.bronze, next: reading.position.next }
}

fn place(reading: &Reading) -> Option<Place> {
    Some(Place { topic: reading.topic.clone()?, partition: reading.partition })
}

/// Where a partition that has something to read begins.
fn begin(reading: &Reading) -> Option<(Place, i64)> {
    Some((place(reading)?, reading.position.next)).filter(|_| reading.position.next < reading.until)
}

fn find<'a>(readings: &'a mut [Reading], place: &Place) -> Option<&'a mut Reading> {
    readings.iter_mut().find(|reading| reading.partition == place.partition && reading.topic.as_ref() == Some(&place.topic))
}

fn app_id(lane: &Lane, place: &Place) -> String {
    positions::of_topic(&lane.feed.name, &place.topic, place.partition)
}

async fn table_position(lane: &Lane, place: &Place) -> Result<Option<i64>> {
    positions::read(lane.bronze.as_ref(), &app_id(lane, place)).await
}

fn begins_at_end(lane: &Lane) -> bool {
    matches!(&lane.feed.source, Source::Kafka(source) if source.starting == KafkaStart::Latest)
}

/// Whether the table has a position of any partition of the feed.
async fn started(lane: &Lane) -> Result<bool> {
    let Some(table) = &lane.bronze else { return Ok(false) };
    let positions = table.progress_with_prefix(&positions::of_topics(&lane.feed.name)).await;
    Ok(!positions.map_err(|source| Error::lake(table.name(), "reading positions", source))?.is_empty())
}
