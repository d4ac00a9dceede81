//! Statistics of files as the log carries them, typed as the table's columns.
//!
//! What must stay true: a bound is never tighter than the rows. What cannot be read is unknown, and unknown excludes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef};
use arrow::json::ReaderBuilder;
use datafusion::common::ScalarValue;
use tributary_specs::TableName;

use crate::partition::value_of;
use crate::{ColumnStats, FileStats};

/// What a writer that cuts times to the millisecond may have cut off.
const MILLISECOND_REST: i64 = 999;

/// Statistics of one file.
pub(crate) fn of_file(
    stats: Option<&str>,
    partition_values: &BTreeMap<String, Option<String>>,
    schema: &SchemaRef,
    table: &TableName,
) -> FileStats {
    Statistics::new(schema).of_files(&[stats], |_| partition_values, table).pop().unwrap_or_default()
}

/// Reads statistics of files of one table.
pub(crate) struct Statistics {
    schema: SchemaRef,
    /// `numRecords`, `minValues`, `maxValues`, `nullCount` of the columns that can have bounds.
    shape: SchemaRef,
}

impl Statistics {
    pub(crate) fn new(schema: &SchemaRef) -> Self {
        let bounded: Fields = schema
            .fields()
            .iter()
            .filter(|field| has_bounds(field.data_type()))
            .map(|field| Field::new(field.name(), field.data_type().clone(), true))
            .collect();
        let counted: Fields = schema
            .fields()
            .iter()
            .filter(|field| !field.data_type().is_nested())
            .map(|field| Field::new(field.name(), DataType::Int64, true))
            .collect();
        let shape = Schema::new(vec![
            Field::new("numRecords", DataType::Int64, true),
            Field::new("minValues", DataType::Struct(bounded.clone()), true),
            Field::new("maxValues", DataType::Struct(bounded), true),
            Field::new("nullCount", DataType::Struct(counted), true),
        ]);
        Self { schema: Arc::clone(schema), shape: Arc::new(shape) }
    }

    /// One for each file, in their order.
    pub(crate) fn of_files<'a>(
        &self,
        stats: &[Option<&str>],
        partition_values: impl Fn(usize) -> &'a BTreeMap<String, Option<String>>,
        table: &TableName,
    ) -> Vec<FileStats> {
        let lines: Vec<&str> = stats.iter().map(|stats| stats.unwrap_or("{}")).collect();
        // A text that does not fit spoils the batch: then each is read alone, and those that fail say nothing.
        let alone = |line: &&str| self.read(&[line]).and_then(|mut read| read.pop()).unwrap_or_default();
        let read = self.read(&lines).unwrap_or_else(|| lines.iter().map(alone).collect());
        read.into_iter()
            .enumerate()
            .map(|(index, mut stats)| {
                self.add_partition_values(&mut stats, partition_values(index), table);
                stats
            })
            .collect()
    }

    fn read(&self, lines: &[&str]) -> Option<Vec<FileStats>> {
        let mut decoder = ReaderBuilder::new(Arc::clone(&self.shape)).with_batch_size(lines.len().max(1)).build_decoder().ok()?;
        for line in lines {
            let line = format!("{line}\n");
            if decoder.decode(line.as_bytes()).ok()? != line.len() {
                return None;
            }
        }
        let batch = decoder.flush().ok()??;
        (batch.num_rows() == lines.len()).then(|| (0..batch.num_rows()).map(|row| self.row(&batch, row)).collect())
    }

    fn row(&self, batch: &RecordBatch, row: usize) -> FileStats {
        let rows = count(batch.column(0), row);
        let part = |index: usize| batch.column(index).as_struct();
        let columns = self.schema.fields().iter().filter(|field| !field.data_type().is_nested()).map(|field| {
            let stats = ColumnStats {
                min: bound(part(1), field.name(), row),
                max: bound(part(2), field.name(), row).and_then(not_cut),
                null_count: part(3).column_by_name(field.name()).filter(|_| part(3).is_valid(row)).and_then(|counts| count(counts, row)),
            };
            (field.name().clone(), stats)
        });
        FileStats { rows, columns: columns.collect() }
    }

    fn add_partition_values(&self, stats: &mut FileStats, values: &BTreeMap<String, Option<String>>, table: &TableName) {
        for (name, value) in values {
            let Ok(field) = self.schema.field_with_name(name) else { continue };
            let Ok(value) = value_of(table, name, value.as_deref(), field.data_type()) else { continue };
            let null = value.is_null();
            let bound = (!null).then_some(value);
            stats
                .columns
                .insert(name.clone(), ColumnStats { min: bound.clone(), max: bound, null_count: if null { stats.rows } else { Some(0) } });
        }
    }
}

fn has_bounds(data_type: &DataType) -> bool {
    !data_type.is_nested() && !matches!(data_type, DataType::Boolean | DataType::Binary)
}

