//! How old a change is when gold has it.
//!
//! A thousand changes a second, each stamped with the moment the source commits it, go into the topic while `tributary run --stream
//! --processing-time 1` keeps bronze, silver and gold. Gold has, for each partition of the topic, the newest stamp it has seen; a
//! change is in gold with the first version whose stamp is not below its own, from the moment that version's commit is in the log.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use chrono::{DateTime, SecondsFormat};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rdkafka::producer::{BaseRecord, Producer};
use serde_json::Value;

use crate::events::{self, PARTITIONS};
use crate::{ours, process};

const CHANGES_PER_SECOND: u64 = 1_000;
/// Seconds that the median and the 99th of a hundred changes may take.
const P50: f64 = 2.0;
const P99: f64 = 5.0;

/// A change as it was sent: partition, and µs since the epoch.
type Sent = (i64, i64);

/// A version of gold: when its commit was in the log, and the newest stamp of each partition, in µs since the epoch.
struct Version {
    visible: i64,
    newest: BTreeMap<i64, i64>,
}

/// Changes for so many seconds, then the ages.
pub fn measure(bootstrap: &str, scratch: &Path, seconds: u64) -> Result<()> {
    let topic = format!("bench.fresh.orders.{}", std::process::id());
    events::create(bootstrap, &topic)?;
    let folder = scratch.join("freshness");
    fs::create_dir(&folder)?;
    let (file, lake) = (folder.join("pipeline.yml"), folder.join("lake"));
    fs::write(&file, pipeline(bootstrap, &topic))?;
    let mut command = Command::new(process::beside("tributary")?);
    command.env_clear().args(["run", "--stream", "--processing-time", "1", "--pipeline"]).arg(&file).arg("--warehouse").arg(&lake);
    let gold = lake.join("main/gold/newest");
    let mut sent = Vec::new();
    let took = process::measure_with(&mut command, |id| {
        sent = send(bootstrap, &topic, seconds)?;
        until_all_is_there(&gold, &sent)?;
        process::terminate(id);
        Ok(())
    })?;

    let versions = versions(&gold)?;
    let mut ages = ages(&sent, &versions)?;
    ages.sort_by(f64::total_cmp);
    let at = |share: f64| ages[((ages.len() - 1) as f64 * share) as usize];
    let (p50, p99) = (at(0.5), at(0.99));
    println!(
        "fresh    {} changes in {seconds} s, {} versions of gold; {:.1} cpu-s, peak {} MiB",
        ages.len(),
        versions.len(),
        took.cpu_seconds,
        took.peak_bytes >> 20
    );
    println!("fresh    p50 {p50:.2} s, p95 {:.2} s, p99 {p99:.2} s, most {:.2} s", at(0.95), at(1.0));
    println!("fresh    the {P50} s allowed to the median and {P99} s to p99, the worse of both: ratio {:.2}", (P50 / p50).min(P99 / p99));
    Ok(())
}

fn pipeline(bootstrap: &str, topic: &str) -> String {
    ours::pipeline(bootstrap, topic)
        + &format!(
            "
silver:
  - table: silver.orders
    sources: [bronze.orders]
    keys: [order_id]
    policy: scd_type1
gold:
  - table: gold.newest
    query: |
      select order_id % {PARTITIONS} as lane, count(*) as orders, sum(amount) as amount, max(updated_at) as updated_at
      from silver.orders group by order_id % {PARTITIONS}
"
        )
}

/// One new order, then a change of an earlier one of its partition, in turn.
fn send(bootstrap: &str, topic: &str, seconds: u64) -> Result<Vec<Sent>> {
    let producer = events::producer(bootstrap, 5)?;
    let begin = Instant::now();
    let total = seconds * CHANGES_PER_SECOND;
    let mut sent = Vec::with_capacity(usize::try_from(total)?);
    while (sent.len() as u64) < total {
        let due = (begin.elapsed().as_secs_f64() * CHANGES_PER_SECOND as f64) as u64;
        while (sent.len() as u64) < due.min(total) {
            let number = sent.len() as u64;
            let lanes = PARTITIONS as u64;
            let (turn, lane) = (number / lanes, number % lanes);
            let is_new = turn % 2 == 0;
            // a change goes back up to a hundred turns
            let of = if is_new { turn } else { (turn - 1).saturating_sub(2 * (turn % 50)) };
            let (id, stamp) = (of * lanes + lane, now()?);
            let (key, value) = (format!("{{\"order_id\":{id}}}"), event(id, is_new, number, stamp));
            events::send(&producer, BaseRecord::to(topic).partition(lane as i32).key(&key).payload(&value))?;
            sent.push((lane as i64, stamp));
        }
        thread::sleep(Duration::from_millis(1));
    }
    producer.flush(Duration::from_secs(60)).context("sending the last changes")?;
    Ok(sent)
}

