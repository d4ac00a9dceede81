//! `a / b` as the dialect means it.

use std::sync::{Arc, LazyLock};

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{DataType, Float64Type};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// What the rewritten query calls it.
pub(crate) const NAME: &str = "quotient";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Quotient::new())));

/// The function of two numbers, which gives a double; a division by zero is an error, also of doubles.
pub(crate) fn function() -> ScalarUDF {
    FUNCTION.as_ref().clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl Quotient {
    fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let sides = ColumnarValue::values_to_arrays(&arguments.args)?;
        let sides = sides.iter().map(|side| cast(side, &DataType::Float64)).collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        let quotients: ArrayRef = Arc::new(divide(sides[0].as_primitive::<Float64Type>(), sides[1].as_primitive::<Float64Type>())?);
        if scalar && quotients.len() == 1 {
            return Ok(ColumnarValue::Scalar(tributary_lake::datafusion::common::ScalarValue::try_from_array(&quotients, 0)?));
        }
        Ok(ColumnarValue::Array(quotients))
    }
}

fn divide(dividends: &Float64Array, divisors: &Float64Array) -> Result<Float64Array> {
    let zero = || DataFusionError::from(ArrowError::DivideByZero);
    dividends
        .iter()
        .zip(divisors)
        .map(|pair| match pair {
            (Some(_), Some(0.0)) => Err(zero()),
            (Some(dividend), Some(divisor)) => Ok(Some(dividend / divisor)),
            _ => Ok(None),
        })
        .collect()
}
