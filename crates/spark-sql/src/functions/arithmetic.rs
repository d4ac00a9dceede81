//! Operations of two numbers: `+ - * %`, `div`, `pmod`, and their forms that give null where there is no result.

use tributary_lake::arrow::array::{Array, ArrayRef, Datum};
use tributary_lake::arrow::compute::kernels::numeric::{add, mul, sub};
use tributary_lake::arrow::datatypes::{DataType, i256};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::Any;
use super::own::{Arguments, Gives, Own, fault};
use super::{Entry, hidden, own};
use crate::convert::{self, word};
use crate::decimal::{Digits, divided, power};
use crate::value::{Value, build, range, read};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    hidden(crate::quotient::FUNCTION),
    hidden(Own::new("plus", &[Any, Any], Gives::By(|a| of_two(a, Operation::Plus)), |a, to| computed(a, to, Operation::Plus, false))),
    hidden(Own::new("minus", &[Any, Any], Gives::By(|a| of_two(a, Operation::Minus)), |a, to| computed(a, to, Operation::Minus, false))),
    hidden(Own::new("times", &[Any, Any], Gives::By(|a| of_two(a, Operation::Times)), |a, to| computed(a, to, Operation::Times, false))),
    own(&["mod"], Own::new("mod", &[Any, Any], Gives::By(|a| of_two(a, Operation::Rest)), |a, to| computed(a, to, Operation::Rest, false))),
    own(
        &["pmod"],
        Own::new("pmod", &[Any, Any], Gives::By(|a| of_two(a, Operation::Positive)), |a, to| computed(a, to, Operation::Positive, false)),
    ),
    hidden(Own::new("div", &[Any, Any], Gives::By(|a| of_two(a, Operation::Whole).map(|_| DataType::Int64)), |a, to| {
        computed(a, to, Operation::Whole, false)
    })),
    own(
        &["try_add"],
        Own::new("try_add", &[Any, Any], Gives::By(|a| of_two(a, Operation::Plus)), |a, to| computed(a, to, Operation::Plus, true)),
    ),
    own(
        &["try_subtract"],
        Own::new("try_subtract", &[Any, Any], Gives::By(|a| of_two(a, Operation::Minus)), |a, to| computed(a, to, Operation::Minus, true)),
    ),
    own(
        &["try_multiply"],
        Own::new("try_multiply", &[Any, Any], Gives::By(|a| of_two(a, Operation::Times)), |a, to| computed(a, to, Operation::Times, true)),
    ),
    own(
        &["try_mod"],
        Own::new("try_mod", &[Any, Any], Gives::By(|a| of_two(a, Operation::Rest)), |a, to| computed(a, to, Operation::Rest, true)),
    ),
    own(
        &["try_divide"],
        Own::new("try_divide", &[Any, Any], Gives::By(crate::quotient::typing), |a, to| crate::quotient::quotients(a, to, true)),
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Plus,
    Minus,
    Times,
    Rest,
    Positive,
    Whole,
}

/// The type of two numbers' result.
fn of_two(arguments: &Arguments<'_>, operation: Operation) -> Result<DataType> {
    let [left, right] = [0, 1].map(|side: usize| side_type(arguments, side));
    let (left, right) = (left?, right?);
    match (&left, &right) {
        (DataType::Null, DataType::Null) => return Ok(DataType::Float64),
        (DataType::Null, other) | (other, DataType::Null) => return of_pair(other, other, operation),
        _ => {}
    }
    of_pair(&left, &right, operation)
}

/// The type of a side.
fn side_type(arguments: &Arguments<'_>, side: usize) -> Result<DataType> {
    let of = &arguments.types[side];
    match (of, &arguments.types[1 - side]) {
        (of, _) if of.is_numeric() || of.is_null() => Ok(of.clone()),
        (DataType::Utf8, beside) if beside.is_integer() => Ok(DataType::Int64),
        (DataType::Utf8, beside) if beside.is_numeric() => Ok(DataType::Float64),
        (of, _) => Err(DataFusionError::Plan(format!("arithmetic takes numbers, not {}", word(of)))),
    }
}

