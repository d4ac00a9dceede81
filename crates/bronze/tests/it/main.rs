//! Bronze over the in-memory object store, from files and record sources to tables.

mod anew;
mod cases;
mod crash;
mod custom;
mod damage;
mod errors;
mod files;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_anew;
#[cfg(feature = "kafka")]
mod kafka_continuous;
#[cfg(feature = "kafka")]
mod kafka_crash;
#[cfg(feature = "kafka")]
mod kafka_gaps;
#[cfg(feature = "kafka")]
mod kafka_many;
#[cfg(feature = "kafka")]
mod kafka_ranges;
mod overlap;
mod quarantine;
mod recordings;
#[cfg(feature = "kafka")]
mod registry;
mod requeue;
mod schema;
#[cfg(not(feature = "kafka"))]
mod without_kafka;
mod world;
