//! What reads what.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::problem::{Errors, Path, Problem};
use crate::table_name::TableName;

/// A layer of the medallion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// Feeds.
    Bronze,
    /// Merged tables.
    Silver,
    /// Views.
    Gold,
}

impl Layer {
    /// In the order they run.
    pub const ALL: [Self; 3] = [Self::Bronze, Self::Silver, Self::Gold];

    /// The field of the pipeline that lists the layer's datasets.
    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Bronze => "feeds",
            Self::Silver => "silver",
            Self::Gold => "gold",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bronze => "bronze",
            Self::Silver => "silver",
            Self::Gold => "gold",
        })
    }
}

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|layer| layer.to_string() == text);
        found.ok_or_else(|| format!("`{text}` is no layer: bronze, silver or gold"))
    }
}

/// One dataset of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatasetRef {
    /// Its layer.
    pub layer: Layer,
    /// Its place in the pipeline's list of that layer.
    pub index: usize,
    /// The table it makes.
    pub table: TableName,
}

impl DatasetRef {
    /// The dataset's path, `silver[1]`.
    pub fn path(&self) -> Path {
        Path::root().field(self.layer.field()).index(self.index)
    }
}

/// Every dataset, feeds first.
pub(crate) fn datasets(pipeline: &Pipeline) -> Vec<DatasetRef> {
    let of = |layer, index, table: &TableName| DatasetRef { layer, index, table: table.clone() };
    let feeds = pipeline.feeds.iter().enumerate().map(|(index, feed)| of(Layer::Bronze, index, &feed.table));
    let silver = pipeline.silver.iter().enumerate().map(|(index, spec)| of(Layer::Silver, index, &spec.table));
    let gold = pipeline.gold.iter().enumerate().map(|(index, spec)| of(Layer::Gold, index, &spec.table));
    feeds.chain(silver).chain(gold).collect()
}

/// The tables a dataset reads, as its spec has them.
pub(crate) fn sources<'a>(pipeline: &'a Pipeline, dataset: &DatasetRef) -> Vec<&'a TableName> {
    match dataset.layer {
        Layer::Bronze => Vec::new(),
        Layer::Silver => pipeline.silver[dataset.index].reads(),
        Layer::Gold => pipeline.gold[dataset.index].sources.iter().collect(),
    }
}

/// For each dataset, by its number in [`datasets`], the numbers of the datasets it reads.
fn edges(pipeline: &Pipeline, datasets: &[DatasetRef]) -> Vec<Vec<usize>> {
    let number: HashMap<TableName, usize> = datasets.iter().enumerate().rev().map(|(at, dataset)| (dataset.table.folded(), at)).collect();
    let before_gold: Vec<usize> = (0..datasets.len()).filter(|at| datasets[*at].layer != Layer::Gold).collect();
    let reads = datasets.iter().map(|dataset| {
        let sources = sources(pipeline, dataset);
        if dataset.layer == Layer::Gold && sources.is_empty() {
            return before_gold.clone();
        }
        sources.iter().filter_map(|table| number.get(&table.folded()).copied()).collect()
    });
    reads.collect()
}

/// Levels of the graph, each in the order of the pipeline.
pub(crate) fn phases(pipeline: &Pipeline) -> Result<Vec<Vec<DatasetRef>>, Errors> {
    let datasets = datasets(pipeline);
    let edges = edges(pipeline, &datasets);
    if let Some(errors) = Errors::when_any(circles(&datasets, &edges)) {
        return Err(errors);
    }
    let mut level = vec![0; datasets.len()];
    for at in in_order(&edges) {
        level[at] = edges[at].iter().map(|input| level[*input] + 1).max().unwrap_or_default();
    }
    let mut phases: BTreeMap<usize, Vec<DatasetRef>> = BTreeMap::new();
    for (at, dataset) in datasets.into_iter().enumerate() {
        phases.entry(level[at]).or_default().push(dataset);
    }
    Ok(phases.into_values().collect())
}

