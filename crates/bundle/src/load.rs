//! From a path to a bundle and everything that is wrong with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tributary_pipeline_sql::{Construct, Origins, portability_of_bundles};
use tributary_specs::Place;

use crate::bundle::{Bundle, Dataset};
use crate::check::Stage;
use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::folder::Folder;
use crate::include::{ROOT_NAMES, Reading, not_a_mapping};
use crate::job::{Job, principal};
use crate::place::{At, File, Files};
use crate::resolve::Resolver;
use crate::source::Sources;
use crate::yaml::{Budget, Entry, Node};
use crate::{check, feeds, jobs, mode, pipelines, resources, sql, target, variables, workspace};

/// What a bundle is read with, besides its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The target; none = the only one, or the one that says it is the default.
    pub target: Option<String>,
    /// Values of variables, over all others; a name that is not declared is a fault.
    pub variables: BTreeMap<String, String>,
    /// What `${name}` stands for in the SQL of every pipeline, over its own configuration and parameters.
    pub parameters: BTreeMap<String, String>,
    /// Values of variables from the environment, `BUNDLE_VAR_` taken off.
    pub environment: BTreeMap<String, String>,
    /// The name of the person, as `${workspace.current_user.userName}` has it.
    pub user: String,
    /// Whether production may be read from another branch than it is for.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Self {
        let none = BTreeMap::new();
        let (variables, parameters) = (none.clone(), none.clone());
        Self { target: None, variables, parameters, environment: none, user: "user".to_owned(), force: false }
    }
}

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// The bundle, as far as it could be read.
    pub bundle: Bundle,
    /// Every file that was read.
    pub files: Vec<String>,
    /// Every mistake, in the order of files and lines.
    pub faults: Vec<Fault>,
    /// What a person should know of the SQL: old spellings, meanings that differ from the platform's.
    pub notes: Vec<Note>,
    /// What is not the same on every platform.
    pub constructs: Vec<Construct>,
    /// What can be planned of each pipeline, mistakes elsewhere or not.
    pub to_plan: Vec<ToPlan>,
}

/// What of a pipeline can be planned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToPlan {
    /// Specs of what has no mistake, with the feeds of the bundle that they read.
    pub spec: tributary_specs::Pipeline,
    /// Where they stand in the SQL files.
    pub origins: Arc<Origins>,
    /// As whom the pipeline runs.
    pub run_as: Option<String>,
}

/// Something a person should know, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The kind, for tools: `deprecated`, `implicit_deletes`, ….
    pub kind: String,
    /// In words.
    pub message: String,
}

impl Note {
    pub(crate) fn new(place: Place, kind: &str, message: String) -> Self {
        let Place { file, line, column } = place;
        Self { file, line, column, kind: kind.to_owned(), message }
    }
}

impl Loaded {
    /// Whether nothing stops the bundle; warnings do not.
    pub fn is_sound(&self) -> bool {
        !self.faults.iter().any(Fault::is_error)
    }
}

/// The folder of the bundle around a path: the nearest with a root file, going up.
pub fn find(start: &Path) -> Option<PathBuf> {
    let has_root = |folder: &&Path| ROOT_NAMES.iter().any(|name| folder.join(name).is_file());
    start.ancestors().find(has_root).map(Path::to_owned)
}

/// Reads the bundle of a folder, or of its root file, for a target and with these variables, offline. Never panics.
pub fn load(path: &Path, target: Option<&str>, variables: &BTreeMap<String, String>) -> Loaded {
    load_with(path, &Options { target: target.map(str::to_owned), variables: variables.clone(), ..Options::default() })
}

