//! Partition values: how rows are split by them, how they are written in the log, and which folder a file goes to.
//!
//! - The log holds the raw value in Delta's text form; timestamps are UTC and say so (`…Z`). The folder is only a
//!   place: `column=value` where that is the same in every path and address, else the table's own.
//! - Null is null in the log. An empty text (or no bytes) is refused: Delta has one form for both and readers take it
//!   for null, so a row that goes in with `''` would come out with null and never match its own key again. Who reads records of
//!   others asks [`partition_refusal`] first and sets the row aside.
//! - Rows keep their order within a partition.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::row::{RowConverter, SortField};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use datafusion::common::ScalarValue;
use tributary_specs::TableName;

use crate::{Error, Result};

/// Partition column → raw value in the log's text form, `None` for null.
pub(crate) type PartitionValues = BTreeMap<String, Option<String>>;

/// Rows of one partition, without the partition columns.
#[derive(Debug)]
pub(crate) struct Part {
    pub values: PartitionValues,
    pub rows: RecordBatch,
}

/// Splits rows by their partition values; partitions in order of first appearance, rows in their order.
///
/// # Errors
/// [`Error::Constraint`] for an empty text or a value the log cannot hold, naming column and row.
pub(crate) fn split(table: &TableName, batch: &RecordBatch, partition_columns: &[String]) -> Result<Vec<Part>> {
    if batch.num_rows() == 0 {
        return Ok(Vec::new());
    }
    let (keys, data) = columns_apart(batch, partition_columns)?;
    if keys.is_empty() {
        return Ok(vec![Part { values: PartitionValues::new(), rows: data }]);
    }
    let groups = group_rows(&keys)?;
    let single = groups.len() == 1;
    groups
        .into_iter()
        .map(|rows| {
            let first = rows.first().copied().unwrap_or_default() as usize;
            let values = partition_columns
                .iter()
                .zip(&keys)
                .map(|(name, array)| Ok((name.clone(), text(table, name, array.as_ref(), first)?)))
                .collect::<Result<_>>()?;
            let rows = if single { data.clone() } else { take_rows(&data, rows)? };
            Ok(Part { values, rows })
        })
        .collect()
}

fn columns_apart(batch: &RecordBatch, partition_columns: &[String]) -> Result<(Vec<ArrayRef>, RecordBatch)> {
    let schema = batch.schema();
    let mut keys = Vec::with_capacity(partition_columns.len());
    for name in partition_columns {
        keys.push(Arc::clone(batch.column(schema.index_of(name)?)));
    }
    let rest: Vec<usize> = (0..schema.fields().len()).filter(|index| !partition_columns.contains(schema.field(*index).name())).collect();
    Ok((keys, batch.project(&rest)?))
}

fn group_rows(keys: &[ArrayRef]) -> Result<Vec<Vec<u32>>> {
    let converter = RowConverter::new(keys.iter().map(|key| SortField::new(key.data_type().clone())).collect())?;
    let rows = converter.convert_columns(keys)?;
    let mut index: HashMap<&[u8], usize> = HashMap::new();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (position, row) in (0_u32..).zip(rows.iter()) {
        let group = *index.entry(row.data()).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(position);
    }
    Ok(groups)
}

fn take_rows(batch: &RecordBatch, rows: Vec<u32>) -> Result<RecordBatch> {
    let count = rows.len();
    let rows = UInt32Array::from(rows);
    let columns = batch.columns().iter().map(|column| take(column, &rows, None)).collect::<Result<Vec<_>, _>>()?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(count));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// One value in the log's text form; `None` for null.
fn text(table: &TableName, column: &str, array: &dyn Array, row: usize) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let refused = |reason: &str| Error::Constraint {
        table: table.clone(),
        constraint: format!("partition by `{column}`"),
        reason: format!("column `{column}` {reason}, first at row {row} of the batch"),
    };
    let text = match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => float_text(format!("{:?}", array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float_text(format!("{:?}", array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => date_text(array.as_primitive::<Date32Type>().value(row)).ok_or_else(|| refused(OTHER_YEARS))?,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let time = time_of(array.as_primitive::<TimestampMicrosecondType>().value(row)).ok_or_else(|| refused(OTHER_YEARS))?;
            let pattern = if zone.is_some() { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%d %H:%M:%S%.6f" };
            time.format(pattern).to_string()
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => std::str::from_utf8(array.as_binary::<i32>().value(row)).map_err(|_| refused(NO_TEXT))?.to_owned(),
        _ => return Err(refused("has a type that cannot be a partition column")),
    };
    if text.is_empty() {
        return Err(refused(EMPTY));
    }
    Ok(Some(text))
}

/// Why the value at `row` cannot be a partition's; none when it can, or is null. Of types that no partition column has it says nothing.
#[must_use]
pub fn partition_refusal(values: &dyn Array, row: usize) -> Option<&'static str> {
    if values.is_null(row) {
        return None;
    }
    match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value(row).is_empty().then_some(EMPTY),
        DataType::Binary => match values.as_binary::<i32>().value(row) {
            [] => Some(EMPTY),
            bytes => std::str::from_utf8(bytes).is_err().then_some(NO_TEXT),
        },
        DataType::Date32 => date_text(values.as_primitive::<Date32Type>().value(row)).is_none().then_some(OTHER_YEARS),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            time_of(values.as_primitive::<TimestampMicrosecondType>().value(row)).is_none().then_some(OTHER_YEARS)
        }
        _ => None,
    }
}

