//! Where the records of quarantine rows are in their source, and which of the rows are open.

use std::collections::HashMap;

use futures::TryStreamExt;
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tributary_lake::datafusion::logical_expr::Expr;
use tributary_lake::datafusion::prelude::{ident, lit};
use tributary_lake::{ReadOptions, Table};

use super::Mark;
use crate::cells::cell;
use crate::{Error, Result};

/// A place in a source, by which a quarantine row is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Spot {
    /// Line of a content.
    Content(String, i64),
    /// Partition and position of a source without topics.
    Position(i32, i64),
    /// Topic, partition and offset.
    Offset(String, i32, i64),
}

/// Open rows of a quarantine, by place; a place can hold several pieces of one record.
pub(crate) type Open = HashMap<Spot, u64>;

/// The open rows of a file's content.
pub(crate) async fn open_of_content(table: &Table, content: &str) -> Result<Open> {
    open(table, ident("content").eq(lit(content)), |row| Some(Spot::Content(row.content?.to_owned(), row.line?))).await
}

/// The open rows of a partition between two positions, the second left out; of one topic where the source has topics.
pub(crate) async fn open_of_positions(table: &Table, topic: Option<&str>, partition: i32, from: i64, until: i64) -> Result<Open> {
    let offsets = ident("offset").gt_eq(lit(from)).and(ident("offset").lt(lit(until)));
    let place = ident("file").is_null().and(ident("partition").eq(lit(partition))).and(offsets);
    match topic {
        None => open(table, place, |row| Some(Spot::Position(row.partition?, row.offset?))).await,
        Some(topic) => {
            let place = place.and(ident("topic").eq(lit(topic)));
            open(table, place, |row| Some(Spot::Offset(topic.to_owned(), row.partition?, row.offset?))).await
        }
    }
}

async fn open(table: &Table, filter: Expr, spot: impl Fn(Place<'_>) -> Option<Spot>) -> Result<Open> {
    let failed = |source| Error::lake(table.name(), "reading the quarantine", source);
    let columns = PLACE_COLUMNS.map(str::to_owned).to_vec();
    let filter = Some(filter.and(ident("superseded_at").is_null()));
    let mut stream = table.read(ReadOptions { columns: Some(columns), filter }).await.map_err(failed)?;
    let mut open = Open::new();
    while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
        let places = Places::of(&batch).ok_or_else(|| super::not_ours(table))?;
        for spot in (0..batch.num_rows()).filter_map(|row| places.at(row)).filter_map(&spot) {
            *open.entry(spot).or_default() += 1;
        }
    }
    Ok(open)
}

/// Counts of open rows that the rejects met so far have used up.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    open: Open,
}

impl Parked {
    pub(crate) fn add(&mut self, open: Open) {
        self.open.extend(open);
    }

    /// Whether a reject at this place is in quarantine already; each row answers once.
    pub(crate) fn take(&mut self, spot: &Spot) -> bool {
        match self.open.get_mut(spot) {
            Some(rows) if *rows > 0 => {
                *rows -= 1;
                true
            }
            _ => false,
        }
    }

    /// Places whose rows no reject used up: their records decode now.
    pub(crate) fn superseded(self) -> impl Iterator<Item = Spot> {
        self.open.into_iter().filter(|(_, rows)| *rows > 0).map(|(spot, _)| spot)
    }
}

/// Where the record of an open row is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub content: Option<&'a str>,
    pub file: Option<&'a str>,
    pub line: Option<i64>,
    pub topic: Option<&'a str>,
    pub partition: Option<i32>,
    pub offset: Option<i64>,
    pub first_seen_us: i64,
}

impl Place<'_> {
    /// Every way a source is asked for it.
    pub fn spots(self) -> impl Iterator<Item = Spot> {
        let content = self.content.zip(self.line).map(|(content, line)| Spot::Content(content.to_owned(), line));
        // Offsets inside recorded files are data: only rows of sources with positions are found by them.
        let place = self.partition.zip(self.offset).filter(|_| self.file.is_none());
        let position = place.map(|(partition, offset)| Spot::Position(partition, offset));
        let offset = self.topic.zip(place).map(|(topic, (partition, offset))| Spot::Offset(topic.to_owned(), partition, offset));
        [content, position, offset].into_iter().flatten()
    }

    /// The record, told from every other one.
    pub fn mark(self) -> Option<Mark> {
        // The last one is the closest: a topic's offset before a bare position.
        self.spots().last().map(|spot| Mark { spot, first_seen_us: self.first_seen_us })
    }
}

/// Columns that say where an open row is.
pub(super) const PLACE_COLUMNS: [&str; 8] = ["content", "file", "line", "topic", "partition", "offset", "superseded_at", "first_seen"];

/// The places of the rows of a batch that holds at least these columns.
pub(super) struct Places<'a> {
    content: &'a StringArray,
    file: &'a StringArray,
    line: &'a Int64Array,
    topic: &'a StringArray,
    partition: &'a Int32Array,
    offset: &'a Int64Array,
    superseded: &'a ArrayRef,
    first_seen: &'a TimestampMicrosecondArray,
}

impl<'a> Places<'a> {
    pub fn of(batch: &'a RecordBatch) -> Option<Self> {
        let column = |name: &str| batch.column_by_name(name);
        let text = |name: &str| column(name)?.as_string_opt::<i32>();
        Some(Self {
            content: text("content")?,
            file: text("file")?,
            line: column("line")?.as_primitive_opt()?,
            topic: text("topic")?,
            partition: column("partition")?.as_primitive_opt()?,
            offset: column("offset")?.as_primitive_opt()?,
            superseded: column("superseded_at")?,
            first_seen: column("first_seen")?.as_primitive_opt()?,
        })
    }

    /// The place of a row that is open.
    pub fn at(&self, row: usize) -> Option<Place<'a>> {
        self.superseded.is_null(row).then(|| Place {
            content: cell(self.content, row),
            file: cell(self.file, row),
            line: cell(self.line, row),
            topic: cell(self.topic, row),
            partition: cell(self.partition, row),
            offset: cell(self.offset, row),
            first_seen_us: self.first_seen.value(row),
        })
    }
}
