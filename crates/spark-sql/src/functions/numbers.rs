//! Numbers of one argument, and those that are rounded.

use tributary_lake::arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray};
use tributary_lake::arrow::datatypes::{DataType, i256};
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Double, Int, Long, Number, Text};
use super::own::{Arguments, Gives, Own, column, fault, ints, longs, one, reals, texts, three, two};
use super::{Entry, hidden, own, random, refused};
use crate::convert::{self, real, rescaled};
use crate::decimal::{Digits, divided, power};
use crate::rounding;
use crate::value::{Value, build, read_all};

/// A function of a double.
macro_rules! of_double {
    ($name:literal, $f:expr) => {
        Own::new($name, &[Double], Gives::Double, |a, _| {
            column::<Float64Array>(one(reals(&a[0]), |x: f64| {
                let f: fn(f64) -> f64 = $f;
                Ok(Some(f(x)))
            })?)
        })
    };
}

/// A function of a double that has none below a bound.
macro_rules! of_double_above {
    ($name:literal, $bound:literal, $f:expr) => {
        Own::new($name, &[Double], Gives::Double, |a, _| {
            column::<Float64Array>(one(reals(&a[0]), |x: f64| {
                let f: fn(f64) -> f64 = $f;
                Ok(if x <= $bound { None } else { Some(f(x)) })
            })?)
        })
    };
}

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&["abs"], Own::new("abs", &[Number], Gives::First, |a, to| mapped(a, to, magnitude))),
    own(&["negative"], Own::new("negative", &[Number], Gives::First, |a, to| mapped(a, to, negated))),
    own(&["positive"], Own::new("positive", &[Number], Gives::First, |a, _| Ok(a[0].clone()))),
    own(&["sign", "signum"], of_double!("sign", |x| if x == 0.0 || x.is_nan() { x } else { x.signum() })),
    own(&["sqrt"], of_double!("sqrt", f64::sqrt)),
    own(&["cbrt"], of_double!("cbrt", f64::cbrt)),
    own(&["exp"], of_double!("exp", f64::exp)),
    own(&["expm1"], of_double!("expm1", f64::exp_m1)),
    own(&["ln"], of_double_above!("ln", 0.0, f64::ln)),
    own(&["log10"], of_double_above!("log10", 0.0, f64::log10)),
    own(&["log2"], of_double_above!("log2", 0.0, |x| x.ln() / std::f64::consts::LN_2)),
    own(&["log1p"], of_double_above!("log1p", -1.0, f64::ln_1p)),
    own(&["log"], Own::new("log", &[Double, Double], Gives::Double, log).at_least(1)),
    own(
        &["pow", "power"],
        Own::new("pow", &[Double, Double], Gives::Double, |a, _| {
            column::<Float64Array>(two(reals(&a[0]), reals(&a[1]), |base: f64, exponent: f64| {
                // Java has none for one to an unknown power
                Ok(Some(if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) { f64::NAN } else { base.powf(exponent) }))
            })?)
        }),
    ),
    own(
        &["hypot"],
        Own::new("hypot", &[Double, Double], Gives::Double, |a, _| {
            column::<Float64Array>(two(reals(&a[0]), reals(&a[1]), |x: f64, y: f64| Ok(Some(x.hypot(y))))?)
        }),
    ),
    own(
        &["atan2"],
        Own::new("atan2", &[Double, Double], Gives::Double, |a, _| {
            // a negative zero counts as zero
            column::<Float64Array>(two(reals(&a[0]), reals(&a[1]), |y: f64, x: f64| Ok(Some((y + 0.0).atan2(x + 0.0))))?)
        }),
    ),
    own(&["pi"], Own::new("pi", &[], Gives::Double, |_, _| column(Float64Array::from(vec![std::f64::consts::PI])))),
    own(&["e"], Own::new("e", &[], Gives::Double, |_, _| column(Float64Array::from(vec![std::f64::consts::E])))),
    own(&["degrees"], of_double!("degrees", |x| x * (180.0 / std::f64::consts::PI))),
    own(&["radians"], of_double!("radians", |x| x * (std::f64::consts::PI / 180.0))),
    own(&["sin"], of_double!("sin", f64::sin)),
    own(&["cos"], of_double!("cos", f64::cos)),
    own(&["tan"], of_double!("tan", f64::tan)),
    own(&["cot"], of_double!("cot", |x| 1.0 / x.tan())),
    own(&["sec"], of_double!("sec", |x| 1.0 / x.cos())),
    own(&["csc"], of_double!("csc", |x| 1.0 / x.sin())),
    own(&["asin"], of_double!("asin", f64::asin)),
    own(&["acos"], of_double!("acos", f64::acos)),
    own(&["atan"], of_double!("atan", f64::atan)),
    own(&["sinh"], of_double!("sinh", f64::sinh)),
    own(&["cosh"], of_double!("cosh", f64::cosh)),
    own(&["tanh"], of_double!("tanh", f64::tanh)),
    own(&["asinh"], of_double!("asinh", f64::asinh)),
    own(&["acosh"], of_double!("acosh", f64::acosh)),
    own(&["atanh"], of_double!("atanh", f64::atanh)),
    own(&["rint"], of_double!("rint", f64::round_ties_even)),
    own(
        &["isnan"],
        Own::new("isnan", &[Number], Gives::Boolean, |a, _| {
            let nan = read_all(&a[0])?.into_iter().map(|value| Some(real(&value).is_some_and(f64::is_nan)));
            column(nan.collect::<BooleanArray>())
        }),
    ),
    own(
        &["nanvl"],
        Own::new("nanvl", &[Double, Double], Gives::Double, |a, _| {
            let rows = reals(&a[0]).iter().zip(reals(&a[1]));
            column(rows.map(|(x, other)| if x.is_some_and(f64::is_nan) { other } else { x }).collect::<Float64Array>())
        }),
    ),
    own(&["ceil", "ceiling"], Own::new("ceil", &[Number, Int], Gives::By(whole_type), |a, to| to_whole(a, to, true)).at_least(1)),
    own(&["floor"], Own::new("floor", &[Number, Int], Gives::By(whole_type), |a, to| to_whole(a, to, false)).at_least(1)),
    own(&["round"], Own::new("round", &[Number, Int], Gives::By(rounded_type), |a, to| rounded(a, to, false)).at_least(1)),
    own(&["bround"], Own::new("bround", &[Number, Int], Gives::By(rounded_type), |a, to| rounded(a, to, true)).at_least(1)),
    own(
        &["factorial"],
        Own::new("factorial", &[Int], Gives::Long, |a, _| {
            column::<Int64Array>(one(ints(&a[0]), |n| Ok((0..=20).contains(&n).then(|| (1..=i64::from(n)).product::<i64>())))?)
        }),
    ),
    own(
        &["bin"],
        Own::new("bin", &[Long], Gives::Text, |a, _| column::<StringArray>(one(longs(&a[0]), |n: i64| Ok(Some(format!("{n:b}"))))?)),
    ),
    own(
        &["conv"],
        Own::new("conv", &[Text, Int, Int], Gives::Text, |a, _| {
            column::<StringArray>(three(texts(&a[0]), ints(&a[1]), ints(&a[2]), conv)?)
        }),
    ),
    own(
        &["bit_count"],
        Own::new("bit_count", &[Any], Gives::Int, |a, _| {
            let bits = read_all(&a[0])?.into_iter().map(|value| match value {
                Value::Whole(number) => Ok(Some(number.count_ones() as i32)),
                Value::Boolean(yes) => Ok(Some(i32::from(yes))),
                Value::Null => Ok(None),
                _ => fault("`bit_count` takes a whole number or a boolean"),
            });
            column(bits.collect::<Result<Int32Array>>()?)
        }),
    ),
    own(
        &["bit_get", "getbit"],
        Own::new("bit_get", &[Long, Int], Gives::By(|_| Ok(DataType::Int8)), |a, to| {
            let bits: Vec<Option<i64>> = two(longs(&a[0]), ints(&a[1]), |number, at| match u32::try_from(at).ok().filter(|at| *at < 64) {
                Some(at) => Ok(Some(number >> at & 1)),
                None => fault("the place of a bit is outside its number"),
            })?;
            build(bits.into_iter().map(|bit| bit.map_or(Value::Null, Value::Whole)).collect(), to)
        }),
    ),
    own(
        &["shiftleft"],
        Own::new("shiftleft", &[Any, Int], Gives::By(shifted_type), |a, to| {
            shifted(a, to, |n, by| (n as i32).wrapping_shl(by).into(), |n, by| n.wrapping_shl(by))
        }),
    ),
    own(
        &["shiftright"],
        Own::new("shiftright", &[Any, Int], Gives::By(shifted_type), |a, to| {
            shifted(a, to, |n, by| (n as i32).wrapping_shr(by).into(), |n, by| n.wrapping_shr(by))
        }),
    ),
    own(
        &["shiftrightunsigned"],
        Own::new("shiftrightunsigned", &[Any, Int], Gives::By(shifted_type), |a, to| {
            shifted(a, to, |n, by| ((n as u32).wrapping_shr(by) as i32).into(), |n, by| (n as u64).wrapping_shr(by) as i64)
        }),
    ),
    hidden(Own::new("bit_not", &[Any], Gives::First, |a, to| {
        mapped(a, to, |value| match value {
            Value::Whole(number) => Ok(Value::Whole(!number)),
            Value::Null => Ok(Value::Null),
            _ => fault("`~` takes a whole number"),
        })
    })),
    own(&["width_bucket"], Own::new("width_bucket", &[Double, Double, Double, Long], Gives::Long, width_bucket)),
    own(&["format_number"], Own::new("format_number", &[Number, Any], Gives::Text, format_number)),
    random(&["rand", "random"], "random", 0, 0),
    random(&["uuid"], "uuid", 0, 0),
    refused(&["randn", "randstr", "uniform", "shuffle"], "two runs would answer differently"),
];

