//! YAML text as a tree whose nodes know where they stand.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::{Number, Value as Json};
use tributary_specs::PlainScalar;

use crate::error::Error;
use crate::place::At;

/// How deep lists and mappings nest at most.
const DEPTH_MAX: usize = 64;
/// How many values all files of a bundle hold at most, aliases counted as what they stand for.
const NODES_MAX: usize = 200_000;
/// How many bytes aliases and references stand for at most.
const COPIED_BYTES_MAX: usize = 16 << 20;
/// How deep lists and mappings nest at most once aliases and references are filled in.
const COPIED_DEPTH_MAX: usize = 96;
/// How long a key is at most.
const KEY_BYTES_MAX: usize = 256;

/// A value and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: At,
    pub value: Value,
    /// Whether an anchor stands before it.
    pub anchored: bool,
    /// Whether it came out of references, so that its spelling is not the author's.
    pub computed: bool,
}

/// What a node holds; plain scalars are read by YAML's core schema and keep their text.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Flag(bool, String),
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    Map(Map),
}

/// A mapping by its keys.
pub(crate) type Map = BTreeMap<String, Entry>;

/// One value of a mapping and where its key stands.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key_at: At,
    pub node: Node,
}

impl Node {
    pub fn new(at: At, value: Value) -> Self {
        Self { at, value, anchored: false, computed: false }
    }

    pub fn text(at: At, text: impl Into<String>) -> Self {
        Self { computed: true, ..Self::new(at, Value::Text(text.into())) }
    }

    pub fn flag(at: At, flag: bool) -> Self {
        Self { computed: true, ..Self::new(at, Value::Flag(flag, flag.to_string())) }
    }

    pub fn map(at: At) -> Self {
        Self::new(at, Value::Map(Map::new()))
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The mapping, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match &mut self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list's elements; none if it is no list.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The elements of the list under a key.
    pub fn items_of(&self, key: &str) -> &[Node] {
        self.get(key).map_or(&[], Self::items)
    }

    /// The entries of a mapping; none if it is no mapping.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.as_map().into_iter().flatten().map(|(key, entry)| (key.as_str(), entry))
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_map()?.get(key)
    }

