//! Numbers as they are written: the type follows from the digits and the letters behind them, and a sign before them is theirs.
//!
//! The engine's grammar has whole numbers of 64 bits alone. So a rewritten text says a number as an operation of two texts, its
//! digits and its type, which no text of people can hold; [`Numbers`] makes a literal of that type of it when the text is planned.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::{DFSchema, ScalarValue};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::execution::FunctionRegistry as _;
use tributary_lake::datafusion::logical_expr::Expr as Planned;
use tributary_lake::datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator, Value, ValueWithSpan};

use crate::convert::word;
use crate::{Error, ast, ddl, shortest};

/// The operation that stands for a number in a rewritten text.
const OPERATION: &str = "as a literal of";

/// What may stand behind the digits of a number, longest first.
const SUFFIXES: [&str; 6] = ["BD", "L", "S", "Y", "D", "F"];

/// A number that is written.
#[derive(Debug, Clone, PartialEq)]
enum Number {
    Whole(i64, DataType),
    /// Digits and how many of them are behind the point.
    Decimal(i128, i8),
    Double(f64),
    Float(f32),
}

impl Number {
    /// Of digits with their letters and their sign.
    fn of(written: &str, negative: bool) -> Result<Self, String> {
        let (digits, suffix) = split(written);
        let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
        let is_whole = digits.bytes().all(|c| c.is_ascii_digit());
        let whole = |data_type: DataType| {
            let number = signed.parse().ok().filter(|number| crate::value::range(&data_type).is_some_and(|range| range.contains(number)));
            number.map(|number| Self::Whole(number, data_type.clone())).ok_or_else(|| format!("{signed} as {}", word(&data_type)))
        };
        match suffix {
            "L" => whole(DataType::Int64),
            "S" => whole(DataType::Int16),
            "Y" => whole(DataType::Int8),
            "D" => signed.parse().map(Self::Double).map_err(|_| signed.clone()),
            "F" => signed.parse().map(Self::Float).map_err(|_| signed.clone()),
            "" if is_whole => whole(DataType::Int32).or_else(|_| whole(DataType::Int64)).or_else(|_| decimal(&signed)),
            "" if digits.contains(['e', 'E']) => signed.parse().map(Self::Double).map_err(|_| signed.clone()),
            _ => decimal(&signed),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Whole(_, data_type) => data_type.clone(),
            Self::Decimal(digits, scale) => DataType::Decimal128(precision(*digits, *scale), *scale),
            Self::Double(_) => DataType::Float64,
            Self::Float(_) => DataType::Float32,
        }
    }

    /// Its digits, as [`scalar`] reads them again.
    fn text(&self) -> String {
        match self {
            Self::Whole(number, _) => number.to_string(),
            Self::Decimal(digits, scale) => shortest::decimal(*digits, *scale),
            Self::Double(number) => format!("{number:e}"),
            Self::Float(number) => format!("{number:e}"),
        }
    }
}

/// Digits, and the letters behind them in capitals.
fn split(written: &str) -> (&str, &'static str) {
    let suffix = SUFFIXES.into_iter().find(|suffix| {
        written.len() > suffix.len() && written.get(written.len() - suffix.len()..).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    });
    suffix.map_or((written, ""), |suffix| (&written[..written.len() - suffix.len()], suffix))
}

/// Whether a word is a number with letters behind it.
pub(crate) fn has_suffix(word: &str) -> bool {
    let (digits, suffix) = split(word);
    let mut points = 0;
    let plain = digits.bytes().all(|c| {
        points += usize::from(c == b'.');
        c.is_ascii_digit() || c == b'.'
    });
    let may_be_broken = matches!(suffix, "D" | "F" | "BD");
    !suffix.is_empty() && plain && digits.bytes().any(|c| c.is_ascii_digit()) && (points == 0 || (points == 1 && may_be_broken))
}

/// Whether a word may stand behind the digits of a number.
pub(crate) fn is_suffix(word: &str) -> bool {
    SUFFIXES.iter().any(|suffix| word.eq_ignore_ascii_case(suffix))
}

