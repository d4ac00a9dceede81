//! SQL files as datasets, with every mistake at its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tributary_fault::Fault as _;
use tributary_pipeline_sql::{Construct, DatasetName, Definition, Flow, FlowAction, Lowered, Parsed, SqlFile, parse};
use tributary_specs::{Place, SourceFeed, Step, TableName};

use crate::bundle::Dataset;
use crate::error::Error;
use crate::fault::Faults;
use crate::folder::Folder;
use crate::load::{Loaded, Note, ToPlan};
use crate::pipelines::Pipeline;
use crate::place::{At, File, Files};
use crate::source::{Sources, is_sql};

/// What the SQL of one pipeline comes to.
pub(crate) struct Read {
    pub datasets: Vec<Dataset>,
    pub notes: Vec<Note>,
    /// None where a file has a mistake.
    pub lowered: Option<Lowered>,
    /// What has no mistake.
    pub parts: Lowered,
    /// Clauses that hide data from people and are not executed.
    pub unprotected: Vec<Note>,
    /// The other clauses that are not executed.
    pub not_applied: Vec<Note>,
    /// What is not the same on every platform.
    pub constructs: Vec<Construct>,
}

/// Reads the files of a pipeline with its parameters; names without catalogue or schema are its own.
pub(crate) fn read(pipeline: &Pipeline, sources: &mut Sources<'_>, faults: &mut Faults) -> Read {
    let mut texts = Vec::new();
    for path in &pipeline.files {
        if let Some(text) = sources.text_at(path, faults) {
            texts.push(SqlFile { path: path.clone(), text: text.to_owned() });
        }
    }
    let whole = texts.len() == pipeline.files.len();
    let options = tributary_pipeline_sql::Options { catalog: pipeline.catalog.clone(), schema: pipeline.schema.clone() };
    let parsed = parse(&texts, &pipeline.parameters, &options);
    let mut read = taken(&parsed, Some(&pipeline.key), sources.files(), faults);
    read.lowered = read.lowered.filter(|_| whole);
    read
}

/// What was parsed, in the words of a bundle. Files are named from the bundle's folder on.
fn taken(parsed: &Parsed, pipeline: Option<&str>, files: &Files, faults: &mut Faults) -> Read {
    for fault in &parsed.faults {
        let place = Place { file: fault.file.clone(), line: fault.line, column: fault.column };
        let message = match &fault.next {
            Some(instead) => format!("{}; {instead}", fault.message),
            None => fault.message.clone(),
        };
        faults.foreign(at(files, &place), fault.code.0, message, Some(format!("tributary help {}", fault.code)));
    }
    for clause in &parsed.not_applied {
        let error = Error::NotRun { what: clause.to_string(), reason: clause.reason.clone() };
        faults.warning(at(files, &clause.place), error);
    }
    let shown = |place: &Place| files.shown(at(files, place).file).to_owned();
    let placed = |place: &Place| Place { file: shown(place), ..place.clone() };
    let note = |place: &Place, kind: &str, message: String| Note::new(placed(place), kind, message);
    let datasets = parsed.datasets.iter().map(|definition| Dataset {
        pipeline: pipeline.map(str::to_owned),
        file: shown(&definition.place),
        ..dataset(definition, &parsed.flows)
    });
    Read {
        datasets: datasets.collect(),
        notes: parsed.notices.iter().map(|notice| note(&notice.place, notice.kind, notice.message.clone())).collect(),
        lowered: parsed.to_pipeline(pipeline.unwrap_or("sql")).ok(),
        parts: named_as_shown(parsed.sound_parts(), files),
        unprotected: parsed
            .unprotected()
            .map(|hidden| note(&hidden.place, "unprotected", format!("{}: {}", hidden.clause, hidden.reason)))
            .collect(),
        not_applied: parsed
            .not_applied
            .iter()
            .filter(|clause| !clause.protects)
            .map(|clause| note(&clause.place, "not_applied", format!("{clause}: {}", clause.reason)))
            .collect(),
        constructs: parsed.constructs.iter().map(|construct| Construct { place: placed(&construct.place), ..construct.clone() }).collect(),
    }
}