    /// What stands under a key, nulls left out.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node).filter(|node| !node.is_null())
    }

    /// What stands at the end of a way of keys.
    pub fn find(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// A scalar as it is written.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Flag(_, text) | Value::Number(_, text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The scalar under a key.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.scalar()
    }

    /// Yes or no, also where a text says it.
    pub fn as_flag(&self) -> Option<bool> {
        match &self.value {
            Value::Flag(flag, _) => Some(*flag),
            Value::Text(text) => match text.to_lowercase().as_str() {
                "true" | "yes" | "y" | "on" => Some(true),
                "false" | "no" | "n" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn flag_of(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_flag()
    }

    /// A whole number, also where a text says it.
    pub fn as_whole(&self) -> Option<i64> {
        match &self.value {
            Value::Number(number, _) => whole(number),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub fn whole_of(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_whole()
    }

    /// The mapping under a key, made where there is none; none where something else stands there.
    pub fn map_at(&mut self, key: &str) -> Option<&mut Node> {
        let at = self.at;
        let entry = self.as_map_mut()?.entry(key.to_owned()).or_insert_with(|| Entry { key_at: at, node: Node::map(at) });
        if entry.node.is_null() {
            entry.node.value = Value::Map(Map::new());
        }
        entry.node.as_map().is_some().then_some(&mut entry.node)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.as_map_mut()?.get_mut(key).map(|entry| &mut entry.node)
    }

    /// Puts a value under a key, in the place of what stands there.
    pub fn set(&mut self, key: &str, node: Node) {
        let key_at = node.at;
        if let Some(map) = self.as_map_mut() {
            match map.get_mut(key) {
                Some(entry) => entry.node = node,
                None => drop(map.insert(key.to_owned(), Entry { key_at, node })),
            }
        }
    }

    /// Puts a value under a key that has none.
    pub fn set_default(&mut self, key: &str, node: Node) {
        if self.get(key).is_none() {
            self.set(key, node);
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Flag(..) => "true or false",
            Value::Number(..) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// How large it is, itself counted.
    pub fn size(&self) -> Size {
        match &self.value {
            Value::List(items) => items.iter().fold(Size::ONE, |size, item| size.around(item.size(), 0)),
            Value::Map(map) => map.iter().fold(Size::ONE, |size, (key, entry)| size.around(entry.node.size(), key.len())),
            Value::Null => Size::ONE,
            Value::Flag(_, text) | Value::Number(_, text) | Value::Text(text) => Size { bytes: text.len(), ..Size::ONE },
        }
    }

    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Flag(flag, _) => Json::Bool(*flag),
            Value::Number(number, _) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(map) => Json::Object(map.iter().map(|(key, entry)| (key.clone(), entry.node.to_json())).collect()),
        }
    }
}

/// How many values, how many bytes of text, how many levels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub nodes: usize,
    pub bytes: usize,
    pub levels: usize,
}

impl Size {
    const ONE: Self = Self { nodes: 1, bytes: 0, levels: 1 };

    fn around(self, inner: Self, key: usize) -> Self {
        Self { nodes: self.nodes + inner.nodes, bytes: self.bytes + inner.bytes + key, levels: self.levels.max(inner.levels + 1) }
    }
}

fn whole(number: &Number) -> Option<i64> {
    let of_fraction = |value: f64| (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(of_fraction))
}

/// How many values, and how many bytes of text that stands for other text, there may still be.
#[derive(Debug)]
pub(crate) struct Budget {
    nodes: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { nodes: NODES_MAX, bytes: COPIED_BYTES_MAX }
    }
}

impl Budget {
    /// Takes off one value that is read.
    pub fn read_one(&mut self) -> Result<(), Error> {
        self.take(1, 0)
    }

    /// Takes off a copy of a node; an error when there is no room for it.
    pub fn copy(&mut self, node: &Node) -> Result<(), Error> {
        let size = node.size();
        if size.levels > COPIED_DEPTH_MAX {
            let limit = format!("aliases and references nest deeper than {COPIED_DEPTH_MAX} levels");
            return Err(Error::TooLarge { what: "the bundle".to_owned(), limit });
        }
        self.take(size.nodes, size.bytes)
    }

    fn take(&mut self, nodes: usize, bytes: usize) -> Result<(), Error> {
        let limit = match (self.nodes.checked_sub(nodes), self.bytes.checked_sub(bytes)) {
            (Some(nodes), Some(bytes)) => {
                *self = Self { nodes, bytes };
                return Ok(());
            }
            (None, _) => format!("it has more than {NODES_MAX} values, aliases and references counted as what they stand for"),
            (_, None) => format!("aliases and references stand for more than {COPIED_BYTES_MAX} bytes"),
        };
        *self = Self { nodes: 0, bytes: 0 };
        Err(Error::TooLarge { what: "the bundle".to_owned(), limit })
    }
}

/// A tree, or the mistakes that leave none; repeated keys are mistakes that leave one.
pub(crate) struct Parsed {
    pub root: Option<Node>,
    pub mistakes: Vec<(At, Error)>,
}

/// Reads one document. An empty text is an empty mapping.
pub(crate) fn parse(file: u32, text: &str, budget: &mut Budget) -> Parsed {
    let mut reader = Reader { file, open: Vec::new(), anchors: HashMap::new(), root: None, budget, mistakes: Vec::new() };
    for next in Parser::new_from_str(text) {
        let step = match next {
            Ok((event, span)) => reader.take(event, at_of(file, &span.start)),
            Err(error) => Err((at_of(file, error.marker()), unreadable(error.info()))),
        };
        if let Err(mistake) = step {
            reader.mistakes.push(mistake);
            return Parsed { root: None, mistakes: reader.mistakes };
        }
    }
    let root = match reader.root {
        None | Some(Node { value: Value::Null, .. }) => Node::map(At::start_of(file)),
        Some(root) => root,
    };
    Parsed { root: Some(root), mistakes: reader.mistakes }
}

fn at_of(file: u32, marker: &Marker) -> At {
    At::new(file, marker.line(), marker.col() + 1)
}

fn unreadable(reason: impl Into<String>) -> Error {
    Error::Yaml { reason: reason.into() }
}

/// A list or mapping whose end has not come.
enum Open {
    List { at: At, anchor: usize, items: Vec<Node> },
    Map { at: At, anchor: usize, map: Map, key: Option<(String, At)>, merged: Option<(At, Vec<Map>)> },
}

struct Reader<'a> {
    file: u32,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    budget: &'a mut Budget,
    mistakes: Vec<(At, Error)>,
}

type Step = Result<(), (At, Error)>;

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, at: At) -> Step {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err((at, unreadable("a file holds one document"))),
            Event::DocumentStart(_) => Ok(()),
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), at)?;
                self.begin(Open::List { at, anchor, items: Vec::new() }, at)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), at)?;
                self.begin(Open::Map { at, anchor, map: Map::new(), key: None, merged: None }, at)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { at, anchor, items }) => self.put(Node::new(at, Value::List(items)), anchor, false),
                Some(Open::Map { at, anchor, map, merged, .. }) => {
                    let map = with_merged(map, merged);
                    self.put(Node::new(at, Value::Map(map)), anchor, false)
                }
                None => Ok(()),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let as_text = match tag.as_deref() {
                    Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => true,
                    tag => {
                        refuse_tag(tag, at)?;
                        style != ScalarStyle::Plain
                    }
                };
                let merges = style == ScalarStyle::Plain && text == "<<";
                let value = if as_text { Value::Text(text.into_owned()) } else { plain(text.into_owned()) };
                self.put(Node::new(at, value), anchor, merges)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err((at, unreadable("an alias stands inside what it stands for")));
                };
                self.budget.copy(node).map_err(|error| (at, error))?;
                let node = Node { at, ..node.clone() };
                self.put(node, 0, false)
            }
        }
    }

    fn begin(&mut self, open: Open, at: At) -> Step {
        if self.open.len() >= DEPTH_MAX {
            let error =
                Error::TooLarge { what: "the file".to_owned(), limit: format!("lists and mappings nest deeper than {DEPTH_MAX} levels") };
            return Err((at, error));
        }
        self.open.push(open);
        Ok(())
    }

    /// Gives a finished node to the list or mapping around it.
    fn put(&mut self, mut node: Node, anchor: usize, merges: bool) -> Step {
        self.budget.read_one().map_err(|error| (node.at, error))?;
        if anchor > 0 {
            node.anchored = true;
            // An anchor keeps a copy, which counts as much as what it stands before.
            self.budget.copy(&node).map_err(|error| (node.at, error))?;
            self.anchors.insert(anchor, node.clone());
        }
        let file = self.file;
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { map, key, merged, .. }) => match key.take() {
                None if merges => *key = Some(("<<".to_owned(), At { file: u32::MAX, ..node.at })),
                None => *key = Some(key_text(node)?),
                // A plain `<<` is told from a quoted one by its place, which is in no file.
                Some((name, key_at)) if key_at.file == u32::MAX => {
                    let key_at = At { file, ..key_at };
                    match merged {
                        Some((first, _)) => {
                            let error = Error::DuplicateKey { key: name, first_line: first.line };
                            self.mistakes.push((key_at, error));
                        }
                        None => *merged = Some((key_at, merged_maps(node)?)),
                    }
                }
                Some((name, key_at)) => match map.get(&name) {
                    Some(first) => {
                        let error = Error::DuplicateKey { key: name, first_line: first.key_at.line };
                        self.mistakes.push((key_at, error));
                    }
                    None => drop(map.insert(name, Entry { key_at, node })),
                },
            },
        }
        Ok(())
    }
}

