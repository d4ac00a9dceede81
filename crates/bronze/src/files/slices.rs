//! A file as slices of records.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tributary_specs::FileFormat;

use super::content::Content;
use super::csv::{CsvCutter, Dialect, split};
use super::kafka::KafkaLine;
use super::lines::LineCutter;
use super::piece::{CutFault, Piece};
use crate::ledger::ContentId;
use crate::{Error, Result};

/// Content handed to the cutter at a time.
const STEP: usize = 64 << 10;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a file is cut, and how much of it is held at once.
#[derive(Debug, Clone)]
pub(crate) struct CutRules {
    pub format: FileFormat,
    pub dialect: Dialect,
    /// For CSV: whether the first record names the columns.
    pub header: bool,
    pub record_bytes_max: usize,
    pub slice_records: usize,
    pub slice_bytes: usize,
}

/// A record of a file, before it is decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileRecord {
    /// None where the format has no topics.
    pub topic: Option<Arc<str>>,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub timestamp_ms: Option<i64>,
    pub line: i64,
    /// Where it begins and ends in the content.
    pub start: u64,
    pub end: u64,
}

/// Bytes of a file that are no record.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub line: i64,
    pub start: u64,
    pub end: u64,
    pub bytes: Vec<u8>,
    pub reason: &'static str,
    pub message: String,
}

/// A line that is no recorded record.
const KAFKA_LINE: &str = "kafka_line";

impl Broken {
    /// Whether records are refused for this because bytes are no record, so that they cannot be decoded however the feed is declared.
    pub(crate) fn is_reason(reason: &str) -> bool {
        reason == KAFKA_LINE || [CutFault::TooLong, CutFault::UnclosedQuote].iter().any(|fault| fault.code() == reason)
    }
}

/// Some records of one file, in their order.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// For CSV with a header: the names of the columns.
    pub header: Option<Arc<[String]>>,
    pub records: Vec<FileRecord>,
    pub broken: Vec<Broken>,
}

enum Cutter {
    Lines(LineCutter),
    Csv(CsvCutter),
}

/// A file being cut. Faults of the file as a whole (encoding, header) come with the first slice, before any record.
pub(crate) struct Slices {
    name: String,
    content: Content,
    rules: CutRules,
    cutter: Option<Cutter>,
    header: Option<Arc<[String]>>,
    pending: Bytes,
    pieces: std::collections::VecDeque<Piece>,
    topics: HashSet<Arc<str>>,
    hasher: Sha256,
    ended: bool,
}

impl Slices {
    pub(crate) fn new(name: &str, content: Content, rules: CutRules) -> Self {
        Self {
            name: name.to_owned(),
            content,
            rules,
            cutter: None,
            header: None,
            pending: Bytes::new(),
            pieces: std::collections::VecDeque::new(),
            topics: HashSet::new(),
            hasher: Sha256::new(),
            ended: false,
        }
    }

    /// The next records; none at the end of the file.
    pub(crate) async fn next(&mut self) -> Result<Option<Slice>> {
        let mut slice = Slice::default();
        let mut bytes = 0;
        loop {
            while let Some(piece) = self.pieces.pop_front() {
                bytes += piece.bytes.len();
                if self.awaits_header() {
                    self.header = Some(header(&self.name, &piece, self.rules.dialect)?);
                    continue;
                }
                self.place(piece, &mut slice);
                if slice.records.len() + slice.broken.len() >= self.rules.slice_records || bytes >= self.rules.slice_bytes {
                    slice.header = self.header.clone();
                    return Ok(Some(slice));
                }
            }
            if self.ended {
                slice.header = self.header.clone();
                return Ok((!slice.records.is_empty() || !slice.broken.is_empty()).then_some(slice));
            }
            self.advance().await?;
        }
    }

    /// What the content was, after its end.
    pub(crate) fn content_id(&self) -> ContentId {
        ContentId(self.hasher.clone().finalize().into())
    }

    fn awaits_header(&self) -> bool {
        self.rules.format == FileFormat::Csv && self.rules.header && self.header.is_none()
    }

    async fn advance(&mut self) -> Result<()> {
        let mut out = Vec::new();
        if self.cutter.is_none() {
            self.begin().await?;
        }
        if self.pending.is_empty() {
            self.pending = self.read().await?;
        }
        let step = self.pending.split_to(STEP.min(self.pending.len()));
        match (&mut self.cutter, step.is_empty()) {
            (Some(Cutter::Lines(cutter)), false) => cutter.push(&step, &mut out),
            (Some(Cutter::Lines(cutter)), true) => cutter.finish(&mut out),
            (Some(Cutter::Csv(cutter)), false) => cutter.push(&step, &mut out),
            (Some(Cutter::Csv(cutter)), true) => cutter.finish(&mut out),
            (None, _) => {}
        }
        self.ended = step.is_empty();
        self.pieces.extend(out);
        Ok(())
    }