/// As [`load`].
pub fn load_with(path: &Path, options: &Options) -> Loaded {
    let mut files = Files::default();
    let mut faults = Faults::default();
    let read = read(path, options, &mut files, &mut faults).unwrap_or_default();
    let Loaded { bundle, mut notes, mut constructs, to_plan, .. } = read;
    notes.sort_by(|a, b| (&a.file, a.line, a.column, &a.message).cmp(&(&b.file, b.line, b.column, &b.message)));
    notes.dedup();
    constructs.sort_by(|a, b| (&a.place.file, a.place.line, a.place.column).cmp(&(&b.place.file, b.place.line, b.place.column)));
    constructs.dedup();
    Loaded { bundle, files: files.names(), faults: faults.sorted(&files), notes, constructs, to_plan }
}

/// Tells what is wrong with a path before any file at it is read.
pub(crate) fn nowhere(path: &Path, error: Error, files: &mut Files, faults: &mut Faults) {
    let shown = path.to_string_lossy().into_owned();
    let number = files.add(File { relative: String::new(), shown, text: String::new(), lines: Vec::new() });
    faults.error(At::start_of(number), error);
}

/// The bundle, and what is to be said of it that is no mistake.
fn read(path: &Path, options: &Options, files: &mut Files, faults: &mut Faults) -> Option<Loaded> {
    let opened = root_of(path).and_then(|(folder, root_name)| Ok((Folder::open(&folder)?, root_name)));
    let (mut folder, root_name) = opened.map_err(|error| nowhere(path, error, files, faults)).ok()?;
    let mut budget = Budget::default();
    let mut reading = Reading { folder: &mut folder, files, budget: &mut budget, faults };
    let mut root = reading.tree(&root_name)?;
    if root.as_map().is_none() {
        faults.error(root.at, not_a_mapping(&root));
        return None;
    }
    target::rename_environments(&mut root, faults);
    check::check(&root, Stage::Written, faults);
    resources::check(&root, files, faults);
    let chosen = target::choose(&root, options.target.as_deref(), faults)?;
    target::apply(&mut root, &chosen, files, faults);
    if let Some(map) = root.as_map_mut() {
        map.remove("targets");
        map.remove("include");
    }
    let overrides = overrides(&chosen.name, &mut folder, files, &mut budget, faults);
    variables::assign(&mut root, options, overrides, faults);
    workspace::fill_in(&mut root, &options.user, &folder, faults);
    fill(&mut root, &|key| !matches!(key, "resources" | "feeds"), files, &mut budget, faults);
    mode::apply(&mut root, &chosen, &options.user, options.force, faults);
    fill(&mut root, &|key| matches!(key, "resources" | "feeds"), files, &mut budget, faults);
    check::check(&root, Stage::Resolved, faults);
    Some(bundle(&root, chosen.name, options, &mut folder, files, faults))
}

/// Folder and name of the root file.
fn root_of(path: &Path) -> Result<(PathBuf, String), Error> {
    let none = |reason: &str| Error::NoBundle { path: path.display().to_string(), reason: reason.to_owned() };
    if path.is_file() {
        let name = path.file_name().and_then(|name| name.to_str()).filter(|name| ROOT_NAMES.contains(name));
        let name = name.ok_or_else(|| none(&format!("a root file is called {}", ROOT_NAMES.join(" or "))))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Ok((folder.to_owned(), name.to_owned()));
    }
    if !path.is_dir() {
        return Err(none("there is no such folder"));
    }
    let found: Vec<String> =
        ROOT_NAMES.iter().filter(|name| fs::metadata(path.join(name)).is_ok()).map(|name| (*name).to_owned()).collect();
    match found.as_slice() {
        [] => Err(none(&format!("it holds none of {}", ROOT_NAMES.join(", ")))),
        [name] => Ok((path.to_owned(), name.clone())),
        _ => Err(Error::SeveralRoots { files: found }),
    }
}

/// Values that a file gives to the variables of a target.
fn overrides(target: &str, folder: &mut Folder, files: &mut Files, budget: &mut Budget, faults: &mut Faults) -> Option<Node> {
    let path = folder.resolve("", &variables::overrides_path(target)).ok().filter(|path| folder.is_file(path))?;
    Reading { folder, files, budget, faults }.file(&path)
}

