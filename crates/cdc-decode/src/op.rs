//! What changes did.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use crate::column::Refused;
use crate::repeats::Repeats;
use crate::zeros::Zeros;

/// What a change did, as `_op` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Create,
    Update,
    Delete,
    Truncate,
}

/// The names, in the order of the operations.
const NAMES: [&str; 5] = ["read", "create", "update", "delete", "truncate"];
/// The longest one's length.
const NAME_MAX: usize = 8;

/// The names with blanks behind them.
const PADDED: [[u8; NAME_MAX]; NAMES.len()] = {
    let mut padded = [[b' '; NAME_MAX]; NAMES.len()];
    let mut op = 0;
    while op < NAMES.len() {
        let name = NAMES[op].as_bytes();
        let mut at = 0;
        while at < name.len() {
            padded[op][at] = name[at];
            at += 1;
        }
        op += 1;
    }
    padded
};

impl Op {
    /// As `_op` says it.
    pub(crate) const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// By Debezium's code. `None` = the code is none of ours.
    pub(crate) fn of(code: &[u8]) -> Option<Self> {
        Some(match code {
            b"r" => Self::Read,
            b"c" => Self::Create,
            b"u" => Self::Update,
            b"d" => Self::Delete,
            b"t" => Self::Truncate,
            _ => return None,
        })
    }

    /// What a flattened row did, by its code and its mark of a delete; without a code it is an update. `None` = the code is
    /// none of ours.
    pub(crate) fn of_flattened(code: Option<&[u8]>, deleted: Option<bool>) -> Option<Self> {
        if deleted == Some(true) {
            return Some(Self::Delete);
        }
        code.map_or(Some(Self::Update), Self::of)
    }
}

/// The column of the operations of a batch.
#[derive(Debug, Default)]
pub(crate) struct Ops {
    rows: Vec<Op>,
    /// For batches of one operation.
    constant: Repeats,
}

impl Ops {
    #[inline(always)]
    pub(crate) fn push(&mut self, op: Op) {
        self.rows.push(op);
    }

    /// The operation of a row.
    pub(crate) fn get(&self, row: usize) -> Option<Op> {
        self.rows.get(row).copied()
    }

    /// Cuts back to so many rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// The rows as an array of their names; none are left.
    pub(crate) fn finish(&mut self, zeros: &mut Zeros) -> Result<ArrayRef, ArrowError> {
        let rows = self.rows.len();
        if let Some(first) = self.rows.first()
            && self.rows.iter().all(|op| op == first)
        {
            let pushed = self.constant.push(0, Some(first.name().as_bytes()));
            pushed.map_err(|_: Refused| ArrowError::OffsetOverflowError(rows))?;
            if rows <= self.constant.rows_max() {
                self.constant.extend_last(1, rows);
                self.rows.clear();
                return self.constant.finish(rows, zeros);
            }
            self.constant.truncate(0);
        }
        let mut offsets: Vec<i32> = Vec::with_capacity(rows + 1);
        let mut text: Vec<u8> = Vec::with_capacity((rows + 1) * NAME_MAX);
        offsets.push(0);
        for op in self.rows.drain(..) {
            let end = text.len() + op.name().len();
            // The blanks are cut off again: that is quicker than to copy as many letters as there are.
            text.extend_from_slice(&PADDED[op as usize]);
            text.truncate(end);
            offsets.push(i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?);
        }
        Ok(Arc::new(StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), text.into(), None)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_row_has_the_name_of_its_operation(
            batches in prop::collection::vec((prop::collection::vec(prop::sample::select(b"rcudt".to_vec()), 0..9), 0usize..3), 1..5)
        ) {
            let (mut ops, mut zeros) = (Ops::default(), Zeros::default());
            for (codes, cut) in batches {
                let mut expected: Vec<&str> = Vec::new();
                for code in codes {
                    let op = Op::of(&[code]).unwrap();
                    ops.push(op);
                    expected.push(op.name());
                }
                expected.truncate(expected.len().saturating_sub(cut));
                ops.truncate(expected.len());
                let array = ops.finish(&mut zeros).unwrap();
                prop_assert_eq!(array.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), expected);
            }
        }
    }
}