fn mapped(arguments: &[ArrayRef], to: &DataType, f: impl Fn(Value) -> Result<Value>) -> Result<ArrayRef> {
    build(read_all(&arguments[0])?.into_iter().map(f).collect::<Result<_>>()?, to)
}

fn negated(value: Value) -> Result<Value> {
    Ok(match value {
        Value::Whole(number) => match number.checked_neg() {
            Some(number) => Value::Whole(number),
            None => return fault("a whole number is too large for its type"),
        },
        Value::Float(number) => Value::Float(-number),
        Value::Double(number) => Value::Double(-number),
        Value::Decimal(digits, scale) => Value::Decimal(-digits, scale),
        other => other,
    })
}

fn magnitude(value: Value) -> Result<Value> {
    match value {
        Value::Whole(number) if number < 0 => negated(value),
        Value::Float(number) => Ok(Value::Float(number.abs())),
        Value::Double(number) => Ok(Value::Double(number.abs())),
        Value::Decimal(digits, scale) => Ok(Value::Decimal(digits.abs(), scale)),
        other => Ok(other),
    }
}

fn log(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    match arguments {
        [of] => column::<Float64Array>(one(reals(of), |x: f64| Ok(if x <= 0.0 { None } else { Some(x.ln()) }))?),
        [base, of, ..] => column::<Float64Array>(two(reals(base), reals(of), |base: f64, x: f64| {
            Ok(if x <= 0.0 || base <= 0.0 { None } else { Some(x.ln() / base.ln()) })
        })?),
        [] => fault("`log` takes a number"),
    }
}

