//! Records that could not become rows, with their bytes, place and reason: table `quarantine.<feed>`.
//!
//! It commits before bronze, with the same positions. A run that finds the quarantine ahead of bronze does not quarantine
//! again what is there; what now decodes supersedes its row, which is marked and stays.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use tributary_cdc_decode::{Header, Record};
use tributary_lake::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, Int32Array, Int64Array, ListArray, ListBuilder, RecordBatch,
    StringArray, StringBuilder, StructBuilder, TimestampMicrosecondArray, TimestampMicrosecondBuilder,
};
use tributary_lake::arrow::compute::{filter_record_batch, kernels::zip::zip};
use tributary_lake::arrow::datatypes::{DataType as Arrow, Fields, Int32Type, Int64Type, Schema};
use tributary_lake::datafusion::logical_expr::Expr;
use tributary_lake::datafusion::prelude::{ident, lit};
use tributary_lake::{Commit, CommitOutcome, DataFile, Operation, ReadOptions, Reads, Table, WriterOptions};
use tributary_specs::{Column, DataType, TableName, TableSpec};

use crate::files::Broken;
use crate::{Error, Result};

/// The program whose decoder refused a record.
const DECODER_VERSION: &str = concat!("tributary ", env!("CARGO_PKG_VERSION"));
const CHANGE_TYPE: &str = "_change_type";

/// The columns of every quarantine table.
fn columns() -> Vec<Column> {
    let header = DataType::Struct(vec![Column::new("key", DataType::String), Column::new("value", DataType::Binary)]);
    let commented =
        |name: &str, data_type: DataType, comment: &str| Column { comment: Some(comment.to_owned()), ..Column::new(name, data_type) };
    vec![
        commented("reason", DataType::String, "what is wrong, for grouping").not_null(),
        commented("message", DataType::String, "what is wrong, for a person; no values"),
        commented("key", DataType::Binary, "key bytes as they came"),
        commented("value", DataType::Binary, "value bytes, or the bytes that are no record, as they came"),
        commented("headers", DataType::Array(Box::new(header)), "headers in their order"),
        commented("topic", DataType::String, "topic of the record"),
        commented("partition", DataType::Integer, "partition of the record"),
        commented("offset", DataType::Long, "offset or position of the record"),
        commented("timestamp", DataType::Timestamp, "when the record was produced"),
        commented("file", DataType::String, "file it was read from"),
        commented("line", DataType::Long, "line it begins on, from 1"),
        commented("content", DataType::String, "SHA-256 of the file's content"),
        commented("decoder_version", DataType::String, "program that refused it"),
        commented("first_seen", DataType::Timestamp, "when it was first refused").not_null(),
        commented("superseded_at", DataType::Timestamp, "when it became a row of the table after all; null while it has not"),
    ]
}

/// The table of a feed's quarantine.
pub(crate) fn spec(name: TableName, feed: &str) -> TableSpec {
    TableSpec { comment: Some(format!("records of feed {feed} that could not become rows")), ..TableSpec::new(name, columns()) }
}

/// One record on its way into quarantine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [Header<'a>],
    pub topic: Option<&'a str>,
    pub partition: Option<i32>,
    pub offset: Option<i64>,
    pub timestamp_ms: Option<i64>,
    pub file: Option<&'a str>,
    pub line: Option<i64>,
    pub content: Option<&'a str>,
}

/// The rows of refused records.
pub(crate) fn rows(refused: &[Refused<'_>], now_us: i64) -> Result<RecordBatch, tributary_lake::arrow::error::ArrowError> {
    let schema = Arc::new(Column::all_to_arrow(&columns()));
    let text = |of: fn(&Refused<'_>) -> Option<String>| Arc::new(refused.iter().map(of).collect::<StringArray>()) as ArrayRef;
    let bytes = |of: for<'a> fn(&Refused<'a>) -> Option<&'a [u8]>| {
        let mut builder = BinaryBuilder::new();
        refused.iter().for_each(|record| builder.append_option(of(record)));
        Arc::new(builder.finish()) as ArrayRef
    };
    let time = |values: Vec<Option<i64>>| Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC")) as ArrayRef;
    let arrays: Vec<ArrayRef> = vec![
        text(|record| Some(record.reason.to_owned())),
        text(|record| Some(record.message.to_owned())),
        bytes(|record| record.key),
        bytes(|record| record.value),
        headers(refused, &schema),
        text(|record| record.topic.map(str::to_owned)),
        Arc::new(refused.iter().map(|record| record.partition).collect::<Int32Array>()),
        Arc::new(refused.iter().map(|record| record.offset).collect::<Int64Array>()),
        time(refused.iter().map(|record| record.timestamp_ms.and_then(|ms| ms.checked_mul(1000))).collect()),
        text(|record| record.file.map(str::to_owned)),
        Arc::new(refused.iter().map(|record| record.line).collect::<Int64Array>()),
        text(|record| record.content.map(str::to_owned)),
        text(|_| Some(DECODER_VERSION.to_owned())),
        time(vec![Some(now_us); refused.len()]),
        time(vec![None; refused.len()]),
    ];
    RecordBatch::try_new(schema, arrays)
}

