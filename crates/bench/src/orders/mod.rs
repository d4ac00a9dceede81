//! A table of orders and changes to them, for the benchmarks that need one of any size.

mod data;
mod lake;
mod prepared;

pub use data::{Batch, CUSTOMERS, Kinds, Random, SEED, Spread, key, orders};
pub use lake::{BRONZE, Policy, append, declared, merge, open};
pub use prepared::{Order, Part, Prepared, SILVER, Shape, allow_vectors};
