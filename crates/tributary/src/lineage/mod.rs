//! Lineage: which tables and columns the rows of a dataset come from, as its query says.
//!
//! ```text
//! spec ──▶ query over the columns of its sources (no rows) ──▶ logical plan ──▶ trace ──▶ Lineage
//!                                                                                  ├──▶ system.access.{table,column}_lineage
//!                                                                                  ├──▶ OpenLineage events
//!                                                                                  └──▶ graph, show lineage
//! ```
//!
//! A feed's table comes from its files or topics; our own columns (`_…`, `__…`) have lineage where a column of the source says
//! what they hold.

mod kept;
mod openlineage;
mod query;
mod trace;
mod watch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tributary_lake::Lake;
use tributary_lake::arrow::datatypes::{Schema, SchemaRef};
use tributary_lake::datafusion::common::DFSchema;
use tributary_specs::{ColumnSelection, DatasetRef, Layer, MergePolicy, SilverSpec, Source, SourceFeed, TableName};

use query::{Query, Schemas, Unplanned};
use trace::Origins;

pub(crate) use kept::specs;
pub use openlineage::{LineageSink, OPENLINEAGE_PRODUCER, OpenLineage};
pub use trace::Manner;
pub(crate) use watch::{By, Watch};

use crate::{Build, Pipeline};

/// Where the rows of one dataset come from.
///
/// ```no_run
/// # async fn f(lake: tributary::Lake, pipeline: tributary::Pipeline) -> Result<(), tributary::Error> {
/// for node in lake.graph(&pipeline).await?.nodes {
///     println!("{} reads {:?}", node.name, node.lineage.sources);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// What it reads, tables that only filter too.
    pub sources: Vec<LineageSource>,
    /// Its columns that come from others, in the order of the table.
    pub columns: Vec<ColumnLineage>,
}

/// What a dataset reads.
///
/// ```
/// use tributary::LineageSource;
/// assert_eq!(LineageSource::Table("silver.orders".parse().unwrap()).to_string(), "silver.orders");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineageSource {
    /// A table of the lake.
    Table(TableName),
    /// What a feed reads: the path of files, `kafka://` and the brokers and topics, or `source://` and a record source's name.
    Path(String),
}

impl std::fmt::Display for LineageSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table(table) => table.fmt(f),
            Self::Path(path) => f.write_str(path),
        }
    }
}

/// The columns that one column comes from.
///
/// ```
/// assert!(tributary::ColumnLineage::default().from.is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnLineage {
    /// The column.
    pub column: String,
    /// Its sources, sorted.
    pub from: Vec<ColumnSource>,
}

/// A column that another comes from.
///
/// ```no_run
/// # fn f(source: tributary::ColumnSource) {
/// println!("{}.{} {:?}", source.source, source.column, source.manner);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ColumnSource {
    /// Where it is.
    pub source: LineageSource,
    /// Its name.
    pub column: String,
    /// How its values come into the other.
    pub manner: Manner,
}

/// The lineage of a dataset with these columns, whose sources have those of `schemas`. Of a query that cannot be planned the sources
/// alone are known.
pub(crate) async fn of_dataset(
    lake: &Lake,
    pipeline: &Pipeline,
    dataset: &DatasetRef,
    columns: &[String],
    schemas: &BTreeMap<TableName, SchemaRef>,
) -> Lineage {
    let spec = pipeline.spec();
    let found = match dataset.layer {
        Layer::Bronze => return of_feed(&spec.feeds[dataset.index], columns),
        Layer::Silver => of_silver(lake, pipeline, &spec.silver[dataset.index], schemas).await,
        Layer::Gold => {
            let gold = &spec.gold[dataset.index];
            let query = pipeline.build_of(&gold.table).map_or(Query::Text(&gold.query), Query::Built);
            of_query(lake, pipeline, query, &chosen(&gold.sources, schemas)).await
        }
    };
    match found {
        Ok(found) => found.lineage(columns),
        Err(error) => {
            tracing::debug!(table = %dataset.table, error = &error as &dyn std::error::Error, "its columns could not be followed");
            let sources = pipeline.sources_of(dataset.layer, dataset.index).into_iter().cloned();
            Lineage { sources: sources.map(LineageSource::Table).collect(), columns: Vec::new() }
        }
    }
}

