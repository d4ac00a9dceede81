//! What bronze says while it runs.

use tracing::{debug, info, warn};
use tributary_specs::TableName;

use crate::Error;
use crate::tally::Counts;

pub(crate) fn listed(path: &str, files: usize, due: usize) {
    debug!(path, files, due, "listed");
}

pub(crate) fn committed(table: &TableName, version: u64, counts: &Counts) {
    info!(%table, version, rows_in = counts.rows_in, rows_out = counts.rows_out, quarantined = counts.quarantined, "committed");
}

pub(crate) fn quarantined(table: &TableName, version: u64, rows: u64) {
    info!(%table, version, rows, "quarantined");
}

pub(crate) fn requeued(table: &TableName, version: u64, rows: u64) {
    info!(%table, version, rows, "records from quarantine became rows");
}

pub(crate) fn lost_race(table: &TableName, attempts: u32, why: &str) {
    info!(%table, attempts, why, "lost a race, planning again");
}

pub(crate) fn file_left(file: &str, why: &str) {
    warn!(file, why, "file left for a later run");
}

pub(crate) fn stopped(table: &TableName, error: &Error) {
    warn!(%table, error = error as &dyn std::error::Error, "feed stopped");
}

pub(crate) fn not_abandoned(error: &tributary_lake::Error) {
    debug!(error = error as &dyn std::error::Error, "an unfinished file was not given up");
}

/// A line of librdkafka's log; levels are syslog's. What it calls an error it tries again: whether a run fails is said elsewhere.
#[cfg(feature = "kafka")]
pub(crate) fn kafka_log(level: i32, facility: &str, text: &str) {
    match level {
        ..=4 => info!(facility, "librdkafka: {text}"),
        _ => debug!(facility, "librdkafka: {text}"),
    }
}

#[cfg(feature = "kafka")]
pub(crate) fn kafka_hint_not_written(why: &str) {
    debug!(why, "the group's offsets were not written");
}

#[cfg(feature = "kafka")]
pub(crate) fn kafka_partitions(what: &str, partitions: usize) {
    info!(partitions, "partitions {what}");
}

#[cfg(feature = "kafka")]
pub(crate) fn kafka_away(error: &Error) {
    warn!(error = error as &dyn std::error::Error, "no answer from Kafka, going on trying");
}

#[cfg(feature = "kafka")]
pub(crate) fn registry_away(why: &str) {
    warn!(why, "no answer from the schema registry, going on trying");
}

#[cfg(feature = "kafka")]
pub(crate) fn schema_refused(error: &tributary_cdc_decode::Error) {
    warn!(error = error as &dyn std::error::Error, "a registered schema cannot be used, its records go to quarantine");
}
