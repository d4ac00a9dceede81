//! One consumer: what the broker has, and records of partitions.
//!
//! The library's calls block; they are made on threads that may. A call is tried again until it answers, [`Patience`] is at
//! its end, or the broker has refused this program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::sync::mpsc;

use super::context::{Context, Shared, Trouble, is_refusal};
use super::poller::{Command, Piece, Poller, Target, WAITING, wake};
use crate::kafka::{Cluster, Limits, Place};
use crate::options::Options;
use crate::source::PartitionBounds;
use crate::{Error, Result, events};

/// The longest single request.
const REQUEST: Duration = Duration::from_secs(3);
/// A refusal must stand this long: a broker that goes down looks like one for a moment.
const REFUSAL: Duration = Duration::from_secs(1);
/// Topics asked for one by one; more of them cost less as one list of all.
const ONE_BY_ONE: usize = 16;

/// A consumer and its poller. Dropping it leaves the group and ends the thread.
pub(crate) struct Client {
    pub cluster: Cluster,
    consumer: Option<Arc<BaseConsumer<Context>>>,
    pub shared: Arc<Shared>,
    commands: Option<Sender<Command>>,
    waker: Arc<OnceLock<Thread>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.commands = None;
        self.consumer = None;
        wake(&self.waker);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            events::kafka_log(3, "POLLER", "the polling thread has panicked");
        }
    }
}

impl Client {
    /// Sets a consumer up; nothing is asked of the broker yet. `feed` is named when the settings do not make one.
    pub(crate) fn open(cluster: &Cluster, limits: Limits, feed: &str, options: &Options) -> Result<Self> {
        let refused = |reason: String| Error::KafkaSettings { feed: feed.to_owned(), reason };
        let mut config = ClientConfig::new();
        for (name, value) in cluster.properties(limits) {
            config.set(name, value);
        }
        let shared = Arc::new(Shared::default());
        let context = Context { shared: Arc::clone(&shared), cluster: cluster.clone() };
        let consumer = BaseConsumer::from_config_and_context(&config, context).map_err(|error| {
            refused(match error {
                KafkaError::ClientConfig(_, _, name, _) => {
                    format!("the property `{name}` does not exist or has a value that is not accepted")
                }
                KafkaError::ClientCreation(text) => cluster.redact(&text),
                other => cluster.redact(&other.to_string()),
            })
        })?;
        let consumer = Arc::new(consumer);
        let waker = Arc::new(OnceLock::new());
        let (commands, orders) = std::sync::mpsc::channel();
        let slice = (options.slice_records.max(1), options.slice_bytes.max(1));
        let poller = Poller::new(Arc::clone(&consumer), orders, Arc::clone(&waker), slice);
        let thread = std::thread::Builder::new()
            .name("tributary-kafka".to_owned())
            .spawn(move || poller.run())
            .map_err(|error| refused(format!("no thread could be started: {error}")))?;
        // Nobody else sets it, and it is set once.
        let _ = waker.set(thread.thread().clone());
        Ok(Self { cluster: cluster.clone(), consumer: Some(consumer), shared, commands: Some(commands), waker, thread: Some(thread) })
    }

    /// The topics there are with their numbers of partitions: those of `exact` that exist, and all others when `open` is set.
    pub(crate) async fn topics(&self, exact: Vec<String>, open: bool, patience: Patience) -> Result<BTreeMap<String, i32>> {
        self.ask("listing topics", patience, move |consumer| {
            let mut topics = BTreeMap::new();
            if open || exact.len() > ONE_BY_ONE {
                topics = described(consumer, None)?;
            }
            for topic in &exact {
                if !topics.contains_key(topic) {
                    topics.extend(described(consumer, Some(topic))?);
                }
            }
            topics.retain(|topic, _| open || exact.contains(topic));
            Ok(topics)
        })
        .await
    }

    /// What partitions hold: their first offset, and the offset after the last committed record. Partitions of a topic for which
    /// nobody answers are left out, unless that are all.
    pub(crate) async fn bounds(&self, places: Vec<Place>, patience: Patience) -> Result<BTreeMap<Place, PartitionBounds>> {
        if places.is_empty() {
            return Ok(BTreeMap::new());
        }
        let all = places.clone();
        let doing = "asking where partitions begin and end";
        let error = match self.ask(doing, patience, move |consumer| bounds_of(consumer, &all)).await {
            Err(error @ Error::KafkaAway { .. }) => error,
            answered => return answered,
        };
        let mut topics: BTreeMap<Arc<str>, Vec<Place>> = BTreeMap::new();
        places.into_iter().for_each(|place| topics.entry(Arc::clone(&place.topic)).or_default().push(place));
        let mut bounds = BTreeMap::new();
        for places in topics.into_values() {
            let once = Patience::new(Duration::ZERO);
            bounds.extend(self.ask(doing, once, move |consumer| bounds_of(consumer, &places)).await.unwrap_or_default());
        }
        if bounds.is_empty() { Err(error) } else { Ok(bounds) }
    }

