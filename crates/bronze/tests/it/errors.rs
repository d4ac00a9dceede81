//! What people read when bronze stops.

use std::fmt::Write;

use tributary_bronze::Error;
use tributary_fault::Fault;
use tributary_lake::Conflict;
use tributary_lake::object_store;
use tributary_specs::TableName;
use tributary_testkit::assert_golden;

fn all() -> Vec<Error> {
    let table = || TableName::new("bronze", "orders");
    let (feed, path) = (|| "orders".to_owned(), || "retail/orders-7.csv".to_owned());
    let gone = || object_store::Error::NotFound { path: path(), source: "no such file".into() };
    vec![
        Error::Root { root: "ftp://host/drops".into(), reason: "only folders of this machine are read".into() },
        Error::PathMissing { feed: feed(), path: "/data/raw/retail".into() },
        Error::Read { path: path(), source: gone() },
        Error::Unreachable { path: path(), reason: "permission denied".into() },
        Error::Damaged { path: path(), reason: "its gzip stream ends early or fails its checksum".into() },
        Error::Encoding { path: path(), found: "UTF-16".into() },
        Error::RepeatedHeader { path: path(), column: "note".into() },
        Error::Header { path: path(), reason: "column 3 has no name".into() },
        Error::Feed { feed: feed(), reason: "format `csv` goes with decode `csv` or `raw`".into() },
        Error::NoSource { feed: feed(), source_name: "queue".into() },
        Error::Source { feed: feed(), source_name: "queue".into(), source: "connection refused".into() },
        Error::SourceOrder { feed: feed(), source_name: "queue".into(), partition: 2, found: 7, from: 9, until: 20 },
        Error::Gap { feed: feed(), table: table(), place: "partition 2".into(), position: 3, earliest: 5, end: 8, from: 3, until: 5 },
        Error::NotBronze { table: table(), column: "_ingested_at".into() },
        Error::Ledger { table: table(), domain: "tributary.files.orders.3".into() },
        Error::Busy { table: table(), app_id: "tributary:custom:orders:2".into() },
        Error::Conflict { table: table(), attempts: 8, source: Conflict::Metadata { version: 12 } },
        Error::Cancelled,
        Error::Counts { table: table(), rows_in: 9, rows_out: 5, quarantined: 2, ignored: 1 },
        Error::KafkaLeftOut { feed: feed() },
        Error::KafkaSettings {
            feed: feed(),
            reason: "the property `sasl.mechanims` does not exist or has a value that is not accepted".into(),
        },
        Error::TopicTwice { topic: "shop.orders".into(), feed: feed(), other: "all".into() },
        Error::TopicMissing { feed: feed(), topic: "shop.orders".into(), bootstrap: "broker:9092".into() },
        Error::KafkaAway {
            bootstrap: "broker:9092".into(),
            doing: "listing topics".into(),
            seconds: 30,
            reason: "connection refused".into(),
        },
        Error::KafkaRefused { bootstrap: "broker:9092".into(), doing: "listing topics".into(), reason: "authentication failed".into() },
        Error::KafkaPartition { topic: "shop.orders".into(), partition: 2, reason: "the offset is out of range".into() },
        Error::RegistrySettings { reason: "feed orders reads Avro, and no schema registry is named".into() },
        Error::RegistryAway { url: "http://registry:8081/".into(), reason: "connection refused".into() },
        Error::RegistryRefused { url: "http://registry:8081/".into(), reason: "401 Unauthorized".into() },
        Error::Range {
            place: "topic `shop.orders`, partition 2 of feed orders".into(),
            reason: "the table stands at 3, and what lies between that and 5 would never be read".into(),
        },
        Error::HistoryShorter {
            table: table(),
            what: "topic `shop.orders`, partition 2: it holds records from 3 on, and its source begins at 5".into(),
        },
        Error::NoProposal { from: "in/orders.csv".into(), reason: "there is no header line".into() },
    ]
}

#[test]
fn every_error_says_what_where_and_what_next() {
    let mut text = String::new();
    for error in all() {
        let next = error.next_command();
        writeln!(text, "{} {:?}\n  {error}\n  {}", error.code(), error.class(), next.as_deref().unwrap_or_default()).unwrap();
        assert!(next.is_some(), "{}", error.code());
        let message = error.to_string();
        assert!(message.starts_with(|first: char| !first.is_uppercase()) && !message.ends_with('.'), "{message}");
    }
    assert_golden!("tests/golden/errors.txt", text);
}

#[test]
fn every_code_is_given_once() {
    let mut codes: Vec<_> = all().iter().map(Fault::code).collect();
    let count = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), count);
    assert_eq!(codes.last().map(|code| code.0.to_owned()), Some(format!("BR{count:04}")), "no variant is left out");
}
