//! `tributary schema infer`: a feed proposed from the first records of a file or topic.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use tributary::{FileFormat, KafkaOptions, propose_from_file, propose_from_topic};
use tributary_config::{Loaded, Settings};

use crate::failure::{Failure, Outcome};
use crate::start;

/// Prints the proposal; writes nothing.
pub fn infer(loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let text = match (matches.get_one::<PathBuf>("from_file"), matches.get_one::<String>("from_topic")) {
        (Some(path), _) => of_file(path, matches)?,
        (None, topic) => of_topic(topic.map(String::as_str).unwrap_or_default(), &loaded.settings, matches)?,
    };
    start::print(&text)
}

/// Feeds for a file.
pub fn of_file(path: &Path, matches: &ArgMatches) -> Result<String, Failure> {
    Ok(propose_from_file(path, matches.get_one::<String>("format").map(|format| format_of(format)), records(matches))?)
}

/// A feed for a topic.
pub fn of_topic(topic: &str, settings: &Settings, matches: &ArgMatches) -> Result<String, Failure> {
    let kafka = KafkaOptions {
        bootstrap: settings.kafka_bootstrap.clone(),
        properties: settings.kafka_property.values().clone(),
        registry: settings.schema_registry.as_ref().map(|url| url.as_str().to_owned()),
        registry_auth: settings.schema_registry_auth.clone(),
        ..KafkaOptions::default()
    };
    start::block_on(async { Ok::<_, Failure>(propose_from_topic(topic, &kafka, records(matches)).await?) })
}

fn records(matches: &ArgMatches) -> usize {
    matches.get_one::<u32>("records").map_or(1000, |records| usize::try_from(*records).unwrap_or(usize::MAX))
}

fn format_of(word: &str) -> FileFormat {
    match word {
        "csv" => FileFormat::Csv,
        "kafka_jsonl" => FileFormat::KafkaJsonl,
        _ => FileFormat::Jsonl,
    }
}
