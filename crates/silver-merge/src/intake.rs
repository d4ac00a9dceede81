//! Reads the new rows of the source, batch by batch.

use std::collections::{BTreeMap, HashSet};

use futures::TryStreamExt;
use tributary_lake::arrow::array::{AsArray, RecordBatch, UInt32Array};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_specs::SilverSpec;

use crate::conform::conform;
use crate::error::{Error, Result};
use crate::events::{Events, Kind};
use crate::judge::{Counted, Judge, Judged, Rejected, add_counts};
use crate::keys::{Key, KeyCodec};
use crate::late::{Late, Lateness};
use crate::options::Options;
use crate::reach::first_version;
use crate::select::Selection;
use crate::source::{Delivery, Source};
use crate::stop::join_stops;
use crate::target::Target;

/// A range of source versions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    /// Above this one; none = from the first.
    pub from: Option<u64>,
    /// To this one.
    pub to: u64,
    /// Whether rows that fail a rule are still to be set aside.
    pub sets_aside: bool,
}

/// What reads the source.
pub(crate) struct Intake<'a> {
    pub spec: &'a SilverSpec,
    pub options: &'a Options,
    pub source: &'a Source,
    pub selection: &'a Selection,
    pub judge: &'a Judge,
    pub target: &'a Target,
    pub ranges: Vec<Range>,
    /// Tells late rows, where the flow has a watermark; each range is one version then.
    pub lateness: Option<Lateness>,
}

/// What was found beside the events; of every row once.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Source rows read.
    pub rows: u64,
    /// Rows left out, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// Rows for quarantine.
    pub quarantined: u64,
    /// What each expectation came to, in their order.
    pub rules: Vec<Counted>,
    /// Rows to set aside.
    pub rejected: Vec<Rejected>,
    /// What was late.
    pub late: Late,
}

/// A pass over the new rows, batch by batch.
pub(crate) struct Reading<'a> {
    intake: &'a Intake<'a>,
    ranges: Vec<Range>,
    next_range: usize,
    output: Option<SendableRecordBatchStream>,
    seen: Seen,
    /// Rows of all batches so far.
    taken: u64,
    stop: Option<Error>,
    findings: Findings,
}

impl Reading<'_> {
    /// The next batch of events.
    ///
    /// # Errors
    /// When the query fails, or gives several rows for one.
    pub async fn next(&mut self) -> Result<Option<Judged>> {
        let intake = self.intake;
        let table = &intake.spec.table;
        loop {
            if intake.options.cancel.is_cancelled() {
                return Err(Error::Cancelled { table: table.clone() });
            }
            let Some(output) = &mut self.output else {
                let Some(range) = self.ranges.get(self.next_range) else { return Ok(None) };
                self.next_range += 1;
                let rows = intake.source.rows(table, range.from, range.to).await?;
                let rows = match &intake.lateness {
                    Some(lateness) => lateness.of_version(rows),
                    None => rows,
                };
                self.output = Some(intake.selection.run(rows).await?);
                continue;
            };
            match output.try_next().await.map_err(|error| Error::query(table, error))? {
                Some(batch) => {
                    self.taken += batch.num_rows() as u64;
                    if let Some(progress) = &intake.options.progress {
                        progress(self.taken);
                    }
                    return self.judge(&batch).map(Some);
                }
                None => self.end_of_range()?,
            }
        }
    }

    fn judge(&mut self, batch: &RecordBatch) -> Result<Judged> {
        let intake = self.intake;
        let selected = intake.selection.take_apart(batch)?;
        self.seen.add(selected.rows.values());
        let mut judged = intake.judge.judge(&selected, &intake.target.shape)?;
        if let (Some(sequence), Some(data_type)) = (&mut judged.events.sequence, intake.target.sequence_type()) {
            *sequence = conform(sequence, &data_type.to_arrow()).map_err(|error| Error::kernel(&intake.spec.table, error))?;
        }
        let generated = intake.target.with_generated(judged.events.rows);
        judged.events.rows = generated.map_err(|source| Error::lake("compute generated columns of", &intake.spec.table, source))?;
        join_stops(&mut self.stop, judged.stop.take());
        merge(&mut self.findings.ignored, &judged.ignored);
        add_counts(&mut self.findings.rules, &judged.rules);
        if let Some(rejected) = judged.rejected.take() {
            self.findings.quarantined += rejected.rows.num_rows() as u64;
            self.findings.rejected.extend(self.ranges[self.next_range - 1].sets_aside.then_some(rejected));
        }
        Ok(judged)
    }

    fn end_of_range(&mut self) -> Result<()> {
        self.output = None;
        let read = self.intake.selection.rows_read();
        let Seen { rows, distinct, .. } = std::mem::take(&mut self.seen);
        if rows > distinct && !self.intake.selection.unfolds {
            let (table, source_table) = (self.intake.spec.table.clone(), Box::new(self.intake.source.name().clone()));
            return Err(Error::NotOneToOne { table, source_table, rows, of: distinct });
        }
        self.findings.rows += read;
        if read > distinct {
            *self.findings.ignored.entry("filtered".to_owned()).or_default() += read - distinct;
        }
        Ok(())
    }

    /// What was found beside the events.
    ///
    /// # Errors
    /// When rows forbid the commit.
    pub fn finish(mut self) -> Result<Findings> {
        if let Some(lateness) = &self.intake.lateness {
            let late = lateness.end();
            self.findings.rows += late.dropped;
            merge(&mut self.findings.ignored, &late.ignored().into_iter().collect());
            self.findings.late = late;
        }
        self.stop.map_or(Ok(self.findings), Err)
    }
}

