//! Records in quarantine that decode today: they become rows at their own place, once.
//!
//! ```text
//! open rows of quarantine.<feed> ─▶ decoded as the feed is declared now ─┬▶ one commit of bronze: the rows, and which records they are
//!                                                                        │      └▶ these are marked in quarantine
//!                                                                        └▶ the others stay open
//! ```
//!
//! The commit of bronze names the records it took, in a metadata domain. What died before it had marked them is completed by the
//! next requeue before anything is decoded, and of two at once one loses and looks again (B1). Only records behind bronze's own
//! positions are taken: those ahead of them the next run reads from the source once more.

use std::collections::{BTreeMap, HashSet};

use tributary_cdc_decode::{Decoded, Header, LastRow, Record, Resume};
use tributary_fault::Fault;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::{Commit, CommitOutcome, Lake, Operation, Reads, Table, WriterOptions};
use tributary_specs::{Column, Decode, Source, SourceFeed};

use crate::declaration::{self, Differences};
use crate::lane::{self, Lane, Race, grown};
use crate::ledger::ContentId;
use crate::options::Options;
use crate::quarantine::{self, Kept, Mark, Spot};
use crate::run::cancelled;
use crate::widen::widen;
use crate::{Error, Result, batch, events, plan, positions, resume};

/// Records decoded between two commits, and bytes of them.
const ROUND_RECORDS: usize = 10_000;
const ROUND_BYTES: usize = 64 << 20;

/// The feed has not read past the record yet.
const NOT_PASSED: &str = "not_read_past_yet";
/// The names of a CSV record's fields were not kept beside it, as a release before this one did not: only dropping its file once
/// more, under another content, brings it back.
const NO_HEADER: &str = "csv_header_not_kept";

/// What a requeue did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requeued {
    /// Open records that were decoded again.
    pub records: u64,
    /// Those that became rows.
    pub rows: u64,
    /// Those that are known today to be none, for example heartbeats.
    pub ignored: u64,
    /// Those that stay in quarantine, by today's reason.
    pub left: BTreeMap<String, u64>,
    /// The last version of the feed's table that was written.
    pub version: Option<u64>,
    /// What else was done, for example columns that were widened or added.
    pub notes: Vec<String>,
}

/// Decodes the records in quarantine again, with the feed as it is declared now, and makes rows of those that decode: at the
/// positions and offsets they came with, each once. With `reason` only records that were refused for it; with `dry_run` nothing is
/// written.
///
/// # Errors
/// See [`Error`]; what was committed stays, and a repetition goes on from there.
pub async fn requeue(lake: &Lake, feed: &SourceFeed, reason: Option<&str>, dry_run: bool, options: &Options) -> Result<Requeued> {
    plan::check(feed)?;
    let mut lane = Lane::open(lake, feed, options).await?;
    let mut notes = Vec::new();
    match &lane.bronze {
        Some(table) if dry_run => {
            let Differences { widened, remarks } = declaration::differences(feed, table.columns());
            notes.extend(widened.iter().map(|column| format!("column {} would be widened to {}", column.name, column.data_type)));
            notes.extend(remarks);
        }
        _ => lane.meet_declaration(lake, options).await?,
    }
    let mut run = Run { lake, options, reason, dry_run, seen: HashSet::new(), done: Requeued { notes, ..Requeued::default() } };
    loop {
        match run.round(&mut lane).await? {
            Round::Taken => {}
            Round::Nothing => break,
            Round::Again => lane.reload(lake).await?,
            Round::Lost(race) => lane.lost(lake, race, options).await?,
        }
    }
    run.done.notes.extend(lane.tally.remarks);
    Ok(run.done)
}

/// How a round ended.
enum Round {
    /// Its records are done with.
    Taken,
    /// There is no record that was not looked at.
    Nothing,
    /// The table was widened: the same records once more.
    Again,
    Lost(Race),
}

struct Run<'a> {
    lake: &'a Lake,
    options: &'a Options,
    reason: Option<&'a str>,
    dry_run: bool,
    /// Records done with.
    seen: HashSet<Mark>,
    done: Requeued,
}

/// What the records of a round come to.
#[derive(Default)]
struct Decided {
    batches: Vec<RecordBatch>,
    taken: Vec<Mark>,
    rows: u64,
    ignored: u64,
    left: BTreeMap<String, u64>,
    widened: Vec<Column>,
    added: Vec<Column>,
}

