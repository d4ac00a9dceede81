//! `tributary validate`: whether a pipeline is sound, and what it would do. Touches nothing.

use tributary::arrow::array::RecordBatch;
use tributary::{Layer, MergePolicy, Pipeline, SilverSpec};
use tributary_config::{Loaded, Output};

use crate::failure::{Failure, Outcome};
use crate::output::{batch, text, whole};
use crate::{opened, output, start};

/// Prints the datasets in the order they run; every mistake is an error with its place.
pub fn validate(loaded: &Loaded) -> Outcome {
    let pipeline = opened::pipeline(&loaded.settings)?;
    let rows = rows(&pipeline)?;
    output::rows(loaded.settings.output, &rows)?;
    if loaded.settings.output == Output::Table {
        let spec = pipeline.spec();
        let counts = (spec.feeds.len(), spec.silver.len(), spec.gold.len());
        return start::print(&format!("pipeline `{}` is sound: {} feeds, {} silver, {} gold\n", spec.name, counts.0, counts.1, counts.2));
    }
    Ok(0)
}

fn rows(pipeline: &Pipeline) -> Result<RecordBatch, Failure> {
    let spec = pipeline.spec();
    let mut rows: Vec<(u64, String, String, String, String)> = Vec::new();
    for (phase, level) in (1..).zip(spec.phases()?) {
        for dataset in level {
            let (reads, notes) = match dataset.layer {
                Layer::Bronze => (spec.feeds[dataset.index].name.clone(), String::new()),
                Layer::Silver => (names(&spec.silver[dataset.index].sources), notes(&spec.silver[dataset.index], pipeline)),
                Layer::Gold => (names(&spec.gold[dataset.index].sources), String::new()),
            };
            rows.push((phase, dataset.layer.to_string(), dataset.table.to_string(), reads, notes));
        }
    }
    batch(vec![
        ("phase", whole(rows.iter().map(|row| Some(row.0)))),
        ("layer", text(rows.iter().map(|row| Some(row.1.clone())))),
        ("table", text(rows.iter().map(|row| Some(row.2.clone())))),
        ("reads", text(rows.iter().map(|row| Some(row.3.clone())))),
        ("notes", text(rows.iter().map(|row| Some(row.4.clone()).filter(|note| !note.is_empty())))),
    ])
}

fn names(tables: &[tributary::TableName]) -> String {
    tables.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What a person who knows the platform would not expect.
fn notes(silver: &SilverSpec, pipeline: &Pipeline) -> String {
    let from_changes = silver.sources.first().is_some_and(|source| {
        let feed = pipeline.spec().feeds.iter().find(|feed| feed.table == *source);
        feed.is_some_and(|feed| matches!(feed.decode, tributary::Decode::Debezium | tributary::Decode::DebeziumFlattened))
    });
    let deletes = matches!(silver.policy, MergePolicy::ScdType1 | MergePolicy::ScdType2 { .. });
    if from_changes && deletes && silver.deletes.implicit && silver.deletes.apply_as_delete_when.is_none() {
        "deletes of the change feed are applied; AUTO CDC without APPLY AS DELETE WHEN would keep the rows".to_owned()
    } else {
        String::new()
    }
}
