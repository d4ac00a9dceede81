//! Keys of any types, compared as the bytes of Arrow's row format: ascending with nulls first, null equal to null.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::hash_utils::{RandomState, create_hashes};

use super::Lookup;
use super::filter::Filter;

/// See the module.
#[derive(Debug)]
pub(super) struct Encoded {
    converter: RowConverter,
    /// Encodes the first column alone: what every key begins with.
    first: RowConverter,
    rows: Rows,
    /// Rows of `rows`, keys ascending, each once.
    ascending: Vec<u32>,
    hashes: RandomState,
    /// The same rows by the hashes of their values.
    by_hash: Vec<(u64, u32)>,
    filter: Filter,
}

impl Encoded {
    pub fn new(types: &[DataType], columns: &[ArrayRef]) -> Result<Self, ArrowError> {
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())?;
        let first = RowConverter::new(types.iter().take(1).cloned().map(SortField::new).collect())?;
        let rows = converter.convert_columns(columns)?;
        let ascending = ascending(&rows);
        let hashes = RandomState::with_seed(0);
        let mut of_rows = vec![0; rows.num_rows()];
        create_hashes(columns, &hashes, &mut of_rows)?;
        let mut by_hash: Vec<(u64, u32)> = ascending.iter().map(|row| (of_rows[*row as usize], *row)).collect();
        by_hash.sort_unstable();
        let filter = Filter::new(by_hash.iter().map(|(hash, _)| *hash));
        Ok(Self { converter, first, rows, ascending, hashes, by_hash, filter })
    }

    /// The keys of a hash.
    fn of_hash(&self, hash: u64) -> &[(u64, u32)] {
        if !self.filter.may_contain(hash) {
            return &[];
        }
        let from = &self.by_hash[self.by_hash.partition_point(|(other, _)| *other < hash)..];
        &from[..from.iter().take_while(|(other, _)| *other == hash).count()]
    }

    fn any_between(&self, low: &[u8], high: &[u8]) -> bool {
        let at = self.ascending.partition_point(|row| self.rows.row(*row as usize).as_ref() < low);
        let Some(row) = self.ascending.get(at) else { return false };
        let key = self.rows.row(*row as usize);
        // Keys of the greatest value itself go on behind it.
        key.as_ref() <= high || key.as_ref().starts_with(high)
    }
}

impl Lookup for Encoded {
    fn len(&self) -> usize {
        self.ascending.len()
    }

    fn rows_among(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut hashes = vec![0; rows];
        create_hashes(columns, &self.hashes, &mut hashes)?;
        let maybe: Vec<u32> = (0..rows as u32).filter(|row| !self.of_hash(hashes[*row as usize]).is_empty()).collect();
        if maybe.is_empty() {
            return Ok(maybe);
        }
        let at = UInt32Array::from(maybe);
        let columns = columns.iter().map(|column| take(column, &at, None)).collect::<Result<Vec<_>, _>>()?;
        let encoded = self.converter.convert_columns(&columns)?;
        let is_key = |(row, at): &(usize, &u32)| {
            let same = |(_, key): &(u64, u32)| self.rows.row(*key as usize) == encoded.row(*row);
            self.of_hash(hashes[**at as usize]).iter().any(same)
        };
        Ok(at.values().iter().enumerate().filter(is_key).map(|(_, at)| *at).collect())
    }

    fn may_be_between(&self, least: &ArrayRef, greatest: &ArrayRef) -> Result<Vec<bool>, ArrowError> {
        let encode = |bounds: &ArrayRef| self.first.convert_columns(&[ArrayRef::clone(bounds)]);
        let (lows, highs) = (encode(least)?, encode(greatest)?);
        let may = |part: usize| {
            least.is_null(part) || greatest.is_null(part) || self.any_between(lows.row(part).as_ref(), highs.row(part).as_ref())
        };
        Ok((0..least.len()).map(may).collect())
    }

    fn all(&self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.converter.convert_rows(self.ascending.iter().map(|row| self.rows.row(*row as usize)))
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
