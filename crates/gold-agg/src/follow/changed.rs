//! Which rows of a plan may have come, gone or changed, told from the changed rows of its inputs.
//!
//! Every row of the plan whose count differs between the recorded versions and the newest is among them, in the columns that are
//! told ([`super::shape`]); the others are null. There may be more: they cost reading and change nothing.
//!
//! ```text
//! input           its changed rows
//! projection      of changed rows, what is told
//! filter          of changed rows, by the conditions that are told
//! join            changed ⋈ all, all ⋈ changed, changed ⋈ changed; where a side is kept without partner: its changed rows and
//!                 those that meet a changed one
//! union           of all branches
//! group, window   the groups of changed rows
//! ```
//!
//! "All" are the rows at the newest version: a row that is there no more is a changed one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::arrow::compute::concat_batches;
use tributary_lake::arrow::datatypes::{DataType, TimeUnit};
use tributary_lake::datafusion::common::{DFSchema, JoinType, ScalarValue};
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, Filter, Join, LogicalPlan, Projection, SubqueryAlias, TableScan, Union, lit,
};
use tributary_lake::datafusion::physical_plan::execute_stream;
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{Keys, Lake};

use super::bounded::joined;
use super::naming::can_name_rows;
use super::rows::{Changed, Gathered, column, count, gather, named, plan_of, untold};
use super::shape::{Conditions, Moved, referenced, shape_of, told_conditions};
use super::{Stop, too_much};
use crate::scanned::Scanned;
use crate::waits::{Linear, Passed, linear};

/// Finds changed rows of plans.
pub(crate) struct Changes<'a> {
    pub state: &'a SessionState,
    pub moved: Moved<'a>,
    /// Changed rows of inputs, by place among them.
    pub of_inputs: &'a BTreeMap<usize, Changed>,
    /// Rows in memory of one step, in bytes, at most.
    pub bytes_max: usize,
    pub lake: &'a Lake,
    /// What was read so far.
    pub scanned: Mutex<Scanned>,
}

