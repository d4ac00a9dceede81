//! `tributary plan`, and a run of exactly what a plan says.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use tributary::arrow::array::RecordBatch;
use tributary::{DatasetPlan, ExitCode, Plan, RunOptions};
use tributary_config::{Loaded, Output};

use crate::bundle::{self, Given};
use crate::failure::{Error, Failure, Outcome};
use crate::output::{batch, text, whole};
use crate::{files, opened, output, run, start};

/// Prints what a run would do, and writes it where `--out` says; exit 2 when any dataset would stop.
pub fn plan(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let opened = bundle::open(loaded, given)?;
    let settings = &opened.settings;
    let options = run::of_layers(run::options(loaded.program, settings, &opened.pipeline)?, &opened.pipeline, &opened.layers);
    let lake = opened::existing_lake_or_empty(settings)?;
    let plan = start::block_on(async { Ok(lake.plan(&opened.pipeline, &options).await?) })?;
    if let Some(file) = matches.get_one::<PathBuf>("out") {
        files::write(file, &document(&plan))
            .map_err(|source| Error::Io { action: format!("writing the plan {}", file.display()), source })?;
    }
    match settings.output {
        Output::Table => start::print(&plan.to_text())?,
        Output::Json => start::print(&document(&plan))?,
        Output::Csv => output::rows(Output::Csv, &rows(&plan)?)?,
    };
    let stops = plan.datasets.iter().any(|dataset| !dataset.stops.is_empty());
    Ok(if stops { ExitCode::BadInput.code() } else { ExitCode::Done.code() })
}

fn document(plan: &Plan) -> String {
    format!("{}\n", serde_json::to_string_pretty(plan).unwrap_or_default())
}

/// A row a dataset.
fn rows(plan: &Plan) -> Result<RecordBatch, Failure> {
    let column = |value: &dyn Fn(&DatasetPlan) -> Option<String>| text(plan.datasets.iter().map(value));
    let number = |value: &dyn Fn(&DatasetPlan) -> Option<u64>| whole(plan.datasets.iter().map(value));
    let joined = |texts: Vec<String>| Some(texts.join("; ")).filter(|text| !text.is_empty());
    batch(vec![
        ("table", column(&|one| Some(one.table.to_string()))),
        ("layer", column(&|one| Some(one.layer.clone()))),
        ("version", number(&|one| one.version)),
        ("work", column(&|one| serde_json::to_value(one.work).ok()?.as_str().map(str::to_owned))),
        ("reason", column(&|one| Some(one.reason.clone()))),
        ("definition", column(&|one| joined(one.definition.iter().map(|change| change.part.clone()).collect()))),
        ("columns", column(&|one| joined(one.columns.iter().map(|change| change.column.clone()).collect()))),
        ("files_new", number(&|one| one.inputs.iter().map(|input| input.files).sum())),
        ("bytes_new", number(&|one| one.inputs.iter().map(|input| input.bytes).sum())),
        ("rows_estimated", number(&|one| one.rows_estimated)),
        ("files_rewritten", number(&|one| one.rewrites.map(|amount| amount.files))),
        ("bytes_rewritten", number(&|one| one.rewrites.map(|amount| amount.bytes))),
        ("loses", column(&|one| joined(one.loses.clone()))),
        ("stops", column(&|one| joined(one.stops.clone()))),
    ])
}

/// The plan in a file.
pub fn read(file: &Path) -> Result<Plan, Failure> {
    let bytes = std::fs::read(file).map_err(|source| Error::Input { what: format!("the plan {}", file.display()), source })?;
    let unreadable = |source| Error::PlanFile { file: file.to_owned(), source };
    Ok(serde_json::from_slice(&bytes).map_err(unreadable)?)
}

/// The options of a run of exactly this plan.
pub fn options_of(plan: &Plan, options: RunOptions) -> RunOptions {
    let layers = plan.layers.iter().filter_map(|layer| layer.parse().ok()).collect();
    RunOptions {
        layers,
        only: plan.only.clone(),
        full_refresh: plan.full_refresh.clone(),
        full_refresh_all: plan.full_refresh_all,
        ..options
    }
}
