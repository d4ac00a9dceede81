//! Keys that are looked for: which rows have one of them, and which parts of a file can have none.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, UInt32Array, make_comparator};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::ScalarValue;
use datafusion::common::hash_utils::{RandomState, create_hashes};

use crate::{KeyRange, KeyRanges, Result};

/// Bits of the filter for each key: one row in as many passes it by chance.
const FILTER_BITS: usize = 32;

/// The filter stays in the caches of a processor.
const FILTER_BITS_MAX: usize = 1 << 25;

/// Keys of a table. Null equals null; numbers that compare equal but differ in their bits (both zeros) are two keys.
#[derive(Debug)]
pub struct KeySet {
    names: Vec<String>,
    converter: RowConverter,
    /// Encodes the first column alone: what every key begins with.
    first: RowConverter,
    encoded: Rows,
    /// Rows of `encoded`, keys ascending, each once.
    ascending: Vec<u32>,
    ranges: KeyRanges,
    hashes: RandomState,
    filter: Filter,
}

impl KeySet {
    /// The keys of `parts`, each of which has a column for each of `names`, of these types.
    ///
    /// # Errors
    /// When a type has no order, or a part has other types.
    pub fn new(names: Vec<String>, types: &[DataType], parts: &[Vec<ArrayRef>]) -> Result<Self> {
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())?;
        let first = RowConverter::new(types.iter().take(1).cloned().map(SortField::new).collect())?;
        let mut ranges = KeyRanges::default();
        let mut columns = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            let arrays: Vec<&dyn Array> = parts.iter().map(|part| part[at].as_ref()).collect();
            let column = match (arrays.as_slice(), parts) {
                ([_], [part]) => ArrayRef::clone(&part[at]),
                ([], _) => arrow::array::new_empty_array(&types[at]),
                (arrays, _) => concat(arrays)?,
            };
            ranges.0.extend(range(&column)?.map(|range| (name.clone(), range)));
            columns.push(column);
        }
        let encoded = converter.convert_columns(&columns)?;
        let ascending = ascending(&encoded);
        let hashes = RandomState::with_seed(0);
        let mut filter = Filter::new(ascending.len());
        let mut buffer = vec![0; encoded.num_rows()];
        create_hashes(&columns, &hashes, &mut buffer)?.iter().for_each(|hash| filter.insert(*hash));
        Ok(Self { names, converter, first, encoded, ascending, ranges, hashes, filter })
    }

    /// The key columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.ascending.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ascending.is_empty()
    }

    /// For each key column between which values the keys lie.
    pub fn ranges(&self) -> &KeyRanges {
        &self.ranges
    }

    /// Whether a key is among them: its columns in the row format of Arrow, ascending with nulls first.
    pub fn contains(&self, encoded: &[u8]) -> bool {
        self.ascending.binary_search_by(|row| self.encoded.row(*row as usize).as_ref().cmp(encoded)).is_ok()
    }

    /// Which rows of key columns have one of the keys, ascending.
    ///
    /// # Errors
    /// When the columns have other types than the keys.
    pub fn rows_among(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut hashes = vec![0; rows];
        create_hashes(columns, &self.hashes, &mut hashes)?;
        let maybe: Vec<u32> = (0..rows as u32).filter(|row| self.filter.may_contain(hashes[*row as usize])).collect();
        if maybe.is_empty() {
            return Ok(maybe);
        }
        let at = UInt32Array::from(maybe);
        let columns = columns.iter().map(|column| take(column, &at, None)).collect::<Result<Vec<_>, _>>()?;
        let encoded = self.converter.convert_columns(&columns)?;
        Ok(at.values().iter().enumerate().filter(|(row, _)| self.contains(encoded.row(*row).as_ref())).map(|(_, at)| *at).collect())
    }

    /// Which parts of a file may have one of the keys, told by the least and the greatest value of the first key column in each; null
    /// where nobody knows.
    ///
    /// # Errors
    /// When the bounds have another type than the column.
    pub(crate) fn may_be_between(&self, least: &ArrayRef, greatest: &ArrayRef) -> Result<Vec<bool>, ArrowError> {
        let encode = |bounds: &ArrayRef| self.first.convert_columns(&[ArrayRef::clone(bounds)]);
        let (lows, highs) = (encode(least)?, encode(greatest)?);
        let may = |part: usize| {
            least.is_null(part) || greatest.is_null(part) || self.any_between(lows.row(part).as_ref(), highs.row(part).as_ref())
        };
        Ok((0..least.len()).map(may).collect())
    }

    fn any_between(&self, low: &[u8], high: &[u8]) -> bool {
        let at = self.ascending.partition_point(|row| self.encoded.row(*row as usize).as_ref() < low);
        let Some(row) = self.ascending.get(at) else { return false };
        let key = self.encoded.row(*row as usize);
        // Keys of the greatest value itself go on behind it.
        key.as_ref() <= high || key.as_ref().starts_with(high)
    }

    /// The key columns of all keys, if they are at most so many.
    ///
    /// # Errors
    /// None that are known.
    pub(crate) fn few(&self, most: usize) -> Result<Option<Vec<ArrayRef>>, ArrowError> {
        if self.len() > most {
            return Ok(None);
        }
        self.converter.convert_rows(self.ascending.iter().map(|row| self.encoded.row(*row as usize))).map(Some)
    }

    /// Whether a key has null in its first column.
    pub(crate) fn has_null_first(&self) -> bool {
        self.names.first().and_then(|name| self.ranges.0.get(name)).is_some_and(|range| range.nulls)
    }
}