impl Changes<'_> {
    /// Runs a plan into memory.
    ///
    /// # Errors
    /// [`Stop::Full`] when it comes to too much.
    pub async fn collect(&self, plan: LogicalPlan) -> Result<Vec<RecordBatch>, Stop> {
        self.collect_frame(DataFrame::new(self.state.clone(), plan)).await
    }

    /// The same of a frame.
    ///
    /// # Errors
    /// As [`Self::collect`].
    pub async fn collect_frame(&self, frame: DataFrame) -> Result<Vec<RecordBatch>, Stop> {
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let gathered = gather(execute_stream(Arc::clone(&plan), context)?, self.bytes_max).await?;
        let mut scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
        scanned.take_in(self.lake, self.moved.inputs, plan.as_ref());
        match gathered {
            Gathered::Rows(batches) => Ok(batches),
            Gathered::TooMany => Err(too_much()),
        }
    }

    /// The changed rows of a plan, as a plan with its columns; none where nothing that it reads has changed.
    pub fn of<'b>(&'b self, plan: &'b LogicalPlan) -> BoxFuture<'b, Result<Option<LogicalPlan>, Stop>> {
        async move {
            if !self.moved.moves(plan) {
                return Ok(None);
            }
            match plan {
                LogicalPlan::TableScan(scan) => {
                    let changed = self.moved.input_of(scan).and_then(|input| self.of_inputs.get(&input));
                    let changed: Vec<RecordBatch> = changed.iter().flat_map(|changed| changed.all()).cloned().collect();
                    of_scan(scan, plan.schema(), &changed)
                }
                LogicalPlan::SubqueryAlias(alias) => {
                    let Some(changed) = self.of(&alias.input).await? else { return Ok(None) };
                    Ok(Some(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(changed), alias.alias.clone())?)))
                }
                LogicalPlan::Sort(sort) => self.of(&sort.input).await,
                LogicalPlan::Filter(filter) => self.of_filter(filter).await,
                LogicalPlan::Projection(projection) => self.told(plan, &projection.input, &projection.expr, false).await,
                LogicalPlan::Aggregate(aggregate) => self.told(plan, &aggregate.input, &aggregate.group_expr, true).await,
                LogicalPlan::Window(window) => {
                    let columns: Vec<Expr> =
                        (0..window.input.schema().fields().len()).map(|place| column(window.input.schema(), place)).collect();
                    self.told(plan, &window.input, &columns, true).await
                }
                LogicalPlan::Union(union) => self.of_union(plan, union).await,
                LogicalPlan::Join(join) => self.of_join(plan, join).await,
                other => Err(Stop::Full(format!("{} is not followed", other.display()))),
            }
        }
        .boxed()
    }

    /// The columns of `plan` that are told, computed by its first expressions over changed rows of its input.
    async fn told(&self, plan: &LogicalPlan, input: &LogicalPlan, expressions: &[Expr], once: bool) -> Result<Option<LogicalPlan>, Stop> {
        let Some(changed) = self.of(input).await? else { return Ok(None) };
        let shape = shape_of(plan, &self.moved).map_err(Stop::Full)?;
        let schema = plan.schema();
        let mut columns = Vec::new();
        for place in 0..schema.fields().len() {
            columns.push(match expressions.get(place).filter(|_| shape.told.contains(&place)) {
                Some(expression) => named(expression.clone(), schema, place),
                None => untold(schema, place)?,
            });
        }
        let told = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(changed))?);
        Ok(Some(if once { LogicalPlan::Distinct(Distinct::All(Arc::new(told))) } else { told }))
    }

    async fn of_filter(&self, filter: &Filter) -> Result<Option<LogicalPlan>, Stop> {
        if let Some(join) = joined(filter) {
            return self.of(&LogicalPlan::Join(join)).await;
        }
        let passed = self.passed(filter).await?;
        let changed = match self.of(&filter.input).await? {
            Some(changed) => self.filtered(filter, changed)?,
            None => return self.kept(filter.input.schema(), &passed),
        };
        if passed.is_empty() {
            return Ok(Some(changed));
        }
        let rows = [self.collect(changed).await?, passed].concat();
        self.kept(filter.input.schema(), &rows)
    }

    fn filtered(&self, filter: &Filter, mut changed: LogicalPlan) -> Result<LogicalPlan, Stop> {
        let shape = shape_of(&filter.input, &self.moved).map_err(Stop::Full)?;
        for condition in split_conjunction(&filter.predicate) {
            if referenced(condition, filter.input.schema()).map_err(Stop::Full)?.is_subset(&shape.told) {
                changed = LogicalPlan::Filter(Filter::try_new(condition.clone(), Arc::new(changed))?);
            }
        }
        Ok(changed)
    }

    /// Rows of the sides of a join that its filter lets pass alone, or no more, because the watermark moved: the other columns null.
    async fn passed(&self, filter: &Filter) -> Result<Vec<RecordBatch>, Stop> {
        let mut rows = Vec::new();
        for Passed { time, boundary } in Passed::all_in(&filter.predicate) {
            let Some((first, behind)) = boundary.went_over() else { continue };
            let LogicalPlan::Join(join) = filter.input.as_ref() else {
                return Err(Stop::Full("what waits for the watermark is not told by itself".to_owned()));
            };
            let (left, right) = (join.left.schema(), join.right.schema());
            let is_left = time.column_refs().into_iter().all(|column| left.has_column(column));
            let (side, at) = if is_left { (&join.left, 0) } else { (&join.right, left.fields().len()) };
            let places: Vec<usize> = (0..if is_left { left } else { right }.fields().len()).collect();
            let within = times_within(&time, side.schema(), first, behind)?;
            let of_side = LogicalPlan::Filter(Filter::try_new(within, Arc::clone(side))?);
            let of_side = self.collect(of_side).await?;
            rows.extend(self.alone(join.schema.as_ref(), at, side.schema(), &of_side, &places).await?);
        }
        Ok(rows)
    }

    async fn of_union(&self, plan: &LogicalPlan, union: &Union) -> Result<Option<LogicalPlan>, Stop> {
        let mut rows = Vec::new();
        for input in &union.inputs {
            if let Some(changed) = self.of(input).await? {
                rows.extend(self.collect(changed).await?);
            }
        }
        self.kept(plan.schema(), &rows)
    }

    pub(super) fn kept(&self, schema: &DFSchema, rows: &[RecordBatch]) -> Result<Option<LogicalPlan>, Stop> {
        if rows.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() > self.bytes_max {
            return Err(too_much());
        }
        Ok(if count(rows) == 0 { None } else { Some(plan_of(schema, rows)?) })
    }

    /// The changed rows of a side of a join, each once.
    async fn of_side(&self, side: &LogicalPlan) -> Result<Option<LogicalPlan>, Stop> {
        let Some(changed) = self.of(side).await? else { return Ok(None) };
        let rows = self.collect(LogicalPlan::Distinct(Distinct::All(Arc::new(changed)))).await?;
        self.kept(side.schema(), &rows)
    }

    async fn of_join(&self, plan: &LogicalPlan, join: &Join) -> Result<Option<LogicalPlan>, Stop> {
        let shapes = [shape_of(&join.left, &self.moved), shape_of(&join.right, &self.moved)];
        let [left_shape, right_shape] = shapes.map(|shape| shape.map_err(Stop::Full));
        let conditions = told_conditions(join, &left_shape?, &right_shape?).map_err(Stop::Full)?;
        let (mut left, right) = (self.of_side(&join.left).await?, self.of_side(&join.right).await?);
        if join.null_aware
            && let (Some(right), [(of_left, of_right)]) = (&right, join.on.as_slice())
        {
            left = self.with_nulls(join, left, of_left, right, of_right).await?;
        }
        let mut met = Vec::new();
        if let Some(left) = &left {
            let all = self.narrowed(&join.right, left, &conditions, false).await?;
            met.extend(self.inner(left, &all, join, &conditions).await?);
        }
        if let Some(right) = &right {
            let all = self.narrowed(&join.left, right, &conditions, true).await?;
            met.extend(self.inner(&all, right, join, &conditions).await?);
        }
        if let (Some(left), Some(right)) = (&left, &right) {
            met.extend(self.inner(left, right, join, &conditions).await?);
        }
        let both = join.left.schema().join(join.right.schema())?;
        let width = join.left.schema().fields().len();
        let mut rows = Vec::new();
        let (keeps_left, keeps_right) = kept_alone(join.join_type);
        if keeps_left {
            let alone: Vec<usize> = (0..width).collect();
            rows.extend(self.alone(plan.schema(), 0, &both, &met, &alone).await?);
            if let Some(left) = &left {
                rows.extend(self.alone(plan.schema(), 0, join.left.schema(), &self.collect(left.clone()).await?, &alone).await?);
            }
        }
        if keeps_right {
            let width_right = join.right.schema().fields().len();
            let at = plan.schema().fields().len() - width_right;
            let behind: Vec<usize> = (width..width + width_right).collect();
            rows.extend(self.alone(plan.schema(), at, &both, &met, &behind).await?);
            if let Some(right) = &right {
                let own: Vec<usize> = (0..width_right).collect();
                rows.extend(self.alone(plan.schema(), at, join.right.schema(), &self.collect(right.clone()).await?, &own).await?);
            }
        }
        if matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full) {
            rows.extend(met);
        }
        self.kept(plan.schema(), &rows)
    }

    /// The changed rows of the side that `NOT IN` keeps, and those of its rows that are null there: they stay out unless the subquery
    /// has no rows, which a changed row of it may decide.
    ///
    /// # Errors
    /// [`Stop::Full`] where a null came to the subquery or went from it: no row is there as long as it has one.
    async fn with_nulls(
        &self,
        join: &Join,
        left: Option<LogicalPlan>,
        of_left: &Expr,
        right: &LogicalPlan,
        of_right: &Expr,
    ) -> Result<Option<LogicalPlan>, Stop> {
        let nulls = LogicalPlan::Filter(Filter::try_new(of_right.clone().is_null(), Arc::new(right.clone()))?);
        if count(&self.collect(nulls).await?) > 0 {
            return Err(Stop::Full("a null came to the subquery of NOT IN, or went from it".to_owned()));
        }
        let is_null = LogicalPlan::Filter(Filter::try_new(of_left.clone().is_null(), Arc::clone(&join.left))?);
        let mut rows = self.collect(LogicalPlan::Distinct(Distinct::All(Arc::new(is_null)))).await?;
        if let Some(left) = left {
            rows.extend(self.collect(left).await?);
        }
        self.kept(join.left.schema(), &rows)
    }

    /// Rows of one side without their partner: the columns at `places` of rows with the columns of `of`, as the columns of `schema`
    /// from `at` on, the others null; each once.
    async fn alone(
        &self,
        schema: &DFSchema,
        at: usize,
        of: &DFSchema,
        rows: &[RecordBatch],
        places: &[usize],
    ) -> Result<Vec<RecordBatch>, Stop> {
        if count(rows) == 0 {
            return Ok(Vec::new());
        }
        let input = plan_of(of, rows)?;
        let mut columns = Vec::new();
        for place in 0..schema.fields().len() {
            columns.push(match place.checked_sub(at).and_then(|behind| places.get(behind)) {
                Some(from) => named(column(of, *from), schema, place),
                None => untold(schema, place)?,
            });
        }
        let alone = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?);
        self.collect(LogicalPlan::Distinct(Distinct::All(Arc::new(alone)))).await
    }

    /// Pairs of rows of both sides that meet the conditions that are told, each once.
    async fn inner(&self, left: &LogicalPlan, right: &LogicalPlan, join: &Join, conditions: &Conditions) -> Result<Vec<RecordBatch>, Stop> {
        let Conditions { on, filter } = conditions;
        let (left, right) = (Arc::new(left.clone()), Arc::new(right.clone()));
        let constraint = join.join_constraint;
        let inner = Join::try_new(left, right, on.clone(), filter.clone(), JoinType::Inner, constraint, join.null_equality, false)?;
        self.collect(LogicalPlan::Distinct(Distinct::All(Arc::new(LogicalPlan::Join(inner))))).await
    }

    /// All rows of a side that may meet the changed rows of the other.
    pub(super) async fn narrowed(
        &self,
        side: &LogicalPlan,
        changed: &LogicalPlan,
        conditions: &Conditions,
        changed_is_right: bool,
    ) -> Result<LogicalPlan, Stop> {
        let mut narrowed = side.clone();
        for (left, right) in &conditions.on {
            let (own, other) = if changed_is_right { (left, right) } else { (right, left) };
            let data_type = tributary_lake::datafusion::logical_expr::ExprSchemable::get_type(other, changed.schema())?;
            if can_name_rows(&data_type) {
                let keys = self.keys(changed, &[(other.clone(), "key".to_owned())]).await?;
                narrowed = LogicalPlan::Filter(Filter::try_new(keys.condition(std::slice::from_ref(own))?, Arc::new(narrowed))?);
            }
        }
        self.near(narrowed, changed, conditions).await
    }

    /// The different values of expressions over changed rows.
    pub async fn keys(&self, changed: &LogicalPlan, expressions: &[(Expr, String)]) -> Result<Keys, Stop> {
        let columns = expressions.iter().map(|(expression, name)| expression.clone().unalias().alias(name)).collect();
        let values = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(changed.clone()))?);
        let schema = Arc::clone(values.schema().inner());
        let rows = self.collect(LogicalPlan::Distinct(Distinct::All(Arc::new(values)))).await?;
        let all = concat_batches(rows.first().map_or(&schema, |batch| batch.schema_ref()), &rows)?;
        Ok(Keys::new(expressions.iter().map(|(_, name)| name.clone()).collect(), all.columns().to_vec())?)
    }
}

