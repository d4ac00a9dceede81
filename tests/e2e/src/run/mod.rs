//! What both programs do: prepare databases and connectors, run the workload, wait for delivery, compare.

mod settle;
mod workloads;
mod world;

pub use settle::settle;
pub use workloads::{Finished, Workloads};
pub use world::World;
