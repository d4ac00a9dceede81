//! What of a plan can be told from changed rows alone. Pure.
//!
//! - A column is *told* when its value in a changed row of the plan follows from changed rows of the inputs: not from a whole group,
//!   partition or order.
//! - A column is *unsure* when it may come out otherwise if the same rows are computed again: floating totals, the first of equals.
//! - A plan is *fenced* when which rows there are rests on something unsure: rows are then replaced only by all rows that agree in
//!   columns of the fence.
//! - What is not known here has no shape, with the reason: the view is refreshed in full.

use std::collections::{BTreeMap, BTreeSet};

use tributary_lake::arrow::datatypes::{DataType, TimeUnit};
use tributary_lake::datafusion::catalog::TableProvider;
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{DFSchema, JoinType};
use tributary_lake::datafusion::datasource::source_as_provider;
use tributary_lake::datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan, TableScan, Union, Window, WindowFrameUnits};

use crate::query::Input;

/// Columns of a plan, by place.
pub(crate) type Places = BTreeSet<usize>;

/// Why a plan cannot follow its inputs, in words that come behind "in full, for".
pub(crate) type Reason = String;

/// What is known of a plan's rows. See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub told: Places,
    /// Unsure columns, each with the columns that name the group it is of.
    pub unsure: BTreeMap<usize, Places>,
    /// None: no fence.
    pub fence: Option<Places>,
}

/// Which inputs have changed rows.
pub(crate) struct Moved<'a> {
    pub inputs: &'a [Input],
    /// By place among the inputs.
    pub moved: &'a Places,
}

impl Moved<'_> {
    /// The input that a scan reads.
    pub fn input_of(&self, scan: &TableScan) -> Option<usize> {
        let provider = source_as_provider(&scan.source).ok()?;
        self.inputs.iter().position(|input| same_provider(&provider, input))
    }

    /// Whether any row that a plan reads changed.
    pub fn moves(&self, plan: &LogicalPlan) -> bool {
        let mut moves = false;
        let walked = plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                moves |= self.input_of(scan).is_none_or(|input| self.moved.contains(&input));
            }
            Ok(if moves { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        moves || walked.is_err()
    }
}

fn same_provider(provider: &std::sync::Arc<dyn TableProvider>, input: &Input) -> bool {
    std::sync::Arc::as_ptr(provider).cast::<()>() == std::sync::Arc::as_ptr(input.provider()).cast::<()>()
}

/// The shape of a plan, normalised as [`super::normal`] does it.
///
/// # Errors
/// The reason why it has none.
pub(crate) fn shape_of(plan: &LogicalPlan, moved: &Moved<'_>) -> Result<Shape, Reason> {
    let mut shape = match plan {
        LogicalPlan::TableScan(scan) if moved.input_of(scan).is_none() => {
            return Err(format!("{} is not read as a table that is there", scan.table_name));
        }
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            Shape { told: all(plan.schema()), ..Shape::default() }
        }
        LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => Shape { told: all(plan.schema()), ..Shape::default() },
        LogicalPlan::SubqueryAlias(alias) => shape_of(&alias.input, moved)?,
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => shape_of(&sort.input, moved)?,
        LogicalPlan::Projection(projection) => {
            let child = shape_of(&projection.input, moved)?;
            child.projected(&references(&projection.expr, projection.input.schema())?)
        }
        LogicalPlan::Filter(filter) => {
            let mut child = shape_of(&filter.input, moved)?;
            let used = referenced(&filter.predicate, filter.input.schema())?;
            child.rests_on(&used);
            child
        }
        LogicalPlan::Join(join) => of_join(join, moved)?,
        LogicalPlan::Union(union) => of_union(union, moved)?,
        LogicalPlan::Aggregate(aggregate) => of_aggregate(plan, aggregate, moved)?,
        LogicalPlan::Window(window) => of_window(plan, window, moved)?,
        other => return Err(unknown(other)),
    };
    if !moved.moves(plan) {
        shape.told = all(plan.schema()).into_iter().filter(|place| !shape.unsure.contains_key(place)).collect();
    }
    Ok(shape)
}

