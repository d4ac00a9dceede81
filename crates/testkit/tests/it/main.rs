//! The kit tests itself.

mod frames;
mod messages;
mod oracle_cases;
mod stores;
