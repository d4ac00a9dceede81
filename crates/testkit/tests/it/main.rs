//! The kit tests itself.

mod decoding;
mod frames;
mod messages;
mod oracle_cases;
mod recordings;
mod stores;
mod strategies;
