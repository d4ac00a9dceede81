//! What only types can tell: operations that the engine does, but with another result than the dialect. They are said otherwise,
//! or refused.

use std::ops::Not as _;
use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{DFSchema, ScalarValue};
use tributary_lake::datafusion::logical_expr::expr::{Case, InList, InSubquery, ScalarFunction};
use tributary_lake::datafusion::logical_expr::expr_rewriter::NamePreserver;
use tributary_lake::datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, TryCast, Union, lit,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::convert::{self, exists, word};
use crate::functions;
use crate::growth::Grown;
use crate::together::{both, in_one_type, sides, together};
use crate::value::{canonical, instant_type};
use crate::{Error, decimal, quotient, sql_function};

/// Gives the operations of a plan the dialect's meaning.
///
/// # Errors
/// [`Error::Refused`] for an operation between types that means something else here and cannot be said otherwise.
pub(crate) fn apply(plan: LogicalPlan) -> Result<LogicalPlan, Error> {
    let (mut refused, mut grown) = (None, Grown::default());
    let given = plan.transform_up_with_subqueries(|node| {
        if refused.is_none() {
            refused = of_node(&node);
        }
        // what stands below may have got other types
        let node = sides(node.recompute_schema()?)?;
        let mut schema = DFSchema::empty();
        node.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
        node.apply_expressions(|expression| look(expression, &schema, &mut refused, &mut grown))?;
        let names = NamePreserver::new(&node);
        let one = |expression: Expr| {
            let name = names.save(&expression);
            Ok(expression.transform_up(|part| meant(part, &schema))?.update_data(|expression| name.restore(expression)))
        };
        // what stands above groups of groups knows their expressions by name, each by itself
        let changed = node.map_expressions(|expression| match expression {
            sets @ Expr::GroupingSet(_) => sets.map_children(one),
            expression => one(expression),
        })?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    });
    let plan = match (given, refused.take()) {
        (_, Some(refused)) => return Err(refused),
        (given, None) => given.map_err(Error::plan)?.data,
    };
    let interval = plan.schema().fields().iter().find(|field| is_span_of_time(field.data_type()));
    match interval.map(|field| field.name()) {
        Some(name) => {
            Err(Error::refused_with_hint(format!("the interval `{name}` as a column"), "intervals can only be added", Span::empty()))
        }
        None => Ok(plan),
    }
}

/// Gives the operations of an expression over these columns the dialect's meaning.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_to(expression: Expr, schema: &DFSchema) -> Result<Expr, Error> {
    let mut refused = None;
    look(&expression, schema, &mut refused, &mut Grown::default()).map_err(Error::plan)?;
    match refused {
        Some(refused) => Err(refused),
        None => Ok(expression.transform_up(|part| meant(part, schema)).map_err(Error::plan)?.data),
    }
}

/// Notes the first part of an expression that is refused.
fn look(
    expression: &Expr,
    schema: &DFSchema,
    refused: &mut Option<Error>,
    grown: &mut Grown,
) -> datafusion::error::Result<TreeNodeRecursion> {
    if refused.is_none() {
        *refused = grown.count(expression)?;
    }
    expression.apply(|part| {
        if refused.is_none() {
            *refused = of_expression(part, schema);
        }
        Ok(TreeNodeRecursion::Continue)
    })
}

/// A call of what is written here.
fn own(name: &str, arguments: Vec<Expr>) -> Option<Expr> {
    let function: Arc<ScalarUDF> = functions::udf(name)?;
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
}

/// An expression in another type, by the dialect's cast.
fn cast(expression: Expr, from: &DataType, to: &DataType, lenient: bool) -> Option<Expr> {
    own(if lenient { "try_cast" } else { "cast" }, vec![expression, lit(word(to))]).filter(|_| from != to)
}

/// A value in another type, by the engine's cast where that is the dialect's.
pub(crate) fn in_type(expression: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to {
        expression
    } else if let Some(number) = number_in_type(&expression, to) {
        number
    } else if engine_casts(from, to) {
        Expr::Cast(Cast::new(Box::new(expression), to.clone()))
    } else {
        cast(expression.clone(), from, to, false).unwrap_or(expression)
    }
}

