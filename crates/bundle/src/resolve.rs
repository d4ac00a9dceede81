//! References, filled in: each once, whatever refers to it, and never in a circle.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::Error;
use crate::fault::Faults;
use crate::model::{BUNDLE, GIT, Kind, WORKSPACE};
use crate::place::{At, Files};
use crate::reference::{Piece, Reference, Segment, only_reference, pieces};
use crate::yaml::{Budget, Map, Node, Value};

/// First words that references begin with.
const PREFIXES: &[&str] = &["artifacts", "bundle", "experimental", "resources", "run_as", "var", "variables", "workspace"];
/// How long a chain of references is at most.
const CHAIN_MAX: usize = 12;
/// How many bytes one text has at most after its references are filled in.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Fills in the references of a tree.
pub(crate) struct Resolver<'a> {
    root: &'a Node,
    files: &'a Files,
    budget: &'a mut Budget,
    faults: &'a mut Faults,
    known: BTreeMap<Reference, Option<Node>>,
    open: Vec<Reference>,
    /// Whether what is too large has been said.
    exhausted: bool,
}

impl<'a> Resolver<'a> {
    pub fn new(root: &'a Node, files: &'a Files, budget: &'a mut Budget, faults: &'a mut Faults) -> Self {
        Self { root, files, budget, faults, known: BTreeMap::new(), open: Vec::new(), exhausted: false }
    }

    /// The node with everything in it filled in. What cannot be filled in stays as it is, and is a fault.
    pub fn fill(&mut self, node: &Node) -> Node {
        let value = match &node.value {
            Value::Text(text) if text.contains("${") => return self.fill_text(node, text),
            Value::List(items) => Value::List(items.iter().map(|item| self.fill(item)).collect()),
            Value::Map(map) => {
                let fill = |(key, entry): (&String, &crate::yaml::Entry)| {
                    (key.clone(), crate::yaml::Entry { key_at: entry.key_at, node: self.fill(&entry.node) })
                };
                Value::Map(map.iter().map(fill).collect::<Map>())
            }
            other => other.clone(),
        };
        Node { value, ..*node }
    }

    fn fill_text(&mut self, node: &Node, text: &str) -> Node {
        if let Some(reference) = only_reference(text) {
            return match self.value_at(&reference, node.at, text) {
                Some(found) if self.has_room(&found, node.at) => Node { value: found.value, computed: true, ..*node },
                _ => node.clone(),
            };
        }
        let mut filled = String::new();
        let mut references = 0;
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Reference(reference) => {
                    references += 1;
                    let written = format!("${{{reference}}}");
                    let found = self.value_at(&reference, node.at, &written);
                    match found.as_ref().map(|found| (found.scalar(), found)) {
                        Some((Some(scalar), _)) => filled.push_str(scalar),
                        Some((None, found)) => {
                            let kind = found.kind();
                            let at = self.files.within(node.at, &written);
                            self.faults.error(at, Error::NotScalar { reference: reference.to_string(), found: kind });
                            filled.push_str(&written);
                        }
                        None => filled.push_str(&written),
                    }
                }
            }
            if filled.len() > TEXT_BYTES_MAX {
                let limit = format!("its references stand for more than {TEXT_BYTES_MAX} bytes");
                self.faults.error(node.at, Error::TooLarge { what: "the text".to_owned(), limit });
                return node.clone();
            }
        }
        let filled = Node { value: Value::Text(filled), computed: true, ..*node };
        if references > 0 && self.has_room(&filled, node.at) { filled } else { node.clone() }
    }

    /// Whether there is room for a copy of the node.
    fn has_room(&mut self, copy: &Node, at: At) -> bool {
        let Err(error) = self.budget.copy(copy) else { return true };
        if !self.exhausted {
            self.exhausted = true;
            self.faults.error(at, error);
        }
        false
    }

    /// What a reference stands for, filled in; none where it stays as it is, with the fault said.
    fn value_at(&mut self, reference: &Reference, at: At, written: &str) -> Option<Node> {
        let full = reference.written_out();
        let first = full.key(0)?;
        if self.exhausted {
            return None;
        }
        if !PREFIXES.contains(&first) {
            // Other words in braces may mean something to what reads the text: only a slip of the finger is a mistake.
            if let Some(near) = self.faults.near(first, PREFIXES.iter().copied()).filter(|_| full.0.len() > 1) {
                let rest = reference.to_string();
                let nearest = format!("{near}{}", rest.strip_prefix(first).unwrap_or_default());
                self.unknown(reference, Some(nearest), at, written);
            }
            return None;
        }
        if let Some(known) = self.known.get(&full) {
            return known.clone();
        }
        if let Some(begin) = self.open.iter().position(|open| *open == full) {
            let way: Vec<String> = self.open[begin..].iter().chain([&full]).map(short_form).collect();
            let at = self.files.within(at, written);
            self.faults.error(at, Error::ReferenceCircle { circle: way.join(" -> ") });
            // Said once: whoever comes next to one of these finds it settled.
            self.known.extend(self.open[begin..].iter().map(|open| (open.clone(), None)));
            return None;
        }
        if self.open.len() >= CHAIN_MAX {
            let limit = format!("a chain of more than {CHAIN_MAX} references");
            self.faults.error(at, Error::TooLarge { what: format!("${{{reference}}}"), limit });
            return None;
        }
        self.open.push(full.clone());
        let found = self.look_up(&full, reference, at, written).map(|node| self.fill(&node));
        self.open.pop();
        let settled = self.known.entry(full).or_insert(found);
        settled.clone()
    }

    /// What stands at the end of the way, its own references not filled in yet.
    fn look_up(&mut self, full: &Reference, written_as: &Reference, at: At, written: &str) -> Option<Node> {
        let mut node: Cow<'a, Node> = Cow::Borrowed(self.root);
        for (depth, segment) in full.0.iter().enumerate() {
            if let Value::Text(text) = &node.value
                && let Some(inner) = only_reference(text)
            {
                let found = self.value_at(&inner, node.at, text)?;
                if !self.has_room(&found, at) {
                    return None;
                }
                node = Cow::Owned(found);
            }
            node = match step(node, segment) {
                Ok(next) => next,
                Err(parent) => return self.absent(full, depth, &parent, written_as, at, written),
            };
        }
        (!node.is_null()).then(|| node.into_owned())
    }

    /// What is not in the tree: known only when the bundle is deployed, or a mistake.
    fn absent(&mut self, full: &Reference, depth: usize, parent: &Node, written_as: &Reference, at: At, written: &str) -> Option<Node> {
        let is_deployed_later = match full.key(0) {
            Some("resources") => depth >= 3,
            Some("artifacts") => depth >= 2,
            _ => false,
        };
        // A variable that was refused has been said.
        let is_refused = full.key(0) == Some("variables") && depth == 2 && full.key(2) == Some("value");
        if is_deployed_later || is_refused {
            return None;
        }
        if is_unset(full) {
            return Some(Node::text(at, ""));
        }
        let known: Vec<&str> = parent.entries().map(|(known, _)| known).chain(settings(full, depth)).collect();
        let near = full.key(depth).and_then(|key| self.faults.near(key, known));
        let near = near.map(|near| {
            let mut segments = full.0.clone();
            segments[depth] = Segment::Key(near);
            short_form(&Reference(segments))
        });
        self.unknown(written_as, near, at, written);
        None
    }

    fn unknown(&mut self, reference: &Reference, nearest: Option<String>, at: At, written: &str) {
        let at = self.files.within(at, written);
        self.faults.error(at, Error::UnknownReference { reference: reference.to_string(), nearest });
    }
}

