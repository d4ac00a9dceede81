//! What the client's library tells us: log lines, errors, rebalances. It is called on whatever thread polls.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaRespErr;
use tokio::sync::Notify;

use crate::events;
use crate::kafka::{Cluster, Place};

/// What the poller, the client and whoever reads know in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The last trouble, until something worked.
    trouble: Mutex<Option<Trouble>>,
    /// Partitions that the group has given to this process.
    owned: Mutex<Ownership>,
    /// Rebalances that wait for the poller.
    rebalances: Mutex<Vec<Rebalance>>,
    /// The consumer is being closed: nobody will answer rebalances.
    closing: AtomicBool,
    /// A partition that is being read shall be given up: whoever reads shall commit now.
    hurry: AtomicBool,
    /// Told when one of these has changed.
    pub changed: Notify,
}

/// What is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub reason: String,
    /// A person must change something; waiting does not help.
    pub refused: bool,
    /// It only says that no broker is there, not why.
    pub general: bool,
}

#[derive(Debug, Default)]
struct Ownership {
    places: BTreeSet<Place>,
    /// Whether the group has ever answered.
    answered: bool,
}

/// What the group asks of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rebalance {
    Take(Vec<Place>),
    Give(Vec<Place>),
}

impl Shared {
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        locked(&self.trouble).clone()
    }

    pub(crate) fn note_trouble(&self, trouble: Trouble) {
        let mut known = locked(&self.trouble);
        // A refusal says more than the lost connections that follow from it, and one connection more than all together.
        let tells_more = |known: &Trouble| trouble.refused || !known.refused && !trouble.general;
        if known.as_ref().is_none_or(tells_more) {
            *known = Some(trouble);
        }
        drop(known);
        self.changed.notify_waiters();
    }

    pub(crate) fn worked(&self) {
        *locked(&self.trouble) = None;
    }

    /// The partitions of this process; none while the group has not answered.
    pub(crate) fn owned(&self) -> Option<BTreeSet<Place>> {
        let owned = locked(&self.owned);
        owned.answered.then(|| owned.places.clone())
    }

    pub(super) fn own(&self, places: &[Place]) {
        let mut owned = locked(&self.owned);
        owned.answered = true;
        owned.places.extend(places.iter().cloned());
        drop(owned);
        self.changed.notify_waiters();
    }

    pub(super) fn disown(&self, places: &[Place]) {
        let mut owned = locked(&self.owned);
        places.iter().for_each(|place| {
            owned.places.remove(place);
        });
        drop(owned);
        self.changed.notify_waiters();
    }

    pub(super) fn rebalances(&self) -> Vec<Rebalance> {
        std::mem::take(&mut *locked(&self.rebalances))
    }

    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    pub(crate) fn hurried(&self) -> bool {
        self.hurry.load(Ordering::SeqCst)
    }

    pub(super) fn hurry(&self, hurry: bool) {
        self.hurry.store(hurry, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

/// A panic elsewhere does not make what is behind the lock wrong: every change is one assignment.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives the library's calls for one consumer.
pub(crate) struct Context {
    pub shared: Arc<Shared>,
    pub cluster: Cluster,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        events::kafka_log(level as i32, facility, &self.cluster.redact(text));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        if let Some(refused) = trouble(code) {
            self.shared.note_trouble(Trouble {
                reason: self.cluster.redact(reason),
                refused,
                general: code == RDKafkaErrorCode::AllBrokersDown,
            });
        }
    }
}

impl ConsumerContext for Context {
    /// Leaves the answer to the poller, which can begin partitions with queues of their own.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let take = code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if self.shared.closing.load(Ordering::SeqCst) {
            answer_while_closing(consumer, take, list);
            return;
        }
        let places = places(list);
        locked(&self.shared.rebalances).push(if take { Rebalance::Take(places) } else { Rebalance::Give(places) });
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        if let Err(error) = result {
            events::kafka_hint_not_written(&self.cluster.redact(&error.to_string()));
        }
    }
}

fn answer_while_closing(consumer: &BaseConsumer<Context>, take: bool, list: &TopicPartitionList) {
    let answered = match (consumer.rebalance_protocol(), take) {
        (RebalanceProtocol::Cooperative, true) => consumer.incremental_assign(list),
        (RebalanceProtocol::Cooperative, false) => consumer.incremental_unassign(list),
        (_, true) => consumer.assign(list),
        (_, false) => consumer.unassign(),
    };
    if let Err(error) = answered {
        events::kafka_log(7, "CLOSE", &error.to_string());
    }
}

pub(super) fn places(list: &TopicPartitionList) -> Vec<Place> {
    list.elements().iter().map(|element| Place { topic: element.topic().into(), partition: element.partition() }).collect()
}

/// Whether an error of the client is trouble, and whether a person must do something about it.
fn trouble(code: RDKafkaErrorCode) -> Option<bool> {
    match code {
        RDKafkaErrorCode::Authentication
        | RDKafkaErrorCode::SaslAuthenticationFailed
        | RDKafkaErrorCode::UnsupportedSASLMechanism
        | RDKafkaErrorCode::TopicAuthorizationFailed
        | RDKafkaErrorCode::ClusterAuthorizationFailed
        | RDKafkaErrorCode::GroupAuthorizationFailed
        | RDKafkaErrorCode::SSL => Some(true),
        RDKafkaErrorCode::BrokerTransportFailure
        | RDKafkaErrorCode::AllBrokersDown
        | RDKafkaErrorCode::Resolve
        | RDKafkaErrorCode::OperationTimedOut => Some(false),
        _ => None,
    }
}

/// Whether an error says that this client has no right.
pub(super) fn is_refusal(code: RDKafkaErrorCode) -> bool {
    trouble(code) == Some(true)
}
