//! Change-event bytes to typed Arrow batches. Pure: no I/O, no clock, never panics.

mod avro;
mod batch;
mod change;
mod column;
mod connect;
mod csv;
mod decoded;
mod decoder;
mod envelope;
mod error;
mod ignored;
mod infer;
mod json;
mod layout;
mod number;
mod order;
mod placeholder;
mod position;
mod raw;
mod read;
mod record;
mod repeats;
mod row;
mod scalar;
mod source;
mod system;
mod table;
mod template;
mod time;
mod wire;
mod wrapped;

pub use avro::SchemaId;
pub use decoded::{Decoded, IgnoreReason, LastRow, ReasonCode, Reject, Resume, SchemaChange};
pub use decoder::Decoder;
pub use error::Error;
pub use record::{Header, Record};
