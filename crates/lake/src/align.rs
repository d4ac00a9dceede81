//! Arrow columns brought to a table's types, by name.
//!
//! - Columns and struct fields are found by name (exact spelling first, then without regard to case), at every depth:
//!   in structs, in arrays of structs and in map values. Their order in the batch does not matter.
//! - A nullable field that is absent reads as null; its siblings are untouched.
//! - A cast is made only where no value changes, and that is looked at value by value: a number that does not fit, or
//!   would be rounded, is an error that names column and row; text holds every plain value, as a column widened to text needs
//!   of the files written before. Types that Delta does not have (unsigned, time, duration,
//!   interval, nanoseconds) are refused by name, as is a zone-less time for an instant and the reverse: nobody knows its zone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use tributary_specs::TableName;

use crate::{Error, Result};

/// What is done with columns the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Named in an error: writing them would lose them.
    Refuse,
    /// Passed over: a file may hold columns that its table no longer has.
    Ignore,
}

/// Why an array cannot become a column.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// `a.b.element.c`
    path: String,
    problem: Problem,
    /// The first row of the batch where it shows, if it is about rows.
    row: Option<usize>,
}

#[derive(Debug)]
enum Problem {
    Null,
    Value { from: DataType, to: DataType },
    Type { from: DataType, to: DataType },
    Unknown,
    Ambiguous,
    Missing,
}

impl Misfit {
    fn new(path: &str, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem, row: None }
    }

    fn at(path: &str, problem: Problem, row: usize) -> Self {
        Self { path: path.to_owned(), problem, row: Some(row) }
    }

    /// As an error of the table.
    pub(crate) fn of(self, table: &TableName) -> Error {
        let Self { path, problem, row } = self;
        let batch = |reason: String| Error::Batch { table: table.clone(), reason };
        let place = row.map_or_else(String::new, |row| format!(", first at row {row} of the batch"));
        match problem {
            Problem::Null => Error::Constraint {
                table: table.clone(),
                constraint: format!("`{path}` not null"),
                reason: format!("column `{path}` is null{place}"),
            },
            Problem::Value { from, to } => Error::Constraint {
                table: table.clone(),
                constraint: format!("type of `{path}`"),
                reason: format!("column `{path}` holds a {from} that {to} cannot hold exactly{place}"),
            },
            Problem::Type { from, to } if !is_delta(&from) => {
                batch(format!("column `{path}` has type {from}, which Delta does not have; it must become {to}"))
            }
            Problem::Type { from, to } => batch(format!("column `{path}` has type {from}, which does not become {to} without loss")),
            Problem::Unknown => batch(format!("column `{path}` is not a column of the table")),
            Problem::Ambiguous => batch(format!("column `{path}` is given more than once")),
            Problem::Missing => batch(format!("column `{path}` is absent, refuses null and has no default")),
        }
    }
}

/// Column `path` is absent, refuses null and has no default.
pub(crate) fn missing(path: &str) -> Misfit {
    Misfit::new(path, Problem::Missing)
}

/// Whether Delta has the type, whatever it holds.
fn is_delta(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Float16
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_)
            | DataType::Interval(_)
            | DataType::Date64
            | DataType::Timestamp(TimeUnit::Nanosecond, _)
            | DataType::Union(_, _)
    )
}

/// The batch's columns in the order and types of `schema`; `None` where the batch has no such column. Nulls in columns that
/// refuse them are found here for fields of structs, arrays and maps, not for the columns themselves.
pub(crate) fn columns(batch: &RecordBatch, schema: &Schema, extra: Extra) -> Result<Vec<Option<ArrayRef>>, Misfit> {
    let given = batch.schema();
    let places = places(given.fields(), schema.fields(), "", extra)?;
    schema
        .fields()
        .iter()
        .zip(places)
        .map(|(field, place)| place.map(|place| array(batch.column(place), field.data_type(), field.name())).transpose())
        .collect()
}

