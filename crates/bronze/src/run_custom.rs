//! Does: drains a record source of the program, partition by partition, in batches of one commit each.

use std::sync::Arc;

use tributary_cdc_decode::{Header, Record};
use tributary_lake::Lake;
use tributary_specs::Source;

use crate::batch::LaneBatch;
use crate::headers::lent;
use crate::lane::Lane;
use crate::options::Options;
use crate::plan::Range;
use crate::reading::{Origin, Reading, records_left};
use crate::run::{AfterRace, Committed, Slot, cancelled, tell};
use crate::source::{RecordSource, SourceRecord};
use crate::{Error, Result, anew, positions};

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
            let app_id = positions::of_source(&lane.feed.name, bounds.partition);
            let origin = Origin { topic: None, bounds: *bounds, app_id, from_end: false, resume: None, range: Range::default() };
            readings.push(Reading::begin(lake, lane, origin, options).await?);
        }
        anew::ensure_no_record_is_lost(lane, &readings).await?;
        while readings.iter().any(Reading::is_due) || slot.running().is_some_and(|lane| lane.anew.is_some()) {
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
            lane.tally.lag_records = Some(records_left(&readings));
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

/// Reads until a batch is full, every partition is at its end, or the run shall end.
async fn fill(lake: &Lake, lane: &mut Lane, source: &dyn RecordSource, readings: &mut [Reading], options: &Options) -> Result<LaneBatch> {
    let mut batch = LaneBatch::new(lake.clock().now().timestamp_micros());
    let bounded = lane.anew.is_none();
    let (most, bytes) = match bounded {
        true => (options.max_records_per_trigger.unwrap_or(BATCH_RECORDS).max(1), options.max_bytes_per_trigger.unwrap_or(u64::MAX)),
        // What builds a table anew is one commit.
        false => (u64::MAX, u64::MAX),
    };
    let mut taken = 0_u64;
    for reading in readings.iter_mut().filter(|reading| reading.is_due()) {
        while reading.position.next < reading.until && taken < most && batch.counts.bytes < bytes && !options.cancel.is_cancelled() {
            let room = usize::try_from(most - taken).unwrap_or(usize::MAX).min(options.slice_records.max(1));
            let from = reading.position.next;
            let records = source.read(reading.partition, from, reading.until, room).await.map_err(|error| failed(lane, source, error))?;
            taken += records.len() as u64;
            reading.position.next = next(lane, source, reading, &records)?;
            reading.look_into_quarantine(lane, &mut batch, from).await?;
            absorb(lake, lane, &mut batch, reading.partition, &records).await?;
            tell(options, lane, &batch);
        }
        reading.join(&mut batch);
    }
    if !bounded && options.cancel.is_cancelled() {
        batch.abandon().await;
        return Err(Error::Cancelled);
    }
    Ok(batch)
}

async fn absorb(lake: &Lake, lane: &mut Lane, batch: &mut LaneBatch, partition: i32, records: &[SourceRecord]) -> Result<()> {
    let headers: Vec<Vec<Header<'_>>> = records.iter().map(|record| lent(&record.headers)).collect();
    let records: Vec<Record<'_>> = records
        .iter()
        .zip(&headers)
        .map(|(record, headers)| Record {
            topic: &record.topic,
            partition,
            offset: record.position,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers,
            timestamp_ms: record.timestamp_ms,
            file: None,
            line: None,
        })
        .collect();
    batch.absorb(lane, lake, None, &records).await
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

fn failed(lane: &Lane, source: &dyn RecordSource, error: crate::SourceError) -> Error {
    Error::Source { feed: lane.feed.name.clone(), source_name: source.name().to_owned(), source: error }
}