/// Rows by their bytes, equal ones once.
fn ascending(rows: &Rows) -> Vec<u32> {
    // The first bytes decide nearly always: they are compared without looking the row up.
    let head = |row: usize| {
        let (bytes, mut head) = (rows.row(row), [0; 16]);
        let length = bytes.as_ref().len().min(16);
        head[..length].copy_from_slice(&bytes.as_ref()[..length]);
        u128::from_be_bytes(head)
    };
    let mut keyed: Vec<(u128, u32)> = (0..rows.num_rows()).map(|row| (head(row), row as u32)).collect();
    let bytes = |row: u32| rows.row(row as usize);
    keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes(a.1).cmp(&bytes(b.1))));
    keyed.dedup_by(|a, b| a.0 == b.0 && bytes(a.1) == bytes(b.1));
    keyed.into_iter().map(|(_, row)| row).collect()
}

/// The range of a column's values; none without rows.
fn range(column: &ArrayRef) -> Result<Option<KeyRange>> {
    if column.is_empty() {
        return Ok(None);
    }
    let compare = make_comparator(column, column, SortOptions::default())?;
    let valid = || (0..column.len()).filter(|row| column.is_valid(*row));
    let scalar = |row: Option<usize>| row.map(|row| ScalarValue::try_from_array(column, row)).transpose();
    let least = scalar(valid().min_by(|a, b| compare(*a, *b)))?;
    let greatest = scalar(valid().max_by(|a, b| compare(*a, *b)))?;
    Ok(Some(KeyRange { bounds: least.zip(greatest), nulls: column.null_count() > 0 }))
}

impl KeyRanges {
    /// Takes in the ranges of other keys.
    pub fn widen(&mut self, other: &Self) {
        for (name, range) in &other.0 {
            let Some(found) = self.0.get_mut(name) else {
                self.0.insert(name.clone(), range.clone());
                continue;
            };
            found.nulls |= range.nulls;
            found.bounds = match (found.bounds.take(), range.bounds.clone()) {
                (Some((least, greatest)), Some((min, max))) => Some((
                    if min.partial_cmp(&least) == Some(Ordering::Less) { min } else { least },
                    if max.partial_cmp(&greatest) == Some(Ordering::Greater) { max } else { greatest },
                )),
                (one, other) => one.or(other),
            };
        }
    }
}

