//! Rules of jobs.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::short;
use crate::error::Error;
use crate::fault::Faults;
use crate::job::action;
use crate::merge::join;
use crate::model::job::{COMPUTE_BOUND, SQL_KINDS, TASK_KINDS, TRIGGERS};
use crate::place::At;
use crate::reference::only_reference;
use crate::resources::of_kind;
use crate::run_reference::{Piece, check, pieces};
use crate::source::{Expected, Sources};
use crate::yaml::{Node, Value};
use crate::{circle, quartz};

/// Checks every job of a bundle whose references are filled in.
pub(crate) fn check_all(root: &Node, sources: &mut Sources<'_>, faults: &mut Faults) {
    let jobs: Vec<(&str, At, &Node)> = of_kind(root, "jobs").map(|(key, entry)| (key, entry.key_at, &entry.node)).collect();
    for (key, _, job) in &jobs {
        let before = faults.count();
        Rules { path: format!("resources.jobs.{key}"), job, sources, faults }.check();
        if faults.count() == before {
            not_run(job, sources, faults);
        }
    }
    let runs = |job: &Node| -> Vec<String> {
        tasks_of(job).flat_map(|task| job_of(task).into_iter().chain(task_inside(task).and_then(job_of))).collect()
    };
    let graph: Vec<(&str, Vec<String>)> = jobs.iter().map(|(key, _, job)| (*key, runs(job))).collect();
    for way in circle::circles(&graph) {
        if let Some((_, at, _)) = jobs.iter().find(|(key, _, _)| *key == way[0]) {
            faults.error(*at, Error::WaitCircle { what: "jobs", circle: circle::shown(&way) });
        }
    }
}

fn tasks_of(job: &Node) -> impl Iterator<Item = &Node> {
    job.items_of("tasks").iter().filter(|task| task.as_map().is_some())
}

/// Says of a sound job which of its tasks are kept and not run.
fn not_run(job: &Node, sources: &Sources<'_>, faults: &mut Faults) {
    for task in tasks_of(job) {
        let action = action(task, &|node| sources.path_of(node));
        if let Some(reason) = action.not_run() {
            let name = task.text_of("task_key").unwrap_or_default();
            faults.warning(task.at, Error::NotRun { what: format!("{} {name}", action.task_kind()), reason });
        }
    }
}

fn task_inside(task: &Node) -> Option<&Node> {
    task.find(&["for_each_task", "task"])
}

/// The key of the job that a task runs.
fn job_of(task: &Node) -> Option<String> {
    let reference = only_reference(task.find(&["run_job_task", "job_id"])?.scalar()?)?;
    (reference.key(0) == Some("resources") && reference.key(1) == Some("jobs")).then(|| reference.key(2).map(str::to_owned)).flatten()
}

/// The rules of one job.
struct Rules<'a, 'b, 'c> {
    path: String,
    job: &'a Node,
    sources: &'a mut Sources<'b>,
    faults: &'c mut Faults,
}

impl<'a> Rules<'a, '_, '_> {
    fn check(&mut self) {
        self.starts();
        self.numbers(self.job, &[("max_concurrent_runs", 0, "0 to 1000"), ("timeout_seconds", 0, "0 or more")], &self.path.clone());
        if let Some(schedule) = self.job.get("schedule") {
            self.schedule(schedule);
        }
        let job = self.job;
        let tasks: Vec<&'a Node> = tasks_of(job).collect();
        let by_key: BTreeMap<&str, &Node> = tasks.iter().filter_map(|task| Some((task.text_of("task_key")?, *task))).collect();
        for task in &tasks {
            self.task(task, &by_key);
        }
        self.task_circles(&tasks);
        self.run_references(job, &by_key);
    }

