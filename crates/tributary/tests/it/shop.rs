//! A small shop: change events in Debezium's form, dropped as two files, and the retail pipeline over them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{TimeZone, Utc};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tributary::arrow::array::{AsArray, RecordBatch};
use tributary::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary::{Lake, ManualClock, OpenOptions, Pipeline, RunOptions, RunReport, SqlOptions, Stores, Table};

/// The pipeline that the demo runs.
pub fn retail() -> Pipeline {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dlt_pipelines/retail");
    let entries = fs::read_dir(folder).expect("dlt_pipelines/retail").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "sql")).collect();
    files.sort();
    let texts: Vec<(String, String)> =
        files.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).expect("a text"))).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let options = SqlOptions { name: "retail".to_owned(), ..SqlOptions::default() };
    Pipeline::from_sql(&texts, &options).expect("the retail pipeline is valid")
}

/// A folder of drops: `first` holds the earlier half of the events, `all` both halves, `after` also one that comes much too late.
pub struct Drops {
    folder: tempfile::TempDir,
}

impl Drops {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [("1.jsonl", early_events()), ("2.jsonl", late_events()), ("3.jsonl", stale_events())];
        for (name, count) in [("first", 1), ("all", 2), ("after", 3)] {
            for side in ["shop", "depot"] {
                let target = folder.path().join(name).join(side);
                fs::create_dir_all(&target).expect("a folder");
                for (file, events) in &files[..count] {
                    let lines: String = events
                        .iter()
                        .filter(|event| event["topic"].as_str().expect("topic").starts_with("wh.") == (side == "depot"))
                        .map(|event| format!("{event}\n"))
                        .collect();
                    fs::write(target.join(file), lines).expect("a drop");
                }
            }
        }
        Self { folder }
    }

    pub fn first(&self) -> PathBuf {
        self.folder.path().join("first")
    }

    pub fn all(&self) -> PathBuf {
        self.folder.path().join("all")
    }

    /// What a life sees, run by run.
    pub fn in_turn(&self) -> [PathBuf; 3] {
        ["first", "all", "after"].map(|name| self.folder.path().join(name))
    }
}

/// A lake in this store, as a process that has just started sees it. Its clock stands still.
pub fn open(store: Arc<dyn tributary::object_store::ObjectStore>) -> Lake {
    open_with(store, OpenOptions::default())
}

pub fn open_with(store: Arc<dyn tributary::object_store::ObjectStore>, options: OpenOptions) -> Lake {
    let clock = Arc::new(ManualClock::new(Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap()));
    let stores = Stores::wrap(store, "memory:///lake/".parse().expect("a URL"));
    Lake::open_stores(stores, OpenOptions { clock, ..options }).expect("the lake opens")
}

/// One run over a folder of drops.
pub async fn run(lake: &Lake, base: &Path) -> RunReport {
    try_run(lake, base).await.expect("the run ends with a report")
}

/// The same over a store that may be dead.
pub async fn try_run(lake: &Lake, base: &Path) -> Result<RunReport, tributary::Error> {
    lake.run(&retail(), RunOptions { base_data_path: base.to_owned(), ..RunOptions::default() }).await
}

/// Every row of every table that people read, as text: the content a crash must not change. Of silver tables also the fold of
/// their change feed, which must be the table.
pub async fn content(lake: &Lake) -> BTreeMap<String, Vec<String>> {
    let mut content = BTreeMap::new();
    for name in lake.tables().await.expect("tables") {
        if name.schema == "_state" {
            continue;
        }
        let table = lake.table(&name.to_string()).await.expect("a table");
        let batches: Vec<RecordBatch> = table.scan().await.expect("a scan").try_collect().await.expect("rows");
        let mut rows: Vec<String> = batches.iter().flat_map(rows_as_text).collect();
        rows.sort_unstable();
        if name.schema == "silver" {
            content.insert(format!("{name} by its change feed"), folded_feed(&table).await);
        }
        content.insert(name.to_string(), rows);
    }
    content
}

/// Rows left when every insert and post-image of the feed adds one and every delete and pre-image takes one away.
async fn folded_feed(table: &Table) -> Vec<String> {
    let changes: Vec<RecordBatch> = table.changes(0, table.version()).await.expect("a feed").try_collect().await.expect("changes");
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    for batch in &changes {
        let kinds = batch.column_by_name("_change_type").expect("a change type").as_string::<i32>();
        let plain: Vec<usize> = (0..table.schema().fields().len()).collect();
        for (row, kind) in rows_as_text(&batch.project(&plain).expect("the table's columns")).into_iter().zip(kinds) {
            let adds = matches!(kind, Some("insert" | "update_postimage"));
            *rows.entry(row).or_default() += if adds { 1 } else { -1 };
        }
    }
    rows.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, usize::try_from(count).unwrap_or(0))).collect()
}

pub fn rows_as_text(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("∅");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("a formatter")).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|")).collect()
}

fn event(topic: &str, offset: i64, key: Value, value: Option<Value>, headers: Value) -> Value {
    json!({
        "topic": topic, "partition": 0, "offset": offset, "key": key.to_string(),
        "value": value.map(|value| value.to_string()), "headers": headers, "timestamp": 1_772_366_400_000_i64 + offset,
    })
}

