//! The pipeline as a graph: what its tables come from, column by column, and what the last run did to each.
//!
//! ```text
//! forecast + lineage + last runs ──▶ Graph ──┬──▶ text
//!                                            ├──▶ DOT, Mermaid
//!                                            └──▶ layout ──▶ one HTML page that asks nobody for anything
//! ```

mod dot;
mod html;
mod layout;
mod mermaid;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tributary_specs::{Column, DatasetRef, Layer, MergePolicy, Source, TableName};

use crate::forecast::forecast;
use crate::lineage::{Lineage, LineageSource, of_dataset};
use crate::past::last_runs;
use crate::{Error, Lake, Pipeline};

/// A pipeline's datasets, what they read, and how columns come into columns.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// let graph = lake.graph(&tributary::Pipeline::builder("empty").build()?).await?;
/// assert!(graph.nodes.is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The pipeline's name.
    pub pipeline: String,
    /// The catalogue of the lake.
    pub catalogue: String,
    /// What is read first, then the datasets in the order of their phases.
    pub nodes: Vec<GraphNode>,
}

/// A dataset, or something that datasets read.
///
/// ```no_run
/// # fn f(node: tributary::GraphNode) {
/// println!("{} ({:?}) comes from {:?}", node.name, node.kind, node.lineage.sources);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphNode {
    /// `schema.table`, or the path of what a feed reads.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// How changes become rows, or how its records are read.
    pub how: String,
    /// Its columns with their types, as they are, or will be after its first run; empty where that cannot be told.
    pub columns: Vec<GraphColumn>,
    /// What it comes from.
    pub lineage: Lineage,
    /// The flows into it, where it is a dataset: a name, and what is read.
    pub flows: Vec<GraphFlow>,
    /// What the last run did to it.
    pub last_run: Option<NodeRun>,
}

/// What a node of the graph is.
///
/// ```
/// assert_ne!(tributary::NodeKind::Files, tributary::NodeKind::Bronze);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Files that a feed reads.
    Files,
    /// Topics, or a record source, that a feed reads.
    Stream,
    /// A table that something else makes.
    External,
    /// A feed's table.
    Bronze,
    /// A silver table.
    Silver,
    /// A view.
    Gold,
}

/// A column of a node.
///
/// ```no_run
/// # fn f(column: tributary::GraphColumn) {
/// println!("{} {}", column.name, column.data_type);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: String,
}

/// A flow into a dataset.
///
/// ```no_run
/// # fn f(flow: tributary::GraphFlow) {
/// println!("{} reads {}", flow.name, flow.reads.join(", "));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphFlow {
    /// Its name.
    pub name: String,
    /// Names of the nodes it reads.
    pub reads: Vec<String>,
}

/// What the last run did to a dataset.
///
/// ```no_run
/// # fn f(run: tributary::NodeRun) {
/// println!("{}: {:?} rows", run.status, run.rows_out);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRun {
    /// Its id.
    pub run_id: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// `committed`, `failed` or `skipped`.
    pub status: String,
    /// Rows it read.
    pub rows_in: Option<u64>,
    /// Rows it wrote.
    pub rows_out: Option<u64>,
    /// The version it made.
    pub version: Option<u64>,
    /// How long it took.
    pub millis: Option<u64>,
}

impl Lake {
    /// The pipeline as a graph, with the last run of each dataset. Reads logs and `system.tributary.runs`; writes nothing.
    ///
    /// # Errors
    /// [`Error::Spec`] for datasets that read each other in a circle; the lake's, when it cannot be read.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.html", lake.graph(&pipeline).await?.to_html())?;
    /// # Ok(()) }
    /// ```
    pub async fn graph(&self, pipeline: &Pipeline) -> Result<Graph, Error> {
        let pipeline = &pipeline.with_functions_of(self).await?;
        let forecast = Box::pin(forecast(self, pipeline)).await?;
        let mut past = last_runs(self).await?;
        let mut nodes: Vec<GraphNode> = Vec::new();
        for foreseen in &forecast.datasets {
            let (dataset, columns) = (&foreseen.dataset, foreseen.columns());
            let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
            let lineage = of_dataset(self.inner(), pipeline, dataset, &names, &forecast.schemas).await;
            let last_run = past.remove(&dataset.table.to_string()).map(|last| last.run);
            let kind = match dataset.layer {
                Layer::Bronze => NodeKind::Bronze,
                Layer::Silver => NodeKind::Silver,
                Layer::Gold => NodeKind::Gold,
            };
            let how = how(pipeline, dataset);
            let flows = flows(pipeline, dataset, &lineage);
            nodes.push(GraphNode { name: dataset.table.to_string(), kind, how, columns: shown(&columns), lineage, flows, last_run });
        }
        let outside =
            outside(pipeline, &nodes, |table| forecast.external.get(table).map(|table| shown(table.columns())).unwrap_or_default());
        let nodes = outside.into_iter().chain(nodes).collect();
        Ok(Graph { pipeline: pipeline.spec().name.clone(), catalogue: self.inner().options().catalogue.clone(), nodes })
    }

