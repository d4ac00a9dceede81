//! What can be wrong with settings.

use std::fmt;

use tributary_fault::{Fault, FaultClass, FaultCode};

use crate::origin::Origin;

/// One thing that is wrong with the settings. All of them are for a person to change (exit 2).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// CF0001. A name that looks like a setting is not one: a key of the file, or a variable of the environment or `.env`
    /// that begins with `TRIBUTARY_`. It is refused rather than ignored because a misspelt setting that is ignored is
    /// found out in production. Correct the name, or remove it; `docs/reference/settings.md` lists every setting.
    #[error("unknown setting {name:?} ({place}){}", hint(nearest.as_deref()))]
    UnknownName {
        /// As it was written.
        name: String,
        /// Where it stands.
        place: Origin,
        /// The nearest name that is a setting, written the same way.
        nearest: Option<String>,
    },
    /// CF0002. The value of a setting is not what the setting takes. The message says where the value came from: of all
    /// places that give the setting, the one that wins.
    #[error("{setting}{} ({origin}) is not {expected}", shown(value.as_deref()))]
    Value {
        /// The setting's name.
        setting: &'static str,
        /// What was given; left out for secrets.
        value: Option<String>,
        /// Where it came from.
        origin: Origin,
        /// What the setting takes.
        expected: String,
    },
    /// CF0003. A line of the `.env` file cannot be read: there is no `=`, the name is not a name, a quote is not closed, an
    /// escape is unknown, or a `${NAME}` refers to nothing. The rules are in `docs/reference/settings.md`.
    #[error("{file} line {line}: {problem}")]
    DotenvLine {
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// CF0004. A file named by `--env-file`, `--config` or their variables cannot be read: it is missing, is a folder, may
    /// not be read by this user, or is not UTF-8. A `.env` or `tributary.toml` that nobody named may be missing, but not
    /// unreadable.
    #[error("cannot read {file} ({named_by})")]
    File {
        /// The file as it was named.
        file: String,
        /// Who names it, or where it was found.
        named_by: String,
        /// Why it cannot be read.
        #[source]
        source: std::io::Error,
    },
    /// CF0005. The settings file is not TOML; the message has the line and column.
    #[error("{file} line {line} column {column}: {problem}")]
    FileSyntax {
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// CF0006. A setting stands where it has no meaning: one that says what to do now (`print_config`, `check`) outside the
    /// command line, or one that names a file of settings inside such a file. Give it on the command line.
    #[error("{setting} cannot be set here ({place})")]
    Misplaced {
        /// The setting's name.
        setting: &'static str,
        /// Where it stands.
        place: Origin,
    },
    /// CF0007. A variable whose name begins with `TRIBUTARY_` holds bytes that are not UTF-8.
    #[error("the value of {variable} (environment) is not UTF-8")]
    NotUnicode {
        /// The variable.
        variable: String,
    },
    /// CF0008. `--target` names a target for which the settings file has no `[targets.NAME]` table.
    #[error("target {target:?} ({origin}) has no table [targets.{target}] in {file}{}", hint(nearest.as_deref()))]
    UnknownTarget {
        /// The name.
        target: String,
        /// Where it was given.
        origin: Origin,
        /// The settings file, or the one that would have been read.
        file: String,
        /// The nearest name that has a table.
        nearest: Option<String>,
    },
    /// CF0009. The settings file gives one setting twice, with dashes and with underscores. Keep one.
    #[error("{setting} is given twice in {file}, in lines {first} and {second}")]
    GivenTwice {
        /// The setting's name.
        setting: &'static str,
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        first: usize,
        /// Counted from 1.
        second: usize,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(", nearest is {name:?}")).unwrap_or_default()
}

fn shown(value: Option<&str>) -> String {
    value.map(|value| format!(" = {value:?}")).unwrap_or_default()
}

impl Fault for Error {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        FaultCode(match self {
            Self::UnknownName { .. } => "CF0001",
            Self::Value { .. } => "CF0002",
            Self::DotenvLine { .. } => "CF0003",
            Self::File { .. } => "CF0004",
            Self::FileSyntax { .. } => "CF0005",
            Self::Misplaced { .. } => "CF0006",
            Self::NotUnicode { .. } => "CF0007",
            Self::UnknownTarget { .. } => "CF0008",
            Self::GivenTwice { .. } => "CF0009",
        })
    }

    fn next_command(&self) -> Option<String> {
        Some(match self {
            Self::File { .. } | Self::NotUnicode { .. } => format!("tributary help {}", self.code()),
            Self::UnknownName { .. }
            | Self::Value { .. }
            | Self::DotenvLine { .. }
            | Self::FileSyntax { .. }
            | Self::Misplaced { .. }
            | Self::UnknownTarget { .. }
            | Self::GivenTwice { .. } => "tributary run --help".to_owned(),
        })
    }
}

/// Everything that is wrong with the settings, in the order it was found; at least one thing.
#[derive(Debug)]
pub struct Refusal(Vec<Error>);

impl Refusal {
    pub(crate) fn new(errors: Vec<Error>) -> Self {
        debug_assert!(!errors.is_empty(), "a refusal has a reason");
        Self(errors)
    }

    /// The errors, at least one.
    pub fn errors(&self) -> &[Error] {
        &self.0
    }
}

impl fmt::Display for Refusal {
    /// A line an error, its cause behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            match std::error::Error::source(error) {
                Some(cause) => write!(f, "{error}: {cause}")?,
                None => error.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

impl Fault for Refusal {
    fn class(&self) -> FaultClass {
        FaultClass::BadInput
    }

    fn code(&self) -> FaultCode {
        self.0.first().map_or(FaultCode("CF0002"), Fault::code)
    }

    fn next_command(&self) -> Option<String> {
        self.0.first().and_then(Fault::next_command)
    }
}
