//! The kit tests itself.

mod frames;
mod messages;
mod stores;
