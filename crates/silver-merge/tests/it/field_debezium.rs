//! The DBZS cases of `tests/cases/handed.jsonl`, from the connector's bytes through the decoder into silver.

use anyhow::{Result, ensure};
use serde_json::{Value as Json, json};
use tributary_cdc_decode::{Decoder, Header, IgnoreReason, ReasonCode, Record};
use tributary_specs::{
    Column, CsvOptions, DataType, Decode, FileFormat, FileSource, MergePolicy, ReplicaIdentity, SchemaPolicy, SilverSpec, Source,
    SourceFeed,
};
use tributary_testkit::cases::{HandedCase, handed_case};
use tributary_testkit::{Frame, Value};

use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, source, spec, target};

fn feed(columns: &[(&str, DataType)], keys: &[&str]) -> SourceFeed {
    SourceFeed {
        name: "t".to_owned(),
        table: source("t"),
        source: Source::Files(FileSource {
            path: "drop".to_owned(),
            format: FileFormat::KafkaJsonl,
            glob: None,
            topics: Vec::new(),
            csv: CsvOptions::default(),
            settle_seconds: 0,
            mirrors: false,
            with_metadata: false,
        }),
        decode: Decode::Debezium,
        columns: columns.iter().map(|(name, data_type)| Column::new(*name, data_type.clone())).collect(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        schema_policy: SchemaPolicy::Add,
        replica_identity: ReplicaIdentity::Default,
        partition_by: Vec::new(),
        cluster_by: Vec::new(),
        quarantine: None,
        comment: None,
        properties: std::collections::BTreeMap::new(),
    }
}

/// A Kafka record of a case: an object with topic, partition, offset, key and value, or the bare envelope.
struct Event {
    topic: String,
    partition: i32,
    offset: i64,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(String, String)>,
}

impl Event {
    fn of(at: usize, json: &Json) -> Self {
        let text = |json: &Json| (!json.is_null()).then(|| json.to_string());
        if json.get("topic").is_none() {
            return Self { topic: "t".to_owned(), partition: 0, offset: at as i64, key: None, value: text(json), headers: Vec::new() };
        }
        let number = |name: &str| json[name].as_i64().unwrap_or_else(|| panic!("{name} of {json}"));
        Self {
            topic: json["topic"].as_str().unwrap_or("t").to_owned(),
            partition: number("partition") as i32,
            offset: number("offset"),
            key: text(&json["key"]),
            value: text(&json["value"]),
            headers: Vec::new(),
        }
    }
}

fn events(case: &HandedCase) -> Vec<Event> {
    case.input["events"].as_array().expect("events").iter().enumerate().map(|(at, json)| Event::of(at, json)).collect()
}

fn borrowed<'a>(event: &'a Event, headers: &'a [Header<'a>]) -> Record<'a> {
    Record {
        topic: &event.topic,
        partition: event.partition,
        offset: event.offset,
        key: event.key.as_deref().map(str::as_bytes),
        value: event.value.as_deref().map(str::as_bytes),
        headers,
        timestamp_ms: Some(0),
        file: None,
        line: None,
    }
}

fn decode(decoder: &mut Decoder, events: &[&Event]) -> tributary_cdc_decode::Decoded {
    let headers: Vec<Vec<Header<'_>>> = events
        .iter()
        .map(|event| event.headers.iter().map(|(key, value)| Header { key, value: Some(value.as_bytes()) }).collect())
        .collect();
    let records: Vec<Record<'_>> = events.iter().zip(&headers).map(|(event, headers)| borrowed(event, headers)).collect();
    decoder.decode(&records, 0)
}

/// Decodes the batches and brings silver up to date after each.
async fn play(feed: &SourceFeed, dataset: &SilverSpec, batches: &[Vec<&Event>]) -> Result<World> {
    let world = World::new();
    let mut decoder = Decoder::new(feed)?;
    for batch in batches {
        let decoded = decode(&mut decoder, batch);
        ensure!(decoded.stop.is_none() && decoded.rejects.is_empty(), "{:?} {:?}", decoded.stop, decoded.rejects);
        if decoded.batch.num_rows() > 0 {
            world.append(&source("t"), &Frame::from(decoded.batch)).await?;
            world.run(dataset).await?;
        }
    }
    if world.lake.table(&dataset.table).await?.is_some() {
        feed_replays_to_the_table(&world, &dataset.table).await?;
    }
    Ok(world)
}

async fn objects(world: &World, columns: &[&str]) -> Result<Vec<Json>> {
    let mut rows = world.rows(&target("t"), columns).await?.rows();
    rows.sort();
    Ok(rows
        .iter()
        .map(|row| {
            columns.iter().map(|name| (*name).to_owned()).zip(row.iter().map(Value::to_json)).collect::<serde_json::Map<_, _>>().into()
        })
        .collect())
}

