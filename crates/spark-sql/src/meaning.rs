//! What only types can tell: operations that the engine does, but with another result than the dialect. They are said otherwise,
//! or refused.

use std::ops::Not as _;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{DFSchema, ScalarValue};
use tributary_lake::datafusion::logical_expr::expr::{InList, ScalarFunction};
use tributary_lake::datafusion::logical_expr::expr_rewriter::NamePreserver;
use tributary_lake::datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::{Error, checked, decimal, quotient, rounding};

/// Gives the operations of a plan the dialect's meaning.
///
/// # Errors
/// [`Error::Refused`] for an operation between types that means something else here and cannot be said otherwise.
pub(crate) fn apply(plan: LogicalPlan) -> Result<LogicalPlan, Error> {
    let mut refused = None;
    let given = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        node.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
        node.apply_expressions(|expression| look(expression, &schema, &mut refused))?;
        let names = NamePreserver::new(&node);
        let changed = node.map_expressions(|expression| {
            let name = names.save(&expression);
            Ok(expression.transform_up(|part| meant(part, &schema))?.update_data(|expression| name.restore(expression)))
        })?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    });
    let plan = given.map_err(Error::plan)?.data;
    if refused.is_none() {
        refused = plan.schema().fields().iter().find(|field| is_span_of_time(field.data_type())).map(|field| {
            Error::refused_with_hint(format!("the interval `{}` as a column", field.name()), "intervals can only be added", Span::empty())
        });
    }
    refused.map_or(Ok(plan), Err)
}

/// Gives the operations of an expression over these columns the dialect's meaning.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_to(expression: Expr, schema: &DFSchema) -> Result<Expr, Error> {
    let mut refused = None;
    look(&expression, schema, &mut refused).map_err(Error::plan)?;
    match refused {
        Some(refused) => Err(refused),
        None => Ok(expression.transform_up(|part| meant(part, schema)).map_err(Error::plan)?.data),
    }
}

/// Notes the first part of an expression that is refused.
fn look(expression: &Expr, schema: &DFSchema, refused: &mut Option<Error>) -> datafusion::error::Result<TreeNodeRecursion> {
    expression.apply(|part| {
        if refused.is_none() {
            *refused = of_expression(part, schema);
        }
        Ok(TreeNodeRecursion::Continue)
    })
}

/// What stands for a part of an expression whose own parts have been given their meaning.
fn meant(part: Expr, schema: &DFSchema) -> datafusion::error::Result<Transformed<Expr>> {
    let is_whole = |side: &Expr| side.get_type(schema).is_ok_and(|data_type| data_type.is_integer());
    let is_decimal = |side: &Expr| side.get_type(schema).is_ok_and(|data_type| data_type.is_decimal());
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::IsNotDistinctFrom | Operator::IsDistinctFrom), right }) => {
            Ok(match null_safe(&left, &right) {
                Some(same) if op == Operator::IsNotDistinctFrom => Transformed::yes(same),
                Some(same) => Transformed::yes(Expr::Not(Box::new(same))),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_whole(&left) && is_whole(&right) => Ok(match checked::function(op) {
            Some(function) => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![*left, *right]))),
            None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        }),
        // beside a decimal a whole number has just the digits that are written
        Expr::ScalarFunction(mut call) if call.name() == quotient::NAME && call.args.iter().any(is_decimal) => {
            for argument in &mut call.args {
                if let Expr::Literal(ScalarValue::Int64(Some(number)), metadata) = argument {
                    *argument = Expr::Literal(decimal::of_literal(*number), metadata.clone());
                }
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        part => Ok(Transformed::no(part)),
    }
}

/// `a <=> b` said so that the engine keeps it: of a null, and of a cast that may give one, it would compare what is cast instead.
fn null_safe(left: &Expr, right: &Expr) -> Option<Expr> {
    let is_null = |side: &Expr| Expr::IsNull(Box::new(side.clone()));
    if is_null_literal(left) || is_null_literal(right) {
        return Some(is_null(if is_null_literal(right) { left } else { right }));
    }
    let may_give_null = |side: &Expr| matches!(side, Expr::TryCast(_) | Expr::Cast(_));
    (may_give_null(left) || may_give_null(right)).then(|| {
        let neither = is_null(left).or(is_null(right)).not();
        is_null(left).and(is_null(right)).or(neither.and(left.clone().eq(right.clone())).is_true())
    })
}

