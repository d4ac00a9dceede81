//! Jobs and their tasks, as they are run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use tributary_specs::Place;

use crate::model::job::TASK_KINDS;
use crate::reference::only_reference;
use crate::source::is_sql;
use crate::yaml::Node;

/// Tasks in the order that their dependencies allow, and when and how they run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// The resource's key.
    pub key: String,
    /// The name, with the prefix of mode and presets.
    pub name: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Parameters and their defaults.
    pub parameters: BTreeMap<String, String>,
    /// The tasks, in the order of their keys.
    pub tasks: Vec<Task>,
    /// How many runs may be active at once; 0 = it is never run.
    pub max_concurrent_runs: u64,
    /// Whether a run beyond `max_concurrent_runs` waits instead of being skipped.
    pub queue: bool,
    /// How long a run may take; 0 = as long as it takes.
    pub timeout_seconds: u64,
    /// When it runs by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What else sets it off, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Json>,
    /// Whether one run is always active.
    pub continuous: bool,
    /// Whom it tells.
    pub notifications: Notifications,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// As whom it runs: a user's name or a service principal's, its own or the bundle's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// After how many seconds a run is told of as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_after_seconds: Option<u64>,
}

/// When a job runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Schedule {
    /// A Quartz expression.
    pub quartz_cron_expression: String,
    /// An IANA name, or a distance from Greenwich.
    pub timezone_id: String,
    /// Whether it is paused.
    pub paused: bool,
}

/// Whom a job or a task tells, by event: `on_start`, `on_success`, `on_failure`, ….
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Notifications {
    /// Addresses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub email: BTreeMap<String, Vec<String>>,
    /// Ids of webhooks; an address is called as it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<String, Vec<String>>,
    /// Runs that are skipped tell nobody.
    pub no_alert_for_skipped_runs: bool,
    /// Runs that are cancelled tell nobody.
    pub no_alert_for_canceled_runs: bool,
    /// A failure is told after the last attempt only.
    pub alert_on_last_attempt: bool,
}

/// One step of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// Its key in the job.
    pub key: String,
    /// Where it stands.
    #[serde(skip)]
    pub place: Option<Place>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What must have ended before.
    pub depends_on: Vec<Dependency>,
    /// What their ends must be.
    pub run_if: RunIf,
    /// How it is tried again.
    pub retries: Retries,
    /// How long an attempt may take; 0 = as long as it takes.
    pub timeout_seconds: u64,
    /// Whether it is left out.
    pub disabled: bool,
    /// Whom it tells.
    pub notifications: Notifications,
    /// What it does.
    pub action: Action,
}

/// One task that another waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// Its key.
    pub task: String,
    /// `true` or `false`: the branch of a condition task that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// What the ends of a task's dependencies must be for it to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunIf {
    /// All succeeded.
    #[default]
    AllSuccess,
    /// All ended, however.
    AllDone,
    /// None failed, and at least one ran.
    NoneFailed,
    /// At least one succeeded.
    AtLeastOneSuccess,
    /// At least one failed.
    AtLeastOneFailed,
    /// All failed.
    AllFailed,
}

impl RunIf {
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("ALL_DONE") => Self::AllDone,
            Some("NONE_FAILED") => Self::NoneFailed,
            Some("AT_LEAST_ONE_SUCCESS") => Self::AtLeastOneSuccess,
            Some("AT_LEAST_ONE_FAILED") => Self::AtLeastOneFailed,
            Some("ALL_FAILED") => Self::AllFailed,
            _ => Self::AllSuccess,
        }
    }
}

/// How a task is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Retries {
    /// How many times at most; none = without end.
    pub max: Option<u64>,
    /// From the start of the failed attempt to the next start at least, in milliseconds.
    pub min_interval_millis: u64,
    /// Whether an attempt that took too long is tried again.
    pub on_timeout: bool,
}

/// A pipeline or job: one of this bundle, or an id of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The key of a resource of the bundle.
    Resource(String),
    /// An id that only the workspace knows.
    Id(String),
}

