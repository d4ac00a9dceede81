//! A run as `system.lakeflow` is told of it.

use std::collections::BTreeMap;

use tributary::{JobDefinition, PipelineDefinition, RunEnd, TaskDefinition};
use tributary_bundle::{End, Job, JobEnd, Outcome, Pipeline};

use super::runner::{Ended, Gone};

/// How a run ended.
pub fn end(gone: &Gone) -> RunEnd {
    match gone.end {
        _ if gone.timed_out => RunEnd::new("TIMED_OUT", "RUN_EXECUTION_ERROR", "CLIENT_ERROR"),
        JobEnd::Success => RunEnd::succeeded(),
        JobEnd::SuccessWithFailures => RunEnd::new("SUCCEEDED", "SUCCESS_WITH_FAILURES", "SUCCESS"),
        JobEnd::Failed => RunEnd::new("FAILED", "RUN_EXECUTION_ERROR", "CLIENT_ERROR"),
        JobEnd::Canceled => RunEnd::new("CANCELLED", "USER_CANCELED", "SUCCESS"),
    }
}

/// How an attempt ended.
pub fn end_of_attempt(how: &Ended) -> RunEnd {
    match how.outcome {
        Outcome::Success(_) => RunEnd::succeeded(),
        Outcome::Failed => RunEnd::new("FAILED", "RUN_EXECUTION_ERROR", "CLIENT_ERROR"),
        Outcome::TimedOut => RunEnd::new("TIMED_OUT", "RUN_EXECUTION_ERROR", "CLIENT_ERROR"),
        Outcome::Canceled => RunEnd::new("CANCELLED", "USER_CANCELED", "SUCCESS"),
    }
}

/// How a task ended, in the platform's word.
pub fn word(end: End) -> String {
    serde_json::to_value(end).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The job as it is defined.
pub fn definition(job: &Job, id: &str) -> JobDefinition {
    let trigger = match (&job.schedule, &job.trigger) {
        (Some(_), _) => Some("CRON"),
        (_, Some(trigger)) if trigger.get("file_arrival").is_some() => Some("FILE_ARRIVAL"),
        (_, Some(trigger)) if trigger.get("table_update").is_some() => Some("TABLE"),
        (_, Some(_)) => Some("PERIODIC"),
        _ if job.continuous => Some("CONTINUOUS"),
        _ => None,
    };
    let task = |task: &tributary_bundle::Task| TaskDefinition {
        key: task.key.clone(),
        depends_on: task.depends_on.iter().map(|on| on.task.clone()).collect(),
        timeout_seconds: task.timeout_seconds,
    };
    JobDefinition {
        id: id.to_owned(),
        name: job.name.clone(),
        description: job.description.clone(),
        run_as: job.run_as.clone(),
        tags: job.tags.clone(),
        trigger_type: trigger.map(str::to_owned),
        schedule: job.schedule.as_ref().map(|schedule| (schedule.quartz_cron_expression.clone(), schedule.timezone_id.clone())),
        paused: job.schedule.as_ref().is_some_and(|schedule| schedule.paused),
        timeout_seconds: job.timeout_seconds,
        tasks: job.tasks.iter().map(task).collect(),
    }
}

/// A pipeline as it is defined, with the values that its run gave to names in its SQL.
pub fn pipeline(pipeline: &Pipeline, id: &str, configuration: &BTreeMap<String, String>) -> PipelineDefinition {
    PipelineDefinition {
        id: id.to_owned(),
        name: pipeline.name.clone(),
        run_as: pipeline.run_as.clone(),
        tags: pipeline.tags.clone(),
        configuration: configuration.clone(),
        catalogue: pipeline.catalog.clone(),
        schema: pipeline.schema.clone(),
        continuous: pipeline.continuous,
        development: pipeline.development,
    }
}

/// A number that a resource of a target always has, and hardly another.
pub fn stable_id(parts: &[&str]) -> String {
    // FNV-1a, 63 bits of it, as ids of the platform are positive
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_keeps_its_number_and_shares_it_with_none_beside_it() {
        let id = stable_id(&["shop", "dev", "jobs", "hourly"]);
        assert_eq!(id, stable_id(&["shop", "dev", "jobs", "hourly"]));
        assert_ne!(id, stable_id(&["shop", "prod", "jobs", "hourly"]));
        assert_ne!(stable_id(&["ab", "c"]), stable_id(&["a", "bc"]));
        assert!(id.parse::<i64>().is_ok_and(|id| id >= 0));
    }
}
