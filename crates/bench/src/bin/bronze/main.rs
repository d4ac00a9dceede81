//! The way in, on one machine with a broker: `bronze [PART..] [--events N] [--seconds N] [--spark SCRIPT]`, all parts unless said.
//!
//! **kafka**: a topic of four partitions is filled with changes of a real PostgreSQL's `orders` table (about 0.8 KB each, bare
//! JSON), its recorded events repeated with growing keys and positions. Then, three times in turn, each in a process of its own:
//!
//! * *floor* polls every record with librdkafka and, beside it, writes as many rows of batches decoded beforehand as Parquet
//!   with the settings of our tables. Nothing that makes a table of a topic can be faster with these two libraries.
//! * *ours* is `tributary-bronze` from start to exit: polled, decoded, written, committed with the positions.
//! * *spark* (with `--spark SCRIPT`) is whatever the script runs: it is given the broker, the topic and an empty folder.
//!
//! **fresh**: how old changes are when gold has them. **csv**: dropped files beside a floor. **start**: runs that find nothing new.
//!
//! The broker is the one at `KAFKA_BOOTSTRAP`. Seconds are wall clock, CPU seconds and peak memory those of the process.

mod csv_drop;
mod events;
mod floor;
mod freshness;
mod ours;
mod process;
mod start;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::median;

const PARTS: [&str; 4] = ["kafka", "fresh", "csv", "start"];
const REPETITIONS: usize = 3;

/// What to measure.
struct Options {
    parts: Vec<String>,
    /// Events of the topic.
    events: u64,
    /// Seconds of changes whose age is measured.
    seconds: u64,
    spark: Option<String>,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--floor", bootstrap, topic, rows, folder] => floor::run(bootstrap, topic, rows.parse()?, folder.as_ref()),
        ["--csv-floor", file, folder] => csv_drop::run_floor(file.as_ref(), folder.as_ref()),
        _ => measure(&options(args)?),
    }
}

fn options(args: Vec<String>) -> Result<Options> {
    let mut options = Options { parts: Vec::new(), events: 2_000_000, seconds: 120, spark: None };
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--events" => options.events = count(&value()?)?,
            "--seconds" => options.seconds = count(&value()?)?,
            "--spark" => options.spark = Some(value()?),
            part if PARTS.contains(&part) => options.parts.push(arg),
            _ => bail!("usage: bronze [{}].. [--events N] [--seconds N] [--spark SCRIPT]", PARTS.join("|")),
        }
    }
    Ok(options)
}

fn count(text: &str) -> Result<u64> {
    text.replace('_', "").parse().with_context(|| format!("`{text}` is no whole number"))
}

fn measure(options: &Options) -> Result<()> {
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP").context("KAFKA_BOOTSTRAP names no broker; `just bench bronze` starts one")?;
    let scratch = tempfile::tempdir().context("making a scratch folder")?;
    let is_wanted = |part: &str| options.parts.is_empty() || options.parts.iter().any(|wanted| wanted == part);
    if is_wanted("kafka") {
        kafka(&bootstrap, scratch.path(), options)?;
    }
    if is_wanted("fresh") {
        freshness::measure(&bootstrap, scratch.path(), options.seconds)?;
    }
    if is_wanted("csv") {
        csv_drop::compare(scratch.path())?;
    }
    if is_wanted("start") {
        start::measure(&bootstrap, scratch.path())?;
    }
    Ok(())
}

fn kafka(bootstrap: &str, scratch: &Path, options: &Options) -> Result<()> {
    let topic = format!("bench.public.orders.{}", std::process::id());
    let loaded = events::preload(bootstrap, &topic, options.events)?;
    println!("kafka    {} events in {} partitions, {:.0} bytes each", loaded.events, events::PARTITIONS, loaded.bytes_each());
    let (mut floors, mut all) = (Vec::new(), Vec::new());
    for repetition in 1..=REPETITIONS {
        let folder = |name: &str| -> Result<PathBuf> {
            let folder = scratch.join(format!("{name}-{repetition}"));
            std::fs::create_dir(&folder)?;
            Ok(folder)
        };
        let (for_floor, for_ours) = (folder("floor")?, folder("ours")?);
        let floor = floor::measure(bootstrap, &topic, loaded, &for_floor)?;
        println!("kafka    {repetition}  floor  {}", floor.over(loaded.events, loaded.bytes));
        floors.push(floor);
        let ours = ours::measure(bootstrap, &topic, loaded, &for_ours)?;
        println!("kafka    {repetition}  ours   {}", ours.over(loaded.events, loaded.bytes));
        all.push(ours);
        if let Some(script) = &options.spark {
            let spark = process::measure(Command::new(script).args([bootstrap, &topic]).arg(folder("spark")?))?;
            println!("kafka    {repetition}  spark  {}", spark.over(loaded.events, loaded.bytes));
        }
        for folder in [for_floor, for_ours] {
            std::fs::remove_dir_all(folder)?;
        }
    }
    let cpu_seconds = median(&all, |measured| measured.cpu_seconds);
    println!("kafka    {:.0} rows per cpu-second of ours", loaded.events as f64 / cpu_seconds);
    let ratio = median(&floors, |measured| measured.seconds) / median(&all, |measured| measured.seconds);
    println!("kafka    seconds of the floor per second of ours, medians of {REPETITIONS}: ratio {ratio:.2}");
    Ok(())
}
