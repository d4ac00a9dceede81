//! Does: fills a batch with what comes of a lane's partitions.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Run;
use super::positions::{find, place};
use crate::batch::LaneBatch;
use crate::kafka::{Chunk, Client, Next, Piece, Pieces, Place, Target};
use crate::lane::Lane;
use crate::plan;
use crate::reading::Reading;
use crate::run::tell;
use crate::{Error, Result};

/// Records of one commit where no bound is set.
const BATCH_RECORDS: u64 = 2_000_000;
/// Bytes of the records of one commit where no bound is set.
const BATCH_BYTES: u64 = 2 << 30;

impl Run<'_> {
    /// Reads until a batch is full, every partition is at its end, nothing comes, or the run shall end.
    pub(super) async fn fill(&self, lane: &mut Lane, stream: &mut Stream<'_>, readings: &mut [Reading]) -> Result<LaneBatch> {
        let mut batch = LaneBatch::new(self.lake.clock().now().timestamp_micros());
        let records = self.options.max_records_per_trigger.unwrap_or(BATCH_RECORDS).max(1);
        let bytes = self.options.max_bytes_per_trigger.unwrap_or(BATCH_BYTES);
        // What builds a table anew is one commit.
        let bounded = lane.anew.is_none();
        stream.stop = loop {
            if stream.open.is_empty() {
                break Stop::Ended;
            }
            if bounded && (batch.counts.rows_in >= records || batch.counts.bytes >= bytes) {
                break Stop::Full;
            }
            match stream.next(&self.options.cancel).await {
                Next::Piece(Piece::Records(chunk)) => self.absorb(lane, &mut batch, readings, &chunk).await?,
                Next::Piece(Piece::Ended(place)) => {
                    stream.open.remove(&place);
                    if let Some(reading) = find(readings, &place) {
                        reading.position.next = reading.position.next.max(reading.until);
                    }
                }
                Next::Piece(Piece::Failed { place, reason, refused: true }) => {
                    return Err(stream.client.refused(&format!("reading {place}"), &reason));
                }
                Next::Piece(Piece::Failed { place, reason, refused: false }) => {
                    return Err(Error::KafkaPartition { topic: place.topic.to_string(), partition: place.partition, reason });
                }
                Next::Hurry => break Stop::Hurried,
                Next::Silence => break Stop::Silent,
                Next::Gone => return Err(stream.client.away("reading records", Duration::ZERO, "the polling thread has ended")),
            }
        };
        if !bounded && stream.stop != Stop::Ended {
            batch.abandon().await;
            return match self.options.cancel.is_cancelled() {
                true => Err(Error::Cancelled),
                false => Err(stream.client.silent("reading records", self.waits(), "records that are there do not come")),
            };
        }
        let must = readings.iter().any(Reading::must_be_recorded);
        if plan::worth_a_commit(batch.counts.rows_in, must, readings.iter().map(Reading::moved).sum()) {
            readings.iter().for_each(|reading| reading.join(&mut batch));
        }
        Ok(batch)
    }

    async fn absorb(&self, lane: &mut Lane, batch: &mut LaneBatch, readings: &mut [Reading], chunk: &Chunk) -> Result<()> {
        let (Some(reading), Some(last)) = (find(readings, &chunk.place), chunk.last()) else { return Ok(()) };
        let from = std::mem::replace(&mut reading.position.next, last + 1);
        reading.look_into_quarantine(lane, batch, from).await?;
        let headers = chunk.headers();
        batch.absorb(lane, self.lake, None, &chunk.records(&headers)).await?;
        tell(self.options, lane, batch);
        Ok(())
    }
}

/// Why a batch is not filled any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Ended,
    Full,
    Hurried,
    Silent,
}

/// Records of a lane's partitions, batch after batch.
pub(super) struct Stream<'a> {
    client: &'a Client,
    pieces: Pieces<'a>,
    /// Partitions whose end has not come.
    open: BTreeSet<Place>,
    patience: Duration,
    pub stop: Stop,
}

impl<'a> Stream<'a> {
    pub fn new(client: &'a Client, readings: &[Reading], patience: Duration) -> Self {
        let due = readings.iter().filter(|reading| reading.position.next < reading.until);
        let target = |reading: &Reading| Some(Target { place: place(reading)?, from: reading.position.next, until: reading.until });
        let targets: Vec<Target> = due.filter_map(target).collect();
        let open = targets.iter().map(|target| target.place.clone()).collect();
        Self { client, pieces: client.read(targets), open, patience, stop: Stop::Full }
    }

    /// Nothing comes any more once the run shall end.
    async fn next(&mut self, cancel: &CancellationToken) -> Next {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Next::Silence,
            next = self.pieces.next(self.patience) => next,
        }
    }
}
