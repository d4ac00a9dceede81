//! The rows of a view as the engine will make them: inputs at their versions, the query over them, its columns as Delta has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tributary_lake::arrow::datatypes::Field;
use tributary_lake::datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider};
use tributary_lake::datafusion::common::Column as NamedColumn;
use tributary_lake::datafusion::common::config::ConfigNonZeroUsize;
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::datasource::{MemTable, source_as_provider};
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Volatility, cast};
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};
use tributary_lake::{KeyedProvider, Lake, Table};
use tributary_spark_sql::{Missing, Point, Read, Source, Tables, Text, choose, open};
use tributary_specs::{Column, DataType, GoldSpec, TableName};

use crate::definition::Definition;
use crate::reached::{self, Held};
use crate::waits::{self, Boundary, Streams};
use crate::{Error, Options, Result, plan, sources, ties};

/// Bytes of the memory limit for each row of a batch: full batches from 128 MiB on.
const BATCH_SHARE: usize = 16 << 10;
/// Rows of a batch at least.
const BATCH_ROWS_MIN: usize = 256;

/// Which joins the engine plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joins {
    /// Fast, but one side is held in memory.
    Hash,
    /// Slower, and spills.
    SortMerge,
}

/// The rows of a view, not yet computed.
pub(crate) struct Rows {
    /// Columns with the types of [`Self::columns`], in their order.
    pub frame: DataFrame,
    /// What the query yields, as Delta has it; all nullable.
    pub columns: Vec<Column>,
    /// Whether the query asks for the time.
    pub asks_for_time: bool,
    /// How far the event times of its streams reach, where rows of it wait for their watermark.
    pub held: Held,
}

/// An input opened at its version.
pub(crate) struct Input {
    pub table: Table,
    provider: Arc<dyn TableProvider>,
    keyed: Arc<KeyedProvider>,
}

impl Input {
    /// Rows of it that were looked up by their keys, beside those of scans.
    pub fn rows_looked_up(&self) -> u64 {
        self.keyed.rows_looked_up()
    }

    /// Bytes that were fetched for them.
    pub fn bytes_looked_up(&self) -> u64 {
        self.keyed.bytes_looked_up()
    }

    /// As the engine reads it.
    pub fn provider(&self) -> &Arc<dyn TableProvider> {
        &self.provider
    }

    /// Opens the snapshot for the engine.
    pub async fn open(table: Table) -> Result<Self> {
        let keyed = table.keyed_provider().await.map_err(Error::lake("opening", table.name()))?;
        Ok(Self { table, provider: Arc::clone(&keyed) as _, keyed })
    }

    /// Opens snapshots, in their order.
    pub async fn open_all(tables: &[Table]) -> Result<Vec<Self>> {
        let mut inputs = Vec::with_capacity(tables.len());
        for table in tables {
            inputs.push(Self::open(table.clone()).await?);
        }
        Ok(inputs)
    }
}

/// The input that a scan reads, by place.
pub(crate) fn input_of(inputs: &[Input], scan: &TableScan) -> Option<usize> {
    let provider = source_as_provider(&scan.source).ok()?;
    let is_it = |input: &Input| Arc::as_ptr(&provider).cast::<()>() == Arc::as_ptr(input.provider()).cast::<()>();
    inputs.iter().position(is_it)
}

/// Plans a view over its inputs. What a declared column, or a column of the view as it is `there`, holds whatever it is, is made in
/// that type.
pub(crate) async fn plan_rows(
    lake: &Lake,
    spec: &GoldSpec,
    there: Option<&Table>,
    inputs: &[Input],
    options: &Options,
    joins: Joins,
) -> Result<Rows> {
    let context = session(lake, spec, inputs, options, joins)?;
    let state = pinned(&context, options.as_of.unwrap_or_else(|| lake.clock().now()));
    let query = match &options.build {
        Some(build) => {
            let frames = frames(&context, spec, inputs).await?;
            build(context, frames).await.map_err(|error| Error::planned(&spec.table, error))?.into_unoptimized_plan()
        }
        None => plan_query(&context, &state, lake, spec, inputs, &own_names(options)).await?,
    };
    let asks_for_time = asks_for_time(spec, &query)?;
    reached::check(spec, inputs)?;
    let streams = Streams::of(spec, inputs);
    let query = ties::broken(query, &streams).map_err(|error| Error::planned(&spec.table, error))?;
    let (query, held) = waited(lake, spec, there, &streams, query).await?;
    let kept: Vec<&Column> = spec.schema.iter().chain(there.map(Table::columns).into_iter().flatten()).collect();
    let (frame, columns) = typed(&spec.table, DataFrame::new(state, query), &kept)?;
    Ok(Rows { frame, columns, asks_for_time, held })
}

