//! Tables of the whole pipeline: their names, who makes them, who reads what.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tributary_fault::nearest;

use super::{Findings, Unread};
use crate::error::Error;
use crate::graph::{self, DatasetRef, Layer};
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
    let mut makers: HashMap<TableName, Path> = HashMap::new();
    for (path, table) in external(pipeline).chain(datasets.iter().map(|dataset| (dataset.path(), &dataset.table))) {
        match makers.entry(table.folded()) {
            Entry::Occupied(first) => {
                findings.add(path, Error::TableTwice { table: table.clone(), first: Box::new(first.get().clone().into()) });
            }
            Entry::Vacant(unseen) => {
                unseen.insert(path);
            }
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

/// A dataset's quarantine: whose, whether it is given, which table.
struct Quarantine<'a> {
    path: Path,
    /// What makes the dataset one of its own: two of the same are reported as that.
    owner: TableName,
    given: Option<&'a TableName>,
    table: TableName,
}

/// The quarantines of all datasets that may use one.
fn quarantines(pipeline: &Pipeline) -> Vec<Quarantine<'_>> {
    let path = |layer: Layer, index| Path::root().field(layer.field()).index(index);
    let feeds = pipeline.feeds.iter().enumerate().map(|(index, feed)| Quarantine {
        path: path(Layer::Bronze, index),
        owner: TableName::new("", feed.name.to_lowercase()),
        given: feed.quarantine.as_ref(),
        table: feed.quarantine_table(),
    });
    let silver = pipeline.silver.iter().enumerate().filter(|(_, spec)| spec.may_quarantine()).map(|(index, spec)| Quarantine {
        path: path(Layer::Silver, index),
        owner: spec.table.folded(),
        given: spec.quarantine.as_ref(),
        table: spec.quarantine_table(),
    });
    let gold = pipeline.gold.iter().enumerate().filter(|(_, spec)| spec.may_quarantine()).map(|(index, spec)| Quarantine {
        path: path(Layer::Gold, index),
        owner: spec.table.folded(),
        given: spec.quarantine.as_ref(),
        table: spec.quarantine_table(),
    });
    feeds.chain(silver).chain(gold).collect()
}

/// Two datasets quarantine rows into two tables, and into none that a dataset makes.
fn check_quarantines(findings: &mut Findings, pipeline: &Pipeline) {
    let makers = graph::datasets(pipeline);
    let mut users: HashMap<TableName, (Path, TableName)> = HashMap::new();
    for Quarantine { path, owner, given, table } in quarantines(pipeline) {
        let at = if given.is_some() { path.field("quarantine") } else { path.clone() };
        if let Some(given) = given {
            check_name(findings, &at, given, &OWN_SCHEMAS[1..]);
        }
        if let Some(maker) = makers.iter().find(|maker| maker.table.same_without_case(&table)) {
            findings.add(at.clone(), Error::TableTwice { table: table.clone(), first: Box::new(maker.path().into()) });
        }
        match users.entry(table.folded()) {
            Entry::Occupied(first) => {
                let (first, first_owner) = first.get();
                if given.is_some() || *first_owner != owner {
                    findings.add(at, Error::QuarantineTwice { table, first: Box::new(first.clone().into()) });
                }
            }
            Entry::Vacant(unseen) => {
                unseen.insert((path, owner));
            }
        }
    }
}

fn check_sources(findings: &mut Findings, pipeline: &Pipeline, unread: &Unread, datasets: &[DatasetRef]) {
    let made = graph::made_tables(pipeline);
    let unread_tables: Vec<TableName> = unread.tables.iter().map(TableName::folded).collect();
    for dataset in datasets {
        for (at, sources) in source_lists(pipeline, dataset) {
            let mut seen: HashMap<TableName, String> = HashMap::new();
            for (index, source) in sources.iter().enumerate() {
                let folded = source.folded();
                if let Some(first) = seen.insert(folded.clone(), source.to_string()) {
                    findings.add(at.index(index), Error::NameTwice { name: source.to_string(), first, what: "source" });
                }
                let own = OWN_SCHEMAS.contains(&folded.schema.as_str());
                if !own && !unread.something && !made.contains_key(&folded) && !unread_tables.contains(&folded) {
                    let near = nearest_table(source, &made).map(ToString::to_string);
                    findings.add(at.index(index), Error::SourceUnknown { table: source.clone(), nearest: near });
                }
            }
            check_stream(findings, pipeline, dataset, sources, &at);
        }
    }
}

/// The lists of sources of a dataset, each with where it stands: one, and one more for each further flow.
fn source_lists<'a>(pipeline: &'a Pipeline, dataset: &DatasetRef) -> Vec<(Path, &'a [TableName])> {
    let path = dataset.path();
    match dataset.layer {
        Layer::Bronze => Vec::new(),
        Layer::Gold => vec![(path.field("sources"), &pipeline.gold[dataset.index].sources)],
        Layer::Silver => {
            let spec = &pipeline.silver[dataset.index];
            let further = spec.flows.iter().enumerate();
            let further = further.map(|(index, flow)| (path.field("flows").index(index).field("sources"), flow.sources.as_slice()));
            std::iter::once((path.field("sources"), spec.sources.as_slice())).chain(further).collect()
        }
    }
}

/// The table whose name is nearest, of equally near ones the one in the same schema.
fn nearest_table<'a>(wanted: &TableName, made: &'a HashMap<TableName, TableName>) -> Option<&'a TableName> {
    let name = nearest(&wanted.name, made.values().map(|table| table.name.as_str()))?;
    let mut named: Vec<&TableName> = made.values().filter(|table| table.name == name).collect();
    named.sort_by_key(|table| (table.schema != wanted.schema, *table));
    named.first().copied()
}

/// The stream of a silver dataset appends; a gold view replaces its rows, unless it is a streaming table.
fn check_stream(findings: &mut Findings, pipeline: &Pipeline, dataset: &DatasetRef, sources: &[TableName], at: &Path) {
    let Some(stream) = sources.first().filter(|_| dataset.layer == Layer::Silver) else { return };
    if pipeline.gold.iter().any(|view| view.streams.is_empty() && view.table.same_without_case(stream)) {
        findings.add(at.index(0), Error::StreamFromView { table: stream.clone() });
    }
}
