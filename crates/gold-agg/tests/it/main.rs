//! Views over a lake in memory.

mod changes;
mod crash;
mod deltas;
mod errors;
mod field;
mod follow;
mod follow_law;
mod law;
mod names;
mod queries;
mod races;
mod refresh;
mod rules;
mod stream_cases;
mod stream_law;
mod stream_questions;
mod stream_reads;
mod world;
