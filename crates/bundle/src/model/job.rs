//! Keys of jobs and their tasks.

use super::Kind::{Choice, Flag, List, Object as Of, Text, Whole};
use super::{ANYS, LIST_OF_ANY, Object, RUN_AS, TEXTS, WORDS, object};

const PAUSE: super::Kind = Choice(&["PAUSED", "UNPAUSED"]);

pub(crate) static JOB: Object = object(&[
    ("budget_policy_id", Text),
    ("continuous", Of(&object(&[("pause_status", PAUSE), ("task_retry_mode", Choice(&["NEVER", "ON_FAILURE"]))]))),
    ("deployment", ANYS),
    ("description", Text),
    ("edit_mode", Choice(&["EDITABLE", "UI_LOCKED"])),
    ("email_notifications", Of(&EMAIL)),
    ("environments", List(&Of(&ENVIRONMENT))),
    ("format", Text),
    ("git_source", Of(&GIT_SOURCE)),
    ("health", Of(&HEALTH)),
    ("job_clusters", List(&Of(&JOB_CLUSTER))),
    ("lifecycle", ANYS),
    ("max_concurrent_runs", Whole),
    ("name", Text),
    ("notification_settings", Of(&object(&[("no_alert_for_canceled_runs", Flag), ("no_alert_for_skipped_runs", Flag)]))),
    ("parameters", List(&Of(&PARAMETER))),
    ("performance_target", Choice(&["PERFORMANCE_OPTIMIZED", "STANDARD"])),
    ("permissions", List(&Of(&PERMISSION))),
    ("queue", Of(&Object { fields: &[("enabled", Flag)], needed: &["enabled"] })),
    ("run_as", Of(&RUN_AS)),
    ("schedule", Of(&SCHEDULE)),
    ("tags", WORDS),
    ("tasks", List(&Of(&TASK))),
    ("timeout_seconds", Whole),
    ("trigger", Of(&TRIGGER)),
    ("triggers", LIST_OF_ANY),
    ("usage_policy_id", Text),
    ("webhook_notifications", Of(&WEBHOOK)),
]);

static EMAIL: Object = object(&[
    ("no_alert_for_skipped_runs", Flag),
    ("on_duration_warning_threshold_exceeded", TEXTS),
    ("on_failure", TEXTS),
    ("on_start", TEXTS),
    ("on_streaming_backlog_exceeded", TEXTS),
    ("on_success", TEXTS),
]);

const HOOKS: super::Kind = List(&Of(&HOOK));
static HOOK: Object = Object { fields: &[("id", Text)], needed: &["id"] };

static WEBHOOK: Object = object(&[
    ("on_duration_warning_threshold_exceeded", HOOKS),
    ("on_failure", HOOKS),
    ("on_start", HOOKS),
    ("on_streaming_backlog_exceeded", HOOKS),
    ("on_success", HOOKS),
]);

static ENVIRONMENT: Object = Object { fields: &[("environment_key", Text), ("spec", Of(&ENVIRONMENT_SPEC))], needed: &["environment_key"] };

static ENVIRONMENT_SPEC: Object = object(&[
    ("base_environment", Text),
    ("client", Text),
    ("dependencies", TEXTS),
    ("environment_version", Text),
    ("java_dependencies", TEXTS),
]);

static GIT_SOURCE: Object = Object {
    fields: &[
        ("git_branch", Text),
        ("git_commit", Text),
        ("git_provider", Text),
        ("git_snapshot", ANYS),
        ("git_tag", Text),
        ("git_url", Text),
        ("job_source", ANYS),
        ("sparse_checkout", ANYS),
    ],
    needed: &["git_provider", "git_url"],
};

static HEALTH: Object = object(&[("rules", List(&Of(&HEALTH_RULE)))]);

static HEALTH_RULE: Object = Object {
    fields: &[
        (
            "metric",
            Choice(&[
                "RUN_DURATION_SECONDS",
                "STREAMING_BACKLOG_BYTES",
                "STREAMING_BACKLOG_FILES",
                "STREAMING_BACKLOG_RECORDS",
                "STREAMING_BACKLOG_SECONDS",
            ]),
        ),
        ("op", Choice(&["GREATER_THAN"])),
        ("value", Whole),
    ],
    needed: &["metric", "op", "value"],
};

static JOB_CLUSTER: Object =
    Object { fields: &[("job_cluster_key", Text), ("new_cluster", ANYS)], needed: &["job_cluster_key", "new_cluster"] };

