//! A bronze without fencing, in place of `tributary-bronze`: a writer whose positions are no longer the table's commits all the
//! same. `fire` must notice. It understands the flags that `fire` gives and no others.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tributary::{KafkaOptions, Lake, Layer, Mode, OpenOptions, Pipeline, RunOptions};
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
    let value = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).cloned().with_context(|| format!("{flag} is missing"))
    };
    let text = std::fs::read_to_string(value("--pipeline")?).context("the pipeline")?;
    let pipeline = Pipeline::from_yaml(&[("pipeline.yml", &text)])?;
    let pairs = arguments.windows(2).filter(|pair| pair[0] == "--kafka-property").filter_map(|pair| pair[1].split_once('='));
    let kafka = KafkaOptions {
        bootstrap: Some(value("--kafka-bootstrap")?),
        group: Some(format!("tributary-{}", pipeline.spec().name)),
        properties: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..KafkaOptions::default()
    };
    let options = OpenOptions { controls: Controls::none().with(Control::FencingOff), ..OpenOptions::default() };
    let lake = Lake::open(&value("--warehouse")?, options)?;
    let stream = arguments.iter().any(|argument| argument == "--stream");
    let mode = if stream { Mode::Continuous { every: Duration::from_secs(1) } } else { Mode::Drain };
    let options = RunOptions { layers: vec![Layer::Bronze], mode, kafka, ..RunOptions::default() };
    let cancel = options.cancel.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
    let report = runtime.block_on(async {
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).context("a signal")?;
        tokio::spawn(async move {
            terminated.recv().await;
            cancel.cancel();
        });
        lake.run(&pipeline, options).await.context("running bronze")
    })?;
    Ok(report.exit_code().code())
}
