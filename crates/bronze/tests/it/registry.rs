//! Avro topics with a schema registry, which is a small server written to the published API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::producer::BaseRecord;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tributary_bronze::{KafkaOptions, Options, Registries};
use tributary_cdc_decode::{Decoder, ReasonCode, Record};
use tributary_fault::{Fault, FaultClass};
use tributary_specs::{SourceFeed, Status};
use tributary_testkit::avro::{write_bytes, write_long};

use crate::kafka::Broker;
use crate::world::{World, code_of, feed};

/// A schema registry on loopback.
#[derive(Clone)]
struct Server {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Answers by path.
    answers: BTreeMap<String, (u16, Value)>,
    /// What the header `authorization` has to be.
    authorization: Option<String>,
    /// So many requests that come next are answered with this status.
    failing: (usize, u16),
    /// Paths asked for.
    asked: Vec<String>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { url: format!("http://{}", listener.local_addr().unwrap()), state: Arc::default() };
        let state = Arc::clone(&server.state);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut piece).await {
                        Ok(length) if length > 0 => request.extend_from_slice(&piece[..length]),
                        _ => break,
                    }
                }
                let (status, body) = answer(&mut state.lock().unwrap(), &String::from_utf8_lossy(&request));
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        server
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut State) -> T) -> T {
        use_it(&mut self.state.lock().unwrap())
    }

    fn has(&self, path: &str, answer: Value) {
        self.with(|state| state.answers.insert(path.to_owned(), (200, answer)));
    }

    fn has_schema(&self, id: u32, schema: &Value) {
        self.has(&format!("/schemas/ids/{id}"), json!({"schema": schema.to_string()}));
    }

    fn asked(&self) -> Vec<String> {
        self.with(|state| state.asked.clone())
    }

    fn options(&self) -> KafkaOptions {
        KafkaOptions { registry: Some(self.url.clone()), patience: Duration::from_millis(600), ..KafkaOptions::default() }
    }
}

fn answer(state: &mut State, request: &str) -> (u16, Value) {
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let given = request.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("authorization: ").map(|_| line[15..].to_owned()));
    state.asked.push(path.clone());
    if state.failing.0 > 0 {
        state.failing.0 -= 1;
        return (state.failing.1, json!({"error_code": 50001, "message": "later"}));
    }
    if state.authorization.is_some() && state.authorization != given {
        return (401, json!({"error_code": 40101, "message": "Unauthorized"}));
    }
    let absent = (404, json!({"error_code": 40403, "message": "Schema not found"}));
    state.answers.get(&path).cloned().unwrap_or(absent)
}

