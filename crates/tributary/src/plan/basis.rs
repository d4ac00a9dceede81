//! What a plan rests on, as names and texts that can be compared. Pure.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use tributary_bronze::FeedLook;

use super::inputs::Inputs;
use crate::definition::{Definition, hexadecimal};
use crate::forecast::Forecast;
use crate::{Lake, Pipeline, RunOptions};

/// A table that is not there.
const ABSENT: &str = "absent";

/// Every fact that a plan rests on: of the datasets that were chosen, and of the tables that they read.
pub(super) fn of(lake: &Lake, pipeline: &Pipeline, options: &RunOptions, forecast: &Forecast, inputs: &Inputs) -> BTreeMap<String, String> {
    let catalogue = &lake.inner().options().catalogue;
    let mut basis = BTreeMap::new();
    let version = |table: Option<u64>| table.map_or_else(|| ABSENT.to_owned(), |version| format!("version {version}"));
    let names: BTreeMap<_, _> =
        forecast.datasets.iter().map(|one| (one.dataset.table.folded(), one.table.as_ref().map(|table| table.version()))).collect();
    let chosen = forecast.datasets.iter().filter(|one| options.chooses(one.dataset.layer, &one.dataset.table));
    for foreseen in chosen {
        let table = &foreseen.dataset.table;
        basis.insert(format!("table {catalogue}.{table}"), version(foreseen.table.as_ref().map(|table| table.version())));
        basis.insert(format!("definition of {table}"), Definition::of(pipeline, &foreseen.dataset).fingerprint());
        for source in pipeline.sources_of(foreseen.dataset.layer, foreseen.dataset.index) {
            let of_pipeline = names.get(&source.folded()).copied();
            let found = of_pipeline.unwrap_or_else(|| forecast.external.get(source).map(|table| table.version()));
            basis.insert(format!("table {catalogue}.{source}"), version(found));
        }
        if let Some(look) = inputs.feeds.get(&foreseen.dataset.index).filter(|_| foreseen.dataset.layer == tributary_specs::Layer::Bronze) {
            basis.insert(format!("files of {table}"), files(look));
        }
    }
    basis
}

/// The files that are due, in one text: how many, and a digest of their names, sizes and times.
fn files(look: &FeedLook) -> String {
    let mut hash = Sha256::new();
    for file in &look.files {
        hash.update(format!("{}\n{}\n{}\n", file.name, file.size, file.modified_us));
    }
    format!("{} due ({})", look.files.len(), hexadecimal(&hash.finalize()[..8]))
}

/// What is otherwise now, a line each.
pub(super) fn moved(planned: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let mut moved = Vec::new();
    let keys: std::collections::BTreeSet<&String> = planned.keys().chain(now.keys()).collect();
    for key in keys {
        match (planned.get(key), now.get(key)) {
            (Some(planned), Some(now)) if planned == now => {}
            (Some(_), Some(_)) if key.starts_with("definition ") => moved.push(format!("the {key} changed")),
            (Some(planned), Some(now)) => moved.push(format!("{key}: {planned} in the plan, {now} now")),
            (Some(_), None) => moved.push(format!("{key}: in the plan, not asked for now")),
            (None, Some(_)) => moved.push(format!("{key}: not in the plan")),
            (None, None) => {}
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_is_said_and_what_did_not_is_not() {
        let facts =
            |facts: &[(&str, &str)]| facts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<BTreeMap<_, _>>();
        let planned = facts(&[("table main.a.b", "version 1"), ("definition of a.b", "00"), ("table main.a.c", "absent")]);
        assert!(moved(&planned, &planned).is_empty());
        let now = facts(&[("table main.a.b", "version 2"), ("definition of a.b", "01"), ("table main.a.d", "version 0")]);
        assert_eq!(
            moved(&planned, &now),
            [
                "the definition of a.b changed",
                "table main.a.b: version 1 in the plan, version 2 now",
                "table main.a.c: in the plan, not asked for now",
                "table main.a.d: not in the plan",
            ]
        );
    }
}
