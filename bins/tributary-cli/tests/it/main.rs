//! The umbrella binary and the demo against real captures.

mod bundle;
mod captures;
mod commands;
mod datasets;
mod doctor;
mod explain;
mod flows;
mod functions;
mod gym;
mod gym_kafka;
mod infer;
mod init;
mod inputs;
mod job;
mod lakeflow;
mod maintain;
mod memory;
mod names;
mod plan;
mod queries;
mod scrape;
mod statements;
mod stream;
