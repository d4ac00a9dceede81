//! The tables, as the platform has them and with three columns more that people's queries ask for.

use crate::system::SystemTable;

/// `lakeflow.job_run_timeline`.
pub(super) const JOB_RUNS: SystemTable = SystemTable {
    schema: "lakeflow",
    name: "job_run_timeline",
    comment: "Runs of jobs, a row for each clock hour; job_name, start_time and end_time are of the whole run and not the platform's",
    columns: &[
        ("account_id", "string"),
        ("workspace_id", "string"),
        ("job_id", "string"),
        ("run_id", "string"),
        ("period_start_time", "timestamp"),
        ("period_end_time", "timestamp"),
        ("trigger_type", "string"),
        ("run_type", "string"),
        ("run_name", "string"),
        ("compute_ids", "array<string>"),
        ("compute", COMPUTE),
        ("result_state", "string"),
        ("termination_code", "string"),
        ("termination_type", "string"),
        ("job_parameters", "map<string,string>"),
        ("source_task_run_id", "string"),
        ("root_task_run_id", "string"),
        ("setup_duration_seconds", "bigint"),
        ("queue_duration_seconds", "bigint"),
        ("run_duration_seconds", "bigint"),
        ("cleanup_duration_seconds", "bigint"),
        ("execution_duration_seconds", "bigint"),
        ("job_name", "string"),
        ("start_time", "timestamp"),
        ("end_time", "timestamp"),
    ],
};

/// `lakeflow.job_task_run_timeline`.
pub(super) const TASK_RUNS: SystemTable = SystemTable {
    schema: "lakeflow",
    name: "job_task_run_timeline",
    comment: "Attempts of tasks, a row for each clock hour",
    columns: &[
        ("account_id", "string"),
        ("workspace_id", "string"),
        ("job_id", "string"),
        ("run_id", "string"),
        ("job_run_id", "string"),
        ("parent_run_id", "string"),
        ("period_start_time", "timestamp"),
        ("period_end_time", "timestamp"),
        ("task_key", "string"),
        ("compute_ids", "array<string>"),
        ("compute", COMPUTE),
        ("result_state", "string"),
        ("termination_code", "string"),
        ("termination_type", "string"),
        ("task_parameters", "map<string,string>"),
        ("setup_duration_seconds", "bigint"),
        ("cleanup_duration_seconds", "bigint"),
        ("execution_duration_seconds", "bigint"),
    ],
};

/// `lakeflow.jobs`.
pub(super) const JOBS: SystemTable = SystemTable {
    schema: "lakeflow",
    name: "jobs",
    comment: "Jobs, a row for each change that a run met",
    columns: &[
        ("account_id", "string"),
        ("workspace_id", "string"),
        ("job_id", "string"),
        ("name", "string"),
        ("description", "string"),
        ("creator_id", "string"),
        ("creator_user_name", "string"),
        ("tags", "map<string,string>"),
        ("change_time", "timestamp"),
        ("delete_time", "timestamp"),
        ("create_time", "timestamp"),
        ("run_as", "string"),
        ("run_as_user_name", "string"),
        ("trigger", "struct<schedule:struct<quartz_cron_expression:string,timezone_id:string>>"),
        ("trigger_type", "string"),
        ("paused", "boolean"),
        ("timeout_seconds", "bigint"),
        ("health_rules", HEALTH),
        ("deployment", "struct<kind:string,metadata_file_path:string>"),
    ],
};

/// `lakeflow.job_tasks`.
pub(super) const JOB_TASKS: SystemTable = SystemTable {
    schema: "lakeflow",
    name: "job_tasks",
    comment: "Tasks of jobs, a row for each change that a run met",
    columns: &[
        ("account_id", "string"),
        ("workspace_id", "string"),
        ("job_id", "string"),
        ("task_key", "string"),
        ("depends_on_keys", "array<string>"),
        ("change_time", "timestamp"),
        ("delete_time", "timestamp"),
        ("timeout_seconds", "bigint"),
        ("health_rules", HEALTH),
    ],
};

/// `lakeflow.pipelines`.
pub(super) const PIPELINES: SystemTable = SystemTable {
    schema: "lakeflow",
    name: "pipelines",
    comment: "Pipelines, a row for each change that a run met",
    columns: &[
        ("account_id", "string"),
        ("workspace_id", "string"),
        ("pipeline_id", "string"),
        ("pipeline_type", "string"),
        ("name", "string"),
        ("created_by", "string"),
        ("run_as", "string"),
        ("tags", "map<string,string>"),
        ("settings", "struct<catalog:string,schema:string,continuous:boolean,development:boolean>"),
        ("configuration", "map<string,string>"),
        ("change_time", "timestamp"),
        ("delete_time", "timestamp"),
        ("create_time", "timestamp"),
    ],
};

/// `lakeflow.pipeline_update_timeline`.
pub(super) const UPDATES: SystemTable = SystemTable {
    schema: "lakeflow",
    name: "pipeline_update_timeline",
    comment: "Updates of pipelines, a row for each clock hour",
    columns: &[
        ("account_id", "string"),
        ("workspace_id", "string"),
        ("pipeline_id", "string"),
        ("update_id", "string"),
        ("update_type", "string"),
        ("request_id", "string"),
        ("run_as_user_name", "string"),
        ("trigger_type", "string"),
        ("trigger_details", "struct<job_task:struct<job_id:string,job_task_run_id:string>>"),
        ("result_state", "string"),
        ("compute", "struct<type:string,cluster_id:string,warehouse_id:string>"),
        ("period_start_time", "timestamp"),
        ("period_end_time", "timestamp"),
        ("refresh_selection", "array<string>"),
        ("full_refresh_selection", "array<string>"),
        ("reset_checkpoint_selection", "array<string>"),
    ],
};

const COMPUTE: &str = "array<struct<type:string,cluster_id:string,warehouse_id:string>>";
const HEALTH: &str = "array<struct<metric:string,operator:string,value:bigint>>";
