//! What each kind of message becomes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tributary_cdc_decode::{BeforeImages, Decoder, Error, IgnoreReason, LastRow, ReasonCode, Resume};
use tributary_specs::{Decode, ReplicaIdentity};

use crate::capture::{Event, events};
use crate::captures::{feed_for, of_table};
use crate::feeds::{columns, feed};
use crate::message::{cells, create, decode, decode_with, envelope, event, postgres, rows, with_header, wrapped};

const NULL: Value = Value::Null;

fn table() -> tributary_specs::SourceFeed {
    feed(Decode::Debezium, columns("id long\ntitle string\nbody string"))
}

#[test]
fn every_operation_is_a_row_with_its_name() {
    let events = [
        event(0, Some(&json!({"id": 1})), Some(&envelope("r", &NULL, &json!({"id": 1}), &postgres(1)))),
        event(1, Some(&json!({"id": 1})), Some(&create(2, &json!({"id": 1, "title": "a"})))),
        event(2, Some(&json!({"id": 1})), Some(&envelope("u", &NULL, &json!({"id": 1, "title": "b"}), &postgres(3)))),
        event(3, Some(&json!({"id": 1})), Some(&envelope("d", &json!({"id": 1, "title": ""}), &NULL, &postgres(4)))),
        event(4, Some(&json!({"id": 1})), None),
        event(5, None, Some(&envelope("t", &NULL, &NULL, &postgres(5)))),
    ];
    let decoded = decode(&table(), &events);
    assert_eq!(cells(&decoded.batch, "_op"), ["read", "create", "update", "delete", "truncate"]);
    assert_eq!(cells(&decoded.batch, "id"), ["1", "1", "1", "1", "∅"]);
    assert_eq!(decoded.ignored, BTreeMap::from([(IgnoreReason::Tombstone, 1)]));
    assert_eq!(cells(&decoded.batch, "_offset"), ["0", "1", "2", "3", "5"]);
    assert_eq!(cells(&decoded.batch, "_topic")[0], "shop.public.t");
    assert_eq!(cells(&decoded.batch, "_event_time")[0], "2026-02-03T10:00:00.001Z");
    assert_eq!(cells(&decoded.batch, "_ingested_at")[4], "2026-02-03T10:01:40Z");
    let source = &cells(&decoded.batch, "_source")[0];
    assert!(source.contains("connector: postgresql") && source.contains("table: t") && source.contains("snapshot: false"), "{source}");
}

#[test]
fn messages_that_are_no_rows_are_counted_and_never_quarantined() {
    let on = |topic: &str, value: Value| Event { topic: topic.to_owned(), ..event(0, None, Some(&value)) };
    let messages = [
        on(
            "shop.message",
            json!({"op": "m", "ts_ms": 1, "source": {"connector": "postgresql", "lsn": 99, "table": "", "schema": ""}, "message": {"prefix": "beat", "content": "dGljaw=="}}),
        ),
        on("__debezium-heartbeat.shop", json!({"ts_ms": 1_770_112_800_000i64})),
        on("shop.transaction", json!({"status": "BEGIN", "id": "571", "ts_ms": 1, "event_count": null, "data_collections": null})),
        on(
            "shop.transaction",
            json!({"status": "END", "id": "571", "ts_ms": 1, "event_count": 2, "data_collections": [{"data_collection": "public.orders", "event_count": 2}]}),
        ),
        on(
            "wh",
            json!({"source": {"connector": "mysql"}, "ts_ms": 1, "databaseName": "d", "schemaName": null, "ddl": "CREATE TABLE t (id int)", "tableChanges": []}),
        ),
        on("shop.public.cdc_signal", create(1, &json!({"id": "s", "type": "execute-snapshot", "data": "{}"}))),
        on(
            "shop.notifications",
            json!({"id": "n", "type": "STARTED", "aggregate_type": "Initial Snapshot", "additional_data": {}, "timestamp": 1}),
        ),
    ];
    let expected = BTreeMap::from([
        (IgnoreReason::LogicalMessage, 1),
        (IgnoreReason::Heartbeat, 1),
        (IgnoreReason::Transaction, 2),
        (IgnoreReason::SchemaChange, 1),
        (IgnoreReason::Signal, 1),
        (IgnoreReason::Notification, 1),
    ]);
    for declared in [table(), feed(Decode::Debezium, Vec::new())] {
        let decoded = decode(&declared, &messages);
        assert_eq!(decoded.ignored, expected);
        assert_eq!((decoded.batch.num_rows(), decoded.rejects.len()), (0, 0));
    }
    let flattened = decode(&feed(Decode::DebeziumFlattened, Vec::new()), &messages[1..5]);
    assert_eq!(flattened.batch.num_rows() + flattened.rejects.len(), 0);
    assert!(flattened.schema_change.is_none(), "such messages bring no columns");
}

