//! What one commit of one feed will hold: files written, positions, rejects.

mod commit;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tributary_cdc_decode::{Decoded, Header, Record};
use tributary_lake::arrow::array::{AsArray, RecordBatch};
use tributary_lake::arrow::compute::max;
use tributary_lake::arrow::datatypes::TimestampMicrosecondType;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{CommitOutcome, DataWriter, Lake, NewFile, Table, WriterOptions};
use tributary_specs::{Column, PassedGap, Source};

use crate::files::{Broken, CutFault, FileRecord};
use crate::headers::lent;
use crate::lane::{Lane, Race, grown};
use crate::ledger::{ContentId, Entry};
use crate::quarantine::{self, Parked, Refused, Spot};
use crate::tally::Counts;
use crate::widen::widen;
use crate::writing::Writing;
use crate::{Error, Result, events, file_columns};

pub(crate) use commit::race;

/// The file that records come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub file: &'a str,
    /// SHA-256 of its content.
    pub content: &'a str,
    /// Bytes as stored, and when it was changed: microseconds since 1970.
    pub size: u64,
    pub modified_us: i64,
    /// The names in its header, for CSV with one: without them a record cannot be decoded later.
    pub header: &'a [Header<'a>],
}

/// A position of a source that is not files.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub app_id: String,
    /// Where bronze is, where the quarantine is, and where both will be.
    pub bronze: Option<i64>,
    pub quarantine: Option<i64>,
    pub next: i64,
}

/// Why a batch is given up and its input read again.
enum Spoiled {
    /// The table was widened under it.
    Widened,
    Lost(Race),
}

/// What one commit of one feed will hold.
pub(crate) struct LaneBatch {
    now_us: i64,
    pub entries: Vec<Entry>,
    /// Contents of `entries`, and what they begin with of contents that the table was made of.
    contents: HashSet<ContentId>,
    pub positions: Vec<Position>,
    pub parked: Parked,
    /// Quarantine rows of half a record at the end of a file that has grown since.
    pub completed: BTreeSet<Spot>,
    pub remarks: BTreeSet<String>,
    /// Gaps that the positions pass over.
    pub gaps: Vec<PassedGap>,
    /// Records of no feed, by topic.
    pub unrouted: BTreeMap<String, u64>,
    pub counts: Counts,
    writer: Option<Writing>,
    files: Vec<NewFile>,
    /// The table's columns after the commit, where it adds some.
    columns: Option<Vec<Column>>,
    refused: Option<DataWriter>,
    refused_rows: u64,
    spoiled: Option<Spoiled>,
}

/// How a commit ended.
pub(crate) enum Ended {
    Committed,
    /// There was nothing to write, or no table to write it to.
    Nothing,
    /// The table was widened instead: the input is read again.
    Widened,
    Lost(Race),
}

impl LaneBatch {
    pub(crate) fn new(now_us: i64) -> Self {
        Self {
            now_us,
            entries: Vec::new(),
            contents: HashSet::new(),
            positions: Vec::new(),
            parked: Parked::default(),
            completed: BTreeSet::new(),
            remarks: BTreeSet::new(),
            gaps: Vec::new(),
            unrouted: BTreeMap::new(),
            counts: Counts::default(),
            writer: None,
            files: Vec::new(),
            columns: None,
            refused: None,
            refused_rows: 0,
            spoiled: None,
        }
    }

    /// Takes a file into the commit; `begins_with` are contents taken before that it has grown from.
    pub(crate) fn take(&mut self, entry: Entry, begins_with: impl Iterator<Item = ContentId>) {
        self.contents.insert(entry.id);
        self.contents.extend(begins_with);
        self.entries.push(entry);
    }

    /// Whether a file of the commit has this content, or has grown from it.
    pub(crate) fn holds(&self, id: &ContentId) -> bool {
        self.contents.contains(id)
    }

    /// Decodes records of a file and writes what they are.
    pub(crate) async fn absorb_of_file(&mut self, lane: &mut Lane, lake: &Lake, origin: Origin<'_>, records: &[&FileRecord]) -> Result<()> {
        let headers: Vec<Vec<Header<'_>>> = records.iter().map(|record| lent(&record.headers)).collect();
        let given: Vec<Record<'_>> = records.iter().zip(&headers).map(|(record, headers)| given(record, headers, origin)).collect();
        self.absorb(lane, lake, Some(origin), &given).await
    }

