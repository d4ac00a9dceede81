//! Topics of a broker in this process, drained.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use serde_json::{Value, json};
use tributary_bronze::Options;
use tributary_specs::{SourceFeed, Status};
use tributary_testkit::Rule;

use crate::world::{BAD_INPUT, World, code_of, exit_of, feed};

/// A broker, and who writes to it.
pub struct Broker {
    pub cluster: MockCluster<'static, DefaultProducerContext>,
    producer: BaseProducer,
}

impl Broker {
    pub fn new(topics: &[(&str, i32)]) -> Self {
        let cluster = MockCluster::new(1).unwrap();
        let producer = ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).set("linger.ms", "0").create().unwrap();
        let broker = Self { cluster, producer };
        topics.iter().for_each(|(topic, partitions)| broker.add_topic(topic, *partitions));
        broker
    }

    pub fn add_topic(&self, topic: &str, partitions: i32) {
        self.cluster.create_topic(topic, partitions, 1).unwrap();
    }

    /// Writes records with these ids and waits until the broker has them.
    pub fn send(&self, topic: &str, partition: i32, ids: std::ops::Range<i64>) {
        for id in ids {
            self.put(BaseRecord::<str, str>::to(topic).partition(partition).payload(&json!({"id": id}).to_string()));
        }
        self.flush();
    }

    /// Writes 20 records with the id 7 that are more than the broker keeps of a partition, which is its last 5 MiB.
    pub fn overflow(&self, topic: &str) {
        let long = json!({"id": 7, "note": "x".repeat(500_000)}).to_string();
        for _ in 0..20 {
            self.put(BaseRecord::to(topic).partition(0).payload(&long));
            self.flush();
        }
    }

    pub fn put(&self, record: BaseRecord<'_, str, str>) {
        self.put_bytes(record);
    }

    pub fn put_bytes<K: rdkafka::message::ToBytes + ?Sized, P: rdkafka::message::ToBytes + ?Sized>(&self, record: BaseRecord<'_, K, P>) {
        let mut record = Some(record);
        while let Some(waiting) = record.take() {
            if let Err((_, again)) = self.producer.send(waiting) {
                self.producer.poll(Duration::from_millis(10));
                record = Some(again);
            }
        }
    }

    pub fn flush(&self) {
        self.producer.flush(Duration::from_secs(10)).unwrap();
    }

    pub fn options(&self, world: &World) -> Options {
        let mut options = world.options();
        options.kafka.bootstrap = Some(self.cluster.bootstrap_servers());
        options.kafka.patience = Duration::from_secs(10);
        options
    }
}

/// A feed of JSON records into `bronze.<name>`.
pub fn topics(name: &str, kafka: Value) -> SourceFeed {
    feed(json!({
        "name": name, "table": format!("bronze.{name}"), "decode": "json", "source": {"kafka": kafka},
        "columns": [{"name": "id", "type": "long"}],
    }))
}

pub async fn ids(world: &World, table: &str) -> Vec<i64> {
    let mut ids: Vec<_> = world.columns(table, &["id"]).await.iter().map(|row| row[0].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// B2, B5.
#[tokio::test]
async fn topics_are_drained_and_read_on_from_the_tables_positions() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 2)]));
    broker.send("t", 0, 0..1000);
    broker.send("t", 1, 1000..1003);
    broker.put(BaseRecord::to("t").partition(1).payload("{\"id\": \"bad\"}"));
    broker.flush();
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    let mut options = broker.options(&world);
    options.slice_records = 100;
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.rows_quarantined), (None, 1003, 1));
    assert_eq!(report.positions, BTreeMap::from([("t/0".to_owned(), 1000), ("t/1".to_owned(), 4)]));
    assert_eq!((report.commits, report.lag_records), (1, Some(0)), "one commit a drain");

    let versions = world.versions().await;
    let started = Instant::now();
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!((report.status, report.rows_in), (Status::NothingNew, 0));
    assert_eq!(world.versions().await, versions);
    assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());

    broker.send("t", 0, 1003..1010);
    options.max_records_per_trigger = Some(3);
    options.slice_records = 2;
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!((report.rows_out, report.positions["t/0"], report.commits > 1), (7, 1007, true));
    assert_eq!(ids(&world, "bronze.a").await, (0..1010).collect::<Vec<_>>());
    let refused = world.columns("quarantine.a", &["topic", "partition", "offset", "file"]).await;
    assert_eq!(refused, [json!(["t", 1, 3, null])]);
}

