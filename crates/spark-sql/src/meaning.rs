//! What only types can tell: operations that the engine does, but with another result than the dialect.

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::logical_expr::expr::InList;
use tributary_lake::datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::{Error, quotient, rounding};

/// Refuses a plan in which an operation between these types means something else.
pub(crate) fn check(plan: &LogicalPlan) -> Result<(), Error> {
    let mut refused = None;
    let walked = plan.apply_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        node.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if refused.is_none() {
                    refused = of_expression(part, &schema);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(Error::plan)?;
    if refused.is_none() {
        refused = plan.schema().fields().iter().find(|field| is_span_of_time(field.data_type())).map(|field| {
            Error::refused_with_hint(format!("the interval `{}` as a column", field.name()), "intervals can only be added", Span::empty())
        });
    }
    refused.map_or(Ok(()), Err)
}

/// Refuses an expression over these columns in which an operation means something else.
pub(crate) fn check_expression(expression: &Expr, schema: &DFSchema) -> Result<(), Error> {
    let mut refused = None;
    let walked = expression.apply(|part| {
        if refused.is_none() {
            refused = of_expression(part, schema);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::plan)?;
    refused.map_or(Ok(()), Err)
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
        quotient::NAME if types.iter().any(DataType::is_decimal) && !types.iter().any(DataType::is_floating) => {
            refuse("the division of decimals".to_owned(), "its scale is another in the dialect; cast one side to double")
        }
        rounding::NAME if !types.first().is_some_and(DataType::is_floating) => {
            refuse("`round` of what is no double".to_owned(), "cast it to double")
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
