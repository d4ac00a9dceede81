//! Files: which there are, what is in them, and how they are cut into records.
//!
//! ```text
//! listing ─▶ content (gunzip) ─▶ identity (sha256 of the content) ─▶ decided against the ledger
//!                             └▶ cutter (lines, CSV) ─▶ slices of records, bounded in bytes and number
//! ```
//!
//! - A file that changes while it is read is left whole for the next run.
//! - Memory holds a slice and at most one record, whatever the file's size.

mod content;
mod csv;
mod identity;
mod kafka;
mod lines;
mod listing;
mod piece;
mod root;
mod slices;
mod walk;

pub(crate) use content::Content;
pub(crate) use csv::{CsvCutter, Dialect, Field, split};
pub(crate) use identity::{Identified, Identity, identify};
pub(crate) use kafka::KafkaLine;
pub(crate) use listing::{Listed, Listing, Pattern, list};
pub(crate) use piece::{CutFault, Piece};
pub use root::DataRoot;
pub(crate) use slices::{Broken, CutRules, FileRecord, Slice, Slices};
