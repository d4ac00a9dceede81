//! `+`, `-` and `*` of whole numbers: too large a result is an error, where the engine would wrap.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, Datum};
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::compute::kernels::numeric::{add, mul, sub};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use tributary_lake::datafusion::logical_expr::{Operator, ReturnFieldArgs, ScalarUDF, TypeSignature};

use crate::scalar;

/// What stands for an operator on whole numbers; none where the engine's own is right.
pub(crate) fn function(operator: Operator) -> Option<Arc<ScalarUDF>> {
    let two = TypeSignature::Any(2);
    let function = match operator {
        Operator::Plus => scalar::function("plus", two, wider, |sides, to| checked(sides, to, add)),
        Operator::Minus => scalar::function("minus", two, wider, |sides, to| checked(sides, to, sub)),
        Operator::Multiply => scalar::function("times", two, wider, |sides, to| checked(sides, to, mul)),
        _ => return None,
    };
    Some(Arc::new(function))
}

fn wider(arguments: &ReturnFieldArgs<'_>) -> Result<DataType> {
    let [left, right] = [0, 1].map(|side: usize| arguments.arg_fields[side].data_type());
    BinaryTypeCoercer::new(left, &Operator::Plus, right).get_result_type()
}

type Operation = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

fn checked(sides: &[ArrayRef], to: &DataType, operation: Operation) -> Result<ArrayRef> {
    let (left, right) = (cast(&sides[0], to)?, cast(&sides[1], to)?);
    operation(&left, &right).map_err(|error| match error {
        // the kernel would name the values
        ArrowError::ArithmeticOverflow(_) => DataFusionError::Execution("a whole number is too large for its type".to_owned()),
        error => error.into(),
    })
}
