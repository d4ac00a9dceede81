//! The next command of an error, with the places that the failed command line named: typed as it stands, it looks at the same lake.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::command;

/// Settings that say where things are; the others are about the run that failed.
const PLACES: [&str; 8] = ["catalogue", "warehouse", "db_name", "base_data_path", "pipeline", "target", "config", "env_file"];

/// `next`, with each flag of the command line that says where things are, that its command has and it does not give itself.
pub fn at_the_same_places(next: &str, matches: &ArgMatches) -> String {
    let mut text = next.to_owned();
    let Some(command) = named(next) else { return text };
    for place in PLACES {
        let flag = command.get_arguments().find(|argument| argument.get_id() == place).and_then(|argument| argument.get_long());
        let Some(flag) = flag.filter(|flag| !next.contains(&format!("--{flag}"))) else { continue };
        if !matches!(matches.try_contains_id(place), Ok(true)) || matches.value_source(place) != Some(ValueSource::CommandLine) {
            continue;
        }
        for value in matches.get_raw(place).into_iter().flatten() {
            // a URL may hold a secret
            if let Some(value) = value.to_str().filter(|value| !value.contains("://")) {
                text.push_str(&format!(" --{flag} {}", quoted(value)));
            }
        }
    }
    text
}

/// The command that a text begins, unless it only asks for help.
fn named(next: &str) -> Option<clap::Command> {
    let mut words = next.split_whitespace();
    let mut command = command::umbrella();
    if words.next() != Some(command.get_name()) || next.contains("--help") {
        return None;
    }
    for word in words {
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None => break,
        }
    }
    Some(command)
}

fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%".contains(letter);
    if !value.is_empty() && value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arguments: &[&str], next: &str) -> String {
        let matches = command::umbrella().try_get_matches_from([&["tributary"], arguments].concat()).unwrap();
        let (_, mut matches) = matches.subcommand().unwrap();
        while let Some((_, inner)) = matches.subcommand() {
            matches = inner;
        }
        at_the_same_places(next, matches)
    }

    #[test]
    fn a_next_command_looks_where_the_failed_one_looked() {
        let sql = ["sql", "-w", "data/demo 1/lake", "select 1"];
        assert_eq!(after(&sql, "tributary show tables"), "tributary show tables --warehouse 'data/demo 1/lake'");
        assert_eq!(after(&sql, "tributary help SQ0003"), "tributary help SQ0003");
        let validate = ["validate", "-p", "a.yml", "-p", "b.yml"];
        assert_eq!(after(&validate, "tributary validate"), "tributary validate --pipeline a.yml --pipeline b.yml");
        assert_eq!(after(&validate, "tributary run --pipeline FILE"), "tributary run --pipeline FILE");
        assert_eq!(after(&validate, "tributary run --help"), "tributary run --help");
        assert_eq!(after(&["show", "history", "a.b", "--warehouse=s3://k:secret@b/x"], "tributary show tables"), "tributary show tables");
    }
}
