//! Generators for properties: legal histories, then illegal delivery; never random events where a database would not emit them.

mod rows;

pub use rows::{rows, schemas, values};
