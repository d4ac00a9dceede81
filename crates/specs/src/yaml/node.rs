//! YAML text as a tree whose nodes know where they stand.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::Number;

use crate::error::Error;
use crate::problem::{Path, Step};
use crate::yaml::scalar::PlainScalar;

/// How deep lists and mappings nest at most.
const DEPTH_MAX: usize = 64;
/// How many nodes a file has at most, aliases counted as what they stand for.
const NODES_MAX: usize = 200_000;

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub line: usize,
    pub column: usize,
}

impl At {
    pub const START: Self = Self { line: 1, column: 1 };
}

impl From<&Marker> for At {
    fn from(marker: &Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// A value and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: At,
    pub value: Value,
}

/// What a node holds; plain scalars are read by YAML's core schema and keep their text.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Boolean(bool, String),
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One field of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub key_at: At,
    pub node: Node,
}

/// Where, in which part, and what.
pub(crate) type Mistake = (At, Path, Error);

/// A tree, or the mistakes that leave none; repeated keys are mistakes that leave one.
pub(crate) struct Loaded {
    pub root: Option<Node>,
    pub mistakes: Vec<Mistake>,
}

/// Reads one document. An empty text is an empty mapping.
pub(crate) fn load(text: &str) -> Loaded {
    let mut loader = Loader { open: Vec::new(), anchors: HashMap::new(), root: None, node_count: 0, mistakes: Vec::new() };
    for next in Parser::new_from_str(text) {
        let step = match next {
            Ok((event, span)) => loader.take(event, At::from(&span.start)),
            Err(error) => Err((At::from(error.marker()), unreadable(error.info()))),
        };
        if let Err((at, error)) = step {
            loader.mistakes.push((at, loader.path(), error));
            return Loaded { root: None, mistakes: loader.mistakes };
        }
    }
    let root = match loader.root {
        None | Some(Node { value: Value::Null, .. }) => Node { at: At::START, value: Value::Map(Vec::new()) },
        Some(root) => root,
    };
    Loaded { root: Some(root), mistakes: loader.mistakes }
}

fn unreadable(reason: impl Into<String>) -> Error {
    Error::YamlUnreadable { reason: reason.into() }
}

/// A list or mapping whose end has not come.
enum Open {
    List { at: At, anchor: usize, items: Vec<Node> },
    Map { at: At, anchor: usize, entries: Vec<Entry>, key: Option<(String, At)> },
}

struct Loader {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    root: Option<Node>,
    node_count: usize,
    mistakes: Vec<Mistake>,
}

impl Loader {
    fn take(&mut self, event: Event<'_>, at: At) -> Result<(), (At, Error)> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err((at, unreadable("a file holds one document"))),
            Event::DocumentStart(_) => Ok(()),
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at)?;
                self.begin(Open::List { at, anchor, items: Vec::new() }, at)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at)?;
                self.begin(Open::Map { at, anchor, entries: Vec::new(), key: None }, at)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { at, anchor, items }) => self.put(Node { at, value: Value::List(items) }, anchor),
                Some(Open::Map { at, anchor, entries, .. }) => self.put(Node { at, value: Value::Map(entries) }, anchor),
                None => Ok(()),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let as_text = match tag.as_deref() {
                    Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => true,
                    tag => {
                        self.refuse_tag(tag, at)?;
                        style != ScalarStyle::Plain
                    }
                };
                let value = if as_text { Value::Text(text.into_owned()) } else { plain(text.into_owned()) };
                self.put(Node { at, value }, anchor)
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    return Err((at, unreadable("an alias stands inside what it stands for")));
                };
                let (node, size) = (node.clone(), *size);
                self.node_count += size;
                self.put(Node { at, ..node }, 0)
            }
        }
    }

    /// The way to what is being read.
    fn path(&self) -> Path {
        let step = |open: &Open| match open {
            Open::List { items, .. } => Some(Step::Index(items.len())),
            Open::Map { key, .. } => key.as_ref().map(|(name, _)| Step::Field(name.clone())),
        };
        self.open.iter().map_while(step).collect()
    }

    fn refuse_tag(&self, tag: Option<&Tag>, at: At) -> Result<(), (At, Error)> {
        match tag {
            Some(tag) if !tag.is_yaml_core_schema() => Err((at, unreadable(format!("the tag {tag} has no meaning here")))),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, at: At) -> Result<(), (At, Error)> {
        if self.open.len() >= DEPTH_MAX {
            return Err((at, unreadable(format!("lists and mappings nest deeper than {DEPTH_MAX} levels"))));
        }
        self.open.push(open);
        Ok(())
    }

    /// Gives a finished node to the list or mapping around it.
    fn put(&mut self, node: Node, anchor: usize) -> Result<(), (At, Error)> {
        self.node_count += 1;
        if self.node_count > NODES_MAX {
            return Err((node.at, unreadable(format!("the file has more than {NODES_MAX} values"))));
        }
        if anchor > 0 {
            let size = count(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                None => *key = Some(key_text(node)?),
                Some((name, key_at)) => match entries.iter().find(|entry| entry.key == name) {
                    Some(first) => {
                        let error = Error::DuplicateKey { key: name.clone(), first_line: first.key_at.line };
                        let path = self.path().field(name);
                        self.mistakes.push((key_at, path, error));
                    }
                    None => entries.push(Entry { key: name, key_at, node }),
                },
            },
        }
        Ok(())
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|entry| count(&entry.node)).sum(),
        Value::Null | Value::Boolean(..) | Value::Number(..) | Value::Text(_) => 0,
    }
}