fn unknown(plan: &LogicalPlan) -> Reason {
    match plan {
        LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => "LIMIT takes rows by the order of all of them".to_owned(),
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE is computed as a whole".to_owned(),
        LogicalPlan::Unnest(_) => "rows that are made of lists (explode) are not followed".to_owned(),
        other => {
            let text = other.display().to_string();
            format!("{} is not followed", text.split([':', ' ']).next().unwrap_or("a step of the query").to_lowercase())
        }
    }
}

fn all(schema: &DFSchema) -> Places {
    (0..schema.fields().len()).collect()
}

/// Columns that an expression names, by place.
///
/// # Errors
/// When it asks a table by itself.
pub(crate) fn referenced(expression: &Expr, schema: &DFSchema) -> Result<Places, Reason> {
    let asks = expression.exists(|part| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) | Expr::OuterReferenceColumn(..)
        ))
    });
    if asks.unwrap_or(true) {
        return Err("a subquery of it does not become a join".to_owned());
    }
    let place = |column| schema.index_of_column(column).map_err(|error| error.strip_backtrace());
    expression.column_refs().into_iter().map(place).collect()
}

fn references(expressions: &[Expr], schema: &DFSchema) -> Result<Vec<Places>, Reason> {
    expressions.iter().map(|expression| referenced(expression, schema)).collect()
}

impl Shape {
    /// The shape once columns are computed of these columns.
    fn projected(&self, references: &[Places]) -> Self {
        let made_of = |places: &Places| -> Places {
            let inside = |(place, used): (usize, &Places)| (!used.is_empty() && used.is_subset(places)).then_some(place);
            references.iter().enumerate().filter_map(inside).collect()
        };
        // A constant says nothing of a row.
        let told = |(place, used): (usize, &Places)| (!used.is_empty() && used.is_subset(&self.told)).then_some(place);
        let unsure = |(place, used): (usize, &Places)| {
            let groups: Vec<&Places> = used.iter().filter_map(|used| self.unsure.get(used)).collect();
            let first = groups.split_first().map(|(first, rest)| rest.iter().fold((*first).clone(), |all, one| &all & *one));
            first.map(|group| (place, made_of(&group)))
        };
        Self {
            told: references.iter().enumerate().filter_map(told).collect(),
            unsure: references.iter().enumerate().filter_map(unsure).collect(),
            fence: self.fence.as_ref().map(made_of),
        }
    }

    /// Which rows there are rests on these columns.
    fn rests_on(&mut self, used: &Places) {
        let groups: Vec<Places> = used.iter().filter_map(|place| self.unsure.get(place).cloned()).collect();
        groups.into_iter().for_each(|group| self.fence_in(group));
    }

    fn fence_in(&mut self, group: Places) {
        self.fence = Some(match self.fence.take() {
            Some(fence) => &fence & &group,
            None => group,
        });
    }

    /// The same columns `by` places further on.
    fn behind(self, by: usize) -> Self {
        let on = |places: Places| places.into_iter().map(|place| place + by).collect::<Places>();
        Self {
            told: on(self.told),
            unsure: self.unsure.into_iter().map(|(place, group)| (place + by, on(group))).collect(),
            fence: self.fence.map(on),
        }
    }
}

/// Pairs of plain columns that a join compares: place left, place right.
fn compared(join: &Join) -> Vec<(usize, usize)> {
    let place =
        |expression: &Expr, plan: &LogicalPlan| expression.try_as_col().and_then(|column| plan.schema().maybe_index_of_column(column));
    join.on.iter().filter_map(|(left, right)| Some((place(left, &join.left)?, place(right, &join.right)?))).collect()
}

