//! Settings as flags.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, ArgMatches};

use crate::origin::Origin;
use crate::registry::REGISTRY;
use crate::resolve::{Given, Source};
use crate::setting::{Program, Reach, Setting};
use crate::value::{Kind, Raw};

/// The flags of a program, for its `clap::Command`. They carry no default, so that a flag nobody gave never hides another source.
pub fn arguments(program: Program) -> impl Iterator<Item = Arg> {
    program.settings().enumerate().map(|(position, setting)| argument(setting, position))
}

fn argument(setting: &'static Setting, position: usize) -> Arg {
    let paragraphs = setting.paragraphs();
    let arg = Arg::new(setting.name)
        .long(setting.flag())
        .visible_aliases(setting.aliases.iter().copied())
        .help_heading(setting.group.heading())
        .display_order(setting.group as usize * 100 + position)
        .help(format!("{}{}", paragraphs.first().map_or("", String::as_str), default_note(setting)))
        .long_help(long_help(setting, &paragraphs));
    let arg = match setting.short {
        Some(letter) => arg.short(letter),
        None => arg,
    };
    match setting.kind {
        Kind::Switch => arg
            .value_name("true|false")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_default_value(true)
            .action(ArgAction::Set),
        Kind::List(Kind::Text) => arg.value_name(setting.value_name).action(ArgAction::Append).value_delimiter(','),
        Kind::List(_) => arg.value_name(setting.value_name).action(ArgAction::Append),
        _ => arg.value_name(setting.value_name).action(ArgAction::Set),
    }
}

fn default_note(setting: &Setting) -> String {
    match setting.default {
        Some(default) if setting.kind != Kind::Switch => format!(" [default: {default}]"),
        _ => String::new(),
    }
}

fn long_help(setting: &Setting, paragraphs: &[String]) -> String {
    let mut text = paragraphs.join("\n\n");
    let mut facts = Vec::new();
    if !matches!(setting.kind, Kind::Switch | Kind::Text | Kind::Path) {
        facts.push(format!("Takes {}.", setting.kind.expected()));
    }
    if let Some(default) = setting.default.filter(|_| setting.kind != Kind::Switch) {
        facts.push(format!("[default: {default}]"));
    }
    if setting.reach != Reach::CommandLine {
        facts.push(format!("[env: {}]", setting.variables().join(", ")));
    }
    if !facts.is_empty() {
        text.push_str("\n\n");
        text.push_str(&facts.join(" "));
    }
    text
}

/// The command line with dashes for underscores in the names of flags: `--starting_version` is `--starting-version`.
///
/// Only names of settings are touched, and nothing after a lone `--`.
pub fn normalise(arguments: &[OsString]) -> Vec<OsString> {
    let mut literal = false;
    arguments
        .iter()
        .map(|argument| {
            literal |= argument == "--";
            if literal { argument.clone() } else { normalised(argument).unwrap_or_else(|| argument.clone()) }
        })
        .collect()
}

fn normalised(argument: &OsStr) -> Option<OsString> {
    let text = argument.to_str()?.strip_prefix("--")?;
    let (name, value) = text.split_at(text.find('=').unwrap_or(text.len()));
    let flag = name.replace('_', "-");
    let known = REGISTRY.iter().any(|setting| setting.flag() == flag || setting.aliases.contains(&flag.as_str()));
    known.then(|| format!("--{flag}{value}").into())
}

/// What the command line gives.
pub(crate) fn source(program: Program, matches: &ArgMatches) -> Source {
    let mut source = Source::default();
    for setting in program.settings() {
        let Ok(Some(values)) = matches.try_get_many::<String>(setting.name) else { continue };
        let mut values: Vec<String> = values.cloned().collect();
        let raw = match setting.kind {
            Kind::List(_) => Raw::Many(values),
            _ => Raw::One(values.pop().unwrap_or_default()),
        };
        source.insert(setting.name, Given { raw, origin: Origin::CommandLine });
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalise_text(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        normalise(&arguments).into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn dashes_and_underscores_are_equal_in_names_of_flags_only() {
        assert_eq!(
            normalise_text(&["--starting_version=3", "--max-files_per_trigger", "a_b", "--only=my_table"]),
            ["--starting-version=3", "--max-files-per-trigger", "a_b", "--only=my_table"]
        );
    }

    #[test]
    fn unknown_flags_and_what_follows_two_dashes_stay_as_typed() {
        assert_eq!(normalise_text(&["--no_such", "--", "--base_data_path"]), ["--no_such", "--", "--base_data_path"]);
    }

    #[test]
    fn every_program_has_flags_that_do_not_collide() {
        for program in Program::ALL {
            clap::Command::new("any").args(arguments(*program)).debug_assert();
        }
    }
}
