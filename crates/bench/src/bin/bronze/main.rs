//! Bronze from Kafka beside its floor, on one topic of Debezium events.
//!
//! A topic of four partitions is filled with changes of a real PostgreSQL's `orders` table (about 0.8 KB each, bare JSON), its
//! recorded events repeated with growing keys and positions. Then, three times in turn, each in a process of its own:
//!
//! * **floor** polls every record with librdkafka and, beside it, writes as many rows of batches decoded beforehand as Parquet
//!   with the settings of our tables. Nothing that makes a table of a topic can be faster with these two libraries.
//! * **ours** is `tributary-bronze` from start to exit: polled, decoded, written, committed with the positions.
//! * **spark** (with `--spark SCRIPT`) is whatever the script runs: it is given the broker, the topic and an empty folder.
//!
//! The broker is the one at `KAFKA_BOOTSTRAP`. Seconds are wall clock, CPU seconds and peak memory those of the process.

mod events;
mod floor;
mod ours;
mod process;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::process::Measured;

const EVENTS: u64 = 2_000_000;
const REPETITIONS: usize = 3;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--floor", bootstrap, topic, rows, folder] => floor::run(bootstrap, topic, rows.parse()?, folder.as_ref()),
        ["--spark", script] => compare(EVENTS, Some(script)),
        ["--spark", script, events] => compare(count(events)?, Some(script)),
        [] => compare(EVENTS, None),
        [events] => compare(count(events)?, None),
        _ => bail!("usage: bronze [--spark SCRIPT] [EVENTS]"),
    }
}

fn count(text: &str) -> Result<u64> {
    text.replace('_', "").parse().context("how many events? a whole number")
}

fn compare(wanted: u64, spark: Option<&str>) -> Result<()> {
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP").context("KAFKA_BOOTSTRAP names no broker; `just bench bronze` starts one")?;
    let scratch = tempfile::tempdir().context("making a scratch folder")?;
    let topic = format!("bench.public.orders.{}", std::process::id());
    let loaded = events::preload(&bootstrap, &topic, wanted)?;
    println!("topic    {} events in {} partitions, {:.0} bytes each", loaded.events, events::PARTITIONS, loaded.bytes_each());
    let mut floors = Vec::new();
    let mut all = Vec::new();
    for repetition in 1..=REPETITIONS {
        let folder = |name: &str| -> Result<PathBuf> {
            let folder = scratch.path().join(format!("{name}-{repetition}"));
            std::fs::create_dir(&folder)?;
            Ok(folder)
        };
        let floor = floor::measure(&bootstrap, &topic, loaded, &folder("floor")?)?;
        println!("floor    {repetition}  {floor}");
        floors.push(floor);
        let ours = ours::measure(&bootstrap, &topic, loaded, &folder("ours")?)?;
        println!("ours     {repetition}  {ours}");
        all.push(ours);
        if let Some(script) = spark {
            let measured = process::measure(std::process::Command::new(script).args([&bootstrap, &topic]).arg(folder("spark")?), loaded)?;
            println!("spark    {repetition}  {measured}");
        }
    }
    let ours = median(&all, |measured| measured.seconds);
    println!("bronze   rows per cpu-second of ours: {:.0}", loaded.events as f64 / median(&all, |measured| measured.cpu_seconds));
    println!(
        "bronze   seconds of the floor per second of ours, medians of {REPETITIONS}: ratio {:.2}",
        median(&floors, |m| m.seconds) / ours
    );
    Ok(())
}

fn median(measured: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = measured.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