/// Conditions of a join that changed rows alone can tell; none of its conditions may be lost but these.
pub(crate) struct Conditions {
    pub on: Vec<(Expr, Expr)>,
    pub filter: Option<Expr>,
}

/// The conditions of a join over columns that are told.
///
/// # Errors
/// When it has conditions, and none of them is told.
pub(crate) fn told_conditions(join: &Join, left: &Shape, right: &Shape) -> Result<Conditions, Reason> {
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let mut on = Vec::new();
    for (one, other) in &join.on {
        let is_told = referenced(one, left_schema)?.is_subset(&left.told) && referenced(other, right_schema)?.is_subset(&right.told);
        if is_told {
            on.push((one.clone(), other.clone()));
        }
    }
    if on.is_empty() && !join.on.is_empty() {
        return Err("it joins by a column that is computed of whole groups".to_owned());
    }
    let both = left_schema.join(right_schema).map_err(|error| error.strip_backtrace())?;
    let width = left_schema.fields().len();
    let is_told = |place: &usize| match place.checked_sub(width) {
        Some(place) => right.told.contains(&place),
        None => left.told.contains(place),
    };
    let mut filter: Option<Expr> = None;
    for condition in join.filter.iter().flat_map(split_conjunction) {
        if referenced(condition, &both)?.iter().all(is_told) {
            filter = Some(filter.map_or_else(|| condition.clone(), |filter| filter.and(condition.clone())));
        }
    }
    Ok(Conditions { on, filter })
}

fn of_join(join: &Join, moved: &Moved<'_>) -> Result<Shape, Reason> {
    if join.null_aware {
        return Err("NOT IN looks at every row of its subquery; NOT EXISTS does not".to_owned());
    }
    let (mut left, mut right) = (shape_of(&join.left, moved)?, shape_of(&join.right, moved)?);
    told_conditions(join, &left, &right)?;
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    for (one, other) in &join.on {
        left.rests_on(&referenced(one, left_schema)?);
        right.rests_on(&referenced(other, right_schema)?);
    }
    let width = left_schema.fields().len();
    if let Some(filter) = &join.filter {
        let both = left_schema.join(right_schema).map_err(|error| error.strip_backtrace())?;
        let used = referenced(filter, &both)?;
        left.rests_on(&used.iter().copied().filter(|place| *place < width).collect());
        right.rests_on(&used.iter().filter_map(|place| place.checked_sub(width)).collect());
    }
    let pairs = compared(join);
    let over = |fence: &Option<Places>, pairs: &[(usize, usize)]| -> Option<Places> {
        fence.as_ref().map(|fence| pairs.iter().filter(|(from, _)| fence.contains(from)).map(|(_, to)| *to).collect())
    };
    let turned: Vec<(usize, usize)> = pairs.iter().map(|(left, right)| (*right, *left)).collect();
    let left_of_right = over(&right.fence, &turned);
    let right_of_left = over(&left.fence, &pairs);
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => {
            left_of_right.into_iter().for_each(|fence| left.fence_in(fence));
            return Ok(left);
        }
        JoinType::RightSemi | JoinType::RightAnti => {
            right_of_left.into_iter().for_each(|fence| right.fence_in(fence));
            return Ok(right);
        }
        JoinType::LeftMark | JoinType::RightMark => return Err("EXISTS or IN beside OR is not followed".to_owned()),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {}
    }
    let (pads_left, pads_right) =
        (matches!(join.join_type, JoinType::Right | JoinType::Full), matches!(join.join_type, JoinType::Left | JoinType::Full));
    let on_right = |places: Places| places.into_iter().map(|place| place + width).collect::<Places>();
    let fence_of_left = left.fence.take().map(|fence| {
        let own = if pads_left { Places::new() } else { fence };
        let other = if pads_right { Places::new() } else { on_right(right_of_left.unwrap_or_default()) };
        &own | &other
    });
    let fence_of_right = right.fence.take().map(|fence| {
        let own = if pads_right { Places::new() } else { on_right(fence) };
        let other = if pads_left { Places::new() } else { left_of_right.unwrap_or_default() };
        &own | &other
    });
    let right = right.behind(width);
    let mut both = Shape { told: &left.told | &right.told, unsure: left.unsure, fence: None };
    both.unsure.extend(right.unsure);
    fence_of_left.into_iter().chain(fence_of_right).for_each(|fence| both.fence_in(fence));
    Ok(both)
}

