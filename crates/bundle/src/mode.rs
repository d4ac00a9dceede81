//! What a mode and the presets change, and what they refuse.

use crate::error::Error;
use crate::fault::Faults;
use crate::target::Target;
use crate::workspace::{normal, short_name};
use crate::yaml::{Node, Value};

/// What is done to every resource.
struct Presets {
    name_prefix: String,
    tags: Vec<(String, Node)>,
    pipelines_development: Option<bool>,
    trigger_pause_status: Option<String>,
    jobs_max_concurrent_runs: Option<Node>,
}

/// Applies mode and presets to the resources. `root` is filled in but for its resources.
pub(crate) fn apply(root: &mut Node, target: &Target, user: &str, force: bool, faults: &mut Faults) {
    let mode = root.find(&["bundle", "mode"]).and_then(Node::scalar).unwrap_or_default().to_owned();
    match mode.as_str() {
        "development" => check_development(root, user, faults),
        "production" => check_production(root, target, force, faults),
        _ => {}
    }
    let presets = presets(root, mode == "development", user);
    if mode == "development"
        && let Some(lock) = root.map_at("bundle").and_then(|bundle| bundle.map_at("deployment")).and_then(|part| part.map_at("lock"))
    {
        lock.set_default("enabled", Node::flag(lock.at, false));
    }
    let Some(kinds) = root.get_mut("resources").and_then(Node::as_map_mut) else { return };
    for (kind, resources) in kinds {
        for entry in resources.node.as_map_mut().into_iter().flat_map(|map| map.values_mut()) {
            if entry.node.as_map().is_some() {
                presets.apply(kind, &mut entry.node);
                if kind == "pipelines" && mode == "development" && entry.node.flag_of("continuous") == Some(true) {
                    entry.node.set("continuous", Node::flag(entry.node.at, false));
                }
            }
        }
    }
}

fn presets(root: &Node, development: bool, user: &str) -> Presets {
    let presets = root.get("presets");
    let given = |key: &str| presets.and_then(|presets| presets.get(key));
    let word = |key: &str, of_mode: &str| {
        let of_mode = development.then(|| of_mode.to_owned());
        given(key).and_then(Node::scalar).map(str::to_owned).or(of_mode)
    };
    let mut tags: Vec<(String, Node)> =
        given("tags").into_iter().flat_map(Node::entries).map(|(key, entry)| (key.to_owned(), entry.node.clone())).collect();
    if development && !tags.iter().any(|(key, _)| key == "dev") {
        tags.push(("dev".to_owned(), Node::text(root.at, short_name(user))));
    }
    let four = || Node { computed: true, ..Node::new(root.at, Value::Number(4.into(), "4".to_owned())) };
    Presets {
        name_prefix: word("name_prefix", &format!("[dev {}] ", short_name(user))).unwrap_or_default(),
        tags,
        pipelines_development: given("pipelines_development").and_then(Node::as_flag).or(development.then_some(true)),
        trigger_pause_status: word("trigger_pause_status", "PAUSED"),
        jobs_max_concurrent_runs: given("jobs_max_concurrent_runs").cloned().or_else(|| development.then(four)),
    }
}

impl Presets {
    fn apply(&self, kind: &str, resource: &mut Node) {
        match kind {
            "jobs" | "pipelines" | "experiments" | "models" | "model_serving_endpoints" | "dashboards" | "alerts" | "apps" => {
                self.prefix(resource, &self.name_prefix);
            }
            // These names hold letters, digits and underscores only.
            "schemas" | "registered_models" => self.prefix(resource, &plain_prefix(&self.name_prefix)),
            _ => {}
        }
        if matches!(kind, "jobs" | "pipelines" | "models" | "experiments") {
            self.tag(resource);
        }
        match kind {
            "jobs" => {
                if let Some(runs) = &self.jobs_max_concurrent_runs {
                    resource.set_default("max_concurrent_runs", runs.clone());
                }
                self.pause(resource);
            }
            "pipelines" => {
                if let Some(development) = self.pipelines_development {
                    resource.set_default("development", Node::flag(resource.at, development));
                }
            }
            _ => {}
        }
    }

    fn prefix(&self, resource: &mut Node, prefix: &str) {
        if let Some(Node { value: Value::Text(name), .. }) = resource.get_mut("name") {
            *name = format!("{prefix}{name}");
        }
    }

    fn tag(&self, resource: &mut Node) {
        if self.tags.is_empty() {
            return;
        }
        if let Some(tags) = resource.map_at("tags") {
            self.tags.iter().for_each(|(key, value)| tags.set_default(key, value.clone()));
        }
    }

    fn pause(&self, job: &mut Node) {
        let Some(status) = &self.trigger_pause_status else { return };
        for key in ["schedule", "trigger", "continuous"] {
            if let Some(part) = job.get_mut(key) {
                let status = Node::text(part.at, status);
                part.set_default("pause_status", status);
            }
        }
    }
}

/// `[dev jo] ` as `dev_jo_`.
fn plain_prefix(prefix: &str) -> String {
    let plain = normal(prefix);
    let plain = plain.trim_matches('_');
    if plain.is_empty() { String::new() } else { format!("{plain}_") }
}

fn check_development(root: &Node, user: &str, faults: &mut Faults) {
    let refuse = |problem: String| Error::Mode { mode: "development", problem };
    let personal = |text: &str| text.contains(user) || normal(text).contains(&short_name(user));
    if let Some(status) = root.find(&["presets", "trigger_pause_status"]).filter(|node| node.scalar() == Some("UNPAUSED")) {
        faults.error(status.at, refuse("triggers are paused; presets.trigger_pause_status cannot be UNPAUSED".to_owned()));
    }
    if let Some(prefix) = root.find(&["presets", "name_prefix"])
        && !prefix.scalar().is_some_and(personal)
    {
        faults.error(prefix.at, refuse(format!("presets.name_prefix must hold the user's name, as {}", short_name(user))));
    }
    for key in ["root_path", "file_path", "artifact_path", "state_path"] {
        let Some(path) = root.find(&["workspace", key]) else { continue };
        if !path.scalar().is_some_and(personal) {
            let example = "${workspace.current_user.userName}";
            faults.error(path.at, refuse(format!("workspace.{key} must be the user's own, as with {example} in it")));
        }
    }
}

fn check_production(root: &Node, target: &Target, force: bool, faults: &mut Faults) {
    let refuse = |problem: &str| Error::Mode { mode: "production", problem: problem.to_owned() };
    for (key, entry) in root.find(&["resources", "pipelines"]).into_iter().flat_map(Node::entries) {
        if let Some(flag) = entry.node.get("development").filter(|flag| flag.as_flag() == Some(true)) {
            faults.error(flag.at, refuse(&format!("pipeline {key} has development: true")));
        }
    }
    let by_principal = root.find(&["run_as", "service_principal_name"]).is_some();
    if !target.sets_root_path && !by_principal {
        faults.error(target.at, refuse("the target must set workspace.root_path, or run_as be a service principal"));
    }
    let branch = root.find(&["bundle", "git", "branch"]);
    let actual = root.find(&["bundle", "git", "actual_branch"]).and_then(Node::scalar);
    if let (Some(branch), Some(actual), false) = (branch, actual, force)
        && branch.scalar() != Some(actual)
    {
        let problem = format!("the target is for the branch {}, and {actual} is checked out", branch.scalar().unwrap_or_default());
        faults.error(branch.at, refuse(&problem));
    }
}
