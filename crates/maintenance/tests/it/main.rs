//! Maintenance of tables in an object store in memory: what it changes, what it must not, kills and rivals.

mod clean_log;
mod cluster;
mod crash;
mod fsck;
mod house;
mod needed_law;
mod optimize;
mod races;
mod restore;
mod vacuum;
mod world;