fn of_union(union: &Union, moved: &Moved<'_>) -> Result<Shape, Reason> {
    let mut both: Option<Shape> = None;
    for input in &union.inputs {
        let branch = shape_of(input, moved)?;
        both = Some(match both {
            None => branch,
            Some(mut both) => {
                both.told = &both.told & &branch.told;
                for (place, group) in branch.unsure {
                    let group = both.unsure.get(&place).map_or_else(|| group.clone(), |known| known & &group);
                    both.unsure.insert(place, group);
                }
                branch.fence.into_iter().for_each(|fence| both.fence_in(fence));
                both
            }
        });
    }
    both.ok_or_else(|| "it is a union of nothing".to_owned())
}

fn of_aggregate(plan: &LogicalPlan, aggregate: &Aggregate, moved: &Moved<'_>) -> Result<Shape, Reason> {
    let mut child = shape_of(&aggregate.input, moved)?;
    let schema = aggregate.input.schema();
    if aggregate.group_expr.iter().any(|expression| matches!(expression, Expr::GroupingSet(_))) {
        return Err("ROLLUP, CUBE and GROUPING SETS are not followed".to_owned());
    }
    if aggregate.group_expr.is_empty() && moved.moves(plan) {
        return Err("without GROUP BY a row of it is made of every row of its inputs".to_owned());
    }
    let mut used = references(&aggregate.group_expr, schema)?;
    used.iter().for_each(|used| child.rests_on(used));
    let groups = used.len();
    let group: Places = (0..groups).collect();
    let mut unsure = BTreeMap::new();
    let mut of_choice = false;
    for (at, function) in aggregate.aggr_expr.iter().enumerate() {
        let over = referenced(function, schema)?;
        let certainty = certainty(function, schema);
        of_choice |= certainty == Certainty::Chosen;
        if certainty != Certainty::Sure || over.iter().any(|place| child.unsure.contains_key(place)) {
            unsure.insert(groups + at, group.clone());
        }
        used.push(over);
    }
    let of_groups = child.projected(&used[..groups]);
    let mut shape = Shape { told: of_groups.told, unsure, fence: of_groups.fence };
    if of_choice {
        shape.fence_in(group);
    }
    Ok(shape)
}

fn of_window(plan: &LogicalPlan, window: &Window, moved: &Moved<'_>) -> Result<Shape, Reason> {
    let mut child = shape_of(&window.input, moved)?;
    let schema = window.input.schema();
    let width = schema.fields().len();
    let mut partition: Option<Places> = None;
    let (mut uncertain, mut of_choice) = (Vec::new(), false);
    for (at, expression) in window.window_expr.iter().enumerate() {
        let Expr::WindowFunction(function) = unaliased(expression) else { return Err("a window of it is not known".to_owned()) };
        let plain = |column: &Expr| column.try_as_col().and_then(|column| schema.maybe_index_of_column(column));
        let by: Places = function.params.partition_by.iter().filter_map(plain).collect();
        partition = Some(partition.map_or_else(|| by.clone(), |partition| &partition & &by));
        let used = referenced(expression, schema)?;
        let certainty = window_certainty(function, schema);
        of_choice |= certainty == Certainty::Chosen;
        if certainty != Certainty::Sure || used.iter().any(|place| child.unsure.contains_key(place)) {
            uncertain.push(width + at);
        }
        let of_order = function.params.order_by.iter().map(|order| referenced(&order.expr, schema)).collect::<Result<Vec<_>, _>>()?;
        of_order.iter().for_each(|used| child.rests_on(used));
    }
    let partition = partition.unwrap_or_default();
    if partition.is_empty() && moved.moves(plan) {
        return Err("a window without PARTITION BY columns is over every row".to_owned());
    }
    child.rests_on(&partition);
    uncertain.into_iter().for_each(|place| drop(child.unsure.insert(place, partition.clone())));
    child.told = &child.told & &partition;
    if of_choice {
        child.fence_in(partition);
    }
    Ok(child)
}