/// The plan in which rows of two streams without a partner wait for the watermark.
async fn waited(
    lake: &Lake,
    spec: &GoldSpec,
    there: Option<&Table>,
    streams: &Streams<'_>,
    query: LogicalPlan,
) -> Result<(LogicalPlan, Held)> {
    if !streams.wait_in(&query) {
        return Ok((query, Held::default()));
    }
    let held = reached::held(lake, spec, streams.inputs()).await?;
    let recorded = match there {
        Some(view) => Definition::of_table(view).await.map_err(Error::lake("reading", &spec.table))?,
        None => None,
    };
    let from = recorded.and_then(|recorded| recorded.held.watermark(spec));
    let boundary = Boundary { from, to: held.watermark(spec) };
    match streams.waiting(query, boundary) {
        Ok(query) => Ok((query, held)),
        Err(waits::Refused::Join(join)) => {
            Err(Error::Sql { table: spec.table.clone(), source: Box::new(sources::refused(&spec.query, &join)) })
        }
        Err(waits::Refused::Engine(error)) => Err(Error::planned(&spec.table, error)),
    }
}

/// A context in which the inputs are `catalogue.schema.table` and names are compared as they are.
fn session(lake: &Lake, spec: &GoldSpec, inputs: &[Input], options: &Options, joins: Joins) -> Result<SessionContext> {
    let refused = |error| Error::planned(&spec.table, error);
    let context = lake.session();
    let catalogue = lake.options().catalogue.clone();
    let catalog = MemoryCatalogProvider::new();
    let mut schemas: BTreeMap<&str, Arc<MemorySchemaProvider>> = BTreeMap::new();
    for input in inputs {
        let TableName { schema, name } = input.table.name();
        let provider = schemas.entry(schema).or_default();
        provider.register_table(name.clone(), Arc::clone(&input.provider)).map_err(refused)?;
    }
    for (schema, provider) in schemas {
        catalog.register_schema(schema, provider).map_err(refused)?;
    }
    context.register_catalog(&catalogue, Arc::new(catalog));
    {
        let state = context.state_ref();
        let mut state = state.write();
        let settings = state.config_mut().options_mut();
        settings.catalog.default_catalog = catalogue;
        settings.optimizer.prefer_hash_join = joins == Joins::Hash;
        // Under a small limit one batch, or what a sort keeps back for merging its runs, must not be all an operator may hold.
        let memory = lake.options().memory_limit;
        let rows = settings.execution.batch_size.get().min((memory / BATCH_SHARE).max(BATCH_ROWS_MIN));
        settings.execution.batch_size = ConfigNonZeroUsize::try_new(rows).map_err(refused)?;
        settings.execution.sort_spill_reservation_bytes = settings.execution.sort_spill_reservation_bytes.min(memory / 64);
    }
    tributary_spark_sql::prepare(&context);
    for function in &options.functions {
        context.register_udf(function.as_ref().clone());
    }
    Ok(context)
}

/// The context's state, in which it is `now` for every function that asks.
fn pinned(context: &SessionContext, now: DateTime<Utc>) -> SessionState {
    let mut state = context.state();
    state.execution_props_mut().query_execution_start_time = Some(now);
    state
}

/// The inputs of a view built in code, by the names its spec gives them.
async fn frames(context: &SessionContext, spec: &GoldSpec, inputs: &[Input]) -> Result<BTreeMap<String, DataFrame>> {
    let mut frames = BTreeMap::new();
    for (source, input) in spec.sources.iter().zip(inputs) {
        let frame = context.read_table(Arc::clone(&input.provider)).map_err(|error| Error::planned(&spec.table, error))?;
        frames.insert(source.to_string(), frame);
    }
    Ok(frames)
}

