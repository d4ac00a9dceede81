//! Keys that are looked for: which rows have one of them, and which parts of a file can have none.

mod encoded;
mod filter;
mod whole;

use std::cmp::Ordering;
use std::fmt::Debug;

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::{SortOptions, concat};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;

use encoded::Encoded;
use whole::Whole;

use crate::{KeyRange, KeyRanges, Result};

/// Keys of a table. Null equals null; numbers that compare equal but differ in their bits (both zeros) are two keys.
#[derive(Debug)]
pub struct KeySet {
    names: Vec<String>,
    types: Vec<DataType>,
    keys: Box<dyn Lookup>,
    ranges: KeyRanges,
}

/// How keys are compared.
trait Lookup: Debug + Send + Sync {
    /// Of different keys.
    fn len(&self) -> usize;
    /// See [`KeySet::rows_among`].
    fn rows_among(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError>;
    /// See [`KeySet::may_be_between`].
    fn may_be_between(&self, least: &ArrayRef, greatest: &ArrayRef) -> Result<Vec<bool>, ArrowError>;
    /// The columns of all keys, ascending, null first.
    fn all(&self) -> Result<Vec<ArrayRef>, ArrowError>;
}

/// One column whose values are stored as whole numbers is compared as it is; all else is encoded.
fn lookup(types: &[DataType], columns: &[ArrayRef]) -> Result<Box<dyn Lookup>, ArrowError> {
    let [column] = columns else { return Ok(Box::new(Encoded::new(types, columns)?)) };
    Ok(match column.data_type() {
        DataType::Int8 => Box::new(Whole::<Int8Type>::new(column)?),
        DataType::Int16 => Box::new(Whole::<Int16Type>::new(column)?),
        DataType::Int32 => Box::new(Whole::<Int32Type>::new(column)?),
        DataType::Int64 => Box::new(Whole::<Int64Type>::new(column)?),
        DataType::Date32 => Box::new(Whole::<Date32Type>::new(column)?),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Box::new(Whole::<TimestampMicrosecondType>::new(column)?),
        DataType::Decimal128(..) => Box::new(Whole::<Decimal128Type>::new(column)?),
        _ => Box::new(Encoded::new(types, columns)?),
    })
}

impl KeySet {
    /// The keys of `parts`, each of which has a column for each of `names`, of these types.
    ///
    /// # Errors
    /// When a type has no order, or a part has other types.
    pub fn new(names: Vec<String>, types: &[DataType], parts: &[Vec<ArrayRef>]) -> Result<Self> {
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
        let types = types.to_vec();
        check(&types, &columns)?;
        let keys = lookup(&types, &columns)?;
        Ok(Self { names, types, keys, ranges })
    }

    /// The key columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For each key column between which values the keys lie.
    pub fn ranges(&self) -> &KeyRanges {
        &self.ranges
    }

    /// Which rows of key columns have one of the keys, ascending.
    ///
    /// # Errors
    /// When the columns have other types than the keys.
    pub fn rows_among(&self, columns: &[ArrayRef]) -> Result<Vec<u32>, ArrowError> {
        check(&self.types, columns)?;
        self.keys.rows_among(columns)
    }

    /// Which parts of a file may have one of the keys, told by the least and the greatest value of the first key column in each; null
    /// where nobody knows.
    ///
    /// # Errors
    /// When the bounds have another type than the column.
    pub(crate) fn may_be_between(&self, least: &ArrayRef, greatest: &ArrayRef) -> Result<Vec<bool>, ArrowError> {
        self.keys.may_be_between(least, greatest)
    }

    /// The key columns of all keys, if they are at most so many.
    ///
    /// # Errors
    /// None that are known.
    pub(crate) fn few(&self, most: usize) -> Result<Option<Vec<ArrayRef>>, ArrowError> {
        if self.len() > most {
            return Ok(None);
        }
        self.keys.all().map(Some)
    }

