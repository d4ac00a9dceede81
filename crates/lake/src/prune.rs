//! Which parts of a data file can hold none of the keys that are looked for: row groups and pages by their bounds, and, where the keys
//! are few, row groups by their Bloom filters.
//!
//! What must stay true: a part that is passed over holds none of the keys. Bounds that are missing, or of a kind that writers do not
//! agree on (floating-point numbers, legacy times, deprecated statistics), say nothing.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Field, Int8Type, Int16Type, Int32Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{LogicalType, TimeUnit as ParquetUnit, Type as PhysicalType};
use parquet::bloom_filter::Sbbf;

use crate::file_scan::FileScan;
use crate::key_set::KeySet;
use crate::{Result, align};

/// Keys for which Bloom filters are asked: of more, one is in a filter by chance too often.
const BLOOM_KEYS_MAX: usize = 32;

/// The rows of a file that may have one of the keys, as ascending ranges of positions.
///
/// # Errors
/// Store errors.
pub(crate) async fn parts(scan: &FileScan, metadata: &ArrowReaderMetadata, keys: &KeySet) -> Result<Vec<Range<u64>>> {
    let mut groups = groups(metadata);
    if let Some(bounds) = Bounds::new(scan, metadata, keys) {
        groups = bounds.within(groups)?;
    }
    if let Some(few) = keys.few(BLOOM_KEYS_MAX)? {
        groups = by_filters(scan, metadata, keys, &few, groups).await?;
    }
    Ok(joined(groups.into_iter().flat_map(|group| group.rows)))
}

/// A row group and what of it may hold a key.
struct Group {
    at: usize,
    rows: Vec<Range<u64>>,
}

fn groups(metadata: &ArrowReaderMetadata) -> Vec<Group> {
    let mut first = 0;
    let rows = |(at, group): (usize, &parquet::file::metadata::RowGroupMetaData)| {
        let rows = first..first + u64::try_from(group.num_rows()).unwrap_or_default();
        first = rows.end;
        Group { at, rows: vec![rows] }
    };
    metadata.metadata().row_groups().iter().enumerate().map(rows).collect()
}

fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Where a file keeps a column, if it does.
fn column_of<'m>(metadata: &'m ArrowReaderMetadata, name: &str) -> Option<(usize, &'m Field)> {
    let field = metadata.schema().fields().iter().find(|field| field.name().eq_ignore_ascii_case(name))?;
    let parquet = metadata.parquet_schema();
    let at = (0..parquet.num_columns()).find(|at| parquet.column(*at).path().parts() == [field.name().as_str()])?;
    Some((at, field))
}

/// The bounds of the first key column.
struct Bounds<'a> {
    scan: &'a FileScan,
    metadata: &'a ArrowReaderMetadata,
    keys: &'a KeySet,
    converter: StatisticsConverter<'a>,
    column: usize,
    wanted: Arc<Schema>,
}

impl<'a> Bounds<'a> {
    fn new(scan: &'a FileScan, metadata: &'a ArrowReaderMetadata, keys: &'a KeySet) -> Option<Self> {
        let name = keys.names().first()?;
        let (column, field) = column_of(metadata, name)?;
        let wanted = scan.schema.field_with_name(name).ok()?.clone().with_nullable(true);
        if keys.has_null_first() || scan.partition_values.contains_key(name) || !is_ordered(metadata, column, field) {
            return None;
        }
        let converter = StatisticsConverter::from_column_index(column, field, metadata.parquet_schema()).ok()?;
        Some(Self { scan, metadata, keys, converter, column, wanted: Arc::new(Schema::new(vec![wanted])) })
    }

    fn within(&self, groups: Vec<Group>) -> Result<Vec<Group>> {
        let all = self.metadata.metadata().row_groups();
        let chosen = || groups.iter().map(|group| &all[group.at]);
        let bounds = self.converter.row_group_mins(chosen()).and_then(|least| Ok((least, self.converter.row_group_maxes(chosen())?)));
        let Ok((least, greatest)) = bounds else { return Ok(groups) };
        let may = self.may_hold(least, greatest)?;
        let is_deprecated = |at: usize| all[at].column(self.column).statistics().is_some_and(|found| found.is_min_max_deprecated());
        let kept = groups.into_iter().zip(may).filter(|(group, may)| *may || is_deprecated(group.at)).map(|(group, _)| group);
        kept.map(|group| self.pages(group)).collect()
    }

