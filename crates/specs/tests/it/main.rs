//! What users of the crate see: error texts, files, phases, the JSON schema.

mod errors;
mod files;
mod phases;
mod schema;
