//! Functions that give rows, and casts by name.

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Text};
use super::own::{Arguments, Gives, Own};
use super::{Entry, Rewrite, hidden, refused, rewritten};
use crate::convert;

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    rewritten(&["explode", "explode_outer"], Rewrite::Rows, 1),
    rewritten(&["posexplode", "posexplode_outer"], Rewrite::Rows, 1),
    rewritten(&["inline", "inline_outer"], Rewrite::Rows, 1),
    rewritten(&["json_tuple"], Rewrite::Rows, usize::MAX),
    rewritten(&["stack"], Rewrite::Rows, usize::MAX),
    refused(&["unnest", "sql_keywords"], "say explode"),
    rewritten(
        &["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary", "date", "timestamp"],
        Rewrite::Cast,
        1,
    ),
    rewritten(&["like"], Rewrite::Like, 2),
    rewritten(&["ilike"], Rewrite::ILike, 2),
    rewritten(&["struct"], Rewrite::Struct, usize::MAX),
    // casts between types that the engine has not, or has otherwise
    hidden(Own::new("cast", &[Any, Text], Gives::By(cast_type), |a, to| convert::cast(&a[0], to, false))),
    hidden(Own::new("try_cast", &[Any, Text], Gives::By(cast_type), |a, to| convert::cast(&a[0], to, true))),
];

fn cast_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let to = arguments.text(1).and_then(crate::ddl::data_type);
    let Some(to) = to else { return Err(DataFusionError::Plan("the type of a cast cannot be read".to_owned())) };
    let from = &arguments.types[0];
    if convert::exists(from, &to) {
        return Ok(to);
    }
    Err(DataFusionError::Plan(format!("there is no cast from {} to {}", convert::word(from), convert::word(&to))))
}