/// The digits that a number has as a decimal: those of its own, or as many as its type holds.
fn digits_of(data_type: &DataType) -> Digits {
    let of = |precision, scale| Digits { precision, scale };
    match data_type {
        DataType::Float32 => of(14, 7),
        DataType::Float64 => of(30, 15),
        DataType::Int64 => of(20, 0),
        other => Digits::of(other).unwrap_or(of(30, 15)),
    }
}

fn whole_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let of = &arguments.types[0];
    if arguments.types.len() == 2 {
        let Some(places) = arguments.number(1) else {
            return Err(DataFusionError::Plan("the digits of `ceil` and `floor` must be a literal".to_owned()));
        };
        return Ok(digits_of(of).rounded_to(i32::try_from(places).unwrap_or(i32::MAX)).data_type());
    }
    Ok(match (of, Digits::of(of)) {
        (DataType::Decimal128(..), Some(digits)) => digits.rounded(0).data_type(),
        _ => DataType::Int64,
    })
}

/// The next whole number, up or down, or the next with so many digits.
fn to_whole(arguments: &[ArrayRef], to: &DataType, up: bool) -> Result<ArrayRef> {
    let next = |digits: i128, unit: i128| {
        let down = digits.div_euclid(unit);
        if up && digits.rem_euclid(unit) != 0 { down + 1 } else { down }
    };
    let places = match arguments.get(1) {
        Some(places) => ints(places).iter().next().flatten().unwrap_or(0),
        None => 0,
    };
    let of = arguments[0].data_type();
    let one = |value: Value| {
        Ok(match (value, to) {
            (Value::Null, _) => Value::Null,
            (Value::Whole(number), DataType::Int64) => Value::Whole(number),
            (value @ (Value::Double(_) | Value::Float(_)), DataType::Int64) => {
                let number = real(&value).unwrap_or(f64::NAN);
                Value::Whole(if up { number.ceil() } else { number.floor() } as i64)
            }
            (value, DataType::Decimal128(precision, scale)) => {
                let wide = digits_of(of);
                let data_type = wide.data_type();
                let column = convert::cast(&build(vec![value], of)?, &data_type, false)?;
                let Some(Value::Decimal(digits, from)) = read_all(&column)?.pop() else { return Ok(Value::Null) };
                let unit = 10_i128.checked_pow(u32::try_from(i32::from(from) - places).unwrap_or(0)).unwrap_or(1);
                let kept = next(digits, unit) * unit;
                let digits = rescaled(kept, i32::from(from), i32::from(*scale), false);
                match digits.filter(|digits| Digits { precision: i32::from(*precision), scale: 0 }.holds(*digits)) {
                    Some(digits) => Value::Decimal(digits, *scale),
                    None => return fault("a decimal is too large for its type"),
                }
            }
            _ => Value::Null,
        })
    };
    build(read_all(&arguments[0])?.into_iter().map(one).collect::<Result<_>>()?, to)
}

