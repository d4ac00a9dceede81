//! A partition on its way from the table's position to the end it had when the run began.
//!
//! Whatever the source, the position rides in the commit of the rows (B2), what lies between quarantine's position and bronze's
//! is not quarantined again (B1), and a position the source no longer has stops the feed or is passed over by choice (B4).

use std::sync::Arc;

use tributary_lake::Lake;
use tributary_specs::PassedGap;

use crate::batch::{LaneBatch, Position};
use crate::lane::Lane;
use crate::options::{OnGap, Options};
use crate::plan::{self, Range, Start};
use crate::source::PartitionBounds;
use crate::{Error, Result, positions, quarantine};

/// A partition of a feed's source.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// None where the source has no topics.
    pub topic: Option<Arc<str>>,
    pub bounds: PartitionBounds,
    /// Where its position is kept.
    pub app_id: String,
    /// Begin at the end when the table has no position: then the first run writes that end down, so that the next goes on from it.
    pub from_end: bool,
    /// Where it is being read on, when that is known to be as far as the table's position: what lies between holds no record.
    pub resume: Option<i64>,
    /// What of it is to be read.
    pub range: Range,
}

impl Origin {
    /// The partition as messages name it.
    fn place(&self) -> String {
        match &self.topic {
            Some(topic) => format!("topic `{topic}`, partition {}", self.bounds.partition),
            None => format!("partition {}", self.bounds.partition),
        }
    }
}

/// A partition being read.
#[derive(Debug)]
pub(crate) struct Reading {
    pub topic: Option<Arc<str>>,
    pub partition: i32,
    pub position: Position,
    /// Where the run ends.
    pub until: i64,
    /// Where it began.
    start: i64,
    /// Its key among the report's positions.
    key: String,
    /// A gap that was passed over, not recorded yet.
    gap: Option<(String, PassedGap)>,
    /// Whether the position itself must be written down though no record was read.
    fixed: bool,
}

impl Reading {
    pub(crate) async fn begin(lake: &Lake, lane: &mut Lane, origin: Origin, options: &Options) -> Result<Self> {
        let bounds = origin.bounds;
        let recorded = positions::read(lane.bronze.as_ref(), &origin.app_id).await?;
        let bronze = positions::known(recorded).filter(|_| lane.anew.is_none());
        if let Some(reason) = origin.range.refusal(bronze) {
            return Err(Error::Range { place: format!("{} of feed {}", origin.place(), lane.feed.name), reason });
        }
        if let Some(remark) = origin.range.remark(bronze, bounds) {
            lane.tally.remarks.insert(format!("{}: {remark}", origin.place()));
        }
        let from_end = bronze.is_none() && origin.from_end;
        let fixed = from_end || lane.anew.is_some();
        let begins = bronze.or(origin.range.from);
        let (next, gap) = match plan::start(origin.resume.or(begins), bounds, options.on_gap) {
            Start::At(_) if from_end && origin.resume.is_none() => (bounds.end, None),
            Start::At(next) => (next, None),
            Start::Over { from, until, at } => (at, Some(passed(lane, &origin, from, until, at, options.on_gap))),
            Start::Missing { from, until } => {
                return Err(Error::gap(&lane.feed, origin.place(), begins.unwrap_or_default(), bounds, from..until));
            }
        };
        let key = match &origin.topic {
            Some(topic) => format!("{topic}/{}", bounds.partition),
            None => bounds.partition.to_string(),
        };
        let until = origin.range.until.map_or(bounds.end, |until| until.min(bounds.end));
        lane.tally.positions.insert(key.clone(), next);
        if next < until || gap.is_some() || fixed {
            lane.make_ready(lake).await?;
        }
        let quarantine = positions::read(lane.quarantine.as_ref(), &origin.app_id).await?;
        let position = Position { app_id: origin.app_id, bronze: recorded, quarantine, next };
        Ok(Self { topic: origin.topic, partition: bounds.partition, position, until, start: next, key, gap, fixed })
    }

    /// Whether there is something to read or to write down.
    pub(crate) fn is_due(&self) -> bool {
        self.position.next < self.until || self.must_be_recorded()
    }

    /// Whether the position must be committed though it brings no row.
    pub(crate) fn must_be_recorded(&self) -> bool {
        self.gap.is_some() || self.fixed
    }

    /// Offsets between the table's position and the reading's.
    pub(crate) fn moved(&self) -> u64 {
        u64::try_from(self.position.next - positions::known(self.position.bronze).unwrap_or(self.start)).unwrap_or_default()
    }

    /// Where the quarantine was committed with these positions and bronze was not, finds which records are there already.
    pub(crate) async fn look_into_quarantine(&self, lane: &Lane, batch: &mut LaneBatch, from: i64) -> Result<()> {
        let (Some(table), Some(parked)) = (&lane.quarantine, self.position.quarantine) else { return Ok(()) };
        let until = parked.min(self.position.next);
        if from < until {
            let open = quarantine::open_of_positions(table, self.topic.as_deref(), self.partition, from, until).await?;
            batch.parked.add(open);
        }
        Ok(())
    }

    /// The position goes into the batch's commit, where it has moved or must be recorded.
    pub(crate) fn join(&self, batch: &mut LaneBatch) {
        if self.moved() == 0 && !self.must_be_recorded() {
            return;
        }
        if let Some((remark, gap)) = &self.gap {
            batch.remarks.insert(remark.clone());
            batch.gaps.push(gap.clone());
        }
        batch.positions.push(self.position.clone());
    }

    /// The batch is committed: the tables are where the reading is.
    pub(crate) async fn settle(&mut self, lane: &mut Lane) -> Result<()> {
        self.gap = None;
        self.fixed = false;
        self.position.bronze = positions::read(lane.bronze.as_ref(), &self.position.app_id).await?;
        self.position.quarantine = positions::read(lane.quarantine.as_ref(), &self.position.app_id).await?;
        lane.tally.positions.insert(self.key.clone(), self.position.bronze.unwrap_or(self.position.next));
        Ok(())
    }
}

/// Records between here and the ends that the partitions had when the run began.
pub(crate) fn records_left(readings: &[Reading]) -> u64 {
    readings.iter().map(|reading| u64::try_from(reading.until - reading.position.next).unwrap_or_default()).sum()
}

fn passed(lane: &Lane, origin: &Origin, from: i64, until: i64, at: i64, choice: OnGap) -> (String, PassedGap) {
    let remark = format!("{}: positions {from} to {until} are missing from the source; went on at {at}", origin.place());
    let gap = PassedGap {
        feed: lane.feed.name.clone(),
        topic: origin.topic.as_deref().map(str::to_owned),
        partition: origin.bounds.partition,
        from,
        until,
        choice: choice.word().to_owned(),
    };
    (remark, gap)
}
