//! What only types can tell: operations that the engine does, but with another result than the dialect. They are said otherwise,
//! or refused.

mod refusal;

use std::ops::Not as _;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{DFSchema, ScalarValue};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::logical_expr::expr::{Case, InList, InSubquery, ScalarFunction};
use tributary_lake::datafusion::logical_expr::expr_rewriter::NamePreserver;
use tributary_lake::datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, lit};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::convert::{self, exists, word};
use crate::functions;
use crate::growth::Grown;
use crate::meaning::refusal::{of_expression, of_node};
use crate::together::{both, in_one_type, meeting, sides, together};
use crate::value::{canonical, instant_type};
use crate::{Error, decimal, quotient, sql_function, strings};

/// The function of `BETWEEN` for a value that is another each time.
pub(crate) const BETWEEN: &str = "between";

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
fn look(expression: &Expr, schema: &DFSchema, refused: &mut Option<Error>, grown: &mut Grown) -> QueryResult<TreeNodeRecursion> {
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
pub(crate) fn own(name: &str, arguments: Vec<Expr>) -> QueryResult<Expr> {
    let function = functions::udf(name).ok_or_else(|| DataFusionError::Internal(format!("`{name}` is not written here")))?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
}

/// An expression in another type, by the dialect's cast.
pub(crate) fn cast(expression: Expr, to: &DataType, lenient: bool) -> QueryResult<Expr> {
    own(if lenient { "try_cast" } else { "cast" }, vec![expression, lit(word(to))])
}

/// A value in another type, by the engine's cast where that is the dialect's.
pub(crate) fn in_type(expression: Expr, from: &DataType, to: &DataType) -> QueryResult<Expr> {
    if from == to {
        Ok(expression)
    } else if let Some(number) = number_in_type(&expression, to) {
        Ok(number)
    } else if engine_casts(from, to) {
        Ok(Expr::Cast(Cast::new(Box::new(expression), to.clone())))
    } else {
        cast(expression, to, false)
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
fn meant(part: Expr, schema: &DFSchema) -> QueryResult<Transformed<Expr>> {
    let type_of = |expression: &Expr| expression.get_type(schema).ok().map(|data_type| canonical(&data_type));
    let is_made_here = |of: &Expr, to: &DataType| type_of(of).is_some_and(|from| !engine_casts(&from, to) && exists(&from, to));
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => binary(*left, op, *right, schema),
        Expr::Cast(Cast { expr, field }) if is_made_here(&expr, field.data_type()) => {
            cast(*expr, &canonical(field.data_type()), false).map(Transformed::yes)
        }
        Expr::TryCast(TryCast { expr, field }) if is_made_here(&expr, field.data_type()) => {
            cast(*expr, &canonical(field.data_type()), true).map(Transformed::yes)
        }
        Expr::Negative(inside) if type_of(&inside).is_some_and(|of| of.is_numeric() || of == DataType::Utf8) => {
            own("negative", vec![*inside]).map(Transformed::yes)
        }
        Expr::Between(between) => self::between(between, schema),
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
        Expr::Not(inside) if type_of(&inside) == Some(DataType::Utf8) => {
            Ok(Transformed::yes(Expr::Not(Box::new(cast(*inside, &DataType::Boolean, false)?))))
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => case(expr, when_then_expr, else_expr, schema),
        Expr::ScalarFunction(call) => called(call, schema),
        part => Ok(Transformed::no(part)),
    }
}

/// A call whose arguments are brought to the types that it takes, or together.
fn called(ScalarFunction { func, args }: ScalarFunction, schema: &DFSchema) -> QueryResult<Transformed<Expr>> {
    let type_of = |expression: &Expr| expression.get_type(schema).ok().map(|data_type| canonical(&data_type));
    let call = ScalarFunction { func, args };
    if let Some(argument) = strings::unsaid(&call, type_of)? {
        return Ok(Transformed::yes(argument));
    }
    let ScalarFunction { func, args } = call;
    let (args, changed) = if let Some(takes) = sql_function::takes(&func) {
        let given = args.into_iter().zip(takes).map(|(argument, to)| match type_of(&argument) {
            Some(from) if !engine_casts(&from, to) => cast(argument, to, false),
            _ => Ok(argument),
        });
        (given.collect::<QueryResult<Vec<_>>>()?, true)
    } else if takes_two(func.name()) && args.len() == 2 {
        // beside a decimal a whole number has just the digits that are written
        let types: Vec<DataType> = args.iter().map(|side| type_of(side).unwrap_or(DataType::Null)).collect();
        (args.into_iter().enumerate().map(|(at, side)| beside(side, &types[1 - at])).collect(), true)
    } else if func.name() == "coalesce" {
        together(args, schema)?
    } else {
        (args, false)
    };
    Ok(Transformed::new(Expr::ScalarFunction(ScalarFunction { func, args }), changed, TreeNodeRecursion::Continue))
}

/// `a BETWEEN low AND high`: each end is compared by itself, in the type that it and the value meet in.
fn between(Between { expr, negated, low, high }: Between, schema: &DFSchema) -> QueryResult<Transformed<Expr>> {
    if expr.is_volatile() {
        let (parts, _) = together(vec![*expr, *low, *high], schema)?;
        let within = own(BETWEEN, parts)?;
        return Ok(Transformed::yes(if negated { within.not() } else { within }));
    }
    if !meets_apart(&expr, &[&low, &high], schema)? {
        return Ok(Transformed::no(Expr::Between(Between { expr, negated, low, high })));
    }
    let least = binary((*expr).clone(), Operator::GtEq, *low, schema)?.data;
    let most = binary(*expr, Operator::LtEq, *high, schema)?.data;
    let within = least.and(most);
    Ok(Transformed::yes(if negated { within.not() } else { within }))
}

/// Whether a value meets any of others in another type than the engine would compare them all in.
fn meets_apart(value: &Expr, others: &[&Expr], schema: &DFSchema) -> QueryResult<bool> {
    let type_of = |expression: &Expr| expression.get_type(schema).map(|data_type| canonical(&data_type));
    let mut types = vec![type_of(value)?];
    for other in others {
        types.push(type_of(other)?);
    }
    Ok(meeting(&types).map_or(true, |to| to.is_some()))
}

/// The results of CASE in one type; what is compared, each with the operand by itself.
fn case(
    operand: Option<Box<Expr>>,
    branches: Vec<(Box<Expr>, Box<Expr>)>,
    otherwise: Option<Box<Expr>>,
    schema: &DFSchema,
) -> QueryResult<Transformed<Expr>> {
    let (conditions, results): (Vec<Expr>, Vec<Expr>) = branches.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let count = results.len();
    let (mut results, changed) = together(results.into_iter().chain(otherwise.map(|one| *one)).collect(), schema)?;
    let otherwise = (results.len() > count).then(|| results.pop()).flatten().map(Box::new);
    let (operand, conditions, compared) = match operand {
        Some(operand) if meets_apart(&operand, &conditions.iter().collect::<Vec<_>>(), schema)? => {
            let equal = conditions.into_iter().map(|one| Ok(binary((*operand).clone(), Operator::Eq, one, schema)?.data));
            (None, equal.collect::<QueryResult<Vec<_>>>()?, true)
        }
        operand => (operand, conditions, false),
    };
    let branches = conditions.into_iter().zip(results).map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    let told = Expr::Case(Case { expr: operand, when_then_expr: branches, else_expr: otherwise });
    Ok(Transformed::new(told, changed || compared, TreeNodeRecursion::Continue))
}

fn binary(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> QueryResult<Transformed<Expr>> {
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
        Operator::And | Operator::Or if from == DataType::Utf8 || to == DataType::Utf8 => {
            let as_truth = |side: Expr, of: &DataType| if *of == DataType::Utf8 { cast(side, &DataType::Boolean, false) } else { Ok(side) };
            Ok(Transformed::yes(again(as_truth(left, &from)?, as_truth(right, &to)?)))
        }
        Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
            let (left, right, changed) = both(left, right, schema)?;
            Ok(Transformed::new(again(left, right), changed, TreeNodeRecursion::Continue))
        }
        Operator::Plus | Operator::Minus if from == DataType::Date32 && to.is_integer() => {
            let name = if op == Operator::Plus { "date_add" } else { "date_sub" };
            own(name, vec![left, right]).map(Transformed::yes)
        }
        Operator::Plus if to == DataType::Date32 && from.is_integer() => own("date_add", vec![right, left]).map(Transformed::yes),
        Operator::Plus | Operator::Minus if is_span_of_time(&to) => {
            // a day and hours are an instant
            let as_instant = from == DataType::Utf8 || (from == DataType::Date32 && !is_of_days(&right));
            let left = if as_instant { cast(left, &instant_type(), false)? } else { left };
            Ok(Transformed::yes(again(left, right)))
        }
        Operator::Plus if is_span_of_time(&from) && to == DataType::Date32 && !is_of_days(&left) => {
            let right = cast(right, &instant_type(), false)?;
            Ok(Transformed::yes(again(left, right)))
        }
        Operator::Plus | Operator::Minus | Operator::Multiply if is_checked(&from, &to) => {
            let name = match op {
                Operator::Plus => "plus",
                Operator::Minus => "minus",
                _ => "times",
            };
            own(name, vec![beside(left, &to), beside(right, &from)]).map(Transformed::yes)
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

fn is_span_of_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}
