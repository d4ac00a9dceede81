//! The change feed of a table as a table.

use std::sync::Arc;

use futures::TryStreamExt;
use tributary_lake::Table;
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_lake::datafusion::catalog::streaming::StreamingTable;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::datafusion::execution::{SendableRecordBatchStream, TaskContext};
use tributary_lake::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tributary_lake::datafusion::physical_plan::streaming::PartitionStream;

use super::Error;

/// Rows of the versions `from..=to` with their change columns; the feed is read when the query runs.
pub(super) async fn provider(table: Table, from: u64, to: u64) -> Result<Arc<dyn TableProvider>, Error> {
    let schema = table.changes(from, to).await?.schema();
    let changes = Changes { table, from, to, schema: Arc::clone(&schema) };
    Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(changes)]).map_err(tributary_lake::Error::from)?))
}

#[derive(Debug)]
struct Changes {
    table: Table,
    from: u64,
    to: u64,
    schema: SchemaRef,
}

impl PartitionStream for Changes {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (table, from, to) = (self.table.clone(), self.from, self.to);
        let stream = async move { table.changes(from, to).await.map_err(|error| DataFusionError::External(Box::new(error))) };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::once(stream).try_flatten()))
    }
}