    /// Looks at the first bytes: a UTF-8 mark is passed over, UTF-16 and UTF-32 are refused.
    async fn begin(&mut self) -> Result<()> {
        let mut first = Vec::new();
        while first.len() < UTF8_MARK.len() {
            let bytes = self.read().await?;
            if bytes.is_empty() {
                break;
            }
            first.extend_from_slice(&bytes);
        }
        if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
            return Err(Error::Encoding { path: self.name.clone(), found: "UTF-16".to_owned() });
        }
        let mut pending = Bytes::from(first);
        let start = if pending.starts_with(UTF8_MARK) { pending.split_to(UTF8_MARK.len()).len() } else { 0 };
        self.pending = pending;
        let longest = self.rules.record_bytes_max;
        self.cutter = Some(match self.rules.format {
            FileFormat::Csv => Cutter::Csv(CsvCutter::new(self.rules.dialect, longest, start as u64)),
            FileFormat::Jsonl | FileFormat::KafkaJsonl => Cutter::Lines(LineCutter::new(longest, start as u64)),
        });
        Ok(())
    }

    async fn read(&mut self) -> Result<Bytes> {
        let bytes = self.content.next().await?.unwrap_or_default();
        self.hasher.update(&bytes);
        Ok(bytes)
    }

    fn place(&mut self, piece: Piece, slice: &mut Slice) {
        let Piece { line, start, end, bytes, fault } = piece;
        if let Some(fault) = fault {
            slice.broken.push(Broken { line, start, end, bytes, reason: fault.code(), message: fault.message().to_owned() });
            return;
        }
        if self.rules.format != FileFormat::KafkaJsonl {
            slice.records.push(FileRecord { value: Some(bytes), line, start, end, ..FileRecord::default() });
            return;
        }
        match KafkaLine::parse(&bytes) {
            Ok(mut record) => slice.records.push(FileRecord {
                headers: record.take_headers(),
                timestamp_ms: record.timestamp_ms(),
                topic: Some(self.topic(record.topic)),
                partition: record.partition,
                offset: record.offset,
                key: record.key.map(String::into_bytes),
                value: record.value.map(String::into_bytes),
                line,
                start,
                end,
            }),
            Err(message) => slice.broken.push(Broken { line, start, end, bytes, reason: KAFKA_LINE, message }),
        }
    }

    fn topic(&mut self, topic: String) -> Arc<str> {
        if let Some(known) = self.topics.get(topic.as_str()) {
            return Arc::clone(known);
        }
        let topic: Arc<str> = topic.into();
        self.topics.insert(Arc::clone(&topic));
        topic
    }
}

/// The column names of a CSV header.
fn header(path: &str, piece: &Piece, dialect: Dialect) -> Result<Arc<[String]>> {
    let refused = |reason: &str| Error::Header { path: path.to_owned(), reason: reason.to_owned() };
    if piece.fault.is_some() {
        return Err(refused("a quoted name is not closed"));
    }
    let text = std::str::from_utf8(&piece.bytes).map_err(|_| Error::Encoding { path: path.to_owned(), found: "not UTF-8".to_owned() })?;
    let fields = split(text, dialect).map_err(|field| refused(&format!("name {field} has text after its closing quote")))?;
    let mut seen = HashSet::new();
    let mut names = Vec::with_capacity(fields.len());
    for (index, field) in fields.into_iter().enumerate() {
        let name = field.text.into_owned();
        if name.trim().is_empty() {
            return Err(refused(&format!("column {} has no name", index + 1)));
        }
        if !seen.insert(name.to_lowercase()) {
            return Err(Error::RepeatedHeader { path: path.to_owned(), column: name });
        }
        names.push(name);
    }
    Ok(names.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_lake::object_store::memory::InMemory;
    use tributary_lake::object_store::{ObjectStoreExt, path::Path};

    use super::super::listing::{Pattern, list};
    use super::super::root::DataRoot;
    use super::*;

    async fn cut(content: &[u8], rules: CutRules) -> Result<Vec<Slice>> {
        let store = Arc::new(InMemory::new());
        store.put(&Path::from("f"), content.to_vec().into()).await.unwrap();
        let root = DataRoot::wrap(store, "");
        let files = list(&root, &root.place("").unwrap(), "f", "", &Pattern::new("f", None).unwrap()).await.unwrap().files;
        let mut slices = Slices::new("f", Content::open(&root, &files[0]).await?, rules);
        let mut all = Vec::new();
        while let Some(slice) = slices.next().await? {
            all.push(slice);
        }
        assert_eq!(slices.content_id(), ContentId(Sha256::digest(content).into()));
        Ok(all)
    }

    fn rules(format: FileFormat) -> CutRules {
        let dialect = Dialect { delimiter: b',', quote: b'"' };
        CutRules { format, dialect, header: true, record_bytes_max: 1 << 20, slice_records: 1000, slice_bytes: 1 << 20 }
    }

    #[tokio::test]
    async fn slices_are_bounded_in_records() {
        let content: String = (0..2_500).map(|id| format!("{{\"id\":{id}}}\n")).collect();
        let slices = cut(content.as_bytes(), rules(FileFormat::Jsonl)).await.unwrap();
        assert_eq!(slices.iter().map(|slice| slice.records.len()).collect::<Vec<_>>(), [1000, 1000, 500]);
        assert_eq!(slices[2].records[499].line, 2500);
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_no_part_of_the_first_name() {
        let slices = cut(b"\xef\xbb\xbfid,note\n1,a\n", rules(FileFormat::Csv)).await.unwrap();
        assert_eq!(slices[0].header.as_deref(), Some(["id".to_owned(), "note".to_owned()].as_slice()));
        assert_eq!((slices[0].records[0].start, slices[0].records[0].line), (11, 2));
    }

    #[tokio::test]
    async fn utf_16_is_refused_by_name() {
        let error = cut(b"\xff\xfei\0d\0\n\0", rules(FileFormat::Csv)).await.unwrap_err();
        assert_eq!(error.to_string(), "file `f` is UTF-16, only UTF-8 is read");
    }

    #[tokio::test]
    async fn a_repeated_header_name_is_refused_by_name() {
        let error = cut(b"id,Note,note\n1,a,b\n", rules(FileFormat::Csv)).await.unwrap_err();
        assert!(matches!(&error, Error::RepeatedHeader { column, .. } if column == "note"), "{error}");
    }
}