pub(crate) fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// Whether a function gives the same answer over the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Sure,
    /// But for rounding, by the order in which numbers are added.
    Rounded,
    /// But for which of equals it takes.
    Chosen,
}

const SURE: [&str; 10] = ["sum", "count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor", "grouping"];
const ROUNDED: [&str; 20] = [
    "avg",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var",
    "var_pop",
    "var_samp",
    "var_sample",
    "variance",
    "median",
    "percentile_cont",
    "covar_samp",
    "covar_pop",
    "covar",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "percentile",
    "mean",
];
const RANKS: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

fn certainty(function: &Expr, schema: &DFSchema) -> Certainty {
    match unaliased(function) {
        Expr::AggregateFunction(call) => of_function(call.func.name(), &call.params.args, schema),
        _ => Certainty::Chosen,
    }
}

fn of_function(name: &str, arguments: &[Expr], schema: &DFSchema) -> Certainty {
    use tributary_lake::datafusion::logical_expr::ExprSchemable;
    let floats = arguments.iter().any(|argument| argument.get_type(schema).map_or(true, |data_type| data_type.is_floating()));
    match name {
        name if SURE.contains(&name) && !floats => Certainty::Sure,
        name if SURE.contains(&name) || ROUNDED.contains(&name) => Certainty::Rounded,
        _ => Certainty::Chosen,
    }
}

fn window_certainty(function: &WindowFunction, schema: &DFSchema) -> Certainty {
    let params = &function.params;
    match &function.fun {
        WindowFunctionDefinition::WindowUDF(udf) if RANKS.contains(&udf.name()) => Certainty::Sure,
        WindowFunctionDefinition::WindowUDF(_) => Certainty::Chosen,
        WindowFunctionDefinition::AggregateUDF(udf) => {
            // Rows of a frame that is counted in rows are chosen among equals, where not the whole partition is in it.
            let by_rows = params.window_frame.units == WindowFrameUnits::Rows && !params.order_by.is_empty();
            if by_rows { Certainty::Chosen } else { of_function(udf.name(), &params.args, schema) }
        }
    }
}

/// Whether values of a type are equal exactly where their bytes are, so that they can name rows.
pub(crate) fn can_name_rows(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Decimal128(..)
            | DataType::Utf8
            | DataType::Binary
    )
}

/// The columns of a view that can say which of its rows a change concerns.
///
/// # Errors
/// Why there are none.
pub(crate) fn naming_columns(plan: &LogicalPlan, moved: &Moved<'_>) -> Result<Vec<usize>, Reason> {
    let shape = shape_of(plan, moved)?;
    let sure = |place: &usize| !shape.unsure.contains_key(place) && can_name_rows(plan.schema().field(*place).data_type());
    let told: Vec<usize> = shape.told.iter().copied().filter(sure).collect();
    if told.is_empty() {
        return Err("no column of its result says of which groups or rows a row is made".to_owned());
    }
    let inside = |place: &usize| shape.fence.as_ref().is_none_or(|fence| fence.contains(place));
    let named: Vec<usize> = told.into_iter().filter(inside).collect();
    match named.is_empty() {
        true => Err("which rows it has rests on values that may come out otherwise when they are computed again".to_owned()),
        false => Ok(named),
    }
}
