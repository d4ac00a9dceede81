//! Casts between types as the dialect has them: what cannot be cast is an error, or null for `try_cast`.

use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef, new_null_array};
use tributary_lake::arrow::datatypes::{DataType, i256};
use tributary_lake::datafusion::error::{DataFusionError, Result};

use crate::calendar::{DAY, SECOND};
use crate::decimal::divided;
use crate::times::{self, trimmed};
use crate::value::{Value, build, canonical, in_canonical_form, range, read};
use crate::{decimal, shortest};

/// The word of a type in the dialect.
pub(crate) fn word(data_type: &DataType) -> String {
    let fields = |fields: &[Arc<tributary_lake::arrow::datatypes::Field>]| {
        fields.iter().map(|field| format!("{}:{}", field.name(), word(field.data_type()))).collect::<Vec<_>>().join(",")
    };
    match canonical(data_type) {
        DataType::Null => "void".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Utf8 => "string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(_, None) => "timestamp_ntz".to_owned(),
        DataType::List(of) => format!("array<{}>", word(of.data_type())),
        DataType::Struct(of) => format!("struct<{}>", fields(&of)),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(of) if of.len() == 2 => format!("map<{},{}>", word(of[0].data_type()), word(of[1].data_type())),
            other => format!("map<{}>", word(other)),
        },
        DataType::Interval(_) | DataType::Duration(_) => "interval".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Whether the dialect has a cast between two types.
pub(crate) fn exists(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let (from, to) = (canonical(from), canonical(to));
    let number = |data_type: &D| data_type.is_numeric();
    match (&from, &to) {
        (from, to) if from == to => true,
        (D::Null, _) => true,
        (D::List(from), D::List(to)) => exists(from.data_type(), to.data_type()),
        (D::Struct(from), D::Struct(to)) => {
            from.len() == to.len() && from.iter().zip(to).all(|(from, to)| exists(from.data_type(), to.data_type()))
        }
        (D::Map(from, _), D::Map(to, _)) => exists(from.data_type(), to.data_type()),
        (D::Interval(_) | D::Duration(_), _) | (_, D::Interval(_) | D::Duration(_)) => false,
        (_, D::Utf8) => true,
        (D::List(_) | D::Struct(_) | D::Map(..), _) | (_, D::List(_) | D::Struct(_) | D::Map(..)) => false,
        (D::Utf8, _) => true,
        (D::Boolean, to) => number(to),
        (from, D::Boolean) => number(from),
        (from, D::Timestamp(_, Some(_))) if number(from) => true,
        (D::Timestamp(_, Some(_)), to) if number(to) => true,
        (D::Date32 | D::Timestamp(..), D::Date32 | D::Timestamp(..)) => true,
        (_, D::Binary) => false,
        (from, to) => number(from) && number(to),
    }
}

/// A column in another type.
///
/// # Errors
/// For a value that has no counterpart, unless `lenient`, where it is null; the values are not named.
pub(crate) fn cast(column: &ArrayRef, to: &DataType, lenient: bool) -> Result<ArrayRef> {
    let to = canonical(to);
    let column = in_canonical_form(column)?;
    if *column.data_type() == to {
        return Ok(column);
    }
    if *column.data_type() == DataType::Null {
        return Ok(new_null_array(&to, column.len()));
    }
    if !exists(column.data_type(), &to) {
        return Err(DataFusionError::Plan(format!("there is no cast from {} to {}", word(column.data_type()), word(&to))));
    }
    let from = column.data_type().clone();
    let values = (0..column.len()).map(|row| one(read(&column, row)?, &from, &to, lenient)).collect::<Result<Vec<_>>>()?;
    build(values, &to)
}

/// One value in another type.
fn one(value: Value, from: &DataType, to: &DataType, lenient: bool) -> Result<Value> {
    if value.is_null() || from == to {
        return Ok(value);
    }
    match (value, from, to) {
        (value, _, DataType::Utf8) => Ok(text(&value, from).map_or(Value::Null, Value::Text)),
        (Value::List(inside), DataType::List(from), DataType::List(to)) => {
            let inside = inside.into_iter().map(|value| one(value, from.data_type(), to.data_type(), lenient));
            Ok(Value::List(inside.collect::<Result<_>>()?))
        }
        (Value::Struct(inside), DataType::Struct(from), DataType::Struct(to)) => {
            let inside = inside
                .into_iter()
                .zip(from.iter().zip(to))
                .map(|(value, (from, to))| one(value, from.data_type(), to.data_type(), lenient));
            Ok(Value::Struct(inside.collect::<Result<_>>()?))
        }
        (Value::Map(inside), DataType::Map(from, _), DataType::Map(to, _)) => {
            let (DataType::Struct(from), DataType::Struct(to)) = (from.data_type(), to.data_type()) else { return Ok(Value::Null) };
            let pair = |(key, value)| {
                Ok((
                    one(key, from[0].data_type(), to[0].data_type(), lenient)?,
                    one(value, from[1].data_type(), to[1].data_type(), lenient)?,
                ))
            };
            Ok(Value::Map(inside.into_iter().map(pair).collect::<Result<_>>()?))
        }
        (Value::Text(text), _, DataType::Date32 | DataType::Timestamp(..)) if times::is_of_the_moment(&text, to) => Err(
            DataFusionError::Execution("a string that says now or a time without a day is not read as a time in this release".to_owned()),
        ),
        (value, from, to) => match plain(&value, to) {
            Some(value) => Ok(value),
            None if lenient => Ok(Value::Null),
            None => Err(refusal(from, to)),
        },
    }
}

fn refusal(from: &DataType, to: &DataType) -> DataFusionError {
    DataFusionError::Execution(match from {
        DataType::Utf8 => format!("a string cannot be read as {}", word(to)),
        from => format!("a value of {} is too large for {}", word(from), word(to)),
    })
}

/// A value that is no list, struct or map, in another such type; none where it has no counterpart.
fn plain(value: &Value, to: &DataType) -> Option<Value> {
    match to {
        DataType::Boolean => match value {
            Value::Text(text) => boolean(text).map(Value::Boolean),
            Value::Whole(number) => Some(Value::Boolean(*number != 0)),
            Value::Float(number) => Some(Value::Boolean(*number != 0.0)),
            Value::Double(number) => Some(Value::Boolean(*number != 0.0)),
            Value::Decimal(digits, _) => Some(Value::Boolean(*digits != 0)),
            _ => None,
        },
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            whole(value).filter(|number| range(to).is_some_and(|range| range.contains(number))).map(Value::Whole)
        }
        DataType::Float32 => match value {
            // a text is read as the float that is nearest to it
            Value::Text(text) => number(text, |text| text.parse::<f32>().ok()).map(Value::Float),
            value => real(value).map(|number| Value::Float(number as f32)),
        },
        DataType::Float64 => real(value).map(Value::Double),
        DataType::Decimal128(precision, scale) => as_decimal(value, *precision, *scale),
        DataType::Date32 => match value {
            Value::Text(text) => times::day(text).map(Value::Date),
            Value::Instant(instant) => i32::try_from(instant.div_euclid(DAY)).ok().map(Value::Date),
            _ => None,
        },
        DataType::Timestamp(_, zone) => match value {
            Value::Text(text) if zone.is_some() => times::instant(text).map(Value::Instant),
            Value::Text(text) => times::local_and_zone(text).map(|(local, _)| Value::Instant(local)),
            Value::Date(days) => i64::from(*days).checked_mul(DAY).map(Value::Instant),
            Value::Instant(instant) => Some(Value::Instant(*instant)),
            Value::Whole(seconds) => Some(Value::Instant(seconds.saturating_mul(SECOND))),
            Value::Decimal(digits, scale) => {
                let micros = rescaled(*digits, i32::from(*scale), 6, false)?;
                i64::try_from(micros).ok().map(Value::Instant)
            }
            value => truncated(real(value)? * SECOND as f64).map(Value::Instant),
        },
        DataType::Binary => match value {
            Value::Text(text) => Some(Value::Bytes(text.clone().into_bytes())),
            _ => None,
        },
        _ => None,
    }
}

