//! Open rows read back as the records they were.

use std::collections::HashSet;

use futures::TryStreamExt;
use tributary_cdc_decode::{Header, Record};
use tributary_lake::arrow::array::{Array, AsArray, BinaryArray, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_lake::datafusion::prelude::{ident, lit};
use tributary_lake::{ReadOptions, Table};

use super::places::Places;
use super::{Mark, Spot};
use crate::cells::cell;
use crate::files::Broken;
use crate::{Error, Result};

/// A record as its open row keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub spot: Spot,
    first_seen_us: i64,
    /// Why it was refused.
    pub reason: String,
    /// Whether the value is bytes of a file that are no record.
    pub is_no_record: bool,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    /// As [`super::Refused::headers`].
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    topic: Option<String>,
    partition: Option<i32>,
    offset: Option<i64>,
    timestamp_ms: Option<i64>,
    file: Option<String>,
    line: Option<i64>,
}

impl Kept {
    pub(crate) fn mark(&self) -> Mark {
        Mark { spot: self.spot.clone(), first_seen_us: self.first_seen_us }
    }

    /// Topic, partition and offset, where it came with them.
    pub(crate) fn place(&self) -> Option<(String, i32, i64)> {
        Some((self.topic.clone()?, self.partition?, self.offset?))
    }

    /// As it came.
    pub(crate) fn record<'a>(&'a self, headers: &'a [Header<'a>]) -> Record<'a> {
        Record {
            topic: self.topic.as_deref().unwrap_or_default(),
            partition: self.partition.unwrap_or_default(),
            offset: self.offset.unwrap_or_default(),
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers,
            timestamp_ms: self.timestamp_ms,
            file: self.file.as_deref(),
            line: self.line,
        }
    }

    fn bytes(&self) -> usize {
        self.key.as_ref().map_or(0, Vec::len) + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// Open records that are not among those seen, of one reason if one is given, in the order of their places: so many, or so many
/// bytes of them.
pub(crate) async fn open_records(
    table: &Table,
    reason: Option<&str>,
    seen: &HashSet<Mark>,
    records_max: usize,
    bytes_max: usize,
) -> Result<Vec<Kept>> {
    let failed = |source| Error::lake(table.name(), "reading the quarantine", source);
    let open = ident("superseded_at").is_null();
    let filter = reason.map_or(open.clone(), |reason| open.and(ident("reason").eq(lit(reason))));
    let mut stream = table.read(ReadOptions { columns: None, filter: Some(filter) }).await.map_err(failed)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    'all: while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
        let rows = Rows::of(&batch).ok_or_else(|| super::not_ours(table))?;
        for row in 0..batch.num_rows() {
            let Some(kept) = rows.at(row).filter(|kept| !seen.contains(&kept.mark())) else { continue };
            bytes += kept.bytes();
            found.push(kept);
            if found.len() >= records_max || bytes >= bytes_max {
                break 'all;
            }
        }
    }
    found.sort_by(|left, right| (&left.spot, left.first_seen_us).cmp(&(&right.spot, right.first_seen_us)));
    Ok(found)
}

/// The rows of a batch with every column of a quarantine.
struct Rows<'a> {
    places: Places<'a>,
    reason: &'a StringArray,
    key: &'a BinaryArray,
    value: &'a BinaryArray,
    headers: &'a ListArray,
    timestamp: &'a TimestampMicrosecondArray,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let bytes = |name: &str| batch.column_by_name(name)?.as_binary_opt::<i32>();
        Some(Self {
            places: Places::of(batch)?,
            reason: batch.column_by_name("reason")?.as_string_opt()?,
            key: bytes("key")?,
            value: bytes("value")?,
            headers: batch.column_by_name("headers")?.as_list_opt()?,
            timestamp: batch.column_by_name("timestamp")?.as_primitive_opt()?,
        })
    }

    fn at(&self, row: usize) -> Option<Kept> {
        let place = self.places.at(row)?;
        let reason = self.reason.value(row).to_owned();
        let Mark { spot, first_seen_us } = place.mark()?;
        Some(Kept {
            is_no_record: place.file.is_some() && Broken::is_reason(&reason),
            spot,
            first_seen_us,
            reason,
            key: cell(self.key, row).map(<[u8]>::to_vec),
            value: cell(self.value, row).map(<[u8]>::to_vec),
            headers: self.headers_at(row).unwrap_or_default(),
            topic: place.topic.map(str::to_owned),
            partition: place.partition,
            offset: place.offset,
            timestamp_ms: cell(self.timestamp, row).map(|micros| micros / 1000),
            file: place.file.map(str::to_owned),
            line: place.line,
        })
    }

    fn headers_at(&self, row: usize) -> Option<Vec<(String, Option<Vec<u8>>)>> {
        let list = cell(self.headers, row)?;
        let list = list.as_struct_opt()?;
        let (keys, values) = (list.column(0).as_string_opt::<i32>()?, list.column(1).as_binary_opt::<i32>()?);
        Some((0..list.len()).map(|at| (keys.value(at).to_owned(), cell(values, at).map(<[u8]>::to_vec))).collect())
    }
}
