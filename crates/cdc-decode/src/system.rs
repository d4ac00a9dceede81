//! The columns a bronze table has besides the business columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray, TimestampMicrosecondArray};
use arrow_schema::{ArrowError, DataType as Arrow};
use tributary_specs::{Column as Spec, DataType, Decode, FILE_COLUMNS};

use crate::column::{Column, Refused};
use crate::op::{Op, Ops};
use crate::record::Record;
use crate::repeats::Repeats;
use crate::source::{Maybe, Source};
use crate::zeros::Zeros;

/// Names that readers of a change feed, and of the platform's tables, add to ours.
const READERS: [&str; 4] = ["_change_type", "_commit_version", "_commit_timestamp", "_metadata"];

/// Whether no business column may have this name: it is ours, or has a character that no reader expects in a name.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with("__") || name.chars().any(char::is_control) || is_ours(name)
}

/// Whether it is one of ours, whatever its case.
pub(crate) fn is_ours(name: &str) -> bool {
    Decode::Debezium.metadata_columns().iter().chain(&READERS).chain(&FILE_COLUMNS).any(|ours| ours.eq_ignore_ascii_case(name))
}

/// The type of `_source`.
fn source_type() -> DataType {
    let text = |name| Spec::new(name, DataType::String);
    DataType::Struct(vec![
        text("connector"),
        text("database"),
        text("schema"),
        text("table"),
        text("snapshot"),
        Spec::new("ts", DataType::Timestamp),
        text("tx_id"),
        text("server"),
    ])
}

/// Columns of every decoded feed: where the record was, when it was made, what did not fit.
#[derive(Debug)]
pub(crate) struct Provenance {
    position: Column,
    topic: Repeats,
    partition: Column,
    offset: Column,
    file: Repeats,
    line: Column,
    event_time: Column,
    rescued: Repeats,
}

/// Columns only of change feeds.
#[derive(Debug)]
pub(crate) struct Change {
    op: Ops,
    unavailable: Column,
    /// Connector, database, schema, table, snapshot mark and server.
    names: [Repeats; 6],
    steady: Steady,
    ts: Column,
    tx_id: Column,
}

/// The last rows of a batch whose names are those of the first of them; the names' columns do not have the others yet.
#[derive(Debug, Default)]
struct Steady {
    generation: u64,
    /// The row after the first of them.
    first_end: usize,
    /// The row after the last; 0 = there are none.
    end: usize,
    /// The rows that the names' columns can hold.
    limit: usize,
}

/// Appends a value as row number `row`; nulls need no appending, they are filled in before the next value or at the end.
#[inline(always)]
fn long(column: &mut Column, row: usize, value: Option<i64>) -> Result<(), Refused> {
    let Some(value) = value else { return Ok(()) };
    column.fill(row);
    column.push_long(value)
}

/// As [`long`].
#[inline(always)]
fn text(column: &mut Column, row: usize, value: Option<&[u8]>) -> Result<(), Refused> {
    let Some(value) = value else { return Ok(()) };
    column.fill(row);
    column.push_bytes(value)
}

impl Provenance {
    pub(crate) fn new() -> Self {
        let column = |data_type| Column::new(&data_type);
        Self {
            position: column(DataType::String),
            topic: Repeats::default(),
            partition: column(DataType::Integer),
            offset: column(DataType::Long),
            file: Repeats::default(),
            line: column(DataType::Long),
            event_time: column(DataType::Timestamp),
            rescued: Repeats::default(),
        }
    }

    /// Appends a row; `position` writes `_position`. A record without topic has neither partition nor offset.
    #[inline]
    pub(crate) fn push(
        &mut self,
        row: usize,
        record: &Record<'_>,
        position: Option<impl FnOnce(&mut Vec<u8>)>,
        event_time_us: Option<i64>,
        rescued: &[u8],
    ) -> Result<(), Refused> {
        if let Some(position) = position {
            self.position.fill(row);
            self.position.push_written(position)?;
        }
        if !record.topic.is_empty() {
            self.topic.push(row, Some(record.topic.as_bytes()))?;
            self.partition.fill(row);
            self.partition.push_integer(record.partition)?;
            long(&mut self.offset, row, Some(record.offset))?;
        }
        self.file.push(row, record.file.map(str::as_bytes))?;
        long(&mut self.line, row, record.line)?;
        let at = event_time_us.or_else(|| record.timestamp_ms.and_then(|ms| ms.checked_mul(1000)));
        long(&mut self.event_time, row, at)?;
        self.rescued.push(row, (!rescued.is_empty()).then_some(rescued))
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        for column in [&mut self.topic, &mut self.file, &mut self.rescued] {
            column.truncate(rows);
        }
        for column in [&mut self.position, &mut self.partition, &mut self.offset, &mut self.line, &mut self.event_time] {
            column.truncate(rows);
        }
    }

    /// Makes room for so many rows like those of the last batch.
    pub(crate) fn prepare(&mut self, rows: usize) {
        for column in [&mut self.position, &mut self.partition, &mut self.offset, &mut self.line, &mut self.event_time] {
            column.prepare(rows);
        }
    }

    /// `_position`.
    pub(crate) fn finish_position(&mut self, rows: usize, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        self.position.finish_at(rows, zeros)
    }

