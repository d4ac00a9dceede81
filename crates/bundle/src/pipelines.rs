//! Rules of pipelines, and the pipelines themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use tributary_pipeline_sql::Origins;

use crate::error::Error;
use crate::fault::Faults;
use crate::job::{principal, texts};
use crate::load::Note;
use crate::model::pipeline::LIBRARY_KINDS;
use crate::source::{Expected, Sources, is_source, is_sql};
use crate::yaml::Node;

/// Datasets that are kept current together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pipeline {
    /// The resource's key.
    pub key: String,
    /// The name, with the prefix of mode and presets.
    pub name: String,
    /// The catalogue of names without one; none = the catalogue of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The schema of names without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Whether it runs without end.
    pub continuous: bool,
    /// Whether it is for trying things out.
    pub development: bool,
    /// The folder that its libraries belong to, from the bundle's folder on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_path: Option<String>,
    /// What `${name}` stands for in its SQL: its configuration, and over it its parameters.
    pub parameters: BTreeMap<String, String>,
    /// Its SQL files, from the bundle's folder on, in alphabetical order.
    pub files: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// As whom it runs: a user's name or a service principal's, its own or the bundle's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// Clauses of its SQL that hide data from people and are not executed.
    pub unprotected: Vec<Note>,
    /// What else of it is not executed: clauses of its SQL, libraries that are none.
    pub not_applied: Vec<Note>,
    /// Where its specs stand in its SQL files.
    #[serde(skip)]
    pub origins: Arc<Origins>,
    /// What engines execute: its SQL as specs, with the feeds of the bundle whose tables it reads; none where the SQL has a mistake.
    #[serde(skip)]
    pub spec: Option<tributary_specs::Pipeline>,
}

impl Pipeline {
    /// One of a key and specs, and nothing else.
    pub(crate) fn new(key: String, spec: tributary_specs::Pipeline) -> Self {
        Self {
            name: key.clone(),
            key,
            catalog: None,
            schema: None,
            continuous: false,
            development: false,
            root_path: None,
            parameters: BTreeMap::new(),
            files: Vec::new(),
            tags: BTreeMap::new(),
            run_as: None,
            unprotected: Vec::new(),
            not_applied: Vec::new(),
            origins: Arc::default(),
            spec: Some(spec),
        }
    }
}

/// Checks one pipeline and reads where its SQL stands.
pub(crate) fn read(key: &str, node: &Node, sources: &mut Sources<'_>, faults: &mut Faults) -> Pipeline {
    exclusions(key, node, faults);
    let root_path = node.get("root_path").and_then(|path| folder(path, sources, faults));
    let mut files = BTreeSet::new();
    for library in node.items_of("libraries") {
        if library.as_map().is_some() {
            files.extend(library_files(key, library, sources, faults));
        }
    }
    let (sql, others): (Vec<String>, Vec<String>) = files.into_iter().partition(|path| is_sql(path));
    let mut not_applied = Vec::new();
    if !others.is_empty() {
        let at = node.entry("libraries").map_or(node.at, |entry| entry.key_at);
        let (what, reason) = (others.join(", "), "only SQL is run".to_owned());
        not_applied.push(Note::new(sources.files().place(at), "not_applied", format!("{what}: {reason}")));
        faults.warning(at, Error::NotRun { what, reason });
    }
    let mut parameters = texts(node, "configuration");
    parameters.extend(texts(node, "parameters"));
    let text = |key: &str| node.text_of(key).map(str::to_owned);
    Pipeline {
        key: key.to_owned(),
        name: text("name").unwrap_or_else(|| key.to_owned()),
        catalog: text("catalog"),
        schema: text("schema").or_else(|| text("target")),
        continuous: node.flag_of("continuous").unwrap_or(false),
        development: node.flag_of("development").unwrap_or(false),
        root_path,
        parameters,
        files: sql,
        tags: texts(node, "tags"),
        run_as: node.get("run_as").and_then(principal),
        unprotected: Vec::new(),
        not_applied,
        origins: Arc::default(),
        spec: None,
    }
}

