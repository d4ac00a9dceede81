//! What records need is asked for and told to their decoder.

use tributary_cdc_decode::{Decoder, Record};

use super::Registry;
use super::client::Answer;
use crate::{Result, events};

/// Teaches a decoder the schemas that these records name and that it does not know.
///
/// # Errors
/// [`crate::Error::RegistryAway`] when the registry does not answer, [`crate::Error::RegistryRefused`] when it does not let us in or is
/// none. What is wrong with a schema is no error: its records are quarantined by the decoder.
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