/// Every way to cut the events into one to three batches.
fn cuts(events: &[Event]) -> Vec<Vec<Vec<&Event>>> {
    let n = events.len();
    let mut all = vec![vec![events.iter().collect::<Vec<_>>()], events.iter().map(|event| vec![event]).collect()];
    for a in 1..n {
        for b in a..n {
            let parts = [&events[..a], &events[a..b], &events[b..]];
            all.push(parts.iter().filter(|part| !part.is_empty()).map(|part| part.iter().collect()).collect());
        }
    }
    all
}

const TEXT: DataType = DataType::String;
const WHOLE: DataType = DataType::Long;

#[test]
fn dbzs_01_an_unsent_value_keeps_the_known_one_for_every_cut_into_batches() {
    let case = handed_case("DBZS-01");
    let events = events(&case);
    let feed = feed(&[("id", WHOLE), ("title", TEXT), ("body", TEXT)], &["id"]);
    for policy in [MergePolicy::ScdType1, SCD2] {
        for batches in cuts(&events) {
            block_on(async {
                let world = play(&feed, &spec("t", &["id"], policy.clone()), &batches).await?;
                let mut rows = world.all(&target("t")).await?;
                if policy == SCD2 {
                    let schema = rows.schema();
                    let end = schema.index_of("__END_AT")?;
                    let open: Vec<Vec<Value>> = rows.rows().into_iter().filter(|row| row[end].is_null()).collect();
                    rows = Frame::from_rows(schema, &open);
                }
                let mut rows = rows.select(&["id", "title", "body"]).rows();
                rows.sort();
                let found: Vec<Json> =
                    rows.iter().map(|row| json!({ "id": row[0].to_json(), "title": row[1].to_json(), "body": row[2].to_json() })).collect();
                ensure!(Json::Array(found.clone()) == case.expected["silver_rows"], "{found:?}");
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn dbzs_01_a_value_that_was_never_sent_is_unknown_and_said_to_be() {
    let case = handed_case("DBZS-01");
    let events = events(&case);
    block_on(async {
        let feed = feed(&[("id", WHOLE), ("title", TEXT), ("body", TEXT)], &["id"]);
        let world = World::new();
        let decoded = decode(&mut Decoder::new(&feed)?, &[&events[2]]);
        world.append(&source("t"), &Frame::from(decoded.batch)).await?;
        let report = world.run(&spec("t", &["id"], MergePolicy::ScdType1)).await?;
        ensure!(objects(&world, &["id", "title", "body"]).await? == [json!({ "id": 1, "title": "a2", "body": null })]);
        ensure!(report.notes.iter().any(|note| note.contains("body")), "the report must name the column: {:?}", report.notes);
        Ok(())
    })
    .unwrap();
}

#[test]
fn dbzs_03_a_key_change_leaves_one_row_whichever_half_comes_first() {
    let case = handed_case("DBZS-03");
    let mut events = events(&case);
    events[1].headers.push(("__debezium.newkey".to_owned(), "{\"id\":2}".to_owned()));
    events[3].headers.push(("__debezium.oldkey".to_owned(), "{\"id\":1}".to_owned()));
    let feed = feed(&[("id", WHOLE), ("n", TEXT)], &["id"]);
    let forward: Vec<&Event> = events.iter().collect();
    let other_partition_first = vec![&events[3], &events[0], &events[1], &events[2]];
    for order in [forward, other_partition_first] {
        for size in 1..=order.len() {
            let batches: Vec<Vec<&Event>> = order.chunks(size).map(<[&Event]>::to_vec).collect();
            for policy in [MergePolicy::ScdType1, SCD2] {
                block_on(async {
                    let world = play(&feed, &spec("t", &["id"], policy.clone()), &batches).await?;
                    let all = world.all(&target("t")).await?;
                    let live = match policy {
                        MergePolicy::ScdType1 => all.rows(),
                        _ => all.rows().into_iter().filter(|row| row.last().is_some_and(Value::is_null)).collect(),
                    };
                    let live: Vec<&[Value]> = live.iter().map(|row| &row[..2]).collect();
                    ensure!(live == [[Value::from(2), Value::from("x")].as_slice()], "{live:?}");
                    Ok(())
                })
                .unwrap();
            }
        }
    }
}

#[test]
fn dbzs_06_what_is_no_row_is_counted_and_never_a_row() {
    let case = handed_case("DBZS-06");
    let mut events = events(&case);
    for (event, topic) in events.iter_mut().zip(case.input["topics"].as_array().expect("topics")) {
        event.topic = topic.as_str().expect("a topic").to_owned();
    }
    let decoded = decode(&mut Decoder::new(&feed(&[("id", WHOLE)], &["id"])).unwrap(), &events.iter().collect::<Vec<_>>());
    assert_eq!((decoded.batch.num_rows(), decoded.rejects.len()), (0, 0));
    assert!(decoded.stop.is_none());
    let counted: Vec<(IgnoreReason, u64)> = decoded.ignored.into_iter().collect();
    assert_eq!(counted, [(IgnoreReason::Heartbeat, 1), (IgnoreReason::Transaction, 2), (IgnoreReason::LogicalMessage, 1)]);
}

#[test]
fn dbzs_07_a_truncate_takes_what_is_earlier_and_a_late_earlier_create_stays_away() {
    let case = handed_case("DBZS-07");
    let mut events = events(&case);
    let mut late = case.input["events"][0].clone();
    late["offset"] = 4.into();
    late["value"]["source"]["lsn"] = 9.into();
    late["value"]["after"]["id"] = 9.into();
    late["key"]["id"] = 9.into();
    // In another partition: in one partition positions never run backwards without a restart.
    late["partition"] = 1.into();
    late["offset"] = 0.into();
    events.push(Event::of(4, &late));
    let feed = feed(&[("id", WHOLE)], &["id"]);
    for batches in cuts(&events) {
        block_on(async {
            let world = play(&feed, &spec("t", &["id"], MergePolicy::ScdType1), &batches).await?;
            ensure!(Json::Array(objects(&world, &["id"]).await?) == case.expected["silver_rows"], "{:?}", objects(&world, &["id"]).await?);
            let world = play(&feed, &spec("t", &["id"], SCD2), &batches).await?;
            let open: Vec<Vec<Value>> =
                world.all(&target("t")).await?.rows().into_iter().filter(|row| row.last().is_some_and(Value::is_null)).collect();
            ensure!(open.len() == 1 && open[0][0] == 3.into(), "{open:?}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn dbzs_09_a_delete_with_nothing_but_the_key_overwrites_nothing() {
    let case = handed_case("DBZS-09");
    let events = events(&case);
    let feed = feed(&[("id", WHOLE), ("email", TEXT), ("amt", WHOLE)], &["id"]);
    let hard = spec("t", &["id"], MergePolicy::ScdType1);
    let mut soft = hard.clone();
    soft.deletes.soft_delete_column = Some("_deleted".to_owned());
    for batches in cuts(&events) {
        block_on(async {
            let world = play(&feed, &hard, &batches).await?;
            ensure!(Json::Array(objects(&world, &["id", "email", "amt"]).await?) == case.expected["hard"]);
            let world = play(&feed, &soft, &batches).await?;
            let found = objects(&world, &["id", "email", "amt", "_deleted"]).await?;
            ensure!(Json::Array(found.clone()) == case.expected["soft"], "{found:?}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn dbzs_11_a_value_of_another_type_is_set_aside_by_name_and_the_rest_goes_on() {
    let case = handed_case("DBZS-11");
    let mut events = events(&case);
    for (event, key) in events.iter_mut().zip(["{\"id\":1}", "{\"id\":2}"]) {
        event.key = Some(key.to_owned());
    }
    let events: Vec<&Event> = events.iter().collect();
    let whole = [("id", DataType::Integer), ("code", DataType::Integer)];
    block_on(async {
        let decoded = decode(&mut Decoder::new(&feed(&whole, &["id"]))?, &events);
        ensure!(decoded.rejects.len() == 1 && decoded.rejects[0].index == 1, "{:?}", decoded.rejects);
        let reject = &decoded.rejects[0];
        ensure!(
            reject.reason == ReasonCode::WrongType && reject.message.contains("code") && reject.message.contains("integer"),
            "{reject:?}"
        );
        let world = World::new();
        world.append(&source("t"), &Frame::from(decoded.batch)).await?;
        world.run(&spec("t", &["id"], MergePolicy::ScdType1)).await?;
        ensure!(objects(&world, &["id", "code"]).await? == [json!({ "id": 1, "code": 7 })]);
        // Declared as text, the same two records are two rows.
        let text = [("id", DataType::Integer), ("code", TEXT)];
        let world = play(&feed(&text, &["id"]), &spec("t", &["id"], MergePolicy::ScdType1), &[events]).await?;
        ensure!(objects(&world, &["id", "code"]).await? == [json!({ "id": 1, "code": "7" }), json!({ "id": 2, "code": "A-7" })]);
        Ok(())
    })
    .unwrap();
}
