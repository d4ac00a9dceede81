//! Does: drains a record source of the program, partition by partition, in batches of one commit each.

use std::sync::Arc;

use tributary_lake::{Lake, Table};
use tributary_specs::Source;

use crate::batch::{LaneBatch, Origin, Position};
use crate::files::FileRecord;
use crate::lane::Lane;
use crate::options::Options;
use crate::plan::{self, Start};
use crate::run::{AfterRace, Committed, Slot, cancelled, tell};
use crate::source::{PartitionBounds, RecordSource, SourceRecord};
use crate::{Error, Result, quarantine};

/// Records of one commit where no bound is set.
const BATCH_RECORDS: u64 = 1_000_000;

/// Brings the tables of feeds with a record source up to date.
pub(crate) async fn run(lake: &Lake, slots: &mut [Slot], options: &Options) {
    for slot in slots {
        if let Err(error) = drain(lake, slot, options).await {
            slot.stop(error);
        }
    }
}

async fn drain(lake: &Lake, slot: &mut Slot, options: &Options) -> Result<()> {
    let Some(lane) = slot.lane() else { return Ok(()) };
    let source = find(lane, options)?;
    let mut bounds = source.partitions().await.map_err(|error| failed(lane, source.as_ref(), error))?;
    bounds.sort_by_key(|bounds| bounds.partition);
    'from_the_table: loop {
        let Some(lane) = slot.lane() else { return Ok(()) };
        let mut readings = Vec::new();
        for bounds in &bounds {
            readings.push(Reading::begin(lake, lane, *bounds, options).await?);
        }
        while readings.iter().any(Reading::is_due) {
            cancelled(options)?;
            let Some(lane) = slot.lane() else { return Ok(()) };
            let batch = fill(lake, lane, source.as_ref(), &mut readings, options).await?;
            match slot.commit(lake, batch, AfterRace::StopWhenFenced, options).await {
                Committed::Yes => {}
                Committed::ReadAgain => continue 'from_the_table,
                Committed::Stopped => return Ok(()),
            }
            let Some(lane) = slot.lane() else { return Ok(()) };
            for reading in &mut readings {
                reading.settle(lane).await?;
            }
        }
        return Ok(());
    }
}

fn find(lane: &Lane, options: &Options) -> Result<Arc<dyn RecordSource>> {
    let Source::Custom(name) = &lane.feed.source else {
        return Err(Error::Feed { feed: lane.feed.name.clone(), reason: "it names no record source".to_owned() });
    };
    let found = options.sources.iter().find(|source| source.name() == name);
    found.cloned().ok_or_else(|| Error::NoSource { feed: lane.feed.name.clone(), source_name: name.clone() })
}

/// A partition on its way to the end it had when the run began.
struct Reading {
    partition: i32,
    position: Position,
    until: i64,
    /// A gap that was passed over, not recorded yet.
    remark: Option<String>,
}

impl Reading {
    async fn begin(lake: &Lake, lane: &mut Lane, bounds: PartitionBounds, options: &Options) -> Result<Self> {
        let app_id = format!("tributary:custom:{}:{}", lane.feed.name, bounds.partition);
        let bronze = progress(lane.bronze.as_ref(), &app_id).await?;
        let (next, remark) = match plan::start(bronze, bounds, options.on_gap) {
            Start::At(next) => (next, None),
            Start::Over { from, until, at } => (
                at,
                Some(format!("partition {}: positions {from} to {until} are missing from the source; went on at {at}", bounds.partition)),
            ),
            Start::Missing { from, until } => {
                return Err(Error::Gap {
                    feed: lane.feed.name.clone(),
                    table: lane.feed.table.clone(),
                    partition: bounds.partition,
                    position: bronze.unwrap_or_default(),
                    earliest: bounds.earliest,
                    end: bounds.end,
                    from,
                    until,
                });
            }
        };
        lane.tally.positions.insert(bounds.partition.to_string(), next);
        if next < bounds.end || remark.is_some() {
            lane.make_ready(lake).await?;
        }
        let quarantine = progress(lane.quarantine.as_ref(), &app_id).await?;
        Ok(Self { partition: bounds.partition, position: Position { app_id, bronze, quarantine, next }, until: bounds.end, remark })
    }