#[test]
fn a_tombstone_may_also_be_a_null_payload_or_the_text_null() {
    let mut messages = vec![
        event(0, Some(&json!({"id": 1})), Some(&json!({"schema": null, "payload": null}))),
        event(1, None, Some(&NULL)),
        event(2, None, None),
    ];
    messages[2].value = Some(String::new());
    assert_eq!(decode(&table(), &messages).ignored, BTreeMap::from([(IgnoreReason::Tombstone, 3)]));
}

#[test]
fn the_placeholder_of_an_unchanged_value_never_becomes_data() {
    let declared = columns(
        "id long\nbody string\nbin binary base64\ntexts array<string>\nnumbers array<integer>\nbigs array<long>\nuuids array<string>\nstore map<string,string>\ndoc string",
    );
    let marker = "__debezium_unavailable_value";
    let spelled: Vec<u8> = marker.bytes().collect();
    let row = json!({"id": 1, "body": marker, "bin": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "texts": [marker], "numbers": spelled,
        "bigs": spelled, "uuids": ["5c8c6b6b-bb0e-3c1f-8a8f-6f1a3a1d0c4e"], "store": {marker: marker}, "doc": marker});
    let decoded = decode(&feed(Decode::Debezium, declared), &[event(0, None, Some(&envelope("u", &NULL, &row, &postgres(1))))]);
    let names = "[bigs, bin, body, doc, numbers, store, texts]";
    assert_eq!(cells(&decoded.batch, "_unavailable"), [names]);
    let row = &rows(&decoded.batch)[0];
    for column in ["body", "bin", "texts", "numbers", "bigs", "store", "doc"] {
        assert!(!row.contains_key(column), "{column}");
    }
    assert!(!format!("{row:?}").contains("__debezium_unavailable"), "{row:?}");
}

#[test]
fn the_placeholder_is_known_in_messages_with_schema_and_of_another_setting() {
    let fields = json!([{"type": "bytes", "optional": true, "field": "bin"}, {"type": "string", "optional": true, "field": "body"}]);
    let payload = envelope("u", &NULL, &json!({"bin": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "body": "kept"}), &postgres(1));
    let decoded = decode(&feed(Decode::Debezium, Vec::new()), &[event(0, None, Some(&wrapped(&fields, &payload)))]);
    assert_eq!(cells(&decoded.batch, "_unavailable"), ["[bin]"]);
    let mut other = table();
    other.properties.insert("tributary.cdc.unavailableValuePlaceholder".to_owned(), "NOT SENT".to_owned());
    let decoded =
        decode(&other, &[event(0, None, Some(&create(1, &json!({"id": 1, "title": "NOT SENT", "body": "__debezium_unavailable_value"}))))]);
    assert_eq!(cells(&decoded.batch, "_unavailable"), ["[title]"]);
    assert_eq!(cells(&decoded.batch, "body"), ["__debezium_unavailable_value"]);
}