    /// Decodes records and writes what they are. `origin` is the file they come from, where they come from one.
    pub(crate) async fn absorb(&mut self, lane: &mut Lane, lake: &Lake, origin: Option<Origin<'_>>, records: &[Record<'_>]) -> Result<()> {
        if self.spoiled.is_some() {
            return Ok(());
        }
        lane.make_ready(lake).await?;
        // Files are cut into records no longer than that.
        let is_long = |record: &&Record<'_>| origin.is_none() && length(record) > lane.record_bytes_max;
        let (long, short): (Vec<Record<'_>>, Vec<Record<'_>>);
        let records = if records.iter().any(|record| is_long(&record)) {
            (long, short) = records.iter().partition(is_long);
            self.absorb_too_long(lane, lake, &long).await?;
            short.as_slice()
        } else {
            records
        };
        lane.teach(records).await?;
        let mut decoded = lane.decoder.decode(records, self.now_us);
        lane.forget_unshown(&mut decoded)?;
        if let Some(source) = decoded.stop {
            return Err(Error::Decode { table: lane.feed.table.clone(), source: Box::new(source) });
        }
        if let (Some(table), Some(change)) = (lane.bronze.clone(), &decoded.schema_change)
            && !change.widened.is_empty()
        {
            return self.widen(lane, &table, &change.widened).await;
        }
        self.count(lane, records, &decoded)?;
        if decoded.batch.num_rows() > 0 {
            let failed = |source: ArrowError| Error::lake(&lane.feed.table, "telling of files", source.into());
            let rows = file_columns::with(&lane.feed, decoded.batch.clone(), origin.as_ref()).map_err(failed)?;
            self.write(lane, lake, &rows).await?;
        }
        let refused: Vec<_> = decoded
            .rejects
            .iter()
            .filter_map(|reject| records.get(reject.index).map(|record| (record, reject)))
            .map(|(record, reject)| refused(record, origin, reject.reason.as_str(), &reject.message))
            .collect();
        self.refuse(lane, lake, refused).await
    }

    /// Quarantines records that are longer than one may be.
    async fn absorb_too_long(&mut self, lane: &mut Lane, lake: &Lake, records: &[Record<'_>]) -> Result<()> {
        let fault = CutFault::TooLong;
        self.counts.rows_in += records.len() as u64;
        self.counts.quarantine(fault.code(), records.len() as u64);
        self.counts.bytes += records.iter().map(|record| length(record) as u64).sum::<u64>();
        let refused = records.iter().map(|record| refused(record, None, fault.code(), fault.message())).collect();
        self.refuse(lane, lake, refused).await
    }

    /// Quarantines bytes that are no record.
    pub(crate) async fn absorb_broken(&mut self, lane: &mut Lane, lake: &Lake, origin: Origin<'_>, broken: &[&Broken]) -> Result<()> {
        if self.spoiled.is_some() {
            return Ok(());
        }
        lane.make_ready(lake).await?;
        self.counts.rows_in += broken.len() as u64;
        broken.iter().for_each(|broken| self.counts.quarantine(broken.reason, 1));
        self.counts.bytes += broken.iter().map(|broken| broken.bytes.len() as u64).sum::<u64>();
        let refused = broken.iter().map(|broken| Refused {
            reason: broken.reason,
            message: &broken.message,
            value: Some(&broken.bytes),
            file: Some(origin.file),
            content: Some(origin.content),
            line: Some(broken.line),
            ..Refused::default()
        });
        let refused = refused.collect();
        self.refuse(lane, lake, refused).await
    }

    fn count(&mut self, lane: &Lane, records: &[Record<'_>], decoded: &Decoded) -> Result<()> {
        let mut counts = Counts {
            rows_in: records.len() as u64,
            rows_out: decoded.batch.num_rows() as u64,
            newest_us: newest_event(&decoded.batch),
            bytes: records.iter().map(|record| record.value.map_or(0, <[u8]>::len) as u64).sum(),
            ..Counts::default()
        };
        decoded.ignored.iter().for_each(|(reason, records)| counts.ignore(reason.as_str(), *records));
        decoded.rejects.iter().for_each(|reject| counts.quarantine(reject.reason.as_str(), 1));
        counts.check(&lane.feed.table)?;
        decoded.notes.iter().for_each(|(note, times)| counts.note(note.clone(), *times));
        if decoded.duplicate_keys > 0 {
            counts.note("JSON keys that came twice in one object; the last was taken".to_owned(), decoded.duplicate_keys);
        }
        if let Some(change) = decoded.schema_change.as_ref().filter(|_| lane.bronze.is_some()) {
            change.added.iter().for_each(|column| counts.note(format!("column {} added as {}", column.name, column.data_type), 1));
        }
        self.counts.add(counts);
        Ok(())
    }

    /// Widens the table now and gives the batch up: its files have the narrow types.
    async fn widen(&mut self, lane: &mut Lane, table: &Table, widened: &[Column]) -> Result<()> {
        let Some(columns) = grown(table.columns(), &lane.columns()) else { return Ok(()) };
        if let Some(anew) = &mut lane.anew {
            anew.columns = columns;
            self.spoiled = Some(Spoiled::Widened);
            return Ok(());
        }
        let outcome = widen(table, columns).await?;
        if let CommitOutcome::Committed { version } = outcome {
            lane.tally.widened(widened, version);
        }
        self.spoiled = Some(race(table, outcome).map_or(Spoiled::Widened, Spoiled::Lost));
        Ok(())
    }

    async fn write(&mut self, lane: &mut Lane, lake: &Lake, batch: &RecordBatch) -> Result<()> {
        let table = lane.ensure_bronze(lake).await?;
        let failed = |source| Error::lake(table.name(), "writing rows", source);
        let columns = grown(table.columns(), &lane.columns());
        if columns != self.columns {
            self.close().await?;
            self.columns = columns;
        }
        if self.writer.is_none() {
            let layout = lane.anew.as_ref().and_then(|anew| anew.lies.clone());
            let options = WriterOptions { columns: self.columns.clone(), layout, ..WriterOptions::default() };
            self.writer = Some(Writing::start(table.name().clone(), table.writer(options).map_err(failed)?));
        }
        match &mut self.writer {
            Some(writer) => writer.write(batch.clone()).await,
            None => Ok(()),
        }
    }

    /// Completes the files written so far.
    async fn close(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.files.extend(writer.finish().await?);
        }
        Ok(())
    }

    async fn refuse(&mut self, lane: &mut Lane, lake: &Lake, mut refused: Vec<Refused<'_>>) -> Result<()> {
        let by_topic = matches!(lane.feed.source, Source::Kafka(_));
        refused.retain(|record| spot(record, by_topic).is_none_or(|spot| !self.parked.take(&spot)));
        if refused.is_empty() {
            return Ok(());
        }
        let table = lane.ensure_quarantine(lake).await?;
        let failed = |source| Error::lake(table.name(), "writing quarantine rows", source);
        let rows = quarantine::rows(&refused, self.now_us).map_err(|source| failed(source.into()))?;
        if self.refused.is_none() {
            self.refused = Some(table.writer(WriterOptions::default()).map_err(failed)?);
        }
        if let Some(writer) = &mut self.refused {
            writer.write(&rows).await.map_err(failed)?;
        }
        self.refused_rows += refused.len() as u64;
        Ok(())
    }

    /// Gives up what was written. Files that are complete already stay, in no commit, until vacuum; so does what cannot be given up.
    pub(crate) async fn abandon(self) {
        if let Some(writer) = self.writer {
            writer.abandon().await;
        }
        if let Some(Err(error)) = futures::future::OptionFuture::from(self.refused.map(DataWriter::abandon)).await {
            events::not_abandoned(&error);
        }
    }
}

