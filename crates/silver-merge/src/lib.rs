//! Change batches become current rows (SCD 1 and the merge policies) or history (SCD 2).

mod append;
mod assemble;
mod carry;
mod conform;
mod controls;
mod error;
mod events;
mod fold_current;
mod fold_history;
mod hand_over;
mod intake;
mod judge;
mod keys;
mod known;
mod leaves;
mod merge;
mod options;
mod payload;
mod plan;
#[cfg(test)]
mod plan_laws;
mod quarantine;
mod run;
mod search;
mod select;
mod shape;
mod source;
mod sql;
mod state;
mod target;
mod writes;

pub use error::{Error, Result};
pub use options::{Build, Options};
pub use run::{run, table_spec};

use tributary_lake::arrow;