    /// Where the rows of datasets come from, column by column: of one table of the pipeline, or of all.
    ///
    /// # Errors
    /// As [`Lake::graph`]; [`Error::NoDataset`] where the pipeline has no such table.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
    /// for (table, lineage) in lake.lineage(&pipeline, Some(&"gold.revenue".parse().unwrap())).await? {
    ///     println!("{table}: {} columns", lineage.columns.len());
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn lineage(&self, pipeline: &Pipeline, only: Option<&TableName>) -> Result<Vec<(TableName, Lineage)>, Error> {
        let pipeline = &pipeline.with_functions_of(self).await?;
        let forecast = Box::pin(forecast(self, pipeline)).await?;
        let mut found = Vec::new();
        for foreseen in forecast.datasets.iter().filter(|one| only.is_none_or(|only| one.dataset.table.same_without_case(only))) {
            let names: Vec<String> = foreseen.columns().into_iter().map(|column| column.name).collect();
            let lineage = of_dataset(self.inner(), pipeline, &foreseen.dataset, &names, &forecast.schemas).await;
            found.push((foreseen.dataset.table.clone(), lineage));
        }
        if let (true, Some(only)) = (found.is_empty(), only) {
            return Err(Error::no_dataset(&only.to_string(), forecast.datasets.iter().map(|one| &one.dataset.table)));
        }
        Ok(found)
    }
}

impl Graph {
    /// What each node reads: pairs of places in `nodes`, from and to.
    pub(crate) fn edges(&self) -> Vec<(usize, usize)> {
        let at: BTreeMap<&str, usize> = self.nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
        let mut edges = BTreeSet::new();
        for (to, node) in self.nodes.iter().enumerate() {
            let sources = node.lineage.sources.iter().map(ToString::to_string);
            edges.extend(sources.filter_map(|source| at.get(source.as_str()).map(|from| (*from, to))).filter(|(from, to)| from != to));
        }
        edges.into_iter().collect()
    }

    /// How many columns come from others.
    pub(crate) fn column_edges(&self) -> usize {
        self.nodes.iter().flat_map(|node| &node.lineage.columns).map(|column| column.from.len()).sum()
    }
}

fn shown(columns: &[Column]) -> Vec<GraphColumn> {
    columns.iter().map(|column| GraphColumn { name: column.name.clone(), data_type: column.data_type.to_string() }).collect()
}

/// How changes become rows of a dataset.
fn how(pipeline: &Pipeline, dataset: &DatasetRef) -> String {
    let spec = pipeline.spec();
    let word =
        |value: serde_json::Result<serde_json::Value>| value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
    match dataset.layer {
        Layer::Bronze => word(serde_json::to_value(spec.feeds[dataset.index].decode)).replace('_', " "),
        Layer::Silver => match &spec.silver[dataset.index].policy {
            MergePolicy::ScdType1 => "SCD type 1".to_owned(),
            MergePolicy::ScdType2 { .. } => "SCD type 2".to_owned(),
            policy => policy.word().replace('_', " "),
        },
        Layer::Gold => "view".to_owned(),
    }
}

fn flows(pipeline: &Pipeline, dataset: &DatasetRef, lineage: &Lineage) -> Vec<GraphFlow> {
    let name = dataset.table.name.clone();
    match dataset.layer {
        Layer::Bronze => {
            let feed = pipeline.spec().feeds[dataset.index].name.clone();
            vec![GraphFlow { name: feed, reads: lineage.sources.iter().map(ToString::to_string).collect() }]
        }
        Layer::Silver => {
            let of = |flow: tributary_specs::SilverSpec| GraphFlow {
                name: flow.flow_name().to_owned(),
                reads: flow.sources.iter().map(ToString::to_string).collect(),
            };
            pipeline.spec().silver[dataset.index].each_flow().into_iter().map(of).collect()
        }
        Layer::Gold => vec![GraphFlow {
            name,
            reads: pipeline.sources_of(dataset.layer, dataset.index).into_iter().map(ToString::to_string).collect(),
        }],
    }
}

/// What is read and is no dataset: paths, and tables that something else makes.
fn outside(pipeline: &Pipeline, nodes: &[GraphNode], columns: impl Fn(&TableName) -> Vec<GraphColumn>) -> Vec<GraphNode> {
    let mut found: BTreeMap<String, GraphNode> = BTreeMap::new();
    for node in nodes {
        for source in &node.lineage.sources {
            let name = source.to_string();
            if nodes.iter().any(|node| node.name == name) || found.contains_key(&name) {
                continue;
            }
            let (kind, columns) = match source {
                LineageSource::Table(table) => (NodeKind::External, columns(table)),
                LineageSource::Path(path) if ["kafka://", "source://"].iter().any(|place| path.starts_with(place)) => {
                    (NodeKind::Stream, Vec::new())
                }
                LineageSource::Path(_) => (NodeKind::Files, Vec::new()),
            };
            let how = match kind {
                NodeKind::Files => format_of(pipeline, &name),
                NodeKind::Stream => if name.starts_with("kafka://") { "topic" } else { "record source" }.to_owned(),
                _ => "made elsewhere".to_owned(),
            };
            let lineage = Lineage::default();
            found.insert(name.clone(), GraphNode { name, kind, how, columns, lineage, flows: Vec::new(), last_run: None });
        }
    }
    found.into_values().collect()
}

fn format_of(pipeline: &Pipeline, path: &str) -> String {
    let of = |feed: &tributary_specs::SourceFeed| match &feed.source {
        Source::Files(files) if files.path == path => serde_json::to_value(files.format).ok(),
        _ => None,
    };
    let format = pipeline.spec().feeds.iter().find_map(of);
    format.and_then(|format| format.as_str().map(|word| format!("{} files", word.replace('_', " ")))).unwrap_or_default()
}
