//! Tables that are read as streams by a query which remembers rows, and how long it is waited for rows that come late.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::table_name::TableName;

/// A source that is read as a stream by a query which remembers rows: one that groups, or joins streams.
///
/// ```
/// use std::time::Duration;
/// use tributary_specs::{GoldSpec, StreamedTable};
///
/// let orders = StreamedTable::new("bronze.orders".parse()?).with_watermark("at", Duration::from_secs(600));
/// let query = "SELECT store, count(*) AS orders FROM bronze.orders GROUP BY store";
/// let spec = GoldSpec::new("silver.by_store".parse()?, query).with_stream(orders);
/// assert_eq!(spec.streams[0].watermark.as_ref().map(|watermark| watermark.delay_millis), Some(600_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamedTable {
    /// The source.
    pub table: TableName,
    /// How long it is waited for its rows; none = for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Watermark>,
}

impl StreamedTable {
    /// A stream without a watermark.
    pub fn new(table: TableName) -> Self {
        Self { table, watermark: None }
    }

    /// How long it is waited for its rows.
    #[must_use]
    pub fn with_watermark(mut self, column: impl Into<String>, delay: Duration) -> Self {
        self.watermark = Some(Watermark::new(column, delay));
        self
    }
}

/// How long it is waited for rows: the watermark of a table at a version is the greatest event time of its rows, less the delay. A row
/// whose event time is below the watermark of the versions before its own is late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watermark {
    /// The event time: a column of the source that holds timestamps.
    pub column: String,
    /// In milliseconds.
    pub delay_millis: u64,
}

/// What becomes of late rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LateRows {
    /// They are applied, and the report counts them.
    #[default]
    Apply,
    /// They are left out, and the report counts them.
    Drop,
}

impl LateRows {
    pub(crate) fn is_apply(&self) -> bool {
        *self == Self::Apply
    }
}

impl Watermark {
    /// Over a column; a delay beyond what milliseconds of 64 bits tell is that.
    pub fn new(column: impl Into<String>, delay: Duration) -> Self {
        Self { column: column.into(), delay_millis: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX) }
    }
}