impl Run<'_> {
    async fn round(&mut self, lane: &mut Lane) -> Result<Round> {
        lane.make_ready(self.lake).await?;
        let Some(mut quarantine) = lane.quarantine.clone() else { return Ok(Round::Nothing) };
        if let Some(bronze) = lane.bronze.clone().filter(|_| !self.dry_run) {
            let taken = taken_before(&bronze, &lane.feed.name).await?;
            quarantine = self.mark(quarantine, &taken).await?;
        }
        let kept = quarantine::open_records(&quarantine, self.reason, &self.seen, ROUND_RECORDS, ROUND_BYTES).await?;
        if kept.is_empty() {
            return Ok(Round::Nothing);
        }
        let mut decided = Decided::default();
        let passed = passed(lane, kept.iter(), &mut decided).await?;
        self.decode(lane, passed, &mut decided).await?;
        if !self.dry_run
            && let Some(ended) = self.commit(lane, &quarantine, &mut decided).await?
        {
            return Ok(ended);
        }
        self.seen.extend(kept.iter().map(Kept::mark));
        self.done.records += kept.len() as u64;
        self.done.rows += decided.rows;
        self.done.ignored += decided.ignored;
        decided.left.into_iter().for_each(|(reason, records)| *self.done.left.entry(reason).or_default() += records);
        Ok(Round::Taken)
    }

    /// Marks records that bronze took; gives the quarantine as it is then.
    async fn mark(&self, mut quarantine: Table, taken: &HashSet<Mark>) -> Result<Table> {
        let fresh = async |table: &Table| table.refresh().await.map_err(|source| Error::lake(table.name(), "opening", source));
        if taken.is_empty() {
            return Ok(quarantine);
        }
        let mut attempts = 0;
        loop {
            let now_us = self.lake.clock().now().timestamp_micros();
            let Some(outcome) = quarantine::supersede_records(&quarantine, taken, now_us).await? else { return Ok(quarantine) };
            let race = batch::race(&quarantine, outcome);
            quarantine = fresh(&quarantine).await?;
            attempts += 1;
            match race {
                None => return Ok(quarantine),
                Some(race) if attempts >= self.options.attempts_max => return Err(race.given_up(attempts)),
                Some(_) => {}
            }
        }
    }

    /// Decodes records by today's declaration; each at its own place in its partition, whatever came after it.
    async fn decode(&self, lane: &mut Lane, passed: Vec<&Kept>, decided: &mut Decided) -> Result<()> {
        let Some(bronze) = lane.bronze.clone() else { return Ok(()) };
        let changes = matches!(lane.feed.decode, Decode::Debezium | Decode::DebeziumFlattened);
        let before_images = if changes { resume::read(&lane.feed, &bronze).await?.before_images } else { None };
        let places = passed.iter().filter(|_| changes).filter_map(|kept| kept.place());
        let last_rows = resume::before(&bronze, places.collect()).await?;
        if self.dry_run {
            lane.decoder = lane::decoder(&lane.feed)?;
            let columns = as_widened(&lane.feed, bronze.columns());
            lane.decoder.resume(Resume { columns, before_images: before_images.clone(), ..Resume::default() });
        }
        let has_header = has_header(&lane.feed);
        let mut header: &[(String, Option<Vec<u8>>)] = &[];
        for kept in passed {
            cancelled(self.options)?;
            let headers: Vec<Header<'_>> = kept.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
            if has_header && header != kept.headers {
                header = &kept.headers;
                let names: Vec<&str> = headers.iter().map(|header| header.key).collect();
                let failed = |source| Error::Decode { table: lane.feed.table.clone(), source: Box::new(source) };
                lane.decoder.csv_header(&names).map_err(failed)?;
            }
            let record = kept.record(if has_header { &[] } else { &headers });
            if let Some(place) = kept.place().filter(|_| changes) {
                let last: LastRow = last_rows.get(&place).cloned().unwrap_or_default();
                let partitions = BTreeMap::from([((place.0, place.1), last)]);
                lane.decoder.resume(Resume { columns: Vec::new(), partitions, before_images: before_images.clone() });
            }
            let now_us = self.lake.clock().now().timestamp_micros();
            match decoded(lane, &record, now_us).await? {
                Ok(found) => decided.add(kept, found),
                Err(reason) => *decided.left.entry(reason).or_default() += 1,
            }
        }
        Ok(())
    }

    /// Writes and commits the rows with the names of their records, then marks these; how the round ends where it must be repeated.
    async fn commit(&mut self, lane: &mut Lane, quarantine: &Table, decided: &mut Decided) -> Result<Option<Round>> {
        let Some(bronze) = lane.bronze.clone().filter(|_| !decided.taken.is_empty()) else { return Ok(None) };
        let columns = grown(bronze.columns(), &lane.decoder.columns());
        if let Some(columns) = columns.clone().filter(|_| !decided.widened.is_empty()) {
            let outcome = widen(&bronze, columns).await?;
            if let CommitOutcome::Committed { version } = outcome {
                lane.tally.widened(&decided.widened, version);
                self.done.version = Some(version);
            }
            return Ok(Some(batch::race(&bronze, outcome).map_or(Round::Again, Round::Lost)));
        }
        let failed = |source| Error::lake(bronze.name(), "writing rows", source);
        let mut writer = bronze.writer(WriterOptions { columns: columns.clone(), ..WriterOptions::default() }).map_err(failed)?;
        for rows in decided.batches.drain(..) {
            writer.write(&rows).await.map_err(failed)?;
        }
        let adds = writer.finish().await.map_err(failed)?;
        let names = Mark::all_to_text(&decided.taken);
        let commit = Commit {
            operation: Operation::Write,
            adds,
            schema: columns,
            domains: BTreeMap::from([(domain(&lane.feed.name), Some(names))]),
            reads: Reads::BlindAppend,
            user_metadata: Some(format!("{} records from {}", decided.taken.len(), quarantine.name())),
            ..Commit::default()
        };
        let outcome = bronze.commit(commit).await.map_err(|source| Error::lake(bronze.name(), "committing rows", source))?;
        if let CommitOutcome::Committed { version } = outcome {
            events::requeued(bronze.name(), version, decided.rows);
            self.done.version = Some(version);
            self.done.notes.extend(decided.added.iter().map(|column| format!("column {} added as {}", column.name, column.data_type)));
        }
        if let Some(race) = batch::race(&bronze, outcome) {
            return Ok(Some(Round::Lost(race)));
        }
        lane.attempts = 0;
        let taken = decided.taken.iter().cloned().collect();
        self.mark(quarantine.clone(), &taken).await?;
        lane.reload(self.lake).await?;
        Ok(None)
    }
}

