//! Records as they came, for `Decode::Raw`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType as Arrow, Schema};
use tributary_specs::{Column as Spec, DataType};

use crate::decoded::Decoded;
use crate::error::Error;
use crate::record::Record;

/// Builds batches of raw records.
#[derive(Debug, Default)]
pub(crate) struct Raw;

impl Raw {
    /// The columns of a raw table.
    pub(crate) fn columns() -> Vec<Spec> {
        let header = DataType::Struct(vec![Spec::new("key", DataType::String), Spec::new("value", DataType::Binary)]);
        vec![
            Spec::new("key", DataType::Binary),
            Spec::new("value", DataType::Binary),
            Spec::new("topic", DataType::String),
            Spec::new("partition", DataType::Integer),
            Spec::new("offset", DataType::Long),
            Spec::new("timestamp", DataType::Timestamp),
            Spec::new("headers", DataType::Array(Box::new(header))),
            Spec::new("_file", DataType::String),
            Spec::new("_line", DataType::Long),
            Spec::new("_ingested_at", DataType::Timestamp),
        ]
    }

    /// Every record is a row.
    pub(crate) fn decode(&mut self, feed: &str, records: &[Record<'_>], ingested_at_us: i64) -> Decoded {
        let built = build(records, ingested_at_us);
        let (batch, stop) = match built {
            Ok(batch) => (batch, None),
            Err(problem) => (
                RecordBatch::new_empty(Arc::new(Schema::empty())),
                Some(Error::Inconsistent { feed: feed.to_owned(), problem: problem.to_string() }),
            ),
        };
        Decoded {
            batch,
            rejects: Vec::new(),
            ignored: BTreeMap::new(),
            schema_change: None,
            notes: BTreeMap::new(),
            duplicate_keys: 0,
            stop,
        }
    }
}

fn build(records: &[Record<'_>], ingested_at_us: i64) -> Result<RecordBatch, ArrowError> {
    let rows = records.len();
    let (mut key, mut value) = (BinaryBuilder::with_capacity(rows, 0), BinaryBuilder::with_capacity(rows, 0));
    let (mut topic, mut file) = (StringBuilder::with_capacity(rows, 0), StringBuilder::with_capacity(rows, 0));
    let mut partition = Int32Builder::with_capacity(rows);
    let (mut offset, mut line) = (Int64Builder::with_capacity(rows), Int64Builder::with_capacity(rows));
    let mut timestamp = TimestampMicrosecondBuilder::with_capacity(rows);
    let mut ingested_at = TimestampMicrosecondBuilder::with_capacity(rows);
    let (mut header_key, mut header_value) = (StringBuilder::new(), BinaryBuilder::new());
    for record in records {
        let of_topic = !record.topic.is_empty();
        key.append_option(record.key);
        value.append_option(record.value);
        topic.append_option(of_topic.then_some(record.topic));
        partition.append_option(of_topic.then_some(record.partition));
        offset.append_option(of_topic.then_some(record.offset));
        timestamp.append_option(record.timestamp_ms.and_then(|ms| ms.checked_mul(1000)));
        for header in record.headers {
            header_key.append_value(header.key);
            header_value.append_option(header.value);
        }
        file.append_option(record.file);
        line.append_option(record.line);
        ingested_at.append_value(ingested_at_us);
    }
    let columns = Raw::columns();
    let schema = Arc::new(Schema::new(columns.iter().map(Spec::to_arrow).collect::<Vec<_>>()));
    let lengths = OffsetBuffer::from_lengths(records.iter().map(|record| record.headers.len()));
    let headers = headers(&schema, lengths, Arc::new(header_key.finish()), Arc::new(header_value.finish()))?;
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(key.finish()),
        Arc::new(value.finish()),
        Arc::new(topic.finish()),
        Arc::new(partition.finish()),
        Arc::new(offset.finish()),
        Arc::new(timestamp.finish().with_timezone("UTC")),
        headers,
        Arc::new(file.finish()),
        Arc::new(line.finish()),
        Arc::new(ingested_at.finish().with_timezone("UTC")),
    ];
    RecordBatch::try_new(schema, arrays)
}

fn headers(schema: &Schema, lengths: OffsetBuffer<i32>, keys: ArrayRef, values: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Arrow::List(element) = schema.field_with_name("headers")?.data_type() else {
        return Err(ArrowError::SchemaError("headers are no list".to_owned()));
    };
    let Arrow::Struct(fields) = element.data_type() else {
        return Err(ArrowError::SchemaError("headers are no structs".to_owned()));
    };
    let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), lengths, Arc::new(entries), None)?))
}
