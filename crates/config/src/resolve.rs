//! Weighs the sources: per setting, the first that gives it wins.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use clap::ArgMatches;
use tributary_fault::nearest;

use crate::dotenv::Dotenv;
use crate::error::{Error, Refusal};
use crate::inputs::Inputs;
use crate::origin::Origin;
use crate::registry::{REGISTRY, Settings};
use crate::setting::{Program, Setting};
use crate::value::{Field, Raw};
use crate::{arguments, environment, file};

/// A text and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) raw: Raw,
    pub(crate) origin: Origin,
}

/// What one source gives, by name of setting.
pub(crate) type Source = BTreeMap<&'static str, Given>;

/// The winner of each setting that anybody, or the default, gives.
#[derive(Debug)]
pub(crate) struct Resolved {
    winners: Source,
}

impl Resolved {
    /// Of several sources, greatest priority first, the first that gives a setting.
    fn of(sources: impl IntoIterator<Item = Source>) -> Self {
        let mut resolved = Self::defaults();
        let mut given = Source::default();
        for source in sources {
            for (name, value) in source {
                given.entry(name).or_insert(value);
            }
        }
        resolved.winners.extend(given);
        resolved
    }

    /// What holds when nobody says anything.
    pub(crate) fn defaults() -> Self {
        let default = |setting: &Setting| {
            setting.default.map(|text| (setting.name, Given { raw: Raw::One(text.to_owned()), origin: Origin::Default }))
        };
        Self { winners: REGISTRY.iter().filter_map(default).collect() }
    }

    /// The typed value of a setting, or `None` and an error.
    pub(crate) fn field<T: Field>(&self, name: &'static str, errors: &mut Vec<Error>) -> Option<T> {
        let given = self.winners.get(name);
        match T::read(given.map(|given| &given.raw)) {
            Ok(value) => Some(value),
            Err(_) => {
                let secret = REGISTRY.iter().any(|setting| setting.name == name && setting.secret);
                let text = given.map(|given| match &given.raw {
                    Raw::One(text) => text.clone(),
                    Raw::Many(parts) => parts.join(","),
                });
                errors.push(Error::Value {
                    setting: name,
                    value: text.filter(|_| !secret),
                    origin: self.origin(name),
                    expected: T::KIND.expected(),
                });
                None
            }
        }
    }

    fn origin(&self, name: &str) -> Origin {
        self.winners.get(name).map_or(Origin::Default, |given| given.origin.clone())
    }
}

/// The settings of one program, where each came from, and what a person should know.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub settings: Settings,
    /// Things that are odd but no reason to stop.
    pub warnings: Vec<Warning>,
    /// Whose settings these are.
    pub program: Program,
    resolved: Resolved,
}

impl Loaded {
    /// Where the value of a setting came from.
    pub fn origin(&self, name: &str) -> Origin {
        self.resolved.origin(name)
    }
}

/// Something odd that is no reason to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// An empty variable of a setting that is not a text counts as not set.
    EmptyVariable {
        /// Its name.
        variable: String,
        /// Where it stands.
        origin: Origin,
    },
    /// A `.env` file gives a name twice; the last line holds.
    GivenTwice {
        /// The name.
        variable: String,
        /// The file as it was named.
        file: String,
        /// The line that holds.
        holds: usize,
        /// A line that does not.
        earlier: usize,
    },
    /// `base_checkpoint_path` is set; no checkpoint is written there.
    NoCheckpoints,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyVariable { variable, origin } => write!(f, "{variable} ({origin}) is empty and counts as not set"),
            Self::GivenTwice { variable, file, holds, earlier } => {
                write!(f, "{variable} is given twice in {file}, in lines {earlier} and {holds}; line {holds} holds")
            }
            Self::NoCheckpoints => {
                f.write_str("base_checkpoint_path holds no checkpoints: positions ride in the tables' commits, only spill files go there")
            }
        }
    }
}

/// Reads every source and weighs them: command line > environment > `.env` > settings file > default, per setting.
///
/// `matches` are those of a command made with [`arguments`](crate::arguments()) for the same program. Files are read below
/// `inputs.folder`: `--env-file` instead of `.env`, `--config` instead of `tributary.toml`; no other folder is looked into.
/// Every problem of every source is in the [`Refusal`].
pub fn load(program: Program, matches: &ArgMatches, inputs: &Inputs) -> Result<Loaded, Refusal> {
    weigh(program, matches, inputs, false)
}

