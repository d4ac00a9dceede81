//! The facade against the real layers, in memory and on local files.

mod api;
mod crash;
mod documents;
mod lake;
mod shop;
mod workspace;
