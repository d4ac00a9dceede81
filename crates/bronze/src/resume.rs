//! Where a decoder goes on: the schema and the last row of each partition, read back from the table.
//!
//! Reading follows what is new, not the table: files are looked at newest first, and one whose greatest offset is not above
//! what is known of every partition it can hold is passed over.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use tributary_cdc_decode::{BeforeImages, LastRow, Resume};
use tributary_lake::arrow::array::{Array, AsArray, RecordBatch};
use tributary_lake::arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::{ColumnStats, DataFile, Table};
use tributary_specs::{Decode, ReplicaIdentity, SourceFeed};

use crate::cells::cell;
use crate::{Error, Result};

/// What the table says of the feed.
pub(crate) async fn read(feed: &SourceFeed, table: &Table) -> Result<Resume> {
    let mut resume = Resume { columns: table.columns().to_vec(), ..Resume::default() };
    if !matches!(feed.decode, Decode::Debezium | Decode::DebeziumFlattened) {
        return Ok(resume);
    }
    let failed = |source| Error::lake(table.name(), "reading the last positions", source);
    let mut files = table.files().await.map_err(failed)?;
    files.sort_by(|left, right| right.modified_ms.cmp(&left.modified_ms).then_with(|| right.path.cmp(&left.path)));
    let mut last = BTreeMap::new();
    for file in &files {
        if nothing_later(file, &last) {
            continue;
        }
        let mut stream = table.read_file(file, Some(&LAST_ROW.map(str::to_owned))).await.map_err(failed)?;
        while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
            rows_of(&batch, |partition, offset, row| {
                if last.get(&partition).is_none_or(|(known, _)| *known <= offset) {
                    last.insert(partition, (offset, row()));
                }
            });
        }
    }
    if feed.replica_identity == ReplicaIdentity::Default {
        resume.before_images = before_images(table, &files).await?;
    }
    resume.partitions = last.into_iter().map(|(partition, (_, row))| (partition, row)).collect();
    Ok(resume)
}

type LastRows = BTreeMap<(String, i32), (i64, LastRow)>;

/// Whether statistics say that a file holds no row later than the last known one of its partition.
fn nothing_later(file: &DataFile, last: &LastRows) -> bool {
    let range = |name: &str| file.stats.columns.get(name);
    let (Some((topic, topic_to)), Some((from, to)), Some((_, offset))) =
        (texts(range("_topic")), ints(range("_partition")), ints(range("_offset")))
    else {
        return false;
    };
    // Statistics of long texts may be cut short; then the bounds differ.
    topic == topic_to
        && to.saturating_sub(from) < 10_000
        && (from..=to).all(|partition| {
            i32::try_from(partition).is_ok_and(|partition| last.get(&(topic.clone(), partition)).is_some_and(|(known, _)| *known >= offset))
        })
}

/// The partition and the least offset of a file whose rows are all of one partition, where its statistics tell; `names` are its columns
/// of topic, partition and offset.
pub(crate) fn lowest(file: &DataFile, names: [&str; 3]) -> Option<(String, i32, i64)> {
    let [topic, partition, offset] = names.map(|name| file.stats.columns.get(name));
    let ((topic, topic_to), (partition, partition_to)) = (texts(topic)?, ints(partition)?);
    // Statistics of long texts may be cut short; then the bounds differ.
    (topic == topic_to && partition == partition_to).then_some(())?;
    Some((topic, i32::try_from(partition).ok()?, ints(offset)?.0))
}

fn texts(stats: Option<&ColumnStats>) -> Option<(String, String)> {
    let text = |value: &Option<ScalarValue>| match value {
        Some(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text)) => text.clone(),
        _ => None,
    };
    text(&stats?.min).zip(text(&stats?.max))
}

fn ints(stats: Option<&ColumnStats>) -> Option<(i64, i64)> {
    let int = |value: &Option<ScalarValue>| match value {
        Some(ScalarValue::Int32(value)) => value.map(i64::from),
        Some(ScalarValue::Int64(value)) => *value,
        _ => None,
    };
    int(&stats?.min).zip(int(&stats?.max))
}

/// Columns that tell the place of a row.
const LAST_ROW: [&str; 5] = ["_topic", "_partition", "_offset", "_position", "_source"];