/// A decimal of just the digits that are written.
fn decimal(written: &str) -> Result<Number, String> {
    let (mantissa, exponent) = match written.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| written.to_owned())?),
        None => (written, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = i32::try_from(fraction.len()).unwrap_or(i32::MAX).saturating_sub(exponent);
    let too_long = || format!("the number {written}, which has more than 38 digits");
    let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| too_long())?;
    let (digits, scale) = match u32::try_from(-scale) {
        Ok(zeros) => (10_i128.checked_pow(zeros).and_then(|unit| digits.checked_mul(unit)).ok_or_else(too_long)?, 0),
        Err(_) => (digits, i8::try_from(scale).ok().filter(|scale| *scale <= 38).ok_or_else(too_long)?),
    };
    if precision(digits, scale) > 38 { Err(too_long()) } else { Ok(Number::Decimal(digits, scale)) }
}

/// How many digits a decimal has: those that are written, and no fewer than stand behind the point.
fn precision(digits: i128, scale: i8) -> u8 {
    let length = digits.unsigned_abs().max(1).ilog10() + 1;
    // at most 39
    u8::try_from(length).unwrap_or(u8::MAX).max(scale.unsigned_abs())
}

/// A whole number of 64 bits at most; none for another value.
pub(crate) fn whole(value: &ValueWithSpan, negative: bool) -> Option<i64> {
    let Value::Number(written, _) = &value.value else { return None };
    match Number::of(written, negative) {
        Ok(Number::Whole(number, _)) => Some(number),
        Ok(Number::Decimal(..) | Number::Double(_) | Number::Float(_)) | Err(_) => None,
    }
}

/// What stands for a number; none for another value.
pub(crate) fn number(value: &ValueWithSpan, negative: bool) -> Result<Option<Expr>, Error> {
    let Value::Number(digits, long) = &value.value else { return Ok(None) };
    let written = if *long { format!("{digits}L") } else { digits.clone() };
    let number = Number::of(&written, negative).map_err(|what| Error::refused(what, value.span))?;
    let said = Expr::BinaryOp {
        left: Box::new(ast::text(&number.text())),
        op: BinaryOperator::Custom(OPERATION.to_owned()),
        right: Box::new(ast::text(&word(&number.data_type()))),
    };
    Ok(Some(said))
}

/// Whether an expression of a rewritten text is a number that was written.
pub(crate) fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryOp { op: BinaryOperator::Custom(operation), .. } => operation == OPERATION,
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    }
}

/// The type of a number of a rewritten text, of a text and of null; none of what only planning tells.
pub(crate) fn type_of(expression: &Expr) -> Option<DataType> {
    match expression {
        Expr::BinaryOp { op: BinaryOperator::Custom(operation), right, .. } if operation == OPERATION => match right.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(of), .. }) => ddl::data_type(of),
            _ => None,
        },
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }) => Some(DataType::Utf8),
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(DataType::Null),
        _ => None,
    }
}

/// Whether an expression is a bare number, which is a place where columns or rows are counted.
pub(crate) fn is_place(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) if digits.bytes().all(|c| c.is_ascii_digit()))
}

/// What stands for `-1`, where the sign is the number's own: also of `-1::string`, which is a text.
pub(crate) fn negative(op: UnaryOperator, of: &mut Expr) -> Result<Option<Expr>, Error> {
    match of {
        _ if op != UnaryOperator::Minus => Ok(None),
        Expr::Value(value) => number(value, true),
        Expr::Cast { kind: CastKind::DoubleColon, expr, .. } => Ok(takes_the_sign(expr).then(|| of.clone())),
        _ => Ok(None),
    }
}

/// Puts a sign before the number that is cast, once or several times; tells whether there is one.
fn takes_the_sign(of: &mut Expr) -> bool {
    match of {
        Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => {
            *of = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(of.clone()) };
            true
        }
        Expr::Cast { kind: CastKind::DoubleColon, expr, .. } => takes_the_sign(expr),
        _ => false,
    }
}

/// Makes literals of what stands for numbers in rewritten texts.
#[derive(Debug)]
struct Numbers;

/// Lets a context plan the numbers of rewritten texts.
pub(crate) fn register(context: &SessionContext) {
    let registered = context.state_ref().write().register_expr_planner(Arc::new(Numbers));
    debug_assert!(registered.is_ok(), "a session takes planners");
}

