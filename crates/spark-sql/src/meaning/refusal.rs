//! Operations between types that the dialect does not have, or that the engine does with another result.

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::logical_expr::expr::{Case, InList};
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, Union};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::convert::{exists, word};
use crate::functions::common;
use crate::{Error, misplaced};

/// What is refused of a node: values in one column, or paired by a join, that do not go together in the dialect.
pub(super) fn of_node(node: &LogicalPlan) -> Option<Error> {
    let refuse_mixed = |a: &DataType, b: &DataType, what: &str| {
        let hint = "cast one side";
        common(&[a.clone(), b.clone()])
            .is_err()
            .then(|| Error::refused_with_hint(format!("{what} of {} and {}", said(a), said(b)), hint, Span::empty()))
    };
    match node {
        LogicalPlan::Union(Union { inputs, .. }) => {
            let (first, others) = inputs.split_first()?;
            others.iter().find_map(|other| {
                let pairs = first.schema().fields().iter().zip(other.schema().fields());
                pairs.into_iter().find_map(|(a, b)| refuse_mixed(a.data_type(), b.data_type(), "a column"))
            })
        }
        LogicalPlan::Aggregate(aggregate) => {
            let schema = aggregate.input.schema();
            let groups = aggregate.group_expr.iter().flat_map(|one| match one {
                Expr::GroupingSet(sets) => sets.distinct_expr().into_iter().cloned().collect(),
                one => vec![one.clone()],
            });
            groups.filter_map(|one| one.get_type(schema).ok()).find(has_map).and_then(|_| misplaced::grouped_by_map(Span::empty()).err())
        }
        LogicalPlan::Distinct(distinct) => {
            let has_map = distinct.input().schema().fields().iter().any(|field| has_map(field.data_type()));
            has_map.then(|| Error::refused_with_hint("DISTINCT of maps", "say array_sort(map_entries(…))", Span::empty()))
        }
        LogicalPlan::Join(join) => join.on.iter().find_map(|(left, right)| {
            refuse_mixed(&left.get_type(join.left.schema()).ok()?, &right.get_type(join.right.schema()).ok()?, "joining")
        }),
        _ => None,
    }
}

/// Whether values of a type are maps, or hold some.
fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(of) => has_map(of.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

pub(super) fn of_expression(expression: &Expr, schema: &DFSchema) -> Option<Error> {
    let type_of = |expression: &Expr| expression.get_type(schema).ok();
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => operation(&type_of(left)?, *op, &type_of(right)?),
        Expr::Between(Between { expr, low, high, .. }) => {
            let of = type_of(expr)?;
            comparison(&of, &type_of(low)?).or_else(|| comparison(&of, &type_of(high)?))
        }
        Expr::InList(InList { expr, list, .. }) => {
            let of = type_of(expr)?;
            list.iter().find_map(|one| comparison(&of, &type_of(one)?))
        }
        Expr::Case(Case { expr: None, when_then_expr, .. }) => when_then_expr.iter().find_map(|(when, _)| {
            let of = type_of(when)?;
            let is_other = of.is_numeric() || is_text(&of) || is_time(&of);
            let hint = "compare it, such as … <> 0, or say CASE … WHEN … for a value";
            if is_other { refuse(format!("CASE WHEN {}", said(&of)), hint) } else { None }
        }),
        Expr::Not(of) if type_of(of)?.is_numeric() => refuse("NOT of a number".to_owned(), "compare it, such as … <> 0"),
        Expr::Cast(Cast { expr, field }) => has_cast(&type_of(expr)?, field.data_type()),
        Expr::TryCast(TryCast { expr, field }) => has_cast(&type_of(expr)?, field.data_type()),
        Expr::ScalarSubquery(subquery) if finds_by_more(&subquery.subquery, false) => {
            refuse("a subquery that finds its rows by more than `=`".to_owned(), "join the tables, and group by what is asked for")
        }
        Expr::AggregateFunction(call) if matches!(call.func.name(), "min" | "max") => {
            let of = type_of(call.params.args.first()?)?;
            let nested = matches!(of, DataType::List(_) | DataType::Map(..));
            if nested {
                refuse(format!("`{}` of {}", call.func.name(), word(&of)), "arrays are ordered otherwise by the engine")
            } else {
                None
            }
        }
        _ => None,
    }
}

/// Whether an aggregate of a subquery is over rows that anything but `=` with the query around it finds, which the engine cannot join.
fn finds_by_more(plan: &LogicalPlan, grouped: bool) -> bool {
    let grouped = grouped || matches!(plan, LogicalPlan::Aggregate(_));
    let is_equality = |part: &Expr| matches!(part, Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }));
    let found = match plan {
        LogicalPlan::Filter(filter) if grouped => {
            split_conjunction(&filter.predicate).into_iter().any(|part| part.contains_outer() && !is_equality(part))
        }
        _ => false,
    };
    found || plan.inputs().into_iter().any(|input| finds_by_more(input, grouped))
}

fn refuse(what: String, hint: &str) -> Option<Error> {
    Some(Error::refused_with_hint(what, hint, Span::empty()))
}

fn has_cast(from: &DataType, to: &DataType) -> Option<Error> {
    if exists(from, to) { None } else { refuse(format!("the cast from {} to {}", said(from), said(to)), "the dialect has no such cast") }
}

fn operation(left: &DataType, op: Operator, right: &DataType) -> Option<Error> {
    match op {
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => comparison(left, right),
        Operator::Plus | Operator::Minus | Operator::Multiply => arithmetic(left, op, right),
        _ => None,
    }
}

fn comparison(left: &DataType, right: &DataType) -> Option<Error> {
    if (*left == DataType::Boolean && right.is_numeric()) || (*right == DataType::Boolean && left.is_numeric()) {
        return refuse(format!("comparing {} with {}", said(left), said(right)), "cast one side");
    }
    if has_map(left) || has_map(right) {
        return refuse("comparing maps".to_owned(), "compare array_sort(map_entries(…))");
    }
    None
}

fn arithmetic(left: &DataType, op: Operator, right: &DataType) -> Option<Error> {
    let texts = |data_type: &DataType| is_text(data_type) || data_type.is_null();
    if texts(left) && texts(right) && (is_text(left) || is_text(right)) {
        return refuse(format!("{} {op} {}", said(left), said(right)), "cast the texts to numbers");
    }
    if is_time(left) && is_time(right) {
        return refuse(format!("{} {op} {}", said(left), said(right)), "say datediff or timestampdiff");
    }
    let is_days = |time: &DataType, number: &DataType| matches!(time, DataType::Date32) && number.is_integer() && op != Operator::Multiply;
    if (is_time(left) && right.is_numeric() && !is_days(left, right))
        || (is_time(right) && left.is_numeric() && !(is_days(right, left) && op == Operator::Plus))
    {
        return refuse(format!("{} {op} {}", said(left), said(right)), "say interval '1' day");
    }
    None
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _))
}

/// The type as a person calls it.
fn said(data_type: &DataType) -> String {
    match data_type {
        data_type if is_text(data_type) => "a string".to_owned(),
        data_type if data_type.is_integer() => "a whole number".to_owned(),
        data_type if data_type.is_floating() => "a double".to_owned(),
        data_type if data_type.is_decimal() => "a decimal".to_owned(),
        DataType::Boolean => "a boolean".to_owned(),
        DataType::Date32 | DataType::Date64 => "a date".to_owned(),
        DataType::Timestamp(_, _) => "a timestamp".to_owned(),
        other => word(other),
    }
}
