//! A text column whose value is mostly that of the row before: the name of a topic, a table, a connector.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use crate::column::Refused;
use crate::words::same;
use crate::zeros::Zeros;

/// Runs of equal values.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The text of each run's value, one after the other.
    text: Vec<u8>,
    runs: Vec<Run>,
    rows: usize,
    /// Bytes of text that the array will have.
    bytes: usize,
    /// The last array of one value and nothing else; one of the same value is a piece of it.
    constant: Option<StringArray>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    /// Where its value begins and ends in `text`; `None` = null.
    value: Option<(usize, usize)>,
    /// The row after its last.
    end: usize,
}

impl Repeats {
    /// Appends row number `row`; a null needs no appending, nulls are filled in before the next value or at the end.
    #[inline(always)]
    pub(crate) fn push(&mut self, row: usize, value: Option<&[u8]>) -> Result<(), Refused> {
        let Some(value) = value else { return Ok(()) };
        self.fill(row);
        self.bytes += value.len();
        if self.bytes > i32::MAX as usize {
            return Err(Refused::TooLarge);
        }
        self.rows += 1;
        if let Some(last) = self.runs.last_mut()
            && let Some((start, end)) = last.value
            && self.text.get(start..end).is_some_and(|last| same(last, value))
        {
            last.end = self.rows;
            return Ok(());
        }
        self.begin(Some(value));
        Ok(())
    }

    #[inline(always)]
    fn fill(&mut self, rows: usize) {
        if self.rows < rows {
            self.rows = rows;
            self.begin(None);
        }
    }

    /// Gives the last value to more rows, up to `end`, if it was given to the row before `first_end`; there must be room for
    /// them ([`Repeats::rows_max`]).
    pub(crate) fn extend_last(&mut self, first_end: usize, end: usize) {
        if self.rows != first_end || end <= first_end {
            return;
        }
        let Some(Run { value: Some((from, to)), end: last }) = self.runs.last_mut() else { return };
        self.bytes += (*to - *from) * (end - first_end);
        self.rows = end;
        *last = end;
    }

    /// How many rows there may be if all that follow have the last value.
    pub(crate) fn rows_max(&self) -> usize {
        let length = self.runs.last().and_then(|run| run.value).map_or(0, |(start, end)| end - start);
        self.rows + (i32::MAX as usize - self.bytes) / length.max(1)
    }

    fn begin(&mut self, value: Option<&[u8]>) {
        let value = value.map(|value| {
            let start = self.text.len();
            self.text.extend_from_slice(value);
            (start, self.text.len())
        });
        self.runs.push(Run { value, end: self.rows });
    }

    /// Cuts back to so many rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        while self.rows > rows {
            let before = self.runs.len().checked_sub(2).and_then(|before| self.runs.get(before)).map_or(0, |run| run.end);
            let Some(last) = self.runs.last_mut() else { return };
            let kept = before.max(rows);
            let length = last.value.map_or(0, |(start, end)| end - start);
            self.bytes -= length * (self.rows - kept);
            self.rows = kept;
            last.end = kept;
            if kept == before {
                self.runs.pop();
            }
        }
    }

    /// So many rows as an array; none are left.
    pub(crate) fn finish(&mut self, rows: usize, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        if self.rows == 0 && rows > 0 {
            return zeros.text(rows);
        }
        self.fill(rows);
        if let ([Run { value: Some((start, end)), .. }], Some(constant)) = (self.runs.as_slice(), &self.constant)
            && rows <= constant.len()
            && rows > 0
            && self.text.get(*start..*end) == Some(constant.value(0).as_bytes())
        {
            let array = constant.slice(0, rows);
            self.clear();
            return Ok(Arc::new(array));
        }
        let mut offsets: Vec<i32> = Vec::with_capacity(self.rows + 1);
        let mut text: Vec<u8> = Vec::with_capacity(self.bytes);
        let mut offset: i32 = 0;
        let mut row = 0;
        offsets.push(0);
        for run in &self.runs {
            let count = run.end - row;
            let value = run.value.and_then(|(start, end)| self.text.get(start..end)).unwrap_or_default();
            let step = i32::try_from(value.len()).unwrap_or(0);
            offsets.extend((1..=count).map(|nth| offset + step * i32::try_from(nth).unwrap_or(0)));
            offset += step * i32::try_from(count).unwrap_or(0);
            repeat(value, count, &mut text);
            row = run.end;
        }
        let array = StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), text.into(), self.nulls())?;
        if let [Run { value: Some(_), .. }] = self.runs.as_slice() {
            self.constant = Some(array.clone());
        }
        self.clear();
        Ok(Arc::new(array))
    }

    fn clear(&mut self) {
        *self = Self { constant: self.constant.take(), ..Self::default() };
    }

    fn nulls(&self) -> Option<NullBuffer> {
        if self.runs.iter().all(|run| run.value.is_some()) {
            return None;
        }
        let mut valid = BooleanBufferBuilder::new(self.rows);
        for run in &self.runs {
            valid.append_n(run.end - valid.len(), run.value.is_some());
        }
        Some(NullBuffer::new(valid.finish()))
    }
}

/// Appends a text so many times, doubling what is there.
fn repeat(value: &[u8], count: usize, out: &mut Vec<u8>) {
    if count == 0 || value.is_empty() {
        return;
    }
    let start = out.len();
    let end = start + value.len() * count;
    out.extend_from_slice(value);
    while out.len() < end {
        let have = (out.len() - start).min(end - out.len());
        out.extend_from_within(start..start + have);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_was_pushed_and_not_cut(
            steps in prop::collection::vec((prop::option::of("[ab]{0,3}"), 1usize..5, any::<bool>()), 0..40)
        ) {
            let mut kept: Vec<Option<String>> = Vec::new();
            let mut column = Repeats::default();
            for (value, times, cut) in steps {
                for _ in 0..times {
                    column.push(kept.len(), value.as_ref().map(String::as_bytes)).unwrap();
                    kept.push(value.clone());
                }
                if cut {
                    kept.truncate(kept.len() - times / 2);
                    column.truncate(kept.len());
                }
            }
            let array = column.finish(kept.len(), &mut Zeros::default()).unwrap();
            let read: Vec<Option<String>> = array.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect();
            prop_assert_eq!(read, kept);
        }
    }
}
