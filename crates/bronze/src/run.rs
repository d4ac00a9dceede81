//! Does: opens the feeds, reads their groups to the end, reports.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, stream};
use tributary_lake::Lake;
use tributary_specs::{DatasetReport, SourceFeed};

use crate::batch::{Ended, LaneBatch};
use crate::lane::{Lane, Race};
use crate::options::{Extent, Options, Seen};
use crate::plan::{self, Group};
use crate::tally::{Counts, Tally};
use crate::{Error, Result, events, run_custom, run_files};

/// Feeds of a group whose tables are opened side by side.
const OPENED_AT_ONCE: usize = 16;

/// Brings the bronze tables of `feeds` up to date with what their sources hold now, and says what was done to each: one
/// report a feed that was run, in the order of `feeds`.
///
/// `feeds` are all feeds of the pipeline, also when [`Options::only`] names some. A feed that fails stops alone; its error
/// is in its report. Dropping the future is as safe as a kill.
pub async fn run(lake: &Lake, feeds: &[SourceFeed], options: &Options) -> Vec<DatasetReport> {
    let mut reports: Vec<Option<DatasetReport>> = feeds.iter().map(|_| None).collect();
    let refusal = refusal(feeds, options).map(Arc::new);
    for group in plan::groups(feeds) {
        let started = lake.clock().now();
        let chosen = group.members().into_iter().filter(|index| options.runs(&feeds[*index]));
        let opens = chosen.map(|index| Slot::open(lake, index, &feeds[index], options).boxed());
        let mut slots: Vec<Slot> = stream::iter(opens.collect::<Vec<_>>()).buffered(OPENED_AT_ONCE).collect().await;
        if let Some(error) = &refusal {
            slots.iter_mut().for_each(|slot| slot.stop(Arc::clone(error)));
        }
        match &group {
            Group::Files(group) => run_files::run(lake, group, feeds, &mut slots, options).await,
            #[cfg(feature = "kafka")]
            Group::Kafka(_) => crate::run_kafka::run(lake, feeds, &mut slots, options).await,
            #[cfg(not(feature = "kafka"))]
            Group::Kafka(_) => slots.iter_mut().for_each(|slot| {
                let feed = feeds[slot.index].name.clone();
                slot.stop(Error::KafkaLeftOut { feed });
            }),
            Group::Custom(_) => run_custom::run(lake, &mut slots, options).await,
        }
        let millis = u64::try_from((lake.clock().now() - started).num_milliseconds()).unwrap_or_default();
        for slot in slots {
            let index = slot.index;
            reports[index] = Some(slot.into_report(&feeds[index], millis));
        }
    }
    reports.into_iter().flatten().collect()
}

/// Brings a lane to its declaration, or to where its table is built anew.
async fn begin(lane: &mut Lane, lake: &Lake, options: &Options) -> Result<()> {
    if options.full_refresh.contains(&lane.feed.name) {
        lane.begin_anew("a full refresh was asked for")?;
    }
    lane.meet_declaration(lake, options).await
}

/// What no feed of the run can do.
#[cfg(feature = "kafka")]
fn refusal(feeds: &[SourceFeed], options: &Options) -> Option<Error> {
    crate::kafka::check_asked(feeds, options).err()
}

/// Topics are read by none.
#[cfg(not(feature = "kafka"))]
fn refusal(_: &[SourceFeed], _: &Options) -> Option<Error> {
    None
}

/// A feed that is run: its lane, or why it stopped.
pub(crate) struct Slot {
    /// Into the pipeline's feeds.
    pub index: usize,
    lane: Option<Lane>,
    stopped: Tally,
}

impl Slot {
    async fn open(lake: &Lake, index: usize, feed: &SourceFeed, options: &Options) -> Self {
        let opened = match plan::check(feed) {
            Ok(()) => Lane::open(lake, feed, options).await,
            Err(error) => Err(error),
        };
        let opened = match opened {
            Ok(mut lane) => begin(&mut lane, lake, options).await.map(|()| lane),
            Err(error) => Err(error),
        };
        match opened {
            Ok(lane) => Self { index, lane: Some(lane), stopped: Tally::default() },
            Err(error) => {
                events::stopped(&feed.table, &error);
                Self { index, lane: None, stopped: Tally { failed: Some(Arc::new(error)), ..Tally::default() } }
            }
        }
    }

