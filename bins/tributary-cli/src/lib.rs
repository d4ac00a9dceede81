//! What the binaries share: commands, settings into runs, output, exit codes, the demo.
//!
//! ```text
//! Inputs ──▶ command (clap) ──▶ settings ──▶ opened (lake, pipeline) ──▶ one module a command ──▶ exit code
//! ```
//!
//! A command's module reads what it needs, prints on the standard output, and gives a [`tributary::ExitCode`] or a
//! `failure::Failure`; only `start` turns either into text on the standard error and a number for the shell.

mod bundle;
mod command;
mod completions;
mod ddl;
pub mod demo;
mod diff;
mod doctor;
mod explain;
mod failure;
mod files;
mod graph;
pub mod gym;
mod infer;
mod init;
mod job;
mod logging;
mod maintain;
mod metrics;
mod next;
mod opened;
mod openlineage;
mod output;
mod page;
mod plan;
mod portability;
mod progress;
mod quarantine;
mod queries;
mod run;
mod run_report;
mod sample;
mod schema;
mod setup;
mod show;
mod signals;
mod source_time;
mod sql;
mod start;
mod test;
mod typed;
mod upkeep;
mod validate;

pub use start::{layer, maintenance, umbrella};

/// Of every program that is linked with this crate. Batches come and go in buffers of megabytes, made by one thread and dropped by
/// another: the system's allocator keeps twice of what is in use, which no memory limit can count. How soon memory goes back to the
/// system is said where it is built, in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
