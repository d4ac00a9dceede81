//! The decoder against recorded events, types, bad input and delivery.

mod avro;
mod bad_input;
mod canon;
mod capture;
mod captures;
mod delivery;
mod feeds;
mod fuzz;
mod golden;
mod handed;
mod message;
mod notes;
mod oracle;
mod partitions;
mod plain;
mod propose;
mod quick;
mod replay;
mod schema_policy;
mod semantics;
mod sqlserver;
mod types;
mod zone;