/// KAFKA-03, KAFKA-08.
#[tokio::test]
async fn a_bad_record_goes_to_quarantine_with_its_place_and_bytes_and_its_neighbours_flow_on() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let values: [&[u8]; 5] =
        [b"{\"id\":1,\"qty\":2}", b"{\"id\":2,\"qty\":", b"{\"id\":\"three\",\"qty\":4}", b"{\"id\":4,\"qty\":5}", b"\xff\0binary"];
    for (key, value) in (1..).zip(values) {
        let key = key.to_string();
        let record = BaseRecord::<[u8], [u8]>::to("t").partition(0).key(key.as_bytes()).payload(value);
        broker.producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    broker.flush();
    let mut feed = topics("a", json!({"topics": ["t"]}));
    feed.columns.push(tributary_specs::Column::new("qty", tributary_specs::DataType::Integer));
    let report = world.run_with(&[feed.clone()], &broker.options(&world)).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_out, report.rows_quarantined, report.positions["t/0"]), (None, 2, 3, 5));
    assert_eq!(ids(&world, "bronze.a").await, [1, 4]);
    let dead = world.columns("quarantine.a", &["topic", "partition", "offset"]).await;
    assert_eq!(dead, [json!(["t", 0, 1]), json!(["t", 0, 2]), json!(["t", 0, 4])]);
    assert!(
        world.rows("quarantine.a").await.iter().all(|row| row["reason"].is_string() && row["value"].is_string() && row["key"].is_string())
    );
    assert_eq!(world.run_with(&[feed], &broker.options(&world)).await[0].status, Status::NothingNew, "a bad record is tried once");
}

#[tokio::test]
async fn many_topics_go_to_many_tables_and_one_that_appears_later_is_taken_up() {
    let (world, broker) = (World::new(), Broker::new(&[]));
    let feeds: Vec<_> = (0..20).map(|n| topics(&format!("f{n}"), json!({"topics": [format!("one.{n}"), format!("many.{n}.*")]}))).collect();
    for n in 0..20 {
        broker.add_topic(&format!("one.{n}"), 2);
        broker.add_topic(&format!("many.{n}.a"), 1);
        broker.send(&format!("one.{n}"), 1, 0..5);
        broker.send(&format!("many.{n}.a"), 0, 5..10);
    }
    let reports = world.run_with(&feeds, &broker.options(&world)).await;
    assert!(reports.iter().all(|report| report.error.is_none() && report.rows_out == 10), "{reports:?}");
    broker.add_topic("many.7.b", 1);
    broker.send("many.7.b", 0, 10..12);
    let reports = world.run_with(&feeds, &broker.options(&world)).await;
    assert_eq!(reports.iter().filter(|report| report.status == Status::Committed).count(), 1);
    assert_eq!(ids(&world, "bronze.f7").await, (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_topic_of_two_feeds_and_one_that_is_not_there_stop_their_feeds_and_no_other() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1), ("u", 1)]));
    broker.send("u", 0, 0..3);
    let feeds = [
        topics("a", json!({"topics": ["t"]})),
        topics("b", json!({"pattern": "t+"})),
        topics("c", json!({"topics": ["gone"]})),
        topics("d", json!({"topics": ["u"]})),
    ];
    let reports = world.run_with(&feeds, &broker.options(&world)).await;
    let codes: Vec<_> = reports.iter().map(|report| (code_of(report), exit_of(report))).collect();
    assert_eq!(codes, [("BR0021", BAD_INPUT), ("BR0021", BAD_INPUT), ("BR0022", BAD_INPUT), ("", None)]);
    assert!(reports[0].error.as_ref().unwrap().message.contains("`t` is read by feed a and by feed b"));
    assert_eq!(ids(&world, "bronze.d").await, [0, 1, 2]);
}