/// As [`load`] where a bundle has targets, too: one that the settings file has no table for is left to the bundle.
pub fn load_beside_bundle(program: Program, matches: &ArgMatches, inputs: &Inputs) -> Result<Loaded, Refusal> {
    weigh(program, matches, inputs, true)
}

fn weigh(program: Program, matches: &ArgMatches, inputs: &Inputs, beside_bundle: bool) -> Result<Loaded, Refusal> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let command_line = arguments::source(program, matches);
    let environment = environment::source(&inputs.environment, &mut warnings, &mut errors);

    let env_file = NamedFile::of("env_file", ".env", &[&command_line, &environment]);
    let dotenv = match env_file.read(&inputs.folder, &mut errors) {
        Some(text) => dotenv(&env_file, &text, inputs, &mut warnings, &mut errors),
        None => Source::default(),
    };
    let config_file = NamedFile::of("config", "tributary.toml", &[&command_line, &environment, &dotenv]);
    let mut file = match config_file.read(&inputs.folder, &mut errors) {
        Some(text) => file::parse(&config_file.name, &text, &mut errors),
        None => file::FileSettings::default(),
    };
    let mut unknown = Vec::new();
    let target = chosen_target(&[&command_line, &environment, &dotenv, &file.general], &config_file.name, &mut file.targets, &mut unknown);
    errors.extend(unknown.into_iter().filter(|_| !beside_bundle));

    let resolved = Resolved::of([command_line, environment, dotenv, target, file.general]);
    let settings = Settings::read(&resolved, &mut errors);
    let Some(settings) = settings.filter(|_| errors.is_empty()) else { return Err(Refusal::new(errors)) };
    if settings.base_checkpoint_path.is_some() && program.moves_data() {
        warnings.push(Warning::NoCheckpoints);
    }
    Ok(Loaded { settings, warnings, program, resolved })
}

fn dotenv(file: &NamedFile, text: &str, inputs: &Inputs, warnings: &mut Vec<Warning>, errors: &mut Vec<Error>) -> Source {
    let outer = |name: &str| inputs.variable(name)?.to_str().map(str::to_owned);
    let Dotenv { entries, problems } = Dotenv::parse(text, outer);
    errors.extend(problems.into_iter().map(|problem| Error::DotenvLine {
        file: file.name.clone(),
        line: problem.line,
        problem: problem.problem,
    }));
    environment::dotenv_source(&file.name, &entries, warnings, errors)
}

/// The entries of the chosen target's table; none when no target is chosen.
fn chosen_target(sources: &[&Source], file: &str, targets: &mut BTreeMap<String, Source>, errors: &mut Vec<Error>) -> Source {
    let Some((target, origin)) = first(sources, "target").filter(|(target, _)| !target.is_empty()) else { return Source::default() };
    targets.remove(&target).unwrap_or_else(|| {
        let nearest = nearest(&target, targets.keys().map(String::as_str)).map(str::to_owned);
        errors.push(Error::UnknownTarget { target, origin, file: file.to_owned(), nearest });
        Source::default()
    })
}

/// The first of the sources that gives a setting of one text.
fn first(sources: &[&Source], name: &str) -> Option<(String, Origin)> {
    let given = sources.iter().find_map(|source| source.get(name))?;
    match &given.raw {
        Raw::One(text) => Some((text.clone(), given.origin.clone())),
        Raw::Many(_) => None,
    }
}

/// A file of settings: one a person named, which must be there, or the usual one, which may be missing.
struct NamedFile {
    name: String,
    named_by: Option<Origin>,
}

impl NamedFile {
    fn of(setting: &str, usual: &str, sources: &[&Source]) -> Self {
        match first(sources, setting) {
            Some((name, origin)) => Self { name, named_by: Some(origin) },
            None => Self { name: usual.to_owned(), named_by: None },
        }
    }

    fn read(&self, folder: &Path, errors: &mut Vec<Error>) -> Option<String> {
        match std::fs::read_to_string(folder.join(&self.name)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.named_by.is_none() => None,
            Err(source) => {
                let named_by =
                    self.named_by.as_ref().map_or_else(|| "in the working folder".to_owned(), |origin| format!("named by {origin}"));
                errors.push(Error::File { file: self.name.clone(), named_by, source });
                None
            }
        }
    }
}
