//! Messages of a connector that are no rows of a table.

use crate::decoded::IgnoreReason;
use crate::json::{Broken, Cursor, Kind};

/// What a message is that has no operation code, by its fields and topic. `None` = a row, or something unknown.
pub(crate) fn by_fields<'n>(topic: &str, names: impl Iterator<Item = &'n [u8]>) -> Option<IgnoreReason> {
    if topic.starts_with("__debezium-heartbeat") {
        return Some(IgnoreReason::Heartbeat);
    }
    let mut seen = 0u32;
    let mut count = 0u32;
    for name in names {
        count += 1;
        seen |= match name {
            b"ts_ms" => TS_MS,
            b"status" => STATUS,
            b"id" => ID,
            b"event_count" => EVENT_COUNT,
            b"data_collections" => DATA_COLLECTIONS,
            b"databaseName" => DATABASE_NAME,
            b"tableChanges" => TABLE_CHANGES,
            b"ddl" => DDL,
            b"type" => TYPE,
            b"aggregate_type" | b"aggregateType" => AGGREGATE_TYPE,
            b"additional_data" | b"additionalData" => ADDITIONAL_DATA,
            b"message" => MESSAGE,
            b"op" => OP,
            _ => 0,
        };
    }
    let has = |all: u32| seen & all == all;
    if has(STATUS | ID | EVENT_COUNT | DATA_COLLECTIONS) {
        Some(IgnoreReason::Transaction)
    } else if has(DATABASE_NAME | DDL) || has(DATABASE_NAME | TABLE_CHANGES) {
        Some(IgnoreReason::SchemaChange)
    } else if has(ID | TYPE | AGGREGATE_TYPE | ADDITIONAL_DATA) {
        Some(IgnoreReason::Notification)
    } else if has(OP | MESSAGE) {
        Some(IgnoreReason::LogicalMessage)
    } else if has(TS_MS) && count == 1 {
        Some(IgnoreReason::Heartbeat)
    } else {
        None
    }
}

const TS_MS: u32 = 1;
const STATUS: u32 = 1 << 1;
const ID: u32 = 1 << 2;
const EVENT_COUNT: u32 = 1 << 3;
const DATA_COLLECTIONS: u32 = 1 << 4;
const DATABASE_NAME: u32 = 1 << 5;
const TABLE_CHANGES: u32 = 1 << 6;
const DDL: u32 = 1 << 7;
const TYPE: u32 = 1 << 8;
const AGGREGATE_TYPE: u32 = 1 << 9;
const ADDITIONAL_DATA: u32 = 1 << 10;
const MESSAGE: u32 = 1 << 11;
const OP: u32 = 1 << 12;

/// As [`by_fields`], for an object in JSON text.
pub(crate) fn by_object(topic: &str, cursor: &mut Cursor<'_>) -> Result<Option<IgnoreReason>, Broken> {
    let mut names = Vec::new();
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        names.push(key.raw);
        cursor.skip()?;
    }
    Ok(by_fields(topic, names.into_iter()))
}

/// Types of signals.
const SIGNALS: [&[u8]; 10] = [
    b"execute-snapshot",
    b"stop-snapshot",
    b"pause-snapshot",
    b"resume-snapshot",
    b"snapshot-window-open",
    b"snapshot-window-close",
    b"log",
    b"schema-changes",
    b"set-offsets",
    b"shutdown",
];

/// Whether a signal has this type.
pub(crate) fn is_signal_type(kind: &[u8]) -> bool {
    SIGNALS.contains(&kind)
}

/// Whether a row of `id`, `type` and `data` is a signal to the connector.
pub(crate) fn is_signal(cursor: &mut Cursor<'_>) -> Result<bool, Broken> {
    let (mut signal, mut other) = (false, false);
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        match (key.raw, cursor.kind()?) {
            (b"type", Kind::Text) => signal = is_signal_type(cursor.text()?.raw),
            (b"id" | b"data", _) => cursor.skip()?,
            _ => {
                other = true;
                cursor.skip()?;
            }
        }
    }
    Ok(signal && !other)
}
