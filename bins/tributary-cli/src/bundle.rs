//! Bundles: checked as they stand, and their pipelines run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use serde_json::json;
use tributary::{ExitCode, Pipeline};
use tributary_bundle::{Loaded as Read, Options, find, load_sql, load_with};
use tributary_config::{Inputs, Loaded, Name, Origin, Output, Program, Settings};

use crate::failure::{Error, Failure, Outcome, count};
use crate::schema::LayersBefore;
use crate::{opened, portability, queries, start};

/// The code of what stands in SQL and is not run here. As a mask or row filter it would let people see what it hides.
const NOT_RUN: &str = "BU0043";

/// The pipeline of a command that says nothing.
const DEFAULT_PIPELINE: &str = "pipeline.yml";

/// What the command line and the environment say of bundles.
#[derive(Debug, Clone, Default)]
pub struct Given {
    paths: Vec<PathBuf>,
    /// What `--pipeline` names on the command line.
    pipelines: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
    /// What `${name}` stands for in SQL.
    conf: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    user: Option<String>,
    /// Whether masks and row filters that are not enforced are no reason to stop.
    accept_unprotected: bool,
    /// Whether it is asked what is not the same elsewhere.
    portability: bool,
    /// The bundle around the working folder.
    around: Option<PathBuf>,
    /// What the command is about: the table, feed or job that its line names.
    subject: Option<String>,
    /// Whether nothing beside a settings file says which pipeline is meant: no flag, no variable, no file of the default's name.
    names_none: bool,
}

impl Given {
    /// Of a command's arguments and the process' environment.
    pub fn of(matches: &ArgMatches, inputs: &Inputs) -> Self {
        let variables = inputs.environment.iter().filter_map(|(variable, value)| {
            let name = variable.to_str()?.strip_prefix("BUNDLE_VAR_")?;
            Some((name.to_owned(), value.to_str()?.to_owned()))
        });
        let paths = matches.try_get_many::<PathBuf>("path").ok().flatten();
        let pairs = |name: &str| {
            let given = matches.try_get_many::<(String, String)>(name).ok().flatten();
            given.into_iter().flatten().cloned().collect()
        };
        let pipelines = matches.try_get_raw("pipeline").ok().flatten();
        Self {
            paths: paths.into_iter().flatten().cloned().collect(),
            pipelines: pipelines.into_iter().flatten().map(PathBuf::from).collect(),
            variables: pairs("var"),
            conf: pairs("conf"),
            environment: variables.collect(),
            user: inputs.user().map(str::to_owned),
            accept_unprotected: matches.try_get_one("accept-unprotected").ok().flatten().copied().unwrap_or_default(),
            portability: matches.try_get_one("portability").ok().flatten().copied().unwrap_or_default(),
            around: around(&inputs.folder),
            subject: ["table", "name"].iter().find_map(|name| matches.try_get_one::<String>(name).ok().flatten().cloned()),
            names_none: matches.try_get_raw("pipeline").ok().flatten().is_none()
                && inputs.variable("TRIBUTARY_PIPELINE").is_none()
                && !inputs.folder.join(DEFAULT_PIPELINE).is_file(),
        }
    }

    /// The same for a command that shows no rows: what masks and row filters hide is not seen by it.
    pub fn showing_no_rows(&self) -> Self {
        Self { accept_unprotected: true, ..self.clone() }
    }

    /// Whether a target is the bundle's to know.
    pub fn is_of_bundle(&self, program: Program) -> bool {
        match program {
            Program::Validate => !self.paths.is_empty() || (self.around.is_some() && self.pipelines.is_empty()),
            Program::Job => self.around.is_some(),
            Program::Run
            | Program::Plan
            | Program::Graph
            | Program::Explain
            | Program::Setup
            | Program::Ddl
            | Program::Doctor
            | Program::Requeue => self.around.is_some() && (self.names_none || matches!(self.pipelines.as_slice(), [one] if is_key(one))),
            _ => false,
        }
    }