/// As Debezium sends a change of `orders`, without its schema.
fn event(id: u64, is_new: bool, number: u64, stamp: i64) -> String {
    let at = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Micros, true);
    let (lsn, op, millis) = (200_000_000 + number * 56, if is_new { "c" } else { "u" }, stamp / 1000);
    format!(
        "{{\"before\":null,\"after\":{{\"order_id\":{id},\"customer_id\":{},\"sku\":\"SKU-{:04}\",\"warehouse\":{},\"qty\":{},\"amount\":\"aHM=\",\
         \"status\":\"{}\",\"placed_at\":\"2026-03-01T06:05:40.825017Z\",\"updated_at\":\"{}\",\"ship_day\":null,\"notes\":null,\"carrier\":null}},\
         \"source\":{{\"version\":\"3.6.3.Final\",\"connector\":\"postgresql\",\"name\":\"shop\",\"ts_ms\":{millis},\"snapshot\":\"false\",\
         \"db\":\"shop\",\"sequence\":\"[\\\"{lsn}\\\",\\\"{lsn}\\\"]\",\"ts_us\":{stamp},\"ts_ns\":{stamp}000,\"schema\":\"public\",\
         \"table\":\"orders\",\"txId\":{},\"lsn\":{lsn},\"xmin\":null,\"origin\":null,\"origin_lsn\":null}},\"transaction\":null,\
         \"op\":\"{op}\",\"ts_ms\":{millis},\"ts_us\":{stamp},\"ts_ns\":{stamp}000}}",
        id % 977,
        id % 4999,
        id % 7,
        1 + id % 9,
        if is_new { "pending" } else { "paid" },
        at(stamp),
        16_000 + number,
    )
}

#[expect(clippy::disallowed_methods, reason = "the source's clock, which is the machine's")]
fn now() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?)
}

/// Waits for a version of gold with the last change of each partition.
fn until_all_is_there(gold: &Path, sent: &[Sent]) -> Result<()> {
    let last: BTreeMap<i64, i64> = sent.iter().copied().collect();
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let newest = log(gold).ok().and_then(|log| log.last_key_value().map(|(_, commit)| commit.clone()));
        if newest.map(|commit| version(gold, &commit)).transpose()?.is_some_and(|version| version.newest == last) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("gold does not have the last changes a minute after they were sent")
}

/// The commits of a table by version.
fn log(table: &Path) -> Result<BTreeMap<u64, PathBuf>> {
    let mut commits = BTreeMap::new();
    for entry in fs::read_dir(table.join("_delta_log"))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(Ok(version)) = name.strip_suffix(".json").map(str::parse) {
            commits.insert(version, path);
        }
    }
    Ok(commits)
}

fn versions(gold: &Path) -> Result<Vec<Version>> {
    log(gold)?.values().map(|commit| version(gold, commit)).collect()
}

/// What a commit made of the view, which it replaces as a whole.
fn version(gold: &Path, commit: &Path) -> Result<Version> {
    let visible = fs::metadata(commit)?.modified()?.duration_since(UNIX_EPOCH)?;
    let mut newest = BTreeMap::new();
    for line in fs::read_to_string(commit)?.lines() {
        let action: Value = serde_json::from_str(line)?;
        let Some(path) = action["add"]["path"].as_str() else { continue };
        for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(gold.join(path))?)?.build()? {
            let batch = batch?;
            let column = |name: &str| batch.column_by_name(name).with_context(|| format!("gold has no column {name}"));
            let lanes = column("lane")?.as_primitive_opt::<Int64Type>().context("a lane is a bigint")?;
            let stamps = column("updated_at")?.as_primitive_opt::<TimestampMicrosecondType>().context("a stamp is a timestamp")?;
            newest.extend(lanes.values().iter().copied().zip(stamps.values().iter().copied()));
        }
    }
    Ok(Version { visible: i64::try_from(visible.as_micros())?, newest })
}

/// Seconds from each change to the first version of gold that has it.
fn ages(sent: &[Sent], versions: &[Version]) -> Result<Vec<f64>> {
    let mut of_lane = vec![0; PARTITIONS as usize];
    let mut ages = Vec::with_capacity(sent.len());
    for (lane, stamp) in sent {
        // the stamps of a partition grow, so the search goes on where the one before has ended
        let at = &mut of_lane[usize::try_from(*lane)?];
        while versions.get(*at).is_some_and(|version| version.newest.get(lane).is_none_or(|newest| newest < stamp)) {
            *at += 1;
        }
        let version = versions.get(*at).context("a change never came to gold")?;
        ages.push((version.visible - stamp) as f64 / 1e6);
    }
    ensure!(!ages.is_empty(), "no change was sent");
    Ok(ages)
}