/// A number that is written, in another type; none where it does not fit, which is an error of the rows.
fn number_in_type(expression: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, metadata) = expression else { return None };
    let number = value.data_type().is_numeric().then(|| value.to_array().ok()).flatten()?;
    let number = convert::cast(&number, to, false).ok()?;
    Some(Expr::Literal(ScalarValue::try_from_array(&number, 0).ok()?, metadata.clone()))
}

/// Whether the engine casts between two types as the dialect does.
fn engine_casts(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let width = |data_type: &D| data_type.primitive_width().unwrap_or(0);
    match (from, to) {
        (from, to) if canonical(from) == canonical(to) => true,
        (D::Null, _) => true,
        (from, to) if from.is_integer() && to.is_integer() => width(from) <= width(to),
        (from, D::Float32 | D::Float64) if from.is_integer() => true,
        (D::Float32, D::Float64) => true,
        (D::Date32, D::Timestamp(..)) => true,
        (D::Decimal128(p, s), D::Decimal128(q, t)) => t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s),
        (D::Boolean, to) if to.is_integer() => true,
        (from, D::Utf8) => from.is_integer() || matches!(from, D::Boolean),
        _ => false,
    }
}

/// What stands for a part of an expression whose own parts have been given their meaning.
fn meant(part: Expr, schema: &DFSchema) -> datafusion::error::Result<Transformed<Expr>> {
    let type_of = |expression: &Expr| expression.get_type(schema).ok().map(|data_type| canonical(&data_type));
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => binary(*left, op, *right, schema),
        Expr::Cast(Cast { expr, field }) => match type_of(&expr) {
            Some(from) if !engine_casts(&from, field.data_type()) && exists(&from, field.data_type()) => {
                let to = canonical(field.data_type());
                Ok(match cast((*expr).clone(), &from, &to, false) {
                    Some(cast) => Transformed::yes(cast),
                    None => Transformed::no(Expr::Cast(Cast { expr, field })),
                })
            }
            _ => Ok(Transformed::no(Expr::Cast(Cast { expr, field }))),
        },
        Expr::TryCast(TryCast { expr, field }) => match type_of(&expr) {
            Some(from) if !engine_casts(&from, field.data_type()) && exists(&from, field.data_type()) => {
                let to = canonical(field.data_type());
                Ok(match cast((*expr).clone(), &from, &to, true) {
                    Some(cast) => Transformed::yes(cast),
                    None => Transformed::no(Expr::TryCast(TryCast { expr, field })),
                })
            }
            _ => Ok(Transformed::no(Expr::TryCast(TryCast { expr, field }))),
        },
        Expr::Negative(inside) if type_of(&inside).is_some_and(|of| of.is_numeric() || of == DataType::Utf8) => {
            Ok(own("negative", vec![(*inside).clone()]).map_or_else(|| Transformed::no(Expr::Negative(inside)), Transformed::yes))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let (parts, changed) = together(vec![*expr, *low, *high], schema)?;
            Ok(match <[Expr; 3]>::try_from(parts) {
                Ok([expr, low, high]) => {
                    let between = Between { expr: Box::new(expr), negated, low: Box::new(low), high: Box::new(high) };
                    Transformed::new(Expr::Between(between), changed, TreeNodeRecursion::Continue)
                }
                Err(_) => return Err(datafusion::error::DataFusionError::Internal("BETWEEN has three parts".to_owned())),
            })
        }
        Expr::InList(InList { expr, list, negated }) => {
            let all = [*expr].into_iter().chain(list).collect();
            let (mut parts, changed) = together(all, schema)?;
            let expr = Box::new(parts.remove(0));
            Ok(Transformed::new(Expr::InList(InList { expr, list: parts, negated }), changed, TreeNodeRecursion::Continue))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (expr, subquery, changed) = in_one_type(*expr, subquery, schema)?;
            let told = Expr::InSubquery(InSubquery { expr: Box::new(expr), subquery, negated });
            Ok(Transformed::new(told, changed, TreeNodeRecursion::Continue))
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => case(expr, when_then_expr, else_expr, schema),
        Expr::ScalarFunction(ScalarFunction { func, args }) if sql_function::takes(&func).is_some() => {
            let takes = sql_function::takes(&func).unwrap_or_default();
            let given = args.into_iter().zip(takes).map(|(argument, to)| match type_of(&argument) {
                Some(from) if !engine_casts(&from, to) => cast(argument.clone(), &from, to, false).unwrap_or(argument),
                _ => argument,
            });
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { args: given.collect(), func: Arc::clone(&func) })))
        }
        // beside a decimal a whole number has just the digits that are written
        Expr::ScalarFunction(ScalarFunction { func, args }) if takes_two(func.name()) && args.len() == 2 => {
            let types: Vec<DataType> = args.iter().map(|side| type_of(side).unwrap_or(DataType::Null)).collect();
            let args = args.into_iter().enumerate().map(|(at, side)| beside(side, &types[1 - at])).collect();
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
        }
        Expr::ScalarFunction(call) if call.name() == "coalesce" => {
            let (args, changed) = together(call.args, schema)?;
            Ok(Transformed::new(Expr::ScalarFunction(ScalarFunction { func: call.func, args }), changed, TreeNodeRecursion::Continue))
        }
        part => Ok(Transformed::no(part)),
    }
}