/// Places of specs name files as messages do.
fn named_as_shown(mut lowered: Lowered, files: &Files) -> Lowered {
    let shown = |file: &str| files.number_of(file).map_or_else(|| file.to_owned(), |number| files.shown(number).to_owned());
    lowered.origins = Arc::new(lowered.origins.shown_as(shown));
    lowered
}

/// What can be planned of a pipeline: the parts that have no mistake, with the feeds of the bundle.
pub(crate) fn to_plan(parts: Lowered, feeds: &[(SourceFeed, At)], run_as: Option<&str>) -> ToPlan {
    let mut spec = parts.pipeline;
    add_feeds(&mut spec, feeds);
    ToPlan { spec, origins: parts.origins, run_as: run_as.map(str::to_owned) }
}

/// Adds the feeds whose tables are read; tells where they are declared.
fn add_feeds(spec: &mut tributary_specs::Pipeline, feeds: &[(SourceFeed, At)]) -> Vec<At> {
    let is_read = |feed: &SourceFeed| spec.external.iter().any(|table| table.same_without_case(&feed.table));
    let (read, places): (Vec<SourceFeed>, Vec<At>) = feeds.iter().filter(|(feed, _)| is_read(feed)).cloned().unzip();
    spec.feeds.extend(read);
    let made: Vec<TableName> = spec.feeds.iter().map(|feed| feed.table.clone()).collect();
    spec.external.retain(|table| !made.iter().any(|feed| feed.same_without_case(table)));
    spec.respell_sources();
    places
}

fn at(files: &Files, place: &Place) -> At {
    At::new(files.number_of(&place.file).unwrap_or(0), place.line, place.column)
}

/// A definition with the flows that write it.
fn dataset(definition: &Definition, flows: &[Flow]) -> Dataset {
    let flows: Vec<&Flow> = flows.iter().filter(|flow| same(&flow.target, &definition.name)).collect();
    let mut reads: Vec<String> = Vec::new();
    let mut keys = Vec::new();
    let mut clauses = definition.clauses.clone();
    let mut take = |query: &tributary_pipeline_sql::Query| {
        for read in query.reads.iter().filter_map(|read| read.name.as_ref()).map(ToString::to_string) {
            if !reads.contains(&read) {
                reads.push(read);
            }
        }
    };
    if let Some(query) = &definition.query {
        take(query);
    }
    for flow in flows {
        match &flow.action {
            FlowAction::Append(query) => take(query),
            FlowAction::AutoCdc(body) => {
                take(&body.source);
                keys.clone_from(&body.keys.value);
                clauses.extend(["AUTO CDC".to_owned(), format!("SCD TYPE {}", body.scd_type)]);
                clauses.extend(body.apply_as_delete_when.as_ref().map(|_| "APPLY AS DELETE WHEN".to_owned()));
                clauses.extend(body.apply_as_truncate_when.as_ref().map(|_| "APPLY AS TRUNCATE WHEN".to_owned()));
            }
        }
        if flow.once {
            clauses.push("ONCE".to_owned());
        }
    }
    Dataset {
        pipeline: None,
        name: definition.name.to_string(),
        kind: definition.kind.to_string(),
        reads,
        keys: if keys.is_empty() { definition.primary_key.clone() } else { keys },
        expectations: definition.expectations.iter().map(|rule| rule.value.name.clone()).collect(),
        clauses,
        file: String::new(),
        line: definition.place.line,
        column: definition.place.column,
    }
}

fn same(a: &DatasetName, b: &DatasetName) -> bool {
    a.to_string().eq_ignore_ascii_case(&b.to_string())
}

