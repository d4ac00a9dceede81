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
pub use client::Registry;
pub use kept::Registries;
pub(crate) use lookup::Lookup;

#[cfg(feature = "kafka")]
use tributary_cdc_decode::{Decoder, Record};

#[cfg(feature = "kafka")]
use crate::{Result, events};

/// What a registry has under an id.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A schema's text, and the texts it builds on, each after those it builds on itself.
    Avro { text: String, references: Vec<String> },
    /// A schema of another language.
    Foreign(String),
    /// Nothing.
    Absent,
}

/// Teaches a decoder the schemas that these records name and that it does not know.
///
/// # Errors
/// [`crate::Error::RegistryAway`] when the registry does not answer, [`crate::Error::RegistryRefused`] when it does not let us in or is
/// none. What is wrong with a schema is no error: its records are quarantined by the decoder.
#[cfg(feature = "kafka")]
pub async fn teach(decoder: &mut Decoder, records: &[Record<'_>], registry: &Registry) -> Result<()> {
    for id in decoder.missing_schemas(records) {
        match &*registry.look_up(id).await? {
            Answer::Avro { text, references } => {
                if let Err(error) = decoder.learn_schema(id, text, references) {
                    events::schema_refused(&error);
                }
            }
            Answer::Foreign(kind) => decoder.learn_foreign(id, kind),
            Answer::Absent => decoder.learn_absent(id),
        }
    }
    Ok(())
}
