//! Rows that come later than the watermark of their source.
//!
//! The watermark before a version is the greatest event time of the rows that versions before brought, less the delay; a row whose event
//! time is below it is late. So a source is read version by version, and neither cuts of batches nor a run that was killed decide which
//! rows are late. The greatest event time rides in the commit of the rows, beside the position.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use tributary_lake::Progress;
use tributary_lake::arrow::array::{AsArray, BooleanArray, RecordBatch, TimestampMicrosecondArray};
use tributary_lake::arrow::compute::{filter_record_batch, max};
use tributary_lake::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tributary_specs::{LateRows, SilverSpec};

use crate::conform::conform;
use crate::error::{Error, Result};
use crate::flow::{Positions, Whereabouts};
use crate::intake::Range;
use crate::source::Source;

/// Why rows were left out, in the report.
const REASON: &str = "late";

/// What is recorded of a flow that began anew and has read no event time since.
const NOTHING: i64 = i64::MIN;

/// Tells late rows of a flow.
#[derive(Debug, Clone)]
pub(crate) struct Lateness {
    column: usize,
    delay: i64,
    drops: bool,
    app_id: String,
    recorded: Option<i64>,
    /// What is recorded is of rows that the table no longer has.
    anew: bool,
    seen: Arc<Mutex<Seen>>,
}

/// What has been read so far.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The greatest event time of the versions before, in microseconds.
    highest: Option<i64>,
    /// The same of the version that is being read.
    within: Option<i64>,
    late: u64,
}

/// What was late in a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Late {
    pub dropped: u64,
    pub applied: u64,
    /// The greatest event time so far, where it is another than the table has.
    pub progress: Option<Progress>,
}

impl Lateness {
    /// Of a flow into a table; none where it has no watermark. `anew`: it begins at the start.
    ///
    /// # Errors
    /// When its column is not there, or holds no timestamps.
    pub fn new(spec: &SilverSpec, source: &Source, place: &Whereabouts, positions: &Positions, anew: bool) -> Result<Option<Self>> {
        let Some(watermark) = &spec.watermark else { return Ok(None) };
        let schema = source.schema();
        let found = schema.fields().iter().position(|field| field.name().eq_ignore_ascii_case(&watermark.column));
        let Some(column) = found else {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let suggestion = tributary_fault::nearest(&watermark.column, names).map(Into::into);
            return Err(Error::NoColumn { table: spec.table.clone(), clause: "watermark", column: watermark.column.clone(), suggestion });
        };
        let data_type = schema.field(column).data_type();
        if !matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _)) {
            let told = format!("the column `{}` of its watermark holds {data_type}, and a watermark is of timestamps", watermark.column);
            return Err(Error::spec(&spec.table, told));
        }
        let app_id = format!("tributary:watermark:{}", place.label());
        let recorded = positions.watermark(&app_id);
        let delay = i64::try_from(watermark.delay_millis).ok().and_then(|millis| millis.checked_mul(1000)).unwrap_or(i64::MAX);
        let seen = Seen { highest: recorded.filter(|highest| !anew && *highest != NOTHING), ..Seen::default() };
        let drops = spec.late == LateRows::Drop;
        Ok(Some(Self { column, delay, drops, app_id, recorded, anew, seen: Arc::new(Mutex::new(seen)) }))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of the next version, those left out that are late and not to be applied.
    pub fn of_version(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let watermark = {
            let mut seen = self.seen();
            seen.highest = seen.highest.max(seen.within.take());
            seen.highest.map(|highest| highest.saturating_sub(self.delay))
        };
        let (schema, sift) = (rows.schema(), self.clone());
        let rows = rows.map(move |batch| sift.sift(&batch?, watermark).map_err(DataFusionError::from));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    fn sift(&self, batch: &RecordBatch, watermark: Option<i64>) -> Result<RecordBatch, ArrowError> {
        let times = conform(batch.column(self.column), &DataType::Timestamp(TimeUnit::Microsecond, None))?;
        let times: &TimestampMicrosecondArray = times.as_primitive::<TimestampMicrosecondType>();
        let in_time = |time: Option<i64>| watermark.zip(time).is_none_or(|(watermark, time)| time >= watermark);
        let kept: BooleanArray = times.iter().map(|time| Some(in_time(time))).collect();
        let late = batch.num_rows() - kept.true_count();
        let mut seen = self.seen();
        seen.within = seen.within.max(max(times));
        seen.late += late as u64;
        drop(seen);
        if late == 0 || !self.drops { Ok(batch.clone()) } else { filter_record_batch(batch, &kept) }
    }

    /// What was late, once everything is read.
    pub fn end(&self) -> Late {
        let Seen { highest, within, late } = *self.seen();
        let (dropped, applied) = if self.drops { (late, 0) } else { (0, late) };
        // What was read before a table began anew is no measure of what is read now.
        let forgotten = self.recorded.filter(|_| self.anew).map(|_| NOTHING);
        let reached = highest.max(within).or(forgotten).filter(|reached| Some(*reached) != self.recorded);
        let progress = reached.map(|version| Progress { app_id: self.app_id.clone(), expected: self.recorded, version });
        Late { dropped, applied, progress }
    }
}

impl Late {
    /// The word for rows that were left out, and how many.
    pub fn ignored(&self) -> Option<(String, u64)> {
        (self.dropped > 0).then(|| (REASON.to_owned(), self.dropped))
    }
}

/// The same versions, each by itself.
pub(crate) fn by_version(ranges: Vec<Range>) -> Vec<Range> {
    let of_range = |Range { from, to, sets_aside }: Range| {
        let first = from.map_or(0, |from| from + 1);
        (first..=to).map(move |version| Range { from: version.checked_sub(1), to: version, sets_aside })
    };
    ranges.into_iter().flat_map(of_range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_read_by_itself() {
        let split = |ranges: &[(Option<u64>, u64, bool)]| {
            let ranges = ranges.iter().map(|(from, to, sets_aside)| Range { from: *from, to: *to, sets_aside: *sets_aside }).collect();
            by_version(ranges).into_iter().map(|range| (range.from, range.to, range.sets_aside)).collect::<Vec<_>>()
        };
        assert_eq!(split(&[(None, 2, true)]), [(None, 0, true), (Some(0), 1, true), (Some(1), 2, true)]);
        assert_eq!(split(&[(Some(3), 4, false), (Some(4), 6, true)]), [(Some(3), 4, false), (Some(4), 5, true), (Some(5), 6, true)]);
    }
}