/// The newest time of an event at its source, in microseconds.
fn newest_event(rows: &RecordBatch) -> Option<i64> {
    max(rows.column_by_name("_event_time")?.as_primitive_opt::<TimestampMicrosecondType>()?)
}

fn given<'a>(record: &'a FileRecord, headers: &'a [Header<'a>], origin: Origin<'a>) -> Record<'a> {
    Record {
        topic: record.topic.as_deref().unwrap_or_default(),
        partition: record.partition,
        offset: record.offset,
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers,
        timestamp_ms: record.timestamp_ms,
        file: Some(origin.file),
        line: Some(record.line),
    }
}

/// Bytes of a record's key and value.
fn length(record: &Record<'_>) -> usize {
    record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)
}

fn refused<'a>(record: &Record<'a>, origin: Option<Origin<'a>>, reason: &'a str, message: &'a str) -> Refused<'a> {
    let placed = !record.topic.is_empty();
    Refused {
        reason,
        message,
        key: record.key,
        value: record.value,
        headers: origin.map(|origin| origin.header).filter(|header| !header.is_empty()).unwrap_or(record.headers),
        topic: placed.then_some(record.topic),
        partition: placed.then_some(record.partition),
        offset: placed.then_some(record.offset),
        timestamp_ms: record.timestamp_ms,
        file: record.file,
        line: record.line,
        content: origin.map(|origin| origin.content),
    }
}

/// Where a reject's row is found again.
fn spot(refused: &Refused<'_>, by_topic: bool) -> Option<Spot> {
    match (refused.content, refused.line) {
        (Some(content), Some(line)) => Some(Spot::Content(content.to_owned(), line)),
        _ if by_topic => Some(Spot::Offset(refused.topic?.to_owned(), refused.partition?, refused.offset?)),
        _ => Some(Spot::Position(refused.partition?, refused.offset?)),
    }
}
