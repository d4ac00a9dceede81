//! What each variable stands for.

use std::collections::BTreeMap;

use crate::Options;
use crate::error::Error;
use crate::fault::Faults;
use crate::model::LOOKUP;
use crate::yaml::{Entry, Node, Value};

/// Gives every variable its value: of the command line, the environment, the file of overrides, the target, the declaration.
pub(crate) fn assign(root: &mut Node, options: &Options, overrides: Option<Node>, faults: &mut Faults) {
    let at = root.at;
    let names: Vec<String> = root.get("variables").into_iter().flat_map(Node::entries).map(|(name, _)| name.to_owned()).collect();
    let undeclared = |name: &str, faults: &mut Faults| {
        let near = faults.near(name, names.iter().map(String::as_str));
        Error::UndeclaredVariable { variable: name.to_owned(), nearest: near }
    };
    for name in options.variables.keys().filter(|name| !names.contains(name)) {
        let error = undeclared(name, faults);
        faults.error(at, error);
    }
    let given: BTreeMap<String, Entry> = match overrides {
        Some(Node { value: Value::Map(map), .. }) => map,
        Some(node) => {
            faults.error(node.at, crate::include::not_a_mapping(&node));
            BTreeMap::new()
        }
        None => BTreeMap::new(),
    };
    for (name, entry) in given.iter().filter(|(name, _)| !names.contains(name)) {
        let error = undeclared(name, faults);
        faults.error(entry.key_at, error);
    }
    let variables = root.get_mut("variables").and_then(Node::as_map_mut);
    for (name, entry) in variables.into_iter().flatten() {
        if entry.node.is_null() {
            entry.node.value = Value::Map(BTreeMap::new());
        }
        let value = value_of(name, entry, options, given.get(name), faults);
        if let Some(value) = value {
            entry.node.set("value", value);
        }
    }
}

fn value_of(name: &str, declared: &Entry, options: &Options, given: Option<&Entry>, faults: &mut Faults) -> Option<Node> {
    let node = &declared.node;
    let complex = node.text_of("type") == Some("complex");
    let outside = options.variables.get(name).map(|text| (text, "the command line"));
    let outside = outside.or_else(|| options.environment.get(name).map(|text| (text, "the environment")));
    if let Some((text, from)) = outside {
        if complex {
            let reason = format!("it is complex, and {from} gives texts only");
            faults.error(declared.key_at, Error::VariableValue { variable: name.to_owned(), reason });
            return None;
        }
        return Some(Node::text(declared.key_at, text));
    }
    if let Some(given) = given {
        return Some(given.node.clone());
    }
    if let Some(default) = node.entry("default") {
        check_kind(name, complex, &default.node, faults);
        return Some(default.node.clone());
    }
    match node.get("lookup") {
        Some(lookup) => faults.error(lookup.at, lookup_refused(name, lookup)),
        None => faults.error(declared.key_at, Error::Unassigned { variable: name.to_owned() }),
    }
    None
}

/// Lists and mappings are for variables that say they are complex.
fn check_kind(name: &str, complex: bool, value: &Node, faults: &mut Faults) {
    let is_complex = matches!(value.value, Value::List(_) | Value::Map(_));
    if is_complex && !complex {
        let reason = format!("it is {}; say `type: complex`", value.kind());
        faults.error(value.at, Error::VariableValue { variable: name.to_owned(), reason });
    }
}

fn lookup_refused(name: &str, lookup: &Node) -> Error {
    let of = |(kind, entry): (&str, &Entry)| format!("{kind} {:?}", entry.node.scalar().unwrap_or_default());
    let known = lookup.entries().find(|(kind, _)| LOOKUP.field(kind).is_some());
    Error::Lookup { variable: name.to_owned(), lookup: known.map(of).unwrap_or_default() }
}

/// The file of overrides of a target.
pub(crate) fn overrides_path(target: &str) -> String {
    format!(".databricks/bundle/{target}/variable-overrides.json")
}
