//! A snapshot as a table of the query engine, whose rows are looked up where a plan wants those of some keys alone ([`crate::Keys`]).
//!
//! The Delta library opens every file whose statistics may hold a key, and reads all of its rows where the table has deletion vectors.
//! Here files are looked into one after the other ([`KeySearch`]): key columns first, then rows at the places found. Where a file has
//! more than a fifth of its rows among the keys, the others are read whole.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use crate::among::keys_of;
use crate::conflict::may_hold;
use crate::{KeyProbe, KeyRange, KeyRanges, KeySearch, Table, read_files};

/// Files of which more than one row in so many is among the keys are not looked into.
const SCATTERED: u64 = 5;

/// See the module.
#[derive(Debug)]
pub struct KeyedProvider {
    table: Table,
    scan: Arc<dyn TableProvider>,
    rows: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl KeyedProvider {
    /// Rows that were looked up so far, beside those of ordinary scans.
    pub fn rows_looked_up(&self) -> u64 {
        self.rows.load(Atomic::Relaxed)
    }

    /// Bytes of files that were fetched for them.
    pub fn bytes_looked_up(&self) -> u64 {
        self.bytes.load(Atomic::Relaxed)
    }
}

impl Table {
    /// As [`Self::provider`], with rows looked up where a plan wants those of [`crate::Keys`] alone.
    ///
    /// # Errors
    /// As [`Self::provider`].
    pub async fn keyed_provider(&self) -> crate::Result<Arc<KeyedProvider>> {
        Ok(Arc::new(KeyedProvider { table: self.clone(), scan: self.provider().await?, rows: Arc::default(), bytes: Arc::default() }))
    }
}

#[async_trait]
impl TableProvider for KeyedProvider {
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
        let fewest = filters.iter().filter_map(keys_of).min_by_key(|(keys, _)| keys.set().len());
        let schema = match projection {
            Some(places) => Arc::new(self.schema().project(places)?),
            None => self.schema(),
        };
        let Some((keys, names)) = fewest.filter(|_| !schema.fields().is_empty()) else {
            return self.scan.scan(session, projection, filters, limit).await;
        };
        let times = times(filters);
        let mut files = self.table.files().await.map_err(read_files::external)?;
        files.retain(|file| may_hold(&times, &file.stats));
        let of_table = self.table.schema();
        let places = schema.fields().iter().map(|field| of_table.index_of(field.name())).collect::<Result<Vec<_>, ArrowError>>()?;
        let partition = LookedUp {
            search: Arc::new(KeySearch::counting(&self.table, files, Arc::clone(&self.bytes))),
            probe: Arc::new(keys.named(names).map_err(read_files::external)?),
            columns: Arc::new(of_table.project(&places)?),
            schema: Arc::clone(&schema),
            rows: Arc::clone(&self.rows),
        };
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(partition)], None, [], false, None)?))
    }

    /// None is exact: a lookup asks for keys alone, and which filters come with them is not known here.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        use TableProviderFilterPushDown::{Exact, Inexact, Unsupported};
        let by_scan = self.scan.supports_filters_pushdown(filters)?;
        let supported = filters.iter().zip(by_scan).map(|(filter, by_scan)| match by_scan {
            Exact | Inexact => Inexact,
            Unsupported if keys_of(filter).is_some() => Inexact,
            Unsupported => Unsupported,
        });
        Ok(supported.collect())
    }
}

/// Between which times rows of columns lie that meet the filters, as far as these compare a column with a time.
fn times(filters: &[Expr]) -> KeyRanges {
    let mut times = KeyRanges::default();
    for filter in filters {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { continue };
        let (Expr::Column(column), Expr::Literal(ScalarValue::TimestampMicrosecond(Some(time), zone), _)) = (left.as_ref(), right.as_ref())
        else {
            continue;
        };
        let (least, greatest) = match op {
            Operator::GtEq | Operator::Gt => (*time, i64::MAX),
            Operator::LtEq | Operator::Lt => (i64::MIN, *time),
            _ => continue,
        };
        let time = |micros| ScalarValue::TimestampMicrosecond(Some(micros), zone.clone());
        let range = KeyRange { bounds: Some((time(least), time(greatest))), nulls: false };
        match times.0.get_mut(&column.name).and_then(|known| known.bounds.as_mut()) {
            Some((from, to)) => {
                *from = if least == i64::MIN { from.clone() } else { later(from, time(least)) };
                *to = if greatest == i64::MAX { to.clone() } else { earlier(to, time(greatest)) };
            }
            None => drop(times.0.insert(column.name.clone(), range)),
        }
    }
    times
}

fn later(one: &ScalarValue, other: ScalarValue) -> ScalarValue {
    if one.partial_cmp(&other) == Some(Ordering::Less) { other } else { one.clone() }
}

fn earlier(one: &ScalarValue, other: ScalarValue) -> ScalarValue {
    if one.partial_cmp(&other) == Some(Ordering::Greater) { other } else { one.clone() }
}

/// Rows of the keys, file after file.
#[derive(Debug, Clone)]
struct LookedUp {
    search: Arc<KeySearch>,
    probe: Arc<dyn KeyProbe>,
    /// What is read, as the table has it.
    columns: SchemaRef,
    /// The same, as an ordinary scan gives it.
    schema: SchemaRef,
    rows: Arc<AtomicU64>,
}

impl PartitionStream for LookedUp {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let walk = Walk { of: self.clone(), next: 0, whole: false };
        let batches =
            stream::try_unfold(walk, |mut walk| async move { Ok::<_, DataFusionError>(walk.file().await?.map(|file| (file, walk))) })
                .try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

/// On its way through the files.
struct Walk {
    of: LookedUp,
    next: usize,
    /// Whether files are read whole from here on.
    whole: bool,
}

impl Walk {
    /// The rows of the next file.
    async fn file(&mut self) -> Result<Option<BoxStream<'static, Result<RecordBatch>>>> {
        let LookedUp { search, probe, columns, schema, rows } = &self.of;
        let Some(file) = search.files().get(self.next) else { return Ok(None) };
        let number = self.next;
        self.next += 1;
        let (schema, rows) = (Arc::clone(schema), Arc::clone(rows));
        let told = move |batch: Result<RecordBatch>| {
            let batch = batch?;
            rows.fetch_add(batch.num_rows() as u64, Atomic::Relaxed);
            Ok(RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?)
        };
        if self.whole {
            let rows = search.whole(number, columns).await.map_err(read_files::external)?;
            return Ok(Some(rows.map_err(read_files::external).map(told).boxed()));
        }
        let found = search.find_columns([number], probe, columns).await.map_err(read_files::external)?;
        self.whole = found.rows.num_rows() as u64 * SCATTERED > file.live_rows().unwrap_or(u64::MAX);
        Ok(Some(stream::iter([told(Ok(found.rows))]).boxed()))
    }
}