/// `t`, `true`, `y`, `yes`, `1` and their opposites.
fn boolean(text: &str) -> Option<bool> {
    match trimmed(text).to_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// As a whole number.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Boolean(yes) => Some(i64::from(*yes)),
        Value::Whole(number) => Some(*number),
        Value::Float(number) => truncated(f64::from(*number)),
        Value::Double(number) => truncated(*number),
        Value::Decimal(digits, scale) => i64::try_from(digits / 10_i128.pow(u32::from(scale.unsigned_abs()))).ok(),
        Value::Text(text) => {
            let text = trimmed(text);
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
                return None;
            }
            text.parse().ok()
        }
        Value::Instant(instant) => Some(instant.div_euclid(SECOND)),
        _ => None,
    }
}

/// As Java makes a double a long, where it is one.
fn truncated(number: f64) -> Option<i64> {
    // the least long is a double, the greatest is not
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number).then_some(number as i64)
}

/// As a double.
pub(crate) fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Boolean(yes) => Some(f64::from(u8::from(*yes))),
        Value::Whole(number) => Some(*number as f64),
        Value::Float(number) => Some(f64::from(*number)),
        Value::Double(number) => Some(*number),
        Value::Decimal(digits, scale) => shortest::decimal(*digits, *scale).parse().ok(),
        Value::Text(text) => number(text, |text| text.parse().ok()),
        Value::Instant(instant) => Some(*instant as f64 / SECOND as f64),
        _ => None,
    }
}