fn headers(refused: &[Refused<'_>], schema: &Schema) -> ArrayRef {
    let (element, fields) = match schema.field(4).data_type() {
        Arrow::List(element) => match element.data_type() {
            Arrow::Struct(fields) => (Arc::clone(element), fields.clone()),
            _ => (Arc::clone(element), Fields::empty()),
        },
        _ => return Arc::new(StringArray::new_null(refused.len())),
    };
    let mut list = ListBuilder::new(StructBuilder::from_fields(fields, refused.len())).with_field(element);
    for record in refused {
        for Header { key, value } in record.headers {
            let header = list.values();
            if let Some(keys) = header.field_builder::<StringBuilder>(0) {
                keys.append_value(key);
            }
            if let Some(values) = header.field_builder::<BinaryBuilder>(1) {
                values.append_option(*value);
            }
            header.append(true);
        }
        list.append(!record.headers.is_empty());
    }
    Arc::new(list.finish())
}

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

#[derive(Clone, Copy)]
struct Place<'a> {
    content: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<i64>,
    topic: Option<&'a str>,
    partition: Option<i32>,
    offset: Option<i64>,
    first_seen_us: i64,
}

impl Place<'_> {
    /// Every way a source is asked for it.
    fn spots(self) -> impl Iterator<Item = Spot> {
        let content = self.content.zip(self.line).map(|(content, line)| Spot::Content(content.to_owned(), line));
        let position = self.partition.zip(self.offset).map(|(partition, offset)| Spot::Position(partition, offset));
        // Offsets inside recorded files are data: only rows of sources with positions are found by them.
        let position = position.filter(|_| self.file.is_none());
        let offset = self.topic.zip(self.partition).zip(self.offset).filter(|_| self.file.is_none());
        let offset = offset.map(|((topic, partition), offset)| Spot::Offset(topic.to_owned(), partition, offset));
        [content, position, offset].into_iter().flatten()
    }

    /// The record, told from every other one.
    fn mark(self) -> Option<Mark> {
        // The last one is the closest: a topic's offset before a bare position.
        self.spots().last().map(|spot| Mark { spot, first_seen_us: self.first_seen_us })
    }
}

/// Columns that say where an open row is.
const PLACE_COLUMNS: [&str; 8] = ["content", "file", "line", "topic", "partition", "offset", "superseded_at", "first_seen"];

/// The places of the rows of a batch that holds at least these columns.
struct Places<'a> {
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
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let column = |name: &str| batch.column_by_name(name);
        Some(Self {
            content: column("content")?.as_string_opt::<i32>()?,
            file: column("file")?.as_string_opt::<i32>()?,
            line: column("line")?.as_primitive_opt::<Int64Type>()?,
            topic: column("topic")?.as_string_opt::<i32>()?,
            partition: column("partition")?.as_primitive_opt::<Int32Type>()?,
            offset: column("offset")?.as_primitive_opt::<Int64Type>()?,
            superseded: column("superseded_at")?,
            first_seen: column("first_seen")?.as_primitive_opt()?,
        })
    }

    /// The place of a row that is open.
    fn at(&self, row: usize) -> Option<Place<'a>> {
        let text = |array: &'a StringArray| array.is_valid(row).then(|| array.value(row));
        let long = |array: &Int64Array| array.is_valid(row).then(|| array.value(row));
        self.superseded.is_null(row).then(|| Place {
            content: text(self.content),
            file: text(self.file),
            line: long(self.line),
            topic: text(self.topic),
            partition: self.partition.is_valid(row).then(|| self.partition.value(row)),
            offset: long(self.offset),
            first_seen_us: self.first_seen.value(row),
        })
    }
}

async fn open(table: &Table, filter: Expr, spot: impl Fn(Place<'_>) -> Option<Spot>) -> Result<Open> {
    let failed = |source| Error::lake(table.name(), "reading the quarantine", source);
    let columns = PLACE_COLUMNS.map(str::to_owned).to_vec();
    let filter = Some(filter.and(ident("superseded_at").is_null()));
    let mut stream = table.read(ReadOptions { columns: Some(columns), filter }).await.map_err(failed)?;
    let mut open = Open::new();
    while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
        let Some(places) = Places::of(&batch) else { return Err(not_ours(table)) };
        for place in (0..batch.num_rows()).filter_map(|row| places.at(row)) {
            if let Some(spot) = spot(place) {
                *open.entry(spot).or_default() += 1;
            }
        }
    }
    Ok(open)
}