static PARAMETER: Object = Object { fields: &[("default", Text), ("name", Text)], needed: &["default", "name"] };

static PERMISSION: Object = Object {
    fields: &[
        ("group_name", Text),
        ("level", Choice(&["CAN_MANAGE", "CAN_MANAGE_RUN", "CAN_VIEW", "IS_OWNER"])),
        ("service_principal_name", Text),
        ("user_name", Text),
    ],
    needed: &["level"],
};

static SCHEDULE: Object = Object {
    fields: &[("pause_status", PAUSE), ("quartz_cron_expression", Text), ("timezone_id", Text)],
    needed: &["quartz_cron_expression", "timezone_id"],
};

static TRIGGER: Object = object(&[
    ("file_arrival", Of(&FILE_ARRIVAL)),
    ("model", ANYS),
    ("pause_status", PAUSE),
    ("periodic", Of(&PERIODIC)),
    ("table_update", Of(&TABLE_UPDATE)),
]);

/// What can set off a job, exactly one of them.
pub(crate) const TRIGGERS: &[&str] = &["file_arrival", "model", "periodic", "table_update"];

static FILE_ARRIVAL: Object = Object {
    fields: &[("min_time_between_triggers_seconds", Whole), ("url", Text), ("wait_after_last_change_seconds", Whole)],
    needed: &["url"],
};

static PERIODIC: Object =
    Object { fields: &[("interval", Whole), ("unit", Choice(&["DAYS", "HOURS", "MINUTES", "WEEKS"]))], needed: &["interval", "unit"] };

static TABLE_UPDATE: Object = Object {
    fields: &[
        ("condition", Choice(&["ALL_UPDATED", "ANY_UPDATED"])),
        ("min_time_between_triggers_seconds", Whole),
        ("table_names", TEXTS),
        ("wait_after_last_change_seconds", Whole),
    ],
    needed: &["table_names"],
};

pub(crate) static TASK: Object = Object {
    fields: &[
        ("clean_rooms_notebook_task", ANYS),
        ("compute", ANYS),
        ("condition_task", Of(&CONDITION)),
        ("dashboard_task", ANYS),
        ("dbt_cloud_task", ANYS),
        ("dbt_platform_task", ANYS),
        ("dbt_task", Of(&DBT)),
        ("depends_on", List(&Of(&DEPENDENCY))),
        ("description", Text),
        ("disable_auto_optimization", Flag),
        ("disabled", Flag),
        ("email_notifications", Of(&EMAIL)),
        ("environment_key", Text),
        ("existing_cluster_id", Text),
        ("for_each_task", Of(&FOR_EACH)),
        ("gen_ai_compute_task", ANYS),
        ("health", Of(&HEALTH)),
        ("job_cluster_key", Text),
        ("libraries", LIST_OF_ANY),
        ("max_retries", Whole),
        ("min_retry_interval_millis", Whole),
        ("new_cluster", ANYS),
        ("notebook_task", Of(&NOTEBOOK)),
        (
            "notification_settings",
            Of(&object(&[("alert_on_last_attempt", Flag), ("no_alert_for_canceled_runs", Flag), ("no_alert_for_skipped_runs", Flag)])),
        ),
        ("pipeline_task", Of(&PIPELINE_TASK)),
        ("power_bi_task", ANYS),
        ("python_wheel_task", Of(&WHEEL)),
        ("retry_on_timeout", Flag),
        ("run_if", Choice(&["ALL_DONE", "ALL_FAILED", "ALL_SUCCESS", "AT_LEAST_ONE_FAILED", "AT_LEAST_ONE_SUCCESS", "NONE_FAILED"])),
        ("run_job_task", Of(&RUN_JOB)),
        ("spark_jar_task", Of(&JAR)),
        ("spark_python_task", Of(&PYTHON)),
        ("spark_submit_task", ANYS),
        ("sql_task", Of(&SQL)),
        ("task_key", Text),
        ("timeout_seconds", Whole),
        ("webhook_notifications", Of(&WEBHOOK)),
    ],
    needed: &["task_key"],
};

/// What a task does, exactly one of them.
pub(crate) const TASK_KINDS: &[&str] = &[
    "clean_rooms_notebook_task",
    "condition_task",
    "dashboard_task",
    "dbt_cloud_task",
    "dbt_platform_task",
    "dbt_task",
    "for_each_task",
    "gen_ai_compute_task",
    "notebook_task",
    "pipeline_task",
    "power_bi_task",
    "python_wheel_task",
    "run_job_task",
    "spark_jar_task",
    "spark_python_task",
    "spark_submit_task",
    "sql_task",
];