/// The results of CASE in one type, and what is compared in another.
fn case(
    operand: Option<Box<Expr>>,
    branches: Vec<(Box<Expr>, Box<Expr>)>,
    otherwise: Option<Box<Expr>>,
    schema: &DFSchema,
) -> datafusion::error::Result<Transformed<Expr>> {
    let (conditions, results): (Vec<Expr>, Vec<Expr>) = branches.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let count = results.len();
    let (mut results, changed) = together(results.into_iter().chain(otherwise.map(|one| *one)).collect(), schema)?;
    let otherwise = (results.len() > count).then(|| results.pop()).flatten().map(Box::new);
    let (operand, conditions, compared) = match operand {
        Some(operand) => {
            let (mut parts, compared) = together([*operand].into_iter().chain(conditions).collect(), schema)?;
            (Some(Box::new(parts.remove(0))), parts, compared)
        }
        None => (None, conditions, false),
    };
    let branches = conditions.into_iter().zip(results).map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    let told = Expr::Case(Case { expr: operand, when_then_expr: branches, else_expr: otherwise });
    Ok(Transformed::new(told, changed || compared, TreeNodeRecursion::Continue))
}

fn binary(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> datafusion::error::Result<Transformed<Expr>> {
    let type_of = |side: &Expr| side.get_type(schema).map_or(DataType::Null, |data_type| canonical(&data_type));
    let (from, to) = (type_of(&left), type_of(&right));
    let again = |left: Expr, right: Expr| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
    match op {
        Operator::IsNotDistinctFrom | Operator::IsDistinctFrom => {
            let (left, right, changed) = both(left, right, schema)?;
            Ok(match null_safe(&left, &right) {
                Some(same) if op == Operator::IsNotDistinctFrom => Transformed::yes(same),
                Some(same) => Transformed::yes(Expr::Not(Box::new(same))),
                None => Transformed::new(again(left, right), changed, TreeNodeRecursion::Continue),
            })
        }
        Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
            let (left, right, changed) = both(left, right, schema)?;
            Ok(Transformed::new(again(left, right), changed, TreeNodeRecursion::Continue))
        }
        Operator::Plus | Operator::Minus if from == DataType::Date32 && (to.is_integer()) => {
            let name = if op == Operator::Plus { "date_add" } else { "date_sub" };
            Ok(own(name, vec![left.clone(), right.clone()]).map_or_else(|| Transformed::no(again(left, right)), Transformed::yes))
        }
        Operator::Plus if to == DataType::Date32 && from.is_integer() => {
            Ok(own("date_add", vec![right.clone(), left.clone()]).map_or_else(|| Transformed::no(again(left, right)), Transformed::yes))
        }
        Operator::Plus | Operator::Minus if is_span_of_time(&to) => {
            let left = match from {
                DataType::Utf8 => cast(left.clone(), &from, &instant_type(), false).unwrap_or(left),
                // a day and hours are an instant
                DataType::Date32 if !is_of_days(&right) => cast(left.clone(), &from, &instant_type(), false).unwrap_or(left),
                _ => left,
            };
            Ok(Transformed::yes(again(left, right)))
        }
        Operator::Plus if is_span_of_time(&from) && to == DataType::Date32 && !is_of_days(&left) => {
            let right = cast(right.clone(), &to, &instant_type(), false).unwrap_or(right);
            Ok(Transformed::yes(again(left, right)))
        }
        Operator::Plus | Operator::Minus | Operator::Multiply if is_checked(&from, &to) => {
            let (left, right) = (beside(left, &to), beside(right, &from));
            let name = match op {
                Operator::Plus => "plus",
                Operator::Minus => "minus",
                _ => "times",
            };
            Ok(own(name, vec![left.clone(), right.clone()]).map_or_else(|| Transformed::no(again(left, right)), Transformed::yes))
        }
        Operator::Plus | Operator::Minus | Operator::Multiply if from.is_numeric() && to.is_numeric() => {
            let (left, right, changed) = both(left, right, schema)?;
            Ok(Transformed::new(again(left, right), changed, TreeNodeRecursion::Continue))
        }
        _ => Ok(Transformed::no(again(left, right))),
    }
}

