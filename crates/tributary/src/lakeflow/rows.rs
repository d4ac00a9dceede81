//! A run as rows of the tables, each an object by column. Pure.

use chrono::{DateTime, DurationRound as _, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use super::run::{JobDefinition, JobRun, PipelineDefinition, PipelineUpdate, TaskRun};
use crate::system::Row;

/// There is one account and one workspace.
const PLACE: &str = "0";

/// Rows of `job_run_timeline`.
pub(super) fn job_run(run: &JobRun) -> Vec<Row> {
    let seconds = (run.ended_at - run.started_at).num_seconds().max(0);
    let whole = json!({
        "job_id": run.job.id,
        "run_id": run.run_id,
        "trigger_type": run.trigger_type,
        "run_type": "JOB_RUN",
        "run_name": run.job.name,
        "job_parameters": run.parameters,
        "setup_duration_seconds": 0,
        "queue_duration_seconds": run.queued.as_secs(),
        "run_duration_seconds": seconds,
        "cleanup_duration_seconds": 0,
        "execution_duration_seconds": seconds,
        "job_name": run.job.name,
        "start_time": instant(run.started_at),
        "end_time": instant(run.ended_at),
    });
    let end = json!({
        "result_state": run.end.result_state,
        "termination_code": run.end.termination_code,
        "termination_type": run.end.termination_type,
    });
    hours(run.started_at, run.ended_at, &whole, &end)
}

/// Rows of `job_task_run_timeline`.
pub(super) fn task_run(run: &JobRun, task: &TaskRun) -> Vec<Row> {
    let seconds = (task.ended_at - task.started_at).num_seconds().max(0);
    let whole = json!({
        "job_id": run.job.id,
        "run_id": task.run_id,
        "job_run_id": run.run_id,
        "parent_run_id": task.parent_run_id,
        "task_key": task.key,
        "task_parameters": task.parameters,
        "setup_duration_seconds": 0,
        "cleanup_duration_seconds": 0,
        "execution_duration_seconds": seconds,
    });
    let end = json!({
        "result_state": task.end.result_state,
        "termination_code": task.end.termination_code,
        "termination_type": task.end.termination_type,
    });
    hours(task.started_at, task.ended_at, &whole, &end)
}

/// Rows of `pipeline_update_timeline`.
pub(super) fn update(run: &JobRun, update: &PipelineUpdate) -> Vec<Row> {
    let selected = |names: &[String]| if names.is_empty() { Value::Null } else { json!(names) };
    let whole = json!({
        "pipeline_id": update.pipeline.id,
        "update_id": update.update_id,
        "update_type": if update.full_refresh { "FULL_REFRESH" } else { "REFRESH" },
        "run_as_user_name": update.pipeline.run_as,
        "trigger_type": "JOB_TASK",
        "trigger_details": { "job_task": { "job_id": run.job.id, "job_task_run_id": update.task_run_id } },
        "refresh_selection": selected(&update.refresh_selection),
        "full_refresh_selection": selected(&update.full_refresh_selection),
    });
    hours(update.started_at, update.ended_at, &whole, &json!({ "result_state": update.result_state }))
}

/// The row of `jobs`, but for its times.
pub(super) fn job(job: &JobDefinition) -> Row {
    let schedule = job.schedule.as_ref().map(|(expression, zone)| json!({ "quartz_cron_expression": expression, "timezone_id": zone }));
    row(&[&json!({
        "job_id": job.id,
        "name": job.name,
        "description": job.description,
        "tags": job.tags,
        "run_as_user_name": job.run_as,
        "trigger": schedule.map(|schedule| json!({ "schedule": schedule })),
        "trigger_type": job.trigger_type,
        "paused": job.paused,
        "timeout_seconds": job.timeout_seconds,
    })])
}

/// The rows of `job_tasks`, but for their times.
pub(super) fn job_tasks(job: &JobDefinition) -> Vec<Row> {
    let task = |task: &super::TaskDefinition| {
        row(&[&json!({
            "job_id": job.id,
            "task_key": task.key,
            "depends_on_keys": task.depends_on,
            "timeout_seconds": task.timeout_seconds,
        })])
    };
    job.tasks.iter().map(task).collect()
}

/// The row of `pipelines`, but for its times.
pub(super) fn pipeline(pipeline: &PipelineDefinition) -> Row {
    row(&[&json!({
        "pipeline_id": pipeline.id,
        "pipeline_type": "ETL_PIPELINE",
        "name": pipeline.name,
        "run_as": pipeline.run_as,
        "tags": pipeline.tags,
        "settings": {
            "catalog": pipeline.catalogue,
            "schema": pipeline.schema,
            "continuous": pipeline.continuous,
            "development": pipeline.development,
        },
        "configuration": pipeline.configuration,
    })])
}

/// An instant as the tables are given it.
pub(super) fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A row a clock hour; how it ended stands in the last one.
fn hours(from: DateTime<Utc>, until: DateTime<Utc>, whole: &Value, end: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut start = from;
    loop {
        let next = start.duration_trunc(TimeDelta::hours(1)).ok().and_then(|hour| hour.checked_add_signed(TimeDelta::hours(1)));
        let next = next.filter(|next| *next < until);
        let period = json!({ "period_start_time": instant(start), "period_end_time": instant(next.unwrap_or(until.max(start))) });
        rows.push(row(&[whole, &period, if next.is_some() { &Value::Null } else { end }]));
        match next {
            Some(next) => start = next,
            None => return rows,
        }
    }
}

/// Several objects as one row of the one workspace; nulls are left out.
fn row(parts: &[&Value]) -> Row {
    let place = json!({ "account_id": PLACE, "workspace_id": PLACE });
    let parts = std::iter::once(&place).chain(parts.iter().copied());
    let entries = parts.filter_map(Value::as_object).flatten().filter(|(_, value)| !value.is_null());
    entries.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunEnd;

    fn run(from: &str, until: &str) -> JobRun {
        JobRun {
            started_at: from.parse().unwrap(),
            ended_at: until.parse().unwrap(),
            end: RunEnd::succeeded(),
            job: JobDefinition { name: "hourly".into(), ..Default::default() },
            ..Default::default()
        }
    }

    fn periods(from: &str, until: &str) -> Vec<(String, String, Option<String>)> {
        let text = |row: &Row, name: &str| row.get(name).map(|value| value.as_str().unwrap().replace(".000000Z", ""));
        let rows = job_run(&run(from, until));
        rows.iter()
            .map(|row| (text(row, "period_start_time").unwrap(), text(row, "period_end_time").unwrap(), text(row, "result_state")))
            .collect()
    }

    #[test]
    fn a_run_has_a_row_a_clock_hour_and_its_result_in_the_last() {
        let done = Some("SUCCEEDED".to_owned());
        let row = |from: &str, until: &str, end: Option<String>| (from.to_owned(), until.to_owned(), end);
        assert_eq!(
            periods("2026-11-30T10:20:00Z", "2026-11-30T12:10:00Z"),
            [
                row("2026-11-30T10:20:00", "2026-11-30T11:00:00", None),
                row("2026-11-30T11:00:00", "2026-11-30T12:00:00", None),
                row("2026-11-30T12:00:00", "2026-11-30T12:10:00", done.clone()),
            ]
        );
        assert_eq!(
            periods("2026-11-30T10:20:00Z", "2026-11-30T11:00:00Z"),
            [row("2026-11-30T10:20:00", "2026-11-30T11:00:00", done.clone())]
        );
        assert_eq!(periods("2026-11-30T10:20:00Z", "2026-11-30T10:20:00Z"), [row("2026-11-30T10:20:00", "2026-11-30T10:20:00", done)]);
    }

    #[test]
    fn every_row_of_a_run_says_when_the_whole_of_it_began_and_ended() {
        let rows = job_run(&run("2026-11-30T10:20:00Z", "2026-11-30T11:10:30Z"));
        assert!(
            rows.iter().all(|row| row["start_time"] == "2026-11-30T10:20:00.000000Z" && row["end_time"] == "2026-11-30T11:10:30.000000Z")
        );
        assert!(rows.iter().all(|row| row["run_duration_seconds"] == 3030 && row["job_name"] == "hourly"));
    }
}
