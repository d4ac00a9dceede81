//! Live rows of given files, one file after the other.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use crate::file_scan::{FileScan, Rows};
use crate::log::Log;
use crate::{DataFile, Error, Result, deletion_vector};

/// Live rows of these files in file order, as `schema`. Columns a file lacks are null.
pub(crate) fn stream(log: &Log, files: Vec<DataFile>, schema: SchemaRef) -> SendableRecordBatchStream {
    let (log, wanted) = (log.clone(), Arc::clone(&schema));
    let batches = futures::stream::iter(files)
        .then(move |file| {
            let (log, schema) = (log.clone(), Arc::clone(&wanted));
            async move { scan(log, file, schema).await?.open().await }
        })
        .try_flatten()
        .map(|batch| batch.map_err(external));
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

async fn scan(log: Log, file: DataFile, schema: SchemaRef) -> Result<FileScan> {
    let rows = match &file.deletion_vector {
        Some(vector) => Rows::Except(deletion_vector::rows(&log, vector).await?),
        None => Rows::All,
    };
    Ok(FileScan {
        log,
        path: file.path,
        size: Some(file.size),
        rows,
        schema,
        partition_values: file.partition_values,
        read: Arc::default(),
    })
}

/// An error of ours on its way through a stream of the query engine; [`Error`]'s conversion takes it out again.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