/// What a query reads, and where each of its outputs comes from.
#[derive(Default)]
struct Found {
    tables: Vec<TableName>,
    outputs: Vec<(String, Origins)>,
}

impl Found {
    fn of(&self, column: &str) -> Option<&Origins> {
        self.outputs.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, origins)| origins)
    }

    /// Adds what another flow into the same table brings.
    fn add(&mut self, other: Self) {
        self.tables.extend(other.tables.into_iter().filter(|table| !self.tables.contains(table)).collect::<Vec<_>>());
        for (name, origins) in other.outputs {
            match self.outputs.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                Some((_, known)) => trace::merge(known, origins),
                None => self.outputs.push((name, origins)),
            }
        }
    }

    /// The lineage of a table with these columns.
    fn lineage(self, columns: &[String]) -> Lineage {
        let of = |(table, column): &(TableName, String), manner: &Manner| ColumnSource {
            source: LineageSource::Table(table.clone()),
            column: column.clone(),
            manner: *manner,
        };
        let columns = columns.iter().filter_map(|column| {
            let from: Vec<ColumnSource> = self.of(column)?.iter().map(|(origin, manner)| of(origin, manner)).collect();
            (!from.is_empty()).then(|| ColumnLineage { column: column.clone(), from })
        });
        let columns = columns.collect();
        Lineage { sources: self.tables.into_iter().map(LineageSource::Table).collect(), columns }
    }
}

async fn of_query(lake: &Lake, pipeline: &Pipeline, query: Query<'_>, sources: &Schemas) -> Result<Found, Unplanned> {
    let plan = query::plan(lake, pipeline, query, sources).await?;
    let named = query::name_of(&lake.options().catalogue, sources);
    Ok(Found { tables: trace::tables(&plan, &named)?.into_iter().collect(), outputs: trace::columns(&plan, &named)? })
}

/// A silver dataset: what each of its flows brings.
async fn of_silver(
    lake: &Lake,
    pipeline: &Pipeline,
    spec: &SilverSpec,
    schemas: &BTreeMap<TableName, SchemaRef>,
) -> Result<Found, Unplanned> {
    let mut all = Found::default();
    for (at, flow) in spec.each_flow().iter().enumerate() {
        let build = pipeline.build_of(&spec.table).filter(|_| at == 0);
        all.add(of_flow(lake, pipeline, flow, build, schemas).await?);
    }
    Ok(all)
}

/// One flow: its query, or its source's columns as they are; and our own columns by what they hold.
async fn of_flow(
    lake: &Lake,
    pipeline: &Pipeline,
    spec: &SilverSpec,
    build: Option<Build>,
    schemas: &BTreeMap<TableName, SchemaRef>,
) -> Result<Found, Unplanned> {
    let mut sources = chosen(&spec.sources, schemas);
    let first = spec.sources.first().and_then(|first| sources.keys().find(|name| name.same_without_case(first)).cloned());
    if let Some(schema) = first.as_ref().and_then(|first| sources.get_mut(first)) {
        *schema = query::with_feed(schema);
    }
    let query = match (build, &spec.select) {
        (Some(build), _) => Some(Query::Built(build)),
        (None, select) => select.as_deref().map(Query::Text),
    };
    let mut found = match (query, &first) {
        (Some(query), _) => of_query(lake, pipeline, query, &sources).await?,
        (None, Some(first)) => as_it_is(first, &sources),
        (None, None) => Found::default(),
    };
    let Some((first, schema)) = first.as_ref().and_then(|first| Some((first, sources.get(first)?))) else { return Ok(found) };
    let chosen = |name: &str| match &spec.columns {
        ColumnSelection::All => true,
        ColumnSelection::Only(columns) => columns.iter().any(|column| column.eq_ignore_ascii_case(name)),
        ColumnSelection::Except(columns) => !columns.iter().any(|column| column.eq_ignore_ascii_case(name)),
    };
    let own = own_columns(lake, pipeline, spec, first, schema, &found);
    found.outputs.retain(|(name, _)| chosen(name));
    found.outputs.extend(own);
    Ok(found)
}

