//! What is told of one run of a job.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

/// One run of a job, ended.
///
/// ```
/// let run = tributary::JobRun { run_id: "1".to_owned(), ..Default::default() };
/// assert!(run.tasks.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobRun {
    /// The job as it was when it ran.
    pub job: JobDefinition,
    /// Unique to this run: a number, greater than those of runs before it.
    pub run_id: String,
    /// What set it off: `ONETIME`, `RUN_JOB_TASK`, ….
    pub trigger_type: String,
    /// When it began, after it had waited for others.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// How long it waited for others.
    pub queued: Duration,
    /// The job's parameters with their values.
    pub parameters: BTreeMap<String, String>,
    /// How it ended.
    pub end: RunEnd,
    /// Every attempt of a task that ran.
    pub tasks: Vec<TaskRun>,
    /// Every update of a pipeline.
    pub updates: Vec<PipelineUpdate>,
}

/// How something ended, in the platform's words.
///
/// ```
/// assert_eq!(tributary::RunEnd::succeeded().result_state, "SUCCEEDED");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunEnd {
    /// `SUCCEEDED`, `FAILED`, `SKIPPED`, `CANCELLED`, `TIMED_OUT`, `ERROR` or `BLOCKED`.
    pub result_state: String,
    /// `SUCCESS`, `RUN_EXECUTION_ERROR`, `MAX_CONCURRENT_RUNS_EXCEEDED`, ….
    pub termination_code: String,
    /// `SUCCESS`, `CLIENT_ERROR`, `INTERNAL_ERROR` or `CLOUD_FAILURE`.
    pub termination_type: String,
}

impl RunEnd {
    /// Of three words.
    ///
    /// ```
    /// assert_eq!(tributary::RunEnd::new("FAILED", "RUN_EXECUTION_ERROR", "CLIENT_ERROR").termination_type, "CLIENT_ERROR");
    /// ```
    pub fn new(result_state: &str, termination_code: &str, termination_type: &str) -> Self {
        let [result_state, termination_code, termination_type] = [result_state, termination_code, termination_type].map(str::to_owned);
        Self { result_state, termination_code, termination_type }
    }

    /// It did what it should.
    ///
    /// ```
    /// assert_eq!(tributary::RunEnd::succeeded().termination_code, "SUCCESS");
    /// ```
    pub fn succeeded() -> Self {
        Self::new("SUCCEEDED", "SUCCESS", "SUCCESS")
    }
}

/// A job as it is defined.
///
/// ```
/// assert_eq!(tributary::JobDefinition::default().timeout_seconds, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobDefinition {
    /// The same for every run of the job in this target of its bundle.
    pub id: String,
    /// Its name.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// As whom it runs.
    pub run_as: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// `CRON`, `CONTINUOUS`, ….; none = it is started by hand alone.
    pub trigger_type: Option<String>,
    /// A Quartz expression and its time zone.
    pub schedule: Option<(String, String)>,
    /// Whether its schedule is paused.
    pub paused: bool,
    /// How long a run may take; 0 = as long as it takes.
    pub timeout_seconds: u64,
    /// Its tasks.
    pub tasks: Vec<TaskDefinition>,
}

/// A task as it is defined.
///
/// ```
/// assert!(tributary::TaskDefinition::default().depends_on.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskDefinition {
    /// Its key in the job.
    pub key: String,
    /// Keys of what must have ended before.
    pub depends_on: Vec<String>,
    /// How long an attempt may take; 0 = as long as it takes.
    pub timeout_seconds: u64,
}

/// One attempt of a task.
///
/// ```
/// assert_eq!(tributary::TaskRun::default().key, "");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskRun {
    /// Unique to this attempt.
    pub run_id: String,
    /// The task's key.
    pub key: String,
    /// The attempt that it is an iteration of, or the job's run.
    pub parent_run_id: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// The task's parameters with their values.
    pub parameters: BTreeMap<String, String>,
    /// How it ended.
    pub end: RunEnd,
}

/// A pipeline as it is defined.
///
/// ```
/// assert!(!tributary::PipelineDefinition::default().continuous);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipelineDefinition {
    /// The same for every update of the pipeline in this target of its bundle.
    pub id: String,
    /// Its name.
    pub name: String,
    /// As whom it runs.
    pub run_as: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// What `${name}` stands for in its SQL.
    pub configuration: BTreeMap<String, String>,
    /// Its catalogue.
    pub catalogue: Option<String>,
    /// Its schema.
    pub schema: Option<String>,
    /// Whether it runs without end by itself.
    pub continuous: bool,
    /// Whether it is for trying things out.
    pub development: bool,
}

/// One update of a pipeline: its run as a job's task.
///
/// ```
/// assert!(tributary::PipelineUpdate::default().refresh_selection.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipelineUpdate {
    /// The pipeline as it was.
    pub pipeline: PipelineDefinition,
    /// Unique to this update: the `run_id` of `system.tributary.runs`.
    pub update_id: String,
    /// The task's attempt that it was.
    pub task_run_id: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// `COMPLETED`, `FAILED` or `CANCELED`.
    pub result_state: String,
    /// Whether every table was built anew.
    pub full_refresh: bool,
    /// Tables that were brought up to date; empty = all.
    pub refresh_selection: Vec<String>,
    /// Tables that were built anew.
    pub full_refresh_selection: Vec<String>,
}