fn postgres(table: &str, op: &str, lsn: i64, before: Value, after: Value) -> Option<Value> {
    let source = json!({
        "version": "3.6.3.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1_772_366_400_000_i64, "snapshot": "false", "db": "shop",
        "sequence": json!([lsn.to_string(), lsn.to_string()]).to_string(), "schema": "public", "table": table, "txId": lsn, "lsn": lsn,
    });
    Some(json!({ "before": before, "after": after, "source": source, "op": op, "ts_ms": 1_772_366_400_000_i64 }))
}

fn mariadb(op: &str, pos: i64, before: Value, after: Value) -> Option<Value> {
    let source = json!({
        "version": "3.6.3.Final", "connector": "mysql", "name": "wh", "ts_ms": 1_772_366_400_000_i64, "snapshot": "false", "db": "depot",
        "table": "inventory", "server_id": 1, "file": "mysql-bin.000001", "pos": pos, "row": 0,
    });
    Some(json!({ "before": before, "after": after, "source": source, "op": op, "ts_ms": 1_772_366_400_000_i64 }))
}

fn order(id: i64, customer: i64, qty: i64, status: &str) -> Value {
    json!({
        "order_id": id, "customer_id": customer, "sku": "SKU-1", "warehouse": 1, "qty": qty, "amount": "J/M=", "status": status,
        "placed_at": "2026-03-01T06:00:06Z", "updated_at": "2026-03-01T06:00:06Z", "ship_day": null, "notes": null,
    })
}

fn customer(id: i64, name: &str, tier: &str) -> Value {
    json!({
        "id": id, "external_id": "79dcbc81-82a8-4712-868c-8f90069a306f", "name": name, "email": null, "tier": tier,
        "balance": { "scale": 2, "value": "BNvW" }, "credit_limit": "c2N2", "signup_at": "2024-04-08T20:52:00.399492Z", "birth_date": 8999,
        "tags": ["eu"], "prefs": "{}", "last_ip": null, "active": true,
    })
}

fn stock(sku: &str, qty: i64) -> Value {
    json!({ "sku": sku, "warehouse": 1, "product": "product", "qty": qty, "reserved": 3 })
}

const ORDERS: &str = "shop.public.orders";
const CUSTOMERS: &str = "shop.public.customers";
const INVENTORY: &str = "wh.depot.inventory";

fn early_events() -> Vec<Value> {
    let none = json!([]);
    let mut events = Vec::new();
    for id in 1..=4 {
        events.push(event(
            ORDERS,
            id,
            json!({ "order_id": id }),
            postgres("orders", "c", 100 + id, Value::Null, order(id, 1, id, "pending")),
            none.clone(),
        ));
    }
    for id in 1..=2 {
        events.push(event(
            CUSTOMERS,
            id,
            json!({ "id": id }),
            postgres("customers", "r", 50, Value::Null, customer(id, "customer", "C1")),
            none.clone(),
        ));
    }
    for (offset, sku) in [(1, "SKU-1"), (2, "SKU-2")] {
        events.push(event(
            INVENTORY,
            offset,
            json!({ "sku": sku, "warehouse": 1 }),
            mariadb("c", 10 + offset, Value::Null, stock(sku, 50)),
            none.clone(),
        ));
    }
    events
}

fn late_events() -> Vec<Value> {
    let none = json!([]);
    let header = |name: &str, key: Value| json!([{ "key": name, "value": key.to_string() }]);
    let mut broken = event(ORDERS, 9, json!({ "order_id": 9 }), None, none.clone());
    broken["value"] = json!("{\"before\": null, \"after\": {\"order_id\": 9");
    vec![
        event(ORDERS, 5, json!({ "order_id": 1 }), postgres("orders", "u", 110, Value::Null, order(1, 2, 7, "paid")), none.clone()),
        event(
            ORDERS,
            6,
            json!({ "order_id": 2 }),
            postgres("orders", "d", 111, json!({ "order_id": 2, "qty": 0 }), Value::Null),
            none.clone(),
        ),
        event(ORDERS, 7, json!({ "order_id": 2 }), None, none.clone()),
        event(
            ORDERS,
            8,
            json!({ "order_id": 3 }),
            postgres("orders", "d", 112, json!({ "order_id": 3, "qty": 0 }), Value::Null),
            header("__debezium.newkey", json!({ "order_id": 33 })),
        ),
        broken,
        event(
            ORDERS,
            10,
            json!({ "order_id": 33 }),
            postgres("orders", "c", 112, Value::Null, order(33, 1, 3, "pending")),
            header("__debezium.oldkey", json!({ "order_id": 3 })),
        ),
        event(
            CUSTOMERS,
            3,
            json!({ "id": 1 }),
            postgres("customers", "u", 113, Value::Null, customer(1, "customer renamed", "C1")),
            none.clone(),
        ),
        event(CUSTOMERS, 4, json!({ "id": 2 }), postgres("customers", "d", 114, json!({ "id": 2 }), Value::Null), none.clone()),
        event(
            INVENTORY,
            3,
            json!({ "sku": "SKU-1", "warehouse": 1 }),
            mariadb("u", 20, stock("SKU-1", 50), stock("SKU-1", 400)),
            none.clone(),
        ),
        event(INVENTORY, 4, json!({ "sku": "SKU-3", "warehouse": 1 }), mariadb("c", 21, Value::Null, stock("SKU-3", 5)), none),
    ]
}

/// The creation of an order that has been deleted since.
fn stale_events() -> Vec<Value> {
    vec![event(ORDERS, 11, json!({ "order_id": 2 }), postgres("orders", "c", 102, Value::Null, order(2, 1, 2, "pending")), json!([]))]
}
