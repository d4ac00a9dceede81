//! The dataset's query over its stream, with what each change is riding along.
//!
//! ```text
//! source rows + riders ─▶ query ─▶ output columns + riders ─▶ judge (see `judge`) ─▶ events
//! ```
//!
//! Keys, sequence, conditions and expectations see the output columns of the query, and behind them the columns of the source
//! row under their own names, so that a query need not select what only decides.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use tributary_lake::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use tributary_lake::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tributary_lake::datafusion::catalog::streaming::StreamingTable;
use tributary_lake::datafusion::catalog::{MemorySchemaProvider, TableProvider};
use tributary_lake::datafusion::common::{Column as ColumnRef, DFSchema, TableReference};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use tributary_lake::datafusion::logical_expr::simplify::SimplifyContext;
use tributary_lake::datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use tributary_lake::datafusion::optimizer::simplify_expressions::ExprSimplifier;
use tributary_lake::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tributary_lake::datafusion::physical_plan::streaming::PartitionStream;
use tributary_lake::datafusion::physical_plan::{PhysicalExpr, execute_stream};
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::{Lake, Table};
use tributary_spark_sql::{self as sql, Missing, Tables, Text};
use tributary_specs::{Column, ColumnSelection, FILE_COLUMNS, MergePolicy, SilverSpec, TableName};

use crate::before_images::{self, BEFORE};
use crate::carry::{Origin, RIDER, Unfolds, is_rider, origins, unfolds, with_riders};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::source::{FEED, Source, TECHNICAL};

/// The rider that numbers the source rows.
const ROW: &str = "__rider_#row";

/// A planned query.
pub(crate) struct Selection {
    /// Output columns that the table is to hold, in order.
    pub columns: Vec<Column>,
    /// What each of them is made of.
    pub origins: Vec<Origin>,
    /// Where each stands among the outputs of the plan.
    places: Vec<usize>,
    /// What expressions may name: outputs, then source columns that no output hides; and where each stands.
    scope: Scope,
    /// Names of the functions that the program brought.
    own: Vec<String>,
    plan: LogicalPlan,
    /// Whether several rows may come of one.
    pub unfolds: bool,
    state: SessionState,
    slot: Arc<Slot>,
    table: TableName,
}

struct Scope {
    schema: SchemaRef,
    qualified: DFSchema,
    places: Vec<usize>,
    /// Source columns behind each column of the scope.
    origins: Vec<Origin>,
}

/// An expression over the scope.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    expression: Arc<dyn PhysicalExpr>,
    /// Its type.
    pub data_type: DataType,
    /// The column it is, where it is nothing else.
    pub column: Option<String>,
    /// Source columns it is computed from.
    pub reads: BTreeSet<String>,
}

impl Compiled {
    /// Its values for a batch of the scope.
    pub fn values(&self, scope: &RecordBatch) -> QueryResult<ArrayRef> {
        self.expression.evaluate(scope)?.into_array(scope.num_rows())
    }
}

/// One batch of outputs.
pub(crate) struct Selected {
    /// The output columns.
    pub output: RecordBatch,
    /// What expressions see.
    pub scope: RecordBatch,
    /// Riders by the name of the source column.
    riders: BTreeMap<String, ArrayRef>,
    /// Numbers of the source rows.
    pub rows: Int64Array,
}

impl Selected {
    /// What the source row has in a column that rides along.
    pub fn rider(&self, column: &str) -> Option<&ArrayRef> {
        self.riders.get(column)
    }
}

