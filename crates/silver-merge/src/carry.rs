//! Columns that ride along unseen: what a change is (operation, position, …) passes through the dataset's query, whatever it
//! selects, and each output column is followed back to the source columns it is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use tributary_lake::datafusion::common::{Column, DFSchema};
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{Expr, JoinType, LogicalPlan, Projection, Unnest};

/// How the names of columns that ride along begin.
pub(crate) const RIDER: &str = "__rider_";

/// Whether a column rides along.
pub(crate) fn is_rider(name: &str) -> bool {
    name.starts_with(RIDER)
}

/// What an output column is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    /// Columns of the first source it is computed from.
    pub columns: BTreeSet<String>,
    /// The column of the first source it is, unchanged.
    pub same_as: Option<String>,
}

/// Whether rows may be unfolded: of a row of the source, several or none come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfolds {
    /// Each row that comes out is one of the table.
    Allowed,
    /// Rows are changes of keys, told one by one.
    Refused,
}

/// Whether a plan unfolds rows.
pub(crate) fn unfolds(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Unnest(_)) || plan.inputs().into_iter().any(unfolds)
}

/// The plan with every rider of its stream among its outputs.
///
/// # Errors
/// When the plan reads the stream not once, or has a step that can make several rows of one or one of several.
pub(crate) fn with_riders(plan: LogicalPlan, may: Unfolds) -> Result<LogicalPlan> {
    extend(&plan, may)?.ok_or_else(|| DataFusionError::Plan("the query does not read its first source".to_owned()))
}

/// None when the stream is not below.
fn extend(plan: &LogicalPlan, may: Unfolds) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::TableScan(_) => Ok(has_riders(plan.schema()).then(|| plan.clone())),
        LogicalPlan::Projection(projection) => {
            let Some(input) = extend(&projection.input, may)? else { return Ok(None) };
            let shown: BTreeSet<&str> = projection.schema.fields().iter().map(|field| field.name().as_str()).collect();
            let riders = input.schema().iter().filter(|(_, field)| is_rider(field.name()) && !shown.contains(field.name().as_str()));
            let riders: Vec<Expr> = riders.map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name()))).collect();
            let expressions = projection.expr.iter().cloned().chain(riders).collect();
            Ok(Some(LogicalPlan::Projection(Projection::try_new(expressions, Arc::new(input))?)))
        }
        LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => one_input(plan, may),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => one_input(plan, may),
        LogicalPlan::Join(join) => {
            let (left, right) = (extend(&join.left, may)?, extend(&join.right, may)?);
            let kept = |ok: &[JoinType]| match ok.contains(&join.join_type) {
                true => Ok(()),
                false => refuse(&format!("a {} join can lose or invent rows of the first source", join.join_type)),
            };
            let (left, right) = match (left, right) {
                (None, None) => return Ok(None),
                (Some(_), Some(_)) => return refuse("it reads its first source twice"),
                (Some(left), None) => {
                    kept(&[JoinType::Inner, JoinType::Left, JoinType::LeftSemi, JoinType::LeftAnti])?;
                    (left, join.right.as_ref().clone())
                }
                (None, Some(right)) => {
                    kept(&[JoinType::Inner, JoinType::Right, JoinType::RightSemi, JoinType::RightAnti])?;
                    (join.left.as_ref().clone(), right)
                }
            };
            plan.with_new_exprs(plan.expressions(), vec![left, right]).map(Some)
        }
        LogicalPlan::Unnest(unnest) if may == Unfolds::Allowed => {
            let Some(input) = extend(&unnest.input, may)? else { return Ok(None) };
            let unfolded = Unnest::try_new(Arc::new(input), unnest.exec_columns.clone(), unnest.options.clone())?;
            Ok(Some(LogicalPlan::Unnest(unfolded)))
        }
        other => {
            for input in other.inputs() {
                if extend(input, may)?.is_some() {
                    if matches!(other, LogicalPlan::Unnest(_)) {
                        return refuse("explode makes several rows of one: unfold them in a streaming table that this one reads");
                    }
                    return refuse(&format!("the step `{}` is not one row out for one row in", other.display()));
                }
            }
            Ok(None)
        }
    }
}

fn one_input(plan: &LogicalPlan, may: Unfolds) -> Result<Option<LogicalPlan>> {
    let Some(&input) = plan.inputs().first() else { return Ok(None) };
    extend(input, may)?.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(DataFusionError::Plan(format!("the query cannot be kept current change by change: {why}")))
}

fn has_riders(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| is_rider(field.name()))
}

/// Of each output of the plan what it is made of.
///
/// # Errors
/// When an expression names no column of its input.
pub(crate) fn origins(plan: &LogicalPlan) -> Result<Vec<Origin>> {
    let fields = plan.schema().fields();
    match plan {
        LogicalPlan::TableScan(_) if has_riders(plan.schema()) => {
            Ok(fields.iter().map(|field| Origin { columns: [field.name().clone()].into(), same_as: Some(field.name().clone()) }).collect())
        }
        LogicalPlan::Projection(projection) => {
            let below = origins(&projection.input)?;
            projection.expr.iter().map(|expression| origin(expression, projection.input.schema(), &below)).collect()
        }
        LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_) => match plan.inputs().first() {
            Some(input) => origins(input),
            None => Ok(vec![Origin::default(); fields.len()]),
        },
        LogicalPlan::Unnest(unnest) => {
            let below = origins(&unnest.input)?;
            let of = |at: &usize| match unnest.list_type_columns.iter().any(|(unfolded, _)| unfolded == at) {
                true => Origin { same_as: None, ..below[*at].clone() },
                false => below[*at].clone(),
            };
            Ok(unnest.dependency_indices.iter().map(of).collect())
        }
        LogicalPlan::Join(join) => {
            let (left, right) = (origins(&join.left)?, origins(&join.right)?);
            Ok(match join.join_type {
                JoinType::LeftSemi | JoinType::LeftAnti => left,
                JoinType::RightSemi | JoinType::RightAnti => right,
                _ => left.into_iter().chain(right).collect(),
            })
        }
        _ => Ok(vec![Origin::default(); fields.len()]),
    }
}

fn origin(expression: &Expr, input: &DFSchema, below: &[Origin]) -> Result<Origin> {
    let of = |column: &Column| input.index_of_column(column).map(|at| below[at].clone());
    if let Expr::Column(column) = expression.clone().unalias_nested().data {
        return of(&column);
    }
    let mut origin = Origin::default();
    for column in expression.column_refs() {
        origin.columns.extend(of(column)?.columns);
    }
    Ok(origin)
}
