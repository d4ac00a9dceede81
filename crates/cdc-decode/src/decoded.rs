//! What a decoder hands back.

use std::collections::BTreeMap;
use std::fmt;

use arrow_array::RecordBatch;
use tributary_specs::Column;

use crate::error::Error;

/// The result of one call of [`crate::Decoder::decode`].
///
/// `records.len() = batch.num_rows() + rejects.len() + Σ ignored` holds whenever `stop` is `None`.
#[derive(Debug)]
pub struct Decoded {
    /// Rows in the order of the records, every column of the bronze table ([`crate::Decoder::columns`]).
    pub batch: RecordBatch,
    /// Records that go to quarantine.
    pub rejects: Vec<Reject>,
    /// Records that are no rows, by what they are.
    pub ignored: BTreeMap<IgnoreReason, u64>,
    /// Columns the table does not have yet or has in a narrower type; to be applied in the commit of `batch`.
    pub schema_change: Option<SchemaChange>,
    /// What a person should know, with how often it was met.
    pub notes: BTreeMap<String, u64>,
    /// JSON keys that came twice in one object; the last was taken.
    pub duplicate_keys: u64,
    /// Why the feed must stop. When set, nothing of this call may be committed and the decoder is used up.
    pub stop: Option<Error>,
}

/// A record that could not become a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Index into the records given.
    pub index: usize,
    /// What is wrong, for grouping.
    pub reason: ReasonCode,
    /// What is wrong, for a person: column, types, byte position; never values.
    pub message: String,
}

/// Why a record is in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonCode {
    /// Not UTF-8.
    NotUtf8,
    /// Not JSON, or cut short.
    BrokenJson,
    /// Nested deeper than 1,024.
    TooDeep,
    /// JSON, but no shape of a change event (or no object for a JSON feed, or a wrong field count for CSV).
    UnknownShape,
    /// An operation code that is none of `r c u d t m`.
    UnknownOp,
    /// A change without the row image it must have.
    MissingRow,
    /// A delete with neither a key nor a before-image that can be trusted.
    MissingKey,
    /// The schema block cannot be read or contradicts itself.
    BrokenSchema,
    /// A value is not of the form its schema or declaration says.
    WrongType,
    /// A value does not fit the column's type and the schema policy does not change it, or is one that no partition
    /// can have, in a partition column.
    DoesNotFit,
    /// A field that the table does not have, under the policy `quarantine`.
    UnknownColumn,
    /// A header of a key change that cannot be read.
    BrokenHeader,
    /// The batch's text of one column would exceed 2 GiB.
    BatchTooLarge,
    /// An Avro record's schema is not in the registry, or there is no registry.
    UnknownSchema,
    /// A registered schema that no table can be made of, or of another language than Avro.
    UnsupportedSchema,
    /// Avro that is not framed, does not fit its schema or is cut short.
    BrokenAvro,
}

impl ReasonCode {
    /// The text kept in the quarantine table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::BrokenJson => "broken_json",
            Self::TooDeep => "too_deep",
            Self::UnknownShape => "unknown_shape",
            Self::UnknownOp => "unknown_op",
            Self::MissingRow => "missing_row",
            Self::MissingKey => "missing_key",
            Self::BrokenSchema => "broken_schema",
            Self::WrongType => "wrong_type",
            Self::DoesNotFit => "does_not_fit",
            Self::UnknownColumn => "unknown_column",
            Self::BrokenHeader => "broken_header",
            Self::BatchTooLarge => "batch_too_large",
            Self::UnknownSchema => "unknown_schema",
            Self::UnsupportedSchema => "unsupported_schema",
            Self::BrokenAvro => "broken_avro",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a record is that is no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IgnoreReason {
    /// A null value after a delete.
    Tombstone,
    /// A heartbeat.
    Heartbeat,
    /// DDL of a source.
    SchemaChange,
    /// BEGIN or END of a transaction.
    Transaction,
    /// A row of a signal table.
    Signal,
    /// A notification of a snapshot's progress.
    Notification,
    /// A logical message (op `m`).
    LogicalMessage,
}

impl IgnoreReason {
    /// The text used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tombstone => "tombstone",
            Self::Heartbeat => "heartbeat",
            Self::SchemaChange => "schema_change",
            Self::Transaction => "transaction",
            Self::Signal => "signal",
            Self::Notification => "notification",
            Self::LogicalMessage => "logical_message",
        }
    }
}

impl fmt::Display for IgnoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the table must change before the batch fits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChange {
    /// Every column of the bronze table afterwards.
    pub columns: Vec<Column>,
    /// Business columns that are new; and fields of structs that are, by their path (`address.zip`).
    pub added: Vec<Column>,
    /// Business columns whose type is wider than before (policy `widen`), in the new type.
    pub widened: Vec<Column>,
}

/// What an existing bronze table says about how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resume {
    /// Every column of the table, business columns and ours, in any order.
    pub columns: Vec<Column>,
    /// The last row (greatest offset) of each topic and partition.
    pub partitions: BTreeMap<(String, i32), LastRow>,
    /// What the table shows of before-images; needed only where `replica_identity` is not declared full.
    pub before_images: Option<BeforeImages>,
}

/// The update or delete row of the greatest `_position`, compared as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BeforeImages {
    /// Its `_position`.
    pub position: String,
    /// Whether it has `_before`; of several rows at that position, whether all have.
    pub complete: bool,
}

/// The last row of a partition, as read back from the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastRow {
    /// `_position`.
    pub position: String,
    /// `_source.server`.
    pub server: Option<String>,
    /// `_source.ts`, µs since the epoch.
    pub source_ts_us: Option<i64>,
}
