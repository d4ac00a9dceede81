//! Kafka: one consumer for the feeds of a cluster, and the thread that always polls it.
//!
//! ```text
//! librdkafka (fetches, a queue a partition) ─▶ poller thread ─▶ chunks (one arena each) ─▶ bounded channel ─▶ decoded and written
//!      ▲ a full queue stops its fetches           ▲ always polls: heartbeats, rebalances, errors       │
//!      └──────────── commands: begin a partition at the table's position, read these, give up those ◀──┘
//! ```
//!
//! - Back-pressure goes by queues: what is not taken from a partition's queue is not fetched beyond the queue's limit, and what
//!   was fetched is not thrown away, as pausing would.
//! - Offsets of the group are written after our commits for people who watch lag, and never read: the table's position decides.

#[cfg(feature = "kafka")]
mod check;
#[cfg(feature = "kafka")]
mod chunk;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod cluster;
mod consumers;
#[cfg(feature = "kafka")]
mod context;
#[cfg(feature = "kafka")]
mod poller;
#[cfg(feature = "kafka")]
mod topics;

#[cfg(feature = "kafka")]
pub(crate) use check::check;
#[cfg(feature = "kafka")]
pub(crate) use chunk::Chunk;
#[cfg(feature = "kafka")]
pub(crate) use client::{Client, Next, Patience, Pieces};
#[cfg(feature = "kafka")]
pub(crate) use cluster::{Cluster, Limits, WINDOW};
pub use consumers::Consumers;
#[cfg(feature = "kafka")]
pub(crate) use consumers::{Live, Settled};
#[cfg(feature = "kafka")]
pub(crate) use poller::{Piece, Target};
#[cfg(feature = "kafka")]
pub(crate) use topics::{Wanted, route};

/// A partition of a topic.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub topic: std::sync::Arc<str>,
    pub partition: i32,
}
