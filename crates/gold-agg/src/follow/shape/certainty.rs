//! Which functions come out the same when the same rows are computed again. Pure.

use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use tributary_lake::datafusion::logical_expr::{Expr, ExprSchemable, WindowFrameUnits};

use super::unaliased;

/// Whether a function gives the same answer over the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Sure,
    /// But for rounding, by the order in which numbers are added.
    Rounded,
    /// But for which of equals it takes.
    Chosen,
}

const SURE: [&str; 10] = ["sum", "count", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor", "grouping"];
const ROUNDED: [&str; 20] = [
    "avg",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var",
    "var_pop",
    "var_samp",
    "var_sample",
    "variance",
    "median",
    "percentile_cont",
    "covar_samp",
    "covar_pop",
    "covar",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "percentile",
    "mean",
];
const RANKS: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

pub(super) fn of_aggregate(function: &Expr, schema: &DFSchema) -> Certainty {
    match unaliased(function) {
        Expr::AggregateFunction(call) => of_function(call.func.name(), &call.params.args, schema),
        _ => Certainty::Chosen,
    }
}

fn of_function(name: &str, arguments: &[Expr], schema: &DFSchema) -> Certainty {
    let floats = arguments.iter().any(|argument| argument.get_type(schema).map_or(true, |data_type| data_type.is_floating()));
    match name {
        name if SURE.contains(&name) && !floats => Certainty::Sure,
        name if SURE.contains(&name) || ROUNDED.contains(&name) => Certainty::Rounded,
        _ => Certainty::Chosen,
    }
}

pub(super) fn of_window(function: &WindowFunction, schema: &DFSchema) -> Certainty {
    let params = &function.params;
    match &function.fun {
        WindowFunctionDefinition::WindowUDF(udf) if RANKS.contains(&udf.name()) => Certainty::Sure,
        WindowFunctionDefinition::WindowUDF(_) => Certainty::Chosen,
        WindowFunctionDefinition::AggregateUDF(udf) => {
            // Rows of a frame that is counted in rows are chosen among equals, where not the whole partition is in it.
            let by_rows = params.window_frame.units == WindowFrameUnits::Rows && !params.order_by.is_empty();
            if by_rows { Certainty::Chosen } else { of_function(udf.name(), &params.args, schema) }
        }
    }
}