fn is_null_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => is_null_literal(expr),
        _ => false,
    }
}

fn of_expression(expression: &Expr, schema: &DFSchema) -> Option<Error> {
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
        Expr::Cast(Cast { expr, field }) => cast(&type_of(expr)?, field.data_type()),
        Expr::TryCast(TryCast { expr, field }) => cast(&type_of(expr)?, field.data_type()),
        Expr::ScalarFunction(call) => {
            let types: Vec<DataType> = call.args.iter().filter_map(type_of).collect();
            function(call.name(), &types)
        }
        _ => None,
    }
}

fn refuse(what: String, hint: &str) -> Option<Error> {
    Some(Error::refused_with_hint(what, hint, Span::empty()))
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
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Modulo => arithmetic(left, op, right),
        _ => None,
    }
}

fn comparison(left: &DataType, right: &DataType) -> Option<Error> {
    let mixed = |a: &DataType, b: &DataType| is_text(a) && (b.is_numeric() || *b == DataType::Boolean);
    if mixed(left, right) || mixed(right, left) {
        return refuse(format!("comparing {} with {}", word(left), word(right)), "cast one side: the engine would compare texts");
    }
    if (*left == DataType::Boolean && right.is_numeric()) || (*right == DataType::Boolean && left.is_numeric()) {
        return refuse(format!("comparing {} with {}", word(left), word(right)), "cast one side");
    }
    None
}

fn arithmetic(left: &DataType, op: Operator, right: &DataType) -> Option<Error> {
    if is_text(left) || is_text(right) {
        return refuse(format!("{} {op} {}", word(left), word(right)), "cast the text to a number");
    }
    if is_time(left) && is_time(right) {
        return refuse(format!("{} {op} {}", word(left), word(right)), "differences of times cannot be made in this release");
    }
    if (is_time(left) && right.is_numeric()) || (is_time(right) && left.is_numeric()) {
        return refuse(format!("{} {op} {}", word(left), word(right)), "say interval '1' day");
    }
    if op == Operator::Modulo && (left.is_floating() || right.is_floating()) {
        return refuse("the remainder of doubles".to_owned(), "by zero the engine gives NaN, the dialect stops");
    }
    None
}

fn cast(from: &DataType, to: &DataType) -> Option<Error> {
    let refused = |hint: &str| refuse(format!("the cast from {} to {}", word(from), word(to)), hint);
    if is_text(to) && matches!(from, DataType::Timestamp(_, _)) {
        return refused("the engine writes times in another form");
    }
    if is_text(to) && from.is_floating() {
        return refused("the engine writes large and small doubles in another form; cast to decimal first");
    }
    if (matches!(to, DataType::Timestamp(_, _)) && from.is_numeric()) || (matches!(from, DataType::Timestamp(_, _)) && to.is_numeric()) {
        return refused("the engine counts in another unit");
    }
    if (matches!(to, DataType::Date32 | DataType::Date64) && from.is_numeric())
        || (matches!(from, DataType::Date32 | DataType::Date64) && to.is_numeric())
    {
        return refused("the dialect has no such cast");
    }
    None
}

fn function(name: &str, types: &[DataType]) -> Option<Error> {
    match name {
        quotient::NAME if !types.iter().all(|data_type| data_type.is_numeric() || data_type.is_null()) => {
            refuse("the division of what is no number".to_owned(), "cast both sides to numbers")
        }
        rounding::NAME if !types.first().is_some_and(DataType::is_numeric) => {
            refuse("`round` of what is no number".to_owned(), "cast it to a number")
        }
        "abs" | "signum" | "sqrt" | "exp" if types.iter().any(is_text) => refuse(format!("a text in `{name}`"), "cast it to a number"),
        _ => None,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _))
}

fn is_span_of_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

/// The type as the dialect calls it.
fn word(data_type: &DataType) -> String {
    match data_type {
        data_type if is_text(data_type) => "a string".to_owned(),
        data_type if data_type.is_integer() => "a whole number".to_owned(),
        data_type if data_type.is_floating() => "a double".to_owned(),
        data_type if data_type.is_decimal() => "a decimal".to_owned(),
        DataType::Boolean => "a boolean".to_owned(),
        DataType::Date32 | DataType::Date64 => "a date".to_owned(),
        DataType::Timestamp(_, _) => "a timestamp".to_owned(),
        other => other.to_string(),
    }
}
