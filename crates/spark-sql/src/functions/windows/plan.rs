//! Groups by windows of time, as groups by columns that each row has.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{Column, DFSchema, ScalarValue};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::functions_aggregate::{min_max::max_udaf, min_max::min_udaf, sum::sum_udaf};
use tributary_lake::datafusion::functions_window::expr_fn::lag;
use tributary_lake::datafusion::logical_expr::expr::{ScalarFunction, WindowFunction};
use tributary_lake::datafusion::logical_expr::expr_rewriter::NamePreserver;
use tributary_lake::datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder, WindowFrame, WindowFunctionDefinition, lit,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use super::{GAP, NUMBERED, SESSION, SPAN, WINDOW};
use crate::meaning::cast;
use crate::value::{canonical, instant_type};
use crate::{Error, functions};

/// Windows that may hold one row, at most.
const OVERLAPPING_MAX: i64 = 10_000;

/// Gives every group by a window of time its meaning.
///
/// # Errors
/// [`Error::Refused`] for a window that is none, for several in one GROUP BY, and for one that stands elsewhere.
pub(crate) fn apply(plan: LogicalPlan) -> Result<LogicalPlan, Error> {
    let mut refused = None;
    let given = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) if refused.is_none() && aggregate.group_expr.iter().any(has_window) => {
            match grouped(&aggregate) {
                Ok(plan) => Ok(Transformed::yes(plan)),
                Err(error) => {
                    refused = Some(error);
                    Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)))
                }
            }
        }
        node => Ok(Transformed::no(node)),
    });
    let plan = match (given, refused) {
        (_, Some(refused)) => return Err(refused),
        (given, None) => given.map_err(Error::plan)?.data,
    };
    let mut left = false;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            left |= has_window(expression);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    walked.map_err(Error::plan)?;
    if left { Err(misplaced()) } else { Ok(plan) }
}

/// Refuses an expression that asks for a window.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) fn outside(expression: Expr) -> Result<Expr, Error> {
    if has_window(&expression) { Err(misplaced()) } else { Ok(expression) }
}

fn misplaced() -> Error {
    Error::refused_with_hint("a window of time outside GROUP BY", "group by it, or say date_trunc", Span::empty())
}

fn refused(what: &str, hint: &str) -> Error {
    Error::refused_with_hint(what, hint, Span::empty())
}

fn as_window(expression: &Expr) -> Option<&ScalarFunction> {
    match expression {
        Expr::ScalarFunction(call) if [WINDOW, SESSION].contains(&call.func.name()) => Some(call),
        _ => None,
    }
}

fn has_window(expression: &Expr) -> bool {
    expression.exists(|part| Ok(as_window(part).is_some())).unwrap_or(false)
}

fn own(name: &str, arguments: Vec<Expr>) -> QueryResult<Expr> {
    let function = functions::udf(name).ok_or_else(|| DataFusionError::Internal(format!("`{name}` is not written here")))?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
}

