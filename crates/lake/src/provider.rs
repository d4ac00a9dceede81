//! A snapshot as a table of the query engine.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use deltalake::DeltaTable;
use deltalake::delta_datafusion::{DeltaScanConfig, DeltaScanNext};
use deltalake::kernel::Snapshot;

use crate::log::Log;
use crate::{Error, limit_above};

/// Reads one snapshot through the Delta library; writing through it is not possible.
#[derive(Debug)]
struct SnapshotTable {
    scan: DeltaScanNext,
    delta: DeltaTable,
}

/// The provider of a version of a table.
pub(crate) async fn of(log: &Log, version: u64) -> Result<Arc<dyn TableProvider>, Error> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Delta { table: log.table.clone(), source };
    let snapshot = Snapshot::try_new(&log.delta, Some(version)).await.map_err(|error| failed(error.into()))?;
    let config = DeltaScanConfig { schema_force_view_types: false, wrap_partition_values: false, ..DeltaScanConfig::new() };
    let scan = DeltaScanNext::new(snapshot, config)?;
    Ok(Arc::new(SnapshotTable { scan, delta: DeltaTable::new(Arc::clone(&log.delta)) }))
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.delta.update_datafusion_session(session)?;
        Ok(limit_above::keep(self.scan.scan(session, projection, filters, limit).await?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.scan.supports_filters_pushdown(filters)
    }
}
