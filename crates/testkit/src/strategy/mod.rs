//! Generators for properties: legal histories, then illegal delivery; never random events where a database would not emit them.
//!
//! Known gaps: one table a history (no transaction over several tables), one connector (PostgreSQL), no schema change inside a
//! history, no change of server identity.

mod damage;
mod delivery;
mod envelope;
mod feed;
mod history;
mod rows;
mod source;

pub use damage::{crash_points, damage};
pub use delivery::{DeliveryPlan, Turn, delivery, shuffle};
pub use envelope::{EnvelopeForm, KafkaRecord, UNAVAILABLE, envelope_forms, envelopes};
pub use feed::{Change, ChangeKind, Snapshot, bronze_columns, bronze_frame};
pub use history::{History, SourceRow, source_history};
pub use rows::{rows, schemas, values};
pub use source::{ColumnKind, SourceColumnSpec, SourceTable};
