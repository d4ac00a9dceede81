//! The change feed: what each commit did to the rows.
//!
//! - A commit with change-feed files is read from those alone.
//! - Another one is read from its data files: rows of an added file are inserts, rows of a removed file deletes, and a file that
//!   is removed and added again with another deletion vector tells the difference of the two. Commits that only rearranged
//!   rows (`dataChange` false) say nothing.
//! - Rows come version by version, in the columns of this snapshot (all nullable; what an older file lacks is null), then
//!   `_change_type`, `_commit_version`, `_commit_timestamp`. The stream holds one commit file and one batch at a time.
//! - A version whose commit file is gone is an error that names it, never a gap.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, SecondsFormat, Utc};
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use parquet::file::metadata::PageIndexPolicy;
use roaring::RoaringTreemap;

use crate::action::{self, Action, Add, Cdc, Remove};
use crate::create::CHANGE_FEED_ON;
use crate::file::DeletionVector;
use crate::file_scan::{FileScan, Rows};
use crate::partition::PartitionValues;
use crate::writer::CHANGE_TYPE;
use crate::{Error, Result, Table, deletion_vector, read_files};

/// The version that made a change.
pub(crate) const COMMIT_VERSION: &str = "_commit_version";

/// When it did.
pub(crate) const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

impl Table {
    /// The columns of [`Self::changes`]: the table's, then `_change_type` (text), `_commit_version` (long), `_commit_timestamp` (instant).
    pub fn change_schema(&self) -> SchemaRef {
        self.change_schema_of(self.nullable_fields())
    }

    fn change_schema_of(&self, mut fields: Vec<Field>) -> SchemaRef {
        fields.push(Field::new(CHANGE_TYPE, DataType::Utf8, true));
        fields.push(Field::new(COMMIT_VERSION, DataType::Int64, true));
        fields.push(Field::new(COMMIT_TIMESTAMP, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true));
        Arc::new(Schema::new(fields))
    }

    /// Every change of the versions `from` to `to`, both inclusive, in [`Self::change_schema`], version by version.
    ///
    /// # Errors
    /// [`Error::Range`] when `to` is before `from`, [`Error::NoVersion`] when this snapshot or the log does not reach that far,
    /// [`Error::NoChangeFeed`] when the feed was off in a version of the range; the last two also while the stream is read.
    pub async fn changes(&self, from: u64, to: u64) -> Result<SendableRecordBatchStream> {
        self.changes_of(&self.columns().iter().map(|column| column.name.clone()).collect(), from, to).await
    }

    /// As [`Self::changes`], of the table's columns with these names alone.
    ///
    /// # Errors
    /// As [`Self::changes`].
    pub async fn changes_of(&self, columns: &BTreeSet<String>, from: u64, to: u64) -> Result<SendableRecordBatchStream> {
        self.ensure_range(from, to).await?;
        let fields: Vec<Field> = self.nullable_fields().into_iter().filter(|field| columns.contains(field.name())).collect();
        let schema = self.change_schema_of(fields.clone());
        let reader = ChangeReader::new(self.clone(), fields, from, to).await?;
        Ok(as_record_batches(schema, reader.stream()))
    }

    async fn ensure_range(&self, from: u64, to: u64) -> Result<()> {
        if to < from {
            return Err(Error::Range { table: self.name().clone(), from: from.to_string(), to: to.to_string() });
        }
        if to > self.version() { Err(self.no_commit(to).await) } else { Ok(()) }
    }

