//! What a function gives back.

use tributary_lake::arrow::array::{Array, ArrayRef};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::ColumnarValue;

/// One value where every argument is one, else a value a row.
pub(crate) fn answer(arguments: &[ColumnarValue], values: ArrayRef) -> Result<ColumnarValue> {
    let one = arguments.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    if one && values.len() == 1 {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?));
    }
    Ok(ColumnarValue::Array(values))
}
