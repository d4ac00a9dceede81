//! Schemas of Avro records, looked up in a Confluent-compatible registry before a slice is decoded.
//!
//! ```text
//! records ─▶ which ids are missing? ─▶ registry (asked once an id for the life of the process) ─▶ decoder ─▶ rows
//! ```
//!
//! - A registry that does not answer is a passing trouble: nothing of the slice is committed and a retry begins with it again.
//! - An id that the registry does not have, and a schema that is not Avro, are facts about records: those go to quarantine.

#[cfg(feature = "kafka")]
mod client;
mod kept;
mod lookup;
#[cfg(feature = "kafka")]
mod teach;

#[cfg(feature = "kafka")]
pub use client::Registry;
pub use kept::Registries;
pub(crate) use lookup::Lookup;
#[cfg(feature = "kafka")]
pub use teach::teach;