    /// Whether a key has null in its first column.
    pub(crate) fn has_null_first(&self) -> bool {
        self.names.first().and_then(|name| self.ranges.0.get(name)).is_some_and(|range| range.nulls)
    }
}

/// Key columns have the types of the keys.
fn check(types: &[DataType], columns: &[ArrayRef]) -> Result<(), ArrowError> {
    if columns.iter().map(|column| column.data_type()).eq(types) {
        return Ok(());
    }
    let found: Vec<String> = columns.iter().map(|column| column.data_type().to_string()).collect();
    Err(ArrowError::InvalidArgumentError(format!("key columns of other types than the keys: {}", found.join(", "))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, StringArray,
        TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::row::{RowConverter, SortField};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
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

    /// Any values of a type, some of them close together and at its ends, null among them.
    fn column(of: usize, rows: std::ops::Range<usize>) -> BoxedStrategy<ArrayRef> {
        fn arrays<V: std::fmt::Debug + Clone + 'static>(
            value: impl Strategy<Value = V> + 'static,
            rows: std::ops::Range<usize>,
            array: impl Fn(Vec<Option<V>>) -> ArrayRef + 'static,
        ) -> BoxedStrategy<ArrayRef> {
            prop::collection::vec(prop::option::weighted(0.9, value), rows).prop_map(array).boxed()
        }
        let long = || prop_oneof![4 => -20_i64..20, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
        let double =
            prop_oneof![(-3_i32..3).prop_map(f64::from), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), Just(f64::INFINITY), any::<f64>()];
        match of {
            0 => arrays(prop_oneof![-5_i8..5, Just(i8::MIN), Just(i8::MAX)], rows, |values| Arc::new(Int8Array::from(values))),
            1 => arrays(prop_oneof![-5_i16..5, any::<i16>()], rows, |values| Arc::new(Int16Array::from(values))),
            2 => arrays(prop_oneof![-9_i32..9, any::<i32>()], rows, |values| Arc::new(Int32Array::from(values))),
            3 => arrays(long(), rows, |values| Arc::new(Int64Array::from(values))),
            4 => arrays(prop_oneof![0_u64..9, any::<u64>()], rows, |values| Arc::new(UInt64Array::from(values))),
            5 => arrays(-9_i32..9, rows, |values| Arc::new(Date32Array::from(values))),
            6 => arrays(long(), rows, |values| Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))),
            7 => arrays(prop_oneof![-9_i128..9, any::<i64>().prop_map(|value| i128::from(value) << 30)], rows, |values| {
                Arc::new(Decimal128Array::from(values).with_data_type(DataType::Decimal128(38, 2)))
            }),
            8 => arrays(double, rows, |values| Arc::new(Float64Array::from(values))),
            9 => arrays("[ab]{0,3}|.{0,20}", rows, |values| Arc::new(StringArray::from(values))),
            10 => arrays(prop::collection::vec(0_u8..3, 0..12), rows, |values| Arc::new(BinaryArray::from_iter(values))),
            _ => arrays(any::<bool>(), rows, |values| Arc::new(BooleanArray::from(values))),
        }
    }
    const COLUMNS: usize = 12;

    /// Types of one to three columns; keys in up to three parts, and rows to look among, of these types.
    fn keys_and_rows() -> impl Strategy<Value = (Vec<Vec<ArrayRef>>, Vec<ArrayRef>)> {
        prop::collection::vec(0..COLUMNS, 1..=3).prop_flat_map(|of| {
            let batch = move |count: std::ops::Range<usize>| {
                let of = of.clone();
                count.prop_flat_map(move |rows| of.iter().map(|of| column(*of, rows..rows + 1)).collect::<Vec<_>>())
            };
            (prop::collection::vec(batch(0..40), 1..=3), batch(1..80))
        })
    }

    /// Every key as bytes that are equal and ascend as keys do.
    fn bytes(types: &[DataType], columns: &[ArrayRef]) -> Vec<Vec<u8>> {
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect()).unwrap();
        converter.convert_columns(columns).unwrap().iter().map(|row| row.as_ref().to_vec()).collect()
    }

    proptest! {
        #[test]
        fn keys_of_every_type_are_found_as_in_a_plain_set((parts, rows) in keys_and_rows()) {
            let types: Vec<DataType> = rows.iter().map(|column| column.data_type().clone()).collect();
            let names = (0..types.len()).map(|at| format!("k{at}")).collect();
            let keys = KeySet::new(names, &types, &parts).unwrap();
            let plain: BTreeSet<Vec<u8>> = parts.iter().flat_map(|part| bytes(&types, part)).collect();
            prop_assert_eq!(keys.len(), plain.len());
            let among = bytes(&types, &rows);
            let expected: Vec<u32> = (0..among.len() as u32).filter(|row| plain.contains(&among[*row as usize])).collect();
            prop_assert_eq!(keys.rows_among(&rows).unwrap(), expected);
            let few = keys.few(usize::MAX).unwrap().unwrap();
            prop_assert_eq!(bytes(&types, &few), plain.iter().cloned().collect::<Vec<_>>());
            // pairs of neighbouring rows as the bounds of parts
            let first = &rows[..1];
            let (least, greatest) = (first[0].slice(0, among.len() - 1), first[0].slice(1, among.len() - 1));
            let firsts = bytes(&types[..1], first);
            let of_keys: BTreeSet<Vec<u8>> = parts.iter().flat_map(|part| bytes(&types[..1], &part[..1])).collect();
            for (at, may) in keys.may_be_between(&least, &greatest).unwrap().into_iter().enumerate() {
                let unknown = least.is_null(at) || greatest.is_null(at);
                let holds = firsts[at] <= firsts[at + 1] && of_keys.range(firsts[at].clone()..=firsts[at + 1].clone()).next().is_some();
                prop_assert!(may || !(unknown || holds), "a part with a key was passed over");
                prop_assert!(unknown || holds || !may, "a part without a key was taken");
            }
        }
    }

    #[test]
    fn columns_of_other_types_are_refused() {
        let keys = KeySet::new(vec!["id".to_owned()], &[DataType::Int64], &[vec![longs(&[Some(1)])]]).unwrap();
        assert!(keys.rows_among(&[Arc::new(Int32Array::from(vec![1])) as ArrayRef]).is_err());
        assert!(keys.rows_among(&[longs(&[Some(1)]), longs(&[Some(1)])]).is_err());
    }
}