    /// `_topic` to `_rescued_data`, as [`provenance_columns`] names them.
    pub(crate) fn finish(&mut self, rows: usize, ingested_at_us: i64, zeros: &mut Zeros) -> Result<Vec<ArrayRef>, ArrowError> {
        let ingested_at = TimestampMicrosecondArray::from(vec![ingested_at_us; rows]).with_timezone("UTC");
        Ok(vec![
            self.topic.finish(rows, zeros)?,
            self.partition.finish_at(rows, zeros)?,
            self.offset.finish_at(rows, zeros)?,
            self.file.finish(rows, zeros)?,
            self.line.finish_at(rows, zeros)?,
            self.event_time.finish_at(rows, zeros)?,
            Arc::new(ingested_at),
            self.rescued.finish(rows, zeros)?,
        ])
    }
}

impl Change {
    pub(crate) fn new() -> Self {
        Self {
            op: Ops::default(),
            unavailable: Column::new(&DataType::Array(Box::new(DataType::String))),
            names: Default::default(),
            steady: Steady::default(),
            ts: Column::new(&DataType::Timestamp),
            tx_id: Column::new(&DataType::String),
        }
    }

    /// Appends a row.
    #[inline]
    pub(crate) fn push<'n>(
        &mut self,
        row: usize,
        op: Op,
        unavailable: impl ExactSizeIterator<Item = &'n str>,
        source: &Source,
        transaction: Option<&[u8]>,
    ) -> Result<(), Refused> {
        self.op.push(op);
        if unavailable.len() > 0 {
            self.unavailable.fill(row);
            if let Some(names) = self.unavailable.element() {
                for name in unavailable {
                    names.push_bytes(name.as_bytes())?;
                }
            }
            self.unavailable.close()?;
        }
        let steady = &mut self.steady;
        if steady.generation == source.generation() && steady.end == row && row < steady.limit {
            steady.end += 1;
        } else {
            self.push_names(row, source)?;
        }
        long(&mut self.ts, row, source.ts_micros())?;
        text(&mut self.tx_id, row, transaction)
    }

    #[cold]
    fn push_names(&mut self, row: usize, source: &Source) -> Result<(), Refused> {
        self.catch_up();
        self.steady = Steady { generation: source.generation(), first_end: row + 1, end: row + 1, limit: 0 };
        let server = Some(source.server()).filter(|server| !server.is_empty());
        let texts = [&source.connector, &source.database, &source.schema, &source.table, &source.snapshot].map(Maybe::get);
        for (name, value) in self.names.iter_mut().zip(texts.into_iter().chain([server])) {
            name.push(row, value)?;
        }
        self.steady.limit = self.names.iter().map(Repeats::rows_max).min().unwrap_or(0);
        Ok(())
    }

    /// Gives the names' columns the rows they lack.
    fn catch_up(&mut self) {
        let Steady { first_end, end, .. } = std::mem::take(&mut self.steady);
        for name in &mut self.names {
            name.extend_last(first_end, end);
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.op.truncate(rows);
        if self.steady.end > rows {
            self.catch_up();
            self.names.iter_mut().for_each(|name| name.truncate(rows));
        }
        for column in [&mut self.unavailable, &mut self.ts, &mut self.tx_id] {
            column.truncate(rows);
        }
    }

    /// Makes room for so many rows like those of the last batch.
    pub(crate) fn prepare(&mut self, rows: usize) {
        for column in [&mut self.unavailable, &mut self.ts, &mut self.tx_id] {
            column.prepare(rows);
        }
    }

    /// Whether the row is a delete.
    pub(crate) fn is_delete(&self, row: usize) -> bool {
        self.op.get(row) == Some(Op::Delete)
    }

    /// `_op`.
    pub(crate) fn finish_op(&mut self, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        self.op.finish(zeros)
    }

    /// `_unavailable`.
    pub(crate) fn finish_unavailable(&mut self, rows: usize, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        self.unavailable.finish_at(rows, zeros)
    }

    /// `_source`.
    pub(crate) fn finish_source(&mut self, rows: usize, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        let Arrow::Struct(fields) = source_type().to_arrow() else {
            return Err(ArrowError::SchemaError("_source is no struct".to_owned()));
        };
        self.catch_up();
        let [connector, database, schema, table, snapshot, server] = &mut self.names;
        let arrays = vec![
            connector.finish(rows, zeros)?,
            database.finish(rows, zeros)?,
            schema.finish(rows, zeros)?,
            table.finish(rows, zeros)?,
            snapshot.finish(rows, zeros)?,
            self.ts.finish_at(rows, zeros)?,
            self.tx_id.finish_at(rows, zeros)?,
            server.finish(rows, zeros)?,
        ];
        Ok(Arc::new(StructArray::try_new(fields, arrays, None)?))
    }
}

/// `_op` and `_position`.
pub(crate) fn change_head() -> [Spec; 2] {
    [Spec::new("_op", DataType::String).not_null(), position_column()]
}

/// `_position`.
pub(crate) fn position_column() -> Spec {
    Spec::new("_position", DataType::String)
}

/// `_unavailable`.
pub(crate) fn unavailable_column() -> Spec {
    Spec::new("_unavailable", DataType::Array(Box::new(DataType::String)))
}

/// `_source`.
pub(crate) fn source_column() -> Spec {
    Spec::new("_source", source_type())
}

/// `_topic` to `_rescued_data`.
pub(crate) fn provenance_columns() -> [Spec; 8] {
    [
        Spec::new("_topic", DataType::String),
        Spec::new("_partition", DataType::Integer),
        Spec::new("_offset", DataType::Long),
        Spec::new("_file", DataType::String),
        Spec::new("_line", DataType::Long),
        Spec::new("_event_time", DataType::Timestamp),
        Spec::new("_ingested_at", DataType::Timestamp),
        Spec::new("_rescued_data", DataType::String),
    ]
}