fn rounded_type(arguments: &Arguments<'_>) -> Result<DataType> {
    let of = &arguments.types[0];
    let places = if arguments.types.len() == 2 { arguments.number(1) } else { Some(0) };
    Ok(match (of, Digits::of(of)) {
        (DataType::Decimal128(..), Some(digits)) => match places {
            Some(places) => digits.rounded_to(i32::try_from(places).unwrap_or(i32::MAX)).data_type(),
            None if arguments.literals.get(1).is_some_and(Option::is_some) => digits.rounded(0).data_type(),
            None => return Err(DataFusionError::Plan("the digits of `round` must be a literal".to_owned())),
        },
        _ => of.clone(),
    })
}

/// `digits / unit`, halves away from zero or to the even neighbour.
fn nearest(digits: i128, unit: i128, even: bool) -> Option<i128> {
    let near = divided(i256::from_i128(digits), i256::from_i128(unit))?;
    let rest = digits.rem_euclid(unit);
    let tie = rest == unit - rest;
    Some(if even && tie && near % 2 != 0 { near - near.signum() } else { near })
}

/// Halves away from zero, or to the even neighbour.
fn rounded(arguments: &[ArrayRef], to: &DataType, even: bool) -> Result<ArrayRef> {
    let places: Vec<Option<i32>> = super::own::or_literal(arguments.get(1).map(ints), 0, arguments[0].len());
    let near = |digits: i128, unit: i32| -> Option<i128> {
        let Some(unit) = power(unit).and_then(i256::to_i128) else { return Some(0) };
        nearest(digits, unit, even)?.checked_mul(unit)
    };
    let one = |(value, places): (Value, Option<i32>)| {
        let Some(places) = places else { return Ok(Value::Null) };
        Ok(match (value, to) {
            (Value::Whole(number), _) if places < 0 => {
                let near = near(i128::from(number), -places).and_then(|near| i64::try_from(near).ok());
                match near {
                    Some(number) => Value::Whole(number),
                    None => return fault("a whole number is too large for its type"),
                }
            }
            (Value::Decimal(digits, from), DataType::Decimal128(precision, scale)) => {
                let fits = Digits { precision: i32::from(*precision), scale: 0 };
                let near = if places >= i32::from(from) { Some(digits) } else { near(digits, i32::from(from) - places) };
                let near = near.and_then(|near| rescaled(near, i32::from(from), i32::from(*scale), false));
                match near.filter(|digits| fits.holds(*digits)) {
                    Some(digits) => Value::Decimal(digits, *scale),
                    None => return fault("a decimal is too large for its type"),
                }
            }
            (Value::Double(number), _) => Value::Double(rounding::round(number, places, even)),
            (Value::Float(number), _) => {
                // the float's own digits, not those of the double it is
                let number: f64 = crate::shortest::float(number).parse().unwrap_or_else(|_| f64::from(number));
                Value::Float(rounding::round(number, places, even) as f32)
            }
            (other, _) => other,
        })
    };
    build(read_all(&arguments[0])?.into_iter().zip(places).map(one).collect::<Result<_>>()?, to)
}