/// Settings that can stand at a step, whether they have a value or not.
fn settings(full: &Reference, depth: usize) -> Vec<&'static str> {
    let object = match (full.key(0), depth) {
        (Some("bundle"), 1) => Some(&BUNDLE),
        (Some("bundle"), 2) if full.key(1) == Some("git") => Some(&GIT),
        (Some("workspace"), 1) => Some(&WORKSPACE),
        _ => None,
    };
    object.into_iter().flat_map(|object| object.names()).collect()
}

/// Whether it is a known setting without a value, which is the empty text.
fn is_unset(full: &Reference) -> bool {
    let field = match full.0.as_slice() {
        [Segment::Key(bundle), Segment::Key(key)] if bundle == "bundle" => BUNDLE.field(key),
        [Segment::Key(bundle), Segment::Key(git), Segment::Key(key)] if bundle == "bundle" && git == "git" => GIT.field(key),
        [Segment::Key(workspace), Segment::Key(key)] if workspace == "workspace" => WORKSPACE.field(key),
        _ => None,
    };
    matches!(field, Some(Kind::Text | Kind::Flag | Kind::Choice(_)))
}

/// One step further, or the node that has no such part.
fn step<'n>(node: Cow<'n, Node>, segment: &Segment) -> Result<Cow<'n, Node>, Cow<'n, Node>> {
    fn part<'n>(node: &'n Node, segment: &Segment) -> Option<&'n Node> {
        match segment {
            Segment::Key(key) => node.entry(key).map(|entry| &entry.node),
            Segment::Index(index) => node.items().get(*index),
        }
    }
    match node {
        Cow::Borrowed(node) => part(node, segment).map(Cow::Borrowed).ok_or(Cow::Borrowed(node)),
        Cow::Owned(node) => match part(&node, segment).cloned() {
            Some(part) => Ok(Cow::Owned(part)),
            None => Err(Cow::Owned(node)),
        },
    }
}

/// `var.x` for `variables.x.value`.
fn short_form(reference: &Reference) -> String {
    match reference.0.as_slice() {
        [Segment::Key(variables), name, Segment::Key(value), rest @ ..] if variables == "variables" && value == "value" => {
            let before = [Segment::Key("var".to_owned()), name.clone()];
            Reference(before.into_iter().chain(rest.iter().cloned()).collect()).to_string()
        }
        _ => reference.to_string(),
    }
}
