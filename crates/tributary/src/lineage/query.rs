//! The plan of a dataset's query over tables of which only the columns are known: no row is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use tributary_lake::Lake;
use tributary_lake::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_lake::datafusion::common::TableReference;
use tributary_lake::datafusion::datasource::empty::EmptyTable;
use tributary_lake::datafusion::logical_expr::LogicalPlan;
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_spark_sql::{Missing, Read, Source, Tables, Text, choose};
use tributary_specs::TableName;

use crate::Pipeline;

/// The tables that a query may read, by their names: the columns of each.
pub(super) type Schemas = BTreeMap<TableName, SchemaRef>;

/// Why a query could not be planned.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unplanned {
    #[error(transparent)]
    Text(#[from] tributary_spark_sql::Error),
    #[error(transparent)]
    Engine(#[from] tributary_lake::datafusion::error::DataFusionError),
}

/// What a dataset computes.
pub(super) enum Query<'a> {
    /// A text over these tables.
    Text(&'a str),
    /// Code of the program's.
    Built(crate::Build),
}

/// What the pipeline's texts are read with, and the names of its own functions.
pub(super) fn context(lake: &Lake, pipeline: &Pipeline) -> (SessionContext, Vec<String>) {
    let context = lake.session();
    tributary_spark_sql::prepare(&context);
    for function in pipeline.functions() {
        context.register_udf(function.as_ref().clone());
    }
    (context, pipeline.functions().iter().map(|function| function.name().to_owned()).collect())
}

/// Plans a query over the tables of `sources`.
pub(super) async fn plan(lake: &Lake, pipeline: &Pipeline, query: Query<'_>, sources: &Schemas) -> Result<LogicalPlan, Unplanned> {
    let (context, own) = context(lake, pipeline);
    match query {
        Query::Text(text) => plan_text(lake, &context, &own, text, sources).await,
        Query::Built(build) => {
            let mut frames = BTreeMap::new();
            for (name, schema) in sources {
                let reference = TableReference::bare(name.to_string());
                context.register_table(reference.clone(), empty(schema))?;
                frames.insert(name.to_string(), context.table(reference).await?);
            }
            Ok(build(context, frames).await?.into_unoptimized_plan())
        }
    }
}

async fn plan_text(lake: &Lake, context: &SessionContext, own: &[String], text: &str, sources: &Schemas) -> Result<LogicalPlan, Unplanned> {
    let text = Text::query(text)?;
    let catalogue = &lake.options().catalogue;
    let names: Vec<TableName> = sources.keys().cloned().collect();
    let mut tables = Tables::default();
    for used in text.uses() {
        let source = match choose(catalogue, &names, &used.parts) {
            Ok(name) => {
                let schema = sources.get(name).ok_or(Missing::NoTable { suggestion: None });
                schema.map(|schema| Source::new(catalogue, name, &Read::Latest, empty(schema)))
            }
            Err(missing) => Err(missing),
        };
        tables.put(used.clone(), source);
    }
    let state = context.state();
    Ok(text.plan(context, &state, &tables, own).await?)
}

fn empty(schema: &SchemaRef) -> Arc<dyn TableProvider> {
    Arc::new(EmptyTable::new(Arc::clone(schema)))
}

/// The name of a scanned table.
pub(super) fn name_of(catalogue: &str, sources: &Schemas) -> impl Fn(&TableReference) -> Option<TableName> {
    let names: Vec<(String, TableName)> =
        sources.keys().flat_map(|name| [format!("{catalogue}.{name}"), name.to_string()].map(|called| (called, name.clone()))).collect();
    move |reference: &TableReference| names.iter().find(|(called, _)| called == reference.table()).map(|(_, name)| name.clone())
}

/// A schema with the columns of a change feed, as a table whose rows change is read.
pub(super) fn with_feed(schema: &Schema) -> SchemaRef {
    let at = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let feed = [("_change_type", DataType::Utf8), ("_commit_version", DataType::Int64), ("_commit_timestamp", at)];
    let new = feed.into_iter().filter(|(name, _)| schema.column_with_name(name).is_none());
    let new = new.map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain(new).collect::<Vec<_>>()))
}