/// A number in one base said in another; a negative base says it with its sign.
fn conv(text: &str, from: i32, to: i32) -> Result<Option<String>> {
    let base = from.unsigned_abs();
    if !(2..=36).contains(&base) || !(2..=36).contains(&to.unsigned_abs()) {
        return Ok(None);
    }
    let text = text.trim_matches(' ');
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    if text.is_empty() {
        return Ok(None);
    }
    let mut number: u64 = 0;
    for digit in digits.chars().map_while(|sign| sign.to_digit(base)) {
        number = match number.checked_mul(u64::from(base)).and_then(|number| number.checked_add(u64::from(digit))) {
            Some(number) => number,
            None => return fault("a number of `conv` is too large"),
        };
    }
    let mut number = if negative { number.wrapping_neg() } else { number };
    let mut sign = "";
    if to < 0 && (number as i64) < 0 {
        number = number.wrapping_neg();
        sign = "-";
    }
    let mut told = Vec::new();
    loop {
        let digit = u32::try_from(number % u64::from(to.unsigned_abs())).unwrap_or(0);
        told.push(char::from_digit(digit, to.unsigned_abs()).unwrap_or('0').to_ascii_uppercase());
        number /= u64::from(to.unsigned_abs());
        if number == 0 {
            break;
        }
    }
    Ok(Some(sign.chars().chain(told.into_iter().rev()).collect()))
}

fn shifted_type(arguments: &Arguments<'_>) -> Result<DataType> {
    match &arguments.types[0] {
        DataType::Int64 => Ok(DataType::Int64),
        other if other.is_integer() || other.is_null() => Ok(DataType::Int32),
        _ => Err(DataFusionError::Plan("a shift takes a whole number".to_owned())),
    }
}

