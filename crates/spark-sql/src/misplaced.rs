//! What stands where the dialect does not take it: refused with its place, where the engine would take it for something else, or fail
//! only once rows come.

use std::ops::ControlFlow;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    DataType as Written, Expr, Function, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, Query, Spanned, UnaryOperator, Value,
    ValueWithSpan, Visit, Visitor, WindowType,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::scope::Column;
use crate::{Error, literal};

/// Functions whose value is a place in an order.
const OF_AN_ORDER: [&str; 8] = ["cume_dist", "dense_rank", "lag", "lead", "ntile", "percent_rank", "rank", "row_number"];

/// Refuses a window function in a clause that chooses or groups rows before there are windows.
///
/// # Errors
/// [`Error::Refused`] at the first.
pub(crate) fn no_window_in(clause: &str, expression: &Expr) -> Result<(), Error> {
    each_window(expression, |function| {
        let hint = match clause {
            "GROUP BY" => "compute it in a query within FROM",
            _ => "say QUALIFY, or compute it in a query within FROM",
        };
        Err(Error::refused_with_hint(format!("a window function in {clause}"), hint, function.span()))
    })
}

/// Refuses a function of an order over a window by name that has none.
///
/// # Errors
/// [`Error::Refused`] at the first.
pub(crate) fn named_windows_are_ordered(tree: &impl Visit, windows: &[NamedWindowDefinition]) -> Result<(), Error> {
    each_window(tree, |function| {
        let Some(WindowType::NamedWindow(name)) = &function.over else { return Ok(()) };
        let defined = windows.iter().find(|NamedWindowDefinition(known, _)| known.value.eq_ignore_ascii_case(&name.value));
        match defined {
            Some(NamedWindowDefinition(_, NamedWindowExpr::WindowSpec(window))) => {
                is_ordered(&function.name.to_string().to_lowercase(), &window.order_by, function.span())
            }
            Some(NamedWindowDefinition(_, NamedWindowExpr::NamedWindow(_))) | None => Ok(()),
        }
    })
}

/// Refuses a function of an order over rows that have none: which row is the first would be up to chance.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) fn is_ordered(function: &str, order_by: &[OrderByExpr], span: Span) -> Result<(), Error> {
    match order_by.is_empty() && OF_AN_ORDER.contains(&function) {
        true => Err(Error::refused_with_hint(format!("`{function}` over rows in no order"), "say ORDER BY in its OVER (…)", span)),
        false => Ok(()),
    }
}

/// Refuses a number of rows below zero, and one that is no whole number.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) fn is_count(clause: &str, rows: &Expr) -> Result<(), Error> {
    match rows {
        Expr::Nested(inside) => is_count(clause, inside),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if literal::is_number(expr) => {
            Err(Error::refused_with_hint(format!("{clause} of fewer than no rows"), "say a whole number from 0", rows.span()))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), span }) if digits.to_string().contains(['.', 'e', 'E']) => {
            Err(Error::refused_with_hint(format!("{clause} of what is no whole number"), "say a whole number from 0", *span))
        }
        _ => Ok(()),
    }
}

/// Refuses to group by a map, which the dialect does and the engine cannot: it compares no maps.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) fn is_grouped(column: Option<&Column>, span: Span) -> Result<(), Error> {
    match column.and_then(|column| column.data_type.as_ref()) {
        Some(DataType::Map(..)) => grouped_by_map(span),
        _ => Ok(()),
    }
}

/// The refusal of a group by a map.
///
/// # Errors
/// Always.
pub(crate) fn grouped_by_map(span: Span) -> Result<(), Error> {
    let hint = "the engine compares no maps: group by one of its values, or by array_sort(map_entries(…))";
    Err(Error::refused_with_hint("GROUP BY a map", hint, span))
}

/// Refuses a number or a string as the condition of a branch, as far as columns and literals tell.
///
/// # Errors
/// [`Error::Refused`].
pub(crate) fn is_condition(condition: &Expr, column: Option<&Column>, span: Span) -> Result<(), Error> {
    let is_number = column.and_then(|column| column.data_type.as_ref()).is_some_and(DataType::is_numeric);
    if is_number || literal::is_number(condition) {
        let hint = "compare it, such as … <> 0, or say CASE … WHEN … for a value";
        return Err(Error::refused_with_hint("CASE WHEN a number", hint, span));
    }
    if is_string(condition, column) {
        let hint = "cast it to boolean, or say CASE … WHEN … for a value";
        return Err(Error::refused_with_hint("CASE WHEN a string", hint, span));
    }
    Ok(())
}

/// Whether a value is a string, as far as columns, literals and casts tell.
pub(crate) fn is_string(expression: &Expr, column: Option<&Column>) -> bool {
    let of_column = || column.is_some_and(|column| matches!(column.data_type, Some(DataType::Utf8)));
    match expression {
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)),
        Expr::Cast { data_type, .. } => matches!(data_type, Written::String(_) | Written::Varchar(_) | Written::Text),
        _ => of_column(),
    }
}

/// Looks at the window functions of a tree, those of queries within it left out.
fn each_window(tree: &impl Visit, look: impl Fn(&Function) -> Result<(), Error>) -> Result<(), Error> {
    struct Windows<F> {
        queries: usize,
        look: F,
    }
    impl<F: Fn(&Function) -> Result<(), Error>> Visitor for Windows<F> {
        type Break = Error;

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
            match expression {
                Expr::Function(function) if self.queries == 0 && function.over.is_some() => match (self.look)(function) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => ControlFlow::Break(error),
                },
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match tree.visit(&mut Windows { queries: 0, look }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tributary_lake::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn rows_are_grouped_by_any_type_but_a_map() {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let map = Field::new("entries", DataType::Struct(vec![text("key"), text("value")].into()), false);
        for (data_type, fits) in [
            (Some(DataType::Map(Arc::new(map), false)), false),
            (Some(DataType::Struct(vec![text("a")].into())), true),
            (Some(DataType::Utf8), true),
            (None, true),
        ] {
            let column = Column::new("m", data_type);
            assert_eq!(is_grouped(Some(&column), Span::empty()).is_ok(), fits, "{column:?}");
        }
        assert!(is_grouped(None, Span::empty()).is_ok());
    }
}
