//! `databricks.yml` and what it includes.

mod error;

pub use error::Error;
