//! Avro records framed by a schema registry's id: a zero byte, the id in four bytes, the datum.
//!
//! Reading a registry is the caller's work: it asks [`Decoder::missing_schemas`], looks them up and hands them in by
//! [`Decoder::learn_schema`] or [`Decoder::learn_absent`]. Every datum is looked through first, Arrow's own decoder then
//! makes columns of a thousand at a time, and each record's row is taken from them by the layout that a JSON message with the same
//! schema would have had. So both forms of an event give the same row.
//!
//! ```text
//!   value ── frame ── id ──► schema ──► Connect's schema ──► layout (columns, wires)
//!                  └ datum ─► checked ─► arrow-avro ─► arrays ──────────┴──► row
//! ```

mod image;
mod key;
mod known;
mod rows;
mod schema;
mod value;
mod walk;
mod window;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub(crate) use known::Rows;
use tributary_specs::Decode;

use crate::avro::known::Schemas;
use crate::avro::window::Window;
use crate::decoded::ReasonCode;
use crate::decoder::Decoder;
use crate::error::Error;
use crate::record::Record;

/// A schema's number in its registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub u32);

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes of a frame.
const FRAME: usize = 5;

/// Whether bytes begin as a frame does; no JSON does.
pub(crate) fn framed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0)
}

/// The id in a frame; `None` = no frame, or one cut short.
fn framed_id(bytes: &[u8]) -> Option<SchemaId> {
    match bytes {
        [0, id @ ..] => Some(SchemaId(u32::from_be_bytes(*id.first_chunk()?))),
        _ => None,
    }
}

/// Why a record is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub reason: ReasonCode,
    pub message: String,
}

impl Refused {
    fn new(reason: ReasonCode, message: String) -> Self {
        Self { reason, message }
    }
}

/// What a decoder keeps for Avro.
#[derive(Debug, Default)]
pub(crate) struct Avro {
    schemas: Schemas,
    window: Window,
    /// The layout used last.
    latest: Option<Arc<Rows>>,
}

impl Avro {
    /// The next slice begins.
    pub(crate) fn begin(&mut self) {
        self.window.clear();
    }

    /// How a column's values are written in the rows met last.
    pub(crate) fn wire(&self, column: &str) -> Option<&crate::wire::Wire> {
        let rows = self.latest.as_ref()?;
        rows.layout.fields.iter().find(|field| field.name == column).map(|field| &field.wire)
    }
}

impl Decoder {
    /// The schemas that these records name, in keys, values and headers of key changes, and that have not been learned, each once, in
    /// ascending order. Ask before [`Decoder::decode`]; a record of a schema that was not learned by then is rejected.
    pub fn missing_schemas(&self, records: &[Record<'_>]) -> Vec<SchemaId> {
        if !matches!(self.form(), Decode::Debezium | Decode::DebeziumFlattened | Decode::Avro) {
            return Vec::new();
        }
        let mut missing = BTreeSet::new();
        let mut last = None;
        for record in records {
            let headers = record.headers.iter().filter(|header| crate::change::is_key_change(header.key));
            let parts = [record.key, record.value].into_iter().chain(headers.map(|header| header.value));
            for id in parts.flatten().filter_map(framed_id) {
                if last != Some(id) && !self.avro.schemas.has(id) {
                    missing.insert(id);
                }
                last = Some(id);
            }
        }
        missing.into_iter().collect()
    }

    /// Takes in a schema as its registry tells it. `references` are the texts it builds on, however indirectly, each after
    /// those it builds on itself.
    ///
    /// # Errors
    /// [`Error::Schema`] when it cannot be used. That is remembered: its records are rejected as `unsupported_schema`, so
    /// the caller may note it and go on.
    pub fn learn_schema(&mut self, id: SchemaId, text: &str, references: &[String]) -> Result<(), Error> {
        let learned = self.avro.schemas.learn(id, text, references);
        learned.map_err(|problem| Error::Schema { feed: self.feed.clone(), id: id.0, problem })
    }

    /// Takes in that the registry has no schema of this id: its records are rejected as `unknown_schema`.
    pub fn learn_absent(&mut self, id: SchemaId) {
        let message = format!("the schema registry has no schema {id}");
        self.avro.schemas.refuse(id, Refused::new(ReasonCode::UnknownSchema, message));
    }

    /// Takes in that the schema of this id is none of Avro but, for example, `JSON` or `PROTOBUF`: its records are rejected as
    /// `unsupported_schema`.
    pub fn learn_foreign(&mut self, id: SchemaId, kind: &str) {
        let message = format!("schema {id} is of type {kind}; only avro is read");
        self.avro.schemas.refuse(id, Refused::new(ReasonCode::UnsupportedSchema, message));
    }
}
