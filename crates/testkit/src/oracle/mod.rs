//! The promised result, in the simplest way there is: a pure function of the set of all events ever delivered.
//!
//! Nothing here knows batches, files, state tables or any engine's code. An engine that agrees for every delivery of every
//! history keeps its promise.
//!
//! The rules, for one key:
//! - **Order.** Declared sequence, then source position, then delete over upsert, then what the event wrote, column by column:
//!   not written below null below values. Equal events are one event.
//! - **Fold.** In that order an upsert writes its leaves and leaves the others as they are; a delete leaves no row and no leaf.
//!   A leaf is a column or, where nulls mean "not written", a field of a struct. What the source did not send is not written;
//!   in the create half of a key change it is what the old key had just before that position.
//! - **Cuts.** A delete without a declared sequence, in a feed that declares one, is not in the order: it parts the key's events
//!   by position. What it cuts off never follows, in history or in the row, what it does not. In history it stands as a delete
//!   at the greatest sequence it cuts off.
//! - **Truncates** are deletes, or cuts, of every key.
//! - **Current row**: the fold's last state. **History**: the fold as a function of the sequence (at one sequence the last state
//!   counts), equal neighbours in the tracked columns joined.

mod event;
mod fold;
mod model;

pub use event::{Event, Kind};
pub use model::{IgnoreNulls, Model, Refusal, Row};
