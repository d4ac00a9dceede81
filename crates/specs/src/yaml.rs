//! The YAML form of a pipeline: nodes with their places, reading against the JSON schema, writing.

mod files;
mod node;
mod read;
mod scalar;
mod write;

#[cfg(test)]
mod round_trip;

pub use files::Places;
pub(crate) use files::{fill_sources, read_files};
pub use scalar::PlainScalar;
pub(crate) use write::write;