fn grouped(aggregate: &Aggregate) -> Result<LogicalPlan, Error> {
    let mut calls: Vec<ScalarFunction> = Vec::new();
    for expression in &aggregate.group_expr {
        if matches!(expression, Expr::GroupingSet(_)) && has_window(expression) {
            return Err(refused("a window of time in ROLLUP, CUBE or GROUPING SETS", "group by it alone"));
        }
        let walked = expression.apply(|part| {
            if let Some(call) = as_window(part).filter(|call| !calls.contains(call)) {
                calls.push(call.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(Error::plan)?;
    }
    let [call] = calls.as_slice() else {
        return Err(refused("several windows of time in one GROUP BY", "group by one, and by the others in a query around it"));
    };
    let micros = call.args[1..].iter().map(micros_of).collect::<Option<Vec<i64>>>();
    let wrong = || refused("this window of time", "say its lengths as texts, such as '10 minutes', without months and years");
    let micros = micros.ok_or_else(wrong)?;
    if micros.iter().take(2).any(|micros| *micros <= 0) {
        return Err(wrong());
    }
    let time = &call.args[0];
    match (call.func.name(), micros.as_slice()) {
        (SESSION, [gap]) => session(aggregate, call, time, *gap).map_err(Error::plan),
        (WINDOW, [length, rest @ ..]) => {
            let (slide, start) = (rest.first().copied().unwrap_or(*length), rest.get(1).copied().unwrap_or_default());
            let overlapping = length.checked_add(slide - 1).map_or(i64::MAX, |sum| sum / slide);
            if slide > *length || start.checked_abs().is_none_or(|start| start >= slide) || overlapping > OVERLAPPING_MAX {
                let hint = "its slide is at most its length, its start is less than its slide, and at most 10000 of them overlap";
                return Err(refused("this window of time", hint));
            }
            hopping(aggregate, call, [*length, slide, start], overlapping).map_err(Error::plan)
        }
        _ => Err(wrong()),
    }
}

/// Windows of one length, each begun a slide after the one before.
fn hopping(aggregate: &Aggregate, call: &ScalarFunction, [length, slide, start]: [i64; 3], overlapping: i64) -> QueryResult<LogicalPlan> {
    let input = LogicalPlanBuilder::from(aggregate.input.as_ref().clone());
    let of = |number: Expr| own(NUMBERED, vec![call.args[0].clone(), lit(length), lit(slide), lit(start), number]);
    let (input, window) = if overlapping == 1 {
        (input.filter(call.args[0].clone().is_not_null())?, of(lit(0_i64))?)
    } else {
        let numbers = LogicalPlanBuilder::values((0..overlapping).map(|number| vec![lit(number)]).collect())?;
        let number = Expr::Column(Column::from_name("column1"));
        let numbers = numbers.project(vec![number.alias(free_name(aggregate.input.schema(), "__window_number"))])?.build()?;
        let number = Expr::Column(Column::from_name(numbers.schema().field(0).name()));
        let window = of(number)?;
        (input.cross_join(numbers)?.filter(window.clone().is_not_null())?, window)
    };
    regrouped(aggregate, input.build()?, call, &window, &[])
}

/// Rows of the same other groups, each at most a gap after the one before.
fn session(aggregate: &Aggregate, call: &ScalarFunction, time: &Expr, gap: i64) -> QueryResult<LogicalPlan> {
    let schema = aggregate.input.schema();
    let name = |text: &str| free_name(schema, text);
    let named = |text: &str| Expr::Column(Column::from_name(name(text)));
    // what else is grouped by becomes columns, which sessions are told apart by
    let others: Vec<&Expr> = aggregate.group_expr.iter().filter(|expression| !has_window(expression)).collect();
    let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let (mut keys, mut keyed) = (Vec::new(), Vec::new());
    for (at, other) in others.into_iter().enumerate() {
        let column = match other {
            Expr::Column(_) => other.clone(),
            other => {
                let key = format!("__session_key_{at}");
                columns.push(other.clone().alias(name(&key)));
                named(&key)
            }
        };
        keyed.push((other.clone(), column.clone()));
        keys.push(column);
    }
    // texts are in order by their times
    let time = match canonical(&time.get_type(schema)?) {
        DataType::Utf8 => cast(time.clone(), &instant_type(), false)?,
        _ => time.clone(),
    };
    columns.push(time.alias(name("__session_time")));
    let time = named("__session_time");
    let rows = LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).filter(call.args[0].clone().is_not_null())?.project(columns)?;
    let in_order = vec![time.clone().sort(true, true)];
    let before = lag(time.clone(), Some(1), None).partition_by(keys.clone()).order_by(in_order.clone()).build()?;
    let rows = rows.window(vec![before.alias(name("__session_before"))])?;
    let begins = own(GAP, vec![named("__session_before"), time.clone(), lit(gap)])?;
    let so_far = over(WindowFunctionDefinition::AggregateUDF(sum_udaf()), begins)
        .partition_by(keys.clone())
        .order_by(in_order)
        .window_frame(WindowFrame::new(Some(true)))
        .build()?;
    let rows = rows.window(vec![so_far.alias(name("__session_number"))])?;
    let of_session = [keys, vec![named("__session_number")]].concat();
    let edge = |function, text: &str| -> QueryResult<Expr> {
        let edge = over(WindowFunctionDefinition::AggregateUDF(function), time.clone()).partition_by(of_session.clone()).build()?;
        Ok(edge.alias(name(text)))
    };
    let rows = rows.window(vec![edge(min_udaf(), "__session_first")?, edge(max_udaf(), "__session_last")?])?;
    let window = own(SPAN, vec![named("__session_first"), named("__session_last"), lit(gap)])?;
    regrouped(aggregate, rows.build()?, call, &window, &keyed)
}

fn over(function: WindowFunctionDefinition, argument: Expr) -> Expr {
    Expr::from(WindowFunction::new(function, vec![argument]))
}

/// A name that no column has.
fn free_name(schema: &DFSchema, name: &str) -> String {
    let mut free = name.to_owned();
    while schema.fields().iter().any(|field| *field.name() == free) {
        free.push('_');
    }
    free
}

/// The same groups and totals over other rows, in which a window is computed otherwise, and others of its groups are columns.
fn regrouped(
    aggregate: &Aggregate,
    input: LogicalPlan,
    call: &ScalarFunction,
    window: &Expr,
    keyed: &[(Expr, Expr)],
) -> QueryResult<LogicalPlan> {
    let names = NamePreserver::new_for_projection();
    let as_window = |expression: &Expr| {
        let is_it = |part: &Expr| matches!(part, Expr::ScalarFunction(found) if found == call);
        let name = names.save(expression);
        let given =
            expression.clone().transform_up(|part| Ok(if is_it(&part) { Transformed::yes(window.clone()) } else { Transformed::no(part) }));
        Ok::<_, DataFusionError>(name.restore(given?.data))
    };
    let group = aggregate.group_expr.iter().map(|expression| match keyed.iter().find(|(other, _)| other == expression) {
        Some((other, column)) => Ok(names.save(other).restore(column.clone())),
        None => as_window(expression),
    });
    let group = group.collect::<QueryResult<Vec<_>>>()?;
    let totals = aggregate.aggr_expr.iter().map(as_window).collect::<QueryResult<Vec<_>>>()?;
    Aggregate::try_new(Arc::new(input), group, totals).map(LogicalPlan::Aggregate)
}

/// A length of time as it is written, `10 minutes` or `1 hour 30 minutes`, in microseconds.
fn micros_of(expression: &Expr) -> Option<i64> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)), _) =
        expression
    else {
        return None;
    };
    let text = text.trim().to_lowercase();
    let words: Vec<&str> = text.strip_prefix("interval ").unwrap_or(&text).split_whitespace().collect();
    if words.is_empty() || words.len() % 2 == 1 {
        return None;
    }
    let parts = words.chunks_exact(2).map(|part| {
        let unit = match part[1].strip_suffix('s').unwrap_or(part[1]) {
            "microsecond" => 1,
            "millisecond" => 1_000,
            "second" => 1_000_000,
            "minute" => 60_000_000,
            "hour" => 3_600_000_000,
            "day" => 86_400_000_000,
            "week" => 7 * 86_400_000_000,
            _ => return None,
        };
        part[0].parse::<i64>().ok()?.checked_mul(unit)
    });
    parts.into_iter().try_fold(0_i64, |sum, part| sum.checked_add(part?))
}