    /// Joins the group for these topics, or changes what it is joined for.
    pub(crate) fn subscribe(&self, topics: &[&str]) -> Result<()> {
        let Some(consumer) = &self.consumer else { return Ok(()) };
        let subscribed =
            consumer.subscription().map(|list| list.elements().iter().map(|element| element.topic().to_owned()).collect::<Vec<_>>());
        if subscribed.is_ok_and(|mut subscribed| {
            subscribed.sort_unstable();
            subscribed.iter().map(String::as_str).eq(topics.iter().copied())
        }) {
            return Ok(());
        }
        consumer.subscribe(topics).map_err(|error| self.away("joining the group", Duration::ZERO, &error.to_string()))
    }

    /// The partitions of this process. Waits for the group's first answer; none when it does not come.
    pub(crate) async fn owned(&self, patience: Duration) -> Option<BTreeSet<Place>> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let changed = self.shared.changed.notified();
            if let Some(owned) = self.shared.owned() {
                return Some(owned);
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(deadline) => return None,
            }
        }
    }

    /// Writes the positions down as the group's offsets, for people who watch its lag.
    pub(crate) fn hint(&self, positions: impl Iterator<Item = (Place, i64)>) {
        let Some(consumer) = &self.consumer else { return };
        let mut list = TopicPartitionList::new();
        let added = positions
            .map(|(place, next)| list.add_partition_offset(&place.topic, place.partition, Offset::Offset(next)))
            .collect::<KafkaResult<Vec<()>>>();
        if let Err(error) = added.and_then(|_| consumer.commit(&list, CommitMode::Async)) {
            events::kafka_hint_not_written(&error.to_string());
        }
    }

    /// Whether its poller goes on.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Begins partitions at these offsets, so that they are fetched before they are read, whether they were begun before or not.
    pub(crate) fn begin(&self, places: Vec<(Place, i64)>) {
        if !places.is_empty() {
            self.send(Command::Begin(places));
        }
    }

    /// Ends partitions.
    pub(crate) fn end(&self, places: Vec<Place>) {
        self.send(Command::End(places));
    }

    /// Reads partitions that were begun to their ends, in place of what was read before.
    pub(crate) fn read(&self, targets: Vec<Target>) -> Pieces<'_> {
        let (to, pieces) = mpsc::channel(WAITING);
        self.send(Command::Read { targets, to });
        Pieces { client: self, pieces }
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // It fails only when the thread has ended, which is seen by nothing coming any more.
            let _ = commands.send(command);
        }
        wake(&self.waker);
    }

    async fn ask<T: Send + 'static>(
        &self,
        doing: &str,
        patience: Patience,
        question: impl Fn(&BaseConsumer<Context>) -> Asked<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let question = Arc::new(question);
        loop {
            let Some(consumer) = self.consumer.clone() else { return Err(Error::Cancelled) };
            let asked = Arc::clone(&question);
            let answer = tokio::task::spawn_blocking(move || asked(&consumer)).await;
            let reason = match answer {
                Ok(Ok(answer)) => {
                    self.shared.worked();
                    return Ok(answer);
                }
                Ok(Err(Trouble { reason, refused: true, .. })) => return Err(self.refused(doing, &reason)),
                Ok(Err(Trouble { reason, .. })) => reason,
                Err(join) => match join.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => return Err(Error::Cancelled),
                },
            };
            let trouble = self.shared.trouble();
            if let Some(Trouble { reason, refused: true, .. }) = &trouble
                && patience.since.elapsed() > REFUSAL
            {
                return Err(self.refused(doing, reason));
            }
            if patience.is_over() {
                let reason = trouble.map_or(reason, |trouble| trouble.reason);
                return Err(self.away(doing, patience.since.elapsed(), &reason));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) fn refused(&self, doing: &str, reason: &str) -> Error {
        let bootstrap = self.cluster.bootstrap.clone();
        Error::KafkaRefused { bootstrap, doing: doing.to_owned(), reason: self.cluster.redact(reason) }
    }

    /// Why nothing comes: the trouble there is, or else this.
    pub(crate) fn silent(&self, doing: &str, waited: Duration, otherwise: &str) -> Error {
        match self.shared.trouble() {
            Some(trouble) if trouble.refused => self.refused(doing, &trouble.reason),
            Some(trouble) => self.away(doing, waited, &trouble.reason),
            None => self.away(doing, waited, otherwise),
        }
    }

    pub(crate) fn away(&self, doing: &str, waited: Duration, reason: &str) -> Error {
        let bootstrap = self.cluster.bootstrap.clone();
        let reason = self.cluster.redact(reason) + self.cluster.hint(reason);
        Error::KafkaAway { bootstrap, doing: doing.to_owned(), seconds: waited.as_secs(), reason }
    }
}