impl Selection {
    /// Plans the query of `spec`.
    ///
    /// # Errors
    /// When it cannot be planned over the sources, or is not one row out for one row in.
    pub async fn plan(lake: &Lake, spec: &SilverSpec, options: &Options, source: &Source, lookups: &[Table]) -> Result<Self> {
        let in_clause = |clause: &str, error| Error::Sql { table: spec.table.clone(), clause: clause.to_owned(), source: Box::new(error) };
        let session = session(lake, options);
        let slot = Arc::new(Slot::new(source, &mentioned(spec, source)));
        let tables = register(&session, lake, source, lookups, &slot).await.map_err(|error| in_clause("sources", error))?;
        let own: Vec<String> = options.functions.iter().map(|function| function.name().to_owned()).collect();
        let plan = match (&options.build, &spec.select) {
            (Some(build), _) => {
                let mut inputs = BTreeMap::new();
                for table in std::iter::once(&source.table).chain(lookups) {
                    let frame = session.table(reference(table.name())).await.map_err(|error| in_clause("sources", error))?;
                    inputs.insert(table.name().to_string(), frame);
                }
                let built = build(session.clone(), inputs).await.map_err(|error| in_clause("build", error))?;
                built.into_unoptimized_plan()
            }
            (None, Some(select)) => {
                let in_text = |source| Error::text(&spec.table, "select", source);
                let text = Text::query(select).map_err(in_text)?;
                plan_query(&session, lake, text, &tables, &own).await.map_err(in_text)?
            }
            (None, None) => all_columns(&session, source).await.map_err(|error| in_clause("sources", error))?,
        };
        let may = if spec.policy == MergePolicy::Append { Unfolds::Allowed } else { Unfolds::Refused };
        let plan = with_riders(plan, may).map_err(|error| in_clause("select", error))?;
        let mut state = session.state();
        state.execution_props_mut().query_execution_start_time = Some(options.as_of.unwrap_or_else(|| lake.clock().now()));
        // code takes a table as it is, where a text says which columns it means
        let left_out = options.build.as_ref().map(|_| columns_of_the_engine(source, lookups));
        Self::of_plan(spec, source, own, plan, state, slot, left_out)
    }

    fn of_plan(
        spec: &SilverSpec,
        source: &Source,
        own: Vec<String>,
        plan: LogicalPlan,
        state: SessionState,
        slot: Arc<Slot>,
        left_out: Option<BTreeSet<String>>,
    ) -> Result<Self> {
        let in_select = |error| Error::Sql { table: spec.table.clone(), clause: "select".to_owned(), source: Box::new(error) };
        let origins = origins(&plan).map_err(in_select)?;
        let outputs = outputs(&plan, source, left_out);
        let scope = Scope::new(&plan, &outputs, &origins).map_err(in_select)?;
        let chosen = choose(spec, source, &plan, &outputs)?;
        let mut columns = Vec::with_capacity(chosen.len());
        for place in &chosen {
            let field = plan.schema().field(*place);
            let data_type = tributary_specs::DataType::for_result(field.name(), field.data_type());
            columns.push(Column::new(field.name(), data_type.map_err(|error| Error::spec(&spec.table, error.to_string()))?));
        }
        check_names(&spec.table, &columns)?;
        let origins = chosen.iter().map(|place| origins[*place].clone()).collect();
        let unfolds = unfolds(&plan);
        Ok(Self { columns, origins, places: chosen, scope, own, plan, unfolds, state, slot, table: spec.table.clone() })
    }

    /// Plans an expression of the spec.
    ///
    /// # Errors
    /// When it names a column that neither the query nor the source has.
    pub fn compile(&self, clause: &str, sql: &str) -> Result<Compiled> {
        let in_clause = |error| Error::Sql { table: self.table.clone(), clause: clause.to_owned(), source: Box::new(error) };
        let expression = tributary_spark_sql::expression(&self.state, sql, Some("source"), &self.scope.qualified, &self.own);
        let expression = expression.map_err(|source| Error::text(&self.table, clause, source))?;
        let mut reads = BTreeSet::new();
        for column in expression.column_refs() {
            let at = self.scope.qualified.index_of_column(column).map_err(in_clause)?;
            reads.extend(self.scope.origins[at].columns.iter().cloned());
        }
        let column = match &expression {
            Expr::Column(column) => Some(column.name.clone()),
            _ => None,
        };
        let physical = self.physical(expression).map_err(in_clause)?;
        let data_type = physical.data_type(&self.scope.schema).map_err(in_clause)?;
        Ok(Compiled { expression: physical, data_type, column, reads })
    }

    /// An expression over the scope, to be evaluated. Some functions are only a way to write another: those are simplified first.
    fn physical(&self, expression: Expr) -> QueryResult<Arc<dyn PhysicalExpr>> {
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(self.scope.qualified.clone()))
            .with_config_options(Arc::clone(self.state.config_options()))
            .with_query_execution_start_time(self.state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let expression = simplifier.simplify(simplifier.coerce(expression, &self.scope.qualified)?)?;
        self.state.create_physical_expr(expression, &self.scope.qualified)
    }

    /// Whether a column name is one of the table's, in any case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Source rows that the last [`Self::run`] has read so far.
    pub fn rows_read(&self) -> u64 {
        self.slot.read.load(Ordering::Relaxed)
    }

    /// Source rows that all runs have read together, each as often as it was read.
    pub fn rows_read_in_all(&self) -> u64 {
        self.slot.read_before.load(Ordering::Relaxed) + self.rows_read()
    }

