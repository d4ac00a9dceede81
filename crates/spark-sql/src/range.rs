//! `range(end)`, `range(start, end[, step])`: whole numbers in the column `id`, `end` left out.

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, Query, Spanned, Statement, TableFunctionArgs, UnaryOperator,
};
use tributary_lake::datafusion::sql::sqlparser::dialect::DatabricksDialect;
use tributary_lake::datafusion::sql::sqlparser::parser::Parser;

use crate::scope::Column;
use crate::{Error, error, literal};

/// What the function is called.
pub(crate) const NAME: &str = "range";

/// Whether a table function is this one.
pub(crate) fn is_range(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [one] if one.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(NAME)))
}

/// Its column.
pub(crate) fn columns() -> Vec<Column> {
    vec![Column::new("id", Some(DataType::Int64))]
}

/// The query of the engine that gives its rows.
///
/// # Errors
/// When its arguments are not one to three whole numbers, or the step is none.
pub(crate) fn query(name: &ObjectName, arguments: &TableFunctionArgs) -> Result<Query, Error> {
    let numbers: Option<Vec<i64>> = arguments.args.iter().map(of_argument).collect();
    let bounds = match numbers.as_deref() {
        Some([end]) => Some((0, *end, 1)),
        Some([start, end]) => Some((*start, *end, 1)),
        Some([start, end, step]) if *step != 0 => Some((*start, *end, *step)),
        _ => None,
    };
    let expected = "an end, or a start, an end and optionally a step other than 0: whole numbers as they are";
    let wrong = || Error::Argument { what: NAME.to_owned(), expected, span: error::position(name.span()) };
    let (start, end, step) = bounds.filter(|_| arguments.settings.is_none()).ok_or_else(wrong)?;
    // The engine takes a step away from the end for a mistake; here it gives nothing.
    let end = if (step > 0) == (start < end) { end } else { start };
    let text = format!("SELECT value AS `id` FROM range({start}, {end}, {step})");
    let parsed = Parser::parse_sql(&DatabricksDialect {}, &text).ok().and_then(|statements| statements.into_iter().next());
    match parsed {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(wrong()),
    }
}

fn of_argument(argument: &FunctionArg) -> Option<i64> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) = argument else { return None };
    let (negative, expression) = match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (true, expr.as_ref()),
        expression => (false, expression),
    };
    let Expr::Value(value) = expression else { return None };
    literal::whole(value, negative)
}
