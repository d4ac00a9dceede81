//! What tests need: frame equality, strategies, an oracle, a faulty store and kill points.
//!
//! Dev-dependency only. Nothing here knows the engines; the oracle states the promised result in the simplest way there is,
//! so that agreeing with it means something. Unlike the libraries it tests, this crate panics: a failed assertion is its
//! answer.

mod controls;
mod store;

pub use controls::{Control, Controls};
pub use store::{Call, Counts, FaultyStore, Mode, Rule, ScriptedFault, Verb};
