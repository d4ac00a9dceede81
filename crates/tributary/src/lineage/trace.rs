//! Follows each output column of a plan back to the columns of tables that its values come from. Pure.
//!
//! A column that only decides which rows there are (a filter, a join condition, the order or the groups of a window) is no source of
//! values. A table is a source wherever it is read.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{Column, DFSchema, JoinType, TableReference};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::utils::grouping_set_to_exprlist;
use tributary_lake::datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, RecursiveQuery, Subquery};
use tributary_specs::TableName;

/// How values of a column come into another.
///
/// ```
/// assert!(tributary::Manner::Identity < tributary::Manner::Aggregation);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// As they are.
    Identity,
    /// Computed, each from one row.
    Transformation,
    /// Computed from several rows.
    Aggregation,
}

/// The columns that one column comes from.
pub(super) type Origins = BTreeMap<(TableName, String), Manner>;

/// What a plan calls a table, as the table's name; none for what is no table.
pub(super) type Names<'a> = &'a dyn Fn(&TableReference) -> Option<TableName>;

/// Of each output column its name and where it comes from.
///
/// # Errors
/// When an expression names no column of its input, which a plan that was made does not.
pub(super) fn columns(plan: &LogicalPlan, names: Names<'_>) -> Result<Vec<(String, Origins)>> {
    let origins = Trace { names, working: BTreeMap::new() }.plan(plan, &[])?;
    Ok(plan.schema().fields().iter().map(|field| field.name().clone()).zip(origins).collect())
}

/// Every table that a plan reads, those of subqueries too.
///
/// # Errors
/// None that a plan which was made gives.
pub(super) fn tables(plan: &LogicalPlan, names: Names<'_>) -> Result<BTreeSet<TableName>> {
    let mut found = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found.extend(names(&scan.table_name));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

struct Trace<'a> {
    names: Names<'a>,
    /// What stands for the rows of a recursive query inside it.
    working: BTreeMap<String, Vec<Origins>>,
}

/// The columns that an expression may name, and where each comes from.
#[derive(Clone, Copy)]
struct Scope<'a> {
    schema: &'a DFSchema,
    origins: &'a [Origins],
}

impl Scope<'_> {
    fn of(&self, column: &Column) -> Option<&Origins> {
        self.schema.maybe_index_of_column(column).and_then(|at| self.origins.get(at))
    }
}

