//! Tables of the whole pipeline: their names, who makes them, who reads what.

use std::collections::HashMap;

use super::{Findings, Unread};
use crate::error::Error;
use crate::graph::{self, DatasetRef, Layer};
use crate::nearest::nearest;
use crate::pipeline::Pipeline;
use crate::problem::Path;
use crate::table_name::TableName;

/// Schemas whose tables are made by the layers on the side.
const OWN_SCHEMAS: [&str; 3] = ["quarantine", "_state", "system"];

pub(super) fn check(findings: &mut Findings, pipeline: &Pipeline, unread: &Unread) {
    let datasets = graph::datasets(pipeline);
    for dataset in &datasets {
        check_name(findings, &dataset.path().field("table"), &dataset.table, &OWN_SCHEMAS);
    }
    check_makers(findings, pipeline, &datasets);
    check_feed_names(findings, pipeline);
    check_quarantines(findings, pipeline);
    check_sources(findings, pipeline, unread, &datasets);
    findings.0.extend(graph::circle_problems(pipeline));
}

fn check_name(findings: &mut Findings, path: &Path, table: &TableName, refused_schemas: &[&str]) {
    let reason = if refused_schemas.iter().any(|schema| table.schema.eq_ignore_ascii_case(schema)) {
        Some("its schema belongs to the layers' own tables")
    } else {
        unfit_part(&table.schema).or_else(|| unfit_part(&table.name))
    };
    if let Some(reason) = reason {
        findings.add(path.clone(), Error::NameForbidden { name: table.to_string(), what: "a table", reason: reason.to_owned() });
    }
}

/// Why a part of a table's name cannot be a folder in every store.
pub(super) fn unfit_part(part: &str) -> Option<&'static str> {
    if part.starts_with("__") {
        Some("names that begin with __ are ours")
    } else if part.contains(['/', '\\']) || part.chars().any(char::is_control) {
        Some("it has a slash or a control character")
    } else if part == "." || part == ".." {
        Some("it is a place in a file system")
    } else if part != part.trim() {
        Some("it begins or ends with a blank")
    } else {
        None
    }
}

fn check_makers(findings: &mut Findings, pipeline: &Pipeline, datasets: &[DatasetRef]) {
    let mut makers: HashMap<TableName, String> = HashMap::new();
    for (path, table) in external(pipeline).chain(datasets.iter().map(|dataset| (dataset.path(), &dataset.table))) {
        if let Some(first) = makers.get(&table.folded()) {
            findings.add(path, Error::TableTwice { table: table.clone(), first: first.clone() });
        } else {
            makers.insert(table.folded(), path.to_string());
        }
    }
}

fn external(pipeline: &Pipeline) -> impl Iterator<Item = (Path, &TableName)> {
    pipeline.external.iter().enumerate().map(|(index, table)| (Path::root().field("external").index(index), table))
}

fn check_feed_names(findings: &mut Findings, pipeline: &Pipeline) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (index, feed) in pipeline.feeds.iter().enumerate() {
        if let Some(first) = seen.insert(feed.name.to_lowercase(), &feed.name) {
            let path = Path::root().field("feeds").index(index).field("name");
            findings.add(path, Error::NameTwice { name: feed.name.clone(), first: first.to_owned(), what: "feed" });
        }
    }
}

/// Two datasets that may quarantine rows do so into two tables.
fn check_quarantines(findings: &mut Findings, pipeline: &Pipeline) {
    let dataset = |layer: Layer, index| Path::root().field(layer.field()).index(index);
    let feeds = pipeline.feeds.iter().enumerate();
    let feeds = feeds.map(|(index, feed)| (dataset(Layer::Bronze, index), feed.quarantine.as_ref(), feed.quarantine_table()));
    let silver = pipeline.silver.iter().enumerate().filter(|(_, spec)| spec.may_quarantine());
    let silver = silver.map(|(index, spec)| (dataset(Layer::Silver, index), spec.quarantine.as_ref(), spec.quarantine_table()));
    let gold = pipeline.gold.iter().enumerate().filter(|(_, spec)| spec.may_quarantine());
    let gold = gold.map(|(index, spec)| (dataset(Layer::Gold, index), spec.quarantine.as_ref(), spec.quarantine_table()));
    let mut users: HashMap<TableName, String> = HashMap::new();
    let made = graph::made_tables(pipeline);
    for (path, given, table) in feeds.chain(silver).chain(gold) {
        if let Some(given) = given {
            check_name(findings, &path.field("quarantine"), given, &OWN_SCHEMAS[1..]);
            if made.contains_key(&given.folded()) {
                let error = Error::TableTwice { table: given.clone(), first: "a dataset".to_owned() };
                findings.add(path.field("quarantine"), error);
            }
        }
        let at = if given.is_some() { path.field("quarantine") } else { path.clone() };
        match users.get(&table.folded()) {
            Some(first) => findings.add(at, Error::QuarantineTwice { table, first: first.clone() }),
            None => {
                users.insert(table.folded(), path.to_string());
            }
        }
    }
}

fn check_sources(findings: &mut Findings, pipeline: &Pipeline, unread: &Unread, datasets: &[DatasetRef]) {
    let made = graph::made_tables(pipeline);
    let names: Vec<String> = made.values().map(ToString::to_string).collect();
    let unread_tables: Vec<TableName> = unread.tables.iter().map(TableName::folded).collect();
    for dataset in datasets {
        let at = dataset.path().field("sources");
        let mut seen: HashMap<TableName, String> = HashMap::new();
        for (index, source) in graph::sources(pipeline, dataset).iter().enumerate() {
            let folded = source.folded();
            if let Some(first) = seen.insert(folded.clone(), source.to_string()) {
                findings.add(at.index(index), Error::NameTwice { name: source.to_string(), first, what: "source" });
            }
            let own = OWN_SCHEMAS.contains(&folded.schema.as_str());
            if !own && !unread.something && !made.contains_key(&folded) && !unread_tables.contains(&folded) {
                let near = nearest(&source.to_string(), names.iter().map(String::as_str)).map(str::to_owned);
                findings.add(at.index(index), Error::SourceUnknown { table: source.clone(), nearest: near });
            }
        }
        check_stream(findings, pipeline, dataset, &at);
    }
}

/// The stream of a silver dataset appends; a gold view replaces its rows.
fn check_stream(findings: &mut Findings, pipeline: &Pipeline, dataset: &DatasetRef, at: &Path) {
    let Some(stream) = graph::sources(pipeline, dataset).first().filter(|_| dataset.layer == Layer::Silver) else { return };
    if pipeline.gold.iter().any(|view| view.table.same_without_case(stream)) {
        findings.add(at.index(0), Error::StreamFromView { table: stream.clone() });
    }
}
