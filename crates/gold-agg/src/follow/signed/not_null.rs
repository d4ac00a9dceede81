//! Which columns of a plan hold no null, by its schema, by its conditions and by what is known of its inputs. Pure.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::Field;
use tributary_lake::datafusion::common::{DFSchema, JoinType};
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};

use crate::follow::shape::{Moved, Places, Reason};

/// The columns of a plan, of which those refuse null that no row of it is null in, neither over the inputs as they were nor as they
/// are.
///
/// # Errors
/// What the engine says of the schema.
pub(super) fn known(plan: &LogicalPlan, moved: &Moved<'_>) -> Result<DFSchema, Reason> {
    refusing(plan.schema(), &not_null(plan, moved))
}

fn refusing(schema: &DFSchema, places: &Places) -> Result<DFSchema, Reason> {
    let mut fields = Vec::new();
    for (place, (qualifier, field)) in schema.iter().enumerate() {
        let refuses = places.contains(&place) || !field.is_nullable();
        fields.push((qualifier.cloned(), Arc::new(Field::clone(field).with_nullable(!refuses))));
    }
    DFSchema::new_with_metadata(fields, schema.metadata().clone()).map_err(|error| error.strip_backtrace())
}

fn not_null(plan: &LogicalPlan, moved: &Moved<'_>) -> Places {
    let schema = plan.schema();
    let mut places = match plan {
        LogicalPlan::TableScan(scan) => {
            let known = moved.input_of(scan).and_then(|input| moved.not_null.get(input));
            let is_known = |place: &usize| known.is_some_and(|known| known.contains(schema.field(*place).name()));
            (0..schema.fields().len()).filter(is_known).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => not_null(&alias.input, moved),
        LogicalPlan::Sort(sort) => not_null(&sort.input, moved),
        LogicalPlan::Filter(filter) => {
            let conditions = split_conjunction(&filter.predicate);
            let held = conditions.into_iter().flat_map(|condition| not_null_where(condition, schema));
            not_null(&filter.input, moved).into_iter().chain(held).collect()
        }
        LogicalPlan::Projection(projection) => match known(&projection.input, moved) {
            Ok(below) => {
                let refuses = |(place, expression): (usize, &Expr)| matches!(expression.nullable(&below), Ok(false)).then_some(place);
                projection.expr.iter().enumerate().filter_map(refuses).collect()
            }
            Err(_) => Places::new(),
        },
        LogicalPlan::Join(join) => of_join(join, moved),
        LogicalPlan::Union(union) => {
            let branches = union.inputs.iter().map(|input| not_null(input, moved));
            branches.reduce(|all, branch| &all & &branch).unwrap_or_default()
        }
        _ => Places::new(),
    };
    places.extend((0..schema.fields().len()).filter(|place| !schema.field(*place).is_nullable()));
    places
}

/// The columns that are null in no row for which a condition holds.
fn not_null_where(condition: &Expr, schema: &DFSchema) -> Vec<usize> {
    let place = |expression: &Expr| expression.try_as_col().and_then(|column| schema.maybe_index_of_column(column));
    match condition {
        Expr::IsNotNull(inner) => place(inner).into_iter().collect(),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => place(left).into_iter().chain(place(right)).collect(),
        _ => Vec::new(),
    }
}

/// Whether a comparison is null where one of its sides is.
fn compares(operator: Operator) -> bool {
    matches!(operator, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn of_join(join: &Join, moved: &Moved<'_>) -> Places {
    let width = join.left.schema().fields().len();
    let left = || not_null(&join.left, moved);
    let right = || not_null(&join.right, moved);
    match join.join_type {
        JoinType::Inner => left().into_iter().chain(right().into_iter().map(|place| place + width)).collect(),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left(),
        JoinType::Right => right().into_iter().map(|place| place + width).collect(),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right(),
        JoinType::Full => Places::new(),
    }
}