#[tokio::test]
async fn raw_records_keep_repeated_and_null_headers_keys_of_any_form_null_values_and_times() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let headers = OwnedHeaders::new()
        .insert(Header { key: "h", value: Some("1") })
        .insert(Header { key: "h", value: None::<&str> })
        .insert(Header { key: "h", value: Some("") });
    broker.put(BaseRecord::to("t").partition(0).key("k").payload("v").headers(headers).timestamp(1_770_112_800_123));
    broker.put(BaseRecord::<str, str>::to("t").partition(0).key("tombstone"));
    broker.put(BaseRecord::<str, str>::to("t").partition(0).payload("no key"));
    broker.put(BaseRecord::<str, str>::to("t").partition(0).key("").payload(""));
    let odd = BaseRecord::<[u8], [u8]>::to("t").partition(0).key(&[0, 255][..]).payload(&[255][..]);
    broker.flush();
    broker.producer.send(odd).map_err(|(error, _)| error).unwrap();
    broker.flush();
    let raw = feed(json!({"name": "r", "table": "bronze.r", "decode": "raw", "source": {"kafka": {"topics": ["t"]}}}));
    let report = world.run_with(&[raw], &broker.options(&world)).await.remove(0);
    assert_eq!((report.error, report.rows_out), (None, 5));
    let rows = world.columns("bronze.r", &["offset", "key", "value", "headers"]).await;
    let hex = |bytes: &[u8]| Value::from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let header = |value: Value| if value.is_null() { json!({"key": "h"}) } else { json!({"key": "h", "value": value}) };
    assert_eq!(rows[0], json!([0, hex(b"k"), hex(b"v"), [header(hex(b"1")), header(Value::Null), header(hex(b""))]]));
    let pairs: Vec<_> = rows[1..].iter().map(|row| (row[1].clone(), row[2].clone())).collect();
    assert_eq!(
        pairs,
        [(hex(b"tombstone"), Value::Null), (Value::Null, hex(b"no key")), (hex(b""), hex(b"")), (hex(&[0, 255]), hex(&[255]))]
    );
    let times = world.columns("bronze.r", &["timestamp"]).await;
    assert!(times.contains(&json!(["2026-02-03T10:00:00.123Z"])), "{times:?}");
}

#[tokio::test]
async fn a_record_longer_than_the_limit_goes_to_quarantine_whole() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    broker.send("t", 0, 0..2);
    let long = json!({"id": 2, "note": "x".repeat(2000)}).to_string();
    broker.put(BaseRecord::<str, str>::to("t").partition(0).payload(&long));
    broker.send("t", 0, 3..5);
    let mut options = broker.options(&world);
    options.record_bytes_max = 1000;
    let report = world.run_with(&[topics("a", json!({"topics": ["t"]}))], &options).await.remove(0);
    assert_eq!((report.error, report.rows_out, report.rows_quarantined), (None, 4, 1));
    let dead = world.rows("quarantine.a").await;
    assert_eq!((dead[0]["reason"].as_str(), dead[0]["value"].as_str().unwrap().len()), (Some("record_too_long"), 2 * long.len()));
}

#[tokio::test]
async fn two_drains_fence_each_other_and_the_loser_is_busy() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    let feeds = || [topics("a", json!({"topics": ["t"]}))];
    broker.send("t", 0, 0..3);
    world.run_with(&feeds(), &broker.options(&world)).await;
    broker.send("t", 0, 3..6);
    let other = World::over(world.lake_store.inner(), world.data_store.inner());
    let others = broker.options(&other);
    world.lake_store.before(Rule::delta_commit().on("bronze/a/_delta_log/0"), 1, move |_| async move {
        assert_eq!(other.run_with(&[topics("a", json!({"topics": ["t"]}))], &others).await[0].rows_out, 3);
    });
    let report = world.run_with(&feeds(), &broker.options(&world)).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report), report.rows_out), (Some(75), "BR0015", 0));
    assert_eq!(ids(&world, "bronze.a").await, (0..6).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_feed_that_begins_at_the_end_writes_its_beginning_down() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 2)]));
    broker.send("t", 0, 0..10);
    let feeds = [topics("a", json!({"topics": ["t"], "starting": "latest"}))];
    let report = world.run_with(&feeds, &broker.options(&world)).await.remove(0);
    assert_eq!((report.error.clone(), report.rows_in, report.positions["t/0"]), (None, 0, 10));
    assert_eq!(world.run_with(&feeds, &broker.options(&world)).await[0].status, Status::NothingNew);
    broker.send("t", 0, 10..12);
    broker.send("t", 1, 12..14);
    assert_eq!(world.run_with(&feeds, &broker.options(&world)).await[0].rows_out, 4);
    assert_eq!(ids(&world, "bronze.a").await, [10, 11, 12, 13]);
}

