//! What the parts are made of: databases, connectors and pipeline of a run, the workload, waiting for delivery, comparing.

mod definition;
mod drains;
mod pipeline;
mod retail;
mod settle;
mod workloads;
mod world;

use std::time::Duration;

pub use definition::Definition;
pub use drains::Drains;
pub use retail::Retail;
pub use settle::settle;
pub use workloads::{Finished, Workloads};
pub use world::{Compared, World, wait_until};

/// Transactions a second in each database.
pub const PER_SECOND: u32 = 25;
/// How long continuous processes may take to catch up, and drains to end.
pub const PATIENCE: Duration = Duration::from_secs(120);
