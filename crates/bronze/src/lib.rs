//! Sources to append-only change tables and quarantine.
//!
//! ```text
//! files, topics, record sources ─▶ slices ─▶ routed to feeds by topic ─▶ decoded ─┬▶ rows ──▶ bronze.<table>     (rows + positions, one commit)
//!                                                                         └▶ rejects ▶ quarantine.<feed> (commits first)
//! ```
//!
//! What must stay true:
//! - **B1** Each source record lands once in bronze or once in quarantine, across any kill, restart or overlap.
//! - **B2** The positions in a table are those of the records in it: they ride in the same commit.
//! - **B3** Counts add up: records in = rows + quarantined + ignored.
//! - **B4** A position that the source no longer has stops the feed with the missing range, unless told otherwise.
//! - **B5** A run with nothing new writes nothing.
//! - **B6** A full refresh replaces the rows and the positions of a table in one commit, and loses nothing unless told to.
//!
//! A file is known by the SHA-256 of its (gunzipped) content. A file that grew since it was taken is read on from where it
//! ended; a file that changes while it is read is left whole for the next run. `plan` decides, `run` acts.

mod anew;
mod batch;
mod cells;
mod consumers;
mod declaration;
mod declared;
mod error;
mod events;
mod file_columns;
mod files;
mod headers;
#[cfg(feature = "kafka")]
mod kafka;
mod kafka_check;
mod lane;
mod ledger;
mod look;
mod options;
mod plan;
mod positions;
mod propose;
mod quarantine;
mod reading;
mod registry;
mod requeue;
mod resume;
mod run;
mod run_custom;
mod run_files;
#[cfg(feature = "kafka")]
mod run_kafka;
mod source;
mod tally;
mod unshown;
mod widen;
mod writing;

pub use consumers::Consumers;
pub use declared::table_spec;
pub use error::{Error, SourceError};
pub use files::DataRoot;
pub use kafka_check::{KafkaFinding, kafka_check};
pub use look::{DueFile, FeedLook, look};
pub use options::{Extent, KafkaMode, KafkaOptions, OnGap, Options, ProgressSink, Seen};
pub use plan::read_together;
pub use propose::propose_from_file;
#[cfg(feature = "kafka")]
pub use propose::propose_from_topic;
pub use registry::Registries;
#[cfg(feature = "kafka")]
pub use registry::{Registry, teach};
pub use requeue::{Requeued, requeue};
pub use run::run;
pub use source::{PartitionBounds, RecordSource, SourceRecord};

/// What fallible functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
