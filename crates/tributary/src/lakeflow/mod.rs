//! `system.lakeflow`: runs of jobs, their tasks and the updates of pipelines in the platform's shape, so that queries written for it
//! run as they stand.
//!
//! ```text
//! JobRun ──▶ rows (JSON objects a table, pure) ──▶ record: appended; definitions only where they changed
//! ```
//!
//! A run gives a row for each clock hour it went on in; how it ended stands in the last one.

mod record;
mod rows;
mod run;
mod tables;

pub use run::{JobDefinition, JobRun, PipelineDefinition, PipelineUpdate, RunEnd, TaskDefinition, TaskRun};

/// The tables as they are made.
pub(crate) fn specs() -> impl Iterator<Item = tributary_specs::TableSpec> {
    use tables::{JOB_RUNS, JOB_TASKS, JOBS, PIPELINES, TASK_RUNS, UPDATES};
    [JOB_RUNS, TASK_RUNS, JOBS, JOB_TASKS, PIPELINES, UPDATES].into_iter().map(|table| table.spec())
}
