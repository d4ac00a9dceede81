//! Ranks of rows of a stream that tie in their order are decided by all columns of the rows, so that they are the same whenever they are
//! computed: of duplicates the same one is the first. Pure.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::arrow::row::{RowConverter, SortField};
use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use tributary_lake::datafusion::logical_expr::{Expr, LogicalPlan, Window, WindowFrameUnits};

use crate::waits::Streams;

/// Functions that number rows, or look at the ones beside them.
const BY_PLACE: [&str; 4] = ["row_number", "ntile", "lag", "lead"];

/// The plan in which no rows of a stream tie.
///
/// # Errors
/// None that are known.
pub(crate) fn broken(plan: LogicalPlan, streams: &Streams<'_>) -> Result<LogicalPlan> {
    let broken = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(window) if streams.are_in(&window.input) && are_rows(&window.input) => {
            let schema = Arc::clone(window.input.schema());
            let expressions = window.window_expr.into_iter().map(|expression| decided(expression, &schema)).collect();
            Ok(Transformed::yes(LogicalPlan::Window(Window::try_new(expressions, window.input)?)))
        }
        node => Ok(Transformed::no(node)),
    });
    Ok(broken?.data)
}

/// Whether rows are not totals, which may come out otherwise.
fn are_rows(plan: &LogicalPlan) -> bool {
    !plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)))).unwrap_or(true)
}

fn decided(expression: Expr, schema: &DFSchema) -> Expr {
    match expression {
        Expr::Alias(alias) => decided(*alias.expr, schema).unalias().alias_qualified(alias.relation, alias.name),
        Expr::WindowFunction(function) if is_by_place(&function) => {
            let name = Expr::WindowFunction(function.clone()).schema_name().to_string();
            let mut function = function;
            let ordered: Vec<Expr> = function.params.order_by.iter().map(|order| order.expr.clone()).collect();
            let others = schema.iter().filter(|(_, field)| has_order(field.data_type()));
            let others = others.map(|(qualifier, field)| Expr::Column((qualifier, field).into()));
            function.params.order_by.extend(others.filter(|other| !ordered.contains(other)).map(|other| other.sort(true, true)));
            Expr::WindowFunction(function).alias(name)
        }
        other => other,
    }
}

/// Whether it tells ties apart; one in no order has none.
fn is_by_place(function: &WindowFunction) -> bool {
    let params = &function.params;
    let by_place = match &function.fun {
        WindowFunctionDefinition::WindowUDF(function) => BY_PLACE.contains(&function.name()),
        WindowFunctionDefinition::AggregateUDF(_) => params.window_frame.units == WindowFrameUnits::Rows,
    };
    by_place && !params.order_by.is_empty()
}

fn has_order(data_type: &DataType) -> bool {
    RowConverter::supports_fields(&[SortField::new(data_type.clone())])
}