fn of_pair(left: &DataType, right: &DataType, operation: Operation) -> Result<DataType> {
    use DataType as D;
    if left.is_decimal() || right.is_decimal() {
        if let (Some(a), Some(b)) = (Digits::of(left), Digits::of(right)) {
            return Ok(digits(a, b, operation).data_type());
        }
        return Ok(D::Float64);
    }
    let rank = |data_type: &D| match data_type {
        D::Int8 => 1,
        D::Int16 => 2,
        D::Int32 => 3,
        D::Int64 => 4,
        D::Float32 => 5,
        _ => 6,
    };
    let (low, high) = if rank(left) <= rank(right) { (left, right) } else { (right, left) };
    Ok(if *high == D::Float32 && low.is_integer() { D::Float64 } else { high.clone() })
}

/// The digits of a result of decimals.
fn digits(a: Digits, b: Digits, operation: Operation) -> Digits {
    let whole = (a.precision - a.scale).max(b.precision - b.scale);
    let scale = a.scale.max(b.scale);
    match operation {
        Operation::Plus | Operation::Minus => Digits { precision: whole + scale + 1, scale }.adjusted(),
        Operation::Times => Digits { precision: a.precision + b.precision + 1, scale: a.scale + b.scale }.adjusted(),
        Operation::Rest | Operation::Positive => {
            Digits { precision: (a.precision - a.scale).min(b.precision - b.scale) + scale, scale }.adjusted()
        }
        Operation::Whole => Digits { precision: 20, scale: 0 },
    }
}

enum Failed {
    Zero,
    Large,
}

