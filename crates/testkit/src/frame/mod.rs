//! Frames: tables in tests, how they are written down and how two of them differ.
//!
//! One engine, one options value, three doors: [`assert_frames_eq!`](crate::assert_frames_eq) for the common case,
//! [`FrameDiff`] with [`FrameDiff::assert`] for the rest, [`FrameDiff::compute`] for use inside properties. Frames are written
//! with [`frame!`](crate::frame!).
//!
//! A table is a bag: the order of rows and of columns is ignored unless asked for, duplicates count. The schema comes first;
//! while it differs, values are not looked at. Null equals null; floats compare by their bits and NaN equals nothing unless
//! asked; dictionary, view and wide-offset layouts equal their plain type unless asked.

mod array;
mod difference;
mod literal;
mod matching;
mod options;
mod report;
mod schema;
mod text;

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use tributary_specs::Column;

use crate::value::Value;

pub use difference::{ChangedRow, Difference, SchemaDifference};
pub use options::FrameDiff;

/// A table held in memory: one schema, rows in order.
#[derive(Clone, PartialEq)]
pub struct Frame(RecordBatch);

impl Frame {
    /// Batches of one schema, one after the other; without any batch an empty table of that schema.
    pub fn new(schema: SchemaRef, batches: &[RecordBatch]) -> Self {
        Self(arrow_select::concat::concat_batches(&schema, batches).expect("batches of one schema"))
    }

    /// Rows of values in the order of the schema's fields.
    ///
    /// # Panics
    /// When a row is not as long as the schema, or a value does not fit its column.
    pub fn from_rows(schema: SchemaRef, rows: &[Vec<Value>]) -> Self {
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), schema.fields().len(), "row {at} has {} values for {} columns", row.len(), schema.fields().len());
        }
        let columns = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(at, field)| array::from_values(field, rows.iter().map(|row| &row[at]).collect()))
            .collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Self(RecordBatch::try_new_with_options(schema, columns, &options).expect("rows that fit the schema"))
    }

    /// Rows of values under these columns.
    ///
    /// # Panics
    /// As [`Self::from_rows`].
    pub fn of(columns: &[Column], rows: &[Vec<Value>]) -> Self {
        Self::from_rows(SchemaRef::new(Column::all_to_arrow(columns)), rows)
    }

    /// JSON objects under these columns: numbers, text and nested values in the forms of [`frame!`](crate::frame!); what an
    /// object does not have is null.
    ///
    /// # Panics
    /// When a value does not fit its column; the message names row and column.
    pub fn from_json<'a>(columns: &[Column], rows: impl IntoIterator<Item = &'a serde_json::Value>) -> Self {
        let value = |at: usize, row: &serde_json::Value, column: &Column| {
            let json = row.get(&column.name).unwrap_or(&serde_json::Value::Null);
            text::from_json(json, &column.data_type.to_arrow()).unwrap_or_else(|why| panic!("row {at}, column {}: {why}", column.name))
        };
        let row = |(at, row)| columns.iter().map(|column| value(at, row, column)).collect();
        Self::of(columns, &rows.into_iter().enumerate().map(row).collect::<Vec<_>>())
    }

    /// The text of [`frame!`](crate::frame!).
    ///
    /// # Panics
    /// When the text is not a frame; the message names line and column.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        literal::parse(text).unwrap_or_else(|problem| panic!("not a frame: {problem}"))
    }

    /// The table as one batch.
    pub fn batch(&self) -> &RecordBatch {
        &self.0
    }

    /// The table as one batch.
    pub fn into_batch(self) -> RecordBatch {
        self.0
    }

    /// Its schema.
    pub fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.0.num_rows()
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its rows as values, in order.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let columns: Vec<Vec<Value>> = self.0.columns().iter().map(|column| array::to_values(column)).collect();
        (0..self.len()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
    }

    /// The same table with these columns only, in this order.
    ///
    /// # Panics
    /// When one of them is missing.
    #[track_caller]
    pub fn select(&self, names: &[&str]) -> Self {
        let schema = self.schema();
        let at: Vec<usize> = names
            .iter()
            .map(|name| schema.index_of(name).unwrap_or_else(|_| panic!("there is no column {name:?} among {:?}", names_of(&schema))))
            .collect();
        Self(self.0.project(&at).expect("columns that exist"))
    }
}

fn names_of(schema: &Schema) -> Vec<&String> {
    schema.fields().iter().map(|field| field.name()).collect()
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&literal::table(self))
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl From<RecordBatch> for Frame {
    fn from(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

impl From<&RecordBatch> for Frame {
    fn from(batch: &RecordBatch) -> Self {
        Self(batch.clone())
    }
}

impl From<&Frame> for Frame {
    fn from(frame: &Frame) -> Self {
        frame.clone()
    }
}

impl From<&[RecordBatch]> for Frame {
    /// No batch at all is the table without columns and rows; use [`Frame::new`] where the schema is known.
    fn from(batches: &[RecordBatch]) -> Self {
        let schema = batches.first().map_or_else(|| SchemaRef::new(Schema::empty()), RecordBatch::schema);
        Self::new(schema, batches)
    }
}

impl From<Vec<RecordBatch>> for Frame {
    fn from(batches: Vec<RecordBatch>) -> Self {
        Self::from(batches.as_slice())
    }
}

impl From<&Vec<RecordBatch>> for Frame {
    fn from(batches: &Vec<RecordBatch>) -> Self {
        Self::from(batches.as_slice())
    }
}

/// A table written as a table: a header `name: type` (with `!` for not null), rows below, cells parted by `|`.
///
/// Types are Delta's (`long`, `decimal(12,2)`, `array<string>`) or Arrow's (`UInt64`, `Timestamp(ms)`). Text may stand bare or
/// as JSON text; `null` is null, `"null"` the word. Lists and structs are JSON, maps JSON lists of pairs, bytes `0x…`; dates
/// and timestamps ISO, or `@ticks`. Names that are not words stand in back-quotes.
///
/// ```
/// # use tributary_testkit::frame;
/// let orders = frame!("
///     order_id: long! | status: string | amount: decimal(12,2)
///     1               | paid           | 10.50
///     2               | null           | null
/// ");
/// assert_eq!(orders.len(), 2);
/// ```
#[macro_export]
macro_rules! frame {
    ($text:expr) => {
        $crate::Frame::parse($text)
    };
}

/// Two tables are the same bag of rows; the message says how they differ and ends with the actual table, to paste.
///
/// ```
/// # use tributary_testkit::{assert_frames_eq, frame};
/// let actual = frame!("
///     id: long
///     2
///     1
/// ");
/// assert_frames_eq!(actual, frame!("
///     id: long
///     1
///     2
/// "));
/// ```
#[macro_export]
macro_rules! assert_frames_eq {
    ($actual:expr, $expected:expr $(,)?) => {
        $crate::FrameDiff::between($actual, $expected).assert()
    };
}