/// Settings that pass upstream and fail when the pipeline is deployed.
fn exclusions(key: &str, node: &Node, faults: &mut Faults) {
    let parent = format!("resources.pipelines.{key}");
    let serverless = node.flag_of("serverless") == Some(true);
    for (holds, one, other) in [
        (serverless, "serverless", "clusters"),
        (node.get("catalog").is_some(), "catalog", "storage"),
        (node.get("schema").is_some(), "schema", "target"),
    ] {
        if let (true, Some(entry)) = (holds, node.get(other).and(node.entry(other))) {
            faults.error(entry.key_at, Error::Exclusive { parent: parent.clone(), one, other: other.to_owned() });
        }
    }
    for cluster in node.items_of("clusters") {
        if let (Some(_), Some(entry)) = (cluster.get("autoscale"), cluster.entry("num_workers")) {
            let parent = format!("{parent}.clusters");
            faults.error(entry.key_at, Error::Exclusive { parent, one: "autoscale", other: "num_workers".to_owned() });
        }
    }
}

fn folder(path: &Node, sources: &Sources<'_>, faults: &mut Faults) -> Option<String> {
    let relative = sources.resolve(path, faults)?;
    if sources.is_folder(&relative) {
        return Some(relative);
    }
    faults.error(path.at, sources.missing(&relative));
    None
}

/// Files of one library.
fn library_files(key: &str, library: &Node, sources: &mut Sources<'_>, faults: &mut Faults) -> Vec<String> {
    let kinds: Vec<&'static str> = LIBRARY_KINDS.iter().copied().filter(|kind| library.get(kind).is_some()).collect();
    let [kind] = kinds.as_slice() else {
        let at = kinds.iter().filter_map(|kind| library.entry(kind)).map(|entry| entry.key_at).max().unwrap_or(library.at);
        let found = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(" and ") };
        let parent = format!("a library of pipeline {key}");
        faults.error(at, Error::NotOne { parent, found, choices: LIBRARY_KINDS.join(", ") });
        return Vec::new();
    };
    let path = match *kind {
        "file" | "notebook" => library.find(&[kind, "path"]),
        "glob" => library.find(&["glob", "include"]),
        _ => None,
    };
    let Some(path) = path else { return Vec::new() };
    match *kind {
        "file" => one_file(path, Expected::File, sources, faults),
        "notebook" => one_file(path, Expected::Notebook, sources, faults),
        _ => glob(path, sources, faults),
    }
}

fn one_file(path: &Node, expected: Expected, sources: &mut Sources<'_>, faults: &mut Faults) -> Vec<String> {
    let Some(found) = sources.check(path, expected, faults) else { return Vec::new() };
    if is_source(&found) {
        return vec![found];
    }
    let problem = format!("{found} is not source code: neither .sql nor .py");
    faults.error(path.at, Error::Library { library: path.scalar().unwrap_or_default().to_owned(), problem });
    Vec::new()
}

/// One file, or a folder as `folder/**`.
fn glob(pattern: &Node, sources: &Sources<'_>, faults: &mut Faults) -> Vec<String> {
    let Some(text) = pattern.scalar() else { return Vec::new() };
    let refuse = |problem: &str| Error::Library { library: text.to_owned(), problem: problem.to_owned() };
    let (start, is_folder) = match text.strip_suffix("/**") {
        Some(folder) => (folder, true),
        None if text == "**" => (".", true),
        None => (text, false),
    };
    if crate::folder::has_wildcard(start) {
        faults.error(pattern.at, refuse("only one file or a folder as `folder/**` can stand here"));
        return Vec::new();
    }
    let written = Node::text(pattern.at, start);
    let Some(relative) = sources.resolve(&written, faults) else { return Vec::new() };
    let found = if is_folder {
        sources.below(&relative, pattern.at, faults)
    } else if sources.is_file(&relative) && is_source(&relative) {
        vec![relative]
    } else {
        Vec::new()
    };
    if found.is_empty() {
        faults.error(pattern.at, refuse("no source file belongs to it"));
    }
    found
}
