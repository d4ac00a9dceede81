//! What tests need: frame equality, strategies, an oracle, a faulty store and kill points.
//!
//! Dev-dependency only. Nothing here knows the engines; the oracle states the promised result in the simplest way there is,
//! so that agreeing with it means something. Unlike the libraries it tests, this crate panics: a failed assertion is its
//! answer.

pub mod avro;
pub mod captures;
pub mod cases;
pub mod golden;
pub mod oracle;
pub mod strategy;

mod change_feed;
mod controls;
mod crash;
mod frame;
mod law;
mod store;
mod value;

pub use change_feed::replay;
pub use controls::{Control, Controls};
pub use crash::{CrashReport, KillPoints, crash, crash_at, random_kill_point};
pub use frame::{ChangedRow, Difference, Frame, FrameDiff, SchemaDifference};
pub use law::{Law, Tried, example};
pub use store::{Call, Counts, FaultyStore, Mode, Rule, ScriptedFault, Verb};
pub use value::Value;
