//! Change batches become current rows (SCD 1 and the merge policies) or history (SCD 2).

mod error;
mod options;
mod run;

pub use error::{Error, Result};
pub use options::{Build, Options};
pub use run::run;

use tributary_lake::arrow;
