//! Numbers as a column's type holds them, exactly or not at all.

use crate::column::Refused;
use crate::number::Decimal;
use crate::scalar::Scalar;

#[inline]
pub(super) fn whole(scalar: Scalar<'_>) -> Result<i64, Refused> {
    match scalar {
        Scalar::Integer(value) | Scalar::Time(value) => Ok(value),
        Scalar::Decimal(decimal) => decimal.whole().ok_or(Refused::DoesNotFit),
        Scalar::Number(raw) => Decimal::parse(raw).and_then(|decimal| decimal.whole()).ok_or(Refused::DoesNotFit),
        _ => Err(Refused::DoesNotFit),
    }
}

pub(super) fn narrow<T: TryFrom<i64>>(scalar: Scalar<'_>) -> Result<T, Refused> {
    match scalar {
        Scalar::Time(_) => Err(Refused::DoesNotFit),
        other => T::try_from(whole(other)?).map_err(|_| Refused::DoesNotFit),
    }
}

pub(super) fn exact(scalar: Scalar<'_>) -> Result<Decimal, Refused> {
    match scalar {
        Scalar::Decimal(decimal) => Ok(decimal),
        Scalar::Integer(value) => Ok(Decimal { unscaled: i128::from(value), scale: 0 }),
        Scalar::Number(raw) => Decimal::parse(raw).ok_or(Refused::DoesNotFit),
        _ => Err(Refused::DoesNotFit),
    }
}

/// The whole numbers that a double holds exactly.
const DOUBLE_EXACT: i64 = 1 << 53;
/// The whole numbers that a float holds exactly.
const FLOAT_EXACT: i64 = 1 << 24;

pub(super) fn double(scalar: Scalar<'_>) -> Result<f64, Refused> {
    match scalar {
        Scalar::Double(value) => Ok(value),
        Scalar::Float(value) => Ok(f64::from(value)),
        #[allow(clippy::cast_precision_loss)]
        Scalar::Integer(value) if (-DOUBLE_EXACT..=DOUBLE_EXACT).contains(&value) => Ok(value as f64),
        Scalar::Number(raw) => parse(raw),
        Scalar::Decimal(decimal) => {
            let mut text = Vec::new();
            decimal.write(&mut text);
            parse(&text)
        }
        _ => Err(Refused::DoesNotFit),
    }
}

pub(super) fn float(scalar: Scalar<'_>) -> Result<f32, Refused> {
    match scalar {
        Scalar::Float(value) => Ok(value),
        #[allow(clippy::cast_precision_loss)]
        Scalar::Integer(value) if (-FLOAT_EXACT..=FLOAT_EXACT).contains(&value) => Ok(value as f32),
        Scalar::Number(raw) => parse(raw),
        Scalar::Double(value) if value.is_nan() => Ok(f32::NAN),
        Scalar::Double(value) => {
            #[allow(clippy::cast_possible_truncation)]
            let short = value as f32;
            if f64::from(short).to_bits() == value.to_bits() { Ok(short) } else { Err(Refused::DoesNotFit) }
        }
        _ => Err(Refused::DoesNotFit),
    }
}

/// The nearest number of the type; one beyond its range does not fit.
fn parse<T: std::str::FromStr + Copy + Into<f64>>(raw: &[u8]) -> Result<T, Refused> {
    let text = std::str::from_utf8(raw).map_err(|_| Refused::DoesNotFit)?;
    let value: T = text.parse().map_err(|_| Refused::DoesNotFit)?;
    let wide: f64 = value.into();
    if wide.is_finite() { Ok(value) } else { Err(Refused::DoesNotFit) }
}