#[tokio::test]
async fn a_broker_that_is_away_is_a_transient_error_after_a_bounded_wait() {
    let world = World::new();
    let mut options = world.options();
    options.kafka.bootstrap = Some("127.0.0.1:1".to_owned());
    options.kafka.patience = Duration::from_millis(300);
    let started = Instant::now();
    let report = world.run_with(&[topics("a", json!({"topics": ["t"]}))], &options).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (Some(1), "BR0023"), "{report:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(world.versions().await.is_empty());
}

/// What a TLS listener does with a client that speaks plainly.
#[tokio::test]
async fn a_listener_that_closes_plain_connections_makes_one_think_of_the_protocol() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut plain, _)) = listener.accept() {
            let _ = std::io::Read::read(&mut plain, &mut [0; 64]);
        }
    });
    let world = World::new();
    let mut options = world.options();
    options.kafka.bootstrap = Some(address.to_string());
    options.kafka.patience = Duration::from_secs(1);
    let report = world.run_with(&[topics("a", json!({"topics": ["t"]}))], &options).await.remove(0);
    assert_eq!((exit_of(&report), code_of(&report)), (Some(1), "BR0023"), "{report:?}");
    assert!(report.error.as_ref().unwrap().message.contains("security.protocol"), "{report:?}");
}

#[tokio::test]
async fn a_broker_that_goes_and_comes_back_is_waited_for() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 1)]));
    broker.send("t", 0, 0..50);
    broker.cluster.broker_down(1).unwrap();
    let feeds = [topics("a", json!({"topics": ["t"]}))];
    let options = broker.options(&world);
    let back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        broker.cluster.broker_up(1).unwrap();
    };
    let (reports, ()) = tokio::join!(world.run_with(&feeds, &options), back);
    assert_eq!((reports[0].error.clone(), reports[0].rows_out), (None, 50));
}

#[tokio::test]
async fn settings_that_make_no_consumer_are_named_without_their_values() {
    let world = World::new();
    let run = async |properties: &[(&str, &str)]| {
        let mut options = world.options();
        options.kafka.bootstrap = Some("127.0.0.1:1".to_owned());
        options.kafka.properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let report = world.run_with(&[topics("a", json!({"topics": ["t"]}))], &options).await.remove(0);
        (code_of(&report).to_owned(), exit_of(&report), report.error.unwrap().message)
    };
    for properties in [&[("sasl.pasword", "hunter2")][..], &[("security.protocol", "hunter2")], &[("group.id", "hunter2")]] {
        let (code, exit, message) = run(properties).await;
        assert_eq!((code.as_str(), exit), ("BR0020", BAD_INPUT), "{message}");
        assert!(message.contains(properties[0].0) && !message.contains("hunter2"), "{message}");
    }
    let report = world.run(&[topics("a", json!({"topics": ["t"]}))]).await.remove(0);
    assert!(report.error.unwrap().message.contains("kafka_bootstrap"));
}

#[tokio::test]
async fn a_topic_without_a_leader_stops_its_feed_and_no_other() {
    let (world, broker) = (World::new(), Broker::new(&[("t", 2), ("u", 1)]));
    broker.send("t", 0, 0..3);
    broker.send("u", 0, 3..6);
    broker.cluster.partition_leader("t", 1, None).unwrap();
    let mut options = broker.options(&world);
    options.kafka.patience = Duration::from_secs(1);
    let feeds = [topics("a", json!({"topics": ["t"]})), topics("b", json!({"topics": ["u"]}))];
    let reports = world.run_with(&feeds, &options).await;
    assert_eq!((code_of(&reports[0]), exit_of(&reports[0])), ("BR0023", Some(1)), "{reports:?}");
    assert!(reports[0].error.as_ref().unwrap().message.contains("topic `t`"), "{reports:?}");
    assert_eq!((reports[1].error.clone(), reports[1].rows_out), (None, 3));
    broker.cluster.partition_leader("t", 1, Some(1)).unwrap();
    let reports = world.run_with(&feeds, &broker.options(&world)).await;
    assert_eq!((reports[0].error.clone(), reports[0].rows_out), (None, 3));
}
