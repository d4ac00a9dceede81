//! The decoder of one feed.

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_specs::{Column, SourceFeed};

use crate::decoded::{Decoded, Resume};
use crate::error::Error;
use crate::record::Record;

/// Turns the records of one feed into batches of its bronze table; one a feed, kept between batches.
///
/// It holds the schema so far, the last position of each partition and the epoch. It reads no clock and no environment.
#[derive(Debug)]
pub struct Decoder {
    feed: SourceFeed,
    columns: Vec<Column>,
}

impl Decoder {
    /// A decoder for a table that does not exist yet; [`Decoder::resume`] tells it what an existing one holds.
    ///
    /// # Errors
    /// [`Error::Declaration`] when the feed's columns or properties contradict each other.
    pub fn new(feed: &SourceFeed) -> Result<Self, Error> {
        Ok(Self { feed: feed.clone(), columns: Vec::new() })
    }

    /// Takes up where the table is. Call once, before the first [`Decoder::decode`].
    pub fn resume(&mut self, resume: Resume) {
        self.columns = resume.columns;
    }

    /// Names the fields of the CSV records that follow (a file's header line); needed for `Decode::Csv` with a header,
    /// at the start of each file.
    ///
    /// # Errors
    /// [`Error::CsvHeader`] for a repeated or empty name.
    pub fn csv_header(&mut self, names: &[&str]) -> Result<(), Error> {
        let _ = names;
        Ok(())
    }

    /// Every column of the bronze table as known so far: business columns, then ours.
    ///
    /// Before the first batch of a feed without declared columns there are no business columns yet.
    pub fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }

    /// Decodes records in their order. Never panics, whatever the bytes.
    ///
    /// `ingested_at_us` (µs since the epoch) becomes `_ingested_at` of every row.
    pub fn decode(&mut self, records: &[Record<'_>], ingested_at_us: i64) -> Decoded {
        let _ = (records, ingested_at_us, &self.feed);
        Decoded {
            batch: RecordBatch::new_empty(Arc::new(Schema::empty())),
            rejects: Vec::new(),
            ignored: BTreeMap::new(),
            schema_change: None,
            notes: BTreeMap::new(),
            duplicate_keys: 0,
            stop: None,
        }
    }
}
