//! A query in the form in which its shape is looked at.

use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::LogicalPlan;
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

/// The same query with its subqueries as joins and its types made one.
///
/// # Errors
/// What the engine refuses.
pub(crate) fn normal(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let rules = state.optimizers().iter().filter(|rule| RULES.contains(&rule.name())).cloned().collect();
    Optimizer::with_rules(rules).optimize(plan, state, |_, _| {})
}