#[test]
fn both_halves_of_a_key_change_are_found_by_their_headers_however_these_are_written() {
    let plain = |key: &Value| key.to_string();
    let quoted = |key: &Value| Value::String(key.to_string()).to_string();
    let blanks = |key: &Value| format!(" {key} ");
    let schema = json!({"type": "struct", "fields": [{"type": "int64", "optional": false, "field": "id"}], "optional": false});
    let with_schema = |key: &Value| json!({"schema": schema, "payload": key}).to_string();
    let forms: [&dyn Fn(&Value) -> String; 4] = [&plain, &quoted, &blanks, &with_schema];
    for write in forms {
        let old = envelope("d", &json!({"id": 1, "title": null}), &NULL, &postgres(11));
        let new = create(11, &json!({"id": 2, "title": "x"}));
        let halves = [
            with_header(event(0, Some(&json!({"id": 1})), Some(&old)), "__debezium.newkey", &write(&json!({"id": 2}))),
            with_header(event(1, Some(&json!({"id": 2})), Some(&new)), "__debezium.oldkey", &write(&json!({"id": 1}))),
        ];
        let decoded = decode(&table(), &halves);
        assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
        assert_eq!(cells(&decoded.batch, "_key_changed_to"), ["{id: 2}", "∅"]);
        assert_eq!(cells(&decoded.batch, "_key_changed_from"), ["∅", "{id: 1}"]);
        let positions = cells(&decoded.batch, "_position");
        assert_eq!(positions[0], positions[1]);
    }
}

#[test]
fn a_key_change_whose_header_cannot_be_read_goes_to_quarantine() {
    for (header, problem) in [
        ("Struct{id=Struct{scale=0,value=java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]}}", "header.converter"),
        ("Struct{other=1}", "header.converter"),
        ("Struct{id=one}", "none of its column's type"),
        ("id is 1", "cannot be read"),
    ] {
        let half = with_header(event(0, Some(&json!({"id": 2})), Some(&create(1, &json!({"id": 2})))), "__debezium.oldkey", header);
        let decoded = decode(&table(), &[half]);
        let [reject] = decoded.rejects.as_slice() else { panic!("{header}: {:?}", decoded.rejects) };
        assert_eq!(reject.reason, ReasonCode::BrokenHeader);
        assert!(reject.message.contains(problem), "{header}: {}", reject.message);
    }
}

#[test]
fn a_key_change_whose_header_is_a_struct_as_text_is_read_where_the_keys_are_simple() {
    let columns = columns("area string\nno long\ntitle string");
    let key = |area: &str, no: i64| json!({"area": area, "no": no});
    let old = envelope("d", &json!({"area": "a,no", "no": 1, "title": null}), &NULL, &postgres(11));
    let new = create(11, &json!({"area": "b", "no": 2, "title": "x"}));
    let decoded = decode(
        &feed(Decode::Debezium, columns),
        &[
            with_header(event(0, Some(&key("a,no", 1)), Some(&old)), "__debezium.newkey", "Struct{area=b,no=2}"),
            with_header(event(1, Some(&key("b", 2)), Some(&new)), "__debezium.oldkey", "Struct{area=a,no,no=1}"),
        ],
    );
    assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
    assert_eq!(cells(&decoded.batch, "_key_changed_to"), ["{area: b, no: 2}", "∅"]);
    assert_eq!(cells(&decoded.batch, "_key_changed_from"), ["∅", "{area: a,no, no: 1}"]);
}

#[test]
fn the_structs_of_a_key_change_hold_the_key_columns_and_come_once_these_are_known() {
    let names = |decoder: &Decoder| {
        let columns = decoder.columns();
        columns
            .into_iter()
            .filter(|column| column.name.starts_with("_key_changed"))
            .map(|column| column.data_type.to_string())
            .collect::<Vec<_>>()
    };
    let mut decoder = Decoder::new(&table()).unwrap();
    assert!(names(&decoder).is_empty(), "no key is declared and none has come");
    decode_with(&mut decoder, &[event(0, None, Some(&envelope("t", &NULL, &NULL, &postgres(1))))]);
    assert!(names(&decoder).is_empty(), "a truncate has no key");
    decode_with(&mut decoder, &[event(1, Some(&json!({"id": 1})), Some(&create(2, &json!({"id": 1}))))]);
    assert_eq!(names(&decoder), ["struct<id:long>"; 2]);
    let mut resumed = Decoder::new(&table()).unwrap();
    resumed.resume(Resume { columns: decoder.columns(), ..Resume::default() });
    assert_eq!(names(&resumed), ["struct<id:long>"; 2]);
    let mut declared = table();
    declared.keys = vec!["title".to_owned()];
    assert_eq!(names(&Decoder::new(&declared).unwrap()), ["struct<title:string>"; 2]);
}

