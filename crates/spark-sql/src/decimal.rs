//! Spark's rules for the digits of decimal results.

use tributary_lake::arrow::datatypes::{DataType, i256};
use tributary_lake::datafusion::common::ScalarValue;

/// The most digits of a decimal.
const DIGITS_MAX: i32 = 38;
/// The digits behind the point that a result keeps where not all fit.
const SCALE_KEPT: i32 = 6;

/// Digits of a number, in all and behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits {
    pub precision: i32,
    pub scale: i32,
}

impl Digits {
    /// Of a decimal or a whole number.
    pub fn of(data_type: &DataType) -> Option<Self> {
        let whole = |precision| Some(Self { precision, scale: 0 });
        match data_type {
            DataType::Decimal128(precision, scale) => Some(Self { precision: i32::from(*precision), scale: i32::from(*scale) }),
            DataType::Int8 => whole(3),
            DataType::Int16 => whole(5),
            DataType::Int32 => whole(10),
            DataType::Int64 => whole(20),
            _ => None,
        }
    }

    /// Of a quotient.
    pub fn of_quotient(dividend: Self, divisor: Self) -> Self {
        let scale = SCALE_KEPT.max(dividend.scale + divisor.precision + 1);
        let whole = dividend.precision - dividend.scale + divisor.scale;
        if whole + scale <= DIGITS_MAX {
            return Self { precision: whole + scale, scale };
        }
        Self { precision: DIGITS_MAX, scale: (DIGITS_MAX - whole).max(scale.min(SCALE_KEPT)) }
    }

    /// Not more than there can be: digits behind the point give way, but for six of them.
    pub fn adjusted(self) -> Self {
        if self.precision <= DIGITS_MAX {
            return self;
        }
        let whole = self.precision - self.scale;
        Self { precision: DIGITS_MAX, scale: (DIGITS_MAX - whole).max(self.scale.min(SCALE_KEPT)) }
    }

    /// Of a number rounded to so many digits behind the point, or before it where they are negative.
    pub fn rounded_to(self, places: i32) -> Self {
        if places >= 0 {
            return self.rounded(places);
        }
        let whole = (self.precision - self.scale + 1).max(places.saturating_neg().saturating_add(1));
        Self { precision: whole.min(DIGITS_MAX), scale: 0 }
    }

    /// Of a number rounded to so many digits behind the point.
    pub fn rounded(self, scale: i32) -> Self {
        let scale = self.scale.min(scale);
        Self { precision: (self.precision - self.scale + 1 + scale).min(DIGITS_MAX), scale }
    }

    /// As a type.
    pub fn data_type(self) -> DataType {
        // both are at most 38
        DataType::Decimal128(self.precision as u8, self.scale as i8)
    }

    /// Whether a number has no more digits than this.
    pub fn holds(self, number: i128) -> bool {
        number.unsigned_abs() < 10_u128.pow(self.precision as u32)
    }
}

/// `dividend / divisor`, halves away from zero; none where the result is beyond 128 bits.
pub(crate) fn divided(dividend: i256, divisor: i256) -> Option<i128> {
    let (quotient, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    let magnitude = |number: i256| if number.is_negative() { number.wrapping_neg() } else { number };
    let up = magnitude(rest).checked_mul(i256::from_i128(2))? >= magnitude(divisor);
    let away = if dividend.is_negative() == divisor.is_negative() { i256::ONE } else { i256::MINUS_ONE };
    if up { quotient.checked_add(away)?.to_i128() } else { quotient.to_i128() }
}

/// A whole number that is written in a text, as a decimal of just its digits.
pub(crate) fn of_literal(number: i64) -> ScalarValue {
    let digits = number.unsigned_abs().max(1).ilog10() + 1;
    // at most 19
    ScalarValue::Decimal128(Some(i128::from(number)), digits as u8, 0)
}

/// A power of ten.
pub(crate) fn power(exponent: i32) -> Option<i256> {
    i256::from_i128(10).checked_pow(u32::try_from(exponent).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_quotients_are_sparks() {
        for (dividend, divisor, expected) in
            [((12, 2), (1, 0), (16, 6)), ((22, 2), (20, 0), (38, 18)), ((10, 0), (10, 0), (21, 11)), ((38, 10), (38, 10), (38, 6))]
        {
            let digits = |(precision, scale)| Digits { precision, scale };
            assert_eq!(Digits::of_quotient(digits(dividend), digits(divisor)), digits(expected), "{dividend:?} / {divisor:?}");
        }
    }

    #[test]
    fn halves_go_away_from_zero() {
        for (dividend, divisor, expected) in [(5, 2, 3), (-5, 2, -3), (5, -2, -3), (7, 3, 2), (-7, 3, -2), (0, 3, 0)] {
            assert_eq!(divided(i256::from_i128(dividend), i256::from_i128(divisor)), Some(expected), "{dividend} / {divisor}");
        }
    }
}