    /// A schedule, a trigger and running without end exclude each other.
    fn starts(&mut self) {
        let present: Vec<(&'static str, At)> = ["schedule", "trigger", "triggers", "continuous"]
            .into_iter()
            .filter_map(|key| self.job.get(key).and(self.job.entry(key)).map(|entry| (key, entry.key_at)))
            .collect();
        if let [(one, _), (other, at), ..] = present.as_slice() {
            self.faults.error(*at, Error::Exclusive { parent: self.path.clone(), one, other: (*other).to_owned() });
        }
        if let Some(trigger) = self.job.get("trigger") {
            self.exactly_one(trigger, TRIGGERS, &format!("`{}.trigger`", self.path));
        }
    }

    fn schedule(&mut self, schedule: &Node) {
        let is_open = |text: &str| text.contains("${") || text.contains("{{");
        if let Some(node) = schedule.get("quartz_cron_expression")
            && let Some(text) = node.scalar().filter(|text| !is_open(text))
            && let Err(reason) = quartz::check_expression(text)
        {
            self.faults.error(node.at, Error::Schedule { what: "quartz_cron_expression", text: short(text), reason });
        }
        if let Some(node) = schedule.get("timezone_id")
            && let Some(text) = node.scalar().filter(|text| !is_open(text) && !quartz::is_zone(text))
        {
            let near = self.faults.near(text, quartz::zones());
            let reason = format!("no such time zone{}", crate::error::hint(&near));
            self.faults.error(node.at, Error::Schedule { what: "timezone_id", text: short(text), reason });
        }
    }

    fn numbers(&mut self, node: &Node, keys: &[(&str, i64, &'static str)], path: &str) {
        for (key, least, expected) in keys {
            let Some(number) = node.get(key) else { continue };
            if number.as_whole().is_some_and(|value| value < *least || (*key == "max_concurrent_runs" && value > 1000)) {
                let found = number.scalar().unwrap_or_default().to_owned();
                self.faults.error(number.at, Error::OutOfRange { path: join(path, key), found, expected });
            }
        }
    }

    fn exactly_one(&mut self, node: &Node, choices: &'static [&'static str], parent: &str) -> Option<&'static str> {
        let found: Vec<&'static str> = choices.iter().copied().filter(|kind| node.get(kind).is_some()).collect();
        if let [one] = found.as_slice() {
            return Some(one);
        }
        let listed = if found.is_empty() { "nothing to do".to_owned() } else { found.join(" and ") };
        let at = found.iter().filter_map(|kind| node.entry(kind)).map(|entry| entry.key_at).max().unwrap_or(node.at);
        self.faults.error(at, Error::NotOne { parent: parent.to_owned(), found: listed, choices: choices.join(", ") });
        None
    }

    fn task(&mut self, task: &'a Node, by_key: &BTreeMap<&str, &Node>) {
        let name = task.text_of("task_key").unwrap_or_default();
        let path = format!("{}.tasks.{name}", self.path);
        if let Some(key) = task.get("task_key").filter(|_| !is_task_key(name) && !name.contains("${")) {
            let expected = "1 to 100 letters, digits, `-` and `_`";
            self.faults.error(key.at, Error::OutOfRange { path: format!("{}.tasks.task_key", self.path), found: short(name), expected });
        }
        self.dependencies(task, name, by_key);
        self.body(task, name, &path);
    }

    fn dependencies(&mut self, task: &Node, name: &str, by_key: &BTreeMap<&str, &Node>) {
        for dependency in task.items_of("depends_on") {
            let Some(node) = dependency.get("task_key") else { continue };
            let Some(wanted) = node.scalar().filter(|text| !text.contains("${")) else { continue };
            match (by_key.get(wanted), dependency.get("outcome")) {
                (None, _) => {
                    let near = self.faults.near(wanted, by_key.keys().copied().filter(|key| *key != name));
                    let error = Error::UnknownTask { task: name.to_owned(), dependency: short(wanted), nearest: near };
                    self.faults.error(node.at, error);
                }
                (Some(other), Some(outcome)) if other.get("condition_task").is_none() => {
                    let error = Error::OutcomeWithoutCondition { task: name.to_owned(), dependency: wanted.to_owned() };
                    self.faults.error(outcome.at, error);
                }
                (Some(_), Some(outcome)) if !matches!(outcome.scalar(), Some("true" | "false")) => {
                    let found = short(outcome.scalar().unwrap_or_default());
                    let path = format!("{}.tasks.{name}.depends_on.outcome", self.path);
                    self.faults.error(outcome.at, Error::OutOfRange { path, found, expected: "\"true\" or \"false\"" });
                }
                _ => {}
            }
        }
    }

    /// What a task does, also inside a for_each_task.
    fn body(&mut self, task: &'a Node, name: &str, path: &str) {
        let ranges =
            [("max_retries", -1, "-1 or more"), ("min_retry_interval_millis", 0, "0 or more"), ("timeout_seconds", 0, "0 or more")];
        self.numbers(task, &ranges, path);
        self.compute(task, name);
        let Some(kind) = self.exactly_one(task, TASK_KINDS, &format!("task {name}")) else { return };
        let Some(body) = task.get(kind).filter(|body| body.as_map().is_some()) else { return };
        match kind {
            "for_each_task" => self.for_each(body, name, path),
            "sql_task" => {
                self.exactly_one(body, SQL_KINDS, &format!("sql_task of {name}"));
                if let Some(file) = body.get("file") {
                    self.source(file, "path", Expected::File);
                }
            }
            "notebook_task" => self.source(body, "notebook_path", Expected::Notebook),
            "spark_python_task" => self.source(body, "python_file", Expected::File),
            "dbt_task" => self.source(body, "project_directory", Expected::Folder),
            "pipeline_task" => self.target(body, "pipeline_id", "pipelines"),
            "run_job_task" => self.target(body, "job_id", "jobs"),
            "python_wheel_task" => {
                if let (Some(_), Some(named)) = (body.get("parameters"), body.entry("named_parameters")) {
                    let parent = format!("python_wheel_task of {name}");
                    self.faults.error(named.key_at, Error::Exclusive { parent, one: "parameters", other: "named_parameters".to_owned() });
                }
            }
            _ => {}
        }
    }

    fn for_each(&mut self, body: &'a Node, name: &str, path: &str) {
        if let Some(inputs) = body.get("inputs")
            && let Some(text) = inputs.scalar()
            && !text.contains("{{")
            && !text.contains("${")
            && !matches!(serde_json::from_str::<serde_json::Value>(text), Ok(serde_json::Value::Array(_)))
        {
            let error = Error::OutOfRange {
                path: format!("{path}.for_each_task.inputs"),
                found: short(text),
                expected: "a JSON list or a reference to one",
            };
            self.faults.error(inputs.at, error);
        }
        self.numbers(body, &[("concurrency", 1, "1 or more")], &format!("{path}.for_each_task"));
        let Some(inner) = body.get("task").filter(|inner| inner.as_map().is_some()) else { return };
        if let Some(again) = inner.entry("for_each_task") {
            self.faults.error(again.key_at, Error::NestedForEach { task: name.to_owned() });
            return;
        }
        let inner_name = inner.text_of("task_key").unwrap_or(name);
        self.body(inner, inner_name, &format!("{path}.for_each_task.task"));
    }

    /// A cluster or environment that a task names, and that tasks of some kinds need.
    fn compute(&mut self, task: &Node, name: &str) {
        for (kind, list) in [("job_cluster_key", "job_clusters"), ("environment_key", "environments")] {
            let Some(node) = task.get(kind) else { continue };
            let Some(key) = node.scalar().filter(|text| !text.contains("${")) else { continue };
            let declared: Vec<&str> = self.job.items_of(list).iter().filter_map(|item| item.text_of(kind)).collect();
            if !declared.contains(&key) {
                let near = self.faults.near(key, declared.iter().copied());
                self.faults.warning(node.at, Error::UndeclaredCompute { kind, key: short(key), nearest: near });
            }
        }
        let needs = COMPUTE_BOUND.iter().find_map(|kind| Some((*kind, task.get(kind).and(task.entry(kind))?)));
        let has = ["environment_key", "job_cluster_key", "existing_cluster_id", "new_cluster", "compute"]
            .iter()
            .any(|key| task.get(key).is_some());
        if let (Some((kind, entry)), false) = (needs, has) {
            self.faults.error(entry.key_at, Error::NoCompute { task: name.to_owned(), kind: kind.to_owned() });
        }
    }

    /// A file of the bundle; what is taken from git or stands in the workspace is not looked for.
    fn source(&mut self, body: &Node, key: &str, expected: Expected) {
        let Some(path) = body.get(key) else { return };
        let from_git = match body.text_of("source") {
            Some(source) => source == "GIT",
            None => self.job.get("git_source").is_some(),
        };
        if !from_git {
            self.sources.check(path, expected, self.faults);
        }
    }

    /// `${resources.pipelines.x.id}` where a pipeline is meant. That the resource is there, the reference itself has shown.
    fn target(&mut self, body: &Node, key: &str, kind: &'static str) {
        let Some(node) = body.get(key) else { return };
        let other = node.scalar().and_then(only_reference).and_then(|reference| match (reference.key(0), reference.key(1)) {
            (Some("resources"), Some(found)) if found != kind => Some(()),
            _ => None,
        });
        if other.is_some() {
            let expected = format!("the id of one of the {kind}");
            self.faults.error(node.at, Error::WrongKind { path: key.to_owned(), expected, found: "a resource of another kind" });
        }
    }

    fn task_circles(&mut self, tasks: &[&Node]) {
        let graph: Vec<(&str, Vec<String>)> = tasks
            .iter()
            .filter_map(|task| {
                let items = task.items_of("depends_on");
                let reads = items.iter().filter_map(|item| item.text_of("task_key").map(str::to_owned));
                Some((task.text_of("task_key")?, reads.collect()))
            })
            .collect();
        for way in circle::circles(&graph) {
            let at = tasks.iter().find(|task| task.text_of("task_key") == Some(&way[0])).map_or(self.job.at, |task| task.at);
            self.faults.error(at, Error::WaitCircle { what: "tasks", circle: circle::shown(&way) });
        }
    }

    /// References that are filled in when the job runs.
    fn run_references(&mut self, job: &Node, by_key: &BTreeMap<&str, &Node>) {
        let parameters: BTreeSet<&str> = job.items_of("parameters").iter().filter_map(|item| item.text_of("name")).collect();
        let parameters: Vec<&str> = parameters.into_iter().collect();
        let tasks: Vec<&str> = by_key.keys().copied().collect();
        let mut nodes: Vec<&Node> = job.get("tasks").into_iter().collect();
        while let Some(node) = nodes.pop() {
            match &node.value {
                Value::List(items) => nodes.extend(items),
                Value::Map(map) => nodes.extend(map.iter().filter(|(key, _)| *key != "dbt_task").map(|(_, entry)| &entry.node)),
                Value::Text(text) if text.contains("{{") => {
                    for piece in pieces(text) {
                        let Piece::Reference(name, written) = piece else { continue };
                        if let Err((_, known)) = check(name, &parameters, &tasks) {
                            let at = self.sources.files().within(node.at, written);
                            let near = self.faults.near(name, known.iter().map(String::as_str));
                            self.faults.warning(at, Error::UnknownRunReference { reference: short(name), nearest: near });
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_task_key(key: &str) -> bool {
    (1..=100).contains(&key.chars().count()) && key.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
}
