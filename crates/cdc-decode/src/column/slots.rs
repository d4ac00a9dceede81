//! What the values of a column under construction lie in.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::column::Refused;

/// A place for a value of each row.
pub(super) trait Slots {
    /// Cuts back to so many rows, if there are more.
    fn truncate(&mut self, rows: usize);
    /// Adds empty values until there are so many rows.
    fn fill(&mut self, rows: usize);
    /// Makes room for so many rows, and so many bytes of text in them.
    fn reserve(&mut self, rows: usize, bytes: usize);
}

impl<T: Clone + Default> Slots for Vec<T> {
    fn truncate(&mut self, rows: usize) {
        self.truncate(rows);
    }

    fn fill(&mut self, rows: usize) {
        self.resize(rows, T::default());
    }

    fn reserve(&mut self, rows: usize, _: usize) {
        self.reserve(rows);
    }
}

/// A row of bits.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    #[inline(always)]
    pub(super) fn push(&mut self, bit: bool) {
        let at = self.len % 8;
        if at == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << at;
        }
        self.len += 1;
    }

    pub(super) fn get(&self, at: usize) -> bool {
        self.bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }

    pub(super) fn take(&mut self) -> BooleanBuffer {
        let (bytes, len) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.len));
        BooleanBuffer::new(Buffer::from_vec(bytes), 0, len)
    }
}

impl Slots for Bits {
    fn truncate(&mut self, rows: usize) {
        if rows < self.len {
            self.len = rows;
            self.bytes.truncate(rows.div_ceil(8));
            if let (Some(last), 1..) = (self.bytes.last_mut(), rows % 8) {
                *last &= (1 << (rows % 8)) - 1;
            }
        }
    }

    fn fill(&mut self, rows: usize) {
        (self.len..rows).for_each(|_| self.push(false));
    }

    fn reserve(&mut self, rows: usize, _: usize) {
        self.bytes.reserve(rows.div_ceil(8));
    }
}

/// Which rows are not null, kept as the runs of those that are.
#[derive(Debug, Default)]
pub(super) struct Validity {
    pub len: usize,
    /// First row and the row after the last of each run of nulls, ascending.
    nulls: Vec<(usize, usize)>,
}

impl Validity {
    #[inline(always)]
    pub(super) fn push_valid(&mut self) {
        self.len += 1;
    }

    #[inline]
    pub(super) fn push_nulls(&mut self, count: usize) {
        let start = self.len;
        self.len += count;
        match self.nulls.last_mut() {
            Some((_, end)) if *end == start => *end = self.len,
            _ => self.nulls.push((start, self.len)),
        }
    }

    pub(super) fn is_valid(&self, row: usize) -> bool {
        // Asked about the last rows.
        row < self.len && !self.nulls.iter().rev().take_while(|(_, end)| *end > row).any(|(start, _)| *start <= row)
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            while let Some((start, end)) = self.nulls.last_mut()
                && *end > len
            {
                *end = len;
                if *start >= len {
                    self.nulls.pop();
                }
            }
        }
    }

    pub(super) fn take(&mut self) -> Option<NullBuffer> {
        let len = std::mem::take(&mut self.len);
        if self.nulls.is_empty() {
            return None;
        }
        let mut valid = BooleanBufferBuilder::new(len);
        for (start, end) in self.nulls.drain(..) {
            valid.append_n(start - valid.len(), true);
            valid.append_n(end - start, false);
        }
        valid.append_n(len - valid.len(), true);
        Some(NullBuffer::new(valid.finish()))
    }
}

/// Where each row's part of something begins and ends.
#[derive(Debug)]
pub(super) struct Offsets(Vec<i32>);

impl Offsets {
    pub(super) fn new() -> Self {
        Self(vec![0])
    }

    /// Ends a row at a place.
    #[inline(always)]
    pub(super) fn push(&mut self, end: usize) -> Result<(), Refused> {
        self.0.push(i32::try_from(end).map_err(|_| Refused::TooLarge)?);
        Ok(())
    }

    /// Ends a row that is empty.
    #[inline]
    pub(super) fn push_empty(&mut self) {
        let end = self.0.last().copied().unwrap_or(0);
        self.0.push(end);
    }

    /// Where the last row ends.
    pub(super) fn end(&self) -> usize {
        self.0.last().map_or(0, |end| place(*end))
    }

    /// What belongs to a row.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        let at = |row: usize| self.0.get(row).map_or(0, |offset| place(*offset));
        at(row)..at(row + 1)
    }

    /// As Arrow has them: they begin at 0 and never fall.
    pub(super) fn take(&mut self) -> OffsetBuffer<i32> {
        let old = std::mem::replace(self, Self::new());
        OffsetBuffer::new(ScalarBuffer::from(old.0))
    }
}

/// An offset, which is never negative.
fn place(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

impl Slots for Offsets {
    fn truncate(&mut self, rows: usize) {
        self.0.truncate(rows + 1);
    }

    fn fill(&mut self, rows: usize) {
        self.0.resize(rows + 1, self.0.last().copied().unwrap_or(0));
    }

    fn reserve(&mut self, rows: usize, _: usize) {
        self.0.reserve(rows);
    }
}

/// Texts or bytes, one after the other.
#[derive(Debug)]
pub(super) struct Bytes {
    pub offsets: Offsets,
    pub data: Vec<u8>,
}

impl Bytes {
    pub(super) fn new() -> Self {
        Self { offsets: Offsets::new(), data: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        self.offsets.push(self.data.len() + bytes.len())?;
        self.data.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn get(&self, row: usize) -> &[u8] {
        self.data.get(self.offsets.range(row)).unwrap_or_default()
    }

    pub(super) fn take(&mut self) -> (OffsetBuffer<i32>, Vec<u8>) {
        (self.offsets.take(), std::mem::take(&mut self.data))
    }
}

impl Slots for Bytes {
    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows);
        self.data.truncate(self.offsets.end());
    }

    fn fill(&mut self, rows: usize) {
        self.offsets.fill(rows);
    }

    fn reserve(&mut self, rows: usize, bytes: usize) {
        self.offsets.reserve(rows, bytes);
        self.data.reserve(bytes);
    }
}
