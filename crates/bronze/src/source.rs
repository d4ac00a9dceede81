//! Record sources that an embedding program brings.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::error::SourceError;

/// Records in partitions, each with a growing position. What has been taken is kept in the table, never in the source.
///
/// A run asks once for the partitions, and drains each from the table's position to the end it was given. A run may be
/// stopped anywhere; the next one asks again from the table's position, so a source must be able to give records again.
#[async_trait]
pub trait RecordSource: Debug + Send + Sync {
    /// The name by which a feed's `source: custom: <name>` finds it.
    fn name(&self) -> &str;

    /// The partitions there are, with what each holds now.
    async fn partitions(&self) -> Result<Vec<PartitionBounds>, SourceError>;

    /// Records of a partition with `from <= position < until`, in order of position, at most `max` of them (at least 1 is
    /// asked for). Positions may have holes. An empty answer means that there is no record in the range at all.
    async fn read(&self, partition: i32, from: i64, until: i64, max: usize) -> Result<Vec<SourceRecord>, SourceError>;
}

/// What a partition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionBounds {
    /// The partition's number, not negative.
    pub partition: i32,
    /// The first position it still has.
    pub earliest: i64,
    /// The position after its last record.
    pub end: i64,
}

/// A record of a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceRecord {
    /// The topic, `_topic` of the table.
    pub topic: String,
    /// Its position in the partition, `_offset` of the table.
    pub position: i64,
    /// Key bytes, none for null.
    pub key: Option<Vec<u8>>,
    /// Value bytes, none for null.
    pub value: Option<Vec<u8>>,
    /// Headers in their order; names may repeat.
    pub headers: Vec<(String, Vec<u8>)>,
    /// When it was produced, milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
}
