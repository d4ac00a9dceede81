//! The next command of an error, with the places that the failed command line named: typed as it stands, it looks at the same lake.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::ArgMatches;
use clap::parser::ValueSource;
use tributary::{DatasetReport, ProgressEvent, ProgressSink, RunReport};

use crate::failure::Failure;
use crate::run::Sink;
use crate::{bundle, command};

/// Settings that say where things are; the others are about the run that failed.
const PLACES: [&str; 10] =
    ["catalogue", "warehouse", "db_name", "base_data_path", "pipeline", "target", "config", "env_file", "var", "conf"];

/// Where a command looked: what its line named, and what else says so.
#[derive(Debug, Clone)]
pub struct Places {
    matches: ArgMatches,
    /// Flags and values, in the place of the command line's own.
    given: Vec<(&'static str, String)>,
}

impl Places {
    /// Those of a command line.
    pub fn of(matches: &ArgMatches) -> Self {
        Self { matches: matches.clone(), given: Vec::new() }
    }

    /// The same, for a pipeline that a task of a job runs with these parameters.
    pub fn of_task(matches: &ArgMatches, pipeline: &str, parameters: &BTreeMap<String, String>) -> Self {
        let parameters = parameters.iter().map(|(name, value)| ("conf", format!("{name}={value}")));
        Self { matches: matches.clone(), given: std::iter::once(("pipeline", pipeline.to_owned())).chain(parameters).collect() }
    }

    /// Whether the target is one of a bundle: the command ran a job, or a pipeline by its key.
    fn are_of_bundle(&self) -> bool {
        self.matches.try_contains_id("tasks").is_ok()
            || matches!(self.values("pipeline").as_slice(), [one] if bundle::is_key(Path::new(one)))
    }

    /// What says one of the places, as it is typed.
    fn values(&self, place: &str) -> Vec<String> {
        let given: Vec<String> = self.given.iter().filter(|(name, _)| *name == place).map(|(_, value)| value.clone()).collect();
        let matches = &self.matches;
        if !given.is_empty()
            || !matches!(matches.try_contains_id(place), Ok(true))
            || matches.value_source(place) != Some(ValueSource::CommandLine)
        {
            return given;
        }
        matches.get_raw(place).into_iter().flatten().filter_map(|value| value.to_str().map(str::to_owned)).collect()
    }
}

/// `next`, with each flag that says where things are, that its command has and it does not give itself.
pub fn at_the_same_places(next: &str, places: &Places) -> String {
    let mut text = next.to_owned();
    let Some(command) = named(next) else { return text };
    for place in PLACES {
        let flag = command.get_arguments().find(|argument| argument.get_id() == place).and_then(|argument| argument.get_long());
        let Some(flag) = flag.filter(|flag| !next.contains(&format!("--{flag}"))) else { continue };
        if place == "target" && places.are_of_bundle() && !knows_bundles(&command) {
            continue;
        }
        // a URL may hold a secret
        for value in places.values(place).iter().filter(|value| !value.contains("://")) {
            text.push_str(&format!(" --{flag} {}", quoted(value)));
        }
    }
    text
}

/// Whether a command knows the targets of a bundle: it knows its variables.
fn knows_bundles(command: &clap::Command) -> bool {
    command.get_arguments().any(|argument| argument.get_id() == "var")
}

/// The same for a message of a run's report, which ends with its next command.
pub fn in_message(message: &str, places: &Places) -> String {
    match message.strip_suffix(')').and_then(|message| message.rsplit_once(NEXT)) {
        Some((before, next)) => format!("{before}{NEXT}{})", at_the_same_places(next, places)),
        None => message.to_owned(),
    }
}

/// What stands before the next command in a message.
const NEXT: &str = " (next: ";

/// The errors of a run's report, each with its next command at the same places.
pub fn in_report(report: &mut RunReport, places: &Places) {
    report.datasets.iter_mut().for_each(|dataset| in_dataset(dataset, places));
}

fn in_dataset(report: &mut DatasetReport, places: &Places) {
    if let Some(error) = &mut report.error {
        error.message = in_message(&error.message, places);
    }
}

/// A failure as one message, its next command at its end.
pub fn as_message(failure: &Failure, places: &Places) -> String {
    let next = failure.next.as_ref().map(|next| format!("{NEXT}{})", at_the_same_places(next, places))).unwrap_or_default();
    format!("{} {}{next}", failure.code, failure.message)
}

/// A sink that tells another of the same events, next commands of errors at the same places.
pub fn in_events(sink: Sink, places: &Places) -> Sink {
    Arc::new(Placed { sink, places: places.clone() })
}

#[derive(Debug)]
struct Placed {
    sink: Sink,
    places: Places,
}

impl ProgressSink for Placed {
    fn event(&self, event: &ProgressEvent) {
        match event {
            ProgressEvent::DatasetFinished { layer, report } if report.error.is_some() => {
                let mut report = report.clone();
                in_dataset(&mut report, &self.places);
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
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter);
    if !value.is_empty() && value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(arguments: &[&str]) -> Places {
        let matches = command::umbrella().try_get_matches_from([&["tributary"], arguments].concat()).unwrap();
        let (_, mut matches) = matches.subcommand().unwrap();
        while let Some((_, inner)) = matches.subcommand() {
            matches = inner;
        }
        Places::of(matches)
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
        let conf = ["run", "-p", "retail", "--conf", "day=a b", "--var", "catalog=dev"];
        assert_eq!(
            after(&conf, "tributary run --only gold.days"),
            "tributary run --only gold.days --pipeline retail --var catalog=dev --conf 'day=a b'"
        );
        assert_eq!(after(&conf, "tributary show tables"), "tributary show tables");
        let of_job = matched(&["job", "run", "nightly", "--target", "dev", "-w", "lake", "--param", "day=monday"]);
        let of_task = Places::of_task(&of_job.matches, "retail", &BTreeMap::from([("day".to_owned(), "monday".to_owned())]));
        assert_eq!(
            at_the_same_places("tributary run --only gold.days", &of_task),
            "tributary run --only gold.days --warehouse lake --pipeline retail --target dev --conf day=monday"
        );
        assert_eq!(after(&["show", "history", "a.b", "--warehouse=s3://k:secret@b/x"], "tributary show tables"), "tributary show tables");
    }
}
