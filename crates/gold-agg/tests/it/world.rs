//! A small lake in memory, its silver tables, and what is read of it.

use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use tributary_gold_agg::Options;
use tributary_lake::arrow::array::AsArray;
use tributary_lake::arrow::datatypes::TimestampMicrosecondType;
use tributary_lake::datafusion::execution::SendableRecordBatchStream;
use tributary_lake::object_store::ObjectStore;
use tributary_lake::object_store::memory::InMemory;
use tributary_lake::{
    Commit, CommitOutcome, DELETION_VECTORS_ON, Lake, LakeOptions, ManualClock, Operation, Progress, ReadOptions, Reads, Stores, Table,
    WriterOptions,
};
use tributary_specs::{Column, DatasetReport, GoldSpec, Status, TableName, TableSpec};
use tributary_testkit::{Frame, frame};
use url::Url;

/// Rows of `silver.orders`.
pub fn orders() -> Frame {
    frame!(
        "order_id: long | region: string | amount: long
         1              | north          | 10
         2              | north          | 4
         3              | south          | 2
         4              | null           | null"
    )
}

/// `silver.orders` without rows.
pub fn no_orders() -> Frame {
    frame!("order_id: long | region: string | amount: long")
}

/// `gold.revenue`: sums and counts of `silver.orders`.
pub fn by_region() -> GoldSpec {
    GoldSpec::new(name("gold.revenue"), "SELECT region, sum(amount) AS revenue, count(*) AS orders FROM silver.orders GROUP BY region")
}

pub struct World {
    pub lake: Lake,
}

/// 2026-02-01T10:00:00Z.
pub fn ten_o_clock() -> DateTime<Utc> {
    DateTime::from_timestamp(1_769_940_000, 0).unwrap()
}

pub fn name(text: &str) -> TableName {
    text.parse().unwrap()
}

pub fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