/// Kinds of tasks that run on a cluster or in an environment.
pub(crate) const COMPUTE_BOUND: &[&str] = &["dbt_task", "python_wheel_task", "spark_jar_task", "spark_python_task", "spark_submit_task"];

static DEPENDENCY: Object = Object { fields: &[("outcome", Text), ("task_key", Text)], needed: &["task_key"] };

static CONDITION: Object = Object {
    fields: &[
        ("left", Text),
        ("op", Choice(&["EQUAL_TO", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN", "LESS_THAN_OR_EQUAL", "NOT_EQUAL"])),
        ("right", Text),
    ],
    needed: &["left", "op", "right"],
};

static DBT: Object = Object {
    fields: &[
        ("catalog", Text),
        ("commands", TEXTS),
        ("profiles_directory", Text),
        ("project_directory", Text),
        ("schema", Text),
        ("source", Choice(&["GIT", "WORKSPACE"])),
        ("warehouse_id", Text),
    ],
    needed: &["commands"],
};

static FOR_EACH: Object = Object { fields: &[("concurrency", Whole), ("inputs", Text), ("task", Of(&TASK))], needed: &["inputs", "task"] };

static NOTEBOOK: Object = Object {
    fields: &[("base_parameters", WORDS), ("notebook_path", Text), ("source", Choice(&["GIT", "WORKSPACE"])), ("warehouse_id", Text)],
    needed: &["notebook_path"],
};

static PIPELINE_TASK: Object = Object {
    fields: &[
        ("full_refresh", Flag),
        ("full_refresh_selection", TEXTS),
        ("parameters", WORDS),
        ("pipeline_id", Text),
        ("refresh_flow_selection", TEXTS),
        ("refresh_selection", TEXTS),
        ("reset_checkpoint_selection", TEXTS),
    ],
    needed: &["pipeline_id"],
};

static WHEEL: Object = Object {
    fields: &[("entry_point", Text), ("named_parameters", WORDS), ("package_name", Text), ("parameters", TEXTS)],
    needed: &["entry_point", "package_name"],
};

static RUN_JOB: Object = Object {
    fields: &[
        ("dbt_commands", TEXTS),
        ("jar_params", TEXTS),
        ("job_id", Text),
        ("job_parameters", WORDS),
        ("notebook_params", WORDS),
        (
            "pipeline_params",
            Of(&object(&[
                ("full_refresh", Flag),
                ("full_refresh_selection", TEXTS),
                ("refresh_selection", TEXTS),
                ("reset_checkpoint_selection", TEXTS),
            ])),
        ),
        ("python_named_params", WORDS),
        ("python_params", TEXTS),
        ("spark_submit_params", TEXTS),
        ("sql_params", WORDS),
    ],
    needed: &["job_id"],
};

static JAR: Object = Object {
    fields: &[("jar_uri", Text), ("main_class_name", Text), ("parameters", TEXTS), ("run_as_repl", Flag)],
    needed: &["main_class_name"],
};

static PYTHON: Object =
    Object { fields: &[("parameters", TEXTS), ("python_file", Text), ("source", Choice(&["GIT", "WORKSPACE"]))], needed: &["python_file"] };

static SQL: Object = Object {
    fields: &[
        (
            "alert",
            Of(&Object {
                fields: &[("alert_id", Text), ("pause_subscriptions", Flag), ("subscriptions", LIST_OF_ANY)],
                needed: &["alert_id"],
            }),
        ),
        (
            "dashboard",
            Of(&Object {
                fields: &[("custom_subject", Text), ("dashboard_id", Text), ("pause_subscriptions", Flag), ("subscriptions", LIST_OF_ANY)],
                needed: &["dashboard_id"],
            }),
        ),
        ("file", Of(&Object { fields: &[("path", Text), ("source", Choice(&["GIT", "WORKSPACE"]))], needed: &["path"] })),
        ("parameters", WORDS),
        ("query", Of(&Object { fields: &[("query_id", Text)], needed: &["query_id"] })),
        ("warehouse_id", Text),
    ],
    needed: &["warehouse_id"],
};

/// What an SQL task runs, exactly one of them.
pub(crate) const SQL_KINDS: &[&str] = &["alert", "dashboard", "file", "query"];