/// Rows of an input as a scan of it gives them; none where there are none.
pub(super) fn of_scan(scan: &TableScan, schema: &DFSchema, rows: &[RecordBatch]) -> Result<Option<LogicalPlan>, Stop> {
    if count(rows) == 0 {
        return Ok(None);
    }
    let projected: Vec<RecordBatch> = match &scan.projection {
        Some(places) => rows.iter().map(|batch| batch.project(places)).collect::<Result<_, _>>()?,
        None => rows.to_vec(),
    };
    Ok(Some(plan_of(schema, &projected)?))
}

/// Whether a time is at least the first and before the other, both in microseconds.
fn times_within(time: &Expr, schema: &DFSchema, first: i64, behind: i64) -> Result<Expr, Stop> {
    // of a column and a span the column is compared, which tells files by their statistics
    let (time, by) = match linear(time, schema) {
        Some(Linear { column, behind }) => (Expr::Column(column), behind),
        None => (time.clone(), 0),
    };
    let data_type = time.get_type(schema)?;
    let bound = |micros: i64| {
        let micros = ScalarValue::TimestampMicrosecond(Some(micros.saturating_sub(by)), None);
        micros.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone(&data_type))).map(lit)
    };
    let before = time.clone().lt(bound(behind)?);
    Ok(if first == i64::MIN { before } else { time.gt_eq(bound(first)?).and(before) })
}

fn zone(data_type: &DataType) -> Option<Arc<str>> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

/// Which sides of a join have rows of their own in its result.
fn kept_alone(join_type: JoinType) -> (bool, bool) {
    match join_type {
        JoinType::Inner => (false, false),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
        JoinType::Full => (true, true),
    }
}