    /// Every live row of a version as an insert of that version, in [`Self::change_schema`]: where a reader of changes begins that takes
    /// up what there is.
    ///
    /// # Errors
    /// As [`Self::live_rows`] and [`Self::changes`].
    pub async fn rows_as_inserts(&self, version: u64) -> Result<SendableRecordBatchStream> {
        let then = self.at_version(version).await?;
        let timestamp = then.commit_time(version, &then.commit_actions(version).await?).await?;
        let (schema, fields) = (self.change_schema(), Arc::new(Schema::new(self.nullable_fields())));
        let told = move |batch: datafusion::error::Result<RecordBatch>| {
            let rows = batch?.with_schema(Arc::clone(&fields))?;
            tell(&rows, &schema, Some("insert"), version, timestamp).map_err(read_files::external)
        };
        let rows = self.live_rows(version).await?.map(told);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.change_schema(), rows)))
    }

    /// Every change of the commits made at `from` or later and at `to` or earlier. A range that lies after the last commit, or
    /// between two of them, has none.
    ///
    /// # Errors
    /// [`Error::Range`] when `to` is before `from`; as [`Self::changes`].
    pub async fn changes_between(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<SendableRecordBatchStream> {
        if to < from {
            let text = |instant: DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            return Err(Error::Range { table: self.name().clone(), from: text(from), to: text(to) });
        }
        match self.versions_between(from, to).await? {
            Some((first, last)) => self.changes(first, last).await,
            None => Ok(as_record_batches(self.change_schema(), stream::empty())),
        }
    }

    /// Bytes of the files that [`Self::changes`] of this range reads, by the log alone: of files that only lost rows, all of them.
    ///
    /// # Errors
    /// [`Error::NoVersion`] when the log does not reach that far.
    pub async fn changes_bytes(&self, from: u64, to: u64) -> Result<u64> {
        let mut bytes = 0;
        for version in from..=to {
            let pieces = pieces(version, DateTime::UNIX_EPOCH, self.commit_actions(version).await?);
            bytes += pieces.iter().filter_map(|piece| piece.size).sum::<u64>();
        }
        Ok(bytes)
    }

    fn nullable_fields(&self) -> Vec<Field> {
        self.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect()
    }
}

/// Walks the commits of a range.
struct ChangeReader {
    table: Table,
    /// Columns of the table that are read.
    fields: Vec<Field>,
    schema: SchemaRef,
    next: u64,
    last: u64,
    first: u64,
    /// What is known about the feed before the first commit of the range that speaks of it.
    feed_known: bool,
    queue: VecDeque<Piece>,
    current: Option<BoxStream<'static, Result<RecordBatch>>>,
}

/// Rows of one file and what happened to them.
struct Piece {
    path: String,
    size: Option<u64>,
    partition_values: PartitionValues,
    rows: Part,
    /// `None`: the file says so itself, row by row.
    change: Option<&'static str>,
    version: u64,
    timestamp: DateTime<Utc>,
}

/// Which rows of a file, before deletion vectors are read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    All,
    Live(DeletionVector),
    /// Deleted by the first and not by the second.
    Newly {
        deleted: Option<DeletionVector>,
        but_not: Option<DeletionVector>,
    },
}

impl ChangeReader {
    async fn new(table: Table, fields: Vec<Field>, from: u64, to: u64) -> Result<Self> {
        // A commit inside the range that turns the feed on or off is looked at when it is read.
        if !feed_was_on(&table, to).await? {
            return Err(Error::NoChangeFeed { table: table.name().clone(), version: to });
        }
        let schema = table.change_schema_of(fields.clone());
        Ok(Self { table, fields, schema, next: from, first: from, last: to, feed_known: false, queue: VecDeque::new(), current: None })
    }

    fn stream(self) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
        stream::try_unfold(self, |mut reader| async move { Ok::<_, Error>(reader.next_batch().await?.map(|batch| (batch, reader))) })
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current {
                match current.next().await.transpose()? {
                    Some(batch) if batch.num_rows() > 0 => return Ok(Some(batch)),
                    Some(_) => continue,
                    None => self.current = None,
                }
            }
            if let Some(piece) = self.queue.pop_front() {
                self.current = Some(open(&self.table, self.fields.clone(), Arc::clone(&self.schema), piece).await?);
            } else if self.next <= self.last {
                let version = self.next;
                self.next += 1;
                let actions = self.table.commit_actions(version).await?;
                self.look_at_feed(version, &actions).await?;
                self.queue = pieces(version, self.table.commit_time(version, &actions).await?, actions).into();
            } else {
                return Ok(None);
            }
        }
    }

    /// Refuses a range in which the feed was off.
    async fn look_at_feed(&mut self, version: u64, actions: &[Action]) -> Result<()> {
        let metadata = actions.iter().find_map(|action| if let Action::Metadata(metadata) = action { Some(metadata) } else { None });
        let Some(metadata) = metadata else { return Ok(()) };
        let off = |version| Error::NoChangeFeed { table: self.table.name().clone(), version };
        if !feed_is_on(&metadata.configuration) {
            return Err(off(version));
        }
        if !self.feed_known && version > self.first && !feed_was_on(&self.table, self.first).await? {
            return Err(off(self.first));
        }
        self.feed_known = true;
        Ok(())
    }
}