fn not_ours(table: &Table) -> Error {
    Error::NotBronze { table: table.name().clone(), column: "superseded_at".to_owned() }
}

/// Marks the open rows of these places as superseded, in one commit that rewrites the files that hold them; none when no file does.
pub(crate) async fn supersede(table: &Table, spots: &BTreeSet<Spot>, now_us: i64) -> Result<Option<CommitOutcome>> {
    supersede_where(table, &|place| place.spots().any(|spot| spots.contains(&spot)), now_us).await
}

/// The same of these very records.
pub(crate) async fn supersede_records(table: &Table, records: &HashSet<Mark>, now_us: i64) -> Result<Option<CommitOutcome>> {
    supersede_where(table, &|place| place.mark().is_some_and(|mark| records.contains(&mark)), now_us).await
}

type Named<'n> = &'n (dyn Fn(Place<'_>) -> bool + Sync);

async fn supersede_where(table: &Table, named: Named<'_>, now_us: i64) -> Result<Option<CommitOutcome>> {
    let failed = |source| Error::lake(table.name(), "marking superseded quarantine rows", source);
    let mut writer = table.writer(WriterOptions::default()).map_err(failed)?;
    let mut changes = table.change_writer();
    let mut removes = Vec::new();
    for file in table.files().await.map_err(failed)? {
        if !concerned(table, &file, named).await? {
            continue;
        }
        let mut stream = table.read_file(&file, None).await.map_err(failed)?;
        while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
            let marks = marks(table, &batch, named)?;
            let after = marked(&batch, &marks, now_us).map_err(|source| failed(source.into()))?;
            writer.write(&after).await.map_err(failed)?;
            for (rows, change) in [(&batch, "update_preimage"), (&after, "update_postimage")] {
                let rows = filter_record_batch(rows, &marks)
                    .and_then(|rows| with_change(&rows, change))
                    .map_err(|source| failed(source.into()))?;
                if rows.num_rows() > 0 {
                    changes.write(&rows).await.map_err(failed)?;
                }
            }
        }
        removes.push(file);
    }
    if removes.is_empty() {
        return Ok(None);
    }
    let adds = writer.finish().await.map_err(failed)?;
    let changes = changes.finish().await.map_err(failed)?;
    let commit = Commit { operation: Operation::Merge, adds, removes, changes, reads: Reads::Files, ..Commit::default() };
    table.commit(commit).await.map(Some).map_err(failed)
}

/// Whether a file holds an open row of one of the places.
async fn concerned(table: &Table, file: &DataFile, named: Named<'_>) -> Result<bool> {
    let failed = |source| Error::lake(table.name(), "reading the quarantine", source);
    let columns = PLACE_COLUMNS.map(str::to_owned);
    let mut stream = table.read_file(file, Some(&columns)).await.map_err(failed)?;
    while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
        if marks(table, &batch, named)?.true_count() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn marks(table: &Table, batch: &RecordBatch, named: Named<'_>) -> Result<BooleanArray> {
    let places = Places::of(batch).ok_or_else(|| not_ours(table))?;
    Ok((0..batch.num_rows()).map(|row| Some(places.at(row).is_some_and(named))).collect())
}

fn marked(batch: &RecordBatch, marks: &BooleanArray, now_us: i64) -> Result<RecordBatch, tributary_lake::arrow::error::ArrowError> {
    let index = batch.schema().index_of("superseded_at")?;
    let mut now = TimestampMicrosecondBuilder::with_capacity(batch.num_rows());
    (0..batch.num_rows()).for_each(|_| now.append_value(now_us));
    let now = now.finish().with_timezone("UTC");
    let mut columns = batch.columns().to_vec();
    columns[index] = zip(marks, &now, batch.column(index))?;
    RecordBatch::try_new(batch.schema(), columns)
}

fn with_change(batch: &RecordBatch, change: &str) -> Result<RecordBatch, tributary_lake::arrow::error::ArrowError> {
    let mut fields = batch.schema().fields().to_vec();
    fields.push(Arc::new(tributary_lake::arrow::datatypes::Field::new(CHANGE_TYPE, Arrow::Utf8, false)));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![change; batch.num_rows()])));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
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

/// One record of a quarantine: its place, and when it was first refused, since a topic made again has the same places once more.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mark {
    spot: Spot,
    first_seen_us: i64,
}

/// Marks of one content or partition that were first seen at one time, as a commit keeps them.
#[derive(Debug, Serialize, Deserialize)]
struct Marks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<i32>,
    first_seen_us: i64,
    /// Lines, positions or offsets.
    places: Vec<i64>,
}