fn row_schema() -> Value {
    json!({"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]})
}

fn message(id: u32, datum: &[u8]) -> Vec<u8> {
    [&[0], &id.to_be_bytes()[..], datum].concat()
}

fn row(schema: u32, id: i64) -> Vec<u8> {
    let mut datum = Vec::new();
    write_long(id, &mut datum);
    message(schema, &datum)
}

fn avro_feed(kafka: Value) -> SourceFeed {
    feed(json!({"name": "a", "table": "bronze.a", "decode": "avro", "source": {"kafka": kafka}}))
}

fn decoder() -> Decoder {
    Decoder::new(&avro_feed(json!({"topics": ["t"]}))).unwrap()
}

/// Teaches a decoder one record's schema.
async fn teach(decoder: &mut Decoder, value: &[u8], options: &KafkaOptions) -> tributary_bronze::Result<()> {
    let registry = Registries::default().at(options.registry.as_deref().unwrap(), options)?;
    tributary_bronze::teach(decoder, &[Record::line_of_file("f", 1, value)], &registry).await
}

fn reason(decoder: &mut Decoder, value: &[u8]) -> (ReasonCode, String) {
    let decoded = decoder.decode(&[Record::line_of_file("f", 1, value)], 0);
    let reject = decoded.rejects.first().unwrap();
    (reject.reason, reject.message.clone())
}

fn put(broker: &Broker, partition: i32, value: &[u8]) {
    broker.put_bytes(BaseRecord::<[u8], [u8]>::to("t").partition(partition).payload(value));
}

fn options(world: &World, broker: &Broker, server: &Server) -> Options {
    let mut options = broker.options(world);
    options.kafka.registry = Some(server.url.clone());
    options
}

async fn ids(world: &World) -> Vec<i64> {
    crate::kafka::ids(world, "bronze.a").await
}

#[tokio::test]
async fn a_topic_of_avro_is_read_and_each_schema_asked_for_once() {
    let (world, broker, server) = (World::new(), Broker::new(&[("t", 1)]), Server::start().await);
    server.has_schema(1, &row_schema());
    let two =
        json!({"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]});
    server.has_schema(2, &two);
    for id in 0..500 {
        put(&broker, 0, &row(1, id));
    }
    let mut datum = Vec::new();
    write_long(500, &mut datum);
    write_long(1, &mut datum);
    write_bytes(b"later", &mut datum);
    put(&broker, 0, &message(2, &datum));
    broker.flush();
    let mut options = options(&world, &broker, &server);
    options.slice_records = 50;
    let feeds = [avro_feed(json!({"topics": ["t"]}))];
    let reports = world.run_with(&feeds, &options).await;
    assert_eq!((reports[0].status, reports[0].rows_out, reports[0].quarantined.len()), (Status::Committed, 501, 0), "{:?}", reports[0]);
    assert_eq!(ids(&world).await, (0..501).collect::<Vec<_>>());
    put(&broker, 0, &row(1, 501));
    broker.flush();
    world.run_with(&feeds, &options).await;
    assert_eq!(ids(&world).await.len(), 502);
    assert_eq!(server.asked(), ["/schemas/ids/1", "/schemas/ids/2"], "a second run asks nothing again");
}

#[tokio::test]
async fn a_registry_that_is_away_stops_the_feed_for_a_retry_and_nothing_is_skipped() {
    let (world, broker, server) = (World::new(), Broker::new(&[("t", 1)]), Server::start().await);
    put(&broker, 0, &row(1, 7));
    broker.flush();
    let feeds = [avro_feed(json!({"topics": ["t"]}))];
    let mut options = options(&world, &broker, &server);
    options.kafka.patience = Duration::from_secs(2);
    server.with(|state| state.failing = (usize::MAX, 503));
    let reports = world.run_with(&feeds, &options).await;
    assert_eq!(code_of(&reports[0]), "BR0027");
    server.with(|state| state.failing = (0, 0));
    server.has_schema(1, &row_schema());
    let reports = world.run_with(&feeds, &options).await;
    assert_eq!((reports[0].status, ids(&world).await), (Status::Committed, vec![7]));
}

#[tokio::test]
async fn an_unknown_id_goes_to_quarantine_and_the_rest_flows_on() {
    let (world, broker, server) = (World::new(), Broker::new(&[("t", 1)]), Server::start().await);
    server.has_schema(1, &row_schema());
    server.has("/schemas/ids/3", json!({"schema": "message M {}", "schemaType": "PROTOBUF"}));
    for value in [row(1, 1), row(2, 2), row(3, 3), row(1, 4)] {
        put(&broker, 0, &value);
    }
    broker.flush();
    let reports = world.run_with(&[avro_feed(json!({"topics": ["t"]}))], &options(&world, &broker, &server)).await;
    assert_eq!(reports[0].status, Status::Committed, "{:?}", reports[0]);
    assert_eq!(ids(&world).await, [1, 4]);
    let told = world.columns("quarantine.a", &["reason", "message"]).await;
    let mut told: Vec<String> = told.iter().map(|row| format!("{} {}", row[0].as_str().unwrap(), row[1].as_str().unwrap())).collect();
    told.sort_unstable();
    assert_eq!(
        told,
        ["unknown_schema the schema registry has no schema 2", "unsupported_schema schema 3 is of type PROTOBUF; only avro is read"]
    );
}

#[tokio::test]
async fn a_topic_of_avro_without_a_registry_stops_and_says_what_to_set() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    put(&broker, 0, &row(1, 7));
    broker.flush();
    let mut debezium = avro_feed(json!({"topics": ["t"]}));
    debezium.decode = tributary_specs::Decode::Debezium;
    for feeds in [[avro_feed(json!({"topics": ["t"]}))], [debezium]] {
        let reports = world.run_with(&feeds, &broker.options(&world)).await;
        assert_eq!(code_of(&reports[0]), "BR0026");
        assert!(format!("{:?}", reports[0]).contains("schema_registry"), "{:?}", reports[0]);
    }
}

#[tokio::test]
async fn requests_are_made_again_until_patience_runs_out() {
    let server = Server::start().await;
    server.has_schema(1, &row_schema());
    server.with(|state| state.failing = (2, 503));
    let mut decoder = decoder();
    teach(&mut decoder, &row(1, 1), &server.options()).await.unwrap();
    assert_eq!(decoder.decode(&[Record::line_of_file("f", 1, &row(1, 1))], 0).batch.num_rows(), 1);
    assert_eq!(server.asked().len(), 3);
    server.with(|state| state.failing = (usize::MAX, 429));
    let error = teach(&mut self::decoder(), &row(1, 1), &server.options()).await.unwrap_err();
    assert_eq!((error.code().0, error.class()), ("BR0027", FaultClass::Transient));
    // Nobody listens here.
    let options = KafkaOptions { registry: Some("http://127.0.0.1:9".to_owned()), ..server.options() };
    let error = teach(&mut self::decoder(), &row(1, 1), &options).await.unwrap_err();
    assert_eq!(error.class(), FaultClass::Transient);
    assert!(error.to_string().contains("127.0.0.1:9"), "{error}");
}

#[tokio::test]
async fn references_are_resolved_by_subject_and_version_however_deep() {
    let server = Server::start().await;
    let row_text =
        json!({"type": "record", "name": "Row", "fields": [{"name": "home", "type": "geo.City"}, {"name": "land", "type": "geo.Country"}]});
    server.has(
        "/schemas/ids/1",
        json!({"schema": row_text.to_string(), "references": [{"name": "geo.City", "subject": "a/city:value", "version": 3},
               {"name": "geo.Country", "subject": "country", "version": 1}]}),
    );
    let city = json!({"type": "record", "name": "geo.City", "fields": [{"name": "country", "type": "Country"}]});
    server.has(
        "/subjects/a%2Fcity:value/versions/3",
        json!({"subject": "a/city:value", "id": 9, "version": 3, "schema": city.to_string(), "references": [{"name": "geo.Country", "subject": "country", "version": 1}]}),
    );
    let country = json!({"type": "record", "name": "geo.Country", "fields": [{"name": "code", "type": "string"}]});
    server.has("/subjects/country/versions/1", json!({"subject": "country", "id": 8, "version": 1, "schema": country.to_string()}));
    let mut datum = Vec::new();
    write_bytes(b"CH", &mut datum);
    write_bytes(b"DE", &mut datum);
    let mut decoder = decoder();
    teach(&mut decoder, &message(1, &datum), &server.options()).await.unwrap();
    let decoded = decoder.decode(&[Record::line_of_file("f", 1, &message(1, &datum))], 0);
    assert_eq!((decoded.batch.num_rows(), decoded.rejects.len()), (1, 0), "{:?}", decoded.rejects);
    assert_eq!(server.asked().len(), 3, "each is asked for once: {:?}", server.asked());
    // One that is missing is told, and one that refers to itself ends.
    server.with(|state| state.answers.remove("/subjects/country/versions/1"));
    let mut decoder = self::decoder();
    teach(&mut decoder, &message(1, &datum), &server.options()).await.unwrap();
    let (reason, told) = reason(&mut decoder, &message(1, &datum));
    assert!(reason == ReasonCode::UnsupportedSchema && told.contains("country version 1"), "{told}");
    let own = json!({"schema": country.to_string(), "references": [{"name": "geo.Country", "subject": "country", "version": 1}]});
    server.has("/subjects/country/versions/1", own);
    teach(&mut self::decoder(), &message(1, &datum), &server.options()).await.unwrap();
}

#[tokio::test]
async fn credentials_are_sent_and_never_shown() {
    for (given, sent) in [("me:s3cret", "Basic bWU6czNjcmV0"), ("Bearer s3cret", "Bearer s3cret"), ("bearer  s3cret", "Bearer s3cret")] {
        let server = Server::start().await;
        server.has_schema(1, &row_schema());
        server.with(|state| state.authorization = Some(sent.to_owned()));
        let options = KafkaOptions { registry_auth: Some(given.to_owned()), ..server.options() };
        teach(&mut decoder(), &row(1, 1), &options).await.unwrap();
        assert!(!format!("{options:?}").contains("s3cret"));
        let without = KafkaOptions { registry_auth: None, ..server.options() };
        let error = teach(&mut decoder(), &row(1, 1), &without).await.unwrap_err();
        assert_eq!((error.code().0, error.class()), ("BR0028", FaultClass::BadInput));
        let wrong = KafkaOptions { registry_auth: Some("me:wr0ng".to_owned()), ..server.options() };
        let error = teach(&mut decoder(), &row(1, 1), &wrong).await.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("wr0ng"));
    }
}

#[tokio::test]
async fn addresses_and_credentials_that_cannot_be_used_are_refused_without_showing_them() {
    for (url, auth) in [
        ("registry:8081", None),
        ("ftp://registry", None),
        ("http://me:s3cret@registry:8081", None),
        ("http://registry:8081", Some("s3cret")),
        ("http://registry:8081", Some(":s3cret")),
        ("http://registry:8081", Some("Bearer s3cret\nx")),
    ] {
        let options = KafkaOptions { registry_auth: auth.map(str::to_owned), ..KafkaOptions::default() };
        let error = Registries::default().at(url, &options).unwrap_err();
        assert_eq!((error.code().0, error.class()), ("BR0026", FaultClass::BadInput), "{url}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_of_a_registry_is_no_unknown_schema() {
    let server = Server::start().await;
    for (status, body) in
        [(404, json!("no such page")), (200, json!({"hello": "world"})), (403, json!({"error_code": 40301, "message": "forbidden"}))]
    {
        server.with(|state| state.answers.insert("/schemas/ids/1".to_owned(), (status, body)));
        let error = teach(&mut decoder(), &row(1, 1), &server.options()).await.unwrap_err();
        assert_eq!(error.code().0, "BR0028", "{status}: {error}");
    }
    // An address below a path, with or without a stroke at its end.
    for path in ["/apis/ccompat/v7", "/apis/ccompat/v7/"] {
        server.has("/apis/ccompat/v7/schemas/ids/1", json!({"schema": row_schema().to_string(), "schemaType": "AVRO"}));
        let options = KafkaOptions { registry: Some(format!("{}{path}", server.url)), ..server.options() };
        teach(&mut decoder(), &row(1, 1), &options).await.unwrap();
    }
}

#[tokio::test]
async fn a_feed_is_proposed_from_the_first_records_of_a_topic() {
    let (broker, server) = (Broker::new(&[("t", 2), ("j", 1)]), Server::start().await);
    let flattened =
        json!({"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "__op", "type": "string"}]});
    server.has_schema(1, &flattened);
    let mut datum = Vec::new();
    write_long(5, &mut datum);
    write_bytes(b"c", &mut datum);
    put(&broker, 1, &message(1, &datum));
    broker.flush();
    let mut options = server.options();
    options.bootstrap = Some(broker.cluster.bootstrap_servers());
    options.patience = Duration::from_secs(10);
    let proposed = tributary_bronze::propose_from_topic("t", &options, 100).await.unwrap();
    assert!(proposed.starts_with("- name: t\n  table: bronze.t\n  source:\n    kafka: { topics: [t], bootstrap: "), "{proposed}");
    assert!(proposed.contains("decode: debezium_flattened\n") && proposed.contains("- { name: id, type: long }"), "{proposed}");
    for id in 0..3 {
        broker.put(BaseRecord::<str, str>::to("j").partition(0).payload(&json!({"id": id}).to_string()));
    }
    broker.flush();
    let proposed = tributary_bronze::propose_from_topic("j", &options, 2).await.unwrap();
    assert!(proposed.contains("decode: json\n") && proposed.contains("# of 2 rows"), "{proposed}");
    let error = tributary_bronze::propose_from_topic("nowhere", &options, 2).await.unwrap_err();
    assert_eq!(error.code().0, "BR0022");
}
