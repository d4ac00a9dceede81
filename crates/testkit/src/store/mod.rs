//! An object store that fails where a test says.
//!
//! [`FaultyStore`] wraps any store. *Mutating* calls (a put, each multipart part, its completion and its abort, each deleted
//! path, a copy, a rename) and *reads* (get, ranges, listings) are counted apart, each from 1. On top of the counting a test
//! may place:
//!
//! - [`FaultyStore::kill_at`]: the process dies at the n-th mutating call, before it, after it, or after it with the answer
//!   lost; every later call is refused, so the run ends. Restart by opening [`FaultyStore::inner`] with fresh state.
//! - [`FaultyStore::fail_read_at`], [`FaultyStore::fail_every_read_once`]: transient faults of reads.
//! - [`FaultyStore::fail`]: one scripted fault at the n-th call that matches a rule; the store lives on.
//! - [`FaultyStore::before`]: a closure runs just before the n-th call that matches a rule, to stage a race.
//!
//! ```text
//!  caller ──▶ count ──▶ hooks ──▶ verdict ──▶ inner store ──▶ answer, or the fault that hides it
//! ```

mod call;
mod faulty;
mod script;
mod upload;

pub use call::{Call, Counts, Rule, Verb};
pub use faulty::FaultyStore;
pub use script::{Mode, ScriptedFault};