/// Gives each row that has a place: its partition, its offset, and what a later one needs of it.
fn rows_of(batch: &RecordBatch, mut each: impl FnMut((String, i32), i64, &dyn Fn() -> LastRow)) {
    let text = |name: &str| batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    let (Some(topics), Some(positions)) = (text("_topic"), text("_position")) else { return };
    let partitions = batch.column_by_name("_partition").and_then(|column| column.as_primitive_opt::<Int32Type>());
    let offsets = batch.column_by_name("_offset").and_then(|column| column.as_primitive_opt::<Int64Type>());
    let (Some(partitions), Some(offsets)) = (partitions, offsets) else { return };
    let source = batch.column_by_name("_source").and_then(|column| column.as_struct_opt());
    let server = source.and_then(|source| source.column_by_name("server")).and_then(|column| column.as_string_opt::<i32>());
    let time =
        source.and_then(|source| source.column_by_name("ts")).and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
    for row in 0..batch.num_rows() {
        let (Some(topic), Some(partition), Some(offset)) = (cell(topics, row), cell(partitions, row), cell(offsets, row)) else { continue };
        let inside = source.is_some_and(|source| source.is_valid(row));
        let found = || LastRow {
            position: cell(positions, row).unwrap_or_default().to_owned(),
            server: server.filter(|_| inside).and_then(|server| cell(server, row)).map(str::to_owned),
            source_ts_us: time.filter(|_| inside).and_then(|time| cell(time, row)),
        };
        each((topic.to_owned(), partition), offset, &found);
    }
}

/// For each of these topics, partitions and offsets the last row of the table before it; none where there is none.
pub(crate) async fn before(table: &Table, places: BTreeSet<(String, i32, i64)>) -> Result<BTreeMap<(String, i32, i64), LastRow>> {
    let mut found: BTreeMap<(String, i32, i64), (i64, LastRow)> = BTreeMap::new();
    if places.is_empty() {
        return Ok(BTreeMap::new());
    }
    let failed = |source| Error::lake(table.name(), "reading the positions before", source);
    for file in table.files().await.map_err(failed)? {
        let mut stream = table.read_file(&file, Some(&LAST_ROW.map(str::to_owned))).await.map_err(failed)?;
        while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
            rows_of(&batch, |(topic, partition), offset, row| {
                let next = places.range((topic.clone(), partition, offset.saturating_add(1))..).next();
                let Some(next) = next.filter(|next| next.0 == topic && next.1 == partition) else { return };
                if found.get(next).is_none_or(|(known, _)| *known < offset) {
                    found.insert(next.clone(), (offset, row()));
                }
            });
        }
    }
    // What is before an earlier place is before the next one too, where nothing lies between.
    let mut last: Option<((String, i32), LastRow)> = None;
    let mut rows = BTreeMap::new();
    for place in places {
        let partition = (place.0.clone(), place.1);
        let own = found.remove(&place).map(|(_, row)| row);
        let row = own.or_else(|| last.as_ref().filter(|(of, _)| *of == partition).map(|(_, row)| row.clone()));
        if let Some(row) = row {
            last = Some((partition, row.clone()));
            rows.insert(place, row);
        }
    }
    Ok(rows)
}

/// The update or delete of the greatest position. Files are passed over that hold none, or none so far on.
async fn before_images(table: &Table, newest_first: &[DataFile]) -> Result<Option<BeforeImages>> {
    let failed = |source| Error::lake(table.name(), "reading the last before-image", source);
    let mut latest: Option<BeforeImages> = None;
    for file in newest_first {
        let range = |name: &str| texts(file.stats.columns.get(name));
        let has_none = range("_op").is_some_and(|(least, most)| least == most && !changes(&least));
        let is_earlier = latest.as_ref().zip(range("_position")).is_some_and(|(known, (_, most))| most < known.position);
        if has_none || is_earlier {
            continue;
        }
        let columns = ["_op", "_position", "_before"].map(str::to_owned);
        let mut stream = table.read_file(file, Some(&columns)).await.map_err(failed)?;
        while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
            let text = |name: &str| batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
            let (Some(ops), Some(positions), Some(before)) = (text("_op"), text("_position"), batch.column_by_name("_before")) else {
                return Ok(None);
            };
            for row in (0..batch.num_rows()).filter(|row| changes(ops.value(*row))) {
                let (position, complete) = (cell(positions, row).unwrap_or_default().to_owned(), before.is_valid(row));
                match &mut latest {
                    Some(known) if known.position > position => {}
                    Some(known) if known.position == position => known.complete &= complete,
                    _ => latest = Some(BeforeImages { position, complete }),
                }
            }
        }
    }
    Ok(latest)
}

fn changes(op: &str) -> bool {
    matches!(op, "update" | "delete")
}