/// The specs of a pipeline with the feeds of the bundle whose tables it reads, and what is wrong with them together.
pub(crate) fn with_feeds(
    lowered: Lowered,
    feeds: &[(SourceFeed, At)],
    files: &Files,
    faults: &mut Faults,
) -> (tributary_specs::Pipeline, Option<String>) {
    let mut spec = lowered.pipeline;
    let own = spec.feeds.len();
    let places = add_feeds(&mut spec, feeds);
    for problem in spec.validate() {
        let table = match problem.path.steps() {
            [Step::Field(list), Step::Index(index), ..] => match list.as_str() {
                "feeds" => spec.feeds.get(*index).map(|feed| &feed.table),
                "silver" => spec.silver.get(*index).map(|spec| &spec.table),
                _ => spec.gold.get(*index).map(|spec| &spec.table),
            },
            _ => None,
        };
        let of_feed = match problem.path.steps() {
            [Step::Field(list), Step::Index(index), ..] if list == "feeds" => index.checked_sub(own).and_then(|at| places.get(at)).copied(),
            _ => None,
        };
        let of_dataset = table.and_then(|table| lowered.places.get(table)).map(|place| at(files, place));
        let at = of_feed.or(of_dataset).unwrap_or(At::start_of(0));
        faults.foreign(at, problem.error.code().0, format!("{}: {}", problem.path, problem.error), problem.error.next_command());
    }
    (spec, lowered.catalog)
}

/// Reads SQL files and folders of them, without a bundle: one pipeline, called after the first path. Names without a schema are
/// mistakes unless a file says `USE`.
pub fn load_sql(paths: &[PathBuf], parameters: &BTreeMap<String, String>) -> Loaded {
    let mut files = Files::default();
    let mut faults = Faults::default();
    let mut texts = Vec::new();
    let mut whole = true;
    for path in paths {
        for (shown, found) in files_of(path) {
            let number = files.add(File { relative: shown.clone(), shown: shown.clone(), text: String::new(), lines: Vec::new() });
            match found.and_then(|(folder, name)| Folder::open(&folder)?.text_of(&name)) {
                Ok(text) => {
                    texts.push(SqlFile { path: shown, text: text.clone() });
                    files.set_text(number, text);
                }
                Err(Located { line, column, error }) => {
                    whole = false;
                    faults.error(At { file: number, line, column }, error);
                }
            }
        }
    }
    let parsed = parse(&texts, parameters, &tributary_pipeline_sql::Options::default());
    let read = taken(&parsed, None, &files, &mut faults);
    let mut loaded = Loaded { files: files.names(), notes: read.notes, constructs: read.constructs, ..Loaded::default() };
    loaded.bundle.datasets = read.datasets;
    let origins = Arc::clone(&read.parts.origins);
    loaded.to_plan = vec![to_plan(read.parts, &[], None)];
    if let Some(lowered) = read.lowered.filter(|_| whole) {
        let (spec, catalog) = with_feeds(lowered, &[], &files, &mut faults);
        let key = paths.first().and_then(|path| path.file_stem()).map_or("sql".to_owned(), |name| name.to_string_lossy().into_owned());
        let spec = tributary_specs::Pipeline { name: key.clone(), ..spec };
        let pipeline = Pipeline {
            files: loaded.files.clone(),
            catalog,
            parameters: parameters.clone(),
            unprotected: read.unprotected,
            not_applied: read.not_applied,
            origins,
            ..Pipeline::new(key, spec)
        };
        loaded.bundle.pipelines.insert(pipeline.key.clone(), pipeline);
    }
    loaded.faults = faults.sorted(&files);
    loaded
}

/// A mistake and where in a file it is.
pub(crate) struct Located {
    pub line: u32,
    pub column: u32,
    pub error: Error,
}

impl From<Error> for Located {
    fn from(error: Error) -> Self {
        Self { line: 1, column: 1, error }
    }
}

/// A file's name in messages, and its folder and name there.
type Found = (String, Result<(PathBuf, String), Located>);

/// Each SQL file of a path.
fn files_of(path: &Path) -> Vec<Found> {
    let shown = path.to_string_lossy().into_owned();
    if path.is_dir() {
        let folder = match Folder::open(path) {
            Ok(folder) => folder,
            Err(error) => return vec![(shown, Err(error.into()))],
        };
        let matches = folder.below("");
        let found = matches.paths.into_iter().filter(|name| is_sql(name)).map(|name| (folder.name_of(&name), Ok((path.to_owned(), name))));
        return matches.mistakes.into_iter().map(|error| (shown.clone(), Err(error.into()))).chain(found).collect();
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match path.file_name().and_then(|name| name.to_str()) {
        Some(name) => vec![(shown, Ok((parent.to_owned(), name.to_owned())))],
        None => vec![(shown.clone(), Err(Error::Unreadable { path: shown, reason: "it is not a file".to_owned() }.into()))],
    }
}
