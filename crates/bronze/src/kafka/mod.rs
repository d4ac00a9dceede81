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

mod check;
mod chunk;
mod client;
mod cluster;
mod context;
mod place;
mod poller;
mod topics;

pub(crate) use check::check;
pub(crate) use chunk::Chunk;
pub(crate) use client::{Client, Next, Patience, Pieces};
pub(crate) use cluster::{Cluster, Limits, WINDOW};
pub(crate) use place::{Place, places_of};
pub(crate) use poller::{Piece, Target};
pub(crate) use topics::{Wanted, check_asked, route};
