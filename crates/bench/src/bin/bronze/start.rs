//! From start to exit with nothing new on ten feeds, and `--help`: what a scheduler pays for looking.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, Measured, median};
use crate::{events, ours};

const FEEDS: usize = 10;
const REPETITIONS: usize = 11;
/// Milliseconds that each may take.
const NOTHING_NEW_MS: f64 = 300.0;
const HELP_MS: f64 = 50.0;

/// Feeds of files, feeds of topics, help.
pub fn measure(bootstrap: &str, scratch: &Path) -> Result<()> {
    let drop = scratch.join("drops");
    let files = pipeline(|feed| {
        let folder = drop.join(feed.to_string());
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("one.csv"), "id,name\n1,a\n2,b\n")?;
        Ok(format!("decode: csv\n    source: {{ files: {{ path: \"{}\", format: csv }} }}", folder.display()))
    })?;
    nothing_new("files", &files, &scratch.join("start-files"))?;

    let producer = events::producer(bootstrap, 0)?;
    let topics = pipeline(|feed| {
        let topic = format!("bench.start.{}.{feed}", std::process::id());
        events::create(bootstrap, &topic)?;
        let record = rdkafka::producer::BaseRecord::to(&topic).partition(0).key("1").payload("{\"id\":1,\"name\":\"a\"}");
        producer.send(record).map_err(|(error, _)| error).context("filling a topic")?;
        Ok(format!("decode: json\n    source: {{ kafka: {{ bootstrap: \"{bootstrap}\", topics: [{topic}] }} }}"))
    })?;
    rdkafka::producer::Producer::flush(&producer, std::time::Duration::from_secs(60)).context("filling the topics")?;
    nothing_new("topics", &topics, &scratch.join("start-topics"))?;

    for program in ["tributary-bronze", "tributary"] {
        let binary = process::beside(program)?;
        let all = repeated(|| process::measure(Command::new(&binary).env_clear().arg("--help")))?;
        say(&format!("{program} --help"), &all, HELP_MS);
    }
    Ok(())
}

fn pipeline(mut source_of: impl FnMut(usize) -> Result<String>) -> Result<String> {
    let mut text = "name: bench\nfeeds:\n".to_owned();
    for feed in 0..FEEDS {
        let source = source_of(feed)?;
        text += &format!("  - name: feed_{feed}\n    table: bronze.feed_{feed}\n    {source}\n");
        text += "    columns:\n      - { name: id, type: long }\n      - { name: name, type: string }\n";
    }
    Ok(text)
}

fn nothing_new(what: &str, pipeline: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir(folder)?;
    let file = folder.join("pipeline.yml");
    std::fs::write(&file, pipeline)?;
    let rows = if what == "files" { 2 } else { 1 } * FEEDS as u64;
    ours::bronze(&file, folder, rows).context("the run that takes in what is there")?;
    let all = repeated(|| ours::bronze(&file, folder, 0))?;
    say(&format!("nothing new on {FEEDS} feeds of {what}"), &all, NOTHING_NEW_MS);
    Ok(())
}

fn repeated(mut measure: impl FnMut() -> Result<Measured>) -> Result<Vec<Measured>> {
    (0..REPETITIONS).map(|_| measure()).collect()
}

fn say(what: &str, all: &[Measured], allowed_ms: f64) {
    let milliseconds = median(all, |measured| measured.seconds) * 1e3;
    let most = all.iter().map(|measured| measured.seconds * 1e3).fold(0.0, f64::max);
    let cpu = all.iter().map(|measured| measured.cpu_seconds * 1e3).sum::<f64>() / all.len() as f64;
    let peak = median(all, |measured| measured.peak_bytes as f64) / f64::from(1 << 20);
    println!(
        "start    {what}: median {milliseconds:.0} ms, most {most:.0} ms of {}, {cpu:.0} cpu-ms, peak {peak:.0} MiB; \
         the {allowed_ms:.0} ms allowed: ratio {:.2}",
        all.len(),
        allowed_ms / milliseconds
    );
}