impl ExprPlanner for Numbers {
    fn plan_binary_op(&self, expression: RawBinaryExpr, _: &DFSchema) -> QueryResult<PlannerResult<RawBinaryExpr>> {
        if !matches!(&expression.op, BinaryOperator::Custom(operation) if operation == OPERATION) {
            return Ok(PlannerResult::Original(expression));
        }
        match (&expression.left, &expression.right) {
            (Planned::Literal(ScalarValue::Utf8(Some(digits)), _), Planned::Literal(ScalarValue::Utf8(Some(of)), _)) => {
                Ok(PlannerResult::Planned(Planned::Literal(scalar(digits, of)?, None)))
            }
            _ => Err(DataFusionError::Internal("a number is said by two texts".to_owned())),
        }
    }
}

/// The value of these digits in the type of this word.
fn scalar(digits: &str, of: &str) -> QueryResult<ScalarValue> {
    let wrong = || DataFusionError::Internal(format!("{digits} is no {of}"));
    match ddl::data_type(of).ok_or_else(wrong)? {
        DataType::Decimal128(precision, scale) => match decimal(digits) {
            Ok(Number::Decimal(digits, _)) => Ok(ScalarValue::Decimal128(Some(digits), precision, scale)),
            _ => Err(wrong()),
        },
        data_type => ScalarValue::try_from_string(digits.to_owned(), &data_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(written: &str, negative: bool) -> String {
        match Number::of(written, negative) {
            Ok(number) => format!("{} {}", word(&number.data_type()), number.text()),
            Err(refused) => format!("refused: {refused}"),
        }
    }

    #[test]
    fn the_type_of_a_number_follows_from_how_it_is_written() {
        for (written, expected) in [
            ("1", "int 1"),
            ("2147483647", "int 2147483647"),
            ("2147483648", "bigint 2147483648"),
            ("9223372036854775808", "decimal(19,0) 9223372036854775808"),
            ("1L", "bigint 1"),
            ("1s", "smallint 1"),
            ("127Y", "tinyint 127"),
            ("128Y", "refused: 128 as tinyint"),
            ("1.50", "decimal(3,2) 1.50"),
            ("0.05", "decimal(2,2) 0.05"),
            ("12.", "decimal(2,0) 12"),
            (".5", "decimal(1,1) 0.5"),
            ("1e3", "double 1e3"),
            ("1.5D", "double 1.5e0"),
            ("1.5f", "float 1.5e0"),
            ("1BD", "decimal(1,0) 1"),
            ("1.5e2BD", "decimal(3,0) 150"),
        ] {
            assert_eq!(told(written, false), expected, "{written}");
        }
        assert_eq!(told("2147483648", true), "int -2147483648");
        assert_eq!(told("9223372036854775808", true), "bigint -9223372036854775808");
        assert_eq!(told("128Y", true), "tinyint -128");
        assert!(told(&"9".repeat(39), false).starts_with("refused: the number 999"));
    }

    #[test]
    fn a_number_that_is_said_is_read_again() {
        for written in
            ["0", "-7", "1.50", "2.5e-3", "1F", "3Y", "170141183460469231731687303715884105727", "0.00000000000000000000000000001"]
        {
            let (digits, negative) = written.strip_prefix('-').map_or((written, false), |digits| (digits, true));
            let Ok(number) = Number::of(digits, negative) else { continue };
            let read = scalar(&number.text(), &word(&number.data_type())).unwrap();
            assert_eq!(read.data_type(), number.data_type(), "{written}");
            assert_eq!(
                read.to_string().parse::<f64>().ok(),
                number.text().parse::<f64>().ok().filter(|_| !matches!(number, Number::Decimal(..))).or(read.to_string().parse().ok())
            );
        }
    }

    #[test]
    fn words_that_are_numbers_are_told_from_names() {
        assert!(["1L", "2s", "3Y", "1.5D", "1bd", "2f"].into_iter().all(has_suffix));
        assert!(["1_000", "1a", "a1L", "1.5L", "L", "1..D", "1DD"].into_iter().all(|word| !has_suffix(word)));
    }
}
