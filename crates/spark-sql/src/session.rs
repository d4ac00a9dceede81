//! The context in which rewritten texts are planned.

use tributary_lake::datafusion::common::config::Dialect;
use tributary_lake::datafusion::prelude::SessionContext;

use crate::{quotient, rounding, substring, sum};

/// Gives a context the dialect's meaning of nulls in an order, of numbers and of names, and the functions that rewritten texts
/// call.
pub fn prepare(context: &SessionContext) {
    {
        let state = context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.execution.time_zone = Some("UTC".to_owned());
        let parser = &mut options.sql_parser;
        parser.dialect = Dialect::Databricks;
        parser.enable_ident_normalization = false;
        parser.map_string_types_to_utf8view = false;
        parser.parse_float_as_decimal = true;
        parser.default_null_ordering = "nulls_min".to_owned();
    }
    // Functions that go by a setting took it when the context was made: they are told anew.
    let state = context.state();
    let settings = state.config().options();
    let told = state.scalar_functions().values().filter_map(|function| function.inner().with_updated_config(settings));
    told.for_each(|function| context.register_udf(function));
    context.register_udf(quotient::function());
    context.register_udf(rounding::function());
    context.register_udf(substring::function());
    context.register_udaf(sum::function());
}