/// For each wanted field where it is among the given ones.
fn places(given: &Fields, wanted: &Fields, path: &str, extra: Extra) -> Result<Vec<Option<usize>>, Misfit> {
    let mut taken: Vec<Option<usize>> = vec![None; wanted.len()];
    for (place, field) in given.iter().enumerate() {
        let name = field.name();
        let target = wanted
            .iter()
            .position(|wanted| wanted.name() == name)
            .or_else(|| wanted.iter().position(|wanted| wanted.name().eq_ignore_ascii_case(name)));
        match target {
            Some(target) if taken[target].is_some() => return Err(Misfit::new(&below(path, name), Problem::Ambiguous)),
            Some(target) => taken[target] = Some(place),
            None if extra == Extra::Refuse => return Err(Misfit::new(&below(path, name), Problem::Unknown)),
            None => {}
        }
    }
    Ok(taken)
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// One array as `to`.
fn array(from: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef, Misfit> {
    use DataType as T;
    let source = from.data_type();
    if source == to {
        return Ok(Arc::clone(from));
    }
    let refused = || Misfit::new(path, Problem::Type { from: source.clone(), to: to.clone() });
    let plain = |to: &DataType| cast(from, to).map_err(|_| refused());
    match (source, to) {
        (T::Null, _) => Ok(new_null_array(to, from.len())),
        (T::Dictionary(_, values), _) => array(&plain(values)?, to, path),
        (T::RunEndEncoded(_, values), _) => array(&plain(values.data_type())?, to, path),
        (T::LargeUtf8 | T::Utf8View, T::Utf8) | (T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_), T::Binary) => plain(to),
        (
            T::Boolean
            | T::Int8
            | T::Int16
            | T::Int32
            | T::Int64
            | T::Float32
            | T::Float64
            | T::Decimal128(_, _)
            | T::Date32
            | T::Timestamp(TimeUnit::Microsecond, _),
            T::Utf8,
        ) => plain(to),
        (T::Float32, T::Float64) | (T::Int8 | T::Int16, T::Float32) | (T::Int8 | T::Int16 | T::Int32, T::Float64) => plain(to),
        (T::Int8, T::Int16 | T::Int32 | T::Int64) | (T::Int16, T::Int32 | T::Int64) | (T::Int32, T::Int64) => plain(to),
        (T::Int8 | T::Int16 | T::Int32 | T::Int64, T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Decimal128(_, _)) => exact(from, to, path),
        (T::Decimal32(_, _) | T::Decimal64(_, _) | T::Decimal128(_, _) | T::Decimal256(_, _), T::Decimal128(_, _)) => exact(from, to, path),
        (T::Timestamp(unit, zone), T::Timestamp(_, wanted)) if *unit != TimeUnit::Nanosecond && zone.is_some() == wanted.is_some() => {
            exact(from, to, path)
        }
        // A day as its midnight, which only a zone-less time is.
        (T::Date32, T::Timestamp(TimeUnit::Microsecond, None)) => exact(from, to, path),
        (T::Struct(_), T::Struct(fields)) => structure(from.as_struct(), fields, path).map(|array| Arc::new(array) as ArrayRef),
        (T::List(_), T::List(element)) => list(from.as_list(), element, path),
        (T::LargeList(element) | T::FixedSizeList(element, _) | T::ListView(element) | T::LargeListView(element), T::List(_)) => {
            array(&plain(&T::List(Arc::clone(element)))?, to, path)
        }
        (T::Map(_, _), T::Map(entries, sorted)) => map(from.as_map(), entries, *sorted, path),
        _ => Err(refused()),
    }
}

/// A cast that keeps every value, or an error naming the first row where it would not.
fn exact(from: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef, Misfit> {
    let failed = |row| Misfit::at(path, Problem::Value { from: from.data_type().clone(), to: to.clone() }, row);
    let nulls_where_lossy = CastOptions { safe: true, ..CastOptions::default() };
    let there = cast_with_options(from, to, &nulls_where_lossy).map_err(|_| failed(0))?;
    let back = cast_with_options(&there, from.data_type(), &nulls_where_lossy).map_err(|_| failed(0))?;
    let changed = distinct(&back, from).map_err(|_| failed(0))?;
    match changed.values().set_indices().next() {
        Some(row) => Err(failed(row)),
        None => Ok(there),
    }
}

fn structure(from: &StructArray, fields: &Fields, path: &str) -> Result<StructArray, Misfit> {
    let places = places(from.fields(), fields, path, Extra::Refuse)?;
    let children = fields
        .iter()
        .zip(places)
        .map(|(field, place)| {
            let path = below(path, field.name());
            let child = match place {
                Some(place) => array(from.column(place), field.data_type(), &path)?,
                None if field.is_nullable() => new_null_array(field.data_type(), from.len()),
                None => return Err(Misfit::new(&path, Problem::Missing)),
            };
            refuse_nulls(field, &child, from.nulls(), &path)?;
            Ok(child)
        })
        .collect::<Result<Vec<_>, _>>()?;
    StructArray::try_new_with_length(fields.clone(), children, from.nulls().cloned(), from.len())
        .map_err(|_| Misfit::new(path, Problem::Type { from: from.data_type().clone(), to: DataType::Struct(fields.clone()) }))
}

/// A null in a field that refuses it, where its parent is not null.
fn refuse_nulls(field: &Field, child: &ArrayRef, parent: Option<&NullBuffer>, path: &str) -> Result<(), Misfit> {
    if field.is_nullable() || child.null_count() == 0 {
        return Ok(());
    }
    match (0..child.len()).find(|row| child.is_null(*row) && parent.is_none_or(|parent| parent.is_valid(*row))) {
        Some(row) => Err(Misfit::at(path, Problem::Null, row)),
        None => Ok(()),
    }
}

/// Values of a list or map, cut to what the offsets use, and offsets from zero.
fn used(offsets: &OffsetBuffer<i32>) -> (usize, usize, OffsetBuffer<i32>) {
    let first = offsets.first().copied().unwrap_or_default();
    let last = offsets.last().copied().unwrap_or_default();
    let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    let as_size = |offset: i32| usize::try_from(offset).unwrap_or_default();
    (as_size(first), as_size(last - first), OffsetBuffer::new(moved.into()))
}

/// The misfit of an element told as one of the row that holds it.
fn of_row(mut misfit: Misfit, offsets: &OffsetBuffer<i32>) -> Misfit {
    misfit.row = misfit
        .row
        .map(|element| offsets.partition_point(|offset| usize::try_from(*offset).unwrap_or_default() <= element).saturating_sub(1));
    misfit
}

/// True for each element whose row is not null: elements behind a null row are nobody's.
fn owned(offsets: &OffsetBuffer<i32>, rows: Option<&NullBuffer>, elements: usize) -> Option<NullBuffer> {
    let rows = rows.filter(|rows| rows.null_count() > 0)?;
    let mut owned = vec![false; elements];
    for (row, bounds) in offsets.windows(2).enumerate() {
        if rows.is_valid(row) {
            let bounds = usize::try_from(bounds[0]).unwrap_or_default()..usize::try_from(bounds[1]).unwrap_or_default();
            owned[bounds].fill(true);
        }
    }
    Some(owned.into())
}

fn list(from: &ListArray, element: &FieldRef, path: &str) -> Result<ArrayRef, Misfit> {
    let (first, length, offsets) = used(from.offsets());
    let path_below = below(path, "element");
    let values = array(&from.values().slice(first, length), element.data_type(), &path_below).map_err(|misfit| of_row(misfit, &offsets))?;
    let owned = owned(&offsets, from.nulls(), length);
    refuse_nulls(element, &values, owned.as_ref(), &path_below).map_err(|misfit| of_row(misfit, &offsets))?;
    ListArray::try_new(Arc::clone(element), offsets, values, from.nulls().cloned())
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|_| Misfit::new(path, Problem::Type { from: from.data_type().clone(), to: DataType::List(Arc::clone(element)) }))
}

fn map(from: &MapArray, entries: &FieldRef, sorted: bool, path: &str) -> Result<ArrayRef, Misfit> {
    let refused = || Misfit::new(path, Problem::Type { from: from.data_type().clone(), to: DataType::Map(Arc::clone(entries), sorted) });
    let DataType::Struct(fields) = entries.data_type() else { return Err(refused()) };
    let [key, value] = fields.as_ref() else { return Err(refused()) };
    let (first, length, offsets) = used(from.offsets());
    let owned = owned(&offsets, from.nulls(), length);
    let side = |given: &ArrayRef, field: &FieldRef, name: &str| {
        let path = below(path, name);
        let side = array(&given.slice(first, length), field.data_type(), &path)?;
        refuse_nulls(field, &side, owned.as_ref(), &path)?;
        Ok(side)
    };
    let keys = side(from.keys(), key, "key").map_err(|misfit| of_row(misfit, &offsets))?;
    let values = side(from.values(), value, "value").map_err(|misfit| of_row(misfit, &offsets))?;
    let pairs = StructArray::try_new_with_length(fields.clone(), vec![keys, values], None, length).map_err(|_| refused())?;
    MapArray::try_new(Arc::clone(entries), offsets, pairs, from.nulls().cloned(), sorted)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|_| refused())
}

