//! Spark's dialect of SQL, as the parser takes it, and its strings and names, which the parser does not know.

mod forms;
mod interval;
mod parsing;
mod spark;
mod strings;

pub use parsing::{name_parts, readable};
pub use spark::Spark;
pub use strings::{closing_quote, comment_end, escape};