#[test]
fn of_an_incomplete_before_image_only_the_key_is_taken() {
    let delete = envelope("d", &json!({"id": 5, "title": "", "body": null}), &NULL, &postgres(11));
    let decoded = decode(&table(), &[event(0, Some(&json!({"id": 5})), Some(&delete))]);
    assert_eq!(cells(&decoded.batch, "id"), ["5"]);
    assert_eq!(cells(&decoded.batch, "title"), ["∅"], "an empty text here is invented");
    assert_eq!(cells(&decoded.batch, "_before"), ["∅"]);
    let mut by_declared_key = table();
    by_declared_key.keys = vec!["id".to_owned()];
    let decoded =
        decode(&by_declared_key, &[event(0, None, Some(&create(1, &json!({"id": 5})))), event(0, Some(&json!({"id": 5})), Some(&delete))]);
    assert_eq!(cells(&decoded.batch, "title"), ["∅", "∅"]);
}

#[test]
fn a_complete_before_image_is_taken_where_the_feed_or_the_connector_says_so() {
    let row = json!({"id": 5, "title": "", "body": null});
    let mut full = table();
    full.replica_identity = ReplicaIdentity::Full;
    let delete = envelope("d", &row, &NULL, &postgres(11));
    let decoded = decode(&full, &[event(0, Some(&json!({"id": 5})), Some(&delete))]);
    assert_eq!(
        (cells(&decoded.batch, "title"), cells(&decoded.batch, "_before")),
        (vec![String::new()], vec!["{id: 5, title: , body: ∅}".to_owned()])
    );
    for connector in ["mysql", "mariadb", "sqlserver"] {
        let delete = envelope("d", &row, &NULL, &json!({"connector": connector}));
        let decoded = decode(&table(), &[event(0, Some(&json!({"id": 5})), Some(&delete))]);
        assert_eq!(cells(&decoded.batch, "_before"), ["{id: 5, title: , body: ∅}"], "{connector}");
    }
}

#[test]
fn a_before_image_with_a_value_that_was_not_sent_is_none() {
    let mut full = table();
    full.replica_identity = ReplicaIdentity::Full;
    let (row, partly) =
        (json!({"id": 5, "title": "t", "body": "b"}), json!({"id": 5, "title": "t", "body": "__debezium_unavailable_value"}));
    let changes = [
        event(0, None, Some(&envelope("u", &partly, &row, &postgres(10)))),
        event(1, None, Some(&envelope("u", &row, &partly, &postgres(11)))),
        event(2, Some(&json!({"id": 5})), Some(&envelope("d", &partly, &NULL, &postgres(12)))),
    ];
    let decoded = decode(&full, &changes);
    assert_eq!(cells(&decoded.batch, "_before"), ["∅", "{id: 5, title: t, body: b}", "∅"]);
    assert_eq!(cells(&decoded.batch, "_unavailable"), ["∅", "[body]", "[body]"]);
    assert_eq!(cells(&decoded.batch, "title"), ["t"; 3]);
}

