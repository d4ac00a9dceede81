//! `round(x, digits)` as the dialect means it: halves away from zero, of doubles in the *decimal* form of the number, so that 2.675
//! to two digits is 2.68, though the double lies a little below.

use std::sync::{Arc, LazyLock};

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type, i256};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::answer::answer;
use crate::decimal::{Digits, divided, power};

/// What the rewritten query calls it.
pub(crate) const NAME: &str = "round_half_up";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(RoundHalfUp::new())));

/// The function of a number and a literal number of digits that is not negative.
pub(crate) fn function() -> ScalarUDF {
    FUNCTION.as_ref().clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundHalfUp {
    signature: Signature,
}

impl RoundHalfUp {
    fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for RoundHalfUp {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of a rounded number follows from its digits".to_owned()))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let places = match arguments.scalar_arguments[1] {
            Some(ScalarValue::Int64(Some(places))) => i32::try_from(*places).unwrap_or(i32::MAX),
            _ => 0,
        };
        let of = arguments.arg_fields[0].data_type();
        let data_type = match (of, Digits::of(of)) {
            (DataType::Decimal128(..), Some(digits)) => digits.rounded(places).data_type(),
            (of, Some(_)) => of.clone(),
            _ => DataType::Float64,
        };
        Ok(Arc::new(Field::new(NAME, data_type, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let rounded = match (arrays[0].data_type(), arguments.return_field.data_type()) {
            (DataType::Decimal128(_, from), to @ DataType::Decimal128(_, scale)) => decimals(&arrays[0], *from, *scale, to)?,
            (of, to) if of == to && of.is_integer() => Arc::clone(&arrays[0]),
            _ => {
                let (numbers, digits) = (cast(&arrays[0], &DataType::Float64)?, arrays[1].as_primitive::<Int64Type>());
                let rounded = numbers.as_primitive::<Float64Type>().iter().zip(digits).map(|pair| match pair {
                    (Some(number), Some(digits)) => Some(round(number, usize::try_from(digits).unwrap_or(0))),
                    _ => None,
                });
                Arc::new(rounded.collect::<Float64Array>()) as ArrayRef
            }
        };
        answer(&arguments.args, rounded)
    }
}

fn decimals(numbers: &ArrayRef, from: i8, to: i8, data_type: &DataType) -> Result<ArrayRef> {
    let lost = || DataFusionError::Internal("a decimal has more than 38 digits".to_owned());
    let unit = power(i32::from(from - to)).ok_or_else(lost)?;
    let round = |number: Option<i128>| number.map(|number| divided(i256::from_i128(number), unit).ok_or_else(lost)).transpose();
    let rounded = numbers.as_primitive::<Decimal128Type>().iter().map(round).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(rounded.with_data_type(data_type.clone())))
}

/// Rounds the shortest decimal form that reads back as the number.
fn round(number: f64, digits: usize) -> f64 {
    if !number.is_finite() {
        return number;
    }
    let text = number.abs().to_string();
    let Some((whole, fraction)) = text.split_once('.').filter(|(_, fraction)| fraction.len() > digits) else { return number };
    let mut kept: Vec<u8> = whole.bytes().chain(fraction.bytes().take(digits)).map(|digit| digit - b'0').collect();
    if fraction.as_bytes()[digits] >= b'5' {
        increment(&mut kept);
    }
    let point = kept.len() - digits;
    let mut rounded: String = kept.iter().map(|digit| char::from(b'0' + digit)).collect();
    rounded.insert(point, '.');
    // digits with a point among them are a number
    let magnitude = rounded.trim_end_matches('.').parse().unwrap_or(number.abs());
    if number.is_sign_negative() { -magnitude } else { magnitude }
}

/// Adds one to a number of decimal digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn halves_go_away_from_zero_in_the_decimal_form() {
        for (number, digits, rounded) in [
            (2.675, 2, 2.68),
            (0.285, 2, 0.29),
            (-2.5, 0, -3.0),
            (2.4, 0, 2.0),
            (9.995, 2, 10.0),
            (0.05, 1, 0.1),
            (0.04, 1, 0.0),
            (123.0, 2, 123.0),
            (1e300, 2, 1e300),
            (1e-300, 2, 0.0),
        ] {
            assert_eq!(round(number, digits), rounded, "{number} to {digits}");
        }
        assert!(round(f64::NAN, 1).is_nan());
        assert_eq!(round(f64::INFINITY, 1), f64::INFINITY);
    }

    proptest::proptest! {
        #[test]
        fn a_rounded_number_is_near_and_stays_when_rounded_again(number in -1e9..1e9_f64, digits in 0_usize..6) {
            let once = round(number, digits);
            let half = 0.5 * 10_f64.powi(-i32::try_from(digits).unwrap());
            proptest::prop_assert!((once - number).abs() <= half + number.abs() * 2.0 * f64::EPSILON);
            proptest::prop_assert_eq!(round(once, digits), once);
        }
    }
}
