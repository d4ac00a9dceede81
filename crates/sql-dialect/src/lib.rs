//! Spark's dialect of SQL, as the parser takes it.

mod spark;

pub use spark::Spark;
