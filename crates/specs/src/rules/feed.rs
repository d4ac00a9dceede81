//! Rules of one feed.

use super::columns::{self, Known, Layout, Reserved};
use super::{Findings, property};
use crate::column::Column;
use crate::error::Error;
use crate::feed::{CsvOptions, Decode, FileFormat, FileSource, KafkaSource, Source, SourceFeed};
use crate::problem::Path;

pub(super) fn check(findings: &mut Findings, path: &Path, feed: &SourceFeed) {
    check_name(findings, &path.field("name"), &feed.name);
    match &feed.source {
        Source::Files(files) => check_files(findings, path, files, feed.decode),
        Source::Kafka(kafka) => check_kafka(findings, path, kafka, feed.decode),
        Source::Custom(name) => findings.refuse_empty(&path.field("source").field("custom"), name, "the name of the source"),
    }
    check_columns(findings, path, feed);
    property::check(findings, path, &feed.properties, false);
}

fn check_name(findings: &mut Findings, path: &Path, name: &str) {
    findings.refuse_empty(path, name, "the name of the feed");
    if let Some(reason) = super::tables::unfit_part(name) {
        findings.add(path.clone(), Error::NameForbidden { name: name.to_owned(), what: "a feed", reason: reason.to_owned() });
    }
}

fn check_columns(findings: &mut Findings, path: &Path, feed: &SourceFeed) {
    let metadata = feed.decode.metadata_columns();
    let reserved = Reserved { encodings: true, taken: metadata, ..Reserved::default() };
    if feed.decode == Decode::Raw {
        let with = "decode raw".to_owned();
        let why = "its columns are given";
        for (option, given) in [("columns", !feed.columns.is_empty()), ("keys", !feed.keys.is_empty())] {
            if given {
                findings.add(path.field(option), Error::OptionWithoutEffect { option, with: with.clone(), why });
            }
        }
    } else {
        columns::check_declared(findings, &path.field("columns"), &feed.columns, reserved);
        columns::check_list(findings, &path.field("keys"), &feed.keys, &Known::declared("the declared columns", &feed.columns));
    }
    let known = match feed.decode {
        Decode::Raw => Known { of: "a raw table", columns: Some(metadata.to_vec()) },
        _ => Known::declared("the declared columns", &feed.columns).and(metadata),
    };
    let declared: &[Column] = if feed.decode == Decode::Raw { &[] } else { &feed.columns };
    Layout { partition_by: &feed.partition_by, cluster_by: &feed.cluster_by, zorder_by: &[], known, declared }.check(findings, path);
}

fn check_files(findings: &mut Findings, path: &Path, files: &FileSource, decode: Decode) {
    let at = path.field("source").field("files");
    findings.refuse_empty(&at.field("path"), &files.path, "the path");
    if let Some(glob) = &files.glob {
        findings.refuse_empty(&at.field("glob"), glob, "the glob");
    }
    for (index, topic) in files.topics.iter().enumerate() {
        findings.refuse_empty(&at.field("topics").index(index), topic, "a topic");
    }
    let mut no_effect = |path: Path, option, with: &str, why| {
        findings.add(path, Error::OptionWithoutEffect { option, with: with.to_owned(), why });
    };
    if files.format != FileFormat::KafkaJsonl && !files.topics.is_empty() {
        no_effect(at.field("topics"), "topics", files.format.word(), "only recorded Kafka records have a topic");
    }
    if files.format != FileFormat::Csv && files.csv != CsvOptions::default() {
        no_effect(at.field("csv"), "csv", files.format.word(), "");
    }
    let decode_at = path.field("decode");
    match (files.format, decode) {
        (FileFormat::Csv, Decode::Csv)
        | (FileFormat::KafkaJsonl, Decode::Debezium | Decode::DebeziumFlattened | Decode::Json | Decode::Avro | Decode::Raw) => {}
        (FileFormat::Jsonl, Decode::Debezium | Decode::DebeziumFlattened | Decode::Json) => {}
        (FileFormat::Csv, _) => no_effect(decode_at, decode.decode_word(), "format csv", "use decode csv"),
        (FileFormat::Jsonl, Decode::Avro) => no_effect(decode_at, "decode avro", "format jsonl", "Avro records are not lines of text"),
        (_, Decode::Csv) => no_effect(decode_at, "decode csv", files.format.word(), "use format csv"),
        (FileFormat::Jsonl, Decode::Raw) => no_effect(decode_at, "decode raw", "format jsonl", "use format kafka_jsonl"),
    }
    if files.format == FileFormat::Csv {
        check_dialect(findings, &at.field("csv"), &files.csv);
    }
}

fn check_kafka(findings: &mut Findings, path: &Path, kafka: &KafkaSource, decode: Decode) {
    let at = path.field("source").field("kafka");
    if kafka.topics.is_empty() && kafka.pattern.is_none() {
        findings.refuse_empty(&at.field("topics"), "", "the list of topics");
    }
    for (index, topic) in kafka.topics.iter().enumerate() {
        findings.refuse_empty(&at.field("topics").index(index), topic, "a topic");
    }
    for (field, value) in
        [("pattern", &kafka.pattern), ("bootstrap", &kafka.bootstrap), ("group", &kafka.group), ("registry", &kafka.registry)]
    {
        if let Some(value) = value {
            findings.refuse_empty(&at.field(field), value, "the value");
        }
    }
    for (property, reason) in KafkaSource::RESERVED_PROPERTIES {
        if kafka.properties.contains_key(*property) {
            findings.add(at.field("properties").field(*property), Error::KafkaProperty { property: (*property).to_owned(), reason });
        }
    }
    if decode == Decode::Csv {
        let with = "a Kafka source".to_owned();
        findings.add(path.field("decode"), Error::OptionWithoutEffect { option: "decode csv", with, why: "use decode json, avro or raw" });
    }
}

fn check_dialect(findings: &mut Findings, path: &Path, csv: &CsvOptions) {
    for (setting, value) in [("delimiter", csv.delimiter), ("quote", csv.quote)] {
        if !value.is_ascii() || matches!(value, '\n' | '\r' | '\0') {
            findings.add(path.field(setting), Error::CsvDialect { setting, reason: "is not one ASCII character within a line" });
        }
    }
    if csv.delimiter == csv.quote {
        findings.add(path.field("quote"), Error::CsvDialect { setting: "quote", reason: "is the same as the delimiter" });
    }
}

impl FileFormat {
    const fn word(self) -> &'static str {
        match self {
            Self::Csv => "format csv",
            Self::Jsonl => "format jsonl",
            Self::KafkaJsonl => "format kafka_jsonl",
        }
    }
}

impl Decode {
    const fn decode_word(self) -> &'static str {
        match self {
            Self::Debezium => "decode debezium",
            Self::DebeziumFlattened => "decode debezium_flattened",
            Self::Json => "decode json",
            Self::Csv => "decode csv",
            Self::Avro => "decode avro",
            Self::Raw => "decode raw",
        }
    }
}
