//! `tributary run` and the layers' own binaries.

use std::sync::Arc;

use clap::ArgMatches;
use tributary::{BatchBounds, KafkaOptions, Layer, Mode, OnGap, Pipeline, RunOptions, TableName};
use tributary_config::{Layer as LayerChoice, Loaded, OnGap as OnGapChoice, Program, Settings};

use crate::bundle::Given;
use crate::failure::{Error, Failure, Outcome};
use crate::logging::Voice;
use crate::metrics::{Observer, Server};
use crate::next::Places;
use crate::openlineage::Sinks;
use crate::run_report::RunOutcome;
use crate::schema::LayersBefore;
use crate::{bundle, next, opened, plan, progress, signals, start, typed};

/// Runs the pipeline of the settings once, or until it is interrupted.
pub fn run(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let settings = &loaded.settings;
    let voice = Voice::of(settings);
    let outcome = match attempt(loaded, matches, given, voice) {
        Ok(Done::Checked(what)) => return start::print(&what),
        Ok(Done::Ran(mut report)) => {
            next::in_report(&mut report, &Places::of(matches));
            RunOutcome::Ran(report)
        }
        Err(failure) => RunOutcome::Failed(failure),
    };
    // a continuous run ends because it was told to: that there was nothing new is no reason to skip anything
    let nothing_new = settings.exit_code_if_nothing_new.filter(|_| !settings.stream);
    let exit_code = outcome.exit_code(nothing_new);
    if let Some(file) = &settings.report {
        outcome.write(file, exit_code)?;
    }
    match outcome {
        RunOutcome::Failed(failure) => Err(failure),
        RunOutcome::Ran(report) => {
            progress::finish(voice, &report, exit_code)?;
            Ok(exit_code)
        }
    }
}

enum Done {
    Checked(String),
    Ran(Box<tributary::RunReport>),
}

fn attempt(loaded: &Loaded, matches: &ArgMatches, given: &Given, voice: Voice) -> Result<Done, Failure> {
    let opened = bundle::open(loaded, given)?;
    let (settings, pipeline) = (&opened.settings, opened.pipeline);
    let mut options = of_layers(options(loaded.program, settings, &pipeline)?, &pipeline, &opened.layers);
    options.accept_unprotected = given.accepts_unprotected();
    if settings.check {
        return Ok(Done::Checked(checked(&pipeline, &options)));
    }
    let plan = matches.try_get_one::<std::path::PathBuf>("plan").ok().flatten().map(|file| plan::read(file)).transpose()?;
    if let Some(plan) = &plan {
        if settings.stream {
            return Err(Error::PlanOfStream.into());
        }
        options = plan::options_of(plan, options);
    }
    let lake = opened::lake(settings)?;
    options.progress = progress::sink(voice, settings.stream);
    if let Some(address) = settings.metrics_listen.filter(|_| settings.stream) {
        let observer = Arc::new(Observer::new(chosen(&pipeline, &options)));
        let server = Server::start(address, Arc::clone(&observer)).map_err(|source| Error::Listen { address, source })?;
        progress::listening(voice, server.address());
        options.progress = progress::both(observer, options.progress);
    }
    options.progress = next::in_events(options.progress, &Places::of(matches));
    signals::end_with(&options.cancel)?;
    start::block_on(async {
        if let Some(plan) = &plan {
            lake.check_plan(plan, &pipeline, &options).await?;
        }
        let sinks = Sinks::of(settings)?;
        options.openlineage = sinks.of_run(settings);
        let ran = lake.run(&pipeline, options).await;
        sinks.finish().await;
        Ok(Done::Ran(Box::new(ran?)))
    })
}

/// The datasets that these options run.
fn chosen(pipeline: &Pipeline, options: &RunOptions) -> Vec<(String, Layer)> {
    let chosen = pipeline.spec().datasets().into_iter().filter(|dataset| options.chooses(dataset.layer, &dataset.table));
    chosen.map(|dataset| (dataset.table.to_string(), dataset.layer)).collect()
}

/// The settings as the library takes them.
pub fn options(program: Program, settings: &Settings, pipeline: &Pipeline) -> Result<RunOptions, Failure> {
    let data = settings.data_root();
    let base_data_path = opened::folder(&data).ok_or_else(|| Error::DataPath { location: data.to_string() })?;
    let typed = |names: &[String]| typed::tables(names, settings.catalogue.as_str());
    let mode = if settings.stream { Mode::Continuous { every: settings.processing_time } } else { Mode::Drain };
    Ok(RunOptions {
        layers: layers(program, settings.layer),
        only: only(&typed(&[settings.only.as_slice(), &settings.refresh].concat())?, pipeline)?,
        full_refresh: only(&typed(&settings.full_refresh)?, pipeline)?,
        full_refresh_all: settings.full_refresh_all,
        accept_shorter_history: settings.accept_shorter_history,
        skip_change_commits: settings.skip_change_commits,
        mode,
        as_of: settings.as_of,
        base_data_path,
        batch: BatchBounds {
            files_max: usize::try_from(settings.max_files_per_trigger.get()).unwrap_or(usize::MAX),
            bytes_max: settings.max_bytes_per_trigger.map(|size| size.bytes()),
            records_max: settings.max_records_per_trigger.map(|count| count.get()),
        },
        starting_version: settings.starting_version,
        kafka: KafkaOptions {
            bootstrap: settings.kafka_bootstrap.clone(),
            group: Some(settings.kafka_group.clone().unwrap_or_else(|| format!("tributary-{}", pipeline.spec().name))),
            properties: settings.kafka_property.values().clone(),
            starting_offsets: settings.starting_offsets.by_partition().clone(),
            ending_offsets: settings.ending_offsets.by_partition().clone(),
            registry: settings.schema_registry.as_ref().map(|url| url.as_str().to_owned()),
            registry_auth: settings.schema_registry_auth.clone(),
            ..KafkaOptions::default()
        },
        on_gap: match settings.on_gap {
            OnGapChoice::Stop => OnGap::Stop,
            OnGapChoice::Earliest => OnGap::Earliest,
            OnGapChoice::Latest => OnGap::Latest,
        },
        ..RunOptions::default()
    })
}

