//! The files of one pipeline.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::problem::{Errors, Location, Path, Place, Problem, Step};
use crate::rules::{self, Unread};
use crate::table_name::TableName;
use crate::yaml::node::{At, Entry, Node, Value, load};
use crate::yaml::read::Reader;

/// Finds the tables a query reads, or says why it cannot.
pub(crate) type SourcesOf<'a> = &'a dyn Fn(&str) -> Result<Vec<TableName>, String>;

/// Reads, joins, fills in the sources of gold datasets and validates.
pub(crate) fn read_files(files: &[(&str, &str)], sources_of: Option<SourcesOf<'_>>) -> Result<Pipeline, Errors> {
    let mut joined = join(files);
    if let Some(sources_of) = sources_of {
        let found = fill_sources(&mut joined.pipeline, sources_of);
        joined.problems.extend(found.into_iter().map(|problem| joined.origins.placed(problem)));
    }
    joined.pipeline.respell_sources();
    let found = rules::check(&joined.pipeline, &joined.unread);
    joined.problems.extend(found.into_iter().map(|problem| joined.origins.placed(problem)));
    match Errors::when_any(joined.problems) {
        Some(errors) => Err(errors),
        None => Ok(joined.pipeline),
    }
}

/// Where the parts of a pipeline stand in its files.
///
/// ```
/// use tributary_specs::{Path, Places};
/// let places = Places::of(&[("shop.yml", "name: shop\nsilver:\n  - table: silver.orders\n    sources: [bronze.orders]\n    keys: [id]\n")]);
/// assert_eq!(places.find(&Path::root().field("silver").index(0).field("keys")).to_string(), "silver[0].keys in shop.yml:5:5");
/// ```
pub struct Places(Origins);

impl Places {
    /// Of files as [`Pipeline::from_files`] reads them.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self(join(files).origins)
    }

    /// Where a part stands, or the deepest part around it that the files have; its path is counted within its file.
    pub fn find(&self, path: &Path) -> Location {
        self.0.located(path)
    }
}

/// The pipeline the files hold together, and the mistakes of form.
fn join(files: &[(&str, &str)]) -> Joined {
    let document = Pipeline::json_schema();
    let mut joined = Joined::default();
    for (file, text) in files {
        joined.read(file, text, &document);
    }
    joined
}

/// Asks for the sources of each gold dataset that names none.
pub(crate) fn fill_sources(pipeline: &mut Pipeline, sources_of: SourcesOf<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, spec) in pipeline.gold.iter_mut().enumerate().filter(|(_, spec)| spec.sources.is_empty()) {
        match sources_of(&spec.query) {
            Ok(sources) => spec.sources = sources,
            // An empty query is a mistake of its own.
            Err(_) if spec.query.trim().is_empty() => {}
            Err(reason) => {
                let path = Path::root().field("gold").index(index).field("query");
                problems.push(Problem::new(path, Error::QueryUnreadable { reason }));
            }
        }
    }
    problems
}

/// What was read so far.
#[derive(Default)]
struct Joined {
    pipeline: Pipeline,
    origins: Origins,
    problems: Vec<Problem>,
    unread: Unread,
}

impl Joined {
    fn read(&mut self, file: &str, text: &str, document: &Json) {
        self.origins.first_file.get_or_insert_with(|| file.to_owned());
        let loaded = load(text);
        let mistakes = loaded.mistakes.into_iter().map(|(at, path, error)| problem(file, at, path, error));
        self.problems.extend(mistakes);
        let Some(root) = loaded.root else {
            self.unread.something = true;
            self.unread.name = true;
            return;
        };
        let mut reader = Reader { document, mistakes: Vec::new() };
        match &root.value {
            Value::Map(entries) => entries.iter().for_each(|entry| self.read_field(file, entry, &mut reader)),
            _ => {
                self.unread.something = true;
                self.unread.name = true;
                reader.value(&root, document, &Path::root());
            }
        }
        self.problems.extend(reader.mistakes.into_iter().map(|(at, path, error)| problem(file, at, path, error)));
    }

    fn read_field<'a>(&mut self, file: &str, entry: &Entry, reader: &mut Reader<'a>) {
        let path = Path::root().field(&entry.key);
        let Some(schema) = reader.property(&entry.key) else {
            let properties = reader.document.get("properties").and_then(Json::as_object);
            return reader.unknown_field(entry, properties, path);
        };
        let (pipeline, unread) = (&mut self.pipeline, &mut self.unread);
        let mut origins = self.origins.of(file, &entry.key);
        match entry.key.as_str() {
            "name" => self.read_name(file, entry, reader, schema),
            "feeds" => read_list(&mut pipeline.feeds, unread, entry, reader, schema, &mut origins),
            "silver" => read_list(&mut pipeline.silver, unread, entry, reader, schema, &mut origins),
            "gold" => read_list(&mut pipeline.gold, unread, entry, reader, schema, &mut origins),
            "external" => read_list(&mut pipeline.external, unread, entry, reader, schema, &mut origins),
            _ => {}
        }
    }

    fn read_name<'a>(&mut self, file: &str, entry: &Entry, reader: &mut Reader<'a>, schema: &'a Json) {
        let path = Path::root().field("name");
        let Some(Json::String(name)) = reader.value(&entry.node, schema, &path) else {
            self.unread.name = true;
            return;
        };
        match &self.origins.name {
            Some(first) if self.pipeline.name != name => {
                let error = Error::PipelineNameDiffers { name, other: self.pipeline.name.clone(), other_file: first.file.clone() };
                reader.mistakes.push((entry.node.at, path, error));
            }
            Some(_) => {}
            None => {
                self.pipeline.name = name;
                self.origins.name = Some(Origin { file: file.to_owned(), local: 0, node: entry.node.clone() });
            }
        }
    }
}

