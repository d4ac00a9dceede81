//! Functions of one row that rewritten texts call, as the engine has them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{Array, ArrayRef};
use tributary_lake::arrow::datatypes::{DataType, Field, FieldRef};
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// The type of the result.
type Typing = fn(&ReturnFieldArgs<'_>) -> Result<DataType>;
/// The results of whole columns, a value a row, in that type.
type Kernel = fn(&[ArrayRef], &DataType) -> Result<ArrayRef>;

/// A function that answers by its arguments alone.
pub(crate) fn function(name: &'static str, takes: TypeSignature, typing: Typing, kernel: Kernel) -> ScalarUDF {
    ScalarUDF::from(Function { name, signature: Signature::new(takes, Volatility::Immutable), typing, kernel })
}

#[derive(Debug)]
struct Function {
    name: &'static str,
    signature: Signature,
    typing: Typing,
    kernel: Kernel,
}

/// There is one function of a name.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} follows from its arguments", self.name)))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name, (self.typing)(&arguments)?, true)))
    }

    /// One value where every argument is one, else a value a row.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let values = (self.kernel)(&columns, arguments.return_field.data_type())?;
        let one = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if one && values.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?));
        }
        Ok(ColumnarValue::Array(values))
    }
}
