//! Records of one partition in one arena: no allocation a record.

use std::ops::Range;

use rdkafka::message::{BorrowedMessage, Headers, Message};
use tributary_cdc_decode::{Header, Record};

use crate::kafka::Place;

/// Consecutive records of a partition.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub place: Place,
    bytes: Vec<u8>,
    records: Vec<Entry>,
    headers: Vec<HeaderEntry>,
}

#[derive(Debug)]
struct Entry {
    offset: i64,
    timestamp_ms: Option<i64>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Range<usize>,
}

#[derive(Debug)]
struct HeaderEntry {
    key: Range<usize>,
    value: Option<Range<usize>>,
}

impl Chunk {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, bytes: Vec::new(), records: Vec::new(), headers: Vec::new() }
    }

    /// An empty chunk of the partition, with room for as much as this one holds.
    pub(super) fn another(&self) -> Self {
        let (bytes, records) = (Vec::with_capacity(self.bytes.len()), Vec::with_capacity(self.records.len()));
        Self { place: self.place.clone(), bytes, records, headers: Vec::with_capacity(self.headers.len()) }
    }

    pub(super) fn push(&mut self, message: &BorrowedMessage<'_>) {
        let first = self.headers.len();
        if let Some(headers) = message.headers() {
            for index in 0..headers.count() {
                let Some((key, value)) = header(headers, index) else { continue };
                let (key, value) = (self.copy(key.as_bytes()), value.map(|value| self.copy(value)));
                self.headers.push(HeaderEntry { key, value });
            }
        }
        let entry = Entry {
            offset: message.offset(),
            timestamp_ms: message.timestamp().to_millis(),
            key: message.key().map(|key| self.copy(key)),
            value: message.payload().map(|value| self.copy(value)),
            headers: first..self.headers.len(),
        };
        self.records.push(entry);
    }

    /// Records of the same partition that come behind these.
    pub(super) fn append(&mut self, later: Self) {
        let (bytes, headers) = (self.bytes.len(), self.headers.len());
        let moved = |range: Range<usize>| range.start + bytes..range.end + bytes;
        self.bytes.extend_from_slice(&later.bytes);
        self.headers.extend(later.headers.into_iter().map(|header| HeaderEntry { key: moved(header.key), value: header.value.map(moved) }));
        self.records.extend(later.records.into_iter().map(|record| Entry {
            key: record.key.map(moved),
            value: record.value.map(moved),
            headers: record.headers.start + headers..record.headers.end + headers,
            ..record
        }));
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        from..self.bytes.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn first(&self) -> Option<i64> {
        self.records.first().map(|record| record.offset)
    }

    pub(crate) fn last(&self) -> Option<i64> {
        self.records.last().map(|record| record.offset)
    }

    /// The headers of all records, one after the other, to be lent to [`Self::records`].
    pub(crate) fn headers(&self) -> Vec<Header<'_>> {
        // A header's name was a text when it was copied.
        let text = |range: &Range<usize>| std::str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default();
        let value = |range: &Range<usize>| &self.bytes[range.clone()];
        self.headers.iter().map(|header| Header { key: text(&header.key), value: header.value.as_ref().map(value) }).collect()
    }

    pub(crate) fn records<'a>(&'a self, headers: &'a [Header<'a>]) -> Vec<Record<'a>> {
        let slice = |range: &Range<usize>| &self.bytes[range.clone()];
        let record = |entry: &'a Entry| Record {
            topic: &self.place.topic,
            partition: self.place.partition,
            offset: entry.offset,
            key: entry.key.as_ref().map(slice),
            value: entry.value.as_ref().map(slice),
            headers: &headers[entry.headers.clone()],
            timestamp_ms: entry.timestamp_ms,
            file: None,
            line: None,
        };
        self.records.iter().map(record).collect()
    }
}

/// A header with its name as text. The client's library panics on a name that is no UTF-8; such a header has no name we could keep.
fn header<H: Headers>(headers: &H, index: usize) -> Option<(&str, Option<&[u8]>)> {
    let read = std::panic::AssertUnwindSafe(|| headers.try_get(index).map(|header| (header.key, header.value)));
    std::panic::catch_unwind(read).unwrap_or(Some(("\u{fffd}", None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(offset: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&str, Option<&[u8]>)]) -> Chunk {
        let mut chunk = Chunk::new(Place { topic: "t".into(), partition: 7 });
        for (name, value) in headers {
            let (key, value) = (chunk.copy(name.as_bytes()), value.map(|value| chunk.copy(value)));
            chunk.headers.push(HeaderEntry { key, value });
        }
        let (key, value) = (key.map(|key| chunk.copy(key)), value.map(|value| chunk.copy(value)));
        chunk.records.push(Entry { offset, timestamp_ms: Some(offset), key, value, headers: 0..headers.len() });
        chunk
    }

    #[test]
    fn records_appended_keep_their_bytes_and_headers_apart() {
        let mut both = chunk(3, Some(b"k"), None, &[("a", Some(b"1")), ("a", None)]);
        both.append(chunk(9, None, Some(b"value"), &[("b", Some(b""))]));
        let headers = both.headers();
        let records = both.records(&headers);
        assert_eq!((both.first(), both.last(), records[0].topic, records[1].partition), (Some(3), Some(9), "t", 7));
        assert_eq!((records[0].key, records[0].value), (Some(&b"k"[..]), None));
        assert_eq!(records[0].headers, [Header { key: "a", value: Some(b"1") }, Header { key: "a", value: None }]);
        assert_eq!((records[1].key, records[1].value, records[1].timestamp_ms), (None, Some(&b"value"[..]), Some(9)));
        assert_eq!(records[1].headers, [Header { key: "b", value: Some(b"") }]);
    }
}
