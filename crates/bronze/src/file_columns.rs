//! What a feed tells of the file that a row is from, where it is asked to: `_file_size`, `_file_modified_at`.

use std::sync::Arc;

use tributary_cdc_decode::Decoder;
use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tributary_lake::arrow::datatypes::{Field, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_specs::{Column, DataType, FILE_COLUMNS, Source, SourceFeed};

use crate::batch::Origin;

/// The columns of a feed's bronze table: the decoder's, and those of files.
pub(crate) fn all(feed: &SourceFeed, decoder: &Decoder) -> Vec<Column> {
    let mut columns = decoder.columns();
    if tells_of_files(feed) {
        columns.extend(own());
    }
    columns
}

fn own() -> [Column; 2] {
    let [size, modified_at] = FILE_COLUMNS;
    [Column::new(size, DataType::Long), Column::new(modified_at, DataType::Timestamp)]
}

fn tells_of_files(feed: &SourceFeed) -> bool {
    matches!(&feed.source, Source::Files(files) if files.with_metadata)
}

/// Decoded rows, all of one file where they are of any, with these columns.
pub(crate) fn with(feed: &SourceFeed, rows: RecordBatch, origin: Option<&Origin<'_>>) -> Result<RecordBatch, ArrowError> {
    let Some(origin) = origin.filter(|_| tells_of_files(feed)) else { return Ok(rows) };
    let count = rows.num_rows();
    let size = Int64Array::from_value(i64::try_from(origin.size).unwrap_or(i64::MAX), count);
    let modified = TimestampMicrosecondArray::from_value(origin.modified_us, count).with_timezone("UTC");
    let columns: Vec<ArrayRef> = rows.columns().iter().cloned().chain([Arc::new(size) as ArrayRef, Arc::new(modified)]).collect();
    let fields =
        rows.schema().fields().iter().map(|field| field.as_ref().clone()).chain(own().iter().map(Column::to_arrow)).collect::<Vec<Field>>();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