impl Target {
    /// What a text that names a resource of this kind means.
    fn of(kind: &str, text: &str) -> Self {
        match only_reference(text) {
            Some(reference) if reference.key(0) == Some("resources") && reference.key(1) == Some(kind) => {
                Self::Resource(reference.key(2).unwrap_or_default().to_owned())
            }
            _ => Self::Id(text.to_owned()),
        }
    }
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Action {
    /// Runs a pipeline.
    Pipeline {
        /// Which.
        pipeline: Target,
        /// Whether every table is built anew.
        full_refresh: bool,
        /// Only these tables; empty = all.
        refresh_selection: Vec<String>,
        /// Tables that are built anew.
        full_refresh_selection: Vec<String>,
        /// Parameters over those of the pipeline.
        parameters: BTreeMap<String, String>,
    },
    /// Runs the statements of a file.
    SqlFile {
        /// The file, from the bundle's folder on.
        path: String,
        /// Values of its named parameters.
        parameters: BTreeMap<String, String>,
    },
    /// Runs a notebook.
    Notebook {
        /// The file, from the bundle's folder on; as written where it is in the workspace or in git.
        path: String,
        /// Values of its parameters.
        parameters: BTreeMap<String, String>,
    },
    /// Compares two texts or numbers.
    Condition {
        /// `EQUAL_TO`, `GREATER_THAN`, ….
        op: String,
        /// The left side.
        left: String,
        /// The right side.
        right: String,
    },
    /// Runs a task for each element of a list.
    ForEach {
        /// A JSON list, or a reference to one.
        inputs: String,
        /// How many run at once.
        concurrency: u64,
        /// The task.
        task: Box<Task>,
    },
    /// Runs another job.
    RunJob {
        /// Which.
        job: Target,
        /// Values of its parameters.
        parameters: BTreeMap<String, String>,
    },
    /// Kept, but not run here.
    Other {
        /// `dbt_task`, ….
        task_kind: String,
        /// As it is written.
        body: Json,
    },
}

impl Action {
    /// The key that it stands under.
    pub fn task_kind(&self) -> &str {
        match self {
            Self::Pipeline { .. } => "pipeline_task",
            Self::SqlFile { .. } => "sql_task",
            Self::Notebook { .. } => "notebook_task",
            Self::Condition { .. } => "condition_task",
            Self::ForEach { .. } => "for_each_task",
            Self::RunJob { .. } => "run_job_task",
            Self::Other { task_kind, .. } => task_kind,
        }
    }
}

impl Action {
    /// Why it is kept but not run here; none = it is run.
    pub fn not_run(&self) -> Option<String> {
        let of_workspace = |what: &str| Some(format!("{what} is known to its workspace alone; name one of the bundle"));
        let is_elsewhere = |path: &str| path.starts_with('/') || path.contains("://");
        match self {
            Self::Pipeline { pipeline: Target::Id(_), .. } => of_workspace("the pipeline"),
            Self::RunJob { job: Target::Id(_), .. } => of_workspace("the job"),
            Self::SqlFile { path, .. } | Self::Notebook { path, .. } if is_elsewhere(path) => of_workspace("the file"),
            Self::Notebook { path, .. } if !is_sql(path) => Some("of notebooks only those in SQL are run".to_owned()),
            Self::ForEach { task, .. } => task.action.not_run(),
            Self::Other { task_kind, .. } if task_kind == "sql_task" => of_workspace("the query, alert or dashboard"),
            Self::Other { .. } => Some("run here are pipeline, SQL, notebook (in SQL), condition, for-each and run-job tasks".to_owned()),
            Self::Pipeline { .. } | Self::SqlFile { .. } | Self::Notebook { .. } | Self::Condition { .. } | Self::RunJob { .. } => None,
        }
    }
}

/// Resolves a path that stands in a node to one from the bundle's folder on; as written where it cannot.
pub(crate) type PathOf<'a> = &'a dyn Fn(&Node) -> Option<String>;

impl Job {
    /// A job of which every part that can be read is taken.
    pub(crate) fn of(key: &str, node: &Node, path_of: PathOf<'_>) -> Self {
        let parameters = node.items_of("parameters");
        let parameter = |node: &Node| Some((node.text_of("name")?.to_owned(), node.text_of("default").unwrap_or_default().to_owned()));
        Self {
            key: key.to_owned(),
            name: node.text_of("name").unwrap_or(key).to_owned(),
            description: node.text_of("description").map(str::to_owned),
            parameters: parameters.iter().filter_map(parameter).collect(),
            tasks: node.items_of("tasks").iter().map(|task| Task::of(task, path_of)).collect(),
            max_concurrent_runs: number(node, "max_concurrent_runs").unwrap_or(1),
            queue: node.get("queue").and_then(|queue| queue.flag_of("enabled")).unwrap_or(false),
            timeout_seconds: number(node, "timeout_seconds").unwrap_or(0),
            schedule: node.get("schedule").map(|schedule| Schedule {
                quartz_cron_expression: schedule.text_of("quartz_cron_expression").unwrap_or_default().to_owned(),
                timezone_id: schedule.text_of("timezone_id").unwrap_or_default().to_owned(),
                paused: schedule.text_of("pause_status") == Some("PAUSED"),
            }),
            trigger: node.get("trigger").map(Node::to_json),
            continuous: node.get("continuous").is_some_and(|continuous| continuous.text_of("pause_status") != Some("PAUSED")),
            notifications: Notifications::of(node),
            tags: texts(node, "tags"),
            run_as: node.get("run_as").and_then(principal),
            warn_after_seconds: warn_after(node),
        }
    }
}

impl Notifications {
    fn of(node: &Node) -> Self {
        let settings = |key: &str| {
            let of = |part: &str| node.get(part).and_then(|part| part.flag_of(key)).unwrap_or(false);
            of("notification_settings") || of("email_notifications")
        };
        let lists = |part: &str, word: &dyn Fn(&Node) -> Option<String>| {
            let events = node.get(part).into_iter().flat_map(Node::entries).filter(|(event, _)| event.starts_with("on_"));
            events.map(|(event, entry)| (event.to_owned(), entry.node.items().iter().filter_map(word).collect())).collect()
        };
        Self {
            email: lists("email_notifications", &|node| node.scalar().map(str::to_owned)),
            webhook: lists("webhook_notifications", &|node| node.text_of("id").map(str::to_owned)),
            no_alert_for_skipped_runs: settings("no_alert_for_skipped_runs"),
            no_alert_for_canceled_runs: settings("no_alert_for_canceled_runs"),
            alert_on_last_attempt: settings("alert_on_last_attempt"),
        }
    }
}

impl Task {
    fn of(node: &Node, path_of: PathOf<'_>) -> Self {
        let dependency = |node: &Node| {
            Some(Dependency { task: node.text_of("task_key")?.to_owned(), outcome: node.text_of("outcome").map(str::to_owned) })
        };
        let max = match node.whole_of("max_retries") {
            Some(-1) => None,
            max => Some(max.and_then(|max| u64::try_from(max).ok()).unwrap_or(0)),
        };
        Self {
            key: node.text_of("task_key").unwrap_or_default().to_owned(),
            place: None,
            description: node.text_of("description").map(str::to_owned),
            depends_on: node.items_of("depends_on").iter().filter_map(dependency).collect(),
            run_if: RunIf::of(node.text_of("run_if")),
            retries: Retries {
                max,
                min_interval_millis: number(node, "min_retry_interval_millis").unwrap_or(0),
                on_timeout: node.flag_of("retry_on_timeout").unwrap_or(false),
            },
            timeout_seconds: number(node, "timeout_seconds").unwrap_or(0),
            disabled: node.flag_of("disabled").unwrap_or(false),
            notifications: Notifications::of(node),
            action: action(node, path_of),
        }
    }
}

pub(crate) fn action(node: &Node, path_of: PathOf<'_>) -> Action {
    let Some((kind, body)) = TASK_KINDS.iter().find_map(|kind| Some((*kind, node.get(kind)?))) else {
        return Action::Other { task_kind: String::new(), body: Json::Null };
    };
    let text = |key: &str| body.text_of(key).unwrap_or_default().to_owned();
    let path = |node: Option<&Node>| {
        let node = node?;
        path_of(node).or_else(|| node.scalar().map(str::to_owned))
    };
    match kind {
        "pipeline_task" => Action::Pipeline {
            pipeline: Target::of("pipelines", &text("pipeline_id")),
            full_refresh: body.flag_of("full_refresh").unwrap_or(false),
            refresh_selection: words(body, "refresh_selection"),
            full_refresh_selection: words(body, "full_refresh_selection"),
            parameters: texts(body, "parameters"),
        },
        "sql_task" if body.get("file").is_some() => {
            Action::SqlFile { path: path(body.find(&["file", "path"])).unwrap_or_default(), parameters: texts(body, "parameters") }
        }
        "notebook_task" => {
            Action::Notebook { path: path(body.get("notebook_path")).unwrap_or_default(), parameters: texts(body, "base_parameters") }
        }
        "condition_task" => Action::Condition { op: text("op"), left: text("left"), right: text("right") },
        "for_each_task" => match body.get("task") {
            Some(task) => Action::ForEach {
                inputs: text("inputs"),
                concurrency: number(body, "concurrency").unwrap_or(1).max(1),
                task: Box::new(Task::of(task, path_of)),
            },
            None => Action::Other { task_kind: kind.to_owned(), body: body.to_json() },
        },
        "run_job_task" => Action::RunJob { job: Target::of("jobs", &text("job_id")), parameters: texts(body, "job_parameters") },
        _ => Action::Other { task_kind: kind.to_owned(), body: body.to_json() },
    }
}

/// The least duration that a health rule names.
fn warn_after(node: &Node) -> Option<u64> {
    let rules = node.get("health").map(|health| health.items_of("rules")).unwrap_or_default();
    let of_duration = rules.iter().filter(|rule| rule.text_of("metric") == Some("RUN_DURATION_SECONDS"));
    of_duration.filter_map(|rule| number(rule, "value")).min()
}

/// The person or service principal that a `run_as` names.
pub(crate) fn principal(node: &Node) -> Option<String> {
    node.text_of("user_name").or_else(|| node.text_of("service_principal_name")).map(str::to_owned)
}

/// A whole number of 0 or more under a key.
fn number(node: &Node, key: &str) -> Option<u64> {
    node.whole_of(key).and_then(|number| u64::try_from(number).ok())
}

/// The mapping of texts under a key.
pub(crate) fn texts(node: &Node, key: &str) -> BTreeMap<String, String> {
    let entries = node.get(key).into_iter().flat_map(Node::entries);
    entries.map(|(key, entry)| (key.to_owned(), entry.node.scalar().unwrap_or_default().to_owned())).collect()
}

/// The list of texts under a key.
pub(crate) fn words(node: &Node, key: &str) -> Vec<String> {
    let items = node.items_of(key);
    items.iter().filter_map(|item| item.scalar().map(str::to_owned)).collect()
}
