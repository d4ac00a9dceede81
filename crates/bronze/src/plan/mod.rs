//! Decides. Pure.
//!
//! - Feeds with one path, glob and format are one group: each file is read once and its records are routed by topic.
//! - Bytes that belong to no feed (a broken line, a topic nobody asked for) are the first feed's of the group, so that they
//!   are counted once whoever else reads the file.
//! - A file's content is taken once a feed. Under a path known before, only what follows a content taken before is new.
//! - A partition is read on from the table's position; what the source no longer has of it is a gap, never passed over in silence.

mod files;
mod groups;
mod partitions;
mod topics;

pub(crate) use files::{Decision, Fill, check_header, decide, differs, due};
pub use groups::read_together;
pub(crate) use groups::{FileGroup, Group, check, groups};
pub(crate) use partitions::{Range, Start, start};
#[cfg(feature = "kafka")]
pub(crate) use partitions::{asked, is_asked, worth_a_commit};
pub(crate) use topics::Topics;
#[cfg(feature = "kafka")]
pub(crate) use topics::wildcard;