/// The rows of a piece, told.
async fn open(table: &Table, mut fields: Vec<Field>, schema: SchemaRef, piece: Piece) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let Piece { path, size, partition_values, rows, change, version, timestamp } = piece;
    let unsaid = table.partition_columns().iter().find(|column| !partition_values.contains_key(*column));
    let rows = match rows {
        Part::All => Rows::All,
        Part::Live(vector) => Rows::Except(deleted(table, Some(&vector)).await?),
        Part::Newly { deleted: now, but_not } => {
            let newly = deleted(table, now.as_ref()).await? - deleted(table, but_not.as_ref()).await?;
            if newly.is_empty() {
                return Ok(stream::empty().boxed());
            }
            Rows::Only(newly)
        }
    };
    if change.is_none() {
        fields.push(Field::new(CHANGE_TYPE, DataType::Utf8, true));
    }
    let wanted = Arc::new(Schema::new(fields));
    let scan = FileScan {
        log: table.log().clone(),
        path: action::decode_path(&path),
        size,
        rows,
        schema: wanted,
        partition_values,
        read: Arc::default(),
    };
    if let Some(column) = unsaid {
        // It may have been a column like any other then, before the table was built anew.
        let stored = scan.metadata(PageIndexPolicy::Skip).await?;
        if stored.schema().column_with_name(column).is_none() {
            let reason = format!("version {version} does not say the value of partition column `{column}` of file {}", scan.path);
            return Err(table.log().unreadable(reason));
        }
    }
    let told = move |batch: Result<RecordBatch>| tell(&batch?, &schema, change, version, timestamp);
    Ok(scan.open().await?.map(told).boxed())
}

async fn deleted(table: &Table, vector: Option<&DeletionVector>) -> Result<RoaringTreemap> {
    match vector {
        Some(vector) => deletion_vector::rows(table.log(), vector).await,
        None => Ok(RoaringTreemap::new()),
    }
}

fn as_record_batches(
    schema: SchemaRef,
    changes: impl futures::Stream<Item = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, changes.map_err(read_files::external)))
}

/// Whether the feed was on at a version; where its snapshot cannot be built any more, whether it is on now.
async fn feed_was_on(table: &Table, version: u64) -> Result<bool> {
    match table.at_version(version).await {
        Ok(then) => Ok(feed_is_on(then.properties())),
        Err(Error::NoVersion { .. }) => Ok(feed_is_on(table.properties())),
        Err(error) => Err(error),
    }
}

fn feed_is_on(properties: &BTreeMap<String, String>) -> bool {
    properties.get(CHANGE_FEED_ON).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Rows with the columns that say what happened to them, when.
fn tell(rows: &RecordBatch, schema: &SchemaRef, change: Option<&str>, version: u64, timestamp: DateTime<Utc>) -> Result<RecordBatch> {
    let count = rows.num_rows();
    let mut columns = rows.columns().to_vec();
    if let Some(change) = change {
        columns.push(ScalarValue::from(change).to_array_of_size(count)?);
    }
    columns.push(ScalarValue::Int64(i64::try_from(version).ok()).to_array_of_size(count)?);
    columns.push(ScalarValue::TimestampMicrosecond(Some(timestamp.timestamp_micros()), Some("UTC".into())).to_array_of_size(count)?);
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &RecordBatchOptions::new().with_row_count(Some(count)))?)
}