fn computed(arguments: &[ArrayRef], to: &DataType, operation: Operation, lenient: bool) -> Result<ArrayRef> {
    let sides = [0, 1].map(|side: usize| {
        let (of, beside) = (&arguments[side], arguments[1 - side].data_type());
        match of.data_type() {
            DataType::Utf8 if beside.is_integer() => convert::cast(of, &DataType::Int64, false),
            DataType::Utf8 => convert::cast(of, &DataType::Float64, false),
            _ if to.is_floating() => convert::cast(of, to, false),
            _ => Ok(of.clone()),
        }
    });
    let [left, right] = sides;
    let (left, right) = (left?, right?);
    let kernel = match operation {
        Operation::Plus => Some(add as fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>),
        Operation::Minus => Some(sub as _),
        Operation::Times => Some(mul as _),
        _ => None,
    };
    if let (Some(kernel), true, false) = (kernel, to.is_integer(), lenient) {
        let (left, right) = (convert::cast(&left, to, false)?, convert::cast(&right, to, false)?);
        return kernel(&left, &right).map_err(|error| match error {
            // the kernel would name the values
            ArrowError::ArithmeticOverflow(_) => DataFusionError::Execution("a whole number is too large for its type".to_owned()),
            error => error.into(),
        });
    }
    let one = |row| {
        let found = match (read(&left, row)?, read(&right, row)?) {
            (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
            (Value::Whole(a), Value::Whole(b)) if !to.is_decimal() => whole(a, b, to, operation),
            (Value::Double(a), Value::Double(b)) => doubles(a, b, operation)
                .map(|found| if operation == Operation::Whole { Value::Whole(found as i64) } else { Value::Double(found) }),
            (Value::Float(a), Value::Float(b)) => doubles(a.into(), b.into(), operation).map(|found| Value::Float(found as f32)),
            (a, b) => match (decimal(&a), decimal(&b)) {
                (Some(a), Some(b)) => decimals(a, b, to, operation),
                _ => match (convert::real(&a), convert::real(&b)) {
                    (Some(a), Some(b)) => doubles(a, b, operation).map(|found| Value::Whole(found as i64)),
                    _ => Ok(Value::Null),
                },
            },
        };
        match found {
            Ok(found) => Ok(found),
            Err(_) if lenient => Ok(Value::Null),
            Err(Failed::Zero) => Err(DataFusionError::from(ArrowError::DivideByZero)),
            Err(Failed::Large) if to.is_decimal() => fault("a decimal is too large for its type"),
            Err(Failed::Large) => fault("a whole number is too large for its type"),
        }
    };
    build((0..left.len()).map(one).collect::<Result<_>>()?, to)
}

fn decimal(value: &Value) -> Option<(i128, i32)> {
    match value {
        Value::Whole(number) => Some((i128::from(*number), 0)),
        Value::Decimal(digits, scale) => Some((*digits, i32::from(*scale))),
        _ => None,
    }
}

fn whole(a: i64, b: i64, to: &DataType, operation: Operation) -> Result<Value, Failed> {
    let found = match operation {
        Operation::Plus => a.checked_add(b),
        Operation::Minus => a.checked_sub(b),
        Operation::Times => a.checked_mul(b),
        Operation::Rest | Operation::Positive | Operation::Whole if b == 0 => return Err(Failed::Zero),
        Operation::Rest => Some(a.wrapping_rem(b)),
        Operation::Positive => {
            let rest = a.wrapping_rem(b);
            Some(if rest < 0 { rest.wrapping_add(b).wrapping_rem(b) } else { rest })
        }
        Operation::Whole => a.checked_div(b),
    };
    found.filter(|number| range(to).is_none_or(|range| range.contains(number))).map(Value::Whole).ok_or(Failed::Large)
}

fn doubles(a: f64, b: f64, operation: Operation) -> Result<f64, Failed> {
    Ok(match operation {
        Operation::Plus => a + b,
        Operation::Minus => a - b,
        Operation::Times => a * b,
        _ if b == 0.0 => return Err(Failed::Zero),
        Operation::Rest => a % b,
        Operation::Positive => {
            let rest = a % b;
            if rest < 0.0 { (rest + b) % b } else { rest }
        }
        Operation::Whole => (a / b).trunc(),
    })
}

fn decimals((a, from_a): (i128, i32), (b, from_b): (i128, i32), to: &DataType, operation: Operation) -> Result<Value, Failed> {
    let wide = |digits: i128, up: i32| power(up).and_then(|unit| i256::from_i128(digits).checked_mul(unit)).ok_or(Failed::Large);
    let common = from_a.max(from_b);
    let sides = || Ok((wide(a, common - from_a)?, wide(b, common - from_b)?));
    let is_zero = b == 0;
    let (found, scale) = match operation {
        Operation::Plus | Operation::Minus => {
            let (a, b) = sides()?;
            (if operation == Operation::Plus { a.checked_add(b) } else { a.checked_sub(b) }, common)
        }
        Operation::Times => (i256::from_i128(a).checked_mul(i256::from_i128(b)), from_a + from_b),
        _ if is_zero => return Err(Failed::Zero),
        Operation::Rest => {
            let (a, b) = sides()?;
            (a.checked_rem(b), common)
        }
        Operation::Positive => {
            let (a, b) = sides()?;
            let rest = a.checked_rem(b).ok_or(Failed::Large)?;
            (if rest.is_negative() { rest.checked_add(b).and_then(|sum| sum.checked_rem(b)) } else { Some(rest) }, common)
        }
        Operation::Whole => {
            let (a, b) = sides()?;
            (a.checked_div(b), 0)
        }
    };
    let found = found.ok_or(Failed::Large)?;
    match to {
        DataType::Decimal128(precision, to_scale) => {
            let shift = i32::from(*to_scale) - scale;
            let digits = if shift >= 0 {
                power(shift).and_then(|unit| found.checked_mul(unit)).and_then(i256::to_i128)
            } else {
                power(-shift).and_then(|unit| divided(found, unit))
            };
            let fits = Digits { precision: i32::from(*precision), scale: 0 };
            digits.filter(|digits| fits.holds(*digits)).map(|digits| Value::Decimal(digits, *to_scale)).ok_or(Failed::Large)
        }
        _ => found.to_i128().and_then(|number| i64::try_from(number).ok()).map(Value::Whole).ok_or(Failed::Large),
    }
}