/// The same choice of datasets, where their schemas do not tell their layers any more: each by its name.
pub fn of_layers(mut options: RunOptions, pipeline: &Pipeline, layers: &LayersBefore) -> RunOptions {
    let is_told = options.only.is_empty() && !options.full_refresh.is_empty();
    if layers.is_empty() || is_told || Layer::ALL.iter().all(|layer| options.layers.contains(layer)) {
        return options;
    }
    let of_layers = pipeline.spec().datasets().into_iter();
    let of_layers = of_layers.filter(|dataset| options.layers.contains(layers.get(&dataset.table).unwrap_or(&dataset.layer)));
    let is_named = |table: &TableName| options.only.is_empty() || options.only.contains(table);
    let chosen: Vec<TableName> = of_layers.map(|dataset| dataset.table).filter(is_named).collect();
    // none by its name would be all
    options.layers = if chosen.is_empty() { Vec::new() } else { Layer::ALL.to_vec() };
    options.only = chosen;
    options
}

/// A layer's own binary runs its layer, whatever `TRIBUTARY_LAYER` says to the umbrella.
pub fn layers(program: Program, choice: LayerChoice) -> Vec<Layer> {
    match (program, choice) {
        (Program::Bronze, _) => vec![Layer::Bronze],
        (Program::Silver, _) => vec![Layer::Silver],
        (Program::Gold, _) => vec![Layer::Gold],
        (_, LayerChoice::Bronze) => vec![Layer::Bronze],
        (_, LayerChoice::Silver) => vec![Layer::Silver],
        (_, LayerChoice::Gold) => vec![Layer::Gold],
        (_, LayerChoice::All) => Layer::ALL.to_vec(),
    }
}

/// The datasets that `--only` names, `schema.table` or `table`, in any case.
pub fn only(names: &[String], pipeline: &Pipeline) -> Result<Vec<TableName>, Error> {
    let datasets: Vec<TableName> = pipeline.spec().datasets().into_iter().map(|dataset| dataset.table).collect();
    let mut chosen = Vec::new();
    for name in names {
        let name = name.trim();
        let before = chosen.len();
        chosen.extend(datasets.iter().filter(|table| is_called(table, name)).cloned());
        if chosen.len() == before {
            let known: Vec<String> = datasets.iter().flat_map(|table| [table.to_string(), table.name.clone()]).collect();
            let nearest = tributary_config::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
            return Err(Error::NoDataset { name: name.to_owned(), nearest });
        }
    }
    Ok(chosen)
}

fn is_called(table: &TableName, name: &str) -> bool {
    match name.parse::<TableName>() {
        Ok(full) => table.same_without_case(&full),
        Err(_) => table.name.to_lowercase() == name.trim_matches('`').to_lowercase(),
    }
}

/// What `--check` says.
fn checked(pipeline: &Pipeline, options: &RunOptions) -> String {
    let layers: Vec<String> = options.layers.iter().map(ToString::to_string).collect();
    format!(
        "settings and pipeline `{}` are sound: {}; nothing was run\nlayers {}, data below {}\n",
        pipeline.spec().name,
        opened::contents(pipeline),
        layers.join(", "),
        options.base_data_path.display()
    )
}

/// A progress sink as the library takes it.
pub type Sink = Arc<dyn tributary::ProgressSink>;

#[cfg(test)]
mod tests {
    use super::*;

    const PIPELINE: &str = "
name: shop
feeds:
  - name: shop_orders
    table: bronze.orders
    source: {files: {path: shop, format: kafka_jsonl}}
silver:
  - table: silver.Orders
    sources: [bronze.orders]
    keys: [id]
";

    fn chosen(names: &[&str]) -> Result<Vec<String>, String> {
        let pipeline = Pipeline::from_yaml(&[("shop.yml", PIPELINE)]).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        only(&names, &pipeline).map(|tables| tables.iter().map(ToString::to_string).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_takes_full_names_and_table_names_in_any_case() {
        assert_eq!(chosen(&["silver.orders"]).unwrap(), ["silver.Orders"]);
        assert_eq!(chosen(&["ORDERS"]).unwrap(), ["bronze.orders", "silver.Orders"]);
        assert!(chosen(&[]).unwrap().is_empty());
    }

    #[test]
    fn only_refuses_an_unknown_dataset_with_the_nearest() {
        assert_eq!(chosen(&["silver.ordres"]).unwrap_err(), "the pipeline has no dataset `silver.ordres`, nearest is `silver.Orders`");
    }

    #[test]
    fn a_layers_own_binary_runs_its_layer_alone() {
        assert_eq!(layers(Program::Silver, LayerChoice::All), [Layer::Silver]);
        assert_eq!(layers(Program::Silver, LayerChoice::Gold), [Layer::Silver]);
        assert_eq!(layers(Program::Run, LayerChoice::All), Layer::ALL);
        assert_eq!(layers(Program::Run, LayerChoice::Gold), [Layer::Gold]);
    }
}
