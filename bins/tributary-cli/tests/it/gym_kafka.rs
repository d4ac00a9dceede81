//! The gym pipeline with its three topics from a broker: the same tables as from their dump.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;
use tributary::{Lake, OpenOptions};
use tributary_cli::gym::{Gym, GymOptions, compare};

use crate::commands::Shop;

/// Moves a dump's records into their topics, as who dumped them had taken them out. Gives their number.
fn put(producer: &BaseProducer, dump: &Path) -> usize {
    let text = fs::read_to_string(dump).unwrap();
    let lines: Vec<Value> = text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let value = line["value"].as_str().unwrap();
        let told: Value = serde_json::from_str(value).unwrap();
        let key = told.get("user_id").unwrap_or_else(|| &told["device_id"]).to_string();
        let mut record = BaseRecord::to(line["topic"].as_str().unwrap())
            .partition(i32::try_from(line["partition"].as_i64().unwrap()).unwrap())
            .key(&key)
            .payload(value)
            .timestamp(line["timestamp"].as_i64().unwrap() * 1000);
        while let Err((_, again)) = producer.send(record) {
            producer.poll(Duration::from_millis(10));
            record = again;
        }
    }
    producer.flush(Duration::from_secs(20)).unwrap();
    lines.len()
}

#[test]
fn topics_make_the_same_tables_as_their_dump() {
    let cluster = MockCluster::new(1).unwrap();
    ["user_info", "workout", "bpm"].iter().for_each(|topic| cluster.create_topic(topic, 3, 1).unwrap());
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
    let shop = Shop::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bundle = ["databricks.yml", "bundles", "dlt_pipelines"].map(|name| root.join(name));
    assert!(Command::new("cp").arg("-r").args(bundle).arg(shop.path("")).status().unwrap().success());
    let gym = Gym::of(GymOptions { users: 20, days: 9, heart_rate_seconds: 40, ..GymOptions::default() });
    let dumps = tempfile::tempdir().unwrap();
    let raw = shop.path("data/raw");
    gym.write_lookup(&raw).unwrap();
    let (mut records, as_of) = (0, "2024-01-03");
    let servers = cluster.bootstrap_servers();
    let arguments = ["run", "--pipeline", "gym_kafka", "--kafka-bootstrap", &servers, "--as-of", as_of];
    for file in 1..=2 {
        for name in gym.write_files(dumps.path(), file).unwrap() {
            match name.starts_with(['2', '3', '4']) {
                true => records += put(&producer, &dumps.path().join(&name)),
                false => drop(fs::copy(dumps.path().join(&name), raw.join(&name)).unwrap()),
            }
        }
        shop.says(0, &arguments);
    }
    let lake = Lake::open(shop.path("data/lake").to_str().unwrap(), OpenOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut expected = gym.expected(as_of.parse().unwrap());
    // places in topics are not those of the dump; what the records say of themselves is
    expected.remove("bronze.kafka_multiplex_bz");
    for table in runtime.block_on(compare(&lake, &expected)).unwrap() {
        assert!(table.differences.is_empty() && table.rows > 0, "{}\n{}", table.table, table.differences.join("\n"));
    }
    let query = "select count(*) as records, count(distinct topic, partition, offset) as places, \
                 count_if(week_part is null or date <> cast(timestamp_seconds(timestamp) as date)) as wrong, \
                 count_if(cast(unbase64(key) as string) <> coalesce(value:user_id::string, value:device_id::string)) as other_keys, \
                 count_if(source_file <> concat(topic, '/', partition)) as other_sources from bronze.kafka_multiplex_bz";
    let said = shop.says(0, &["sql", query, "-o", "csv"]);
    assert_eq!(said, format!("records,places,wrong,other_keys,other_sources\n{records},{records},0,0,0\n"));
}
