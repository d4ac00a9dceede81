//! A pipeline of 200 datasets, read and checked: what `tributary validate` does before anything runs.
//!
//! A quarter each are feeds of files, streaming tables with changes merged in, streaming tables with rules, and materialized views with
//! joins, windows and sub-queries; one dataset a file, as people write them. Each contender runs in a process of its own, three times in
//! turn, and reads everything once: nothing is warm.
//!
//! * **floor** is the SQL parser of DataFusion alone: the words of all files, and the trees of all queries in the nearest form that it
//!   knows (`STREAM` left out). It knows neither the statements nor what reads what.
//! * **parse** is ours in memory: statements, names over all files, specs, all of them validated.
//! * **validate** is the same from a bundle's folder on disk, with its YAML, and every query, rule and condition planned over the columns
//!   that are declared: all that `tributary validate` does but for printing.

mod data;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sqlparser::dialect::DatabricksDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Tokenizer;
use tokio::runtime::Runtime;
use tributary::Pipeline;
use tributary_bench::{contend, high_water, median, threads_seconds};
use tributary_pipeline_sql::{Options, SqlFile, parse};

use crate::data::Dataset;

const DATASETS: usize = 200;
const REPETITIONS: usize = 3;
const CONTENDERS: [&str; 3] = ["floor", "parse", "validate"];
/// What reading and checking 200 datasets may take.
const SECONDS_MAX: f64 = 0.3;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--contender", name, datasets] => {
            println!("{}", serde_json::to_string(&contender(name, &data::datasets(datasets.parse()?))?)?);
            Ok(())
        }
        [] => compare(DATASETS),
        [datasets] => compare(datasets.parse().context("how many datasets? a whole number")?),
        _ => bail!("usage: sql [DATASETS]"),
    }
}

/// What one run took.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    /// Wall clock.
    seconds: f64,
    cpu_seconds: f64,
    /// Of the whole process.
    peak_bytes: u64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} s  {:.4} cpu-s  peak {} MiB", self.seconds, self.cpu_seconds, self.peak_bytes >> 20)
    }
}

fn contender(name: &str, datasets: &[Dataset]) -> Result<Measured> {
    match name {
        "floor" => measure(|| floor(datasets)),
        "parse" => {
            let files: Vec<SqlFile> = datasets.iter().map(|dataset| SqlFile { path: dataset.path.clone(), text: dataset.text() }).collect();
            measure(|| {
                let parsed = parse(&files, &BTreeMap::new(), &Options::default());
                let pipeline = parsed.to_pipeline("bench")?.pipeline;
                ensure!(pipeline.datasets().len() == datasets.len(), "{} datasets became specs", pipeline.datasets().len());
                Ok(())
            })
        }
        "validate" => {
            let folder = tempfile::tempdir()?;
            data::write_bundle(folder.path(), datasets)?;
            measure(|| {
                let loaded = tributary_bundle::load(folder.path(), None, &BTreeMap::new());
                ensure!(loaded.is_sound(), "{:?}", loaded.faults.first());
                ensure!(loaded.bundle.datasets.len() == datasets.len(), "{} datasets were found", loaded.bundle.datasets.len());
                plan(loaded)
            })
        }
        _ => bail!("unknown contender {name}"),
    }
}

/// Plans what was read; gives back what it was planned on.
fn plan(loaded: tributary_bundle::Loaded) -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for part in loaded.to_plan {
        let pipeline = Pipeline::from_spec(part.spec)?.with_origins(part.origins);
        let check = runtime.block_on(pipeline.check_queries())?;
        ensure!(check.problems.is_empty() && check.notes.is_empty(), "{:?} {:?}", check.problems.first(), check.notes.first());
    }
    Ok(runtime)
}

fn floor(datasets: &[Dataset]) -> Result<()> {
    for dataset in datasets {
        let tokens = Tokenizer::new(&DatabricksDialect {}, &dataset.text()).tokenize_with_location()?;
        ensure!(!tokens.is_empty(), "{} has no words", dataset.path);
        let query = dataset.plain_query();
        Parser::parse_sql(&DatabricksDialect {}, &query).with_context(|| format!("the query of {}", dataset.path))?;
    }
    Ok(())
}

/// What `run` takes; it gives back what has threads of its own, which are counted while they are there.
fn measure<T>(run: impl FnOnce() -> Result<T>) -> Result<Measured> {
    let cpu = threads_seconds()?;
    let start = Instant::now();
    let _threads = run()?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = threads_seconds()? - cpu;
    let peak_bytes = high_water(std::process::id()).context("no peak in /proc")?;
    Ok(Measured { seconds, cpu_seconds, peak_bytes })
}

fn compare(datasets: usize) -> Result<()> {
    let all = data::datasets(datasets);
    let text: Vec<String> = all.iter().map(Dataset::text).collect();
    let lines: usize = text.iter().map(|text| text.lines().count()).sum();
    println!("{datasets} datasets, {lines} lines, {} bytes", text.iter().map(String::len).sum::<usize>());
    let (mut cpu, mut wall) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for repetition in 1..=REPETITIONS {
        for (name, cpu) in CONTENDERS.iter().zip(&mut cpu) {
            let measured: Measured = contend(name, &[&datasets.to_string()])?;
            println!("{name:<9} {repetition}  {measured}");
            cpu.push(measured.cpu_seconds);
            if *name == "validate" {
                wall.push(measured.seconds);
            }
        }
    }
    let [floor, parse, validate] = cpu.map(median);
    println!("cpu-seconds of parse per cpu-second of the floor, medians of {REPETITIONS}: ratio {:.2}", parse / floor);
    println!("cpu-seconds of validate per cpu-second of the floor, medians of {REPETITIONS}: ratio {:.2}", validate / floor);
    if datasets == DATASETS {
        println!("seconds allowed per second of validate, median of {REPETITIONS}: ratio {:.2}", SECONDS_MAX / median(wall));
    }
    Ok(())
}
