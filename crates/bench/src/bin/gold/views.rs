//! The views, the tables below them beside orders, and what is counted of a view to compare it with another.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};
use futures::TryStreamExt;
use tributary_bench::orders::CUSTOMERS;
use tributary_lake::{Commit, CommitOutcome, Lake, ReadOptions, Table, WriterOptions};
use tributary_specs::{Column, DataType, GoldSpec, TableName, TableSpec};

/// A view by its name, and the query in words that both engines understand alike.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub name: &'static str,
    pub query: &'static str,
}

/// Of sums, of distinct values, of a join with history, and the join of three tables with a row an order.
pub const VIEWS: [View; 4] = [
    View {
        name: "revenue",
        query: "SELECT CAST(placed_at AS DATE) AS day, store_id, sum(amount) AS revenue, count(*) AS orders
            FROM silver.orders GROUP BY CAST(placed_at AS DATE), store_id",
    },
    View {
        name: "weekly_customers",
        query: "SELECT date_trunc('week', placed_at) AS week, count(DISTINCT customer_id) AS customers
            FROM silver.orders GROUP BY date_trunc('week', placed_at)",
    },
    View {
        name: "customer_history",
        query: "SELECT c.customer_id, c.name, c.city, c.valid_from, count(*) AS orders, sum(o.amount) AS amount,
                sum(CASE WHEN o.status = 'returned' THEN 1 ELSE 0 END) AS returned
            FROM silver.orders o
            JOIN silver.customers c ON o.customer_id = c.customer_id
            WHERE o.placed_at >= c.valid_from AND (c.valid_to IS NULL OR o.placed_at < c.valid_to)
            GROUP BY c.customer_id, c.name, c.city, c.valid_from",
    },
    View {
        name: "order_activity",
        query: "SELECT o.order_id, o.customer_id, c.name, c.city, o.amount, o.status, count(e.event_id) AS total_events,
                sum(CASE WHEN e.event_type = 'purchase' THEN 1 ELSE 0 END) AS purchase_events
            FROM silver.orders o
            LEFT JOIN silver.customers c ON o.customer_id = c.customer_id AND c.valid_to IS NULL
            LEFT JOIN silver.events e ON o.customer_id = e.customer_id
            GROUP BY o.order_id, o.customer_id, c.name, c.city, o.amount, o.status",
    },
];

impl View {
    /// The view of a name.
    pub fn named(name: &str) -> Result<Self> {
        VIEWS.into_iter().find(|view| view.name == name).with_context(|| format!("there is no view `{name}`"))
    }

    pub fn table(&self) -> TableName {
        TableName::new("gold", self.name)
    }

    pub fn spec(&self) -> GoldSpec {
        GoldSpec::new(self.table(), self.query)
    }
}

/// Makes the customers, each with one or two versions of which the last is open, and an event for every second of them.
pub async fn make_others(lake: &Lake) -> Result<()> {
    let columns = [
        ("customer_id", DataType::Long),
        ("name", DataType::String),
        ("city", DataType::String),
        ("valid_from", DataType::Timestamp),
        ("valid_to", DataType::Timestamp),
    ];
    make(lake, "customers", &columns, customers()?).await?;
    let columns = [("event_id", DataType::Long), ("customer_id", DataType::Long), ("event_type", DataType::String)];
    make(lake, "events", &columns, events()?).await
}

fn customers() -> Result<Vec<ArrayRef>> {
    const BEGIN: i64 = 1_600_000_000_000_000;
    const CHANGED: i64 = 1_710_000_000_000_000;
    let versions = (0..CUSTOMERS as i64).flat_map(|id| match id % 2 {
        0 => vec![(id, 0, BEGIN, None)],
        _ => vec![(id, 0, BEGIN, Some(CHANGED + id)), (id, 1, CHANGED + id, None)],
    });
    let versions: Vec<(i64, i64, i64, Option<i64>)> = versions.collect();
    Ok(vec![
        Arc::new(Int64Array::from_iter_values(versions.iter().map(|version| version.0))),
        Arc::new(StringArray::from_iter_values(versions.iter().map(|version| format!("customer {}", version.0)))),
        Arc::new(StringArray::from_iter_values(versions.iter().map(|version| format!("city {}", (version.0 + version.1) % 997)))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(versions.iter().map(|version| version.2)).with_timezone("UTC")),
        Arc::new(versions.iter().map(|version| version.3).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
    ])
}

fn events() -> Result<Vec<ArrayRef>> {
    let ids: Vec<i64> = (0..CUSTOMERS as i64 / 2).collect();
    let kinds = ["page_view", "purchase", "search"];
    Ok(vec![
        Arc::new(Int64Array::from(ids.clone())),
        Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| id * 2))),
        Arc::new(StringArray::from_iter_values(ids.iter().map(|id| kinds[*id as usize % kinds.len()]))),
    ])
}

async fn make(lake: &Lake, name: &str, columns: &[(&str, DataType)], rows: Vec<ArrayRef>) -> Result<()> {
    let declared = columns.iter().map(|(name, data_type)| Column::new(*name, data_type.clone())).collect();
    let table = lake.create(&TableSpec::new(TableName::new("silver", name), declared)).await?;
    let fields: Vec<_> = table.schema().fields().iter().cloned().collect();
    let mut writer = table.writer(WriterOptions::default())?;
    writer.write(&RecordBatch::try_new(Arc::new(Schema::new(fields)), rows)?).await?;
    match table.commit(Commit { adds: writer.finish().await?, ..Commit::default() }).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        other => bail!("{name} were not written: {other:?}"),
    }
}

/// How many rows a table has, and a sum over all of them that depends on no order.
pub async fn counted(table: &Table) -> Result<(u64, u64)> {
    let mut batches = table.read(ReadOptions::default()).await?;
    let fields = table.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    let converter = RowConverter::new(fields)?;
    let (mut rows, mut sum) = (0, 0_u64);
    while let Some(batch) = batches.try_next().await? {
        rows += batch.num_rows() as u64;
        for row in &converter.convert_columns(batch.columns())? {
            let mut hasher = DefaultHasher::new();
            row.as_ref().hash(&mut hasher);
            sum = sum.wrapping_add(hasher.finish());
        }
    }
    Ok((rows, sum))
}