/// What marks of one group share: content, topic, partition, first seen.
type Shared<'a> = (Option<&'a str>, Option<&'a str>, Option<i32>, i64);

/// Marks as the text of a metadata domain.
pub(crate) fn to_text(marks: &[Mark]) -> String {
    let mut groups: BTreeMap<Shared<'_>, Vec<i64>> = BTreeMap::new();
    for Mark { spot, first_seen_us } in marks {
        let (content, topic, partition, place) = match spot {
            Spot::Content(content, line) => (Some(content.as_str()), None, None, *line),
            Spot::Position(partition, position) => (None, None, Some(*partition), *position),
            Spot::Offset(topic, partition, offset) => (None, Some(topic.as_str()), Some(*partition), *offset),
        };
        groups.entry((content, topic, partition, *first_seen_us)).or_default().push(place);
    }
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let groups = groups.into_iter().map(|((content, topic, partition, first_seen_us), places)| Marks {
        content: owned(content),
        topic: owned(topic),
        partition,
        first_seen_us,
        places,
    });
    serde_json::json!(groups.collect::<Vec<_>>()).to_string()
}

/// The marks of such a text; none when it is no such text.
pub(crate) fn from_text(text: &str) -> Option<HashSet<Mark>> {
    let groups: Vec<Marks> = serde_json::from_str(text).ok()?;
    let mut marks = HashSet::new();
    for Marks { content, topic, partition, first_seen_us, places } in groups {
        for place in places {
            let spot = match (&content, &topic, partition) {
                (Some(content), None, None) => Spot::Content(content.clone(), place),
                (None, None, Some(partition)) => Spot::Position(partition, place),
                (None, Some(topic), Some(partition)) => Spot::Offset(topic.clone(), partition, place),
                _ => return None,
            };
            marks.insert(Mark { spot, first_seen_us });
        }
    }
    Some(marks)
}

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
        let rows = Rows::of(&batch).ok_or_else(|| not_ours(table))?;
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
        let column = |name: &str| batch.column_by_name(name);
        Some(Self {
            places: Places::of(batch)?,
            reason: column("reason")?.as_string_opt::<i32>()?,
            key: column("key")?.as_binary_opt::<i32>()?,
            value: column("value")?.as_binary_opt::<i32>()?,
            headers: column("headers")?.as_list_opt::<i32>()?,
            timestamp: column("timestamp")?.as_primitive_opt()?,
        })
    }

    fn at(&self, row: usize) -> Option<Kept> {
        let place = self.places.at(row)?;
        let bytes = |array: &BinaryArray| array.is_valid(row).then(|| array.value(row).to_vec());
        let reason = self.reason.value(row).to_owned();
        let Mark { spot, first_seen_us } = place.mark()?;
        Some(Kept {
            is_no_record: place.file.is_some() && Broken::is_reason(&reason),
            spot,
            first_seen_us,
            reason,
            key: bytes(self.key),
            value: bytes(self.value),
            headers: self.headers_at(row),
            topic: place.topic.map(str::to_owned),
            partition: place.partition,
            offset: place.offset,
            timestamp_ms: self.timestamp.is_valid(row).then(|| self.timestamp.value(row) / 1000),
            file: place.file.map(str::to_owned),
            line: place.line,
        })
    }

    fn headers_at(&self, row: usize) -> Vec<(String, Option<Vec<u8>>)> {
        if self.headers.is_null(row) {
            return Vec::new();
        }
        let list = self.headers.value(row);
        let Some(list) = list.as_struct_opt() else { return Vec::new() };
        let (Some(keys), Some(values)) = (list.column(0).as_string_opt::<i32>(), list.column(1).as_binary_opt::<i32>()) else {
            return Vec::new();
        };
        (0..list.len()).map(|at| (keys.value(at).to_owned(), values.is_valid(at).then(|| values.value(at).to_vec()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_text() {
        let mark = |spot, first_seen_us| Mark { spot, first_seen_us };
        let marks = [
            mark(Spot::Content("ab".to_owned(), 3), 1),
            mark(Spot::Content("ab".to_owned(), 4), 1),
            mark(Spot::Content("ab".to_owned(), 4), 2),
            mark(Spot::Position(0, 7), 1),
            mark(Spot::Offset("t".to_owned(), 0, 7), 1),
        ];
        let text = to_text(&marks);
        assert_eq!(from_text(&text), Some(marks.into_iter().collect()), "{text}");
        assert_eq!(from_text("no marks"), None);
        assert_eq!(from_text(r#"[{"first_seen_us":1,"places":[1]}]"#), None);
    }
}