/// A number as Java reads one: also `1d`, `1f`, `NaN`, `Infinity`, `inf`.
fn number<T: From<f32>>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = trimmed(text);
    let lower = text.to_lowercase();
    match lower.as_str() {
        "nan" => return Some(f32::NAN.into()),
        "inf" | "+inf" | "infinity" | "+infinity" => return Some(f32::INFINITY.into()),
        "-inf" | "-infinity" => return Some(f32::NEG_INFINITY.into()),
        _ => {}
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    (digits.bytes().any(|c| c.is_ascii_digit())
        && digits.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'+' | b'-' | b'.' | b'e' | b'E')))
    .then(|| read(digits))
    .flatten()
}

/// As a decimal of so many digits, rounded half away from zero.
fn as_decimal(value: &Value, precision: u8, scale: i8) -> Option<Value> {
    let digits = match value {
        Value::Boolean(yes) => rescaled(i128::from(*yes), 0, i32::from(scale), true)?,
        Value::Whole(number) => rescaled(i128::from(*number), 0, i32::from(scale), true)?,
        Value::Decimal(digits, from) => rescaled(*digits, i32::from(*from), i32::from(scale), true)?,
        Value::Float(number) if number.is_finite() => written(&shortest::double(f64::from(*number)), scale)?,
        Value::Double(number) if number.is_finite() => written(&shortest::double(*number), scale)?,
        Value::Text(text) => written(trimmed(text), scale)?,
        Value::Instant(instant) => rescaled(i128::from(*instant), 6, i32::from(scale), true)?,
        _ => return None,
    };
    decimal::Digits { precision: i32::from(precision), scale: i32::from(scale) }.holds(digits).then_some(Value::Decimal(digits, scale))
}

/// Digits at another scale, rounded half away from zero or cut.
pub(crate) fn rescaled(digits: i128, from: i32, to: i32, round: bool) -> Option<i128> {
    if to >= from {
        return digits.checked_mul(10_i128.checked_pow(u32::try_from(to - from).ok()?)?);
    }
    let Some(unit) = decimal::power(from - to) else { return Some(0) };
    if round { divided(i256::from_i128(digits), unit) } else { i256::from_i128(digits).checked_div(unit)?.to_i128() }
}

/// The digits of a written number at a scale.
fn written(text: &str, scale: i8) -> Option<i128> {
    let text: &str = &text.chars().map(western).collect::<String>();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|c| c.is_ascii_digit()) {
        return None;
    }
    // digits far behind the last that counts do not change how it is rounded, but that they are there
    let all: String = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let point = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
    let (kept, point) =
        if significant.len() > 76 { (&significant[..76], point - (significant.len() as i64 - 76)) } else { (significant, point) };
    let digits = if kept.is_empty() { i256::ZERO } else { i256::from_string(kept)? };
    let shift = i64::from(scale) - point;
    let magnitude = if shift >= 0 {
        if digits == i256::ZERO { 0 } else { digits.checked_mul(decimal::power(i32::try_from(shift).ok()?)?)?.to_i128()? }
    } else if let Some(unit) = i32::try_from(-shift).ok().and_then(decimal::power) {
        divided(digits, unit)?
    } else {
        0
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// A digit of another script as the digit that it is.
fn western(sign: char) -> char {
    const ZEROS: [u32; 19] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20, 0x1040, 0x17e0, 0x1810,
        0xff10,
    ];
    let code = u32::from(sign);
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code));
    zero.and_then(|zero| char::from_digit(code - zero, 10)).unwrap_or(sign)
}

/// A value as a text; none for null.
pub(crate) fn text(value: &Value, of: &DataType) -> Option<String> {
    Some(match (value, of) {
        (Value::Null, _) => return None,
        (Value::Boolean(yes), _) => yes.to_string(),
        (Value::Whole(number), _) => number.to_string(),
        (Value::Float(number), _) => shortest::float(*number),
        (Value::Double(number), _) => shortest::double(*number),
        (Value::Decimal(digits, scale), _) => shortest::decimal(*digits, *scale),
        (Value::Text(text), _) => text.clone(),
        (Value::Bytes(bytes), _) => String::from_utf8_lossy(bytes).into_owned(),
        (Value::Date(days), _) => times::day_as_text(i64::from(*days)),
        (Value::Instant(instant), _) => times::instant_as_text(*instant),
        (Value::List(inside), DataType::List(of)) => {
            let inside: Vec<String> = inside.iter().map(|value| within(value, of.data_type())).collect();
            format!("[{}]", inside.join(", "))
        }
        (Value::Struct(inside), DataType::Struct(of)) => {
            let inside: Vec<String> = inside.iter().zip(of).map(|(value, of)| within(value, of.data_type())).collect();
            format!("{{{}}}", inside.join(", "))
        }
        (Value::Map(inside), DataType::Map(entries, _)) => {
            let DataType::Struct(of) = entries.data_type() else { return None };
            let pair =
                |(key, value): &(Value, Value)| format!("{} -> {}", within(key, of[0].data_type()), within(value, of[1].data_type()));
            format!("{{{}}}", inside.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    })
}

fn within(value: &Value, of: &DataType) -> String {
    text(value, of).unwrap_or_else(|| "null".to_owned())
}
