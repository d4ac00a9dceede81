//! Maintenance of tables in an object store in memory: what it changes, what it must not, kills and rivals.

mod cluster;
mod crash;
mod optimize;
mod races;
mod world;
