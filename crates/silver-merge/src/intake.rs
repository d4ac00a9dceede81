//! Reads the new rows of the source, slice by slice of their keys.

use std::collections::{BTreeMap, HashSet};

use futures::TryStreamExt;
use tributary_lake::arrow::array::UInt32Array;
use tributary_lake::arrow::error::ArrowError;
use tributary_specs::SilverSpec;

use crate::error::{Error, Result};
use crate::events::{Events, Kind};
use crate::judge::{Judge, Judged, Rejected, join_stops};
use crate::keys::{Key, KeyCodec, Slices};
use crate::options::Options;
use crate::select::Selection;
use crate::source::{Delivery, Source};
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
    /// Failures by expectation.
    pub expectations: BTreeMap<String, u64>,
    /// Rows to set aside.
    pub rejected: Vec<Rejected>,
}

/// The events of a slice.
pub(crate) enum Slice {
    Events(Box<Events>),
    /// They are more than may be held: the keys must be dealt to more slices.
    TooLarge,
}

impl Intake<'_> {
    /// Every event, batch by batch, as it is read; and what was found beside them.
    ///
    /// # Errors
    /// When the query fails, or the rows forbid the commit.
    pub async fn read(&self, mut take: impl AsyncFnMut(Judged) -> Result<bool>) -> Result<Findings> {
        let table = &self.spec.table;
        let mut findings = Findings::default();
        let (mut stop, mut lengths) = (None, None::<(usize, usize)>);
        for range in &self.ranges {
            let rows = self.source.rows(range.from, range.to).await?;
            let mut output = self.selection.run(rows).await?;
            let mut seen = Seen::default();
            while let Some(batch) = output.try_next().await.map_err(|error| Error::query(table, error))? {
                if self.options.cancel.is_cancelled() {
                    return Err(Error::Cancelled { table: table.clone() });
                }
                let selected = self.selection.take_apart(&batch)?;
                seen.add(selected.rows.values());
                let mut judged = self.judge.judge(&selected, &self.target.shape)?;
                join_stops(&mut stop, judged.stop.take());
                lengths = widest(lengths, judged.text_lengths);
                merge(&mut findings.ignored, &judged.ignored);
                merge(&mut findings.expectations, &judged.expectations);
                if let Some(rejected) = judged.rejected.take() {
                    findings.quarantined += rejected.rows.num_rows() as u64;
                    findings.rejected.extend(range.sets_aside.then_some(rejected));
                }
                if !take(judged).await? {
                    return Ok(findings);
                }
            }
            let read = self.selection.rows_read();
            if seen.rows > seen.distinct {
                let source_table = self.source.name().clone();
                return Err(Error::NotOneToOne { table: table.clone(), source_table, rows: seen.rows, of: seen.distinct });
            }
            findings.rows += read;
            if read > seen.distinct {
                *findings.ignored.entry("filtered".to_owned()).or_default() += read - seen.distinct;
            }
        }
        check_lengths(self.spec, lengths)?;
        stop.map_or(Ok(findings), Err)
    }

    /// The events whose keys are in a slice; and those of every key, which are in each.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn slice(&self, codec: &KeyCodec, slices: &Slices, at: usize, bytes_max: usize) -> Result<(Slice, Findings)> {
        let mut parts: Vec<Events> = Vec::new();
        let mut before_images = Vec::new();
        let (mut bytes, mut too_large) = (0, false);
        let table = self.spec.table.clone();
        let findings = self
            .read(async |judged| {
                let kept = rows_of_slice(self.target, codec, slices, at, &judged.events).map_err(|error| Error::kernel(&table, error))?;
                if kept.is_empty() {
                    return Ok(true);
                }
                before_images.extend(kept.values().iter().map(|row| judged.before_images[*row as usize]));
                let part = match kept.len() == judged.events.len() {
                    true => judged.events,
                    false => judged.events.take(&kept).map_err(|error| Error::kernel(&table, error))?,
                };
                bytes += part.bytes();
                parts.push(part);
                too_large = bytes > bytes_max;
                Ok(!too_large)
            })
            .await?;
        if too_large {
            return Ok((Slice::TooLarge, findings));
        }
        let fail = |error| Error::kernel(&table, error);
        let events = Events::concat(&self.target.shape, parts).map_err(fail)?;
        let (events, dropped) = self.without_before_images(codec, events, &before_images).map_err(fail)?;
        let mut findings = findings;
        if dropped > 0 {
            *findings.ignored.entry("preimage".to_owned()).or_default() += dropped;
        }
        Ok((Slice::Events(Box::new(events)), findings))
    }

    /// In a change feed the picture before a change, and a delete, say nothing of a key that has a row after the same commit.
    fn without_before_images(&self, codec: &KeyCodec, events: Events, before: &[bool]) -> Result<(Events, u64), ArrowError> {
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

    /// Keys that key changes of the batch tie to others.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn tied(&self, codec: &KeyCodec) -> Result<Vec<(Key, Key)>> {
        let mut tied = Vec::new();
        let table = self.spec.table.clone();
        self.read(async |judged| {
            tied.extend(ties(self.target, codec, &judged.events).map_err(|error| Error::kernel(&table, error))?);
            Ok(true)
        })
        .await?;
        Ok(tied)
    }
}

/// The pairs of keys that key changes among events tie together.
pub(crate) fn ties(target: &Target, codec: &KeyCodec, events: &Events) -> Result<Vec<(Key, Key)>, ArrowError> {
    let Some(others) = events.other_key_columns().filter(|_| (0..events.len()).any(|row| events.has_other_key(row))) else { return Ok(Vec::new()) };
    let own = codec.encode(&codec.columns_of(&target.shape, &events.rows))?;
    let others = codec.encode(&others)?;
    let pair = |row: usize| (Key::from(own.row(row).as_ref()), Key::from(others.row(row).as_ref()));
    Ok((0..events.len()).filter(|row| events.has_other_key(*row)).map(pair).collect())
}

fn rows_of_slice(
    target: &Target,
    codec: &KeyCodec,
    slices: &Slices,
    at: usize,
    events: &Events,
) -> Result<UInt32Array, ArrowError> {
    if slices.count <= 1 {
        return Ok((0..events.len() as u32).collect());
    }
    let keys = codec.encode(&codec.columns_of(&target.shape, &events.rows))?;
    let is_here = |row: &u32| events.kinds[*row as usize].is_global() || slices.of(keys.row(*row as usize).as_ref()) == at;
    Ok((0..events.len() as u32).filter(is_here).collect())
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

fn widest(a: Option<(usize, usize)>, b: Option<(usize, usize)>) -> Option<(usize, usize)> {
    match (a, b) {
        (Some((least, most)), Some((other_least, other_most))) => Some((least.min(other_least), most.max(other_most))),
        (a, b) => a.or(b),
    }
}

fn check_lengths(spec: &SilverSpec, lengths: Option<(usize, usize)>) -> Result<()> {
    match lengths {
        Some((least, most)) if least != most => {
            Err(Error::TextSequence { table: spec.table.clone(), column: spec.sequence_by.join(", ") })
        }
        _ => Ok(()),
    }
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

    #[test]
    fn the_widest_of_two_ranges_holds_both() {
        assert_eq!(widest(Some((3, 4)), Some((2, 3))), Some((2, 4)));
        assert_eq!(widest(None, Some((2, 3))), Some((2, 3)));
    }
}