/// Whether a function is of two numbers of which one may be a decimal.
fn takes_two(name: &str) -> bool {
    matches!(name, quotient::NAME | "mod" | "pmod" | "div" | "try_add" | "try_subtract" | "try_multiply" | "try_divide" | "try_mod")
}

/// A whole number that is written beside a decimal, as a decimal of its digits.
fn beside(side: Expr, other: &DataType) -> Expr {
    match side {
        Expr::Literal(value, metadata) if other.is_decimal() => {
            let number = match value {
                ScalarValue::Int8(Some(number)) => Some(i64::from(number)),
                ScalarValue::Int16(Some(number)) => Some(i64::from(number)),
                ScalarValue::Int32(Some(number)) => Some(i64::from(number)),
                ScalarValue::Int64(number) => number,
                _ => None,
            };
            Expr::Literal(number.map_or(value, decimal::of_literal), metadata)
        }
        side => side,
    }
}

/// Whether an operation of these is made here: all but those of doubles, which the engine has as the dialect.
fn is_checked(left: &DataType, right: &DataType) -> bool {
    let number = |data_type: &DataType| data_type.is_numeric() || *data_type == DataType::Utf8 || data_type.is_null();
    let double = |data_type: &DataType| matches!(data_type, DataType::Float64);
    number(left)
        && number(right)
        && !(left.is_null() && right.is_null())
        && !((double(left) || double(right)) && left.is_numeric() && right.is_numeric())
}

/// Whether an interval is of whole days, months or years.
fn is_of_days(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds == 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => true,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds == 0,
        _ => false,
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

/// What is refused of a node: texts and other values in one column, which the engine would make texts.
fn of_node(node: &LogicalPlan) -> Option<Error> {
    let mixed = |a: &DataType, b: &DataType| {
        let (a, b) = (canonical(a), canonical(b));
        let is_other = |data_type: &DataType| *data_type != DataType::Utf8 && !data_type.is_null();
        (a == DataType::Utf8 && is_other(&b)) || (b == DataType::Utf8 && is_other(&a))
    };
    let refuse_mixed = |a: &DataType, b: &DataType, what: &str| {
        mixed(a, b).then(|| Error::refused_with_hint(format!("{what} of {} and {}", said(a), said(b)), "cast one side", Span::empty()))
    };
    match node {
        LogicalPlan::Union(Union { inputs, .. }) => {
            let (first, others) = inputs.split_first()?;
            others.iter().find_map(|other| {
                let pairs = first.schema().fields().iter().zip(other.schema().fields());
                pairs.into_iter().find_map(|(a, b)| refuse_mixed(a.data_type(), b.data_type(), "a column"))
            })
        }
        LogicalPlan::Join(join) => join.on.iter().find_map(|(left, right)| {
            refuse_mixed(&left.get_type(join.left.schema()).ok()?, &right.get_type(join.right.schema()).ok()?, "joining")
        }),
        _ => None,
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
        Expr::Cast(Cast { expr, field }) => has_cast(&type_of(expr)?, field.data_type()),
        Expr::TryCast(TryCast { expr, field }) => has_cast(&type_of(expr)?, field.data_type()),
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

fn is_span_of_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
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
