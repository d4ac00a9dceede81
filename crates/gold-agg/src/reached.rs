//! How far the event times of streams reach, and which of their rows come later than their watermark. Reads.
//!
//! What streams *hold* decides which rows wait for the watermark: it follows from the tables alone. What their versions *brought* decides
//! which rows are late: a row is late when its event time is below the greatest one of the versions before, less the delay, so that
//! neither cuts of batches nor a run that was killed count it otherwise.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::datafusion::functions_aggregate::expr_fn::max;
use tributary_lake::datafusion::prelude::{ident, lit};
use tributary_lake::{Lake, Table};
use tributary_specs::{DatasetReport, GoldSpec, StreamedTable, Watermark};

use crate::definition::Definition;
use crate::plan::InputState;
use crate::query::Input;
use crate::waits::is_time;
use crate::{Error, Result};

/// Statistics keep times to the millisecond, and some writers cut them: so much less is surely there.
const ROUNDED: i64 = 2_000;

/// The greatest event time that each stream with a watermark holds, in microseconds; streams without one are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Held(BTreeMap<String, i64>);

impl Held {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The watermark of them all: the least; none where a stream holds no row with a time.
    pub fn watermark(&self, spec: &GoldSpec) -> Option<i64> {
        let of = |(stream, watermark): (&StreamedTable, &Watermark)| {
            let held = self.0.get(&stream.table.to_string())?;
            Some(held.saturating_sub(delay(watermark)))
        };
        watermarked(spec).map(of).min().flatten()
    }
}

fn watermarked(spec: &GoldSpec) -> impl Iterator<Item = (&StreamedTable, &Watermark)> {
    spec.streams.iter().filter_map(|stream| Some((stream, stream.watermark.as_ref()?)))
}

fn delay(watermark: &Watermark) -> i64 {
    i64::try_from(watermark.delay_millis).ok().and_then(|millis| millis.checked_mul(1000)).unwrap_or(i64::MAX)
}

/// The column of a watermark as its table spells it.
///
/// # Errors
/// When it is not there, or holds no times.
pub(crate) fn event_time(spec: &GoldSpec, input: &Table, watermark: &Watermark) -> Result<String> {
    let schema = input.schema();
    let found = schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(&watermark.column));
    let refused = |source| Err(Error::Sql { table: spec.table.clone(), source: Box::new(source) });
    match found {
        None => {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let suggestion = tributary_fault::nearest(&watermark.column, names).map(Into::into);
            refused(tributary_spark_sql::Error::NoColumn { column: watermark.column.clone(), suggestion, span: None })
        }
        Some(field) if !is_time(field.data_type()) => {
            let what = format!("WATERMARK {} of `{}`", field.name(), input.name());
            let hint = Some(format!("it holds {}, and a watermark is of timestamps", field.data_type()));
            refused(tributary_spark_sql::Error::Refused { what, hint, span: None })
        }
        Some(field) => Ok(field.name().clone()),
    }
}

fn input_of<'a>(inputs: &'a [Input], stream: &StreamedTable) -> Option<(usize, &'a Table)> {
    let of = |(at, input): (usize, &'a Input)| input.table.name().same_without_case(&stream.table).then_some((at, &input.table));
    inputs.iter().enumerate().find_map(of)
}

/// Holds watermarks to the columns of their streams.
///
/// # Errors
/// As [`event_time`].
pub(crate) fn check(spec: &GoldSpec, inputs: &[Input]) -> Result<()> {
    for (stream, watermark) in watermarked(spec) {
        if let Some((_, table)) = input_of(inputs, stream) {
            event_time(spec, table, watermark)?;
        }
    }
    Ok(())
}

/// How far the event times of the streams reach.
///
/// # Errors
/// Store errors; as [`event_time`].
pub(crate) async fn held(lake: &Lake, spec: &GoldSpec, inputs: &[Input]) -> Result<Held> {
    let mut held = BTreeMap::new();
    for (stream, watermark) in watermarked(spec) {
        let Some((at, table)) = input_of(inputs, stream) else { continue };
        let column = event_time(spec, table, watermark)?;
        if let Some(greatest) = greatest(lake, &inputs[at], &column).await? {
            held.insert(stream.table.to_string(), greatest);
        }
    }
    Ok(Held(held))
}

/// The greatest value of a column of times, read from the files that may hold it.
async fn greatest(lake: &Lake, input: &Input, column: &str) -> Result<Option<i64>> {
    let files = input.table.files().await.map_err(Error::lake("reading", input.table.name()))?;
    if files.is_empty() {
        return Ok(None);
    }
    // of a file without marked rows the greatest row is there
    let whole = files.iter().filter(|file| file.deletion_vector.is_none());
    let bounds = whole.filter_map(|file| file.stats.columns.get(column)?.max.clone());
    let least = bounds.filter_map(|bound| micros(&bound)).max().map(|bound| bound.saturating_sub(ROUNDED));
    if let Some(least) = least
        && let Some(found) = greatest_from(lake, input, column, Some(least)).await?
    {
        return Ok(Some(found));
    }
    greatest_from(lake, input, column, None).await
}

async fn greatest_from(lake: &Lake, input: &Input, column: &str, least: Option<i64>) -> Result<Option<i64>> {
    let failed = |error| Error::failed(input.table.name(), error);
    let mut rows = lake.session().read_table(input.provider().clone()).map_err(failed)?;
    if let Some(least) = least {
        let data_type = rows.schema().field_with_unqualified_name(column).map_err(failed)?.data_type().clone();
        let bound = ScalarValue::TimestampMicrosecond(Some(least), zone(&data_type));
        rows = rows.filter(ident(column).gt_eq(lit(bound))).map_err(failed)?;
    }
    let batches = rows.aggregate(vec![], vec![max(ident(column))]).map_err(failed)?.collect().await.map_err(failed)?;
    let mut found = None;
    for batch in &batches {
        found = found.max(latest(batch.column(0)).map_err(failed)?);
    }
    Ok(found)
}

fn zone(data_type: &DataType) -> Option<std::sync::Arc<str>> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

fn micros(bound: &ScalarValue) -> Option<i64> {
    match bound {
        ScalarValue::TimestampMicrosecond(micros, _) => *micros,
        _ => None,
    }
}

fn times(column: &ArrayRef) -> tributary_lake::datafusion::error::Result<ArrayRef> {
    Ok(cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?)
}

fn latest(column: &ArrayRef) -> tributary_lake::datafusion::error::Result<Option<i64>> {
    Ok(times(column)?.as_primitive::<TimestampMicrosecondType>().iter().flatten().max())
}

/// Rows that came later than the watermark of their stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Late {
    /// By stream.
    rows: BTreeMap<String, u64>,
    /// As in [`Definition::brought`].
    pub brought: BTreeMap<String, Option<i64>>,
}