/// What of which files a commit's changes are.
fn pieces(version: u64, timestamp: DateTime<Utc>, actions: Vec<Action>) -> Vec<Piece> {
    let mut adds: Vec<Add> = Vec::new();
    let mut removes: BTreeMap<String, Remove> = BTreeMap::new();
    let mut changes: Vec<Cdc> = Vec::new();
    for action in actions {
        match action {
            Action::Add(add) if add.data_change => adds.push(*add),
            Action::Remove(remove) if remove.data_change => {
                removes.insert(remove.path.clone(), *remove);
            }
            Action::Cdc(change) => changes.push(*change),
            Action::Add(_)
            | Action::Remove(_)
            | Action::CommitInfo(_)
            | Action::Protocol(_)
            | Action::Metadata(_)
            | Action::DomainMetadata(_)
            | Action::Txn(_) => {}
        }
    }
    if !changes.is_empty() {
        let piece = |Cdc { path, partition_values, size, .. }| Piece {
            path,
            size: Some(size),
            partition_values,
            rows: Part::All,
            change: None,
            version,
            timestamp,
        };
        return changes.into_iter().map(piece).collect();
    }
    let live = |vector: Option<DeletionVector>| vector.map_or(Part::All, Part::Live);
    let mut pieces = Vec::new();
    let mut inserts = Vec::new();
    for Add { path, size, partition_values, deletion_vector, .. } in adds {
        let piece = |path: &str, rows, change| Piece {
            path: path.to_owned(),
            size: Some(size),
            partition_values: partition_values.clone(),
            rows,
            change: Some(change),
            version,
            timestamp,
        };
        match removes.remove(&path) {
            None => inserts.push(piece(&path, live(deletion_vector), "insert")),
            Some(removed) if removed.deletion_vector == deletion_vector => {}
            Some(removed) => {
                let newly = |deleted: &Option<DeletionVector>, but_not: &Option<DeletionVector>| Part::Newly {
                    deleted: deleted.clone(),
                    but_not: but_not.clone(),
                };
                if deletion_vector.is_some() {
                    pieces.push(piece(&path, newly(&deletion_vector, &removed.deletion_vector), "delete"));
                }
                if removed.deletion_vector.is_some() {
                    inserts.push(piece(&path, newly(&removed.deletion_vector, &deletion_vector), "insert"));
                }
            }
        }
    }
    for (path, Remove { size, partition_values, deletion_vector, .. }) in removes {
        let partition_values = partition_values.unwrap_or_default();
        pieces.push(Piece { path, size, partition_values, rows: live(deletion_vector), change: Some("delete"), version, timestamp });
    }
    pieces.extend(inserts);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Vec<(String, Option<&'static str>, Part)> {
        let actions = action::parse(lines.as_bytes()).unwrap();
        pieces(1, DateTime::UNIX_EPOCH, actions).into_iter().map(|piece| (piece.path, piece.change, piece.rows)).collect()
    }

    fn add(path: &str, vector: Option<&str>, data_change: bool) -> String {
        let vector = vector.map_or_else(String::new, |vector| format!(r#","deletionVector":{}"#, descriptor(vector)));
        format!(r#"{{"add":{{"path":"{path}","size":1,"modificationTime":1,"dataChange":{data_change},"partitionValues":{{}}{vector}}}}}"#)
    }

    fn remove(path: &str, vector: Option<&str>) -> String {
        let vector = vector.map_or_else(String::new, |vector| format!(r#","deletionVector":{}"#, descriptor(vector)));
        format!(r#"{{"remove":{{"path":"{path}","dataChange":true,"size":1,"partitionValues":{{}}{vector}}}}}"#)
    }

    fn descriptor(name: &str) -> String {
        format!(r#"{{"storageType":"i","pathOrInlineDv":"{name}","sizeInBytes":1,"cardinality":1}}"#)
    }

    fn vector(name: &str) -> DeletionVector {
        serde_json::from_str(&descriptor(name)).unwrap()
    }

    #[test]
    fn a_commit_with_change_files_is_read_from_those_alone() {
        let cdc = r#"{"cdc":{"path":"_change_data/c","size":1,"dataChange":false,"partitionValues":{}}}"#;
        let seen = read(&[add("a", None, true), remove("b", None), cdc.to_owned()].join("\n"));
        assert_eq!(seen, [("_change_data/c".to_owned(), None, Part::All)]);
    }

    #[test]
    fn added_rows_are_inserts_and_removed_rows_deletes() {
        let seen = read(&[add("a", Some("x"), true), remove("b", Some("y")), add("c", None, false)].join("\n"));
        assert_eq!(
            seen,
            [("b".to_owned(), Some("delete"), Part::Live(vector("y"))), ("a".to_owned(), Some("insert"), Part::Live(vector("x")))]
        );
    }

    #[test]
    fn a_file_with_another_vector_tells_the_difference() {
        let first = read(&[remove("a", None), add("a", Some("x"), true)].join("\n"));
        assert_eq!(first, [("a".to_owned(), Some("delete"), Part::Newly { deleted: Some(vector("x")), but_not: None })]);
        let grown = read(&[remove("a", Some("x")), add("a", Some("y"), true)].join("\n"));
        assert_eq!(
            grown,
            [
                ("a".to_owned(), Some("delete"), Part::Newly { deleted: Some(vector("y")), but_not: Some(vector("x")) }),
                ("a".to_owned(), Some("insert"), Part::Newly { deleted: Some(vector("x")), but_not: Some(vector("y")) }),
            ]
        );
        assert_eq!(read(&[remove("a", Some("x")), add("a", Some("x"), true)].join("\n")), []);
    }
}
