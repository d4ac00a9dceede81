//! Where a value stands among the values of its column: coordinates that are evenly filled whatever the values are.

use tributary_lake::Curve;
use tributary_lake::arrow::array::{ArrayRef, UInt64Array};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::row::{OwnedRow, RowConverter, SortField};

use super::place;

/// Rows that are looked at to learn how values are spread.
pub(crate) const SAMPLE_ROWS: u64 = 16 * 1024;

/// Bits of a coordinate at most: more cells than a table has files.
const BITS_MAX: u32 = 10;

/// Values that cut each of some columns into ranges of about equally many rows. Null stands before every value, as a value of its own.
#[derive(Debug)]
pub(crate) struct Ranks {
    curve: Curve,
    bits: u32,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    converter: RowConverter,
    /// Ascending; a value that many rows have is there often, and so takes the room of its rows.
    cuts: Vec<OwnedRow>,
}

impl Ranks {
    /// From a sample: for each column an array, all of one length.
    ///
    /// # Errors
    /// When a column's type has no order.
    pub(crate) fn of(sample: &[ArrayRef], curve: Curve) -> Result<Self, ArrowError> {
        let bits = (64 / u32::try_from(sample.len().max(1)).unwrap_or(64)).clamp(1, BITS_MAX);
        let columns = sample.iter().map(|values| Column::of(values, (1 << bits) - 1)).collect::<Result<_, _>>()?;
        Ok(Self { curve, bits, columns })
    }

    /// The place of each row of these columns on the curve.
    ///
    /// # Errors
    /// When a column has another type than its sample.
    pub(crate) fn places(&self, columns: &[ArrayRef]) -> Result<UInt64Array, ArrowError> {
        let greatest = (1 << self.bits) - 1;
        let ranks = self.columns.iter().zip(columns).map(|(column, values)| column.ranks(values, greatest));
        let ranks = ranks.collect::<Result<Vec<_>, _>>()?;
        let rows = columns.first().map_or(0, |column| column.len());
        Ok((0..rows).map(|row| place(self.curve, ranks.iter().map(|ranks| ranks[row]).collect(), self.bits)).collect::<Vec<_>>().into())
    }
}

impl Column {
    fn of(values: &ArrayRef, cuts_max: usize) -> Result<Self, ArrowError> {
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(values))?;
        let mut sorted: Vec<OwnedRow> = rows.iter().map(|row| row.owned()).collect();
        sorted.sort_unstable();
        let ranges = cuts_max + 1;
        let few = sorted.len() < ranges;
        let cuts = if few { sorted } else { (1..ranges).map(|cut| sorted[cut * sorted.len() / ranges].clone()).collect() };
        Ok(Self { converter, cuts })
    }

    /// From zero to `greatest`.
    fn ranks(&self, values: &ArrayRef, greatest: usize) -> Result<Vec<u32>, ArrowError> {
        let rows = self.converter.convert_columns(std::slice::from_ref(values))?;
        let rank = |row| self.cuts.partition_point(|cut| cut.row() <= row) * greatest / self.cuts.len().max(1);
        Ok(rows.iter().map(|row| u32::try_from(rank(row)).unwrap_or(u32::MAX)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_lake::arrow::array::{Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn ranges_hold_about_equally_many_rows_however_values_are_spread() {
        let values: ArrayRef = Arc::new((0..4096_i64).map(|at| at * at * at).collect::<Int64Array>());
        let ranks = Column::of(&values, 15).unwrap().ranks(&values, 15).unwrap();
        let mut counts = [0; 16];
        for rank in ranks {
            counts[rank as usize] += 1;
        }
        assert_eq!(counts, [256; 16]);
    }

    #[test]
    fn a_value_that_many_rows_have_takes_their_room() {
        let values: ArrayRef = Arc::new((0..4096_i64).map(|at| (at % 2 == 0).then_some(at)).collect::<Int64Array>());
        let ranks = Column::of(&values, 15).unwrap().ranks(&values, 15).unwrap();
        assert_eq!(ranks[1], 7, "null is half of all");
        assert_eq!((ranks[0], ranks[4094]), (8, 15));
    }

    #[test]
    fn null_and_nan_have_places_of_their_own() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(f64::NEG_INFINITY), Some(0.0), Some(f64::NAN)]));
        let ranks = Column::of(&values, 1023).unwrap().ranks(&values, 1023).unwrap();
        assert_eq!(ranks, [255, 511, 767, 1023], "the whole axis is taken");
    }

    #[test]
    fn one_value_alone_is_no_hindrance() {
        let same: ArrayRef = Arc::new(StringArray::from(vec!["x"; 5000]));
        let ranks = Ranks::of(&[Arc::clone(&same), Arc::clone(&same)], Curve::Hilbert).unwrap();
        let places = ranks.places(&[Arc::clone(&same), same]).unwrap();
        assert!(places.values().iter().all(|place| *place == places.value(0)));
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        assert_eq!(Ranks::of(&[none], Curve::ZOrder).unwrap().columns[0].cuts.len(), 0);
    }
}