impl World {
    pub fn new() -> Self {
        Self::over(memory())
    }

    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self::with(store, 256 << 20)
    }

    pub fn with(store: Arc<dyn ObjectStore>, memory_limit: usize) -> Self {
        let clock = Arc::new(ManualClock::new(ten_o_clock()));
        let stores = Stores::wrap(store, Url::parse("memory:///lake/").unwrap());
        let options = LakeOptions { clock, memory_limit, ..LakeOptions::default() };
        Self { lake: Lake::open(stores, options).unwrap() }
    }

    pub async fn table(&self, table: &str) -> Result<Table> {
        self.lake.table(&name(table)).await?.with_context(|| format!("{table} is there"))
    }

    async fn made(&self, table: &str, frame: &Frame) -> Result<Table> {
        let columns = Column::all_from_arrow(&frame.schema())?;
        let properties = std::collections::BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "true".to_owned())]);
        let spec = TableSpec { row_changes: true, properties, ..TableSpec::new(name(table), columns) };
        Ok(self.lake.create(&spec).await?)
    }

    /// Makes the table if it is not there and adds rows in one commit.
    pub async fn append(&self, table: &str, frame: &Frame) -> Result<u64> {
        self.commit(table, frame, false, Operation::Write).await
    }

    /// Makes the table if it is not there and replaces its rows in one commit.
    pub async fn replace(&self, table: &str, frame: &Frame) -> Result<u64> {
        self.commit(table, frame, true, Operation::Overwrite).await
    }

    /// Rewrites the table's files without changing a row.
    pub async fn optimize(&self, table: &str) -> Result<u64> {
        let frame = self.rows(table).await?;
        self.commit(table, &frame, true, Operation::Optimize).await
    }

    /// For controls: says that a view has read its source up to a version, and takes up no row; nothing where the view is not there.
    pub async fn pass_over(&self, view: &TableName, source: &str, version: u64) -> Result<()> {
        let Some(table) = self.lake.table(view).await? else { return Ok(()) };
        let app_id = format!("tributary:source:{source}");
        let Some(expected) = table.progress(&app_id).await? else { return Ok(()) };
        let progress = vec![Progress { app_id, expected: Some(expected), version: i64::try_from(version)? }];
        let commit = Commit { operation: Operation::Write, progress, reads: Reads::BlindAppend, ..Commit::default() };
        anyhow::ensure!(matches!(table.commit(commit).await?, CommitOutcome::Committed { .. }));
        Ok(())
    }

    /// For controls: says that what waited for the watermarks of the sources, as they are now, was told; nothing where the view is not
    /// there.
    pub async fn pass_watermark(&self, view: &TableName, sources: &[&str]) -> Result<()> {
        const DOMAIN: &str = "tributary.view";
        let Some(table) = self.lake.table(view).await? else { return Ok(()) };
        let Some(text) = table.domain(DOMAIN).await? else { return Ok(()) };
        let mut definition: serde_json::Value = serde_json::from_str(&text)?;
        for source in sources {
            let rows = self.table(source).await?.read(ReadOptions { columns: Some(vec!["at".to_owned()]), filter: None }).await?;
            let batches: Vec<_> = rows.try_collect().await?;
            let times = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<TimestampMicrosecondType>().iter().flatten());
            if let Some(reached) = times.max() {
                definition["held"][*source] = reached.into();
            }
        }
        let passed = definition.to_string();
        if passed == text {
            return Ok(());
        }
        let domains = std::collections::BTreeMap::from([(DOMAIN.to_owned(), Some(passed))]);
        let commit = Commit { operation: Operation::Write, domains, reads: Reads::BlindAppend, ..Commit::default() };
        anyhow::ensure!(matches!(table.commit(commit).await?, CommitOutcome::Committed { .. }));
        Ok(())
    }

    async fn commit(&self, table: &str, frame: &Frame, replace: bool, operation: Operation) -> Result<u64> {
        let table = self.made(table, frame).await?;
        if frame.is_empty() && table.files().await?.is_empty() {
            return Ok(table.version());
        }
        let mut writer = table.writer(WriterOptions::default())?;
        writer.write(frame.batch()).await?;
        let adds = writer.finish().await?;
        let removes = if replace { table.files().await? } else { Vec::new() };
        let reads = match operation {
            Operation::Optimize => Reads::Files,
            _ if replace => Reads::WholeTable,
            _ => Reads::BlindAppend,
        };
        let commit = Commit { operation, adds, removes, reads, ..Commit::default() };
        match table.commit(commit).await? {
            CommitOutcome::Committed { version } => Ok(version),
            other => anyhow::bail!("{other:?}"),
        }
    }

    pub async fn rows(&self, table: &str) -> Result<Frame> {
        rows_of(&self.table(table).await?).await
    }

    pub async fn version(&self, table: &str) -> Result<u64> {
        Ok(self.table(table).await?.version())
    }

    /// Brings a view up to date with default options.
    pub async fn run(&self, spec: &GoldSpec) -> Result<DatasetReport, tributary_gold_agg::Error> {
        let report = tributary_gold_agg::run(&self.lake, spec, &Options::default()).await?;
        assert_counts_add_up(&report);
        Ok(told(report))
    }
}

/// The report with a refresh's reason for its mode checked and taken off.
pub fn told(mut report: DatasetReport) -> DatasetReport {
    if report.status == Status::Committed {
        report.reason = report.reason.split("; in full, for ").next().unwrap_or_default().to_owned();
    }
    report
}

pub async fn rows_of(table: &Table) -> Result<Frame> {
    frame_of(table.read(ReadOptions::default()).await?).await
}

pub async fn frame_of(stream: SendableRecordBatchStream) -> Result<Frame> {
    let schema = stream.schema();
    Ok(Frame::new(schema, &stream.try_collect::<Vec<_>>().await?))
}

pub fn assert_counts_add_up(report: &DatasetReport) {
    let ignored: u64 = report.rows_ignored.values().sum();
    assert_eq!(report.rows_in, report.rows_out + report.rows_quarantined + ignored, "{report:?}");
}