/// The batch in a table's schema for reading: absent columns are null, others than the table's are passed over.
///
/// # Errors
/// [`Error::Batch`] when a column's type is no longer one the table's takes in.
pub(crate) fn read_as(table: &TableName, batch: &RecordBatch, schema: &arrow::datatypes::SchemaRef) -> Result<RecordBatch> {
    let found = columns(batch, schema, Extra::Ignore).map_err(|misfit| misfit.of(table))?;
    let arrays = schema
        .fields()
        .iter()
        .zip(found)
        .map(|(field, array)| array.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows())))
        .collect();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Decimal128Array, Int32Array, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray, TimestampSecondArray, UInt32Array,
    };
    use arrow::datatypes::Int32Type;

    fn table() -> TableName {
        TableName::new("silver", "people")
    }

    fn one(name: &str, array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap()
    }

    fn aligned(given: ArrayRef, wanted: DataType) -> Result<ArrayRef> {
        let schema = Schema::new(vec![Field::new("c", wanted, true)]);
        let mut columns = columns(&one("C", given), &schema, Extra::Refuse).map_err(|misfit| misfit.of(&table()))?;
        Ok(columns.remove(0).unwrap())
    }

    fn person(fields: Vec<(&str, &str)>) -> StructArray {
        StructArray::from(
            fields
                .into_iter()
                .map(|(name, value)| {
                    (Arc::new(Field::new(name, DataType::Utf8, true)), Arc::new(StringArray::from(vec![value])) as ArrayRef)
                })
                .collect::<Vec<_>>(),
        )
    }

    fn person_type() -> DataType {
        DataType::Struct(vec![Field::new("given", DataType::Utf8, true), Field::new("family", DataType::Utf8, true)].into())
    }

    #[test]
    fn text_holds_every_plain_value_and_nothing_becomes_a_number() {
        let schema = |data_type| Arc::new(Schema::new(vec![Field::new("a", data_type, true)]));
        let arrays: [(ArrayRef, &str); 3] = [
            (Arc::new(Int32Array::from(vec![-7])), "-7"),
            (Arc::new(arrow::array::Float64Array::from(vec![0.1])), "0.1"),
            (Arc::new(Decimal128Array::from(vec![150]).with_precision_and_scale(5, 2).unwrap()), "1.50"),
        ];
        for (array, text) in arrays {
            let read = read_as(&table(), &one("a", array), &schema(DataType::Utf8)).unwrap();
            assert_eq!(read.column(0).as_string::<i32>().value(0), text);
        }
        assert!(read_as(&table(), &one("a", Arc::new(StringArray::from(vec!["7"]))), &schema(DataType::Int32)).is_err());
    }

    #[test]
    fn fields_are_paired_by_name_at_every_depth() {
        let swapped = person(vec![("family", "Okoro"), ("given", "Ben")]);
        let expected = person(vec![("given", "Ben"), ("family", "Okoro")]);
        assert_eq!(aligned(Arc::new(swapped.clone()), person_type()).unwrap().as_struct(), &expected);

        let element = |fields| Arc::new(Field::new("element", fields, true));
        let in_list =
            ListArray::new(element(swapped.data_type().clone()), OffsetBuffer::from_lengths([1]), Arc::new(swapped.clone()), None);
        let out = aligned(Arc::new(in_list), DataType::List(element(person_type()))).unwrap();
        assert_eq!(out.as_list::<i32>().values().as_struct(), &expected);

        let entries = |value| Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)]);
        let map_type = |value| DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries(value)), false)), false);
        let pairs = StructArray::new(
            entries(swapped.data_type().clone()),
            vec![Arc::new(StringArray::from(vec!["k"])), Arc::new(swapped.clone())],
            None,
        );
        let in_map = MapArray::new(
            Arc::new(Field::new("entries", pairs.data_type().clone(), false)),
            OffsetBuffer::from_lengths([1]),
            pairs,
            None,
            false,
        );
        let out = aligned(Arc::new(in_map), map_type(person_type())).unwrap();
        assert_eq!(out.as_map().values().as_struct(), &expected);
    }

    #[test]
    fn an_absent_field_is_null_and_its_siblings_are_untouched() {
        let out = aligned(Arc::new(person(vec![("family", "Okoro")])), person_type()).unwrap();
        let out = out.as_struct();
        assert!(out.column(0).is_null(0));
        assert_eq!(out.column(1).as_string::<i32>().value(0), "Okoro");
    }

    #[test]
    fn casts_keep_every_value_or_name_column_and_row() {
        let narrowed = aligned(Arc::new(Int64Array::from(vec![Some(7), None])), DataType::Int32).unwrap();
        assert_eq!(narrowed.as_primitive::<Int32Type>(), &Int32Array::from(vec![Some(7), None]));
        let too_big = aligned(Arc::new(Int64Array::from(vec![1, 2, i64::MAX])), DataType::Int32).unwrap_err().to_string();
        assert!(too_big.contains("column `c`") && too_big.contains("row 2") && !too_big.contains(&i64::MAX.to_string()), "{too_big}");

        let amount = |values: Vec<i128>, precision, scale| {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale).unwrap())
        };
        assert!(aligned(amount(vec![50], 4, 2), DataType::Decimal128(38, 32)).is_ok());
        let overflow = aligned(amount(vec![5, 100_000_025], 9, 2), DataType::Decimal128(38, 32)).unwrap_err().to_string();
        assert!(overflow.contains("Decimal128(38, 32)") && overflow.contains("row 1"), "{overflow}");
        let rounded = aligned(amount(vec![150, 155], 9, 2), DataType::Decimal128(9, 1)).unwrap_err().to_string();
        assert!(rounded.contains("row 1"), "{rounded}");
    }

    #[test]
    fn instants_are_one_whatever_their_zone_and_never_mix_with_wall_clocks() {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let chicago = TimestampSecondArray::from(vec![1_769_925_600]).with_timezone("-06:00");
        let out = aligned(Arc::new(chicago), utc.clone()).unwrap();
        assert_eq!(out.as_ref(), &TimestampMicrosecondArray::from(vec![1_769_925_600_000_000]).with_timezone("UTC") as &dyn Array);
        let wall = Arc::new(TimestampMicrosecondArray::from(vec![0]));
        assert!(aligned(wall, utc).unwrap_err().to_string().contains("column `c`"));
    }

    #[test]
    fn types_that_delta_lacks_are_refused_by_name() {
        let error = aligned(Arc::new(UInt32Array::from(vec![1])), DataType::Int64).unwrap_err().to_string();
        assert!(error.contains("`c`") && error.contains("UInt32") && error.contains("silver.people"), "{error}");
        let nanos = arrow::array::TimestampNanosecondArray::from(vec![1]);
        assert!(
            aligned(Arc::new(nanos), DataType::Timestamp(TimeUnit::Microsecond, None))
                .unwrap_err()
                .to_string()
                .contains("Delta does not have")
        );
    }

    #[test]
    fn views_and_dictionaries_become_plain() {
        let out = aligned(Arc::new(StringViewArray::from(vec![Some("a"), None])), DataType::Utf8).unwrap();
        assert_eq!(out.as_string::<i32>(), &StringArray::from(vec![Some("a"), None]));
        let dictionary: arrow::array::DictionaryArray<Int32Type> = vec![Some("x"), None, Some("x")].into_iter().collect();
        assert_eq!(
            aligned(Arc::new(dictionary), DataType::Utf8).unwrap().as_string::<i32>(),
            &StringArray::from(vec![Some("x"), None, Some("x")])
        );
    }

    #[test]
    fn a_null_element_is_told_as_its_row() {
        let element = Arc::new(Field::new("element", DataType::Int32, false));
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), Some(2)]), None, Some(vec![Some(3), None])]);
        let error = aligned(Arc::new(lists), DataType::List(Arc::clone(&element))).unwrap_err().to_string();
        assert!(error.contains("`c.element`") && error.contains("row 2"), "{error}");
        let fine = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)]), None]).slice(1, 1);
        assert!(aligned(Arc::new(fine), DataType::List(element)).is_ok());
    }

    #[test]
    fn columns_the_table_lacks_are_refused_when_written_and_passed_over_when_read() {
        let schema = Arc::new(Schema::new(vec![Field::new("c", DataType::Int32, true)]));
        let batch = one("other", Arc::new(Int32Array::from(vec![1])));
        assert!(columns(&batch, &schema, Extra::Refuse).unwrap_err().of(&table()).to_string().contains("`other`"));
        assert!(read_as(&table(), &batch, &schema).unwrap().column(0).is_null(0));
        let twice = RecordBatch::try_from_iter([
            ("c", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
            ("C", Arc::new(Int32Array::from(vec![2]))),
        ])
        .unwrap();
        assert!(columns(&twice, &schema, Extra::Refuse).is_err());
    }
}
