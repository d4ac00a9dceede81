//! The next command of an error, with the places that the failed command line named: typed as it stands, it looks at the same lake.

use std::sync::Arc;

use clap::ArgMatches;
use clap::parser::ValueSource;
use tributary::{DatasetReport, ProgressEvent, ProgressSink, RunReport};

use crate::command;
use crate::run::Sink;

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

/// The same for a message of a run's report, which ends with its next command.
pub fn in_message(message: &str, matches: &ArgMatches) -> String {
    match message.strip_suffix(')').and_then(|message| message.rsplit_once(NEXT)) {
        Some((before, next)) => format!("{before}{NEXT}{})", at_the_same_places(next, matches)),
        None => message.to_owned(),
    }
}

/// What stands before the next command in a message.
const NEXT: &str = " (next: ";

/// The errors of a run's report, each with its next command at the same places.
pub fn in_report(report: &mut RunReport, matches: &ArgMatches) {
    report.datasets.iter_mut().for_each(|dataset| in_dataset(dataset, matches));
}

fn in_dataset(report: &mut DatasetReport, matches: &ArgMatches) {
    if let Some(error) = &mut report.error {
        error.message = in_message(&error.message, matches);
    }
}

/// A sink that tells another of the same events, next commands of errors at the same places.
pub fn in_events(sink: Sink, matches: &ArgMatches) -> Sink {
    Arc::new(Placed { sink, matches: matches.clone() })
}

#[derive(Debug)]
struct Placed {
    sink: Sink,
    matches: ArgMatches,
}

impl ProgressSink for Placed {
    fn event(&self, event: &ProgressEvent) {
        match event {
            ProgressEvent::DatasetFinished { layer, report } if report.error.is_some() => {
                let mut report = report.clone();
                in_dataset(&mut report, &self.matches);
                self.sink.event(&ProgressEvent::DatasetFinished { layer: *layer, report });
            }
            other => self.sink.event(other),
        }
    }
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

    fn matched(arguments: &[&str]) -> ArgMatches {
        let matches = command::umbrella().try_get_matches_from([&["tributary"], arguments].concat()).unwrap();
        let (_, mut matches) = matches.subcommand().unwrap();
        while let Some((_, inner)) = matches.subcommand() {
            matches = inner;
        }
        matches.clone()
    }

    fn after(arguments: &[&str], next: &str) -> String {
        at_the_same_places(next, &matched(arguments))
    }

    #[test]
    fn the_next_command_of_a_datasets_error_looks_there_too() {
        let matches = matched(&["run", "--warehouse", "lake", "--pipeline", "shop.yml"]);
        let message = "silver.orders lost a race (again) (next: tributary run --only silver.orders)";
        let placed = "silver.orders lost a race (again) (next: tributary run --only silver.orders --warehouse lake --pipeline shop.yml)";
        assert_eq!(in_message(message, &matches), placed);
        assert_eq!(in_message("no word of what next (yet)", &matches), "no word of what next (yet)");

        #[derive(Debug, Default)]
        struct Heard(std::sync::Mutex<Vec<String>>);
        impl ProgressSink for Heard {
            fn event(&self, event: &ProgressEvent) {
                if let ProgressEvent::DatasetFinished { report, .. } = event {
                    self.0.lock().unwrap().extend(report.error.iter().map(|error| error.message.clone()));
                }
            }
        }
        let error = tributary::ReportedError { code: "SM0015".into(), message: message.into(), exit_code: 1 };
        let report = DatasetReport { error: Some(error), ..Default::default() };
        let heard = Arc::new(Heard::default());
        in_events(Arc::clone(&heard) as Sink, &matches)
            .event(&ProgressEvent::DatasetFinished { layer: tributary::Layer::Silver, report: report.clone().into() });
        assert_eq!(*heard.0.lock().unwrap(), [placed]);
        let mut run = RunReport { datasets: vec![report], ..Default::default() };
        in_report(&mut run, &matches);
        assert_eq!(run.datasets[0].error.as_ref().unwrap().message, placed);
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