    fn pages(&self, group: Group) -> Result<Group> {
        let metadata = self.metadata.metadata();
        let (Some(columns), Some(offsets)) = (metadata.column_index(), metadata.offset_index()) else { return Ok(group) };
        let locations = offsets.get(group.at).and_then(|columns| columns.get(self.column)).map(|column| column.page_locations());
        let (Some(locations), [rows]) = (locations, group.rows.as_slice()) else { return Ok(group) };
        let bounds = self
            .converter
            .data_page_mins(columns, offsets, [&group.at])
            .and_then(|least| Ok((least, self.converter.data_page_maxes(columns, offsets, [&group.at])?)));
        let Ok((least, greatest)) = bounds else { return Ok(group) };
        if least.len() != locations.len() || greatest.len() != locations.len() || locations.is_empty() {
            return Ok(group);
        }
        let may = self.may_hold(least, greatest)?;
        let first =
            |page: usize| locations.get(page).map_or(rows.end, |page| rows.start + u64::try_from(page.first_row_index).unwrap_or_default());
        let kept = may.iter().enumerate().filter(|(_, may)| **may).map(|(page, _)| first(page)..first(page + 1)).collect();
        Ok(Group { rows: kept, ..group })
    }

    fn may_hold(&self, least: ArrayRef, greatest: ArrayRef) -> Result<Vec<bool>> {
        let as_wanted = |bounds: ArrayRef| -> Result<ArrayRef> {
            let field = self.converter.arrow_field().clone().with_nullable(true);
            let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![bounds])?;
            Ok(ArrayRef::clone(align::read_as(&self.scan.log.table, &batch, &self.wanted)?.column(0)))
        };
        Ok(self.keys.may_be_between(&as_wanted(least)?, &as_wanted(greatest)?)?)
    }
}

/// Whether every writer means the same by the bounds of such a column.
fn is_ordered(metadata: &ArrowReaderMetadata, column: usize, field: &Field) -> bool {
    let parquet = metadata.parquet_schema().column(column);
    match field.data_type() {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Utf8
        | DataType::Decimal128(..) => true,
        DataType::Timestamp(TimeUnit::Microsecond, _) => is_micros(parquet.logical_type_ref()),
        _ => false,
    }
}

fn is_micros(logical: Option<&LogicalType>) -> bool {
    matches!(logical, Some(LogicalType::Timestamp(time)) if time.unit == ParquetUnit::MICROS)
}

/// The groups whose filters do not rule out every key.
async fn by_filters(
    scan: &FileScan,
    metadata: &ArrowReaderMetadata,
    keys: &KeySet,
    few: &[ArrayRef],
    groups: Vec<Group>,
) -> Result<Vec<Group>> {
    let columns: Vec<(usize, &ArrayRef)> = keys
        .names()
        .iter()
        .zip(few)
        .filter(|(name, _)| !scan.partition_values.contains_key(*name))
        .filter_map(|(name, values)| Some((column_of(metadata, name)?.0, values)))
        .filter(|(column, values)| is_hashed(metadata, *column, values.data_type()))
        .collect();
    let mut reader = ParquetRecordBatchStreamBuilder::new_with_metadata(scan.reader()?, metadata.clone());
    let mut kept = Vec::with_capacity(groups.len());
    for group in groups {
        let mut may = vec![true; few[0].len()];
        for (column, values) in &columns {
            let filter = reader.get_row_group_column_bloom_filter(group.at, *column).await.map_err(|error| scan.failed(error))?;
            if let Some(filter) = filter {
                may.iter_mut().enumerate().for_each(|(key, may)| *may &= may_be_in(&filter, values, key));
            }
        }
        if may.contains(&true) {
            kept.push(group);
        }
    }
    Ok(kept)
}

/// Whether the filter of a column holds values of this type as [`may_be_in`] asks for them.
fn is_hashed(metadata: &ArrowReaderMetadata, column: usize, data_type: &DataType) -> bool {
    let column = metadata.parquet_schema().column(column);
    let physical = column.physical_type();
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 => physical == PhysicalType::INT32,
        DataType::Int64 => physical == PhysicalType::INT64,
        DataType::Timestamp(TimeUnit::Microsecond, _) => is_micros(column.logical_type_ref()),
        DataType::Utf8 => physical == PhysicalType::BYTE_ARRAY,
        _ => false,
    }
}

fn may_be_in(filter: &Sbbf, values: &ArrayRef, key: usize) -> bool {
    if values.is_null(key) {
        return true;
    }
    match values.data_type() {
        DataType::Int8 => filter.check(&i32::from(values.as_primitive::<Int8Type>().value(key))),
        DataType::Int16 => filter.check(&i32::from(values.as_primitive::<Int16Type>().value(key))),
        DataType::Int32 => filter.check(&values.as_primitive::<Int32Type>().value(key)),
        DataType::Date32 => filter.check(&values.as_primitive::<Date32Type>().value(key)),
        DataType::Int64 => filter.check(&values.as_primitive::<Int64Type>().value(key)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => filter.check(&values.as_primitive::<TimestampMicrosecondType>().value(key)),
        DataType::Utf8 => filter.check(values.as_string::<i32>().value(key).as_bytes()),
        _ => true,
    }
}
