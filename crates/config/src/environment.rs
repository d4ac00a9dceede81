//! Settings from variables: of the environment, or of a `.env` file.

use std::ffi::OsString;

use tributary_fault::nearest;

use crate::dotenv::DotenvEntry;
use crate::error::Error;
use crate::origin::Origin;
use crate::registry::REGISTRY;
use crate::resolve::{Given, Source, Warning};
use crate::setting::{PREFIX, Reach};
use crate::value::Raw;

/// Variables with the prefix that are not settings: they belong to the project's own test and build commands.
const NOT_SETTINGS: [&str; 1] = ["TRIBUTARY_BLESS"];

/// What the environment gives.
pub(crate) fn source(environment: &[(OsString, OsString)], warnings: &mut Vec<Warning>, errors: &mut Vec<Error>) -> Source {
    let mut source = Source::default();
    for (variable, value) in environment {
        let Some(variable) = variable.to_str().filter(|name| is_ours(name)) else { continue };
        let origin = Origin::Environment { variable: variable.to_owned() };
        match value.to_str() {
            Some(value) => take(variable, value, origin, &mut source, warnings, errors),
            None => errors.push(Error::NotUnicode { variable: variable.to_owned() }),
        }
    }
    for (variable, value) in environment {
        if let (Some(variable), Some(value)) = (variable.to_str(), value.to_str()) {
            take_standard(variable, value, || Origin::Environment { variable: variable.to_owned() }, &mut source);
        }
    }
    source
}

/// What the lines of a `.env` file give; lines without our prefix are other programs' business.
pub(crate) fn dotenv_source(file: &str, entries: &[DotenvEntry], warnings: &mut Vec<Warning>, errors: &mut Vec<Error>) -> Source {
    let mut source = Source::default();
    for DotenvEntry { name, value, line, earlier_line } in entries.iter().filter(|entry| is_ours(&entry.name)) {
        if let Some(earlier) = earlier_line {
            warnings.push(Warning::GivenTwice { variable: name.clone(), file: file.to_owned(), holds: *line, earlier: *earlier });
        }
        let origin = Origin::Dotenv { file: file.to_owned(), line: *line };
        take(name, value, origin, &mut source, warnings, errors);
    }
    for DotenvEntry { name, value, line, .. } in entries {
        take_standard(name, value, || Origin::Dotenv { file: file.to_owned(), line: *line }, &mut source);
    }
    source
}

/// A variable of a standard, where ours says nothing; an empty one says nothing either.
fn take_standard(variable: &str, value: &str, origin: impl FnOnce() -> Origin, source: &mut Source) {
    let named = REGISTRY.iter().find(|setting| setting.standard_variables.contains(&variable));
    if let Some(setting) = named.filter(|_| !value.trim().is_empty()) {
        source.entry(setting.name).or_insert_with(|| Given { raw: Raw::One(value.to_owned()), origin: origin() });
    }
}

fn is_ours(variable: &str) -> bool {
    variable.starts_with(PREFIX) && !NOT_SETTINGS.contains(&variable)
}

fn take(variable: &str, value: &str, origin: Origin, source: &mut Source, warnings: &mut Vec<Warning>, errors: &mut Vec<Error>) {
    let Some(setting) = REGISTRY.iter().find(|setting| setting.variable() == variable) else {
        let name = variable.trim_start_matches(PREFIX);
        let nearest = nearest(name, REGISTRY.iter().map(|setting| setting.name)).map(|name| format!("{PREFIX}{}", name.to_uppercase()));
        errors.push(Error::UnknownName { name: variable.to_owned(), place: origin, nearest });
        return;
    };
    let misplaced = match setting.reach {
        Reach::Everywhere | Reach::BeforeFile => false,
        Reach::BeforeDotenv => matches!(origin, Origin::Dotenv { .. }),
        Reach::CommandLine => true,
    };
    if misplaced {
        errors.push(Error::Misplaced { setting: setting.name, place: origin });
    } else if value.trim().is_empty() && !setting.kind.is_text() {
        warnings.push(Warning::EmptyVariable { variable: variable.to_owned(), origin });
    } else {
        source.insert(setting.name, Given { raw: Raw::One(value.to_owned()), origin });
    }
}
