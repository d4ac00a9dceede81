//! Views over a lake in memory.

mod crash;
mod errors;
mod field;
mod law;
mod names;
mod races;
mod refresh;
mod rules;
mod world;
