//! Appends the rows. The only step that reads and writes.

use chrono::{DateTime, Utc};
use futures::{FutureExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tributary_lake::ReadOptions;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::json::ArrayWriter;

use super::rows;
use super::run::JobRun;
use super::tables::{JOB_RUNS, JOB_TASKS, JOBS, PIPELINES, TASK_RUNS, UPDATES};
use crate::system::{self, Row, SystemTable, of_arrow};
use crate::{Error, Lake};

/// Columns of a definition that are no part of it.
const TIMES: [&str; 3] = ["change_time", "create_time", "delete_time"];

impl Lake {
    /// Appends a run of a job, its tasks and updates to `system.lakeflow`, and the definitions of job, tasks and pipelines where they
    /// changed since a run met them last.
    ///
    /// # Errors
    /// [`Error::Lake`] when the store does not answer. What was run is as it was.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// lake.record_job_run(&tributary::JobRun { run_id: "1".to_owned(), ..Default::default() }).await?;
    /// let rows = tributary::sql::query(&lake, "select run_id from system.lakeflow.job_run_timeline").await?.collect().await?;
    /// assert_eq!(rows[0].num_rows(), 1);
    /// # Ok(()) }
    /// ```
    pub async fn record_job_run(&self, run: &JobRun) -> Result<(), Error> {
        self.try_record(run).boxed().await
    }

    async fn try_record(&self, run: &JobRun) -> Result<(), Error> {
        let system = system::catalogue(self.inner())?;
        let at = run.started_at;
        changed(&system, &JOBS, &["job_id"], vec![rows::job(&run.job)], at).await?;
        changed(&system, &JOB_TASKS, &["job_id", "task_key"], rows::job_tasks(&run.job), at).await?;
        let mut pipelines: Vec<Row> = Vec::new();
        for update in &run.updates {
            let row = rows::pipeline(&update.pipeline);
            if !pipelines.contains(&row) {
                pipelines.push(row);
            }
        }
        changed(&system, &PIPELINES, &["pipeline_id"], pipelines, at).await?;
        append(&system, &UPDATES, run.updates.iter().flat_map(|update| rows::update(run, update)).collect()).await?;
        append(&system, &TASK_RUNS, run.tasks.iter().flat_map(|task| rows::task_run(run, task)).collect()).await?;
        // Last: whoever finds a run here finds everything of it.
        append(&system, &JOB_RUNS, rows::job_run(run)).await
    }
}

async fn append(system: &tributary_lake::Lake, table: &SystemTable, rows: Vec<Row>) -> Result<(), Error> {
    system::append_rows(system, &table.spec(), &rows).await
}

/// Appends those definitions whose latest row says something else.
async fn changed(
    system: &tributary_lake::Lake,
    table: &SystemTable,
    keys: &[&str],
    rows: Vec<Row>,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    let known = all(system, table).await?;
    let spec = table.spec();
    let mut new = Vec::new();
    for mut row in rows {
        let same = known.iter().filter(|found| keys.iter().all(|key| found.get(*key) == row.get(*key)));
        // instants of one form sort as texts
        let mut of_key: Vec<&Row> = same.collect();
        of_key.sort_by_key(|found| found.get("change_time").and_then(Value::as_str).unwrap_or_default());
        let plain = |row: &Row| -> Row {
            row.iter().filter(|(name, _)| !TIMES.contains(&name.as_str())).map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let as_stored = objects(&system::batch(&spec.columns, std::slice::from_ref(&row))?)?;
        if let (Some(latest), Some(now)) = (of_key.last(), as_stored.first())
            && plain(latest) == plain(now)
        {
            continue;
        }
        let created = of_key.first().and_then(|first| first.get("create_time").cloned());
        row.insert("change_time".to_owned(), json!(rows::instant(at)));
        if spec.columns.iter().any(|column| column.name == "create_time") {
            row.insert("create_time".to_owned(), created.unwrap_or_else(|| json!(rows::instant(at))));
        }
        new.push(row);
    }
    append(system, table, new).await
}

/// Every row of a table; none where it is not there.
async fn all(system: &tributary_lake::Lake, table: &SystemTable) -> Result<Vec<Row>, Error> {
    let Some(found) = system.table(&table.table_name()).await? else { return Ok(Vec::new()) };
    let batches: Vec<RecordBatch> = found.read(ReadOptions::default()).await?.try_collect().await.map_err(tributary_lake::Error::from)?;
    let mut rows = Vec::new();
    for batch in &batches {
        rows.extend(objects(batch)?);
    }
    Ok(rows)
}

/// Rows as objects, nulls left out.
fn objects(batch: &RecordBatch) -> Result<Vec<Row>, Error> {
    let mut writer = ArrayWriter::new(Vec::new());
    writer.write(batch).and_then(|()| writer.finish()).map_err(of_arrow)?;
    let text = writer.into_inner();
    let unreadable = |error: serde_json::Error| of_arrow(ArrowError::JsonError(error.to_string()));
    if text.is_empty() { Ok(Vec::new()) } else { serde_json::from_slice(&text).map_err(unreadable) }
}