/// A bit for each hash, some shared.
#[derive(Debug)]
struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn new(keys: usize) -> Self {
        let bits = keys.saturating_mul(FILTER_BITS).clamp(1024, FILTER_BITS_MAX).next_power_of_two();
        Self { words: vec![0; bits / 64], shift: 64 - bits.trailing_zeros() }
    }

    fn bit(&self, hash: u64) -> (usize, u64) {
        // Fibonacci hashing: the upper bits of the product depend on every bit of the hash.
        let bit = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn insert(&mut self, hash: u64) {
        let (word, bit) = self.bit(hash);
        self.words[word] |= bit;
    }

    fn may_contain(&self, hash: u64) -> bool {
        let (word, bit) = self.bit(hash);
        self.words[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn texts(texts: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    fn longs(longs: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(longs.to_vec()))
    }

    #[test]
    fn rows_of_the_keys_and_no_others_are_found_null_among_them() {
        let parts = [vec![longs(&[Some(5), None, Some(5)])], vec![longs(&[Some(-1), Some(i64::MAX)])]];
        let keys = KeySet::new(vec!["id".to_owned()], &[DataType::Int64], &parts).unwrap();
        assert_eq!(keys.len(), 4);
        assert_eq!(keys.rows_among(&[longs(&[Some(4), Some(5), None, Some(i64::MIN), Some(-1), Some(5)])]).unwrap(), [1, 2, 4, 5]);
        let many = KeySet::new(
            vec!["id".to_owned()],
            &[DataType::Int64],
            &[vec![Arc::new(Int64Array::from_iter_values((0..5000).map(|id| id * 3))) as ArrayRef]],
        )
        .unwrap();
        let found = many.rows_among(&[Arc::new(Int64Array::from_iter_values(0..15_000)) as ArrayRef]).unwrap();
        assert!(found.len() == 5000 && found.iter().all(|row| row % 3 == 0));
    }

    #[test]
    fn keys_of_several_columns_are_found_together() {
        let types = [DataType::Utf8, DataType::Int32];
        let numbers = |numbers: Vec<Option<i32>>| Arc::new(Int32Array::from(numbers)) as ArrayRef;
        let keys = KeySet::new(
            vec!["a".to_owned(), "b".to_owned()],
            &types,
            &[vec![texts(&[Some("x"), Some("y"), None]), numbers(vec![Some(1), None, Some(3)])]],
        )
        .unwrap();
        let found = keys.rows_among(&[
            texts(&[Some("x"), Some("x"), Some("y"), None, Some("")]),
            numbers(vec![Some(1), Some(2), None, Some(3), Some(1)]),
        ]);
        assert_eq!(found.unwrap(), [0, 2, 3]);
    }

    #[test]
    fn both_zeros_are_two_keys_and_a_value_that_is_no_number_is_one() {
        let doubles = |doubles: Vec<f64>| Arc::new(Float64Array::from(doubles)) as ArrayRef;
        let keys = KeySet::new(vec!["d".to_owned()], &[DataType::Float64], &[vec![doubles(vec![0.0, f64::NAN])]]).unwrap();
        assert_eq!(keys.rows_among(&[doubles(vec![-0.0, 0.0, f64::NAN, 1.0])]).unwrap(), [1, 2]);
    }

    #[test]
    fn a_part_whose_bounds_leave_no_key_is_told_and_unknown_bounds_may_hold_any() {
        let keys = KeySet::new(vec!["id".to_owned()], &[DataType::Int64], &[vec![longs(&[Some(10), Some(20), Some(1000)])]]).unwrap();
        let least = longs(&[Some(0), Some(11), Some(20), Some(21), Some(1001), None, Some(-5)]);
        let greatest = longs(&[Some(9), Some(19), Some(20), Some(999), Some(2000), Some(3), None]);
        assert_eq!(keys.may_be_between(&least, &greatest).unwrap(), [false, false, true, false, false, true, true]);
        let types = [DataType::Utf8, DataType::Int64];
        let keys =
            KeySet::new(vec!["a".to_owned(), "b".to_owned()], &types, &[vec![texts(&[Some("m"), Some("m")]), longs(&[Some(1), Some(9)])]])
                .unwrap();
        let (least, greatest) = (texts(&[Some("a"), Some("m"), Some("n")]), texts(&[Some("l"), Some("m"), Some("z")]));
        assert_eq!(keys.may_be_between(&least, &greatest).unwrap(), [false, true, false]);
    }

    #[test]
    fn ranges_widen_by_those_of_other_keys() {
        let of = |values: &[Option<i64>]| {
            KeySet::new(vec!["id".to_owned()], &[DataType::Int64], &[vec![longs(values)]]).unwrap().ranges().clone()
        };
        let mut ranges = of(&[Some(3), Some(7)]);
        ranges.widen(&of(&[Some(1), None]));
        assert_eq!(ranges, of(&[Some(1), Some(7), None]));
        ranges.widen(&KeyRanges::default());
        assert_eq!(ranges, of(&[Some(1), Some(7), None]));
    }
}