/// What a question to the broker comes to.
type Asked<T> = std::result::Result<T, Trouble>;

/// How long answers are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    since: Instant,
    most: Duration,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self { since: Instant::now(), most }
    }

    fn is_over(self) -> bool {
        self.since.elapsed() >= self.most
    }
}

fn asked<T>(outcome: KafkaResult<T>) -> Asked<T> {
    outcome.map_err(|error| Trouble {
        reason: error.to_string(),
        refused: error.rdkafka_error_code().is_some_and(is_refusal),
        general: true,
    })
}

fn described(consumer: &BaseConsumer<Context>, topic: Option<&str>) -> Asked<BTreeMap<String, i32>> {
    let metadata = asked(consumer.fetch_metadata(topic, REQUEST))?;
    let mut topics = BTreeMap::new();
    for found in metadata.topics() {
        match found.error().map(RDKafkaErrorCode::from) {
            None => {
                topics.insert(found.name().to_owned(), i32::try_from(found.partitions().len()).unwrap_or(i32::MAX));
            }
            Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {}
            // In the list of all it may be nobody's; one that is wanted by name is asked for by name.
            Some(_) if topic.is_none() => {}
            Some(code) => {
                let reason = format!("topic `{}`: {code}", found.name());
                return Err(Trouble { reason, refused: is_refusal(code), general: false });
            }
        }
    }
    Ok(topics)
}

fn bounds_of(consumer: &BaseConsumer<Context>, places: &[Place]) -> Asked<BTreeMap<Place, PartitionBounds>> {
    let earliest = offsets(consumer, places, Offset::Beginning)?;
    let end = offsets(consumer, places, Offset::End)?;
    let bounds = |place: &Place| {
        let (earliest, end) = (*earliest.get(place)?, *end.get(place)?);
        Some((place.clone(), PartitionBounds { partition: place.partition, earliest, end: end.max(earliest) }))
    };
    Ok(places.iter().filter_map(bounds).collect())
}

/// Offsets of many partitions in one request a broker. An end is the one after the last *committed* record.
fn offsets(consumer: &BaseConsumer<Context>, places: &[Place], at: Offset) -> Asked<BTreeMap<Place, i64>> {
    let mut list = TopicPartitionList::with_capacity(places.len());
    for place in places {
        asked(list.add_partition_offset(&place.topic, place.partition, at))?;
    }
    let list = asked(consumer.offsets_for_times(list, REQUEST))?;
    let mut offsets = BTreeMap::new();
    for element in list.elements() {
        asked(element.error())?;
        let place = Place { topic: element.topic().into(), partition: element.partition() };
        let Offset::Offset(offset) = element.offset() else {
            return Err(Trouble { reason: format!("no offset of {place}"), refused: false, general: false });
        };
        offsets.insert(place, offset);
    }
    Ok(offsets)
}

/// Records on their way from the poller. Dropping it tells the poller that what came is committed or given up.
pub(crate) struct Pieces<'a> {
    client: &'a Client,
    pieces: mpsc::Receiver<Piece>,
}

/// What came next.
#[derive(Debug)]
pub(crate) enum Next {
    Piece(Piece),
    /// The group wants a partition back: what was read shall be committed.
    Hurry,
    /// Nothing came for as long as it was waited for.
    Silence,
    /// The poller has ended.
    Gone,
}

impl Pieces<'_> {
    pub(crate) async fn next(&mut self, patience: Duration) -> Next {
        let shared = &self.client.shared;
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let changed = shared.changed.notified();
            if shared.hurried() {
                return Next::Hurry;
            }
            tokio::select! {
                biased;
                piece = self.pieces.recv() => {
                    wake(&self.client.waker);
                    return piece.map_or(Next::Gone, Next::Piece);
                }
                () = changed => {}
                () = tokio::time::sleep_until(deadline) => return Next::Silence,
            }
        }
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        self.client.send(Command::Done);
    }
}
