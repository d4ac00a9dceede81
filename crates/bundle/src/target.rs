//! Which target, and what it changes.

use crate::error::Error;
use crate::fault::Faults;
use crate::merge::{join_elements, merge};
use crate::place::{At, Files};
use crate::yaml::{Node, Value};

/// The target that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub name: String,
    /// Where it is declared.
    pub at: At,
    /// Whether it sets `workspace.root_path` itself.
    pub sets_root_path: bool,
}

/// Parts of a target that are joined with the bundle's.
const JOINED: &[&str] = &["artifacts", "bundle", "permissions", "presets", "resources", "sync", "workspace"];

/// `environments` is the old name of `targets`.
pub(crate) fn rename_environments(root: &mut Node, faults: &mut Faults) {
    let Some(entry) = root.as_map_mut().and_then(|map| map.remove("environments")) else { return };
    if root.get("targets").is_some() {
        faults.error(entry.key_at, Error::Exclusive { parent: "the root".to_owned(), one: "environments", other: "targets".to_owned() });
        return;
    }
    faults.warning(entry.key_at, Error::OldName { old: "environments", new: "targets" });
    root.set("targets", entry.node);
}

/// The target by its name, else the only one, else the one that says it is the default. Without any there is one called `default`.
pub(crate) fn choose(root: &Node, wanted: Option<&str>, faults: &mut Faults) -> Option<Target> {
    let targets: Vec<(&str, &crate::yaml::Entry)> = root.get("targets").into_iter().flat_map(Node::entries).collect();
    let at = root.entry("targets").map_or(root.at, |entry| entry.key_at);
    let target = |name: &str, entry: &crate::yaml::Entry| Target {
        name: name.to_owned(),
        at: entry.key_at,
        sets_root_path: entry.node.find(&["workspace", "root_path"]).is_some(),
    };
    if targets.is_empty() {
        let name = wanted.unwrap_or("default");
        if name != "default" {
            faults.error(at, Error::Target { problem: format!("there is no target {name:?}: the bundle declares none"), nearest: None });
            return None;
        }
        return Some(Target { name: name.to_owned(), at, sets_root_path: false });
    }
    let defaults: Vec<_> = targets.iter().filter(|(_, entry)| entry.node.flag_of("default") == Some(true)).collect();
    if let [first, second, ..] = defaults.as_slice() {
        let problem = format!("the targets {} and {} both say that they are the default", first.0, second.0);
        faults.error(second.1.key_at, Error::Target { problem, nearest: None });
    }
    match (wanted, targets.as_slice(), defaults.as_slice()) {
        (Some(name), _, _) => match targets.iter().find(|(known, _)| *known == name) {
            Some((name, entry)) => Some(target(name, entry)),
            None => {
                let near = faults.near(name, targets.iter().map(|(known, _)| *known));
                let known: Vec<&str> = targets.iter().map(|(known, _)| *known).collect();
                let problem = format!("there is no target {name:?}, only {}", known.join(", "));
                faults.error(at, Error::Target { problem, nearest: near });
                None
            }
        },
        (None, [(name, entry)], _) => Some(target(name, entry)),
        (None, _, [(name, entry), ..]) => Some(target(name, entry)),
        (None, _, []) => {
            let names: Vec<&str> = targets.iter().map(|(known, _)| *known).collect();
            let problem = format!("no target is the default: name one of {}", names.join(", "));
            faults.error(at, Error::Target { problem, nearest: None });
            None
        }
    }
}

/// Joins what the target says into the bundle.
pub(crate) fn apply(root: &mut Node, target: &Target, files: &Files, faults: &mut Faults) {
    let found = root.get("targets").and_then(|targets| targets.get(&target.name)).cloned();
    let mut overrides = found.unwrap_or_else(|| Node::map(target.at));
    for key in JOINED {
        let Some(entry) = overrides.as_map_mut().and_then(|map| map.remove(*key)) else { continue };
        match root.get_mut(key) {
            Some(node) => merge(node, entry.node, key, files, faults),
            None => root.set(key, entry.node),
        }
    }
    variables(root, &overrides, faults);
    if let Some(run_as) = overrides.get("run_as") {
        root.set("run_as", run_as.clone());
    }
    if let Some(bundle) = root.map_at("bundle") {
        for key in ["mode", "cluster_id", "compute_id", "git"] {
            if let Some(node) = overrides.get(key) {
                bundle.set(key, node.clone());
            }
        }
        bundle.set("target", Node::text(target.at, &target.name));
        bundle.set("environment", Node::text(target.at, &target.name));
    }
    join_elements(root, files, faults);
}

/// A target gives a variable a value: a word, a list or a mapping as it is, or `{default: …}`, or `{lookup: …}`. It replaces what
/// the declaration says, whole.
fn variables(root: &mut Node, overrides: &Node, faults: &mut Faults) {
    let Some(given) = overrides.get("variables") else { return };
    let given: Vec<(String, crate::yaml::Entry)> = given.entries().map(|(name, entry)| (name.to_owned(), entry.clone())).collect();
    for (name, entry) in given {
        let names: Vec<String> = root.get("variables").into_iter().flat_map(Node::entries).map(|(name, _)| name.to_owned()).collect();
        let declared = root.get_mut("variables").and_then(|variables| if names.contains(&name) { variables.map_at(&name) } else { None });
        let Some(declared) = declared else {
            if !names.contains(&name) {
                let near = faults.near(&name, names.iter().map(String::as_str));
                faults.error(entry.key_at, Error::UndeclaredVariable { variable: name, nearest: near });
            }
            continue;
        };
        if is_declaration(&entry.node) {
            for (key, part) in entry.node.entries() {
                declared.set(key, part.node.clone());
            }
            forget(declared, if entry.node.entry("lookup").is_some() { "default" } else { "lookup" });
        } else {
            declared.set("default", entry.node);
            forget(declared, "lookup");
        }
    }
}

/// Whether what a target says of a variable is a declaration, and not a mapping that is its value.
fn is_declaration(node: &Node) -> bool {
    let Value::Map(map) = &node.value else { return false };
    let known = map.keys().all(|key| matches!(key.as_str(), "default" | "description" | "lookup" | "type"));
    known && (map.contains_key("default") != map.contains_key("lookup"))
}

fn forget(node: &mut Node, key: &str) {
    if let Some(map) = node.as_map_mut() {
        map.remove(key);
    }
}