    /// Whether masks and row filters that are not enforced are no reason to stop.
    pub fn accepts_unprotected(&self) -> bool {
        self.accept_unprotected
    }

    /// As whom texts are run: as somebody says, else as whoever started the program.
    pub fn user_of(&self, run_as: Option<&str>) -> Option<String> {
        run_as.or(self.user.as_deref()).map(str::to_owned)
    }

    /// What `validate` looks at, unless it is a pipeline file.
    pub fn paths_to_check(&self, loaded: &Loaded) -> Option<Vec<PathBuf>> {
        match (&self.around, loaded.origin("pipeline")) {
            _ if !self.paths.is_empty() => Some(self.paths.clone()),
            (Some(around), Origin::Default) => Some(vec![around.clone()]),
            (_, Origin::Default) => None,
            (around, _) => match loaded.settings.pipeline.as_slice() {
                paths if !paths.is_empty() && paths.iter().all(|path| path.is_dir() || is_sql(path)) => Some(paths.to_vec()),
                [key] if is_key(key) => around.clone().map(|around| vec![around]),
                _ => None,
            },
        }
    }

    /// Whether it is asked what is not the same elsewhere.
    pub fn asks_portability(&self) -> bool {
        self.portability
    }

    /// The paths of the command line.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The bundle around the working folder.
    pub fn around(&self) -> Option<&PathBuf> {
        self.around.as_ref()
    }

    /// Who types the command.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// What the command line says that names in SQL files alone stand for.
    pub fn parameters(&self) -> BTreeMap<String, String> {
        let mut parameters = self.variables.clone();
        parameters.extend(self.conf.clone());
        parameters
    }

    /// What a bundle is read with.
    pub fn options(&self, settings: &Settings) -> Options {
        let plain = Options::default();
        Options {
            target: settings.target.as_ref().map(|target| target.as_str().to_owned()),
            variables: self.variables.clone(),
            parameters: self.conf.clone(),
            environment: self.environment.clone(),
            user: self.user.clone().unwrap_or(plain.user),
            force: plain.force,
        }
    }
}

/// The bundle around a folder; the folder itself stays as it is named.
fn around(folder: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(folder).ok()?;
    let found = find(&real)?;
    Some(if found == real { folder.to_owned() } else { found })
}

/// Whether `--pipeline` is the key of a pipeline and no file.
pub fn is_key(path: &Path) -> bool {
    path.components().count() == 1 && path.extension().is_none() && !path.is_file()
}

/// Checks what is at the paths and prints what was found: a bundle at a folder with a root file, SQL anywhere else.
pub fn validate(settings: &Settings, given: &Given, paths: &[PathBuf]) -> Outcome {
    let has_root = |path: &&PathBuf| path.is_dir() && find(path).is_some_and(|found| found == **path) || path.is_file() && !is_sql(path);
    let (bundles, sql): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(has_root);
    let options = given.options(settings);
    let mut reads: Vec<Read> = bundles.into_iter().map(|path| load_with(path, &options)).collect();
    if !sql.is_empty() {
        reads.push(load_sql(&sql.into_iter().cloned().collect::<Vec<_>>(), &given.parameters()));
    }
    queries::plan(&mut reads, given.user())?;
    let text = if settings.output == Output::Json { as_json(&reads, given.portability) } else { as_text(&reads, given.portability) };
    start::print(&text)?;
    let sound = reads.iter().all(Read::is_sound);
    Ok(if sound { ExitCode::Done.code() } else { ExitCode::BadInput.code() })
}

fn is_sql(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql"))
}