    /// Runs the query over rows of the source.
    ///
    /// # Errors
    /// When it cannot be planned physically.
    pub async fn run(&self, rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        self.slot.fill(rows);
        let fail = |error| Error::query(&self.table, error);
        let plan = self.state.create_physical_plan(&self.plan).await.map_err(fail)?;
        execute_stream(plan, self.state.task_ctx()).map_err(fail)
    }

    /// Takes a batch of [`Self::run`] apart.
    ///
    /// # Errors
    /// When its columns are not those of the plan.
    pub fn take_apart(&self, batch: &RecordBatch) -> Result<Selected> {
        let fail = |error| Error::kernel(&self.table, error);
        let output = batch.project(&self.places).map_err(fail)?;
        let scope = batch.project(&self.scope.places).map_err(fail)?;
        let scope = RecordBatch::try_new_with_options(
            Arc::clone(&self.scope.schema),
            scope.columns().to_vec(),
            &tributary_lake::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
        )
        .map_err(fail)?;
        let schema = batch.schema();
        let riders = schema.fields().iter().zip(batch.columns());
        let riders = riders.filter_map(|(field, array)| Some((field.name().strip_prefix(RIDER)?.to_owned(), Arc::clone(array)))).collect();
        let mut selected = Selected { output, scope, riders, rows: Int64Array::from(Vec::<i64>::new()) };
        if let Some(rows) = selected.riders.remove(&ROW[RIDER.len()..]) {
            selected.rows =
                tributary_lake::arrow::array::AsArray::as_primitive::<tributary_lake::arrow::datatypes::Int64Type>(&rows).clone();
        }
        Ok(selected)
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("table", &self.table).field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Scope {
    fn new(plan: &LogicalPlan, outputs: &[usize], origins: &[Origin]) -> QueryResult<Self> {
        let mut fields: Vec<Field> = Vec::new();
        let mut places = Vec::new();
        for (at, field) in plan.schema().fields().iter().enumerate() {
            let name = match field.name().strip_prefix(RIDER) {
                Some(_) if field.name() == ROW => continue,
                Some(name) => name,
                None if outputs.contains(&at) => field.name(),
                None => continue,
            };
            if !fields.iter().any(|other| other.name().eq_ignore_ascii_case(name)) {
                fields.push(Field::new(name, field.data_type().clone(), true));
                places.push(at);
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let qualified = DFSchema::try_from_qualified_schema(TableReference::bare("source"), &schema)?;
        let of_rider = |origin: &Origin| Origin {
            columns: origin.columns.iter().map(|column| column.strip_prefix(RIDER).unwrap_or(column).to_owned()).collect(),
            same_as: None,
        };
        let origins = places.iter().map(|place| of_rider(&origins[*place])).collect();
        Ok(Self { schema, qualified, places, origins })
    }
}

/// Output columns of the plan. Code may hand all columns of its inputs on: those of the engine, which are to be left out then, and every
/// technical column of the source, which no table is meant to hold.
fn outputs(plan: &LogicalPlan, source: &Source, left_out: Option<BTreeSet<String>>) -> Vec<usize> {
    let fields = plan.schema().fields();
    let outputs = (0..fields.len()).filter(|at| !is_rider(fields[*at].name()));
    let Some(mut left_out) = left_out else { return outputs.collect() };
    let schema = source.schema();
    let technical = TECHNICAL.iter().chain(&FEED).chain(&FILE_COLUMNS).filter(|name| schema.column_with_name(name).is_some());
    let technical: BTreeSet<String> = technical.map(|name| (*name).to_owned()).collect();
    if technical.iter().all(|name| fields.iter().any(|field| field.name() == name)) {
        left_out.extend(technical);
    }
    outputs.filter(|at| !left_out.contains(fields[*at].name())).collect()
}

/// Columns of the engine in the tables that code is handed.
fn columns_of_the_engine(source: &Source, lookups: &[Table]) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    for schema in lookups.iter().map(Table::schema).chain([source.schema()]) {
        columns.extend(schema.fields().iter().map(|field| field.name().clone()).filter(|name| name.starts_with("__")));
    }
    columns
}

/// The outputs that the spec's column selection keeps. It may leave out what the source has and no table is meant to hold.
fn choose(spec: &SilverSpec, source: &Source, plan: &LogicalPlan, outputs: &[usize]) -> Result<Vec<usize>> {
    let name = |at: usize| plan.schema().field(at).name();
    let missing = |clause, column: &String| Error::NoColumn {
        table: spec.table.clone(),
        clause,
        column: column.clone(),
        suggestion: tributary_fault::nearest(column, outputs.iter().map(|at| name(*at).as_str())).map(Into::into),
    };
    let find = |column: &String| {
        let found = outputs.iter().copied().find(|at| name(*at).eq_ignore_ascii_case(column));
        found.ok_or_else(|| missing("columns", column))
    };
    let chosen = match &spec.columns {
        ColumnSelection::All => outputs.to_vec(),
        ColumnSelection::Only(columns) => columns.iter().map(find).collect::<Result<_>>()?,
        ColumnSelection::Except(columns) => {
            let schema = source.schema();
            let fields = plan.schema().fields().iter().chain(schema.fields());
            let there: BTreeSet<String> = fields.map(|field| field.name().to_lowercase()).collect();
            if let Some(column) = columns.iter().find(|column| !there.contains(&column.to_lowercase())) {
                return Err(missing("columns", column));
            }
            let left_out = |at: &usize| columns.iter().any(|column| column.eq_ignore_ascii_case(name(*at)));
            outputs.iter().copied().filter(|at| !left_out(at)).collect()
        }
    };
    match spec.keys.iter().find(|key| !chosen.iter().any(|at| name(*at).eq_ignore_ascii_case(key))) {
        Some(key) if outputs.iter().any(|at| name(*at).eq_ignore_ascii_case(key)) => {
            Err(Error::spec(&spec.table, format!("key column `{key}` must stay in the table, but columns leaves it out")))
        }
        Some(key) => Err(missing("keys", key)),
        None => Ok(chosen),
    }
}

fn check_names(table: &TableName, columns: &[Column]) -> Result<()> {
    for (at, column) in columns.iter().enumerate() {
        let name = &column.name;
        if name.starts_with("__") {
            return Err(Error::spec(
                table,
                format!("column `{name}` begins with two underscores, which are kept for columns of the engine"),
            ));
        }
        if FEED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            return Err(Error::spec(table, format!("column `{name}` has the name of a column of the change feed: give it another")));
        }
        if columns[..at].iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
            return Err(Error::spec(table, format!("the query yields column `{name}` twice")));
        }
    }
    Ok(())
}

fn session(lake: &Lake, options: &Options) -> SessionContext {
    let session = lake.session();
    tributary_spark_sql::prepare(&session);
    options.functions.iter().for_each(|function| session.register_udf(function.as_ref().clone()));
    session
}

/// The session's state, in which it is the clock's time for every function that asks.
fn pinned(lake: &Lake, session: &SessionContext) -> SessionState {
    let mut state = session.state();
    state.execution_props_mut().query_execution_start_time = Some(lake.clock().now());
    state
}

fn reference(table: &TableName) -> TableReference {
    TableReference::partial(table.schema.as_str(), table.name.as_str())
}

/// A source, and what the session reads of it.
type Provided = (TableName, Arc<dyn TableProvider>);

/// Registers the sources under `schema.table` and `catalogue.schema.table`, for queries built in code; gives them for texts.
async fn register(
    session: &SessionContext,
    lake: &Lake,
    source: &Source,
    lookups: &[Table],
    slot: &Arc<Slot>,
) -> QueryResult<Vec<Provided>> {
    let mut providers: Vec<Provided> = vec![(source.name().clone(), slot.provider()?)];
    for table in lookups {
        providers.push((table.name().clone(), table.provider().await.map_err(|error| DataFusionError::External(Box::new(error)))?));
    }
    let default = session.state().config_options().catalog.default_catalog.clone();
    let Some(catalog) = session.catalog(&default) else { return Err(DataFusionError::Plan("the session has no catalogue".to_owned())) };
    for (table, provider) in &providers {
        if catalog.schema(&table.schema).is_none() {
            catalog.register_schema(&table.schema, Arc::new(MemorySchemaProvider::new()))?;
        }
        session.register_table(reference(table), Arc::clone(provider))?;
    }
    if lake.options().catalogue != default {
        session.register_catalog(&lake.options().catalogue, catalog);
    }
    Ok(providers)
}

/// Plans the dataset's select over its sources.
async fn plan_query(
    session: &SessionContext,
    lake: &Lake,
    text: Text,
    provided: &[Provided],
    own: &[String],
) -> Result<LogicalPlan, tributary_spark_sql::Error> {
    let catalogue = &lake.options().catalogue;
    let names: Vec<TableName> = provided.iter().map(|(name, _)| name.clone()).collect();
    let mut tables = Tables::default();
    for used in text.uses() {
        let found = tributary_spark_sql::choose(catalogue, &names, &used.parts).map(|name| {
            let provider = provided.iter().find(|(of, _)| of == name).map(|(_, provider)| Arc::clone(provider));
            let source = |provider| sql::Source::new(catalogue, name, &used.read, provider).hiding(is_rider).out_of_stars(is_reserved);
            provider.map(source)
        });
        tables.put(used.clone(), found.and_then(|source| source.ok_or(Missing::NoTable { suggestion: None })));
    }
    text.plan(session, &pinned(lake, session), &tables, own).await
}

/// Whether no table can have a column that is called so.
fn is_reserved(name: &str) -> bool {
    name.starts_with("__") || FEED.contains(&name)
}

async fn all_columns(session: &SessionContext, source: &Source) -> QueryResult<LogicalPlan> {
    let scan = session.table(reference(source.name())).await?.into_unoptimized_plan();
    let qualifier = scan.schema().qualified_field(0).0.cloned();
    let column = |name: String| Expr::Column(ColumnRef::new(qualifier.clone(), name));
    let columns = source.business_columns().into_iter().map(column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(scan))?))
}

