//! Feeds proposed from samples: what the captures become, and that a pipeline takes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use tributary_cdc_decode::{Decoder, Record, propose, propose_csv, shape};
use tributary_specs::{Decode, Pipeline, Source};

use crate::capture::{ALL, Event, events, with_records};
use crate::feeds::feed;

fn files(topic: &str) -> Source {
    let Source::Files(mut files) = feed(Decode::Debezium, Vec::new()).source else { unreachable!("a feed of files") };
    files.topics = vec![topic.to_owned()];
    Source::Files(files)
}

/// What `schema infer` would say of a topic's records; nothing of one without rows.
fn proposal(topic: &str, events: &[Event]) -> Option<String> {
    with_records(events, |records| {
        let shape = shape(records)?;
        let mut decoder = Decoder::new(&feed(shape.decode, Vec::new())).unwrap();
        let name = topic.replace('.', "_");
        Some(propose(shape, records, &mut decoder).to_yaml(&name, &format!("bronze.{name}"), &files(topic)))
    })
}

#[test]
fn golden_proposals_of_the_captures() {
    for capture in ALL {
        let mut topics: BTreeMap<String, Vec<Event>> = BTreeMap::new();
        for event in events(capture).into_iter().take(20_000) {
            topics.entry(event.topic.clone()).or_default().push(event);
        }
        let mut text = "name: proposed\nfeeds:\n".to_owned();
        for (topic, events) in &topics {
            text.extend(proposal(topic, events));
        }
        let spec = Pipeline::from_yaml("proposed", &text);
        assert!(spec.is_ok(), "{capture}: {:?}\n{text}", spec.err());
        tributary_testkit::assert_golden!(format!("tests/golden/proposed/{capture}.yml"), text);
    }
}

fn of_lines(lines: &[&str]) -> String {
    let records: Vec<Record<'_>> = lines.iter().zip(1..).map(|(line, at)| Record::line_of_file("f", at, line.as_bytes())).collect();
    let shape = shape(&records).unwrap();
    let proposal = propose(shape, &records, &mut Decoder::new(&feed(shape.decode, Vec::new())).unwrap());
    proposal.to_yaml("f", "bronze.f", &files("t"))
}

#[test]
fn plain_json_says_what_cannot_be_known_and_guesses_nothing() {
    let text = of_lines(&[
        r#"{"id":1,"at":"2026-02-03T10:00:00Z","n":1.5,"flag":true,"o":{"a":1},"tags":["x"],"none":null,"mixed":1,"big":18446744073709551615,"yes":"a b","empty":[]}"#,
        r#"{"id":9999999999,"at":"2026-02-03T10:00:00Z","n":2,"flag":null,"o":null,"tags":[],"none":null,"mixed":"x","big":1,"yes":null,"empty":[]}"#,
    ]);
    let mut told = String::new();
    for line in text.lines().filter(|line| line.contains("{ name:")) {
        let (column, remark) = line.split_once(" } # ").map_or((line.trim(), ""), |(column, remark)| (column.trim(), remark));
        writeln!(told, "{column} | {remark}").unwrap();
    }
    assert_eq!(
        told,
        "- { name: id, type: long | a whole number; not known: whether it is a time, and in which unit\n\
         - { name: at, type: string | every value is a time with offset: timestamp, if the source says so\n\
         - { name: \"n\", type: double | a number with a fraction: if it is a decimal at the source, declare decimal(p,s)\n\
         - { name: flag, type: boolean } | \n\
         - { name: o, type: string | an object: kept as its JSON text\n\
         - { name: tags, type: \"array<string>\" } | \n\
         # - { name: none | null in every sample: its type is not known\n\
         - { name: mixed, type: string | values of several kinds: kept as their text\n\
         - { name: big, type: \"decimal(38,0)\" | a whole number larger than a long: how large it may be is not known\n\
         - { name: \"yes\", type: string } | \n\
         # - { name: empty | an empty array in every sample: the type of its elements is not known\n"
    );
    Pipeline::from_yaml("p", &format!("name: p\nfeeds:\n{text}")).unwrap();
}