/// Keys that stand in the mapping win over merged ones, whole; of merged mappings the first wins.
fn with_merged(mut map: Map, merged: Option<(At, Vec<Map>)>) -> Map {
    for other in merged.into_iter().flat_map(|(_, maps)| maps) {
        for (key, entry) in other {
            map.entry(key).or_insert(entry);
        }
    }
    map
}

fn refuse_tag(tag: Option<&Tag>, at: At) -> Step {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => Err((at, unreadable(format!("the tag {tag} has no meaning here")))),
        _ => Ok(()),
    }
}

fn merged_maps(node: Node) -> Result<Vec<Map>, (At, Error)> {
    let refused = |at| (at, unreadable("`<<` takes a mapping, or a list of mappings"));
    match node.value {
        Value::Map(map) => Ok(vec![map]),
        Value::List(items) => items
            .into_iter()
            .map(|item| match item.value {
                Value::Map(map) => Ok(map),
                _ => Err(refused(item.at)),
            })
            .collect(),
        _ => Err(refused(node.at)),
    }
}

fn key_text(node: Node) -> Result<(String, At), (At, Error)> {
    match node.value {
        Value::Text(text) | Value::Flag(_, text) | Value::Number(_, text) if text.len() > KEY_BYTES_MAX => {
            let limit = format!("it is longer than {KEY_BYTES_MAX} bytes");
            Err((node.at, Error::TooLarge { what: format!("the key {:?}", crate::check::short(&text)), limit }))
        }
        Value::Text(text) | Value::Flag(_, text) | Value::Number(_, text) => Ok((text, node.at)),
        Value::Null => Err((node.at, unreadable("a key is missing before the colon"))),
        Value::List(_) | Value::Map(_) => Err((node.at, unreadable("a key is a single word or text"))),
    }
}

/// A scalar without quotes, which keeps its text.
fn plain(text: String) -> Value {
    match PlainScalar::of(&text) {
        PlainScalar::Null => Value::Null,
        PlainScalar::Boolean(value) => Value::Flag(value, text),
        PlainScalar::Number(number) => Value::Number(number, text),
        PlainScalar::Text => Value::Text(text),
    }
}
