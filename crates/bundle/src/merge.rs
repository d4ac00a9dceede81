//! Joining mappings: included files into the root file, a target into the bundle.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::fault::Faults;
use crate::place::Files;
use crate::yaml::{Map, Node, Value};

/// Joins `from` into `into`: mappings key by key, lists one after the other, the later word instead of the earlier, and what
/// is null takes what the other side has. A text that is one reference may stand for anything, so it gives way and takes over.
pub(crate) fn merge(into: &mut Node, from: Node, path: &str, files: &Files, faults: &mut Faults) {
    if from.is_null() {
        return;
    }
    let kinds = (into.kind(), from.kind());
    match (&mut into.value, from.value) {
        (Value::Map(entries), Value::Map(others)) => merge_maps(entries, others, path, files, faults),
        (Value::List(items), Value::List(others)) => items.extend(others),
        (Value::Map(_) | Value::List(_), Value::Map(_) | Value::List(_)) => {
            faults.error(from.at, kinds_differ(path, kinds, into, files));
        }
        (Value::Map(_) | Value::List(_), value) if !is_reference(&value) => {
            faults.error(from.at, kinds_differ(path, kinds, into, files));
        }
        (old, Value::Map(_) | Value::List(_)) if !matches!(old, Value::Null) && !is_reference(old) => {
            faults.error(from.at, kinds_differ(path, kinds, into, files));
        }
        (_, value) => *into = Node { value, ..from },
    }
}

fn merge_maps(entries: &mut Map, others: Map, path: &str, files: &Files, faults: &mut Faults) {
    for (key, other) in others {
        match entries.get_mut(&key) {
            Some(entry) => merge(&mut entry.node, other.node, &join(path, &key), files, faults),
            None => drop(entries.insert(key, other)),
        }
    }
}

fn kinds_differ(path: &str, (other, found): (&'static str, &'static str), into: &Node, files: &Files) -> Error {
    Error::KindsDiffer { path: path.to_owned(), found, other, other_place: files.line(into.at) }
}

fn is_reference(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.starts_with("${") && text.ends_with('}'))
}

/// `path.key`, or `key` at the root.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Joins elements of lists that have an identity: tasks, clusters and parameters of jobs, clusters of pipelines.
pub(crate) fn join_elements(root: &mut Node, files: &Files, faults: &mut Faults) {
    let resources = |root: &mut Node, kind: &str, act: &mut dyn FnMut(&str, &mut Node)| {
        let Some(map) = root.get_mut("resources").and_then(|resources| resources.get_mut(kind)).and_then(Node::as_map_mut) else { return };
        map.iter_mut().for_each(|(key, entry)| act(&format!("resources.{kind}.{key}"), &mut entry.node));
    };
    let mut of_job = |path: &str, job: &mut Node| {
        for (list, key) in [("tasks", "task_key"), ("job_clusters", "job_cluster_key"), ("parameters", "name")] {
            let sorted = list == "tasks";
            if let Some(list_node) = job.get_mut(list) {
                join_list(list_node, &|node| node.text_of(key).map(str::to_owned), sorted, &join(path, list), files, faults);
            }
        }
    };
    resources(root, "jobs", &mut of_job);
    let mut of_pipeline = |path: &str, pipeline: &mut Node| {
        if let Some(clusters) = pipeline.get_mut("clusters") {
            let label = |node: &Node| Some(node.text_of("label").unwrap_or("default").to_lowercase());
            join_list(clusters, &label, false, &join(path, "clusters"), files, faults);
        }
    };
    resources(root, "pipelines", &mut of_pipeline);
}

fn join_list(list: &mut Node, key_of: &dyn Fn(&Node) -> Option<String>, sorted: bool, path: &str, files: &Files, faults: &mut Faults) {
    let Value::List(items) = &mut list.value else { return };
    let mut joined: Vec<(Option<String>, Node)> = Vec::new();
    let mut place_of: BTreeMap<String, usize> = BTreeMap::new();
    for item in std::mem::take(items) {
        let key = key_of(&item);
        match key.as_ref().and_then(|key| place_of.get(key)) {
            Some(place) => merge(&mut joined[*place].1, item, path, files, faults),
            None => {
                if let Some(key) = &key {
                    place_of.insert(key.clone(), joined.len());
                }
                joined.push((key, item));
            }
        }
    }
    if sorted {
        joined.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    *items = joined.into_iter().map(|(_, node)| node).collect();
}