/// One problem for each circle, at the dataset of the circle that stands first in the pipeline.
pub(crate) fn circle_problems(pipeline: &Pipeline) -> Vec<Problem> {
    let datasets = datasets(pipeline);
    circles(&datasets, &edges(pipeline, &datasets))
}

fn circles(datasets: &[DatasetRef], edges: &[Vec<usize>]) -> Vec<Problem> {
    // what comes before all circles or behind them is in none
    let mut settled_or_told = vec![false; datasets.len()];
    for settled in [in_order(edges), in_order(&turned(edges))] {
        settled.into_iter().for_each(|at| settled_or_told[at] = true);
    }
    let mut problems = Vec::new();
    for start in 0..datasets.len() {
        if settled_or_told[start] {
            continue;
        }
        if let Some(way) = way_back(start, edges) {
            way.iter().for_each(|at| settled_or_told[*at] = true);
            let names: Vec<String> = way.iter().chain([&start]).map(|at| datasets[*at].table.to_string()).collect();
            problems.push(Problem::new(datasets[start].path().field("sources"), Error::Cycle { cycle: names.join(" -> ") }));
        }
    }
    problems
}

/// Datasets behind all that they read; those that are in a circle, or read what is, are left out.
fn in_order(edges: &[Vec<usize>]) -> Vec<usize> {
    let readers = turned(edges);
    let mut waits: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..edges.len()).filter(|at| waits[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        for reader in &readers[at] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                order.push(*reader);
            }
        }
    }
    order
}

/// For each dataset those that read it.
fn turned(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); edges.len()];
    for (at, inputs) in edges.iter().enumerate() {
        inputs.iter().for_each(|input| readers[*input].push(at));
    }
    readers
}

/// A shortest way from a dataset over what it reads back to itself, the dataset first.
fn way_back(start: usize, edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut came_from: HashMap<usize, usize> = HashMap::new();
    let mut frontier = vec![start];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for from in frontier {
            for to in edges[from].iter().copied() {
                if to == start {
                    let mut way = vec![from];
                    while let Some(before) = way.last().filter(|at| **at != start).and_then(|at| came_from.get(at)) {
                        way.push(*before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if let std::collections::hash_map::Entry::Vacant(unseen) = came_from.entry(to) {
                    unseen.insert(from);
                    next.push(to);
                }
            }
        }
        frontier = next;
    }
    None
}

/// Every table that something makes or that is declared as made elsewhere, by its name in lower case.
pub(crate) fn made_tables(pipeline: &Pipeline) -> HashMap<TableName, TableName> {
    let made = datasets(pipeline).into_iter().map(|dataset| dataset.table);
    let mut by_name = HashMap::new();
    for table in made.chain(pipeline.external.iter().cloned()) {
        by_name.entry(table.folded()).or_insert(table);
    }
    by_name
}

pub(crate) fn respell_sources(pipeline: &mut Pipeline) {
    let made = made_tables(pipeline);
    let silver =
        pipeline.silver.iter_mut().flat_map(|spec| spec.sources.iter_mut().chain(spec.flows.iter_mut().flat_map(|flow| &mut flow.sources)));
    for source in silver.chain(pipeline.gold.iter_mut().flat_map(|spec| &mut spec.sources)) {
        if let Some(table) = made.get(&source.folded()) {
            source.clone_from(table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_datasets_are_put_in_order_at_once() {
        let count = 20_000;
        let started = std::time::Instant::now();
        // each reads the one behind it, so that the first comes last
        let chain: Vec<Vec<usize>> = (1..=count).map(|at| if at == count { Vec::new() } else { vec![at, at] }).collect();
        assert_eq!(in_order(&chain), (0..count).rev().collect::<Vec<_>>());
        // a circle with what leads to it and what comes of it
        let mut around = chain.clone();
        around[count / 2].push(count / 2 - 9);
        assert_eq!(in_order(&around), (count / 2 + 1..count).rev().collect::<Vec<_>>());
        assert_eq!(in_order(&turned(&around)), (0..count / 2 - 9).collect::<Vec<_>>());
        assert_eq!(way_back(count / 2, &around).map(|way| way.len()), Some(10));
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }
}
