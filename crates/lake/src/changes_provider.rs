//! The change feed of a table as a table of a query.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::TryStreamExt;

use crate::{Result, Table, read_files};

impl Table {
    /// The rows of [`Self::changes`] as a table of queries; the feed is read when one runs.
    ///
    /// # Errors
    /// As [`Self::changes`].
    pub async fn changes_provider(&self, from: u64, to: u64) -> Result<Arc<dyn TableProvider>> {
        let schema = self.changes(from, to).await?.schema();
        let changes = Changes { table: self.clone(), from, to, schema: Arc::clone(&schema) };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(changes)])?))
    }
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
        let stream = async move { table.changes(from, to).await.map_err(read_files::external) };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::once(stream).try_flatten()))
    }
}
