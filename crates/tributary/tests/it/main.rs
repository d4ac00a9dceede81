//! The facade against the real layers, in memory and on local files.

mod api;
mod article;
mod changed_rows;
mod crash;
mod documents;
mod functions;
mod gaps;
mod graph;
mod lake;
mod lineage;
mod meanings;
mod merge_law;
mod mistakes;
mod ops;
mod order;
mod plan;
mod protection;
mod schema_grid;
mod setup;
mod shop;
mod stars;
mod statements;
mod stream;
mod streaming_tables;
mod upkeep;
mod workspace;
