//! Which columns of its inputs a query names. What no expression of it names decides nothing. Pure.

use std::collections::BTreeSet;

use tributary_lake::datafusion::common::JoinType;
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::logical_expr::LogicalPlan;

/// The names of all columns that expressions of a query name, of whichever table; none where it takes columns without naming them.
pub(super) fn columns(query: &LogicalPlan) -> Option<BTreeSet<String>> {
    let (mut names, mut all_named) = (BTreeSet::new(), names_its_columns(query));
    let walked = query.apply(|node| {
        if let LogicalPlan::Union(union) = node {
            all_named &= union.inputs.iter().all(|input| names_its_columns(input));
        }
        for expression in node.expressions() {
            names.extend(expression.column_refs().into_iter().map(|column| column.name.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    (walked.is_ok() && all_named).then_some(names)
}

/// Whether each column of a plan is one that an expression of it makes.
fn names_its_columns(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::SubqueryAlias(alias) => names_its_columns(&alias.input),
        LogicalPlan::Filter(filter) => names_its_columns(&filter.input),
        LogicalPlan::Sort(sort) => names_its_columns(&sort.input),
        LogicalPlan::Window(window) => names_its_columns(&window.input),
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| names_its_columns(input)),
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => names_its_columns(&join.left),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => names_its_columns(&join.right),
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                names_its_columns(&join.left) && names_its_columns(&join.right)
            }
        },
        _ => false,
    }
}
