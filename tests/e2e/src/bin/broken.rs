//! `broken --layer bronze|silver --without fencing|planning-again …`: a layer that breaks a rule on purpose, in place of
//! `tributary-<layer>`. `fire` and `soak` must notice. It understands the flags that those give and no others.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tributary::{KafkaOptions, Lake, Layer, Mode, OpenOptions, RunOptions};
use tributary_e2e::run::Definition;
use tributary_testkit::{Control, Controls};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u8> {
    let arguments: Vec<String> = std::env::args().collect();
    let optional = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).cloned()
    };
    let value = |flag: &str| optional(flag).with_context(|| format!("{flag} is missing"));
    let layer = match value("--layer")?.as_str() {
        "bronze" => Layer::Bronze,
        "silver" => Layer::Silver,
        other => bail!("no layer {other:?} can be broken"),
    };
    let control = match value("--without")?.as_str() {
        // a writer whose positions are no longer the table's commits all the same
        "fencing" => Control::FencingOff,
        // a plan that lost a race is committed as it was
        "planning-again" => Control::NoReplanAfterConflict,
        other => bail!("no rule is called {other:?}"),
    };
    let pipeline = Definition::read(Path::new(&value("--pipeline")?))?.pipeline()?;
    let pairs = arguments.windows(2).filter(|pair| pair[0] == "--kafka-property").filter_map(|pair| pair[1].split_once('='));
    let kafka = KafkaOptions {
        bootstrap: optional("--kafka-bootstrap"),
        group: Some(format!("tributary-{}", pipeline.spec().name)),
        properties: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..KafkaOptions::default()
    };
    let options = OpenOptions { controls: Controls::none().with(control), ..OpenOptions::default() };
    let lake = Lake::open(&value("--warehouse")?, options)?;
    let stream = arguments.iter().any(|argument| argument == "--stream");
    let mode = if stream { Mode::Continuous { every: Duration::from_secs(1) } } else { Mode::Drain };
    let options = RunOptions { layers: vec![layer], mode, kafka, ..RunOptions::default() };
    let cancel = options.cancel.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
    let report = runtime.block_on(async {
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).context("a signal")?;
        tokio::spawn(async move {
            terminated.recv().await;
            cancel.cancel();
        });
        lake.run(&pipeline, options).await.with_context(|| format!("running {layer}"))
    })?;
    if let Some(file) = optional("--report").map(PathBuf::from) {
        std::fs::write(file, serde_json::to_string(&report).context("the report")?).context("writing the report")?;
    }
    Ok(report.exit_code().code())
}
