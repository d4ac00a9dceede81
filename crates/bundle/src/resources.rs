//! Rules that hold for resources of every kind, before targets and references.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::fault::Faults;
use crate::place::{At, Files};
use crate::yaml::{Entry, Node, Value};

/// Resources of one kind that have a body, by key.
pub(crate) fn of_kind<'a>(root: &'a Node, kind: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> + use<'a> {
    let entries = root.find(&["resources", kind]).into_iter().flat_map(Node::entries);
    entries.filter(|(_, entry)| entry.node.as_map().is_some_and(|map| !map.is_empty()))
}

/// Checks the bundle as it is written: keys, empty bodies, keys that stand twice in one list.
pub(crate) fn check(root: &Node, files: &Files, faults: &mut Faults) {
    for (kind, resources) in root.get("resources").into_iter().flat_map(Node::entries) {
        for (key, entry) in resources.node.entries() {
            if key.contains("${") {
                faults.error(entry.key_at, Error::ReferenceInKey { key: key.to_owned() });
            }
            let is_empty = match &entry.node.value {
                Value::Null => true,
                Value::Map(map) => map.is_empty(),
                _ => false,
            };
            if is_empty {
                faults.error(entry.key_at, Error::EmptyResource { resource: format!("resources.{kind}.{key}") });
            }
        }
    }
    keys_twice(root, files, faults);
    for (_, target) in root.get("targets").into_iter().flat_map(Node::entries) {
        keys_twice(&target.node, files, faults);
    }
}

/// Elements of one list as it is written that have one key. Later a target's element joins the bundle's of the same key.
fn keys_twice(part: &Node, files: &Files, faults: &mut Faults) {
    for (_, job) in part.find(&["resources", "jobs"]).into_iter().flat_map(Node::entries) {
        for (list, key) in
            [("tasks", "task_key"), ("job_clusters", "job_cluster_key"), ("parameters", "name"), ("environments", "environment_key")]
        {
            let mut seen: BTreeMap<&str, At> = BTreeMap::new();
            for item in job.node.items_of(list) {
                let Some((word, node)) = item.get(key).and_then(|node| Some((node.scalar()?, node))) else { continue };
                match seen.get(word) {
                    Some(first) => {
                        let what = if list == "parameters" { "the parameter" } else { key };
                        faults.error(node.at, Error::KeyTwice { what, key: word.to_owned(), first_place: files.line(*first) });
                    }
                    None => drop(seen.insert(word, node.at)),
                }
            }
        }
    }
}