/// Source columns that must ride along: what tells what a change is, and what the spec's expressions may name.
fn mentioned(spec: &SilverSpec, source: &Source) -> BTreeSet<String> {
    const ALWAYS: [&str; 9] =
        ["_op", "_position", "_unavailable", "_key_changed_from", "_key_changed_to", "_file", "_line", "_change_type", "_commit_version"];
    let texts = spec
        .sequence_by
        .iter()
        .chain(&spec.deletes.apply_as_delete_when)
        .chain(&spec.deletes.apply_as_truncate_when)
        .chain(&spec.update_when)
        .chain(&spec.delete_when)
        .chain(&spec.insert_when)
        .chain(spec.expectations.iter().map(|expectation| &expectation.expression));
    let texts: Vec<String> = texts.map(|text| text.to_lowercase()).collect();
    let schema = source.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let rides = |name: &str| ALWAYS.contains(&name) || (name == BEFORE && before_images::are_declared(spec));
    names.filter(|name| rides(name) || texts.iter().any(|text| text.contains(&name.to_lowercase()))).collect()
}

/// The source as a table of the session: reads, once, the stream it was filled with.
struct Slot {
    schema: SchemaRef,
    riders: Vec<usize>,
    rows: Mutex<Option<SendableRecordBatchStream>>,
    /// Rows read since it was filled.
    read: Arc<AtomicU64>,
    /// Rows read before that.
    read_before: AtomicU64,
}

