//! The YAML form of a pipeline: nodes with their places, reading against the JSON schema, writing.

mod files;
mod node;
mod read;
mod write;

pub(crate) use files::read_files;
pub(crate) use write::write;
