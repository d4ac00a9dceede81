//! The umbrella binary and the demo against real captures.

mod bundle;
mod captures;
mod commands;
mod doctor;
mod infer;
mod memory;
mod scrape;
mod stream;