/// Reads the elements of a list one by one; one with a mistake is left out, and its table remembered.
fn read_list<'a, T: DeserializeOwned>(
    elements: &mut Vec<T>,
    unread: &mut Unread,
    entry: &Entry,
    reader: &mut Reader<'a>,
    schema: &'a Json,
    origins: &mut ListOrigins<'_>,
) {
    let path = Path::root().field(&entry.key);
    let (Value::List(items), Some(item_schema)) = (&entry.node.value, schema.get("items")) else {
        unread.something = true;
        reader.value(&entry.node, schema, &path);
        return;
    };
    for (local, item) in items.iter().enumerate() {
        let item_path = path.index(local);
        let before = reader.mistakes.len();
        let value = reader.value(item, item_schema, &item_path);
        let element = match value {
            Some(value) if reader.mistakes.len() == before => match serde_json::from_value(value) {
                Ok(element) => Some(element),
                Err(error) => {
                    let found = Error::WrongType { expected: "another value".to_owned(), found: error.to_string() };
                    reader.mistakes.push((item.at, item_path, found));
                    None
                }
            },
            _ => None,
        };
        match element {
            Some(element) => {
                elements.push(element);
                origins.put(local, item);
            }
            None => match table_of(item) {
                Some(table) => unread.tables.push(table),
                None => unread.something = true,
            },
        }
    }
}

/// The table an element with mistakes would make, where at least that can be read.
fn table_of(item: &Node) -> Option<TableName> {
    let Value::Map(entries) = &item.value else { return None };
    match &entries.iter().find(|entry| entry.key == "table")?.node.value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn problem(file: &str, at: At, path: Path, error: Error) -> Problem {
    let place = Place { file: file.to_owned(), line: at.line, column: at.column };
    Problem { error, path, place: Some(place) }
}

/// Where an element of the joined pipeline came from.
struct Origin {
    file: String,
    /// Its number in the list of its file.
    local: usize,
    node: Node,
}

#[derive(Default)]
struct Origins {
    first_file: Option<String>,
    name: Option<Origin>,
    lists: HashMap<String, Vec<Origin>>,
}

/// Takes down where the elements of one list of one file came from.
struct ListOrigins<'a> {
    file: &'a str,
    elements: &'a mut Vec<Origin>,
}

impl ListOrigins<'_> {
    fn put(&mut self, local: usize, item: &Node) {
        self.elements.push(Origin { file: self.file.to_owned(), local, node: item.clone() });
    }
}

impl Origins {
    fn of<'a>(&'a mut self, file: &'a str, list: &str) -> ListOrigins<'a> {
        ListOrigins { file, elements: self.lists.entry(list.to_owned()).or_default() }
    }

    /// The problem with its place, its path counted within its file.
    fn placed(&self, mut found: Problem) -> Problem {
        if let Error::TableTwice { first, .. } | Error::QuarantineTwice { first, .. } = &mut found.error {
            **first = self.located(&first.path);
        }
        let Location { path, place } = self.located(&found.path);
        Problem { path, place, ..found }
    }

    fn located(&self, path: &Path) -> Location {
        let place = |file: &str, at: At| Some(Place { file: file.to_owned(), line: at.line, column: at.column });
        match path.steps() {
            [Step::Field(list), Step::Index(index), rest @ ..] => {
                if let Some(origin) = self.lists.get(list.as_str()).and_then(|origins| origins.get(*index)) {
                    let local = [Step::Field(list.clone()), Step::Index(origin.local)];
                    let at = at_of(&origin.node, origin.node.at, rest);
                    return Location { path: local.into_iter().chain(rest.iter().cloned()).collect(), place: place(&origin.file, at) };
                }
            }
            [Step::Field(field)] if field == "name" => {
                if let Some(origin) = &self.name {
                    return Location { path: path.clone(), place: place(&origin.file, origin.node.at) };
                }
            }
            _ => {}
        }
        Location { path: path.clone(), place: place(self.first_file.as_deref().unwrap_or_default(), At::START) }
    }
}

/// Where the deepest part of a path begins that the file has: a field with a list or mapping at its key, anything else at itself.
fn at_of(node: &Node, key_at: At, steps: &[Step]) -> At {
    let here = match node.value {
        Value::List(_) | Value::Map(_) => key_at,
        Value::Null | Value::Boolean(..) | Value::Number(..) | Value::Text(_) => node.at,
    };
    let Some((step, rest)) = steps.split_first() else { return here };
    match (step, &node.value) {
        (Step::Index(index), Value::List(items)) => items.get(*index).map_or(here, |item| at_of(item, item.at, rest)),
        (Step::Field(name), Value::Map(entries)) => {
            let entry = entries.iter().find(|entry| entry.key == *name);
            entry.map_or(here, |entry| at_of(&entry.node, entry.key_at, rest))
        }
        _ => here,
    }
}

#[cfg(test)]
pub(crate) fn read_form(text: &str) -> Result<Pipeline, Vec<Problem>> {
    let joined = join(&[("p.yml", text)]);
    if joined.problems.is_empty() { Ok(joined.pipeline) } else { Err(joined.problems) }
}