/// The columns of a table, each from itself.
fn as_it_is(table: &TableName, sources: &Schemas) -> Found {
    let fields = sources.get(table).into_iter().flat_map(|schema| schema.fields().iter());
    let outputs = fields.map(|field| (field.name().clone(), itself(table, field.name())));
    Found { tables: vec![table.clone()], outputs: outputs.collect() }
}

fn itself(table: &TableName, column: &str) -> Origins {
    Origins::from([((table.clone(), column.to_owned()), Manner::Identity)])
}

/// The position and the sequence of rows: in columns of ours from the feed's position, or from what `sequence_by` names.
fn own_columns(
    lake: &Lake,
    pipeline: &Pipeline,
    spec: &SilverSpec,
    first: &TableName,
    schema: &Schema,
    found: &Found,
) -> Vec<(String, Origins)> {
    let position = if schema.column_with_name("_position").is_some() { itself(first, "_position") } else { Origins::new() };
    let sequence = if spec.sequence_by.is_empty() { position.clone() } else { sequence(lake, pipeline, spec, first, schema, found) };
    let names: &[(&str, &Origins)] = match spec.policy {
        MergePolicy::Append => &[],
        MergePolicy::ScdType2 { .. } => &[("__START_AT", &sequence), ("__END_AT", &sequence)],
        _ => &[("__position", &position), ("__sequence", &sequence)],
    };
    names.iter().map(|(name, origins)| ((*name).to_owned(), (*origins).clone())).collect()
}

/// Where the declared sequence comes from: its expressions see the query's outputs, and behind them the source's columns.
fn sequence(lake: &Lake, pipeline: &Pipeline, spec: &SilverSpec, first: &TableName, schema: &Schema, found: &Found) -> Origins {
    let (context, own) = query::context(lake, pipeline);
    let mut all = Origins::new();
    for text in &spec.sequence_by {
        let scope = DFSchema::try_from_qualified_schema("source", schema);
        let read = scope.map_err(Unplanned::from).and_then(|scope| {
            let expression = tributary_spark_sql::expression(&context.state(), text, Some("source"), &scope, &own)?;
            Ok(expression.column_refs().into_iter().map(|column| column.name.clone()).collect::<Vec<_>>())
        });
        // an expression over outputs of the query alone is read by its name
        for name in read.unwrap_or_else(|_| vec![text.trim_matches('`').to_owned()]) {
            let origins = found.of(&name).cloned();
            let of_source = || schema.field_with_name(&name).map(|_| itself(first, &name)).unwrap_or_default();
            all.extend(origins.unwrap_or_else(of_source));
        }
    }
    all
}

/// The columns of those of these tables that are known.
fn chosen(sources: &[TableName], schemas: &BTreeMap<TableName, SchemaRef>) -> Schemas {
    let known = |source: &TableName| schemas.iter().find(|(name, _)| name.same_without_case(source));
    sources.iter().filter_map(known).map(|(name, schema)| (name.clone(), SchemaRef::clone(schema))).collect()
}

/// A feed's table: its records' columns from each place that is read.
fn of_feed(feed: &SourceFeed, columns: &[String]) -> Lineage {
    let sources: Vec<LineageSource> = places(feed).into_iter().map(LineageSource::Path).collect();
    let metadata = feed.decode.metadata_columns();
    let of_records = columns.iter().filter(|column| !column.starts_with('_') && !metadata.contains(&column.as_str()));
    let of =
        |source: &LineageSource, column: &String| ColumnSource { source: source.clone(), column: column.clone(), manner: Manner::Identity };
    let columns =
        of_records.map(|column| ColumnLineage { column: column.clone(), from: sources.iter().map(|source| of(source, column)).collect() });
    Lineage { columns: columns.collect(), sources }
}

/// What a feed reads, as lineage calls it.
pub(crate) fn places(feed: &SourceFeed) -> Vec<String> {
    match &feed.source {
        Source::Files(files) => vec![files.path.clone()],
        Source::Kafka(kafka) => {
            let brokers = kafka.bootstrap.as_deref().unwrap_or_default();
            let topics = kafka.topics.iter().chain(&kafka.pattern);
            topics.map(|topic| format!("kafka://{brokers}/{topic}")).collect()
        }
        Source::Custom(name) => vec![format!("source://{name}")],
    }
}