    /// The lane, while the feed runs.
    pub(crate) fn lane(&mut self) -> Option<&mut Lane> {
        self.lane.as_mut()
    }

    pub(crate) fn running(&self) -> Option<&Lane> {
        self.lane.as_ref()
    }

    /// Stops the feed; what was committed stays and is reported.
    pub(crate) fn stop(&mut self, error: impl Into<Arc<Error>>) {
        if let Some(lane) = self.lane.take() {
            let error = error.into();
            events::stopped(&lane.feed.table, &error);
            self.stopped = Tally { failed: Some(error), ..lane.tally };
        }
    }

    /// Commits a batch. A lost race is either run again from the table, or stops the feed.
    pub(crate) async fn commit(&mut self, lake: &Lake, batch: LaneBatch, after: AfterRace, options: &Options) -> Committed {
        let Some(lane) = &mut self.lane else {
            batch.abandon().await;
            return Committed::Stopped;
        };
        let taken = batch.counts.rows_in;
        let ended = match batch.commit(lane, lake).await {
            Ok(Ended::Lost(Race::Fenced { table, app_id })) if after == AfterRace::StopWhenFenced => Err(Error::Busy { table, app_id }),
            Ok(Ended::Lost(race)) => lane.lost(lake, race, options).await.map(|()| Committed::ReadAgain),
            Ok(Ended::Widened) => lane.reload(lake).await.map(|()| Committed::ReadAgain),
            Ok(Ended::Committed | Ended::Nothing) => {
                lane.tally.lag_records = lane.tally.lag_records.map(|left| left.saturating_sub(taken));
                Ok(Committed::Yes)
            }
            Err(error) => Err(error),
        };
        options.progress.seen(seen(lane, &Counts::default()));
        ended.unwrap_or_else(|error| {
            self.stop(error);
            Committed::Stopped
        })
    }

    /// The batch was given up: the decoder goes back to where the table is.
    pub(crate) async fn rewind(&mut self, lake: &Lake) {
        let Some(lane) = &mut self.lane else { return };
        if let Err(error) = lane.reload(lake).await {
            self.stop(error);
        }
    }

    fn into_report(self, feed: &SourceFeed, millis: u64) -> DatasetReport {
        let tally = match self.lane {
            Some(mut lane) => {
                let files = i64::try_from(lane.taken.files()).unwrap_or(i64::MAX);
                if files > 0 {
                    lane.tally.positions.insert("files".to_owned(), files);
                }
                lane.tally
            }
            None => self.stopped,
        };
        tally.into_report(&feed.table, millis)
    }
}

/// What is done when another run moved a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterRace {
    /// What it took is not taken again; the rest is.
    ReadAgain,
    /// The position has one owner, and it is another run.
    StopWhenFenced,
}

/// How [`Slot::commit`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committed {
    Yes,
    /// The batch was lost; the feed looked at its tables anew.
    ReadAgain,
    Stopped,
}

/// Tells the program how far a feed is in the middle of a batch.
pub(crate) fn tell(options: &Options, lane: &Lane, batch: &LaneBatch) {
    options.progress.seen(seen(lane, &batch.counts));
}

/// What the feed has done and is in the middle of doing.
fn seen<'a>(lane: &'a Lane, now: &Counts) -> Seen<'a> {
    let done = &lane.tally.counts;
    let left = lane.tally.lag_records.map(|left| left.saturating_sub(now.rows_in));
    let records = done.rows_in + now.rows_in;
    let by_records = left.map(|left| Extent { done: records, whole: records + left });
    Seen {
        table: &lane.feed.table,
        records,
        bytes: done.bytes + now.bytes,
        version: lane.tally.version_to.filter(|_| lane.tally.committed),
        extent: lane.tally.extent.or(by_records),
        source_time_ms: done.newest_us.max(now.newest_us).map(|newest| newest / 1000),
        lag_records: left,
    }
}

/// Whether the program asked to stop.
pub(crate) fn cancelled(options: &Options) -> Result<()> {
    if options.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}
