//! The lake against an object store in memory, with the Delta library as second reader.

mod change_feed;
mod conflicts;
mod crash;
mod deletion_vectors;
mod drafts;
mod foreign;
mod kept;
mod key_search;
mod keyed_scan;
mod marks;
mod partitions;
mod races;
mod round_trip;
mod shop;
mod statistics;
mod strict_store;
mod tables;
mod time_travel;
mod toy;
mod writing;