#[test]
fn what_is_proposed_for_bare_json_decodes_the_samples_it_came_from() {
    for capture in ALL.into_iter().filter(|capture| !capture.contains("schema") && !capture.contains("big")) {
        let mut topics: BTreeMap<String, Vec<Event>> = BTreeMap::new();
        for event in events(capture) {
            topics.entry(event.topic.clone()).or_default().push(event);
        }
        for (topic, events) in &topics {
            let Some(text) = proposal(topic, events) else { continue };
            let spec = Pipeline::from_yaml("p", &format!("name: p\nfeeds:\n{text}")).unwrap();
            let mut decoder = Decoder::new(&spec.feeds[0]).unwrap();
            let decoded = with_records(events, |records| decoder.decode(records, 0));
            assert!(decoded.stop.is_none() && decoded.rejects.is_empty(), "{capture} {topic}: {:?} {:?}", decoded.stop, decoded.rejects);
            assert!(decoded.batch.num_rows() > 0, "{capture} {topic}");
        }
    }
}

#[test]
fn the_types_of_csv_are_those_that_keep_every_sample() {
    let header = ["id", "zip", "price", "day", "at", "local", "flag", "text", "none"].map(str::to_owned);
    let row = |fields: [&str; 9]| fields.map(|field| (!field.is_empty()).then(|| field.to_owned())).to_vec();
    let rows = [
        row(["1", "01234", "1.5", "2026-02-03", "2026-02-03T10:00:00Z", "2026-02-03 10:00:00", "true", "a", ""]),
        row(["-20", "99999", "10.25", "2026-02-04", "2026-02-03T10:00:00+02:00", "", "false", "1", ""]),
    ];
    let proposal = propose_csv(&header, &rows);
    let types: Vec<String> =
        proposal.columns.iter().map(|column| column.data_type.as_ref().map_or("?".to_owned(), ToString::to_string)).collect();
    assert_eq!(types, ["long", "string", "decimal(38,2)", "date", "timestamp", "timestamp_ntz", "boolean", "string", "?"]);
}

#[test]
fn messages_that_are_no_rows_propose_nothing() {
    let record = |topic, value| Record { topic, ..Record::line_of_file("f", 1, value) };
    for (topic, value) in [
        ("__debezium-heartbeat.shop", &br#"{"ts_ms":1}"#[..]),
        ("shop.transaction", br#"{"status":"BEGIN","id":"1","ts_ms":1,"event_count":null,"data_collections":null}"#),
        ("t", b"not json"),
        ("t", b""),
        ("t", b"[1]"),
    ] {
        assert_eq!(shape(&[record(topic, value)]), None, "{topic}");
    }
}

#[test]
fn the_form_of_avro_is_told_by_its_schema() {
    use tributary_cdc_decode::{SchemaId, form_of_avro};
    let record = |fields: &str| format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#);
    let field = |name: &str| format!(r#"{{"name":"{name}","type":"string"}}"#);
    let value = [0, 0, 0, 0, 1, 2, b'x', 2, b'x', 2, b'x'];
    let records = [Record::line_of_file("f", 1, &value)];
    for (names, form) in [
        (["op", "before", "after"], Decode::Debezium),
        (["id", "name", "__op"], Decode::DebeziumFlattened),
        (["id", "name", "op"], Decode::Avro),
    ] {
        let mut decoder = Decoder::new(&feed(Decode::Avro, Vec::new())).unwrap();
        assert_eq!(form_of_avro(&decoder, &records), None);
        decoder.learn_schema(SchemaId(1), &record(&names.map(field).join(",")), &[]).unwrap();
        assert_eq!(form_of_avro(&decoder, &records), Some(form));
        if form == Decode::Avro {
            let text = propose(shape(&records).unwrap(), &records, &mut decoder).to_yaml("f", "bronze.f", &files("t"));
            assert!(text.contains("decode: avro\n") && text.contains("{ name: op, type: string }"), "{text}");
        }
    }
}
