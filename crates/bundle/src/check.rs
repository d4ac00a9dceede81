//! The bundle against the keys that are known.

use crate::error::Error;
use crate::fault::Faults;
use crate::merge::join;
use crate::model::{Kind, Object, ROOT};
use crate::reference::has_reference;
use crate::yaml::{Node, Value};

/// Whether what is checked is complete: only then is something missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before targets and references: each part as it is written.
    Written,
    /// After them.
    Resolved,
}

/// Checks the whole bundle. A value that cannot be what it should is a fault; nothing is changed.
pub(crate) fn check(root: &Node, stage: Stage, faults: &mut Faults) {
    Check { stage, fresh: stage == Stage::Written, faults }.object(root, &ROOT, "");
}

/// Checks a file that is complete by itself against what it may hold.
pub(crate) fn check_as(root: &Node, object: &'static Object, faults: &mut Faults) {
    Check { stage: Stage::Resolved, fresh: true, faults }.object(root, object, "");
}

struct Check<'a> {
    stage: Stage,
    /// Whether what is looked at has not been looked at before: as it is written, or come out of a reference.
    fresh: bool,
    faults: &'a mut Faults,
}

impl Check<'_> {
    fn value(&mut self, node: &Node, kind: Kind, path: &str) {
        if is_open(node) {
            return;
        }
        let before = self.fresh;
        self.fresh |= node.computed;
        self.value_itself(node, kind, path);
        self.fresh = before;
    }

    fn value_itself(&mut self, node: &Node, kind: Kind, path: &str) {
        match kind {
            Kind::Any => {}
            _ if node.is_null() => self.null(node, kind, path),
            Kind::Object(object) => self.object(node, object, path),
            Kind::List(inner) => match &node.value {
                Value::List(items) => {
                    items.iter().enumerate().for_each(|(index, item)| self.value(item, *inner, &format!("{path}[{index}]")));
                }
                _ => self.wrong_kind(node, kind, path),
            },
            Kind::Map(inner) | Kind::Resources(inner) => match &node.value {
                Value::Map(map) => map.iter().for_each(|(key, entry)| {
                    // An empty resource is a mistake of its own; so is what a target leaves out of a variable.
                    let may_be_null = matches!(kind, Kind::Resources(_)) || matches!(path, "targets" | "environments" | "variables");
                    if !(entry.node.is_null() && may_be_null) {
                        self.value(&entry.node, *inner, &join(path, key));
                    }
                }),
                _ => self.wrong_kind(node, kind, path),
            },
            Kind::Text => {
                if node.scalar().is_none() {
                    self.wrong_kind(node, kind, path);
                }
            }
            Kind::Choice(choices) => match node.scalar() {
                Some(word) if choices.contains(&word) || !self.fresh => {}
                Some(word) => {
                    let near = self.faults.near(word, choices.iter().copied());
                    let choices = choices.join(", ");
                    self.faults.error(node.at, Error::UnknownChoice { path: path.to_owned(), found: short(word), choices, nearest: near });
                }
                None => self.wrong_kind(node, kind, path),
            },
            Kind::Flag => match (node.as_flag(), &node.value) {
                (Some(_), _) => {}
                (None, Value::List(_) | Value::Map(_)) => self.wrong_kind(node, kind, path),
                (None, _) => self.wrong_scalar(node, kind, path),
            },
            Kind::Whole => match (node.as_whole(), &node.value) {
                (Some(_), Value::Text(_)) if node.computed => {}
                (Some(_), Value::Number(..)) => {}
                (_, Value::List(_) | Value::Map(_)) => self.wrong_kind(node, kind, path),
                _ => self.wrong_scalar(node, kind, path),
            },
        }
    }

    fn object(&mut self, node: &Node, object: &'static Object, path: &str) {
        let Value::Map(map) = &node.value else {
            return self.wrong_kind(node, Kind::Object(object), path);
        };
        for (key, entry) in map {
            match object.field(key) {
                // Said below, as what is missing.
                Some(_) if entry.node.is_null() && object.needed.contains(&key.as_str()) => {}
                Some(kind) => self.value(&entry.node, kind, &join(path, key)),
                // Anchors may be kept anywhere.
                None if !self.fresh || entry.node.anchored || key.starts_with("x-") => {}
                None => {
                    let near = self.faults.near(key, object.names());
                    let parent = if path.is_empty() { "the root".to_owned() } else { format!("`{path}`") };
                    self.faults.warning(entry.key_at, Error::UnknownKey { key: short(key), parent, nearest: near });
                }
            }
        }
        if self.stage == Stage::Resolved && !path.starts_with("targets.") {
            for key in object.needed.iter().filter(|key| node.get(key).is_none()) {
                let at = map.get(*key).map_or(node.at, |entry| entry.key_at);
                let parent = if path.is_empty() { "the root".to_owned() } else { format!("`{path}`") };
                self.faults.error(at, Error::Missing { parent, key });
            }
        }
    }

    fn null(&mut self, node: &Node, kind: Kind, path: &str) {
        if !self.fresh {
            return;
        }
        let error = Error::Null { path: path.to_owned(), expected: expected(kind).to_owned() };
        match path {
            // Without it nothing is deployed, and its absence shows only then.
            "workspace.host" => self.faults.error(node.at, error),
            _ if path.starts_with("targets.") && path.ends_with(".workspace.host") => self.faults.error(node.at, error),
            _ => self.faults.warning(node.at, error),
        }
    }

    fn wrong_kind(&mut self, node: &Node, kind: Kind, path: &str) {
        if !self.fresh {
            return;
        }
        let path = if path.is_empty() { "the root".to_owned() } else { path.to_owned() };
        self.faults.error(node.at, Error::WrongKind { path, expected: expected(kind).to_owned(), found: node.kind() });
    }

    fn wrong_scalar(&mut self, node: &Node, kind: Kind, path: &str) {
        if !self.fresh {
            return;
        }
        let found = match &node.value {
            Value::Text(text) => format!("the text {:?}", short(text)),
            _ => format!("{} {}", node.kind(), node.scalar().unwrap_or_default()),
        };
        self.faults.warning(node.at, Error::WrongScalar { path: path.to_owned(), expected: expected(kind), found });
    }
}

/// Whether the value is known only later: a reference, or one that is filled in when a job runs.
fn is_open(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) if text.contains("{{") || has_reference(text))
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "a value",
        Kind::Text => "a text",
        Kind::Flag => "true or false",
        Kind::Whole => "a whole number",
        Kind::Choice(_) => "a word",
        Kind::List(_) => "a list",
        Kind::Map(_) | Kind::Resources(_) | Kind::Object(_) => "a mapping",
    }
}

/// The beginning of what may be long.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