#[test]
fn an_update_shows_by_a_value_it_sets_to_null_that_before_images_are_complete() {
    let mut decoder = Decoder::new(&table()).unwrap();
    let key = json!({"id": 5});
    let delete = |lsn| event(lsn, Some(&key), Some(&envelope("d", &json!({"id": 5, "title": "t", "body": "b"}), &NULL, &postgres(lsn))));
    let update = |lsn, before: &Value, after: &Value| event(lsn, Some(&key), Some(&envelope("u", before, after, &postgres(lsn))));
    let row = json!({"id": 5, "title": "t", "body": "b"});
    let decoded = decode_with(&mut decoder, &[delete(1), update(2, &row, &row)]);
    assert_eq!(cells(&decoded.batch, "_before"), ["∅", "∅"], "nothing has been shown yet");
    let emptied = update(3, &row, &json!({"id": 5, "title": null, "body": "b"}));
    let decoded = decode_with(&mut decoder, &[emptied, delete(4)]);
    assert_eq!(cells(&decoded.batch, "_before"), ["{id: 5, title: t, body: b}"; 2], "title takes nulls, so its value was sent");
    assert_eq!(cells(&decoded.batch, "title"), ["∅", "t"]);
    let decoded = decode_with(&mut decoder, &[update(2, &NULL, &row), delete(5)]);
    assert_eq!(cells(&decoded.batch, "title"), ["t", "t"], "an older change takes nothing back");
    let decoded = decode_with(&mut decoder, &[update(6, &NULL, &row), delete(7)]);
    assert_eq!(cells(&decoded.batch, "_before"), ["∅", "∅"], "an update without before-image took the trust back");
}

#[test]
fn a_schema_with_nullable_columns_shows_it_at_once() {
    let fields = json!([{"type": "int64", "optional": false, "field": "id"}, {"type": "string", "optional": true, "field": "title"}]);
    let delete = |title: Value| {
        let change = envelope("d", &json!({"id": 5, "title": title}), &NULL, &postgres(1));
        let decoded = decode(&feed(Decode::Debezium, Vec::new()), &[event(1, Some(&json!({"id": 5})), Some(&wrapped(&fields, &change)))]);
        cells(&decoded.batch, "_before").remove(0)
    };
    assert_eq!(delete(json!("t")), "{id: 5, title: t}");
    assert_eq!(delete(NULL), "∅");
}

#[test]
fn a_restart_goes_on_with_what_the_table_says() {
    let feed = table();
    let key = json!({"id": 5});
    let mut first = Decoder::new(&feed).unwrap();
    let decoded = decode_with(&mut first, &[event(0, Some(&key), Some(&create(100, &json!({"id": 5}))))]);
    let mut second = Decoder::new(&feed).unwrap();
    let position = cells(&decoded.batch, "_position")[0].clone();
    second.resume(Resume {
        columns: first.columns(),
        partitions: BTreeMap::from([(
            ("shop.public.t".to_owned(), 0),
            LastRow { position: position.clone(), server: None, source_ts_us: Some(1_770_112_800_100_000) },
        )]),
        before_images: Some(BeforeImages { position: position.clone(), complete: true }),
    });
    let mut source = postgres(0);
    source.as_object_mut().unwrap().remove("lsn");
    source["snapshot"] = "incremental".into();
    let incremental = event(1, Some(&key), Some(&envelope("r", &NULL, &json!({"id": 6}), &source)));
    let delete = event(2, Some(&key), Some(&envelope("d", &json!({"id": 5, "title": "t", "body": null}), &NULL, &postgres(200))));
    let decoded = decode_with(&mut second, &[incremental, delete]);
    assert_eq!(cells(&decoded.batch, "_position")[0], position);
    assert_eq!(cells(&decoded.batch, "title")[1], "t");
    assert!(decoded.schema_change.is_none());
}

#[test]
fn a_key_without_schema_goes_with_a_value_that_has_one() {
    let fields = json!([{"type": "int64", "optional": false, "field": "id"}, {"type": "string", "optional": true, "field": "title"}]);
    let key = json!({"id": 5, "__dbz__physicalTableIdentifier": "shard"});
    let delete = envelope("d", &json!({"id": 5, "title": null}), &NULL, &postgres(2));
    let events = [
        event(0, Some(&key), Some(&wrapped(&fields, &create(1, &json!({"id": 5, "title": "t"}))))),
        event(1, Some(&key), Some(&wrapped(&fields, &delete))),
    ];
    let decoded = decode(&feed(Decode::Debezium, Vec::new()), &events);
    assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects);
    assert_eq!(cells(&decoded.batch, "id"), ["5", "5"]);
    assert_eq!(cells(&decoded.batch, "title"), ["t", "∅"]);
    assert!(cells(&decoded.batch, "_rescued_data")[1].contains("shard"));
}

