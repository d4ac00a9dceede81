//! `a / b` as the dialect means it: a double of whole numbers and doubles, a decimal where one is and none is a double.

use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use tributary_lake::arrow::datatypes::{DataType, Decimal128Type, Float64Type, i256};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use crate::convert::{cast, word};
use crate::decimal::{Digits, divided, power};
use crate::functions::own::{Arguments, Gives, Kind, Own};

/// What the rewritten query calls it.
pub(crate) const NAME: &str = "quotient";

/// The function of two numbers; a division by zero is an error, also of doubles.
pub(crate) const FUNCTION: Own = Own::new(NAME, &[Kind::Any, Kind::Any], Gives::By(typing), |sides, to| quotients(sides, to, false));

/// A decimal where one side is and none is a double.
pub(crate) fn typing(arguments: &Arguments<'_>) -> Result<DataType> {
    if let Some(other) = arguments.types.iter().find(|of| !(of.is_numeric() || of.is_null() || **of == DataType::Utf8)) {
        return Err(DataFusionError::Plan(format!("a division takes numbers, not {}", word(other))));
    }
    if !arguments.types.iter().any(DataType::is_numeric) && arguments.types.contains(&DataType::Utf8) {
        return Err(DataFusionError::Plan("a division takes a number: cast one side".to_owned()));
    }
    // an unknown divisor is of the dividend's type
    let dividend = arguments.types[0].clone();
    let divisor = if arguments.types[1].is_null() { dividend.clone() } else { arguments.types[1].clone() };
    let has_decimal = arguments.types.iter().any(DataType::is_decimal);
    Ok(match (Digits::of(&dividend), Digits::of(&divisor)) {
        (Some(of_dividend), Some(of_divisor)) if has_decimal => Digits::of_quotient(of_dividend, of_divisor).data_type(),
        _ => DataType::Float64,
    })
}

/// The quotients of two columns; null instead of an error where it is lenient.
pub(crate) fn quotients(sides: &[ArrayRef], to: &DataType, lenient: bool) -> Result<ArrayRef> {
    match to {
        DataType::Decimal128(precision, scale) => {
            decimals(sides, Digits { precision: i32::from(*precision), scale: i32::from(*scale) }, lenient)
        }
        _ => {
            let (dividends, divisors) = (real(&sides[0], &sides[1])?, real(&sides[1], &sides[0])?);
            Ok(Arc::new(doubles(dividends.as_primitive::<Float64Type>(), divisors.as_primitive::<Float64Type>(), lenient)?))
        }
    }
}

/// A side as doubles; a string is read as what stands beside it.
fn real(side: &ArrayRef, beside: &ArrayRef) -> Result<ArrayRef> {
    if *side.data_type() == DataType::Utf8 && beside.data_type().is_integer() {
        return cast(&cast(side, &DataType::Int64, false)?, &DataType::Float64, false);
    }
    cast(side, &DataType::Float64, false)
}

fn by_zero() -> DataFusionError {
    DataFusionError::from(ArrowError::DivideByZero)
}

fn doubles(dividends: &Float64Array, divisors: &Float64Array, lenient: bool) -> Result<Float64Array> {
    dividends
        .iter()
        .zip(divisors)
        .map(|pair| match pair {
            (Some(_), Some(0.0)) if lenient => Ok(None),
            (Some(_), Some(0.0)) => Err(by_zero()),
            (Some(dividend), Some(divisor)) => Ok(Some(dividend / divisor)),
            _ => Ok(None),
        })
        .collect()
}

fn decimals(sides: &[ArrayRef], digits: Digits, lenient: bool) -> Result<ArrayRef> {
    let too_large = || DataFusionError::Execution("a quotient of decimals has more than 38 digits".to_owned());
    let mut scales = [0, 0];
    let mut whole = Vec::with_capacity(2);
    for (side, scale) in sides.iter().zip(&mut scales) {
        *scale = Digits::of(side.data_type()).map_or(0, |digits| digits.scale);
        let data_type = if side.data_type().is_decimal() { side.data_type().clone() } else { DataType::Decimal128(20, 0) };
        whole.push(cast(side, &data_type, false)?);
    }
    // the result's scale is larger than the dividend's, so this is no negative power
    let shift = power(digits.scale - scales[0] + scales[1]).ok_or_else(too_large)?;
    let quotient = |pair| match pair {
        (Some(_), Some(0)) if lenient => Ok(None),
        (Some(_), Some(0)) => Err(by_zero()),
        (Some(dividend), Some(divisor)) => {
            let dividend = i256::from_i128(dividend).checked_mul(shift).ok_or_else(too_large)?;
            let quotient = divided(dividend, i256::from_i128(divisor)).filter(|quotient| digits.holds(*quotient));
            if lenient { Ok(quotient) } else { quotient.map(Some).ok_or_else(too_large) }
        }
        _ => Ok(None),
    };
    let (dividends, divisors) = (whole[0].as_primitive::<Decimal128Type>(), whole[1].as_primitive::<Decimal128Type>());
    let quotients = dividends.iter().zip(divisors).map(quotient).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(quotients.with_data_type(digits.data_type())))
}