async fn plan_query(
    context: &SessionContext,
    state: &SessionState,
    lake: &Lake,
    spec: &GoldSpec,
    inputs: &[Input],
    own: &[String],
) -> Result<LogicalPlan> {
    let refused = |source| Error::Sql { table: spec.table.clone(), source: Box::new(source) };
    let text = Text::query(&spec.query).map_err(refused)?;
    let catalogue = &lake.options().catalogue;
    let names: Vec<TableName> = inputs.iter().map(|input| input.table.name().clone()).collect();
    let mut tables = Tables::default();
    for used in text.uses() {
        let found = choose(catalogue, &names, &used.parts).map(|name| (name, inputs.iter().find(|input| input.table.name() == name)));
        let source = match found {
            Ok((name, Some(input))) if used.read == Read::Latest => {
                Ok(Source::new(catalogue, name, &used.read, Arc::clone(&input.provider)))
            }
            Ok((name, Some(input))) => {
                Ok(changes(catalogue, &input.table, &used.read).await.map_err(Error::lake("reading the changes of", name))?)
            }
            Ok((_, None)) => Err(Missing::NoTable { suggestion: None }),
            Err(missing) => Err(missing),
        };
        tables.put(used.clone(), source);
    }
    text.plan(context, state, &tables, own).await.map_err(refused)
}

/// The changes of a table that a view reads, as far as there are any yet.
async fn changes(catalogue: &str, table: &Table, read: &Read) -> tributary_lake::Result<Source> {
    let latest = table.version();
    let read = match read {
        Read::Changes(Point::Version(from), _) if *from > latest => {
            let none = MemTable::try_new(table.change_schema(), vec![vec![]])?;
            return Ok(Source::new(catalogue, table.name(), read, Arc::new(none)));
        }
        Read::Changes(from, Some(Point::Version(to))) => Read::Changes(*from, Some(Point::Version(latest.min(*to)))),
        read => read.clone(),
    };
    open(table.clone(), &read).await
}

/// Names of the functions that the program brought.
pub(crate) fn own_names(options: &Options) -> Vec<String> {
    options.functions.iter().map(|function| function.name().to_owned()).collect()
}

/// Whether any function of the plan answers by the time of the run; one that answers differently each time is refused.
fn asks_for_time(spec: &GoldSpec, query: &LogicalPlan) -> Result<bool> {
    let (mut stable, mut volatile) = (false, None);
    let walked = query.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::ScalarFunction(call) = part {
                    match call.func.signature().volatility {
                        Volatility::Immutable => {}
                        Volatility::Stable => stable = true,
                        Volatility::Volatile => volatile = Some(call.name().to_owned()),
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(|error| Error::planned(&spec.table, error))?;
    match volatile {
        Some(function) => Err(Error::Volatile { table: spec.table.clone(), function }),
        None => Ok(stable),
    }
}

/// The rows with the types of a Delta table, and the columns they then are; those that are `kept` in the wider type that they have.
fn typed(table: &TableName, frame: DataFrame, kept: &[&Column]) -> Result<(DataFrame, Vec<Column>)> {
    let names: Vec<&str> = frame.schema().fields().iter().map(|field| field.name().as_str()).collect();
    if let Some(reason) = plan::name_problem(&names) {
        return Err(Error::Column { table: table.clone(), reason });
    }
    let mut columns = Vec::new();
    let mut selected = Vec::new();
    for (qualifier, field) in frame.schema().iter() {
        let column = Expr::Column(NamedColumn::new(qualifier.cloned(), field.name()));
        let data_type = DataType::for_result(field.name(), field.data_type())
            .map_err(|error| Error::Column { table: table.clone(), reason: error.to_string() })?;
        let wider = kept.iter().find(|column| column.name == *field.name());
        let wider = wider.map(|column| &column.data_type).filter(|wider| !wider.same_values(&data_type) && wider.holds(&data_type));
        let data_type = wider.cloned().unwrap_or(data_type);
        let target = data_type.to_arrow();
        let same = same_but_for_nulls(field, &target);
        selected.push(if same { column } else { cast(column, target) }.alias(field.name()));
        columns.push(Column::new(field.name(), data_type));
    }
    let frame = frame.select(selected).map_err(|error| Error::planned(table, error))?;
    Ok((frame, columns))
}

fn same_but_for_nulls(field: &Field, target: &tributary_lake::arrow::datatypes::DataType) -> bool {
    field.data_type().equals_datatype(target)
}
