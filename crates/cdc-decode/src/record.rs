//! What a decoder is given.

/// One record of a source, borrowed from the reader's buffers.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Kafka topic, or empty for files that hold none.
    pub topic: &'a str,
    /// Kafka partition.
    pub partition: i32,
    /// Kafka offset.
    pub offset: i64,
    /// Key bytes; `None` = null.
    pub key: Option<&'a [u8]>,
    /// Value bytes; `None` = null (a tombstone).
    pub value: Option<&'a [u8]>,
    /// Headers in their order.
    pub headers: &'a [Header<'a>],
    /// The broker's or producer's timestamp, ms since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The file it was read from, as `_file` shall say.
    pub file: Option<&'a str>,
    /// Its line in that file, counted from 1.
    pub line: Option<i64>,
}

impl<'a> Record<'a> {
    /// A record that is nothing but bytes: a line of a file.
    pub fn line_of_file(file: &'a str, line: i64, value: &'a [u8]) -> Self {
        Self { value: Some(value), file: Some(file), line: Some(line), ..Self::at("", 0, 0) }
    }

    /// A record at a place of a topic, with nothing in it.
    pub fn at(topic: &'a str, partition: i32, offset: i64) -> Self {
        Self { topic, partition, offset, key: None, value: None, headers: &[], timestamp_ms: None, file: None, line: None }
    }

    /// Where it is, as a person looks for it.
    pub(crate) fn place(&self) -> String {
        match (self.file, self.line) {
            (Some(file), Some(line)) => format!("file {file}, line {line}"),
            _ => format!("topic {}, partition {}, offset {}", self.topic, self.partition, self.offset),
        }
    }
}

/// One header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The header's name; names may repeat.
    pub key: &'a str,
    /// Its bytes; `None` = null.
    pub value: Option<&'a [u8]>,
}