/// Fills in the references of the root's entries that are chosen.
fn fill(root: &mut Node, chosen: &dyn Fn(&str) -> bool, files: &Files, budget: &mut Budget, faults: &mut Faults) {
    let filled: Vec<(String, Node)> = {
        let mut resolver = Resolver::new(root, files, budget, faults);
        root.entries().filter(|(key, _)| chosen(key)).map(|(key, entry)| (key.to_owned(), resolver.fill(&entry.node))).collect()
    };
    filled.into_iter().for_each(|(key, node)| root.set(&key, node));
}

fn bundle(root: &Node, target: String, options: &Options, folder: &mut Folder, files: &mut Files, faults: &mut Faults) -> Loaded {
    let shown = folder.shown().to_string_lossy().into_owned();
    let mut sources = Sources::new(folder, files);
    jobs::check_all(root, &mut sources, faults);
    let feeds = root.get("feeds").map(|feeds| feeds::read(feeds, &sources, faults)).unwrap_or_default();
    let run_as = root.get("run_as").and_then(principal);
    let (mut pipelines, mut datasets, mut notes, mut constructs) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
    let mut to_plan = Vec::new();
    let [of_feeds, of_pipelines] = portability_of_bundles();
    for (feed, at) in &feeds {
        constructs.push(Construct {
            rule: of_feeds,
            dataset: Some(feed.table.to_string()),
            which: None,
            place: sources.files().place(*at),
        });
    }
    for (key, entry) in resources::of_kind(root, "pipelines") {
        let mut pipeline = pipelines::read(key, &entry.node, &mut sources, faults);
        pipeline.parameters.extend(options.parameters.clone());
        pipeline.run_as = pipeline.run_as.or_else(|| run_as.clone());
        let read = sql::read(&pipeline, &mut sources, faults);
        constructs.push(Construct { rule: of_pipelines, dataset: None, which: None, place: sources.files().place(entry.key_at) });
        constructs.extend(read.constructs);
        pipeline.origins = Arc::clone(&read.parts.origins);
        to_plan.push(sql::to_plan(read.parts, &feeds, pipeline.run_as.as_deref()));
        if let Some(lowered) = read.lowered {
            let (spec, catalog) = sql::with_feeds(lowered, &feeds, sources.files(), faults);
            pipeline.catalog = pipeline.catalog.or(catalog);
            pipeline.spec = Some(spec);
        }
        pipeline.unprotected = read.unprotected;
        pipeline.not_applied.extend(read.not_applied);
        datasets.extend(read.datasets);
        notes.extend(read.notes);
        pipelines.insert(key.to_owned(), pipeline);
    }
    let job = |(key, entry): (&str, &Entry)| {
        let mut job = Job::of(key, &entry.node, &|node| sources.path_of(node));
        job.run_as = job.run_as.or_else(|| run_as.clone());
        for (task, node) in job.tasks.iter_mut().zip(entry.node.items_of("tasks")) {
            task.place = Some(sources.files().place(node.at));
        }
        (key.to_owned(), job)
    };
    let jobs = resources::of_kind(root, "jobs").map(job).collect();
    datasets.extend(feeds.iter().map(|(feed, at)| Dataset {
        name: feed.table.to_string(),
        kind: "feed".to_owned(),
        reads: vec![feed.name.clone()],
        keys: feed.keys.clone(),
        file: sources.files().shown(at.file).to_owned(),
        line: at.line as usize,
        column: at.column as usize,
        ..Dataset::default()
    }));
    let text = |keys: &[&str]| root.find(keys).and_then(Node::scalar).unwrap_or_default().to_owned();
    let bundle = Bundle {
        name: text(&["bundle", "name"]),
        target,
        mode: text(&["bundle", "mode"]),
        folder: shown,
        pipelines,
        jobs,
        feeds: feeds.into_iter().map(|(feed, _)| feed).collect(),
        datasets,
        resolved: root.to_json(),
    };
    Loaded { bundle, notes, constructs, to_plan, ..Loaded::default() }
}
