//! The order of many inner joins: cross products come last, where equalities say how tables belong together.
//!
//! The engine has such a rule, whose work grows with the third power of the tables: it looks for the columns of every equality in
//! every schema, for every pair of tables. It is asked for few tables only. Here each column's table is looked up once, and joins that
//! all have an equality are left as they are written.

use std::collections::HashMap;
use std::sync::Arc;

use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{Column, NullEquality};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::utils::{can_hash, conjunction, split_conjunction_owned};
use tributary_lake::datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, JoinConstraint, JoinType, LogicalPlan, Operator, Projection, build_join_schema,
};
use tributary_lake::datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use tributary_lake::datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tributary_lake::datafusion::prelude::SessionContext;

use crate::depth;

/// Inner joins of a plan up to which the engine's rule is asked.
const FEW: usize = 32;

/// Puts the rule in the place of the engine's.
pub(crate) fn register(context: &SessionContext) {
    let rules = context.state().optimizers().to_vec();
    for rule in &rules {
        context.remove_optimizer_rule(rule.name());
    }
    let engines = EliminateCrossJoin::new();
    for rule in rules {
        let is_engines = rule.name() == engines.name();
        context.add_optimizer_rule(if is_engines { Arc::new(JoinOrder { engines: EliminateCrossJoin::new() }) } else { rule });
    }
}

#[derive(Debug)]
struct JoinOrder {
    engines: EliminateCrossJoin,
}

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        self.engines.name()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let joins = inner_joins(&plan)?;
        if joins <= FEW { self.engines.rewrite(plan, config) } else { depth::with_room(joins, || ordered(plan)) }
    }
}

fn inner_joins(plan: &LogicalPlan) -> Result<usize> {
    let mut joins = 0;
    plan.apply_with_subqueries(|node| {
        joins += usize::from(matches!(node, LogicalPlan::Join(join) if is_movable(join)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(joins)
}

/// Whether a join may stand anywhere among others.
fn is_movable(join: &Join) -> bool {
    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNothing && !join.null_aware
}

/// Whether any of the joins side by side has no equality.
fn has_product(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Join(join) if is_movable(join) => join.on.is_empty() || has_product(&join.left) || has_product(&join.right),
        _ => false,
    }
}

fn ordered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Filter(filter) if has_product(&filter.input) => {
            let predicate = split_conjunction_owned(filter.predicate);
            joined(Arc::unwrap_or_clone(filter.input), predicate).map(Transformed::yes)
        }
        plan if has_product(&plan) => joined(plan, Vec::new()).map(Transformed::yes),
        plan => below(plan),
    }
}

/// The same for what stands below a node.
fn below(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let changed = plan.map_uncorrelated_subqueries(ordered)?.transform_sibling(|plan| plan.map_children(ordered))?;
    if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
}

/// Joins side by side, taken apart.
#[derive(Default)]
struct Parts {
    inputs: Vec<LogicalPlan>,
    /// Equalities and what else must be true.
    conditions: Vec<Expr>,
}

impl Parts {
    fn take(&mut self, plan: LogicalPlan) -> Result<()> {
        match plan {
            LogicalPlan::Join(join) if is_movable(&join) => {
                self.conditions.extend(join.on.into_iter().map(|(left, right)| left.eq(right)));
                self.conditions.extend(join.filter.into_iter().flat_map(split_conjunction_owned));
                self.take(Arc::unwrap_or_clone(join.left))?;
                self.take(Arc::unwrap_or_clone(join.right))
            }
            other => {
                self.inputs.push(ordered(other)?.data);
                Ok(())
            }
        }
    }
}

/// An equality of what two sides hold, each of which is of the inputs named.
struct Key {
    sides: [Expr; 2],
    inputs: [Vec<usize>; 2],
    used: bool,
}

impl Key {
    /// The sides as they join an input to those that are joined: theirs first.
    fn of(&self, input: usize, joined: &[bool]) -> Option<(Expr, Expr)> {
        let reaches = |from: usize, to: usize| self.inputs[from].iter().all(|at| joined[*at]) && self.inputs[to] == [input];
        let [left, right] = &self.sides;
        match (self.used, reaches(0, 1), reaches(1, 0)) {
            (false, true, _) => Some((left.clone(), right.clone())),
            (false, _, true) => Some((right.clone(), left.clone())),
            _ => None,
        }
    }
}

/// The joins in an order in which as many as can be have an equality.
fn joined(plan: LogicalPlan, predicate: Vec<Expr>) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let mut parts = Parts { conditions: predicate, ..Parts::default() };
    parts.take(plan)?;
    let mut owners = HashMap::new();
    for (at, input) in parts.inputs.iter().enumerate() {
        owners.extend(input.schema().columns().into_iter().map(|column| (column, at)));
    }
    let (mut keys, mut rest) = (Vec::new(), Vec::new());
    for condition in parts.conditions {
        match key(condition, &owners, &parts.inputs) {
            Ok(key) => keys.push(key),
            Err(other) => rest.push(other),
        }
    }
    let mut plan = chained(parts.inputs, &mut keys)?;
    rest.extend(keys.into_iter().filter(|key| !key.used).map(|key| {
        let [left, right] = key.sides;
        left.eq(right)
    }));
    if let Some(predicate) = conjunction(rest) {
        plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?);
    }
    if schema != *plan.schema() {
        plan = LogicalPlan::Projection(Projection::new_from_schema(Arc::new(plan), schema));
    }
    Ok(plan)
}

