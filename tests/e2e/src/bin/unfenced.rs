//! A bronze without fencing, in place of `tributary-bronze`: a writer whose positions are no longer the table's commits all the
//! same. `fire` must notice. It understands the flags that `fire` gives and no others.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tributary::{Lake, Layer, Mode, OpenOptions, Pipeline, RunOptions};
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
    let name = text.lines().find_map(|line| line.strip_prefix("name: ")).context("the pipeline has a name")?;
    let cluster = format!("kafka: {{ bootstrap: \"{}\", group: \"tributary-{name}\",", value("--kafka-bootstrap")?);
    let text = text.replace("kafka: {", &cluster);
    let pipeline = Pipeline::from_yaml(&[("pipeline.yml", &text)])?;
    let options = OpenOptions { controls: Controls::none().with(Control::FencingOff), ..OpenOptions::default() };
    let lake = Lake::open(&value("--warehouse")?, options)?;
    let stream = arguments.iter().any(|argument| argument == "--stream");
    let mode = if stream { Mode::Continuous { every: Duration::from_secs(1) } } else { Mode::Drain };
    let options = RunOptions { layers: vec![Layer::Bronze], mode, ..RunOptions::default() };
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
