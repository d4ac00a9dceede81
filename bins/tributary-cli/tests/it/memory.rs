//! A batch many times larger than the memory it may take: what the kernel counts of the process stays near the limit.

use std::fmt::Write as _;

use crate::commands::Shop;

const MIB: u64 = 1 << 20;

/// What `--memory-limit` says, and what the process may take beside it.
const LIMIT: u64 = 256 * MIB;
const BESIDE: u64 = 150 * MIB;

const PIPELINE: &str = "
name: shop
feeds:
  - name: shop_orders
    table: bronze.orders
    decode: json
    source: {files: {path: orders, format: jsonl}}
    columns:
      - {name: id, type: long}
      - {name: note, type: string}
      - {name: seq, type: long}
silver:
  - table: silver.orders
    sources: [bronze.orders]
    keys: [id]
    sequence_by: [seq]
  - table: silver.orders_history
    sources: [bronze.orders]
    keys: [id]
    sequence_by: [seq]
    policy: {scd_type2: {}}
";

/// Orders with a text of a kilobyte each that nothing shortens much.
fn orders(ids: std::ops::Range<u64>, seq: u64) -> String {
    let mut lines = String::new();
    for id in ids {
        let mut random = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seq;
        let mut note = String::with_capacity(1024);
        while note.len() < 1024 {
            random = (random ^ (random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(17);
            write!(note, "{random:016x}").unwrap();
        }
        writeln!(lines, r#"{{"id":{id},"note":"{note}","seq":{seq}}}"#).unwrap();
    }
    lines
}

/// The most memory that a run of silver over 60,000 changes, half of them to rows that are there, has had at once.
fn peak(limit: u64) -> u64 {
    let shop = Shop::new();
    std::fs::remove_file(shop.path("data/raw/orders/1.jsonl")).unwrap();
    shop.write("pipeline.yml", PIPELINE);
    shop.write("data/raw/orders/1.jsonl", &orders(0..30_000, 1));
    shop.says(0, &["run"]);
    shop.write("data/raw/orders/2.jsonl", &orders(0..60_000, 2));
    shop.says(0, &["run", "--layer", "bronze"]);
    shop.says(0, &["run", "--layer", "silver", "--memory-limit", &limit.to_string()]);
    let counts = "SELECT (SELECT count(*) FROM silver.orders) AS orders, (SELECT count(*) FROM silver.orders_history) AS versions";
    let counted = &shop.json(&["sql", counts, "-o", "json"])[0];
    assert_eq!((counted["orders"].as_u64(), counted["versions"].as_u64()), (Some(60_000), Some(90_000)));
    let runs = "SELECT peak_memory_bytes AS peak FROM system.tributary.runs WHERE reason LIKE '60000 new rows of bronze.orders%' ORDER BY started_at DESC LIMIT 1";
    shop.json(&["sql", runs, "-o", "json"])[0]["peak"].as_u64().unwrap()
}

#[test]
fn silver_stays_near_its_memory_limit_whatever_the_size_of_a_batch() {
    let (held, free) = (peak(LIMIT), peak(4096 * MIB));
    assert!(held < LIMIT + BESIDE, "{} MiB", held / MIB);
    assert!(free > LIMIT + BESIDE, "without a limit it takes {} MiB, so that this measures nothing", free / MIB);
}
