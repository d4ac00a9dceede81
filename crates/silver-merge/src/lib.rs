//! Change batches become current rows (SCD 1 and the merge policies) or history (SCD 2).

mod assemble;
mod error;
mod events;
mod fold_current;
mod fold_history;
mod hand_over;
mod known;
mod leaves;
mod options;
mod payload;
mod plan;
#[cfg(test)]
mod plan_laws;
mod run;
mod shape;

pub use error::{Error, Result};
pub use options::{Build, Options};
pub use run::run;

use tributary_lake::arrow;