const EMPTY: &str = "holds an empty value, which Delta cannot tell from null in a partition column";
const NO_TEXT: &str = "holds bytes that are not UTF-8, which a partition value cannot be";
const OTHER_YEARS: &str = "holds a time outside the years 1 to 9999";

fn float_text(debug: String) -> String {
    match debug.as_str() {
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        _ => debug,
    }
}

/// `YYYY-MM-DD` of days since the epoch, or none outside the years 1 to 9999.
pub(crate) fn date_text(days: i32) -> Option<String> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(719_163)?)?;
    (1..=9999).contains(&date.year()).then(|| date.format("%Y-%m-%d").to_string())
}

/// Wall clock in UTC of microseconds since the epoch, or none outside the years 1 to 9999.
pub(crate) fn time_of(micros: i64) -> Option<NaiveDateTime> {
    let time = DateTime::from_timestamp_micros(micros)?.naive_utc();
    (1..=9999).contains(&time.year()).then_some(time)
}

/// A value of the log as the column's type. An empty text is null except for text and bytes, as Spark casts it.
///
/// # Errors
/// [`Error::Log`] when the text is no value of the type.
pub(crate) fn value_of(table: &TableName, column: &str, value: Option<&str>, data_type: &DataType) -> Result<ScalarValue> {
    let textual = matches!(data_type, DataType::Utf8 | DataType::Binary);
    match value {
        None => Ok(ScalarValue::try_from(data_type)?),
        Some("") if !textual => Ok(ScalarValue::try_from(data_type)?),
        Some(value) => ScalarValue::Utf8(Some(value.to_owned())).cast_to(data_type).map_err(|_| Error::Log {
            table: table.clone(),
            reason: format!("a partition value of column `{column}` is not a {data_type}"),
        }),
    }
}

/// The longest name of a folder that every store takes.
const FOLDER_BYTES_MAX: usize = 255;

/// `a=1/b=x/` for a file of a partition, in the table's partition order; empty without partition columns. Empty too when a
/// name or value has a character that a path of the log must encode, or stores refuse: the log says which partition the file is
/// of, the folder does not matter, and some readers look for change-feed files by the encoded name.
pub(crate) fn folder(partition_columns: &[String], values: &PartitionValues) -> String {
    let mut path = String::new();
    for name in partition_columns {
        let value = values.get(name).and_then(Option::as_deref).unwrap_or("__HIVE_DEFAULT_PARTITION__");
        if !is_plain(name) || !is_plain(value) || name.len() + value.len() >= FOLDER_BYTES_MAX {
            return String::new();
        }
        let _ = write!(path, "{name}={value}/");
    }
    path
}

/// Whether a text stands in a path as it is, everywhere.
fn is_plain(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character))
}