fn as_json(reads: &[Read], portability: bool) -> String {
    let each = |of: &dyn Fn(&Read) -> serde_json::Value| -> Vec<serde_json::Value> {
        reads.iter().flat_map(|read| of(read).as_array().cloned().unwrap_or_default()).collect()
    };
    let bundles = reads.iter().filter(|read| !read.bundle.target.is_empty());
    let mut value = json!({
        "bundles": bundles.map(|read| json!({"name": read.bundle.name, "target": read.bundle.target, "mode": read.bundle.mode})).collect::<Vec<_>>(),
        "datasets": each(&|read| json!(read.bundle.datasets)),
        "pipelines": each(&|read| json!(read.bundle.pipelines.values().collect::<Vec<_>>())),
        "jobs": each(&|read| json!(read.bundle.jobs.values().collect::<Vec<_>>())),
        "files": each(&|read| json!(read.files)),
        "faults": each(&|read| json!(read.faults)),
        "notes": each(&|read| json!(read.notes)),
        "errors": errors(reads),
    });
    if portability {
        value["portability"] = portability::as_json(reads);
    }
    format!("{value:#}\n")
}

fn errors(reads: &[Read]) -> usize {
    reads.iter().flat_map(|read| &read.faults).filter(|fault| fault.is_error()).count()
}

fn as_text(reads: &[Read], portability: bool) -> String {
    let mut text = String::new();
    for read in reads {
        for dataset in &read.bundle.datasets {
            let keys = if dataset.keys.is_empty() { String::new() } else { format!(", keys {}", dataset.keys.join(", ")) };
            let _ = writeln!(text, "{}: {}, reads {}{keys}", dataset.name, dataset.kind, dataset.reads.join(", "));
        }
        for note in &read.notes {
            let _ = writeln!(text, "{}:{}:{}: note: {}", note.file, note.line, note.column, note.message);
        }
        for fault in &read.faults {
            let _ = writeln!(text, "{fault}");
        }
    }
    if portability {
        text.push_str(&portability::as_text(reads));
    }
    let all = |of: &dyn Fn(&Read) -> usize| reads.iter().map(of).sum::<usize>();
    let warnings = all(&|read| read.faults.len()) - errors(reads);
    let warned = if warnings > 0 { format!("{}, ", count(warnings, "warning")) } else { String::new() };
    let _ = writeln!(
        text,
        "{}, {}, {} checked, {warned}{}",
        count(all(&|read| read.bundle.datasets.len()), "dataset"),
        count(all(&|read| read.bundle.jobs.len()), "job"),
        count(all(&|read| read.files.len()), "file"),
        count(errors(reads), "error")
    );
    text
}

/// A pipeline to run, and the settings as it changes them.
pub struct Opened {
    pub settings: Settings,
    pub pipeline: Pipeline,
    /// The layers of its datasets by the schemas that `--db-name` took from them.
    pub layers: LayersBefore,
}

/// The pipeline of the settings: by its key in the bundle around the working folder, of SQL files and folders of them, or of YAML files.
pub fn open(loaded: &Loaded, given: &Given) -> Result<Opened, Failure> {
    let settings = &loaded.settings;
    if let (Some(around), [key]) = (&given.around, settings.pipeline.as_slice())
        && is_key(key)
    {
        let read = load_with(around, &given.options(settings));
        let has_it = read.bundle.pipeline(&key.to_string_lossy()).is_ok();
        if has_it || !key.is_dir() {
            return of_read(&read, &key.to_string_lossy(), loaded, given);
        }
    }
    if let (Some(around), Origin::Default, true) = (&given.around, loaded.origin("pipeline"), given.names_none) {
        let read = load_with(around, &given.options(settings));
        let keys: Vec<String> = read.bundle.pipelines.keys().cloned().collect();
        return match keys.is_empty() && !read.is_sound() {
            true => Err(faults(&read)),
            false => Err(Error::WhichPipeline { folder: around.clone(), keys, command: again(loaded, given) }.into()),
        };
    }
    let is_of_sql = |path: &PathBuf| path.is_dir() || is_sql(path);
    let (sql, yaml): (Vec<&PathBuf>, Vec<&PathBuf>) = settings.pipeline.iter().partition(|path| is_of_sql(path));
    match (sql.first(), yaml.first()) {
        (Some(sql), Some(yaml)) => Err(Error::SqlAndYaml { sql: (*sql).clone(), yaml: (*yaml).clone() }.into()),
        (Some(_), None) => {
            let read = load_sql(&settings.pipeline, &given.parameters());
            let key = read.bundle.pipelines.keys().next().cloned().unwrap_or_default();
            of_read(&read, &key, loaded, given)
        }
        (None, _) => {
            let (pipeline, layers) = opened::pipeline(settings)?;
            Ok(Opened { settings: settings.clone(), pipeline: run_as(pipeline, given.user.as_deref()), layers })
        }
    }
}

