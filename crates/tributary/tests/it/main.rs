//! The facade against the real layers, in memory and on local files.

mod api;
mod crash;
mod documents;
mod gaps;
mod lake;
mod meanings;
mod ops;
mod order;
mod schema_grid;
mod setup;
mod shop;
mod stream;
mod workspace;