#[test]
fn a_delete_of_which_nothing_can_be_trusted_goes_to_quarantine() {
    let delete = envelope("d", &NULL, &NULL, &postgres(11));
    assert_eq!(decode(&table(), &[event(0, None, Some(&delete))]).rejects[0].reason, ReasonCode::MissingKey);
}

#[test]
fn positions_sort_as_the_source_does() {
    let mysql =
        |file: &str, pos: i64, row: i64| json!({"connector": "mysql", "server_id": 1, "file": file, "pos": pos, "row": row, "ts_ms": 1});
    let sqlserver = |commit: &str, change: Value, serial: Value| json!({"connector": "sqlserver", "commit_lsn": commit, "change_lsn": change, "event_serial_no": serial, "ts_ms": 1});
    for (sources, expected) in [
        (
            vec![mysql("bin.000009", 9_999, 0), mysql("bin.000010", 4, 0), mysql("bin.000010", 4, 1), mysql("bin.1000000", 4, 0)],
            "000000/0000000009/00000000000000009999/0000000000",
        ),
        (
            vec![
                sqlserver("00000027:00000ac0:0002", NULL, NULL),
                sqlserver("00000027:00000ac0:0003", json!("00000027:00000ac0:0002"), json!(1)),
                sqlserver("00000027:00000ac0:0003", json!("00000027:00000ac0:0002"), json!(2)),
            ],
            "000000/00000027:00000ac0:0002/00000000:00000000:0000/0000000000",
        ),
        (
            vec![json!({"connector": "db2", "change_lsn": "1"}), json!({"connector": "db2", "change_lsn": "0"})],
            "000000/00000000000000000000",
        ),
    ] {
        let events: Vec<_> = sources
            .iter()
            .zip(0i64..)
            .map(|(source, at)| event(at, None, Some(&envelope("c", &NULL, &json!({"id": at}), source))))
            .collect();
        let positions = cells(&decode(&table(), &events).batch, "_position");
        assert_eq!(positions[0], expected);
        assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
    }
}

#[test]
fn positions_that_run_backwards_stop_the_feed_unless_it_says_what_to_do() {
    let run = |policy: Option<&str>| {
        let mut feed = table();
        if let Some(policy) = policy {
            feed.properties.insert("tributary.cdc.positionsBackwards".to_owned(), policy.to_owned());
        }
        let mut restored = postgres(20);
        restored["ts_ms"] = json!(1_770_112_800_900i64);
        decode(
            &feed,
            &[
                event(0, None, Some(&create(500, &json!({"id": 1})))),
                event(1, None, Some(&envelope("c", &NULL, &json!({"id": 2}), &restored))),
            ],
        )
    };
    let stop = run(None).stop.unwrap();
    assert!(matches!(stop, Error::PositionsBackwards { .. }), "{stop}");
    assert!(stop.to_string().contains("offset 1"), "{stop}");
    let epochs = cells(&run(Some("newEpoch")).batch, "_position");
    assert!(epochs[0] < epochs[1] && epochs[1].starts_with("000001/"), "{epochs:?}");
    let accepted = cells(&run(Some("accept")).batch, "_position");
    assert!(accepted[1] < accepted[0], "{accepted:?}");
    let mut unknown = table();
    unknown.properties.insert("tributary.cdc.positionsBackwards".to_owned(), "later".to_owned());
    assert!(Decoder::new(&unknown).unwrap_err().to_string().contains("newEpoch"));
}

#[test]
fn a_restart_of_the_source_repeats_older_changes_and_stops_nothing() {
    let create = |offset, lsn: i64| event(offset, None, Some(&create(lsn, &json!({"id": lsn}))));
    let decoded = decode(&table(), &[create(0, 10), create(1, 20), create(2, 30), create(3, 20), create(4, 30), create(5, 40)]);
    assert!(decoded.stop.is_none());
    let positions = cells(&decoded.batch, "_position");
    assert_eq!(positions[1..3], positions[3..5]);
    assert_eq!(decoded.notes.values().copied().collect::<Vec<_>>(), [1], "{:?}", decoded.notes);
}