    fn is_due(&self) -> bool {
        self.position.next < self.until || self.remark.is_some()
    }

    /// The batch is committed: the tables are where the reading is.
    async fn settle(&mut self, lane: &mut Lane) -> Result<()> {
        self.remark = None;
        self.position.bronze = progress(lane.bronze.as_ref(), &self.position.app_id).await?;
        self.position.quarantine = progress(lane.quarantine.as_ref(), &self.position.app_id).await?;
        lane.tally.positions.insert(self.partition.to_string(), self.position.next);
        Ok(())
    }
}

async fn progress(table: Option<&Table>, app_id: &str) -> Result<Option<i64>> {
    match table {
        Some(table) => table.progress(app_id).await.map_err(|source| Error::lake(table.name(), "reading positions", source)),
        None => Ok(None),
    }
}

/// Reads until a batch is full or every partition is at its end.
async fn fill(lake: &Lake, lane: &mut Lane, source: &dyn RecordSource, readings: &mut [Reading], options: &Options) -> Result<LaneBatch> {
    let mut batch = LaneBatch::new(lake.clock().now().timestamp_micros());
    let most = options.max_records_per_trigger.unwrap_or(BATCH_RECORDS).max(1);
    let bytes = options.max_bytes_per_trigger.unwrap_or(u64::MAX);
    let mut taken = 0_u64;
    for reading in readings.iter_mut().filter(|reading| reading.is_due()) {
        while reading.position.next < reading.until && taken < most && batch.counts.bytes < bytes {
            cancelled(options)?;
            let room = usize::try_from(most - taken).unwrap_or(usize::MAX).min(options.slice_records.max(1));
            let from = reading.position.next;
            let records = source.read(reading.partition, from, reading.until, room).await.map_err(|error| failed(lane, source, error))?;
            taken += records.len() as u64;
            reading.position.next = next(lane, source, reading, &records)?;
            look_into_quarantine(lane, &mut batch, reading, from).await?;
            let records: Vec<FileRecord> = records.into_iter().map(|record| file_record(reading.partition, record)).collect();
            batch.absorb(lane, lake, Origin { file: None, content: None }, &records.iter().collect::<Vec<_>>()).await?;
            tell(options, lane, &batch);
        }
        batch.remarks.extend(reading.remark.clone());
        batch.positions.push(reading.position.clone());
    }
    Ok(batch)
}

/// The position after the records, which must be what was asked for.
fn next(lane: &Lane, source: &dyn RecordSource, reading: &Reading, records: &[SourceRecord]) -> Result<i64> {
    let mut next = reading.position.next;
    for record in records {
        if record.position < next || record.position >= reading.until {
            return Err(Error::SourceOrder {
                feed: lane.feed.name.clone(),
                source_name: source.name().to_owned(),
                partition: reading.partition,
                found: record.position,
                from: next,
                until: reading.until,
            });
        }
        next = record.position + 1;
    }
    Ok(if records.is_empty() { reading.until } else { next })
}

/// Where the quarantine was committed with these positions and bronze was not, finds which records are there already.
async fn look_into_quarantine(lane: &Lane, batch: &mut LaneBatch, reading: &Reading, from: i64) -> Result<()> {
    let (Some(table), Some(parked)) = (&lane.quarantine, reading.position.quarantine) else { return Ok(()) };
    let until = parked.min(reading.position.next);
    if from < until {
        batch.parked.add(quarantine::open_of_positions(table, reading.partition, from, until).await?);
    }
    Ok(())
}

fn file_record(partition: i32, record: SourceRecord) -> FileRecord {
    FileRecord {
        topic: Some(record.topic.into()),
        partition,
        offset: record.position,
        key: record.key,
        value: record.value,
        headers: record.headers,
        timestamp_ms: record.timestamp_ms,
        ..FileRecord::default()
    }
}

fn failed(lane: &Lane, source: &dyn RecordSource, error: crate::SourceError) -> Error {
    Error::Source { feed: lane.feed.name.clone(), source_name: source.name().to_owned(), source: error }
}
