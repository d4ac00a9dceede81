//! `+`, `-` and `*` of whole numbers: too large a result is an error, where the engine would wrap.

use std::sync::{Arc, LazyLock};

use tributary_lake::arrow::array::ArrayRef;
use tributary_lake::arrow::compute::cast;
use tributary_lake::arrow::compute::kernels::numeric::{add, mul, sub};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::answer::answer;

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    [Operation::Plus, Operation::Minus, Operation::Times].map(|operation| Arc::new(ScalarUDF::from(Checked::new(operation))))
});

/// What stands for an operator on whole numbers; none where the engine's own is right.
pub(crate) fn function(operator: Operator) -> Option<Arc<ScalarUDF>> {
    let [plus, minus, times] = &*FUNCTIONS;
    match operator {
        Operator::Plus => Some(Arc::clone(plus)),
        Operator::Minus => Some(Arc::clone(minus)),
        Operator::Multiply => Some(Arc::clone(times)),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Plus,
    Minus,
    Times,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    signature: Signature,
}

impl Checked {
    fn new(operation: Operation) -> Self {
        Self { operation, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Plus => "plus",
            Operation::Minus => "minus",
            Operation::Times => "times",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        BinaryTypeCoercer::new(&arguments[0], &Operator::Plus, &arguments[1]).get_result_type()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let sides = ColumnarValue::values_to_arrays(&arguments.args)?;
        let sides = sides.iter().map(|side| cast(side, arguments.return_field.data_type())).collect::<Result<Vec<ArrayRef>, _>>()?;
        let result = match self.operation {
            Operation::Plus => add(&sides[0], &sides[1]),
            Operation::Minus => sub(&sides[0], &sides[1]),
            Operation::Times => mul(&sides[0], &sides[1]),
        };
        let result = result.map_err(|error| match error {
            // the kernel would name the values
            ArrowError::ArithmeticOverflow(_) => DataFusionError::Execution("a whole number is too large for its type".to_owned()),
            error => error.into(),
        })?;
        answer(&arguments.args, result)
    }
}
