//! Change-event bytes to typed Arrow batches. Pure: no I/O, no clock, never panics.

mod decoded;
mod decoder;
mod error;
mod record;

pub use decoded::{Decoded, IgnoreReason, LastRow, ReasonCode, Reject, Resume, SchemaChange};
pub use decoder::Decoder;
pub use error::Error;
pub use record::{Header, Record};