impl Late {
    /// Takes down what was late, once it is in the view.
    pub fn tell(&self, report: &mut DatasetReport) {
        for (stream, late) in self.rows.iter().filter(|(_, late)| **late > 0) {
            report.rows_late += late;
            report.notes.push(format!("{late} rows of `{stream}` came later than its watermark, and were applied"));
        }
    }
}

/// Counts the late rows of the versions that a view has not taken up yet; of all versions where it is made `anew`.
///
/// # Errors
/// Store errors; as [`event_time`].
pub(crate) async fn late(spec: &GoldSpec, inputs: &[Input], states: &[InputState], made: Option<&Definition>) -> Result<Late> {
    let mut found = Late::default();
    for (stream, watermark) in watermarked(spec) {
        let Some((at, table)) = input_of(inputs, stream) else { continue };
        let column = event_time(spec, table, watermark)?;
        let name = stream.table.to_string();
        let known = made.and_then(|made| made.brought.get(&name)).zip(states.get(at).and_then(InputState::made_from));
        let (behind, brought) = known.map_or((None, None), |(brought, version)| (Some(version), *brought));
        let mut walk = Walk { highest: brought, within: None, version: None, delay: delay(watermark), late: 0 };
        walk.versions(table, &column, behind).await.map_err(Error::lake("reading the changes of", table.name()))?;
        found.brought.insert(name.clone(), walk.highest.max(walk.within));
        found.rows.insert(name, walk.late);
    }
    Ok(found)
}

/// On its way through the versions of a stream.
struct Walk {
    /// The greatest event time of the versions before.
    highest: Option<i64>,
    /// The same of the version that is read.
    within: Option<i64>,
    version: Option<i64>,
    delay: i64,
    late: u64,
}

impl Walk {
    /// The versions behind one, or all; where the log does not tell them, what is there is taken for one.
    async fn versions(&mut self, table: &Table, column: &str, behind: Option<u64>) -> tributary_lake::Result<()> {
        let first = behind.map_or(0, |behind| behind + 1);
        if first > table.version() {
            return Ok(());
        }
        let columns = BTreeSet::from([column.to_owned()]);
        if behind.is_some() || table.reaches_back().await? {
            let (highest, before) = (self.highest, self.late);
            match self.changes(table, &columns, first).await {
                Err(tributary_lake::Error::NoChangeFeed { .. } | tributary_lake::Error::NoVersion { .. }) => {
                    (self.highest, self.within, self.late) = (highest, None, before);
                }
                read => return read,
            }
        }
        let names = [column.to_owned()];
        let mut rows = table.read(tributary_lake::ReadOptions { columns: Some(names.to_vec()), filter: None }).await?;
        while let Some(batch) = rows.try_next().await? {
            self.within = self.within.max(latest(batch.column(0))?);
        }
        Ok(())
    }

    async fn changes(&mut self, table: &Table, columns: &BTreeSet<String>, first: u64) -> tributary_lake::Result<()> {
        let mut changes: SendableRecordBatchStream = table.changes_of(columns, first, table.version()).await?;
        while let Some(batch) = changes.try_next().await? {
            self.batch(&batch)?;
        }
        Ok(())
    }

    /// Rows of the feed: the time, what happened, and the version.
    fn batch(&mut self, batch: &RecordBatch) -> tributary_lake::Result<()> {
        let times = times(batch.column(0))?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let words = batch.column(1).as_string::<i32>();
        let versions = batch.column(2).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            if self.version != Some(versions.value(row)) {
                self.version = Some(versions.value(row));
                self.highest = self.highest.max(self.within.take());
            }
            let came = matches!(words.value(row), "insert" | "update_postimage");
            if came && times.is_valid(row) {
                let time = times.value(row);
                let is_late = self.highest.is_some_and(|highest| time < highest.saturating_sub(self.delay));
                self.late += u64::from(is_late && words.value(row) == "insert");
                self.within = self.within.max(Some(time));
            }
        }
        Ok(())
    }
}
