//! A query in the form in which its shape is looked at.

use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::utils::grouping_set_to_exprlist;
use tributary_lake::datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use tributary_lake::datafusion::optimizer::Optimizer;

/// Rules of the engine that make joins of subqueries and aggregates of DISTINCT. None moves filters or takes columns away: scans stay
/// whole.
const RULES: [&str; 9] = [
    "rewrite_set_comparison",
    "simplify_expressions",
    "replace_distinct_aggregate",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
    "extract_equijoin_predicate",
    "eliminate_filter",
    "eliminate_cross_join",
];

/// The same query with its subqueries as joins, its types made one, and nothing grouped by twice.
///
/// # Errors
/// What the engine refuses.
pub(crate) fn normal(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let rules = state.optimizers().iter().filter(|rule| RULES.contains(&rule.name())).cloned().collect();
    let plan = Optimizer::with_rules(rules).optimize(plan, state, |_, _| {})?;
    Ok(plan.transform_up(grouped_once)?.data)
}

/// An aggregate that groups by each expression once: its columns then are its expressions, place by place.
fn grouped_once(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
    let once: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let is_set = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    if is_set || once.len() == aggregate.group_expr.len() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, once, aggregate.aggr_expr)?)))
}
