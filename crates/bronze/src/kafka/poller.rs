//! The thread that always polls: events of the client, and the queues of the partitions that are being read.
//!
//! - Each partition that was begun has a queue of its own, so that an end of partition has a name, and one that nobody reads
//!   stands still without holding up the others.
//! - A record is copied once, into its chunk's arena; then the library's memory for it is free again.
//! - A reader says where it is. A partition that does not stand there, whatever became of what was handed over, is begun anew at
//!   that place, so that nothing is left out and nothing comes twice.
//! - A partition that the group wants back while it is being read is given up after the reader has committed, or when
//!   [`GIVE_UP_AFTER`] has passed: the table's position decides then whose commit counts.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer, RebalanceProtocol};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::sync::mpsc;

use super::context::{Context, Rebalance, Shared, is_refusal};
use crate::events;
use crate::kafka::{Chunk, Place};

/// The longest sleep; every event wakes the thread before.
const IDLE: Duration = Duration::from_millis(50);
/// How long a reader may take to commit what it has of a partition that the group wants back.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// Chunks that wait for the reader.
pub(super) const WAITING: usize = 1;

/// What the poller is told.
pub(super) enum Command {
    /// Begin these partitions at these offsets, whether they were begun before or not.
    Begin(Vec<(Place, i64)>),
    /// End these partitions.
    End(Vec<Place>),
    /// Read these until their ends, in place of what was read before.
    Read { targets: Vec<Target>, to: mpsc::Sender<Piece> },
    /// What was read is committed, or given up.
    Done,
}

/// A partition to be read.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub place: Place,
    /// First offset that is wanted.
    pub from: i64,
    /// First offset that is not wanted now.
    pub until: i64,
}

/// What comes out.
#[derive(Debug)]
pub(crate) enum Piece {
    Records(Chunk),
    /// Every record before the target's end has come.
    Ended(Place),
    /// The partition cannot be read on.
    Failed {
        place: Place,
        reason: String,
        refused: bool,
    },
}

/// A partition that was begun.
struct Held {
    queue: PartitionQueue<Context>,
    /// Every record before it was handed over.
    given: i64,
    /// Every record before it was taken from the queue.
    taken: i64,
    /// Begun since the reader last asked where partitions end: the end of the partition lies at or behind the reader's end then.
    /// Later an end that is told may be an old one, with records behind it.
    fresh: bool,
    chunk: Chunk,
    /// A record at or behind the end of the last reading.
    ahead: Option<Chunk>,
}

struct Reading {
    targets: Vec<(Target, State)>,
    to: mpsc::Sender<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Open,
    /// Nothing more comes; the reader is not told yet.
    Over(Option<(String, bool)>),
    Told,
}

/// Partitions that the group wants back.
struct GivingUp {
    places: Vec<Place>,
    since: Instant,
}

pub(super) struct Poller {
    consumer: Arc<BaseConsumer<Context>>,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    waker: Arc<OnceLock<Thread>>,
    /// Partitions in the client's assignment.
    assigned: HashSet<Place>,
    held: HashMap<Place, Held>,
    reading: Option<Reading>,
    giving_up: Option<GivingUp>,
    slice_records: usize,
    slice_bytes: usize,
}

impl Poller {
    pub(super) fn new(
        consumer: Arc<BaseConsumer<Context>>,
        commands: Receiver<Command>,
        waker: Arc<OnceLock<Thread>>,
        (slice_records, slice_bytes): (usize, usize),
    ) -> Self {
        let shared = Arc::clone(&consumer.context().shared);
        Self {
            consumer,
            shared,
            commands,
            waker,
            assigned: HashSet::new(),
            held: HashMap::new(),
            reading: None,
            giving_up: None,
            slice_records,
            slice_bytes,
        }
    }

    /// Polls until nobody sends commands any more.
    pub(super) fn run(mut self) {
        while self.obey() {
            self.serve();
            self.rebalance();
            if !self.pump() {
                std::thread::park_timeout(IDLE);
            }
        }
        self.shared.close();
        self.rebalance();
        self.give_up();
    }