fn shifted(arguments: &[ArrayRef], to: &DataType, narrow: fn(i64, u32) -> i64, wide: fn(i64, u32) -> i64) -> Result<ArrayRef> {
    let numbers = convert::cast(&arguments[0], &DataType::Int64, false)?;
    let shift = if *to == DataType::Int64 { wide } else { narrow };
    let found: Vec<Option<i64>> = two(longs(&numbers), ints(&arguments[1]), |number, by| Ok(Some(shift(number, by as u32))))?;
    build(found.into_iter().map(|number| number.map_or(Value::Null, Value::Whole)).collect(), to)
}

fn width_bucket(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let [value, least, most] = [0, 1, 2].map(|at: usize| reals(&arguments[at]));
    let rows = value.iter().zip(least).zip(most.iter().zip(longs(&arguments[3])));
    let buckets = rows.map(|row| match row {
        ((Some(value), Some(least)), (Some(most), Some(count))) => {
            let usable = count > 0 && count < i64::MAX && least != most && [value, least, most].iter().all(|number| !number.is_nan());
            if !usable || least.is_infinite() || most.is_infinite() {
                return None;
            }
            let (from, to) = (least.min(most), least.max(most));
            Some(if least < most {
                if value < from {
                    0
                } else if value >= to {
                    count + 1
                } else {
                    (count as f64 * (value - from) / (to - from)) as i64 + 1
                }
            } else if value > to {
                0
            } else if value <= from {
                count + 1
            } else {
                (count as f64 * (to - value) / (to - from)) as i64 + 1
            })
        }
        _ => None,
    });
    column(buckets.collect::<Int64Array>())
}

/// `1234567.891` as `1,234,567.89`, halves to the even neighbour.
fn format_number(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    if *arguments[1].data_type() == DataType::Utf8 {
        return Err(DataFusionError::Plan("`format_number` with a pattern is not executed by this release".to_owned()));
    }
    let places = convert::cast(&arguments[1], &DataType::Int32, false)?;
    let told = read_all(&arguments[0])?.into_iter().zip(ints(&places)).map(|row| match row {
        (Value::Null, _) | (_, None) => None,
        (_, Some(places)) if places < 0 => None,
        (value, Some(places)) => Some(grouped(&value, places)),
    });
    column(told.collect::<StringArray>())
}

fn grouped(value: &Value, places: i32) -> String {
    let text = match value {
        Value::Decimal(digits, scale) => {
            let unit = i32::from(*scale) - places;
            let kept = if unit > 0 {
                let unit = 10_i128.checked_pow(unit.unsigned_abs()).unwrap_or(i128::MAX);
                nearest(*digits, unit, true).unwrap_or(0)
            } else {
                digits.checked_mul(10_i128.checked_pow(unit.unsigned_abs()).unwrap_or(1)).unwrap_or(*digits)
            };
            crate::shortest::decimal(kept, i8::try_from(places).unwrap_or(i8::MAX))
        }
        Value::Whole(number) => {
            crate::shortest::decimal(i128::from(*number) * 10_i128.pow(u32::try_from(places.min(18)).unwrap_or(0)), places.min(18) as i8)
        }
        value => match real(value) {
            Some(number) if number.is_nan() => return "NaN".to_owned(),
            Some(number) if number.is_infinite() => return if number > 0.0 { "∞" } else { "-∞" }.to_owned(),
            // the exact value of a double is rounded
            Some(number) => format!("{number:.*}", usize::try_from(places).unwrap_or(0)),
            None => String::new(),
        },
    };
    in_thousands(&text)
}

/// Commas between groups of three digits.
pub(super) fn in_thousands(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut told = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            told.push(',');
        }
        told.push(digit);
    }
    if let Some(fraction) = fraction {
        told.push('.');
        told.push_str(fraction);
    }
    told
}