#[test]
fn recorded_snapshots_sort_before_the_stream_and_share_one_position() {
    for (capture, table) in [("postgres-json-default", "customers"), ("mysql-json-default", "inventory")] {
        let decoded = decode(&feed_for(capture, table), &of_table(&events(capture), table));
        let (ops, positions) = (cells(&decoded.batch, "_op"), cells(&decoded.batch, "_position"));
        let snapshot: Vec<&String> = ops.iter().zip(&positions).filter(|(op, _)| *op == "read").map(|(_, position)| position).collect();
        assert!(snapshot.len() > 5 && snapshot.iter().all(|position| *position == snapshot[0]), "{snapshot:?}");
        let mut stream = ops.iter().zip(&positions).filter(|(op, _)| *op != "read");
        assert!(stream.all(|(_, position)| position > snapshot[0]));
    }
}

#[test]
fn recorded_streams_never_run_backwards() {
    for capture in [
        "postgres-json-default",
        "postgres-big-workload",
        "postgres-incremental-snapshot",
        "mysql-json-default",
        "postgres-unwrap-rewrite",
        "mysql-unwrap-rewrite",
    ] {
        let all = events(capture);
        for table in ["customers", "orders", "order_items", "inventory", "stock_moves"] {
            let events = of_table(&all, table);
            if events.is_empty() {
                continue;
            }
            for partition in 0..3 {
                let events: Vec<Event> = events.iter().filter(|event| event.partition == partition).cloned().collect();
                let positions = cells(&decode(&feed_for(capture, table), &events).batch, "_position");
                assert!(positions.is_sorted(), "{capture} {table}");
            }
        }
    }
}

#[test]
fn a_flattened_delete_is_a_row_a_null_value_or_both() {
    let flattened = feed(Decode::DebeziumFlattened, columns("id long\ntitle string"));
    let key = json!({"id": 1});
    let row = |lsn: i64, op: &str, deleted: Option<&str>| {
        let mut row =
            json!({"id": 1, "title": "t", "__op": op, "__lsn": lsn, "__source_ts_ms": 1_770_112_800_000i64 + lsn, "__table": "t"});
        if let Some(deleted) = deleted {
            row["__deleted"] = deleted.into();
        }
        row
    };
    let tombstones = decode(&flattened, &[event(0, Some(&key), Some(&row(10, "c", None))), event(1, Some(&key), None)]);
    assert_eq!(cells(&tombstones.batch, "_op"), ["create", "delete"]);
    assert_eq!(cells(&tombstones.batch, "title"), ["t", "∅"]);
    let positions = cells(&tombstones.batch, "_position");
    assert_eq!(positions[0], positions[1], "a delete without position has the last of its partition");
    let both = decode(
        &flattened,
        &[
            event(0, Some(&key), Some(&row(10, "c", Some("false")))),
            event(1, Some(&key), Some(&row(11, "d", Some("true")))),
            event(2, Some(&key), None),
        ],
    );
    assert_eq!(cells(&both.batch, "_op"), ["create", "delete"]);
    assert_eq!(both.ignored, BTreeMap::from([(IgnoreReason::Tombstone, 1)]));
    assert!(cells(&both.batch, "_source")[0].contains("table: t"));
    let by_header = with_header(event(0, Some(&key), Some(&json!({"id": 1}))), "__op", "\"r\"");
    assert_eq!(cells(&decode(&flattened, &[by_header]).batch, "_op"), ["read"]);
}

#[test]
fn recorded_transactions_are_named_in_the_source() {
    let decoded = decode(&feed_for("postgres-txmeta-heartbeat", "orders"), &of_table(&events("postgres-txmeta-heartbeat"), "orders"));
    let of_transaction = |source: &String| {
        let id = source.split("tx_id: ").nth(1).and_then(|id| id.split_once(':'));
        id.is_some_and(|(id, _)| id.parse::<u64>().is_ok())
    };
    let sources = cells(&decoded.batch, "_source");
    assert!(sources.iter().filter(|source| of_transaction(source)).count() > 10, "{sources:?}");
}
