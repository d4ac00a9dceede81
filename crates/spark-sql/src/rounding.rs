//! `round(x, digits)` as the dialect means it: halves away from zero, of doubles in the *decimal* form of the number, so that 2.675
//! to two digits is 2.68, though the double lies a little below.

use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, i256};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF, TypeSignature};

use crate::decimal::{Digits, divided, power};
use crate::scalar;

/// What the rewritten query calls it.
pub(crate) const NAME: &str = "round_half_up";

/// The function of a number and a literal number of digits that is not negative.
pub(crate) fn function() -> ScalarUDF {
    scalar::function(NAME, TypeSignature::Any(2), typing, rounded)
}

fn typing(arguments: &ReturnFieldArgs<'_>) -> Result<DataType> {
    let places = match arguments.scalar_arguments[1] {
        Some(ScalarValue::Int64(Some(places))) => i32::try_from(*places).unwrap_or(i32::MAX),
        _ => 0,
    };
    let of = arguments.arg_fields[0].data_type();
    Ok(match (of, Digits::of(of)) {
        (DataType::Decimal128(..), Some(digits)) => digits.rounded(places).data_type(),
        (of, Some(_)) => of.clone(),
        _ => DataType::Float64,
    })
}

fn rounded(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let (numbers, digits) = (&arguments[0], arguments[1].as_primitive::<Int64Type>());
    match (numbers.data_type(), to) {
        (DataType::Decimal128(_, from), DataType::Decimal128(_, scale)) => decimals(numbers, *from, *scale, to),
        (of, to) if of == to && of.is_integer() => Ok(Arc::clone(numbers)),
        _ => {
            let numbers = cast(numbers, &DataType::Float64)?;
            let rounded = numbers.as_primitive::<Float64Type>().iter().zip(digits).map(|pair| match pair {
                (Some(number), Some(digits)) => Some(round(number, usize::try_from(digits).unwrap_or(0))),
                _ => None,
            });
            Ok(Arc::new(rounded.collect::<Float64Array>()))
        }
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
