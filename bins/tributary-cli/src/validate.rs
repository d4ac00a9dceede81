//! `tributary validate`: whether a pipeline is sound, its queries over the declared columns included, and what it would do. Touches nothing.

use tributary::arrow::array::RecordBatch;
use tributary::{ExitCode, Fault as _, Layer, MergePolicy, Pipeline, Places, QueryCheck, QueryProblem, SilverSpec, TableName};
use tributary_config::{Loaded, Output};

use crate::bundle::{self, Given};
use crate::failure::{Error, Failure, Outcome};
use crate::output::{batch, text, whole};
use crate::{opened, output, start};

/// Prints the datasets in the order they run; every mistake is an error with its place.
pub fn validate(loaded: &Loaded, given: &Given) -> Outcome {
    let settings = &loaded.settings;
    if let Some(paths) = given.paths_to_check(loaded) {
        return bundle::validate(settings, given, &paths);
    }
    if given.asks_portability() {
        return Err(Error::NothingPortable.into());
    }
    let files = opened::files(settings)?;
    let pipeline = opened::pipeline_of(settings, &files)?;
    let check = start::block_on(async { Ok(pipeline.check_queries().await?) })?;
    if !check.problems.is_empty() {
        let places = Places::of(&opened::texts(&files));
        return Err(Failure::of_all(check.problems.iter().map(|problem| located(problem, &places))));
    }
    output::rows(settings.output, &rows(&pipeline, &check, settings.output)?)?;
    if settings.output == Output::Table {
        let spec = pipeline.spec();
        let counts = (spec.feeds.len(), spec.silver.len(), spec.gold.len());
        return start::print(&format!("pipeline `{}` is sound: {} feeds, {} silver, {} gold\n", spec.name, counts.0, counts.1, counts.2));
    }
    Ok(0)
}

/// A problem of a query as mistakes of the pipeline's form are printed: place, part, what.
fn located(problem: &QueryProblem, places: &Places) -> Failure {
    let location = places.find(&problem.path);
    let place = location.place.map(|place| format!("{place}: ")).unwrap_or_default();
    Failure {
        exit_code: ExitCode::BadInput,
        code: problem.error.code().to_string(),
        message: format!("{place}{}: {}", location.path, tributary::chain(&problem.error)),
        next: Some("tributary validate".to_owned()),
    }
}

fn rows(pipeline: &Pipeline, check: &QueryCheck, output: Output) -> Result<RecordBatch, Failure> {
    let spec = pipeline.spec();
    let mut rows: Vec<(u64, String, String, String, String)> = Vec::new();
    for (phase, level) in (1..).zip(spec.phases()?) {
        for dataset in level {
            let (reads, of_deletes) = match dataset.layer {
                Layer::Bronze => (spec.feeds[dataset.index].name.clone(), None),
                Layer::Silver => (names(spec.silver[dataset.index].reads()), deletes_note(&spec.silver[dataset.index], pipeline)),
                Layer::Gold => (names(&spec.gold[dataset.index].sources), None),
            };
            let of_check = check.notes.iter().filter(|note| note.table == dataset.table).map(|note| note.message.as_str());
            let notes: Vec<&str> = of_deletes.into_iter().chain(of_check).collect();
            rows.push((phase, dataset.layer.to_string(), dataset.table.to_string(), reads, notes.join("; ")));
        }
    }
    batch(vec![
        ("phase", whole(rows.iter().map(|row| Some(row.0)))),
        ("layer", text(rows.iter().map(|row| Some(row.1.clone())))),
        ("table", text(rows.iter().map(|row| Some(row.2.clone())))),
        ("reads", text(rows.iter().map(|row| Some(row.3.clone())))),
        // programs are told that there is none, people see an empty place
        ("notes", text(rows.iter().map(|row| Some(row.4.clone()).filter(|note| !note.is_empty() || output == Output::Table)))),
    ])
}

fn names<'a>(tables: impl IntoIterator<Item = &'a TableName>) -> String {
    tables.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What a person who knows the platform would not expect.
fn deletes_note(silver: &SilverSpec, pipeline: &Pipeline) -> Option<&'static str> {
    let from_changes = silver.sources.first().is_some_and(|source| {
        let feed = pipeline.spec().feeds.iter().find(|feed| feed.table == *source);
        feed.is_some_and(|feed| matches!(feed.decode, tributary::Decode::Debezium | tributary::Decode::DebeziumFlattened))
    });
    let deletes = matches!(silver.policy, MergePolicy::ScdType1 | MergePolicy::ScdType2 { .. });
    let applied = from_changes && deletes && silver.deletes.implicit && silver.deletes.apply_as_delete_when.is_none();
    applied.then_some("deletes of the change feed are applied; AUTO CDC without APPLY AS DELETE WHEN would keep the rows")
}