/// The equality that a condition is, where it is one that rows can be found by.
fn key(condition: Expr, owners: &HashMap<Column, usize>, inputs: &[LogicalPlan]) -> std::result::Result<Key, Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return Err(condition) };
    let of = |side: &Expr| -> Option<Vec<usize>> {
        let mut found: Vec<usize> = side.column_refs().into_iter().map(|column| owners.get(column).copied()).collect::<Option<_>>()?;
        found.sort_unstable();
        found.dedup();
        let [one] = found.as_slice() else { return (!found.is_empty()).then_some(found) };
        side.get_type(inputs[*one].schema()).is_ok_and(|data_type| can_hash(&data_type)).then_some(found)
    };
    match (of(&left), of(&right)) {
        (Some(a), Some(b)) if !a.iter().any(|at| b.contains(at)) => Ok(Key { sides: [*left, *right], inputs: [a, b], used: false }),
        _ => Err(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })),
    }
}

/// The inputs joined one after the other: always the first that an equality joins to those before it, else the first.
fn chained(inputs: Vec<LogicalPlan>, keys: &mut [Key]) -> Result<LogicalPlan> {
    let mut of_input: Vec<Vec<usize>> = vec![Vec::new(); inputs.len()];
    for (at, key) in keys.iter().enumerate() {
        key.inputs.iter().filter(|side| side.len() == 1).for_each(|side| of_input[side[0]].push(at));
    }
    let mut joined = vec![false; inputs.len()];
    let mut waiting: Vec<usize> = (1..inputs.len()).collect();
    let mut inputs: Vec<Option<LogicalPlan>> = inputs.into_iter().map(Some).collect();
    let mut plan = inputs[0].take().unwrap_or_default();
    joined[0] = true;
    while !waiting.is_empty() {
        let next = waiting.iter().position(|input| of_input[*input].iter().any(|key| keys[*key].of(*input, &joined).is_some()));
        let input = waiting.remove(next.unwrap_or(0));
        let mut on = Vec::new();
        for key in &of_input[input] {
            if let Some(sides) = keys[*key].of(input, &joined) {
                keys[*key].used = true;
                on.push(sides);
            }
        }
        joined[input] = true;
        plan = inner_join(plan, inputs[input].take().unwrap_or_default(), on)?;
    }
    Ok(plan)
}

fn inner_join(left: LogicalPlan, right: LogicalPlan, on: Vec<(Expr, Expr)>) -> Result<LogicalPlan> {
    let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &JoinType::Inner)?);
    Ok(LogicalPlan::Join(Join {
        left: Arc::new(left),
        right: Arc::new(right),
        on,
        filter: None,
        join_type: JoinType::Inner,
        join_constraint: JoinConstraint::On,
        schema,
        null_equality: NullEquality::NullEqualsNothing,
        null_aware: false,
    }))
}
