//! Bronze over the in-memory object store, from files and record sources to tables.

mod cases;
mod crash;
mod custom;
mod damage;
mod errors;
mod files;
mod overlap;
mod quarantine;
mod recordings;
mod schema;
mod world;