/// A pipeline of what was read, if nothing in it is a mistake.
pub fn of_read(read: &Read, key: &str, loaded: &Loaded, given: &Given) -> Result<Opened, Failure> {
    let settings = &loaded.settings;
    let found = read.bundle.pipeline(key);
    if !read.is_sound() {
        return Err(faults(read));
    }
    let found = found?;
    if !found.unprotected.is_empty() && !given.accept_unprotected {
        let next = format!("{} --accept-unprotected", again(loaded, given));
        return Err(Failure::of_all(
            found.unprotected.iter().map(|hidden| refused(NOT_RUN, &hidden.file, (hidden.line, hidden.column), &hidden.message, &next)),
        ));
    }
    let hidden = found.unprotected.iter().map(|clause| {
        let what = clause.message.split(':').next().unwrap_or_default();
        format!("{what} ({}:{}:{})", clause.file, clause.line, clause.column)
    });
    let pipeline = Pipeline::from_spec(found.spec.clone().unwrap_or_default())?;
    let (pipeline, layers) = opened::in_schema_of(settings, pipeline)?;
    let pipeline = pipeline.with_origins(Arc::clone(&found.origins));
    let not_applied = found.not_applied.iter().map(|note| format!("{} ({}:{}:{})", note.message, note.file, note.line, note.column));
    let pipeline =
        run_as(pipeline.with_unprotected(hidden).with_not_applied(not_applied), given.user_of(found.run_as.as_deref()).as_deref());
    Ok(Opened { settings: with_catalogue(loaded, settings.clone(), found), pipeline, layers })
}

/// The command that was typed, without its flags but for the pipeline of a run.
fn again(loaded: &Loaded, given: &Given) -> String {
    let named = loaded.settings.pipeline.iter().filter(|_| loaded.program == Program::Run && !given.names_none);
    let named = named.map(|path| format!(" --pipeline {}", path.display()));
    let subject = given.subject.iter().map(|subject| format!(" {subject}"));
    std::iter::once(loaded.program.command().to_owned()).chain(subject).chain(named).collect()
}

fn run_as(pipeline: Pipeline, user: Option<&str>) -> Pipeline {
    match user {
        Some(user) => pipeline.run_as(user),
        None => pipeline,
    }
}

/// The catalogue and the mode of the pipeline, where the settings do not say otherwise.
fn with_catalogue(loaded: &Loaded, mut settings: Settings, pipeline: &tributary_bundle::Pipeline) -> Settings {
    let named = pipeline.catalog.as_deref().and_then(Name::of);
    if let (Some(catalogue), Origin::Default) = (named, loaded.origin("catalogue")) {
        settings.catalogue = catalogue;
    }
    if let Origin::Default = loaded.origin("stream") {
        settings.stream = settings.stream || pipeline.continuous;
    }
    settings
}

/// Every error of a bundle as one failure.
pub fn faults(read: &Read) -> Failure {
    let errors = read.faults.iter().filter(|fault| fault.is_error());
    Failure::of_all(errors.map(|fault| refused(fault.code, &fault.file, (fault.line, fault.column), &fault.message, "tributary validate")))
}

fn refused(code: &str, file: &str, (line, column): (usize, usize), message: &str, next: &str) -> Failure {
    Failure {
        exit_code: ExitCode::BadInput,
        code: code.to_owned(),
        message: format!("{file}:{line}:{column}: {message}"),
        next: Some(next.to_owned()),
    }
}
