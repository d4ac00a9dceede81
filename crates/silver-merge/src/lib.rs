//! Change batches become current rows (SCD 1 and the merge policies) or history (SCD 2).
//!
//! ```text
//! source ─▶ query (select) ─▶ rules (judge) ─▶ events ─┐
//! _state.<table> at the version the target names ──────┼─▶ plan ─▶ quarantine, _state, then one commit of the target:
//! visible rows of the same keys ───────────────────────┘          rows, change feed, position, the version of _state
//! ```
//!
//! What must stay true (`plan` holds it for one batch, `run` over time):
//! - **S1** The result does not depend on batch cuts, duplicates or delivery order.
//! - **S2** A current table has one row a key. **S3** The versions of a key neither overlap nor gap except by deletion.
//! - **S4** A delete, of a known key or not, is remembered, so that a late older change does not bring the row back.
//! - **S5** A key change leaves exactly one live row. **S6** What the source did not send keeps its known value, across key changes.
//! - **S7** A change that leaves the visible row as it is rewrites nothing and is in no change feed.
//! - **S8** A null key or null declared sequence stops the dataset before its commit, or goes to quarantine where declared.
//! - **S9** One total order: declared sequence, source position, delete over upsert, what the event wrote.
//! - **S10** Each flow brings each row of its source once; a full refresh replaces all rows in one commit.
//!
//! How a source is read: decoded change events (`_op`, `_position`) and other appended rows by their appends; a table of this
//! layer whose rows change by its change feed, in which the version is the position. Lookups are read as they are.
//!
//! A batch that does not fit into the memory limit goes in slices of its keys, whose files one commit takes.

mod append;
mod assemble;
mod batch;
mod before_images;
mod carry;
mod conform;
mod controls;
mod error;
mod events;
mod flow;
mod fold_current;
mod fold_history;
mod growth;
mod hand_over;
mod identity;
mod intake;
mod judge;
mod keys;
mod known;
mod late;
mod leaves;
mod look;
mod merge;
mod met;
mod options;
mod payload;
mod plan;
#[cfg(test)]
mod plan_laws;
mod quarantine;
mod reach;
mod refresh;
mod report;
mod retaining;
mod run;
mod search;
mod select;
mod shape;
mod source;
mod spill;
mod state;
mod stop;
mod survey;
mod target;
mod widen;
mod writes;

pub use error::{Error, Result};
pub use flow::consumed;
pub use growth::sequence_goes_on;
pub use look::{FlowLook, look};
pub use options::{Build, Options};
pub use run::{run, table_spec};

use tributary_lake::arrow;
