//! Strings beside other values: what the dialect reads them as, where the engine has no such operation and so refuses to plan it.
//!
//! `'5' + 1` is of whole numbers, `'2.5' * price` of the other side's kind, `flag = 'true'` of booleans. A string that cannot be read so
//! is an error of its row. What the engine plans, but with another meaning, is `meaning`'s.
//!
//! Where only one kind of values is taken, as by `avg` or LIKE, an argument is said to be of that kind ([`AS_NUMBER`], [`AS_TEXT`]) until
//! its type is known: then it is cast, or stands alone.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::DFSchema;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::execution::FunctionRegistry as _;
use tributary_lake::datafusion::logical_expr::expr::ScalarFunction;
use tributary_lake::datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use tributary_lake::datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable as _, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_lake::datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::convert::word;
use crate::meaning::{cast, own};
use crate::value::{canonical, instant_type};

/// The call around an argument that is to be a number.
pub(crate) const AS_NUMBER: &str = "as_number";
/// The call around an argument that is to be a text.
pub(crate) const AS_TEXT: &str = "as_text";

/// Aggregates that take numbers alone.
const OF_NUMBERS: &[&str] = &[
    "sum",
    "try_sum",
    "avg",
    "try_avg",
    "mean",
    "stddev",
    "std",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "corr",
    "covar_pop",
    "covar_samp",
    "median",
    "percentile",
    "skewness",
    "kurtosis",
];

/// Whether an aggregate, by its name in lower case, takes numbers alone.
pub(crate) fn takes_numbers(aggregate: &str) -> bool {
    OF_NUMBERS.contains(&aggregate)
}

/// Makes a context plan strings beside other values.
pub(crate) fn register(context: &SessionContext) {
    for (name, to) in [(AS_NUMBER, DataType::Float64), (AS_TEXT, DataType::Utf8)] {
        context.register_udf(ScalarUDF::from(Said { name, to, signature: Signature::any(1, Volatility::Immutable) }));
    }
    // a session takes any
    context.state_ref().write().register_expr_planner(Arc::new(Strings)).ok();
}

/// What stands for an argument that is said to be of a kind, its type being known; none of another call.
pub(crate) fn unsaid(call: &ScalarFunction, from: impl Fn(&Expr) -> Option<DataType>) -> Result<Option<Expr>> {
    let ([argument], Some(said)) = (call.args.as_slice(), call.func.inner().downcast_ref::<Said>()) else { return Ok(None) };
    let from = from(argument).unwrap_or(DataType::Null);
    match said.given(&from) {
        to if to == from => Ok(Some(argument.clone())),
        to => cast(argument.clone(), &to, false).map(Some),
    }
}

/// An argument that is to be of a kind. It has no name of its own, so that what is made of it is called as before.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Said {
    name: &'static str,
    to: DataType,
    signature: Signature,
}

impl Said {
    /// The type in which an argument of a type is given.
    fn given(&self, from: &DataType) -> DataType {
        let from = canonical(from);
        let is_other = if self.to == DataType::Utf8 {
            from.is_numeric() || matches!(from, DataType::Boolean | DataType::Date32 | DataType::Timestamp(..))
        } else {
            from == DataType::Utf8
        };
        if is_other { self.to.clone() } else { from }
    }
}

impl ScalarUDFImpl for Said {
    fn name(&self) -> &str {
        self.name
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(arguments.first().map(|argument| argument.schema_name().to_string()).unwrap_or_default())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().map_or(DataType::Null, |from| self.given(from)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("`{}` stands for a cast until types are known", self.name)))
    }
}

#[derive(Debug)]
struct Strings;

impl ExprPlanner for Strings {
    fn plan_binary_op(&self, operation: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let type_of = |side: &Expr| side.get_type(schema).map_or(DataType::Null, |data_type| canonical(&data_type));
        let (left, right) = (type_of(&operation.left), type_of(&operation.right));
        let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
        if matches!(operation.op, BinaryOperator::Multiply) && (is_interval(&left) || is_interval(&right)) {
            return Err(DataFusionError::Plan("an interval times a number is not executed: write the interval out".to_owned()));
        }
        let is_text = |of: &DataType| *of == DataType::Utf8;
        let other = match (is_text(&left), is_text(&right)) {
            (true, false) => &right,
            (false, true) => &left,
            (true, true) if arithmetic(&operation.op).is_some() => {
                let reason = format!("`{}` takes numbers, not two strings: cast them", operation.op);
                return Err(DataFusionError::Plan(reason));
            }
            _ => return Ok(PlannerResult::Original(operation)),
        };
        planned(operation, &left, other)
    }
}

/// An operation of a string and a value of another type, as the dialect has it.
fn planned(operation: RawBinaryExpr, left: &DataType, other: &DataType) -> Result<PlannerResult<RawBinaryExpr>> {
    use BinaryOperator as B;
    let RawBinaryExpr { op, left: of, right: beside } = operation;
    let string_is_left = *left == DataType::Utf8;
    let as_type = |to: &DataType, of: Expr, beside: Expr| {
        Ok::<_, DataFusionError>(if string_is_left { (cast(of, to, false)?, beside) } else { (of, cast(beside, to, false)?) })
    };
    match (&op, other) {
        (B::Plus | B::Minus | B::Multiply, other) if other.is_numeric() => match arithmetic(&op) {
            Some(name) => own(name, vec![of, beside]).map(PlannerResult::Planned),
            None => Ok(PlannerResult::Original(RawBinaryExpr { op, left: of, right: beside })),
        },
        (B::Plus | B::Minus, DataType::Interval(_)) => {
            // the instant that it is then is a string again
            let (of, beside) = as_type(&instant_type(), of, beside)?;
            let moved = if matches!(op, B::Plus) { Operator::Plus } else { Operator::Minus };
            let moved = Expr::BinaryExpr(BinaryExpr { left: Box::new(of), op: moved, right: Box::new(beside) });
            cast(moved, &DataType::Utf8, false).map(PlannerResult::Planned)
        }
        (B::Plus | B::Minus | B::Multiply, other) if !other.is_null() => {
            Err(DataFusionError::Plan(format!("`{op}` of a string and {}: cast the string", word(other))))
        }
        (B::BitwiseAnd | B::BitwiseOr | B::BitwiseXor, other) if other.is_integer() => {
            let (left, right) = as_type(&DataType::Int64, of, beside)?;
            Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
        }
        (B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq | B::And | B::Or, to @ (DataType::Boolean | DataType::Binary)) => {
            let (left, right) = as_type(to, of, beside)?;
            Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
        }
        _ => Ok(PlannerResult::Original(RawBinaryExpr { op, left: of, right: beside })),
    }
}

/// The function that checks what it computes, of an operator.
fn arithmetic(op: &BinaryOperator) -> Option<&'static str> {
    match op {
        BinaryOperator::Plus => Some("plus"),
        BinaryOperator::Minus => Some("minus"),
        BinaryOperator::Multiply => Some("times"),
        _ => None,
    }
}
