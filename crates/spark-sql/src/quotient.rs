//! `a / b` as the dialect means it: a double of whole numbers and doubles, a decimal where one is and none is a double.

use std::sync::{Arc, LazyLock};

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, i256};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::answer::answer;
use crate::decimal::{Digits, divided, power};

/// What the rewritten query calls it.
pub(crate) const NAME: &str = "quotient";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Quotient::new())));

/// The function of two numbers; a division by zero is an error, also of doubles.
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
        Err(DataFusionError::Internal("the type of a quotient follows from its arguments".to_owned()))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<&DataType> = arguments.arg_fields.iter().map(|field| field.data_type()).collect();
        let data_type = match (Digits::of(types[0]), Digits::of(types[1])) {
            (Some(dividend), Some(divisor)) if types.iter().any(|data_type| data_type.is_decimal()) => {
                Digits::of_quotient(dividend, divisor).data_type()
            }
            _ => DataType::Float64,
        };
        Ok(Arc::new(Field::new(NAME, data_type, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let sides = ColumnarValue::values_to_arrays(&arguments.args)?;
        let quotients = match arguments.return_field.data_type() {
            DataType::Decimal128(precision, scale) => {
                decimals(&sides, Digits { precision: i32::from(*precision), scale: i32::from(*scale) })?
            }
            _ => {
                let sides = sides.iter().map(|side| cast(side, &DataType::Float64)).collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
                Arc::new(doubles(sides[0].as_primitive::<Float64Type>(), sides[1].as_primitive::<Float64Type>())?)
            }
        };
        answer(&arguments.args, quotients)
    }
}

fn by_zero() -> DataFusionError {
    DataFusionError::from(ArrowError::DivideByZero)
}

fn doubles(dividends: &Float64Array, divisors: &Float64Array) -> Result<Float64Array> {
    dividends
        .iter()
        .zip(divisors)
        .map(|pair| match pair {
            (Some(_), Some(0.0)) => Err(by_zero()),
            (Some(dividend), Some(divisor)) => Ok(Some(dividend / divisor)),
            _ => Ok(None),
        })
        .collect()
}

fn decimals(sides: &[ArrayRef], digits: Digits) -> Result<ArrayRef> {
    let too_large = || DataFusionError::Execution("a quotient of decimals has more than 38 digits".to_owned());
    let mut scales = [0, 0];
    let mut whole = Vec::with_capacity(2);
    for (side, scale) in sides.iter().zip(&mut scales) {
        *scale = Digits::of(side.data_type()).map_or(0, |digits| digits.scale);
        let data_type = if side.data_type().is_decimal() { side.data_type().clone() } else { DataType::Decimal128(20, 0) };
        whole.push(cast(side, &data_type)?);
    }
    // the result's scale is larger than the dividend's, so this is no negative power
    let shift = power(digits.scale - scales[0] + scales[1]).ok_or_else(too_large)?;
    let quotient = |pair| match pair {
        (Some(_), Some(0)) => Err(by_zero()),
        (Some(dividend), Some(divisor)) => {
            let dividend = i256::from_i128(dividend).checked_mul(shift).ok_or_else(too_large)?;
            let quotient = divided(dividend, i256::from_i128(divisor)).filter(|quotient| digits.holds(*quotient));
            quotient.map(Some).ok_or_else(too_large)
        }
        _ => Ok(None),
    };
    let (dividends, divisors) = (whole[0].as_primitive::<Decimal128Type>(), whole[1].as_primitive::<Decimal128Type>());
    let quotients = dividends.iter().zip(divisors).map(quotient).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(quotients.with_data_type(digits.data_type())))
}