impl Intake<'_> {
    /// Begins a pass over the new rows.
    pub fn read(&self) -> Reading<'_> {
        self.read_ranges(self.ranges.clone())
    }

    fn read_ranges(&self, ranges: Vec<Range>) -> Reading<'_> {
        Reading {
            intake: self,
            ranges,
            next_range: 0,
            output: None,
            seen: Seen::default(),
            taken: 0,
            stop: None,
            findings: Findings::default(),
        }
    }

    /// All events the source ever had of keys, and of those that key changes tie to them, and what concerns every key; and
    /// all of these keys.
    ///
    /// # Errors
    /// As [`Reading::next`].
    pub async fn read_again(&self, codec: &KeyCodec, mut keys: HashSet<Key>) -> Result<(Events, HashSet<Key>)> {
        let fail = |error| Error::kernel(&self.spec.table, error);
        let to = self.ranges.last().map_or(0, |range| range.to);
        loop {
            let range = Range { from: first_version(self.spec, self.options).checked_sub(1), to, sets_aside: false };
            let mut reading = self.read_ranges(vec![range]);
            let (mut parts, mut more) = (Vec::new(), HashSet::new());
            while let Some(judged) = reading.next().await? {
                let encoded = codec.encode(&codec.columns_of(&self.target.shape, &judged.events.rows)).map_err(fail)?;
                let is_wanted =
                    |row: &u32| judged.events.kinds[*row as usize].is_global() || keys.contains(encoded.row(*row as usize).as_ref());
                let rows: UInt32Array = (0..judged.events.len() as u32).filter(is_wanted).collect();
                parts.push(judged.events.take(&rows).map_err(fail)?);
                let tied = ties(self.target, codec, &judged.events).map_err(fail)?.into_iter();
                let tied = tied.filter(|(one, other)| keys.contains(one) != keys.contains(other));
                more.extend(tied.flat_map(|(one, other)| [one, other]).filter(|key| !keys.contains(key)));
            }
            if more.is_empty() {
                return Ok((Events::concat(&self.target.shape, parts).map_err(fail)?, keys));
            }
            keys.extend(more);
        }
    }

    /// In a change feed the preimage of an update, and a delete, say nothing of a key that has a row after the same commit. Gives the
    /// others, and how many were left out.
    ///
    /// # Errors
    /// When keys do not have the table's types.
    pub fn without_preimages(&self, codec: &KeyCodec, events: Events, before: &[bool]) -> Result<(Events, u64), ArrowError> {
        if self.source.delivery != Delivery::Feed || events.len() == 0 {
            return Ok((events, 0));
        }
        let keys = codec.encode(&codec.columns_of(&self.target.shape, &events.rows))?;
        let at = |row: usize| (keys.row(row).as_ref().to_vec(), events.position.as_ref().map(|position| position.value(row).to_owned()));
        let after: HashSet<_> = (0..events.len()).filter(|row| events.kinds[*row] == Kind::Upsert).map(at).collect();
        let says = |row: &u32| {
            let row = *row as usize;
            (events.kinds[row] != Kind::Delete && !before[row]) || !after.contains(&at(row))
        };
        let kept: UInt32Array = (0..events.len() as u32).filter(says).collect();
        let dropped = (events.len() - kept.len()) as u64;
        Ok((events.take(&kept)?, dropped))
    }
}

/// The pairs of keys that key changes among events tie together.
pub(crate) fn ties(target: &Target, codec: &KeyCodec, events: &Events) -> Result<Vec<(Key, Key)>, ArrowError> {
    let Some(others) = events.other_key_columns().filter(|_| (0..events.len()).any(|row| events.has_other_key(row))) else {
        return Ok(Vec::new());
    };
    let own = codec.encode(&codec.columns_of(&target.shape, &events.rows))?;
    let others = codec.encode(&others)?;
    let pair = |row: usize| (Key::from(own.row(row).as_ref()), Key::from(others.row(row).as_ref()));
    Ok((0..events.len()).filter(|row| events.has_other_key(*row)).map(pair).collect())
}

/// Which source rows have come out, so that a row that comes out twice is noticed.
#[derive(Default)]
struct Seen {
    bits: Vec<u64>,
    rows: u64,
    distinct: u64,
}

impl Seen {
    fn add(&mut self, rows: &[i64]) {
        for row in rows {
            let (word, bit) = ((*row / 64) as usize, 1 << (*row % 64));
            if self.bits.len() <= word {
                self.bits.resize(word + 1, 0);
            }
            self.rows += 1;
            self.distinct += u64::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
    }
}

/// Refuses a text sequence whose values differ in length: among events that meet, and what they meet.
///
/// # Errors
/// [`Error::TextSequence`].
pub(crate) fn check_lengths(spec: &SilverSpec, met: [&Events; 3]) -> Result<()> {
    let texts = met.iter().filter_map(|events| events.sequence.as_ref()?.as_string_opt::<i32>());
    let mut lengths = texts.flat_map(|texts| texts.iter().flatten().map(str::len));
    let first = lengths.next();
    if spec.allows_text_sequence() || lengths.all(|length| Some(length) == first) {
        return Ok(());
    }
    Err(Error::TextSequence { table: spec.table.clone(), column: spec.sequence_by.join(", ") })
}

/// Adds counts to counts.
pub(crate) fn merge(into: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>) {
    from.iter().for_each(|(name, count)| *into.entry(name.clone()).or_default() += count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_comes_out_twice_is_noticed() {
        let mut seen = Seen::default();
        seen.add(&[0, 64, 65]);
        seen.add(&[1, 64]);
        assert_eq!((seen.rows, seen.distinct), (5, 4));
    }
}