fn count(counts: &ArrayRef, row: usize) -> Option<u64> {
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    counts.is_valid(row).then(|| u64::try_from(counts.value(row)).ok()).flatten()
}

fn bound(bounds: &StructArray, name: &str, row: usize) -> Option<ScalarValue> {
    if bounds.is_null(row) {
        return None;
    }
    let value = ScalarValue::try_from_array(bounds.column_by_name(name)?, row).ok()?;
    (!value.is_null()).then_some(value)
}

/// A greatest time that may have been cut to the millisecond, raised by what was cut off.
fn not_cut(max: ScalarValue) -> Option<ScalarValue> {
    match max {
        ScalarValue::TimestampMicrosecond(Some(micros), zone) if micros % 1000 == 0 => {
            Some(ScalarValue::TimestampMicrosecond(Some(micros.checked_add(MILLISECOND_REST)?), zone))
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::TimeUnit;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("amount", DataType::Decimal128(38, 6), true),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("name", DataType::Utf8, true),
            Field::new("flag", DataType::Boolean, true),
            Field::new("tags", DataType::List(Arc::new(Field::new("element", DataType::Utf8, true))), true),
            Field::new("day", DataType::Date32, true),
        ]))
    }

    fn read(stats: Option<&str>) -> FileStats {
        of_file(stats, &BTreeMap::new(), &schema(), &TableName::new("s", "t"))
    }

    #[test]
    fn bounds_come_in_the_type_of_their_column_and_decimals_lose_nothing() {
        let stats = read(Some(
            r#"{"numRecords":2,"minValues":{"id":-5,"amount":-99999999999999999999999999999999.999999,"at":"2026-02-05T22:30:00.000Z","name":"a","day":"2026-02-01"},
                "maxValues":{"id":7,"amount":99999999999999999999999999999999.999999,"at":"2026-02-06T00:00:00.001Z","name":"zz","day":"2026-02-03"},
                "nullCount":{"id":0,"amount":1,"flag":2,"tags":0}}"#,
        ));
        assert_eq!(stats.rows, Some(2));
        assert_eq!(stats.columns["id"].min, Some(ScalarValue::Int64(Some(-5))));
        assert_eq!(
            stats.columns["amount"].max,
            Some(ScalarValue::Decimal128(Some(99_999_999_999_999_999_999_999_999_999_999_999_999), 38, 6))
        );
        assert_eq!(stats.columns["amount"].null_count, Some(1));
        assert_eq!(stats.columns["flag"], ColumnStats { min: None, max: None, null_count: Some(2) });
        assert_eq!(stats.columns["day"].max, Some(ScalarValue::Date32(Some(20487))));
        assert_eq!(stats.columns["name"].null_count, None);
    }

    #[test]
    fn a_greatest_time_covers_what_was_cut_off() {
        let stats =
            read(Some(r#"{"numRecords":1,"minValues":{"at":"2026-02-06T00:00:00.000Z"},"maxValues":{"at":"2026-02-06T00:00:00.000Z"}}"#));
        let micros = |bound: &Option<ScalarValue>| {
            if let Some(ScalarValue::TimestampMicrosecond(Some(micros), _)) = bound { *micros } else { panic!("{bound:?}") }
        };
        assert_eq!(micros(&stats.columns["at"].max) - micros(&stats.columns["at"].min), 999);
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_spoils_no_other_file() {
        let values = BTreeMap::new();
        let texts = [
            Some(r#"{"numRecords":1,"minValues":{"id":1}}"#),
            Some(r#"{"numRecords":1,"minValues":{"id":"one"}}"#),
            None,
            Some("not json"),
            Some(r#"{"numRecords":4}"#),
        ];
        let stats = Statistics::new(&schema()).of_files(&texts, |_| &values, &TableName::new("s", "t"));
        assert_eq!(stats.iter().map(|stats| stats.rows).collect::<Vec<_>>(), [Some(1), None, None, None, Some(4)]);
        assert_eq!(stats[0].columns["id"].min, Some(ScalarValue::Int64(Some(1))));
    }

    #[test]
    fn a_partition_value_is_an_exact_bound() {
        let values = BTreeMap::from([("day".to_owned(), Some("2026-02-01".to_owned())), ("name".to_owned(), None)]);
        let stats = of_file(Some(r#"{"numRecords":3}"#), &values, &schema(), &TableName::new("s", "t"));
        assert_eq!(
            stats.columns["day"],
            ColumnStats { min: Some(ScalarValue::Date32(Some(20485))), max: Some(ScalarValue::Date32(Some(20485))), null_count: Some(0) }
        );
        assert_eq!(stats.columns["name"], ColumnStats { min: None, max: None, null_count: Some(3) });
    }
}