fn key_text(node: Node) -> Result<(String, At), (At, Error)> {
    match node.value {
        Value::Text(text) | Value::Boolean(_, text) | Value::Number(_, text) => Ok((text, node.at)),
        Value::Null => Err((node.at, unreadable("a key is missing before the colon"))),
        Value::List(_) | Value::Map(_) => Err((node.at, unreadable("a key is a single word or text"))),
    }
}

/// A scalar without quotes, which keeps its text.
fn plain(text: String) -> Value {
    match PlainScalar::of(&text) {
        PlainScalar::Null => Value::Null,
        PlainScalar::Boolean(value) => Value::Boolean(value, text),
        PlainScalar::Number(number) => Value::Number(number, text),
        PlainScalar::Text => Value::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(yaml: &str) -> String {
        match load(yaml) {
            Loaded { root: Some(root), mistakes } if mistakes.is_empty() => format!("{:?}", root.value),
            Loaded { mistakes, .. } => format!("{mistakes:?}"),
        }
    }

    #[test]
    fn plain_scalars_follow_the_core_schema_and_quoted_ones_are_text() {
        for (yaml, expected) in [
            ("12", r#"Number(Number(12), "12")"#),
            ("-3", r#"Number(Number(-3), "-3")"#),
            ("1.5", r#"Number(Number(1.5), "1.5")"#),
            ("0x1F", r#"Number(Number(31), "0x1F")"#),
            ("'12'", r#"Text("12")"#),
            ("!!str 12", r#"Text("12")"#),
            ("2026-02-01", r#"Text("2026-02-01")"#),
            ("no", r#"Text("no")"#),
            ("true", r#"Boolean(true, "true")"#),
            ("1.2.3", r#"Text("1.2.3")"#),
            ("_a", r#"Text("_a")"#),
            (".", r#"Text(".")"#),
        ] {
            assert_eq!(text_of(yaml), expected);
        }
    }

    #[test]
    fn what_would_exhaust_memory_or_the_stack_is_refused() {
        assert!(text_of(&format!("{}{}", "[".repeat(200), "]".repeat(200))).contains("deeper than 64"));
        assert!(text_of(&format!("{}{}", "[".repeat(50_000), "]".repeat(50_000))).contains("recursion limit"));
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            laughs += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", "));
        }
        assert!(text_of(&laughs).contains("more than 200000 values"));
        assert!(text_of("a: &a [*a]").contains("inside what it stands for"));
    }

    #[test]
    fn an_alias_stands_for_its_anchor() {
        assert!(text_of("a: &x [1]\nb: *x").matches("Number(1)").count() == 2);
    }

    #[test]
    fn a_second_document_or_a_foreign_tag_is_refused() {
        assert!(text_of("a: 1\n---\nb: 2").contains("one document"));
        assert!(text_of("a: !secret x").contains("tag !secret"));
    }
}
