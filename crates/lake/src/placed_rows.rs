//! Live rows of a file, and where in it each is.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use roaring::RoaringTreemap;

use crate::{DataFile, Result, Table, deletion_vector};

impl Table {
    /// As [`Self::read_file`], then a column of this name (long, not null): the place of each row in the file, from zero, rows marked
    /// as deleted counted in, as [`crate::RowMarks`] takes them.
    ///
    /// # Errors
    /// As [`Self::read_file`].
    pub async fn read_file_placed(&self, file: &DataFile, columns: Option<&[String]>, place: &str) -> Result<SendableRecordBatchStream> {
        let marked = match &file.deletion_vector {
            Some(vector) => deletion_vector::rows(self.log(), vector).await?,
            None => RoaringTreemap::new(),
        };
        let rows = self.read_file(file, columns).await?;
        let mut fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(place, DataType::Int64, false)));
        let schema = Arc::new(Schema::new(fields));
        let (placed, mut next) = (Arc::clone(&schema), 0);
        let rows = rows.map(move |batch| {
            let batch = batch?;
            let places: ArrayRef = Arc::new(live(&marked, &mut next, batch.num_rows()));
            let columns = batch.columns().iter().cloned().chain([places]).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&placed), columns, &options)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The next so many places that are not marked.
fn live(marked: &RoaringTreemap, next: &mut u64, rows: usize) -> Int64Array {
    let mut take = || {
        while marked.contains(*next) {
            *next += 1;
        }
        *next += 1;
        i64::try_from(*next - 1).unwrap_or(i64::MAX)
    };
    (0..rows).map(|_| take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_on_from_batch_to_batch_and_leave_out_what_is_marked() {
        let marked: RoaringTreemap = [0, 2, 3].into_iter().collect();
        let mut next = 0;
        assert_eq!(live(&marked, &mut next, 2).values(), &[1, 4]);
        assert_eq!(live(&marked, &mut next, 2).values(), &[5, 6]);
    }
}