impl Trace<'_> {
    /// Where each output of a plan comes from; `outer` = what its subquery may name, the nearest last.
    fn plan(&mut self, plan: &LogicalPlan, outer: &[Scope<'_>]) -> Result<Vec<Origins>> {
        let width = plan.schema().fields().len();
        Ok(match plan {
            LogicalPlan::TableScan(scan) => match (self.names)(&scan.table_name) {
                Some(table) => {
                    let fields = scan.projected_schema.fields().iter();
                    fields.map(|field| Origins::from([((table.clone(), field.name().clone()), Manner::Identity)])).collect()
                }
                None => self.working.get(scan.table_name.table()).cloned().unwrap_or_else(|| vec![Origins::new(); width]),
            },
            LogicalPlan::Projection(projection) => self.expressions(&projection.expr, &projection.input, outer)?,
            LogicalPlan::Filter(filter) => self.plan(&filter.input, outer)?,
            LogicalPlan::Sort(sort) => self.plan(&sort.input, outer)?,
            LogicalPlan::Limit(limit) => self.plan(&limit.input, outer)?,
            LogicalPlan::Repartition(repartition) => self.plan(&repartition.input, outer)?,
            LogicalPlan::SubqueryAlias(alias) => self.plan(&alias.input, outer)?,
            LogicalPlan::Subquery(subquery) => self.plan(&subquery.subquery, outer)?,
            LogicalPlan::Distinct(Distinct::All(input)) => self.plan(input, outer)?,
            LogicalPlan::Distinct(Distinct::On(on)) => self.expressions(&on.select_expr, &on.input, outer)?,
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, outer)?,
            LogicalPlan::Window(window) => {
                let mut origins = self.plan(&window.input, outer)?;
                let of_windows = self.expressions(&window.window_expr, &window.input, outer)?;
                origins.extend(of_windows);
                origins
            }
            LogicalPlan::Join(join) => {
                let (mut left, mut right) = (self.plan(&join.left, outer)?, self.plan(&join.right, outer)?);
                match join.join_type {
                    JoinType::LeftSemi | JoinType::LeftAnti => left,
                    JoinType::RightSemi | JoinType::RightAnti => right,
                    JoinType::LeftMark => {
                        left.push(Origins::new());
                        left
                    }
                    JoinType::RightMark => {
                        right.push(Origins::new());
                        right
                    }
                    JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                        left.append(&mut right);
                        left
                    }
                }
            }
            LogicalPlan::Union(union) => {
                let mut all = vec![Origins::new(); width];
                for input in &union.inputs {
                    merge_each(&mut all, self.plan(input, outer)?);
                }
                all
            }
            LogicalPlan::Unnest(unnest) => {
                let below = self.plan(&unnest.input, outer)?;
                let input = unnest.input.schema();
                let outputs = unnest.dependency_indices.iter().zip(unnest.schema.fields());
                outputs
                    .map(|(at, field)| {
                        let origins = below.get(*at).cloned().unwrap_or_default();
                        let same = input.field(*at).name() == field.name() && input.field(*at).data_type() == field.data_type();
                        if same { origins } else { through(origins, Manner::Transformation) }
                    })
                    .collect()
            }
            LogicalPlan::RecursiveQuery(query) => self.recursive(query, outer)?,
            LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Extension(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_) => vec![Origins::new(); width],
        })
    }

    fn expressions(&mut self, expressions: &[Expr], input: &LogicalPlan, outer: &[Scope<'_>]) -> Result<Vec<Origins>> {
        let below = self.plan(input, outer)?;
        let scope = Scope { schema: input.schema(), origins: &below };
        expressions.iter().map(|expression| self.expression(expression, scope, outer)).collect()
    }

    fn aggregate(&mut self, aggregate: &Aggregate, outer: &[Scope<'_>]) -> Result<Vec<Origins>> {
        let below = self.plan(&aggregate.input, outer)?;
        let scope = Scope { schema: aggregate.input.schema(), origins: &below };
        let mut origins = Vec::new();
        for group in grouping_set_to_exprlist(&aggregate.group_expr)? {
            origins.push(self.expression(group, scope, outer)?);
        }
        // the number of the grouping set comes from no column
        let of_sets = aggregate.schema.fields().len().saturating_sub(aggregate.aggr_expr.len());
        origins.resize(of_sets, Origins::new());
        for aggregated in &aggregate.aggr_expr {
            origins.push(self.expression(aggregated, scope, outer)?);
        }
        Ok(origins)
    }

    fn recursive(&mut self, query: &RecursiveQuery, outer: &[Scope<'_>]) -> Result<Vec<Origins>> {
        let mut origins = self.plan(&query.static_term, outer)?;
        let hidden = self.working.insert(query.name.clone(), origins.clone());
        let again = self.plan(&query.recursive_term, outer)?;
        match hidden {
            Some(hidden) => self.working.insert(query.name.clone(), hidden),
            None => self.working.remove(&query.name),
        };
        merge_each(&mut origins, again);
        Ok(origins)
    }

    fn expression(&mut self, expression: &Expr, scope: Scope<'_>, outer: &[Scope<'_>]) -> Result<Origins> {
        let mut found = Origins::new();
        self.collect(expression, Manner::Identity, scope, outer, &mut found)?;
        Ok(found)
    }

    /// Adds what an expression's value comes from; `manner` = how its value comes into the column.
    fn collect(&mut self, expression: &Expr, manner: Manner, scope: Scope<'_>, outer: &[Scope<'_>], found: &mut Origins) -> Result<()> {
        let computed = manner.max(Manner::Transformation);
        match expression {
            Expr::Alias(alias) => self.collect(&alias.expr, manner, scope, outer, found),
            Expr::Column(column) => {
                merge_as(found, scope.of(column).cloned().unwrap_or_default(), manner);
                Ok(())
            }
            Expr::OuterReferenceColumn(_, column) => {
                let origins = outer.iter().rev().find_map(|scope| scope.of(column));
                merge_as(found, origins.cloned().unwrap_or_default(), manner);
                Ok(())
            }
            Expr::ScalarSubquery(subquery) => self.subquery(subquery, manner, scope, outer, found),
            Expr::InSubquery(within) => {
                self.collect(&within.expr, computed, scope, outer, found)?;
                self.subquery(&within.subquery, computed, scope, outer, found)
            }
            Expr::SetComparison(comparison) => {
                self.collect(&comparison.expr, computed, scope, outer, found)?;
                self.subquery(&comparison.subquery, computed, scope, outer, found)
            }
            // whether there are rows is no value of theirs
            Expr::Exists(_) => Ok(()),
            // what filters, orders or divides the rows of a function only decides which of them it sees
            Expr::AggregateFunction(function) => {
                function.params.args.iter().try_for_each(|arg| self.collect(arg, Manner::Aggregation, scope, outer, found))
            }
            Expr::WindowFunction(function) => {
                function.params.args.iter().try_for_each(|arg| self.collect(arg, Manner::Aggregation, scope, outer, found))
            }
            other => {
                let mut parts = Vec::new();
                other.apply_children(|part| {
                    parts.push(part.clone());
                    Ok(TreeNodeRecursion::Continue)
                })?;
                parts.iter().try_for_each(|part| self.collect(part, computed, scope, outer, found))
            }
        }
    }

    /// Adds what the first column of a subquery comes from.
    fn subquery(&mut self, subquery: &Subquery, manner: Manner, scope: Scope<'_>, outer: &[Scope<'_>], found: &mut Origins) -> Result<()> {
        let outer: Vec<Scope<'_>> = outer.iter().copied().chain([scope]).collect();
        let origins = self.plan(&subquery.subquery, &outer)?.into_iter().next().unwrap_or_default();
        merge_as(found, origins, manner);
        Ok(())
    }
}

fn merge_as(into: &mut Origins, origins: Origins, manner: Manner) {
    for (origin, own) in origins {
        let manner = manner.max(own);
        into.entry(origin).and_modify(|known| *known = manner.max(*known)).or_insert(manner);
    }
}

/// Adds the columns that the same column also comes from.
pub(super) fn merge(into: &mut Origins, origins: Origins) {
    merge_as(into, origins, Manner::Identity);
}

fn merge_each(into: &mut [Origins], from: Vec<Origins>) {
    into.iter_mut().zip(from).for_each(|(into, from)| merge(into, from));
}

fn through(origins: Origins, manner: Manner) -> Origins {
    let mut through = Origins::new();
    merge_as(&mut through, origins, manner);
    through
}