impl Slot {
    fn new(source: &Source, riding: &BTreeSet<String>) -> Self {
        let schema = source.schema();
        let riders: Vec<usize> = (0..schema.fields().len()).filter(|at| riding.contains(schema.field(*at).name())).collect();
        let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        fields.extend(
            riders.iter().map(|at| schema.field(*at).clone().with_name(format!("{RIDER}{}", schema.field(*at).name())).with_nullable(true)),
        );
        fields.push(Field::new(ROW, DataType::Int64, true));
        Self { schema: Arc::new(Schema::new(fields)), riders, rows: Mutex::new(None), read: Arc::default(), read_before: AtomicU64::new(0) }
    }

    fn fill(&self, rows: SendableRecordBatchStream) {
        self.read_before.fetch_add(self.read.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
    }

    fn provider(self: &Arc<Self>) -> QueryResult<Arc<dyn TableProvider>> {
        let partition: Arc<dyn PartitionStream> = Arc::clone(self) as Arc<dyn PartitionStream>;
        Ok(Arc::new(StreamingTable::try_new(Arc::clone(&self.schema), vec![partition])?))
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for Slot {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (schema, riders) = (Arc::clone(&self.schema), self.riders.clone());
        let read = Arc::clone(&self.read);
        let rows = futures::stream::iter(rows).flatten().map(move |batch| {
            let batch = batch?;
            let count = batch.num_rows() as i64;
            let seen = read.fetch_add(count as u64, Ordering::Relaxed) as i64;
            let mut columns = batch.columns().to_vec();
            columns.extend(riders.iter().map(|at| Arc::clone(batch.column(*at))));
            columns.push(Arc::new(Int64Array::from_iter_values(seen..seen + count)));
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(DataFusionError::from)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