impl Decided {
    fn add(&mut self, kept: &Kept, found: Decoded) {
        self.taken.push(kept.mark());
        self.rows += found.batch.num_rows() as u64;
        self.ignored += found.ignored.values().sum::<u64>();
        if found.batch.num_rows() > 0 {
            self.batches.push(found.batch);
        }
        if let Some(change) = found.schema_change {
            self.widened.extend(change.widened);
            self.added.extend(change.added);
        }
    }
}

/// A record as a row, or why it is none today.
async fn decoded(lane: &mut Lane, record: &Record<'_>, now_us: i64) -> Result<Result<Decoded, String>> {
    match lane.teach(std::slice::from_ref(record)).await {
        Ok(()) => {}
        Err(Error::Decode { source, .. }) => return Ok(Err(source.code().to_string())),
        Err(error) => return Err(error),
    }
    let mut found = lane.decoder.decode(std::slice::from_ref(record), now_us);
    lane.forget_unshown(&mut found)?;
    Ok(match (&found.stop, found.rejects.first()) {
        (Some(stop), _) => Err(stop.code().to_string()),
        (None, Some(reject)) => Err(reject.reason.as_str().to_owned()),
        (None, None) => Ok(found),
    })
}

/// The records that bronze has read past; the others are left, and counted.
async fn passed<'k>(lane: &Lane, kept: impl Iterator<Item = &'k Kept>, decided: &mut Decided) -> Result<Vec<&'k Kept>> {
    let has_header = has_header(&lane.feed);
    let mut passed = Vec::new();
    for kept in kept {
        let reason = match &kept.spot {
            _ if kept.is_no_record => Some(kept.reason.as_str()),
            _ if has_header && kept.headers.is_empty() => Some(NO_HEADER),
            Spot::Content(content, _) => (!ContentId::parse(content).is_some_and(|id| lane.taken.holds(&id))).then_some(NOT_PASSED),
            Spot::Position(partition, position) => {
                let app_id = positions::of_source(&lane.feed.name, *partition);
                (!is_behind(lane, &app_id, *position).await?).then_some(NOT_PASSED)
            }
            Spot::Offset(topic, partition, offset) => {
                let app_id = match lane.feed.source {
                    Source::Custom(_) => positions::of_source(&lane.feed.name, *partition),
                    Source::Kafka(_) | Source::Files(_) => positions::of_topic(&lane.feed.name, topic, *partition),
                };
                (!is_behind(lane, &app_id, *offset).await?).then_some(NOT_PASSED)
            }
        };
        match reason {
            Some(reason) => *decided.left.entry(reason.to_owned()).or_default() += 1,
            None => passed.push(kept),
        }
    }
    Ok(passed)
}

/// Whether a record's fields are named by its file's header.
fn has_header(feed: &SourceFeed) -> bool {
    matches!((&feed.source, feed.decode), (Source::Files(files), Decode::Csv) if files.csv.header)
}

async fn is_behind(lane: &Lane, app_id: &str, position: i64) -> Result<bool> {
    Ok(positions::read(lane.bronze.as_ref(), app_id).await?.is_some_and(|reached| position < reached))
}

/// The table's columns as the declaration will have them widened.
fn as_widened(feed: &SourceFeed, table: &[Column]) -> Vec<Column> {
    let Differences { widened, .. } = declaration::differences(feed, table);
    let wide = |column: &Column| widened.iter().find(|wide| wide.name == column.name).unwrap_or(column).clone();
    table.iter().map(wide).collect()
}

/// The domain of bronze that names the records its last requeue took.
fn domain(feed: &str) -> String {
    format!("tributary.requeue.{feed}")
}

/// The records that the last requeue took.
async fn taken_before(bronze: &Table, feed: &str) -> Result<HashSet<Mark>> {
    let text = bronze.domain(&domain(feed)).await.map_err(|source| Error::lake(bronze.name(), "reading what was requeued", source))?;
    let malformed = || Error::Ledger { table: bronze.name().clone(), domain: domain(feed) };
    text.map_or_else(|| Ok(HashSet::new()), |text| Mark::all_from_text(&text).ok_or_else(malformed))
}