/// The fields of the data files: the table's without its partition columns.
pub(crate) fn file_schema(schema: &Schema, partition_columns: &[String]) -> Schema {
    let fields: Vec<_> = schema.fields().iter().filter(|field| !partition_columns.contains(field.name())).cloned().collect();
    Schema::new(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BinaryArray, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray};

    fn table() -> TableName {
        TableName::new("bronze", "readings")
    }

    fn batch(sites: Vec<Option<&str>>) -> RecordBatch {
        let values = Int64Array::from_iter_values(0..i64::try_from(sites.len()).unwrap());
        RecordBatch::try_from_iter_with_nullable([
            ("site", Arc::new(StringArray::from(sites)) as ArrayRef, true),
            ("v", Arc::new(values) as ArrayRef, true),
        ])
        .unwrap()
    }

    #[test]
    fn rows_keep_their_order_within_a_partition() {
        let parts = split(&table(), &batch(vec![Some("b"), Some("a"), None, Some("b"), None]), &["site".to_owned()]).unwrap();
        let seen: Vec<_> = parts
            .iter()
            .map(|part| (part.values["site"].clone(), part.rows.column(0).as_primitive::<Int64Type>().values().to_vec()))
            .collect();
        assert_eq!(seen, [(Some("b".into()), vec![0, 3]), (Some("a".into()), vec![1]), (None, vec![2, 4])]);
    }

    #[test]
    fn an_empty_text_is_refused_and_the_error_names_column_and_row() {
        let error = split(&table(), &batch(vec![Some("a"), Some("")]), &["site".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("bronze.readings") && error.contains("column `site`") && error.contains("row 1"), "{error}");
    }

    #[test]
    fn what_is_refused_beforehand_is_what_the_writer_refuses() {
        let text = |values: [&str; 3]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
        let bytes: Vec<Option<&[u8]>> = vec![Some(b"a"), Some(b""), Some(&[0xff]), None];
        let wall = TimestampMicrosecondArray::from(vec![0, i64::MAX, i64::MIN]);
        let columns: [ArrayRef; 6] = [
            text(["a", "", " "]),
            Arc::new(BinaryArray::from(bytes)),
            Arc::new(Date32Array::from(vec![0, -719_162, -719_163, i32::MAX])),
            Arc::new(wall.clone().with_timezone("UTC")),
            Arc::new(wall),
            Arc::new(Int64Array::from(vec![Some(0), None])),
        ];
        let mut refused = 0;
        for column in columns {
            for row in 0..column.len() {
                let written = super::text(&table(), "c", column.as_ref(), row);
                assert_eq!(partition_refusal(column.as_ref(), row).is_some(), written.is_err(), "{column:?} row {row}");
                if let (Some(reason), Err(error)) = (partition_refusal(column.as_ref(), row), written) {
                    refused += 1;
                    assert!(error.to_string().contains(reason), "{error}");
                }
            }
        }
        assert_eq!(refused, 9);
    }

    #[test]
    fn a_folder_is_named_after_values_that_a_path_bears_as_they_are_and_there_is_none_for_others() {
        let of = |values: [Option<&str>; 2]| {
            let columns = ["site".to_owned(), "day".to_owned()];
            folder(&columns, &columns.iter().cloned().zip(values.map(|value| value.map(str::to_owned))).collect())
        };
        assert_eq!(of([Some("north-hall"), Some("2026-01-31")]), "site=north-hall/day=2026-01-31/");
        assert_eq!(of([Some("-1.5"), None]), "site=-1.5/day=__HIVE_DEFAULT_PARTITION__/");
        for odd in ["north hall", "a/b", "50%", "x:y", "r&d", "é", "a\tb", "#1", "a+b", "a=b", "~", &"x".repeat(300)] {
            assert_eq!(of([Some("plain"), Some(odd)]), "", "{odd}");
        }
        assert_eq!(folder(&["a b".to_owned()], &PartitionValues::from([("a b".to_owned(), Some("1".to_owned()))])), "");
    }

    #[test]
    fn every_value_reads_back_as_it_was() {
        let zone = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let wall = DataType::Timestamp(TimeUnit::Microsecond, None);
        for value in [
            ScalarValue::Boolean(Some(true)),
            ScalarValue::Int8(Some(-128)),
            ScalarValue::Int64(Some(i64::MIN)),
            ScalarValue::Float64(Some(f64::NEG_INFINITY)),
            ScalarValue::Float64(Some(1e300)),
            ScalarValue::Float32(Some(0.1)),
            ScalarValue::Decimal128(Some(-5), 10, 2),
            ScalarValue::Date32(Some(-719_162)),
            ScalarValue::TimestampMicrosecond(Some(1), Some("UTC".into())),
            ScalarValue::TimestampMicrosecond(Some(-1), None),
            ScalarValue::Utf8(Some(" a\u{1F3B5}/ ".into())),
            ScalarValue::Binary(Some(b"ab".to_vec())),
        ] {
            let array = value.to_array().unwrap();
            let written = text(&table(), "c", array.as_ref(), 0).unwrap();
            assert_eq!(value_of(&table(), "c", written.as_deref(), array.data_type()).unwrap(), value, "{written:?}");
        }
        assert_eq!(
            text(&table(), "c", ScalarValue::TimestampMicrosecond(Some(0), Some("UTC".into())).to_array().unwrap().as_ref(), 0)
                .unwrap()
                .unwrap(),
            "1970-01-01T00:00:00.000000Z"
        );
        assert_eq!(
            value_of(&table(), "c", Some("1970-01-01 00:00:00"), &zone).unwrap(),
            ScalarValue::TimestampMicrosecond(Some(0), Some("UTC".into()))
        );
        assert!(value_of(&table(), "c", Some(""), &wall).unwrap().is_null());
        assert!(value_of(&table(), "c", Some("__HIVE_DEFAULT_PARTITION__"), &DataType::Int32).is_err());
    }
}
