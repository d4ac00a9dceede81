//! What of a plan can be told from changed rows alone. Pure.
//!
//! - A column is *told* when its value in a changed row of the plan follows from changed rows of the inputs: not from a whole group,
//!   partition or order.
//! - A column is *unsure* when it may come out otherwise if the same rows are computed again: floating totals, the first of equals.
//! - A plan is *fenced* when which rows there are rests on something unsure: rows are then replaced only by all rows that agree in
//!   columns of the fence.
//! - What is not known here has no shape, with the reason: the view is refreshed in full.

mod certainty;
mod join;

use std::collections::{BTreeMap, BTreeSet};

use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, TableScan, Union, Window};

use crate::query::{Input, input_of};
use crate::waits;

use certainty::Certainty;
pub(crate) use join::{Conditions, told_conditions};

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
    /// By place among the inputs: columns that hold no null, neither at the recorded version nor now. Empty where that is not known.
    pub not_null: &'a [BTreeSet<String>],
}

impl Moved<'_> {
    /// The input that a scan reads.
    pub fn input_of(&self, scan: &TableScan) -> Option<usize> {
        input_of(self.inputs, scan)
    }

    /// Whether any row that a plan reads changed, or it has other rows of the same ones since a watermark moved.
    pub fn moves(&self, plan: &LogicalPlan) -> bool {
        let mut moves = false;
        let walked = plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                moves |= self.input_of(scan).is_none_or(|input| self.moved.contains(&input));
            }
            moves |= waits::moves(node);
            Ok(if moves { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        moves || walked.is_err()
    }
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
        LogicalPlan::Join(join) => join::of_join(join, moved)?,
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
    let used = references(&aggregate.group_expr, schema)?;
    used.iter().for_each(|used| child.rests_on(used));
    let groups = used.len();
    let group: Places = (0..groups).collect();
    let mut unsure = BTreeMap::new();
    let mut of_choice = false;
    for (at, function) in aggregate.aggr_expr.iter().enumerate() {
        let over = referenced(function, schema)?;
        let certainty = certainty::of_aggregate(function, schema);
        of_choice |= certainty == Certainty::Chosen;
        if certainty != Certainty::Sure || over.iter().any(|place| child.unsure.contains_key(place)) {
            unsure.insert(groups + at, group.clone());
        }
    }
    let of_groups = child.projected(&used);
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
        let certainty = certainty::of_window(function, schema);
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

fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}