    /// Takes the commands that wait; whether more may come.
    fn obey(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Begin(places)) => self.begin(places),
                Ok(Command::End(places)) => self.end(&places),
                Ok(Command::Read { targets, to }) => self.read(targets, to),
                Ok(Command::Done) => {
                    for (target, _) in self.reading.take().into_iter().flat_map(|reading| reading.targets) {
                        if let Some(held) = self.held.get_mut(&target.place) {
                            held.fresh = false;
                        }
                    }
                    self.give_up();
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn read(&mut self, targets: Vec<Target>, to: mpsc::Sender<Piece>) {
        let elsewhere = |target: &&Target| self.held.get(&target.place).is_none_or(|held| held.given != target.from);
        let begun = targets.iter().filter(elsewhere).map(|target| (target.place.clone(), target.from)).collect::<Vec<_>>();
        if !begun.is_empty() {
            self.begin(begun);
        }
        self.reading = Some(Reading { targets: targets.into_iter().map(|target| (target, State::Open)).collect(), to });
    }

    fn begin(&mut self, mut places: Vec<(Place, i64)>) {
        // In a group, a partition may have been given back since the reader asked.
        if let Some(owned) = self.shared.owned() {
            places.retain(|(place, _)| owned.contains(place));
        }
        let mut list = TopicPartitionList::with_capacity(places.len());
        let mut begun = Vec::with_capacity(places.len());
        for (place, offset) in places {
            if list.add_partition_offset(&place.topic, place.partition, Offset::Offset(offset)).is_ok() {
                begun.push((place, offset));
            }
        }
        // What was fetched from elsewhere is outdated by leaving the assignment.
        self.end(&begun.iter().map(|(place, _)| place.clone()).collect::<Vec<_>>());
        for (place, offset) in begun {
            self.assigned.insert(place.clone());
            self.hold(place, offset);
        }
        self.check(self.consumer.incremental_assign(&list));
    }

    fn hold(&mut self, place: Place, from: i64) {
        // An old queue's end would take the new one's callback away.
        self.held.remove(&place);
        let Some(mut queue) = self.consumer.split_partition_queue(&place.topic, place.partition) else { return };
        let waker = Arc::clone(&self.waker);
        queue.set_nonempty_callback(move || wake(&waker));
        let held = Held { queue, given: from, taken: from, fresh: true, chunk: Chunk::new(place.clone()), ahead: None };
        self.held.insert(place, held);
    }

    fn end(&mut self, places: &[Place]) {
        places.iter().for_each(|place| {
            self.held.remove(place);
        });
        let assigned: Vec<&Place> = places.iter().filter(|place| self.assigned.remove(place)).collect();
        if !assigned.is_empty() {
            self.check(self.consumer.incremental_unassign(&list_of(assigned)));
        }
    }

    fn check(&self, outcome: rdkafka::error::KafkaResult<()>) {
        if let Err(error) = outcome {
            events::kafka_log(4, "ASSIGN", &self.consumer.context().cluster.redact(&error.to_string()));
        }
    }

    /// Serves the client's own events. Records on its queue are of partitions that nobody has begun.
    fn serve(&mut self) {
        while let Some(event) = self.consumer.poll(Duration::ZERO) {
            if let Err(KafkaError::MessageConsumptionFatal(code)) = event {
                events::kafka_log(3, "FATAL", &code.to_string());
            }
        }
    }

    fn rebalance(&mut self) {
        for rebalance in self.shared.rebalances() {
            match rebalance {
                Rebalance::Take(places) => self.take(&places),
                Rebalance::Give(places) => self.give(places),
            }
        }
        if self.giving_up.as_ref().is_some_and(|giving| giving.since.elapsed() > GIVE_UP_AFTER) {
            self.give_up();
        }
    }

    /// The group gives us partitions: they are in the assignment at once, and begun when a reader knows the table's position.
    /// Until then they stand at their ends, so that nothing is fetched in vain.
    fn take(&mut self, places: &[Place]) {
        events::kafka_partitions("taken", places.len());
        self.assigned.extend(places.iter().cloned());
        let mut list = list_of(places);
        self.check(list.set_all_offsets(Offset::End));
        self.check(match self.consumer.rebalance_protocol() {
            RebalanceProtocol::Eager => self.consumer.assign(&list),
            RebalanceProtocol::None | RebalanceProtocol::Cooperative => self.consumer.incremental_assign(&list),
        });
        self.shared.own(places);
    }

    /// The group wants partitions back. Those that stay keep what was fetched for them.
    fn give(&mut self, places: Vec<Place>) {
        events::kafka_partitions("given back", places.len());
        self.shared.disown(&places);
        let lost = self.consumer.assignment_lost();
        let read = self.reading.as_ref().is_some_and(|reading| reading.targets.iter().any(|(target, _)| places.contains(&target.place)));
        match &mut self.giving_up {
            Some(giving) => giving.places.extend(places),
            None => self.giving_up = Some(GivingUp { places, since: Instant::now() }),
        }
        if read && !lost {
            self.shared.hurry(true);
        } else {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let Some(giving) = self.giving_up.take() else { return };
        giving.places.iter().for_each(|place| {
            self.held.remove(place);
            self.assigned.remove(place);
        });
        self.check(match self.consumer.rebalance_protocol() {
            RebalanceProtocol::Eager => self.consumer.unassign(),
            RebalanceProtocol::None | RebalanceProtocol::Cooperative => self.consumer.incremental_unassign(&list_of(&giving.places)),
        });
        self.shared.hurry(false);
    }

    /// Moves records from queues to the reader; whether anything moved.
    fn pump(&mut self) -> bool {
        let Some(mut reading) = self.reading.take() else { return false };
        if reading.to.is_closed() {
            return false;
        }
        let mut moved = false;
        // What may be copied ahead of a busy reader, in all partitions together.
        let mut room = (2 * self.slice_bytes).saturating_sub(reading.targets.iter().map(|(target, _)| self.bytes_of(target)).sum());
        for (target, state) in &mut reading.targets {
            if *state != State::Open {
                continue;
            }
            match self.held.get_mut(&target.place) {
                Some(held) => moved |= fill(held, target, state, &mut room, (self.slice_records, self.slice_bytes), &self.shared),
                // It was given up; what came of it so far may still be committed.
                None => *state = State::Told,
            }
        }
        moved |= self.deliver(&mut reading);
        self.reading = Some(reading);
        moved
    }

    fn bytes_of(&self, target: &Target) -> usize {
        self.held.get(&target.place).map_or(0, |held| held.chunk.bytes())
    }

    /// Hands over full and last chunks, and what there is when the reader waits for something.
    fn deliver(&mut self, reading: &mut Reading) -> bool {
        let mut moved = false;
        while let Ok(permit) = reading.to.try_reserve() {
            let waited_for = reading.to.capacity() + 1 == WAITING;
            let rank = |(target, state): &(Target, State)| {
                let chunk = self.held.get(&target.place).map(|held| &held.chunk)?;
                let full = chunk.bytes() >= self.slice_bytes || chunk.len() >= self.slice_records;
                let over = matches!(state, State::Over(_));
                (full || over || waited_for && chunk.len() > 0).then_some((full || over, chunk.bytes()))
            };
            let best = reading.targets.iter().enumerate().filter_map(|(index, target)| Some((rank(target)?, index))).max();
            let Some((target, state)) = best.and_then(|(_, index)| reading.targets.get_mut(index)) else { break };
            let Some(held) = self.held.get_mut(&target.place) else { break };
            moved = true;
            if let Some(last) = held.chunk.last() {
                held.given = last + 1;
                let next = held.chunk.another();
                permit.send(Piece::Records(std::mem::replace(&mut held.chunk, next)));
            } else if let State::Over(failure) = std::mem::replace(state, State::Told) {
                let place = target.place.clone();
                match failure {
                    None => {
                        held.given = held.given.max(target.until);
                        permit.send(Piece::Ended(place));
                    }
                    Some((reason, refused)) => {
                        permit.send(Piece::Failed { place: place.clone(), reason, refused });
                        self.end(&[place]);
                    }
                }
            }
        }
        moved
    }
}

/// Takes what a partition's queue has, as far as there is room.
fn fill(held: &mut Held, target: &Target, state: &mut State, room: &mut usize, (records, bytes): (usize, usize), shared: &Shared) -> bool {
    let mut moved = false;
    if let Some(ahead) = held.ahead.take() {
        if ahead.first().is_some_and(|first| first >= target.until) {
            held.ahead = Some(ahead);
            *state = State::Over(None);
            return true;
        }
        held.chunk.append(ahead);
        moved = true;
    }
    if held.taken >= target.until {
        *state = State::Over(None);
        return true;
    }
    while held.chunk.len() < records && held.chunk.bytes() < bytes && *room > 0 {
        match held.queue.poll(Duration::ZERO) {
            None => break,
            Some(Ok(message)) => {
                moved = true;
                let offset = message.offset();
                if offset < held.taken {
                    continue;
                }
                held.taken = offset + 1;
                if offset >= target.until {
                    let mut ahead = Chunk::new(target.place.clone());
                    ahead.push(&message);
                    held.ahead = Some(ahead);
                    *state = State::Over(None);
                    break;
                }
                let before = held.chunk.bytes();
                held.chunk.push(&message);
                *room = room.saturating_sub(held.chunk.bytes() - before);
                if held.taken >= target.until {
                    *state = State::Over(None);
                    break;
                }
            }
            Some(Err(KafkaError::PartitionEOF(_))) => {
                moved = true;
                if held.fresh {
                    *state = State::Over(None);
                    break;
                }
            }
            Some(Err(error)) => {
                moved = true;
                if let Some(failure) = failure(&error) {
                    *state = State::Over(Some(failure));
                    break;
                }
            }
        }
    }
    if moved {
        shared.worked();
    }
    moved
}

/// Why a partition cannot be read on; none when the library tries again by itself.
fn failure(error: &KafkaError) -> Option<(String, bool)> {
    let code = error.rdkafka_error_code()?;
    let ends = matches!(
        code,
        RDKafkaErrorCode::AutoOffsetReset
            | RDKafkaErrorCode::OffsetOutOfRange
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopicId
    );
    (ends || is_refusal(code)).then(|| (code.to_string(), is_refusal(code)))
}

fn list_of<'a>(places: impl IntoIterator<Item = &'a Place>) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    places.into_iter().for_each(|place| {
        list.add_partition(&place.topic, place.partition);
    });
    list
}

/// Ends the poller's sleep.
pub(super) fn wake(waker: &OnceLock<Thread>) {
    if let Some(thread) = waker.get() {
        thread.unpark();
    }
}
